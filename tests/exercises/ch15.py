"""Wrong answers to the exercises of chapter 15: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "norm": [
        ("jnp.where(out == 0, 1.0, out)", "out", "the gradient at 0 should be 0"),
        ("jnp.sum(x * x_dot)", "jnp.sum(x_dot)", "gradient at .3, 4. should be"),
        ("""def norm(x):
    square = jnp.sum(x * x)
    return jnp.where(square > 0, jnp.sqrt(jnp.where(square > 0, square, 1.0)), 0.0)""", "a rule of its own"),
    ],
    "straight": [
        ("ct * (jnp.abs(x) <= 1)", "ct", "nowhere else"),
        ("ct * (jnp.abs(x) <= 1)", "1.0 * (jnp.abs(x) <= 1)", "should pass where"),
        ("jnp.abs(x) <= 1", "jnp.abs(x) < 1", "should pass where"),
        ("""def straight(x):
    passing = jnp.where(jnp.abs(x) <= 1, x, jax.lax.stop_gradient(x))
    return passing + jax.lax.stop_gradient(jnp.round(x) - passing)""", "use jax.custom_vjp"),
    ],
    "kepler": [
        (" / (1.0 - e * jnp.cos(angle))", "", "derivative by m should be"),
        ("e_dot * jnp.sin(angle)", "e_dot", "derivative by e should be"),
        ("(1.0 - e * jnp.cos(angle))", "(1.0 - e * jnp.cos(jax.lax.stop_gradient(angle)))",
         "second derivative"),
    ],
}
