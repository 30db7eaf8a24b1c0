"""Wrong answers to the exercises of chapter 31: edits (old, new, regex) or sources."""

wrong = {
    "confusion": [
        ("rows.T @ columns", "rows @ columns.T", r"\(10, 10\)"),
        ("rows.T @ columns", "columns.T @ rows", "row 3 should hold the 3s"),
        ('''
def confusion(labels, predicted):
    return jax.nn.one_hot(labels, 10).T @ jax.nn.one_hot(predicted, 10)
''', "counts should be integers"),
    ],
    "fool": [
        ("image + size", "image - size", "loss should grow"),
        ("jnp.sign(uphill)", "uphill", "sign of the gradient"),
        ("jnp.clip(image + size * jnp.sign(uphill), 0, 1)", "image + size * jnp.sign(uphill)",
         "between 0 and 1"),
    ],
    "adam_step": [
        ("(m / (1 - 0.9 ** t))", "m", "first step should be rate"),
        ("s / (1 - 0.999 ** t)", "s / (1 - 0.999)", "is t in both corrections"),
        ("0.001 * g ** 2", "0.001 * g", "mean square|first step"),
        ("0.9 * m + 0.1 * g", "0.9 * m + g", "first step should be rate"),
    ],
    "ensemble_step": [
        ("jnp.stack(leaves)", "jnp.concatenate(leaves)", r"\(4, 64, 16\)|zero-dim|at least one"),
        ("jnp.stack(leaves)", "jnp.stack(leaves, axis=-1)", r"\(4, 64, 16\)"),
        ('''
def stack(trees):
    return jax.tree.map(lambda *leaves: jnp.stack(leaves), *trees)


def ensemble_step(params, velocity, images, labels):
    stepped = [step(*(jax.tree.map(lambda a: a[0], t) for t in (params, velocity)), images, labels)]
    return stack(stepped * 4)
''', "what step makes of it alone"),
    ],
}
