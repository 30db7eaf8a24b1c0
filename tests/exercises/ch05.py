"""Wrong answers to the exercises of chapter 5: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "transpose_type": [
        ("[x.shape[p] for p in permutation]", "x.shape", "shape"),
        ("[x.shape[p] for p in permutation], x.dtype", "[x.shape[p] for p in permutation], np.float32", "dtype|type"),
        ("[x.shape[p] for p in permutation]", "[x.shape[permutation.index(p)] for p in range(x.ndim)]",
         "shape"),
    ],
    "histogram": [
        ("collections.Counter(eqn.primitive.name for eqn in closed_jaxpr.eqns)",
         "{eqn.primitive.name: 1 for eqn in closed_jaxpr.eqns}", "should be"),
        ("eqn.primitive.name", "eqn.primitive", "should be"),
    ],
    "interval_eval": [
        ("min(candidates), max(candidates)", "x[0] * y[0], x[1] * y[1]", "four candidates"),
        ("(-x[1], -x[0])", "(-x[0], -x[1])", "swaps the ends"),
        ("(float(atom.val),) * 2", "(0.0, float(atom.val))", "one point"),
    ],
    "eliminate_common": [
        ("invars = [rename(v) for v in eqn.invars]", "invars = list(eqn.invars)", "three equations|before it is bound"),
        ('("literal", atom.val.item(), atom.aval)', '"literal"', "should not be taken for the same"),
        ("outvars=[rename(v) for v in jaxpr.outvars]", "outvars=jaxpr.invars", "should still be"),
        ("tuple(sorted(eqn.params.items()))", "()", "differ in their params"),
        (", outvars=[rename(v) for v in jaxpr.outvars]", "", "the same thing twice"),
    ],
}
