"""Wrong answers to the exercises of chapter 4: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "max_batch": [
        ("    axes = [a if a < d else a + 1 for a in axes]\n", "", "batch"),
        ("d - sum(a < d for a in axes)", "d", "batch"),
        ("a if a < d else a + 1", "a + 1", "batch"),
    ],
    "transpose_batch": [
        ("transpose(axis_first(axis, x, d), (0, *[p + 1 for p in permutation])), 0",
         "transpose(x, (*permutation, 3)), 3", "batch"),
        ("for p in permutation])), 0", "for p in permutation])), d", "batch"),
    ],
    "distances": [
        ("(None, 0)), (0, None))", "(0, None)), (None, 0))", "which axis is outer"),
        ("jnp.sqrt(jnp.sum((p - q) ** 2))", "jnp.sum((p - q) ** 2)", "should be the distance"),
    ],
    "loop_rule": [
        ("np.take(np.asarray(x), k, d)", "np.take(np.asarray(x), 0, d)", "batch"),
        ("for out in outs]), 0", "for out in outs]), 1", "batch"),
    ],
}
