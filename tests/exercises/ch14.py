"""Wrong answers to the exercises of chapter 14: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "traces": [
        ("1, 0, 2", "2, 0, 2", "a float already"),
        ("1, 0, 2", "1, 1, 2", "remembered"),
        ("1, 0, 2", "1, 0, 1", "shows that a float comes out"),
    ],
    "polynomial": [
        (", reverse=True", "", "first coefficient"),
        ("value * x + a", "(value + a) * x", "first coefficient"),
        ("    return lax.scan(lambda value, a: (value * x + a, None), 0.0, coefficients, reverse=True)[0]",
         "    return sum(a * x ** k for k, a in enumerate(coefficients))", "one lax.scan"),
        ("value * x + a", "lax.stop_gradient(value) * x + a", "slope at 2"),
    ],
    "pull_back": [
        ("later + y_bar", "later", "should be c̄ₙ"),
        ("w * arrived, arrived", "arrived, arrived", "which turn's w"),
        ("w * arrived, arrived", "w * arrived, w * arrived", "should be c̄ₙ"),
        (", reverse=True", "", "should be c̄ₙ"),
        ("""def pull_back(w, c_bar, y_bar):
    forward = lambda c, xs: lax.scan(lambda c, r: (r[0] * c + r[1],) * 2, c, (w, xs))
    return jax.vjp(forward, 1.0, jnp.zeros(3))[1]((c_bar, y_bar))""", "one scan is enough"),
    ],
}
