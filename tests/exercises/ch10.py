"""Wrong answers to the exercises of chapter 10: an edit (old, new, regex) of the solution, or a source."""

wrong = {
    "meeting_points": [
        ('"int16"', '"int8"', "int8 . uint8 should not be int8"),
        ('"float16"', '"float32"', "int32 . float16 should not be float32"),
        ('"int32"', '"int64"', "bool . 2 should not be int64"),
        (', "complex64"', "", "five names"),
    ],
    "unbroadcast": [
        (".reshape(shape)", "", "shape should be the operand's"),
        ("jnp.sum(ct", "jnp.mean(ct", "the sums should be"),
        ("(1,) * (ct.ndim - len(shape)) + shape", "shape + (1,) * (ct.ndim - len(shape))",
         "reshape|shape should be|sums should be"),
    ],
    "hessian_vector": [
        ("jax.jvp(jax.grad(f), (x,), (v,))[1]", "jax.jvp(jax.grad(f), (x,), (v,))[0]", "part of a"),
        ("jax.jvp(jax.grad(f), (x,), (v,))[1]", "jax.jvp(f, (x,), (v,))[1]", "tree like x"),
        ("jax.jvp(jax.grad(f), (x,), (v,))[1]", "jax.jvp(jax.grad(f), (v,), (x,))[1]", "part of a"),
    ],
    "value_and_slopes": [
        ("dict(zip(argnums, pull_back", "dict(zip(sorted(argnums), pull_back", "slopes should be"),
        ("jnp.ones_like(value)", "value", "slopes should be"),
        ('''
def value_and_slopes(f, argnums):
    def at(*args):
        return f(*args), {i: jax.grad(f, i)(*args) for i in argnums}
    return at
''', "run once"),
    ],
    "my_vmap": [
        ("x.shape[d] for", "x.shape[0] for", "5 times"),
        ("flat.out_tree, outs", "tree, outs", "leaves|tree|structure"),
        ("dims, repeat(0)", "dims, repeat(1)", "shape|out of range"),
    ],
}
