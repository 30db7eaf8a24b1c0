"""Wrong answers to chapter 6's exercises: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "linearize_g": [
        ("1.0 + x * jnp.cos(x)", "x * jnp.cos(x)", "slope along 2 should be"),
        ("lambda x_dot: slope * x_dot", "lambda x_dot: slope", "slope along 2 should be"),
        ('''
def linearize_g(x):
    g = lambda x: x * jnp.exp(jnp.sin(x))
    return g(x), lambda x_dot: jax.jvp(g, (x,), (x_dot,))[1]
''', "should be done before the velocity comes"),
    ],
    "residual_bytes": [
        ("sum(c.nbytes for c in linear_program(f, *args).consts)", "sum(a.nbytes for a in args)",
         "two arrays"),
        ("c.nbytes", "c.size", "numbers of 4 bytes"),
    ],
    "jacobian_once": [
        ("out_axes=1", "out_axes=0", "rows for results"),
        ('''
def jacobian_once(f, x):
    columns = [jax.jvp(f, (x,), (e,))[1] for e in jnp.eye(x.shape[0])]
    return jnp.stack(columns, 1)
''', "f should be called once"),
        ("_, f_lin = jax.linearize(f, x)", "f_lin = f", "diag"),
    ],
    "fold_constants": [
        ("return ClosedJaxpr(*trace.to_jaxpr(outs))", "return closed_jaxpr", "should be left"),
        ('''
def fold_constants(closed_jaxpr):
    return jax.make_jaxpr(jaxpr_as_fun(closed_jaxpr))(jnp.ones(2))
''', "should be left"),
    ],
}
