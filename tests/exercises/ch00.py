"""Wrong answers to the exercises of chapter 0: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "g": [
        ("jax.jit(jax.vmap(jax.grad(lambda x: x ** 3 - x)))",
         "jax.jit(jax.vmap(lambda x: x ** 3 - x))", "slopes of"),
        ("jax.jit(jax.vmap(jax.grad(lambda x: x ** 3 - x)))",
         "jax.vmap(jax.grad(lambda x: x ** 3 - x))", "should be compiled"),
        ("jax.jit(jax.vmap(jax.grad(lambda x: x ** 3 - x)))",
         "jax.jit(jax.grad(lambda x: x ** 3 - x))", "scalar"),
    ],
    "value_at_3": [
        ("5.0", "8.0", "taken away"),
        ("5.0", "11.0", "should be 8"),
    ],
}
