"""Wrong answers to the exercises of chapter 12: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "traces_of_h": [
        ("traces_of_h = 3", "traces_of_h = 5", "order of a dict does not matter"),
        ("traces_of_h = 3", "traces_of_h = 1", "an int is no float"),
    ],
    "my_jit": [
        ("key = x.shape, x.dtype", "key = x.shape", "2 cos x|should be traced once each|compiled for|dtype"),
        ("key = x.shape, x.dtype", "key = id(x)", "traced once each"),
        ("        if key not in wrapper.table:\n    ", "        if True:\n    ", "traced once each"),
    ],
    "deep_count": [
        ('deep_count(eqn.params["jaxpr"]) if eqn.primitive.name == "jit" else 1', "1", "should count 5"),
        ('deep_count(eqn.params["jaxpr"]) if', 'len(eqn.params["jaxpr"].eqns) if', "should count 5"),
    ],
    "calls_without_memo": [
        ("0 if d == 0 else 1 + 2 * calls_without_memo(d - 1)", "d", "should be 7"),
        ("0 if d == 0 else 1 + 2 * calls_without_memo(d - 1)", "2 ** d", "one call"),
    ],
}
