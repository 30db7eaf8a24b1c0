"""Wrong answers to the exercises of chapter 15: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "norm": [
        ("jnp.where(out == 0, 1.0, out)", "out", "the gradient at 0 should be 0"),
        ("jnp.sum(x * x_dot)", "jnp.sum(x_dot)", "gradient at .3, 4. should be"),
    ],
    "straight": [
        ("ct * (jnp.abs(x) <= 1)", "ct", "nowhere else"),
        ("ct * (jnp.abs(x) <= 1)", "1.0 * (jnp.abs(x) <= 1)", "should pass where"),
    ],
    "kepler": [
        (" / (1.0 - e * jnp.cos(angle))", "", "derivative by m should be"),
        ("e_dot * jnp.sin(angle)", "e_dot", "derivative by e should be"),
        ("(1.0 - e * jnp.cos(angle))", "(1.0 - e * jnp.cos(jax.lax.stop_gradient(angle)))",
         "second derivative"),
    ],
}
