"""Wrong programs that learners write, by topic, for either library: `wrong_programs(jax)`."""

import importlib
import pickle

import numpy as np

X = np.ones(3, np.float32)
M = np.ones((2, 3), np.float32)


def no_pair(jax):
    class Node:
        pass
    jax.tree_util.register_pytree_node(Node, lambda node: 3, lambda aux, children: Node())
    return Node()


def wrong_programs(jax):
    """{topic: {name: a function of no arguments that raises}}"""
    for part in ("ad_checkpoint", "custom_batching", "experimental.checkify", "extend.core",
                 "flatten_util", "test_util"):
        importlib.import_module(f"{jax.__name__}.{part}")
    jnp, lax = jax.numpy, jax.lax
    x, m, i = jnp.asarray(X), jnp.asarray(M), jnp.arange(3)
    identity = lambda x: x
    pair = lambda c, x: (c, x)

    @jax.custom_jvp
    def cj(x):
        return x

    @jax.custom_vjp
    def cv(x):
        return x

    def with_jvp(rule):
        f = jax.custom_jvp(identity)
        f.defjvp(rule)
        return f

    def with_vjp(fwd, bwd):
        f = jax.custom_vjp(identity)
        f.defvjp(fwd, bwd)
        return f

    def with_batching(rule):
        f = jax.custom_batching.custom_vmap(identity)
        f.def_vmap(rule)
        return f

    @jax.custom_batching.custom_vmap
    def no_batching(x):
        return x

    def set_item(x, value=1.0):
        x[0] = value

    def leak():
        kept = []
        jax.jit(lambda x: kept.append(x))(1.0)
        return kept[0]

    def leaked():
        return leak() + 1

    def compiled_for_other():
        return jax.jit(identity).lower(x).compile()(m)

    def deleted():
        y = jnp.ones(3)
        y.delete()
        return y + 1

    return {
        "tracers": {
            "if": lambda: jax.jit(lambda x: 1 if x > 0 else 2)(1.0),
            "while": lambda: jax.jit(lambda x: next(x for _ in iter(int, 1) if not x > 0))(1.0),
            "and": lambda: jax.jit(lambda x: x > 0 and x < 1)(1.0),
            "if in vmap": lambda: jax.vmap(lambda x: 1 if x > 0 else 2)(x),
            "if in scan": lambda: lax.scan(lambda c, x: (c if c else x, x), 1.0, x),
            "if on an array": lambda: 1 if x > 0 else 2,
            "min": lambda: jax.jit(lambda x: min(x, 1.0))(1.0),
            "float": lambda: jax.jit(lambda x: float(x))(1.0),
            "int": lambda: jax.jit(lambda x: int(x))(1.0),
            "complex": lambda: jax.jit(lambda x: complex(x))(1.0),
            "item": lambda: jax.jit(lambda x: x.item())(1.0),
            "tolist": lambda: jax.jit(lambda x: x.tolist())(1.0),
            "math": lambda: jax.jit(lambda x: __import__("math").sin(x))(1.0),
            "range": lambda: jax.jit(lambda n: list(range(n)))(3),
            "list index": lambda: jax.jit(lambda n: [1, 2][n])(0),
            "hex": lambda: jax.jit(lambda n: hex(n))(0),
            "numpy": lambda: jax.jit(lambda x: np.sin(x))(1.0),
            "np.array": lambda: jax.jit(lambda x: np.asarray(x))(1.0),
            "mask": lambda: jax.jit(lambda x: x[x > 0])(x),
            "nonzero": lambda: jax.jit(lambda x: jnp.nonzero(x))(x),
            "unique": lambda: jax.jit(lambda x: jnp.unique(x))(x),
            "arange": lambda: jax.jit(lambda n: jnp.arange(n))(3),
            "zeros": lambda: jax.jit(lambda n: jnp.zeros(n))(3),
            "traced reshape": lambda: jax.jit(lambda n: x.reshape(n, 1))(3),
            "traced slice": lambda: jax.jit(lambda n: x[:n])(3),
            "traced axis": lambda: jax.jit(lambda n: jnp.sum(x, axis=n))(0),
            "repeat": lambda: jax.jit(lambda n: jnp.repeat(x, n))(i),
            "where of one": lambda: jax.jit(lambda x: jnp.where(x > 0))(x),
            "iterate scalar": lambda: jax.jit(lambda x: [y for y in x])(1.0),
            "len of scalar": lambda: jax.jit(lambda x: len(x))(1.0),
            "dict key": lambda: {x: 1},
            "leak": leaked,
            "set item": lambda: set_item(x),
            "set item traced": lambda: jax.jit(set_item)(x),
            "use of deleted": deleted,
            "format": lambda: jax.jit(lambda x: f"{x:.2f}")(1.0),
            "format by %": lambda: jax.jit(lambda n: "%d" % n)(1),
            "NumPy's zeros": lambda: jax.jit(lambda n: np.zeros(n))(3),
            "NumPy's assignment": lambda: jax.jit(lambda x: set_item(np.zeros(3), x))(1.0),
            "pickle": lambda: jax.jit(lambda x: pickle.dumps(x))(1.0),
            "traced dict key": lambda: jax.jit(lambda x: {x: 1})(1.0),
            "traced delete": lambda: jax.jit(lambda x: x.delete())(1.0),
            "float of a leak": lambda: float(leak()),
            "if of a leak": lambda: 1 if leak() else 2,
            "NumPy of a leak": lambda: np.asarray(leak()),
            "format of an array": lambda: f"{x:.2f}",
            "traced tile": lambda: jax.jit(lambda n: jnp.linspace(0.0, 1.0, n))(3),
        },
        "jit": {
            "static list": lambda: jax.jit(lambda x, n: x, static_argnums=1)(1.0, [1]),
            "static array": lambda: jax.jit(lambda x, n: x, static_argnums=1)(1.0, x),
            "static name": lambda: jax.jit(identity, static_argnames="n")(1.0),
            "static number": lambda: jax.jit(identity, static_argnums=3)(1.0),
            "static kind": lambda: jax.jit(identity, static_argnums="x")(1.0),
            "string": lambda: jax.jit(identity)("a"),
            "object": lambda: jax.jit(identity)(object()),
            "returns string": lambda: jax.jit(lambda x: "a")(1.0),
            "no callable": lambda: jax.jit(3),
            "no callable in grad": lambda: jax.grad(3),
            "no callable in vmap": lambda: jax.vmap(3),
            "too few": lambda: jax.jit(lambda x, y: x)(1.0),
            "too many": lambda: jax.jit(lambda x: x)(1.0, 2.0),
            "both static and donated": lambda: jax.jit(
                lambda x: x, static_argnums=0, donate_argnums=0),
            "compiled for other": compiled_for_other,
            "compiled, of a tracer": lambda: jax.jit(jax.jit(identity).lower(x).compile())(x),
            "compiled for another tree": lambda: jax.jit(identity).lower([x]).compile()((x,)),
            "backend": lambda: jax.devices("tpu"),
            "option": lambda: jax.config.update("jax_no_such_option", 1),
            "static tracer": lambda: jax.jit(
                lambda n: jax.jit(lambda x, n: x, static_argnums=1)(1.0, n))(2),
            "static number below": lambda: jax.jit(identity, static_argnums=-3)(1.0),
            "None": lambda: jax.jit(None),
            "backend of jit": lambda: jax.jit(identity, backend="tpu")(1.0),
            "string in a tree": lambda: jax.jit(identity)({"a": [1.0, "b"]}),
            "lower a string": lambda: jax.jit(identity).lower("a"),
            "lower of too few": lambda: jax.jit(identity).lower(),
        },
        "types": {
            "add": lambda: x + jnp.ones(4),
            "masked": lambda: jnp.sin(np.ma.masked_array([1.0], mask=[True])),
            "ufunc of a list": lambda: jnp.add(x, [1.0, 2.0, 3.0]),
            "ufunc of one": lambda: jnp.add(x),
            "reduce of a ufunc": lambda: jnp.add.reduce(x, axis=3),
            "at of a ufunc": lambda: jnp.add.at(x, 0, 1.0),
            "property": lambda: x.mT,
            "vectorize": lambda: jnp.vectorize(jnp.dot, signature="(n),(n)->()")(x, jnp.ones(4)),
            "vectorize of one": lambda: jnp.vectorize(jnp.dot, signature="(n),(n)->()")(x),
            "round": lambda: jnp.round(x, 1.5),
            "repeat by a float": lambda: jnp.repeat(x, 1.5),
            "device_put": lambda: jax.device_put(x, "gpu"),
            "to_device": lambda: x.to_device("gpu"),
            "struct without dtype": lambda: jax.ShapeDtypeStruct((1,), None),
            "where: shapes": lambda: jnp.where(x > 0, x, jnp.ones(4)),
            "diag": lambda: jnp.diag(jnp.ones((2, 2, 2))),
            "add traced": lambda: jax.jit(lambda x: x + jnp.ones(4))(x),
            "lax.add shapes": lambda: lax.add(x, jnp.ones(4)),
            "lax.add dtypes": lambda: lax.add(x, i),
            "lax.add a list": lambda: lax.add(x, [1, 2, 3]),
            "add a list": lambda: x + [1, 2, 3],
            "add a string": lambda: x + "a",
            "add None": lambda: x + None,
            "sin of a list": lambda: jnp.sin([1.0]),
            "sin of a string": lambda: jnp.sin("a"),
            "lax.sin of ints": lambda: lax.sin(1),
            "sum of a list": lambda: jnp.sum([1, 2]),
            "dot": lambda: jnp.dot(x, jnp.ones(4)),
            "matmul": lambda: m @ m,
            "matmul of scalar": lambda: x @ 2.0,
            "einsum": lambda: jnp.einsum("ij,jk", m, m),
            "einsum letters": lambda: jnp.einsum("ijk", m),
            "reshape": lambda: x.reshape(7),
            "reshape two unknown": lambda: x.reshape(-1, -1),
            "transpose": lambda: jnp.transpose(m, (0, 0)),
            "concatenate": lambda: jnp.concatenate([m, x]),
            "concatenate nothing": lambda: jnp.concatenate([]),
            "concatenate sizes": lambda: jnp.concatenate([m, jnp.ones((2, 2))]),
            "stack": lambda: jnp.stack([x, jnp.ones(4)]),
            "split": lambda: jnp.split(x, 2),
            "squeeze": lambda: jnp.squeeze(m, 0),
            "broadcast_to": lambda: jnp.broadcast_to(x, (4,)),
            "axis": lambda: jnp.sum(x, axis=1),
            "axis twice": lambda: jnp.sum(m, axis=(0, 0)),
            "axis a float": lambda: jnp.sum(m, axis=0.5),
            "max of nothing": lambda: jnp.max(jnp.zeros(0)),
            "argmax of nothing": lambda: jnp.argmax(jnp.zeros(0)),
            "dtype": lambda: jnp.zeros(3, dtype="float31"),
            "dtype of objects": lambda: jnp.array([object()]),
            "ragged": lambda: jnp.array([[1, 2], [3]]),
            "int overflow": lambda: jnp.int32(2 ** 40),
            "int in an array": lambda: jnp.array(2 ** 40, dtype=jnp.int32),
            "big int": lambda: x + 2 ** 100,
            "float of a vector": lambda: float(x),
            "index of a float": lambda: [1, 2][jnp.float32(0)],
            "bitwise of floats": lambda: x & x,
            "shift of floats": lambda: x << 1,
            "negative shape": lambda: jnp.zeros((-1,)),
            "float shape": lambda: jnp.zeros(3.0),
            "iota of floats": lambda: jnp.arange(0.0, 1.0, 0.0),
            "eye": lambda: jnp.eye(-1),
            "linspace": lambda: jnp.linspace(0, 1, -1),
            "clip": lambda: lax.clamp(x, jnp.ones(4), x),
            "select": lambda: lax.select(x > 0, x, jnp.ones(4)),
            "where": lambda: jnp.where(x > 0, x, jnp.ones(4)),
            "where of two": lambda: jnp.where(x > 0, x),
            "convert": lambda: lax.convert_element_type(x, "float31"),
            "cross": lambda: jnp.cross(jnp.ones(4), jnp.ones(4)),
            "sort axis": lambda: jnp.sort(x, axis=2),
            "top_k": lambda: lax.top_k(x, 4),
            "one_hot axis": lambda: jax.nn.softmax(x, axis=3),
            "iterate": lambda: list(jnp.float32(1)),
            "len": lambda: len(jnp.float32(1)),
        },
        "indexing": {
            "float index": lambda: x[1.0],
            "float array index": lambda: x[x],
            "string index": lambda: x["a"],
            "too many": lambda: x[0, 0],
            "two ellipses": lambda: m[..., ...],
            "mask shape": lambda: x[jnp.ones(4, bool)],
            "list index": lambda: x[[0, 1]],
            "tuple in a list": lambda: m[[(0, 1)]],
            "index shapes": lambda: m[jnp.arange(2), jnp.arange(3)],
            "set shape": lambda: x.at[0].set(jnp.ones(2)),
            "set mask": lambda: jax.jit(lambda x: x.at[x > 0].set(jnp.ones(2)))(x),
            "mode": lambda: x.at[0].get(mode="no"),
            "put": lambda: jnp.put(x, 0, 1.0),
            "fill_diagonal": lambda: jnp.fill_diagonal(m, 1.0),
            "take floats": lambda: jnp.take(x, 0.5),
            "apply no callable": lambda: x.at[0].apply(3),
            "take axis": lambda: jnp.take(x, 0, axis=3),
            "take_along_axis": lambda: jnp.take_along_axis(m, i, axis=0),
            "dynamic_slice": lambda: lax.dynamic_slice(x, (0, 0), (1,)),
            "dynamic_slice sizes": lambda: lax.dynamic_slice(x, (0,), (4,)),
            "dynamic_slice floats": lambda: lax.dynamic_slice(x, (0.5,), (1,)),
            "dynamic_update_slice": lambda: lax.dynamic_update_slice(x, m, (0,)),
            "slice step of zero": lambda: x[::0],
            "slice of floats": lambda: x[:1.5],
        },
        "derivatives": {
            "grad of int": lambda: jax.grad(lambda x: x)(3),
            "grad of bool": lambda: jax.grad(lambda x: 1.0)(True),
            "grad of vector output": lambda: jax.grad(lambda x: x)(x),
            "grad of tuple output": lambda: jax.grad(lambda x: (x, x))(1.0),
            "grad of aux": lambda: jax.grad(lambda x: x, has_aux=True)(1.0),
            "grad of complex": lambda: jax.grad(lambda x: x)(1j),
            "grad of int output": lambda: jax.grad(lambda x: 1)(1.0),
            "grad of string": lambda: jax.grad(lambda x: x)("a"),
            "argnums too large": lambda: jax.grad(lambda x: x, argnums=1)(1.0),
            "argnums a float": lambda: jax.grad(lambda x: x, argnums=0.5)(1.0),
            "holomorphic real": lambda: jax.grad(lambda x: x, holomorphic=True)(1.0),
            "jacfwd of complex": lambda: jax.jacfwd(lambda x: x)(1j),
            "jacrev of int": lambda: jax.jacrev(lambda x: x)(1),
            "jvp structure": lambda: jax.jvp(lambda x: x, (1.0,), ((1.0, 2.0),)),
            "jvp list and tuple": lambda: jax.jvp(lambda x: x, (1.0,), [1.0]),
            "jvp no tuple": lambda: jax.jvp(lambda x: x, 1.0, 1.0),
            "jvp lengths": lambda: jax.jvp(lambda x: x, (1.0,), (1.0, 1.0)),
            "jvp dtype": lambda: jax.jvp(lambda x: x, (1.0,), (1,)),
            "jvp shape": lambda: jax.jvp(lambda x: x, (1.0,), (x,)),
            "linearize": lambda: jax.linearize(jnp.sin, 1.0)[1](x),
            "linearize structure": lambda: jax.linearize(jnp.sin, 1.0)[1](1.0, 2.0),
            "vjp structure": lambda: jax.vjp(jnp.sin, 1.0)[1]((1.0, 2.0)),
            "vjp dtype": lambda: jax.vjp(jnp.sin, 1.0)[1](1),
            "vjp shape": lambda: jax.vjp(jnp.sin, 1.0)[1](x),
            "vjp string": lambda: jax.vjp(jnp.sin, 1.0)[1]("a"),
            "linear_transpose": lambda: jax.linear_transpose(jnp.sin, 1.0)(1.0),
            "linear_transpose cotangent": lambda: jax.linear_transpose(
                lambda x: 2 * x, 1.0)(x),
            "while_loop": lambda: jax.grad(lambda x: lax.while_loop(
                lambda y: y > 1.0, lambda y: y / 2, x))(5.0),
            "fori_loop": lambda: jax.grad(lambda x: jax.jit(lambda n: lax.fori_loop(
                0, n, lambda i, y: y / 2, x))(3))(5.0),
            "pure_callback": lambda: jax.grad(lambda x: jax.pure_callback(
                np.sin, jnp.zeros(()), x))(1.0),
            "no defjvp": lambda: cj(1.0),
            "no defvjp": lambda: cv(1.0),
            "no rule of a primitive": lambda: jax.grad(lambda x: lax.sin(
                jax.extend.core.Primitive("mine").bind(x)))(1.0),
            "custom_jvp no pair": lambda: jax.jvp(with_jvp(lambda p, t: 1.0), (1.0,), (1.0,)),
            "custom_jvp structure": lambda: jax.jvp(
                with_jvp(lambda p, t: (p[0], (t[0], t[0]))), (1.0,), (1.0,)),
            "custom_jvp shape": lambda: jax.jvp(
                with_jvp(lambda p, t: (p[0], x)), (1.0,), (1.0,)),
            "custom_jvp dtype": lambda: jax.jvp(
                with_jvp(lambda p, t: (p[0], 1)), (1.0,), (1.0,)),
            "custom_vjp no pair": lambda: jax.grad(
                with_vjp(lambda x: x, lambda r, g: (g,)))(1.0),
            "custom_vjp primal structure": lambda: jax.grad(
                with_vjp(lambda x: ((x, x), x), lambda r, g: (g,)))(1.0),
            "custom_vjp no tuple": lambda: jax.grad(
                with_vjp(lambda x: (x, x), lambda r, g: g))(1.0),
            "custom_vjp too many": lambda: jax.grad(
                with_vjp(lambda x: (x, x), lambda r, g: (g, g)))(1.0),
            "custom_vjp structure": lambda: jax.grad(
                with_vjp(lambda x: (x, x), lambda r, g: ((g, g),)))(1.0),
            "custom_vjp shape": lambda: jax.grad(
                with_vjp(lambda x: (x, x), lambda r, g: (jnp.ones(3),)))(1.0),
            "custom_vjp forward mode": lambda: jax.jvp(
                with_vjp(lambda x: (x, x), lambda r, g: (g,)), (1.0,), (1.0,)),
            "checkpoint policy": lambda: jax.grad(jax.checkpoint(
                jnp.sin, policy=lambda *_, **__: "no"))(1.0),
            "checkpoint if": lambda: jax.checkpoint(lambda x: 1 if x > 0 else 2)(1.0),
            "checkpoint no callable": lambda: jax.checkpoint(3)(1.0),
            "hessian of vector input ints": lambda: jax.hessian(jnp.sum)(i),
            "closure_convert": lambda: jax.closure_convert(3, 1.0),
            "linear_transpose of a product": lambda: jax.linear_transpose(lambda x: x * x, 1.0)(1.0),
            "two cotangents": lambda: jax.vjp(lambda x: (x, x), 1.0)[1](1.0, 1.0),
            "custom_gradient": lambda: jax.custom_gradient(lambda x: x)(1.0),
            "jvp of a string": lambda: jax.jvp(identity, ("a",), ("a",)),
            "grad that returns a string": lambda: jax.grad(lambda x: "a")(1.0),
            "static number of checkpoint": lambda: jax.checkpoint(identity, static_argnums=3)(1.0),
            "check_grads": lambda: jax.test_util.check_grads(jnp.round, (1.5,), 1),
            "check_grads of no function": lambda: jax.test_util.check_grads(3, (1.5,), 1),
            "saved residuals of no function": lambda: jax.ad_checkpoint.print_saved_residuals(3, 1.0),
        },
        "vmap": {
            "sizes": lambda: jax.vmap(jnp.add)(x, jnp.ones(4)),
            "sizes in a tree": lambda: jax.vmap(lambda t: t["a"])({"a": x, "b": jnp.ones(4)}),
            "scalar": lambda: jax.vmap(jnp.sin)(1.0),
            "axis": lambda: jax.vmap(jnp.sin, in_axes=1)(x),
            "negative axis": lambda: jax.vmap(jnp.sin, in_axes=-2)(x),
            "number of axes": lambda: jax.vmap(jnp.sin, in_axes=(0, 0))(x),
            "structure of axes": lambda: jax.vmap(jnp.sin, in_axes=((0, 0),))(x),
            "kind of axes": lambda: jax.vmap(jnp.sin, in_axes="a")(x),
            "no axes": lambda: jax.vmap(jnp.sin, in_axes=None)(x),
            "out_axes": lambda: jax.vmap(jnp.sin, out_axes=3)(x),
            "out_axes None": lambda: jax.vmap(jnp.sin, out_axes=None)(x),
            "out_axes structure": lambda: jax.vmap(jnp.sin, out_axes=(0, 0))(x),
            "axis_size": lambda: jax.vmap(jnp.sin, axis_size=4)(x),
            "no arguments": lambda: jax.vmap(lambda: 1.0)(),
            "pure_callback": lambda: jax.vmap(lambda x: jax.pure_callback(
                np.sin, jnp.zeros(()), x))(x),
            "io_callback": lambda: jax.vmap(lambda x: jax.experimental.io_callback(
                np.sin, jnp.zeros(()), x, ordered=True))(x),
            "no def_vmap": lambda: jax.vmap(no_batching)(x),
            "custom_vmap pair": lambda: jax.vmap(with_batching(lambda n, b, x: x))(x),
            "custom_vmap structure": lambda: jax.vmap(
                with_batching(lambda n, b, x: ((x, x), (True, True))))(x),
        },
        "trees": {
            "map structure": lambda: jax.tree.map(jnp.add, (1, 2), (1, 2, 3)),
            "map of no function": lambda: jax.tree.map(3, (1, 2)),
            "map of a function of one": lambda: jax.tree.map(identity, (1,), (2,)),
            "unflatten by a structure": lambda: jax.tree.structure((1,)).unflatten([1, 2]),
            "unravel": lambda: jax.flatten_util.ravel_pytree((x,))[1](m),
            "ravel a string": lambda: jax.flatten_util.ravel_pytree("a"),
            "no pair": lambda: jax.tree.leaves(no_pair(jax)),
            "map kinds": lambda: jax.tree.map(jnp.add, (1, 2), [1, 2]),
            "map keys": lambda: jax.tree.map(jnp.add, {"a": 1}, {"b": 1}),
            "unflatten": lambda: jax.tree.unflatten(jax.tree.structure((1, 2)), [1]),
            "keys that do not sort": lambda: jax.tree.leaves({1: 1, "a": 2}),
            "registered twice": lambda: jax.tree_util.register_pytree_node(
                tuple, lambda t: (t, None), lambda _, t: t),
            "scan of unlike xs": lambda: lax.scan(pair, 0.0, {"a": x, "b": "c"}),
        },
        "control flow": {
            "cond: arrays": lambda: lax.cond(x > 0, identity, identity, 1.0),
            "cond: a string": lambda: lax.cond("a", identity, identity, 1.0),
            "cond: a tuple": lambda: lax.cond((True,), identity, identity, 1.0),
            "cond: None": lambda: lax.cond(None, identity, identity, 1.0),
            "cond: complex": lambda: lax.cond(1j, identity, identity, 1.0),
            "cond: no callable": lambda: lax.cond(True, 1.0, 2.0),
            "cond: one no callable": lambda: lax.cond(True, identity, 2.0, 1.0),
            "cond: too few branches": lambda: lax.cond(True, identity),
            "cond: operands": lambda: lax.cond(True, lambda: 1.0, lambda: 2.0, 3.0),
            "cond: structures": lambda: lax.cond(
                True, lambda x: x, lambda x: (x, x), 1.0),
            "cond: lists and tuples": lambda: lax.cond(
                True, lambda x: [x], lambda x: (x,), 1.0),
            "cond: None and a number": lambda: lax.cond(True, lambda x: x, lambda x: None, 1.0),
            "cond: dtypes": lambda: lax.cond(True, lambda x: x, lambda x: x > 0, 1.0),
            "cond: shapes": lambda: lax.cond(True, lambda x: x, lambda x: jnp.ones(3), 1.0),
            "cond: returns string": lambda: lax.cond(True, lambda x: "a", lambda x: "b", 1.0),
            "cond: operand a string": lambda: lax.cond(True, identity, identity, "a"),
            "cond: keyword": lambda: lax.cond(True, identity, identity, x=1.0),
            "cond: operand twice": lambda: lax.cond(True, identity, identity, 1.0, operand=1.0),
            "switch: nothing": lambda: lax.switch(0, [], 1.0),
            "switch: a float": lambda: lax.switch(0.5, [identity, identity], 1.0),
            "switch: a vector": lambda: lax.switch(i, [identity, identity], 1.0),
            "switch: a bool": lambda: lax.switch(True, [identity, identity], 1.0),
            "switch: no callable": lambda: lax.switch(0, [1, 2], 1.0),
            "switch: one callable": lambda: lax.switch(0, identity, 1.0),
            "switch: types": lambda: lax.switch(0, [lambda x: x, lambda x: 1], 1.0),
            "switch: structure": lambda: lax.switch(0, [lambda x: x, lambda x: (x,)], 1.0),
            "switch: a string": lambda: lax.switch("a", [identity, identity], 1.0),
            "while: no callable": lambda: lax.while_loop(True, identity, 1.0),
            "while: body no callable": lambda: lax.while_loop(lambda x: True, 1.0, 1.0),
            "while: pred a vector": lambda: lax.while_loop(lambda x: x > 0, identity, x),
            "while: pred a number": lambda: lax.while_loop(lambda x: x, identity, 1.0),
            "while: pred a tuple": lambda: lax.while_loop(lambda x: (x > 0,), identity, 1.0),
            "while: pred None": lambda: lax.while_loop(lambda x: None, identity, 1.0),
            "while: structure": lambda: lax.while_loop(
                lambda x: x > 0, lambda x: (x, x), 1.0),
            "while: list for tuple": lambda: lax.while_loop(
                lambda c: c[0] > 0, lambda c: [c[0] - 1], (1.0,)),
            "while: dtype": lambda: lax.while_loop(lambda x: x > 0, lambda x: x > 1, 1.0),
            "while: promoted": lambda: lax.while_loop(
                lambda x: x > 0, lambda x: x / 2, jnp.int32(1)),
            "while: shape": lambda: lax.while_loop(
                lambda x: jnp.sum(x) < 9, lambda x: x + jnp.ones(3), 1.0),
            "while: a string": lambda: lax.while_loop(lambda x: True, identity, "a"),
            "while: returns string": lambda: lax.while_loop(
                lambda x: True, lambda x: "a", 1.0),
            "while: unpacked": lambda: lax.while_loop(
                lambda a, b: a < b, lambda a, b: (a + 1, b), (0, 3)),
            "fori: no callable": lambda: lax.fori_loop(0, 3, 1.0, 1.0),
            "fori: float": lambda: lax.fori_loop(0, 2.5, lambda i, x: x, 1.0),
            "fori: vector": lambda: lax.fori_loop(0, i, lambda i, x: x, 1.0),
            "fori: string": lambda: lax.fori_loop(0, "a", lambda i, x: x, 1.0),
            "fori: unlike": lambda: lax.fori_loop(
                jnp.int8(0), jnp.int32(2), lambda i, x: x, 1.0),
            "fori: structure": lambda: lax.fori_loop(0, 3, lambda i, x: (x, x), 1.0),
            "fori: dtype": lambda: lax.fori_loop(0, 3, lambda i, x: i, 1.0),
            "fori: body of one": lambda: lax.fori_loop(0, 3, lambda x: x, 1.0),
            "fori: unroll": lambda: jax.jit(lambda n: lax.fori_loop(
                0, n, lambda i, x: x, 1.0, unroll=2))(3),
            "fori: unroll below 0": lambda: lax.fori_loop(
                0, 3, lambda i, x: x, 1.0, unroll=-1),
            "scan: no callable": lambda: lax.scan(1.0, 1.0, x),
            "scan: no pair": lambda: lax.scan(lambda c, x: c, 0.0, x),
            "scan: three": lambda: lax.scan(lambda c, x: (c, x, x), 0.0, x),
            "scan: returns None": lambda: lax.scan(lambda c, x: None, 0.0, x),
            "scan: scalar xs": lambda: lax.scan(pair, 0.0, 1.0),
            "scan: nothing": lambda: lax.scan(pair, 0.0, None),
            "scan: no xs": lambda: lax.scan(pair, 0.0),
            "scan: string xs": lambda: lax.scan(pair, 0.0, "abc"),
            "scan: string carry": lambda: lax.scan(pair, "abc", x),
            "scan: lengths": lambda: lax.scan(pair, 0.0, (x, jnp.ones(4))),
            "scan: length": lambda: lax.scan(pair, 0.0, x, length=4),
            "scan: string length": lambda: lax.scan(pair, 0.0, None, length="a"),
            "scan: traced length": lambda: jax.jit(
                lambda n: lax.scan(pair, 0.0, None, length=n))(3),
            "scan: carry dtype": lambda: lax.scan(lambda c, x: (c > 0, x), 0.0, x),
            "scan: carry shape": lambda: lax.scan(
                lambda c, x: (jnp.stack([c, c]), x), 0.0, x),
            "scan: carry structure": lambda: lax.scan(lambda c, x: ((c, c), x), 0.0, x),
            "scan: carry of a list": lambda: lax.scan(
                lambda c, x: ((c[0],), x), [0.0], x),
            "scan: carry keys": lambda: lax.scan(
                lambda c, x: ({"b": c["a"]}, x), {"a": 0.0}, x),
            "scan: carry None": lambda: lax.scan(lambda c, x: (None, x), 0.0, x),
            "scan: y a string": lambda: lax.scan(lambda c, x: (c, "a"), 0.0, x),
            "scan: unroll": lambda: lax.scan(pair, 0.0, x, unroll=-1),
            "scan: body of one": lambda: lax.scan(lambda c: (c, c), 0.0, x),
            "map: no callable": lambda: lax.map(1.0, x),
            "map: scalar": lambda: lax.map(identity, 1.0),
            "map: lengths": lambda: lax.map(lambda t: t[0], (x, jnp.ones(4))),
            "map: batch_size": lambda: lax.map(identity, x, batch_size=-1),
            "map: body of two": lambda: lax.map(lambda a, b: a, (x, x)),
            "map: a string": lambda: lax.map(identity, "abc"),
            "associative_scan: no callable": lambda: lax.associative_scan(1.0, x),
            "associative_scan: lengths": lambda: lax.associative_scan(
                lambda a, b: a, (x, jnp.ones(4))),
            "associative_scan: axis": lambda: lax.associative_scan(jnp.add, x, axis=1),
            "associative_scan: scalar": lambda: lax.associative_scan(jnp.add, 1.0),
            "associative_scan: structure": lambda: lax.associative_scan(
                lambda a, b: (a, b), x),
            "associative_scan: one argument": lambda: lax.associative_scan(jnp.sin, x),
            "custom_root: solve": lambda: lax.custom_root(
                lambda x: x, 1.0, lambda f, x: (x, x), lambda g, y: y),
            "custom_linear_solve: structure": lambda: lax.custom_linear_solve(
                lambda x: (x, x), 1.0, lambda f, b: b),
            "custom_linear_solve: shape": lambda: lax.custom_linear_solve(
                lambda x: jnp.ones(3), 1.0, lambda f, b: b),
        },
        "effects": {
            "print: too few": lambda: jax.debug.print("{} {}", 1.0),
            "print: too many": lambda: jax.debug.print("{}", 1.0, 2.0),
            "print: unknown name": lambda: jax.debug.print("{x}", y=1.0),
            "print: format code": lambda: jax.debug.print("{:d}", 1.5),
            "pure_callback: no types": lambda: jax.pure_callback(np.sin, 3, 1.0),
            "checkify: no function": lambda: jax.experimental.checkify.checkify(3)(1.0),
            "print: f-string": lambda: jax.debug.print(f"{x}", x=x),
            "callback: no callable": lambda: jax.debug.callback(1.0, 2.0),
            "pure_callback: vmap_method": lambda: jax.pure_callback(
                np.sin, jnp.zeros(()), 1.0, vmap_method="no"),
            "pure_callback: shape": lambda: jax.pure_callback(
                lambda x: np.ones(3, np.float32), jnp.zeros(()), 1.0),
            "pure_callback: 64 bits": lambda: jax.pure_callback(
                np.sin, np.zeros(()), 1.0),
            "named_scope": lambda: jax.named_scope(3),
            "checkify: pred": lambda: jax.experimental.checkify.check(x > 0, "no"),
            "checkify: not transformed": lambda: jax.jit(
                lambda x: jax.experimental.checkify.check(x > 0, "no"))(1.0),
            "checkify: throw": lambda: jax.experimental.checkify.checkify(
                lambda x: jax.experimental.checkify.check(x > 0, "no"))(-1.0)[0].throw(),
        },
    }
