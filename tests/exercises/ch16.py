"""Wrong answers to the exercises of chapter 16: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "how_many_sines": [
        ("= 7", "= 8", "not every sine is needed a second time"),
        ("= 7", "= 4", "cannot be taken from the forward part"),
    ],
    "save_small": [
        ("a.size * a.dtype.itemsize", "a.size", "count bytes|16 bytes"),
        ("in outs) <=", "in avals) <=", "count bytes, of results|0 bytes"),
        ("sum(a.size * a.dtype.itemsize for a in outs)",
         "outs[0].size * outs[0].dtype.itemsize", "two results: 32 bytes"),
        ("<= limit", "> limit", "0 bytes should save nothing"),
    ],
    "batch_again": [
        ("return outs, list(out_dims)", "return outs, [0] * len(outs)",
         "axis|example|batch"),
        ("*consts, *vals, **params | {\"jaxpr\": program}", "*vals, **params", "shape|batch|example"),
        ("checkpoint_p.bind(*consts, *vals, **params | {\"jaxpr\": program})",
         "__import__('minijax').jaxpr.eval_jaxpr(program, [], *consts, *vals)",
         "applied by checkpoint_p"),
    ],
    "best": [
        ("np.sqrt(r * n)", "np.sqrt(n)", "is not the least for n=100, r=4"),
        ("2 * k", "k", "should be"),
    ],
    "halving": [
        ("jax.checkpoint(half)(x)", "half(x)", "1 . 2 . 4 checkpointed halves, your program has 0"),
        ("lambda x: half(jax.checkpoint(half)(x))", "lambda x: jax.checkpoint(half)(x)",
         "applied n times"),
        ("half = halving(f, n // 2)", "half = lambda x: [x := f(x) for _ in range(n // 2)][-1]",
         "your program has 1"),
    ],
}
