"""Wrong answers to the exercises of chapter 8: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "makers_of": [
        ('"mul": "defbilinear"', '"mul": "defjvp"', "mul is not made by defjvp"),
        ('"exp": "defjvp_with_result"', '"exp": "defjvp"', "exp is not made by defjvp"),
        ('"sign": "def_no_derivative"', '"sign": "deflinear"', "sign is not made by deflinear"),
    ],
    "logcosh_block": [
        ("np.logaddexp(x, -x) - x.dtype.type(np.log(2))", "np.log(np.cosh(x))", "overflows"),
        (" - x.dtype.type(np.log(2))", "", "log.cosh"),
        ("mul(t, tanh(x))", "tanh(x)", "tangent"),
        ("mul(t, tanh(x))", "sub(mul(sub(t, t), x), mul(t, tanh(x)))", "factor of about -1"),
        ("    defvectorized(p)", "", "batch"),
        ("    def_not_linear(p)\n", "", "linear in no operand"),
    ],
    "differences_transpose": [
        ("sub(pad(ct, zero, [(1, 0, 0)]), pad(ct, zero, [(0, 1, 0)]))",
         "sub(pad(ct, zero, [(0, 1, 0)]), pad(ct, zero, [(1, 0, 0)]))", "wrong sign|off|factor"),
        ("pad(ct, zero, [(0, 1, 0)])", "pad(zero * ct, zero, [(0, 1, 0)])", "⟨"),
        ("    return [sub(pad(ct, zero, [(1, 0, 0)]), pad(ct, zero, [(0, 1, 0)]))]",
         "    return sub(pad(ct, zero, [(1, 0, 0)]), pad(ct, zero, [(0, 1, 0)]))", "list"),
    ],
    "looks_linear": [
        ("random.normal(size=(2, n))", "random.uniform(size=(2, n))", "absolute|abs"),
        ("f(x + 2 * z), np.asarray(f(x)) + 2", "f(2 * z), 2", "absolute|abs"),
        ("x, z = random.normal(size=(2, n))", "x = z = random.normal(size=n)", "should be False"),
    ],
    "rules_from": [
        ("jax.jvp(f, tuple(primals), tuple(tangents))", "(f(*primals), f(*tangents))", "tangent"),
        ("(jax.vmap(f, in_axes=dims[0])(*vals), 0)", "(jax.vmap(f)(*vals), 0)", "batch"),
        ("    p.def_abstract_eval(lambda x: typeof_result(f, x))\n", "", "abstract_eval"),
    ],
}
