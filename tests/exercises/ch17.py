"""Wrong answers to the exercises of chapter 17: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "lines_printed": [
        ("lines_printed = 6", "lines_printed = 10", "does not depend on the batch"),
        ("lines_printed = 6", "lines_printed = 12", "the backward pass shows nothing"),
    ],
    "tell_batch": [
        ("i, dim, keepdims", "i, 0, keepdims", "stand along axis 1|size|out of range|called"),
        ("    for i in range(axis.size):\n        tell_p.bind(jax.lax.index_in_dim(x, i, dim, "
         "keepdims=False))", "    tell_p.bind(x)", "should be called 2 times, not 1"),
        ("range(axis.size)", "reversed(range(axis.size))", "in order"),
    ],
    "betrayals": [
        ("repr(f.__globals__[name])", "f.__globals__[name]", "there is more in it"),
        ("return str(closed), [np.asarray(c).tolist() for c in closed.consts]", "return str(closed)",
         "don't stand in its text"),
        ("trace() != trace()", "not trace()", "a number of its own"),
        ("in f.__globals__]", "in f.__globals__ and name != 'calls']", "another one afterwards"),
        ('["it prints"] * bool(printed.getvalue())', "[]", "it prints"),
        ("bool(printed.getvalue())", "('print' in str(jax.make_jaxpr(f)(*args)))", "an equation"),
    ],
    "watch": [
        ("return watch_p.bind(x), watch_p.bind(t)", "return watch_p.bind(x), t", "one cotangent"),
        ("return [ct]", "return [2.0 * ct]", "should not change the gradient"),
        ("float(ct)), ct)", "float(ct)), 2.0 * ct)", "the derivative of what comes after"),
    ],
    "first_zero_division": [
        ("(error == 0) & jnp", "jnp", "the first is equation"),
        ("operands[1], 0", "operands[0], 0", "should be 0|the first is|only the second"),
        ("enumerate(jaxpr.eqns, 1)", "enumerate(jaxpr.eqns)", "equation|should be"),
        ("jnp.any(jnp.equal(operands[1], 0))", "jnp.all(jnp.equal(operands[1], 0))", "one zero among"),
    ],
}
