"""Wrong answers to the exercises of chapter 9: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "cotangent_specs": [
        ('f"{out},{lhs}->{rhs}"', 'f"{lhs},{out}->{rhs}"', "the two should be"),
        ('f"{out},{rhs}->{lhs}", f"{out},{lhs}->{rhs}"', 'f"{out},{lhs}->{rhs}", f"{out},{rhs}->{lhs}"',
         "the two should be"),
    ],
    "sum_back": [
        ("if i not in axes", "if i in axes", "broadcast_in_dim"),
        ("return [broadcast_in_dim(ct, shape, kept)]", "return broadcast_in_dim(ct, shape, kept)", "list"),
        ("return [broadcast_in_dim(ct, shape, kept)]", "return [ct]", "shape"),
    ],
    "slice_back": [
        ("stride - 1)", "stride)", "shape"),
        ("start, high,", "high, start,", "⟨"),
        ("n - 1 - (start + (m - 1) * stride)", "n - limit_indices[0]", "shape"),
    ],
    "linear_matrix": [
        (", out_axes=-1", "", "shape"),
        ("jax.vmap(f, out_axes=-1)(jnp.eye(n))", "jax.vmap(f, out_axes=-1)(2 * jnp.eye(n))", "should be M"),
    ],
    "overlap_add": [
        ("(j, n - count - j)", "(0, n - count)", "number of windows"),
        ("ct[:, j]", "ct[:, 0]", "should equal"),
        ("(j, n - count - j)", "(j, k - j)", "n = 7|shape"),
    ],
}
