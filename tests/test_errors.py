"""Bad input: minijax raises errors of JAX's types that say which argument and what was expected."""
import jax
import jax.experimental
import jax.numpy as jnp
import numpy as np
import pytest

import minijax
import minijax.experimental
import minijax.numpy as mnp

leaked = []


def leak(x):
    leaked.append(x)
    return x


def use_leaked(lib):
    leaked.clear()
    lib.jit(lambda x: leak(x * 2.0))(1.0)
    return lib.numpy.sin(leaked[0])


# name -> (function of the library that must raise, words that the message must have)
CASES = {
    "bool of a tracer": (lambda lib: lib.jit(lambda x: 1 if x > 0 else 2)(1.0), ["where"]),
    "while on a tracer": (lambda lib: lib.vmap(lambda x: x if x else x)(np.ones(3)), ["cond"]),
    "float of a tracer": (lambda lib: lib.jit(float)(1.0), ["static"]),
    "int of a tracer": (lambda lib: lib.jit(lambda x: int(x))(1), []),
    "index of a tracer": (lambda lib: lib.jit(lambda i: [1, 2, 3][i])(1), ["integer"]),
    "range of a tracer": (lambda lib: lib.jit(lambda n: sum(range(n)))(3), ["fori_loop"]),
    "NumPy of a tracer": (lambda lib: lib.jit(lambda x: np.sin(x))(1.0), ["numpy"]),
    "array of a tracer": (lambda lib: lib.jit(lambda x: np.asarray(x))(1.0), ["numpy"]),
    "shape from a tracer": (lambda lib: lib.jit(lambda n: lib.numpy.zeros(n))(3), []),
    "leaked tracer": (use_leaked, ["<lambda>", "test_errors.py"]),
    "grad of a vector": (lambda lib: lib.grad(lambda x: x * 2.0)(np.ones(3, np.float32)),
                         ["scalar", "(3,)"]),
    "grad of a tree": (lambda lib: lib.grad(lambda x: (x, x))(1.0), ["scalar"]),
    "grad of an integer": (lambda lib: lib.grad(lambda x: x ** 2)(3), ["int32", "x"]),
    "grad of a complex": (lambda lib: lib.grad(lambda x: x)(1j), ["complex64", "holomorphic"]),
    "grad with an integer result": (lambda lib: lib.grad(lambda x: 3)(1.0), ["int"]),
    "grad argnums out of range": (lambda lib: lib.grad(lambda x: x, argnums=2)(1.0), ["2"]),
    "grad of a string": (lambda lib: lib.grad(lambda x: x)("three"), ["three"]),
    "not callable": (lambda lib: lib.grad(3.0), ["callable"]),
    "jit of no callable": (lambda lib: lib.jit(3.0), ["callable"]),
    "add of shapes": (lambda lib: lib.numpy.ones(3) + lib.numpy.ones(4), ["(3,)", "(4,)"]),
    "lax.add of shapes": (lambda lib: lib.lax.add(lib.numpy.ones(3), lib.numpy.ones(4)),
                          ["(3,)", "(4,)"]),
    "lax.add of dtypes": (lambda lib: lib.lax.add(lib.numpy.ones(3), lib.numpy.arange(3)),
                          ["float32", "int32"]),
    "sin of an integer in lax": (lambda lib: lib.lax.sin(lib.numpy.arange(3)), ["sin", "int32"]),
    "dot of shapes": (lambda lib: lib.numpy.dot(lib.numpy.ones((2, 3)), lib.numpy.ones((2, 3))),
                      ["(2, 3)"]),
    "reshape": (lambda lib: lib.numpy.ones(6).reshape(4), ["6"]),
    "axis out of range": (lambda lib: lib.numpy.sum(lib.numpy.ones(3), axis=1), ["1"]),
    "ufunc of a list": (lambda lib: lib.numpy.sin([1.0, 2.0]), ["list"]),
    "ufunc of a string": (lambda lib: lib.numpy.add(1.0, "a"), ["str"]),
    "concatenate of dims": (lambda lib: lib.numpy.concatenate([lib.numpy.ones(2),
                                                               lib.numpy.ones((2, 2))]), []),
    "jvp trees": (lambda lib: lib.jvp(lambda x: x, ((1.0, 2.0),), (1.0,)), ["tree"]),
    "select_n of nothing": (lambda lib: lib.lax.select_n(True), ["cases"]),
    "jvp not tuples": (lambda lib: lib.jvp(lambda x: x, 1.0, 1.0), ["tuple"]),
    "jvp tangent shape": (lambda lib: lib.jvp(lambda x: x, (np.ones(3, np.float32),),
                                              (np.ones(4, np.float32),)), ["(3,)", "(4,)"]),
    "jvp tangent dtype": (lambda lib: lib.jvp(lambda x: x, (1.0,), (1,)), ["float32", "int32"]),
    "vjp cotangent tree": (lambda lib: lib.vjp(lambda x: (x, x), 1.0)[1](1.0), ["tree"]),
    "vjp cotangent shape": (lambda lib: lib.vjp(lambda x: x, 1.0)[1](np.ones(3, np.float32)), []),
    "vjp cotangent dtype": (lambda lib: lib.vjp(lambda x: x, 1.0)[1](1), []),
    "linearize tangent tree": (lambda lib: lib.linearize(lambda x: x, 1.0)[1]((1.0, 2.0)), []),
    "vmap sizes": (lambda lib: lib.vmap(lambda x, y: x + y)(np.ones(3), np.ones(4)),
                   ["x", "y", "size 3", "size 4"]),
    "vmap axis": (lambda lib: lib.vmap(lambda x: x, in_axes=2)(np.ones(3)), ["(3,)", "2"]),
    "vmap of nothing": (lambda lib: lib.vmap(lambda x: x, in_axes=None)(1.0), ["in_axes"]),
    "vmap in_axes length": (lambda lib: lib.vmap(lambda x: x, in_axes=(0, 0))(np.ones(3)), ["2", "1"]),
    "vmap in_axes tree": (lambda lib: lib.vmap(lambda x: x, in_axes=({"a": 0},))({"b": np.ones(3)}),
                          ["in_axes"]),
    "vmap in_axes type": (lambda lib: lib.vmap(lambda x: x, in_axes=1.5), ["in_axes"]),
    "vmap out_axes": (lambda lib: lib.vmap(lambda x: x, out_axes=None)(np.ones(3)), []),
    "unhashable static": (lambda lib: lib.jit(lambda x, n: x, static_argnums=1)(1.0, [2]),
                          ["hash", "list"]),
    "item assignment": (lambda lib: lib.numpy.ones(3).__setitem__(0, 1.0), [".at["]),
    "item assignment traced": (lambda lib: lib.jit(lambda x: x.__setitem__(0, 1.0))(np.ones(3)),
                               [".at["]),
    "index with a list": (lambda lib: lib.numpy.ones(3)[[0, 1]], []),
    "too many indices": (lambda lib: lib.numpy.ones(3)[0, 0], []),
    "index with a float": (lambda lib: lib.numpy.ones(3)[1.0], []),
    "traced mask": (lambda lib: lib.jit(lambda x: x[x > 0])(np.ones(3)), ["where"]),
    "iteration over a scalar": (lambda lib: list(lib.numpy.float32(1.0)), ["0-d"]),
    "hash of an array": (lambda lib: hash(lib.numpy.ones(3)), ["unhashable"]),
    "hash of a tracer": (lambda lib: lib.jit(lambda x: hash(x))(1.0), []),
    "int too large": (lambda lib: lib.numpy.sin(2 ** 70), []),
    "object array": (lambda lib: lib.numpy.asarray(np.array([object()])), []),
    "jit of a string": (lambda lib: lib.jit(lambda x: x)("a"), ["str"]),
    "tree_map structures": (lambda lib: lib.tree.map(lambda a, b: a, {"a": 1}, {"b": 1}), []),
    "einsum": (lambda lib: lib.numpy.einsum("ij,jk", lib.numpy.ones((2, 3)), lib.numpy.ones((2, 3))),
               []),
    "config": (lambda lib: lib.config.update("jax_no_such_option", True), ["jax_no_such_option"]),
    "dtype of a string array": (lambda lib: lib.numpy.asarray(["a"]), []),
}


def error_of(f, lib):
    with pytest.raises(Exception) as info:
        f(lib)
    return info.value


@pytest.mark.parametrize("name", CASES)
def test_error(name):
    f, words = CASES[name]
    ours, theirs = error_of(f, minijax), error_of(f, jax)
    same_name = type(ours).__name__ == type(theirs).__name__
    builtin = next(c for c in type(theirs).__mro__ if c.__module__ == "builtins")
    assert same_name or (isinstance(ours, builtin) and type(theirs).__module__ == "builtins"), (
        f"{type(ours).__name__}: {ours}\nJAX: {type(theirs).__name__}: {theirs}")
    missing = [w for w in words if w not in str(ours)]
    assert not missing, f"the message lacks {missing}: {ours}"
    assert minijax.jit(lambda x: x + 1.0)(1.0) == 2.0        # nothing half-done is left behind


NO_ARRAYS = {"string": "a", "bytes": b"a", "object": object(), "range": range(3), "slice": slice(3),
             "function": len, "set": {1}, "array of strings": np.array(["a"]),
             "array of objects": np.array([None]), "date": np.datetime64(3, "s")}
SCALAR = jax.ShapeDtypeStruct((), np.float32)
TAKERS = {
    "device_put": lambda lib, x: lib.device_put(x),
    "pure_callback": lambda lib, x: lib.pure_callback(lambda x: np.float32(1), SCALAR, x),
    "io_callback": lambda lib, x: lib.experimental.io_callback(lambda x: np.float32(1), SCALAR, x),
    "lax.neg": lambda lib, x: lib.lax.neg(x),
    "lax.reshape": lambda lib, x: lib.lax.reshape(x, (1,)),
    "carry": lambda lib, x: lib.lax.while_loop(lambda c: False, lambda c: c, x),
    "operand": lambda lib, x: lib.lax.cond(True, lambda x: x, lambda x: x, x),
    "checkpoint": lambda lib, x: lib.checkpoint(lambda x: x)(x)}


@pytest.mark.parametrize("take", TAKERS)
@pytest.mark.parametrize("what", NO_ARRAYS)
def test_what_is_no_array_is_refused(take, what):
    for lib in (jax, minijax):
        with pytest.raises(TypeError):
            TAKERS[take](lib, NO_ARRAYS[what])


def test_trace_is_restored_after_keyboard_interrupt():
    def interrupted(x):
        raise KeyboardInterrupt
    for transform in (minijax.jit, minijax.grad, minijax.make_jaxpr, minijax.vmap):
        with pytest.raises(KeyboardInterrupt):
            transform(interrupted)(np.ones(3, np.float32) if transform is minijax.vmap else 1.0)
        assert minijax.numpy.sin(0.0) == 0.0
        assert minijax.grad(lambda x: x * x)(3.0) == 6.0


def test_missing_rule_names_primitive_and_kind():
    from minijax.core import Primitive
    lonely_p = Primitive("lonely")
    lonely_p.def_impl(lambda x: x)
    lonely_p.def_abstract_eval(lambda x: x)
    try:
        with pytest.raises(NotImplementedError, match="no jvp rule for primitive 'lonely'"):
            minijax.grad(lambda x: lonely_p.bind(x))(1.0)
        with pytest.raises(NotImplementedError, match="no batch rule for primitive 'lonely'"):
            minijax.vmap(lambda x: lonely_p.bind(x))(np.ones(3, np.float32))
    finally:
        from minijax.core import primitives
        del primitives["lonely"]


def test_leaks_from_every_transformation():
    for transform, x in [(minijax.grad, 1.0), (minijax.vmap, np.ones(3, np.float32)),
                         (minijax.make_jaxpr, 1.0)]:
        leaked.clear()
        transform(lambda x: leak(x * 2.0))(x)
        with pytest.raises(minijax.errors.UnexpectedTracerError, match="test_errors.py"):
            mnp.sin(leaked[0])


def test_vmap_message_names_everything():
    with pytest.raises(ValueError) as info:
        minijax.vmap(lambda first, *, second: first)(np.ones((3, 2)), second=np.ones(4))
    assert "first" in str(info.value) and "second" in str(info.value)


def test_numpy_on_the_left():
    x = mnp.ones(3)
    assert isinstance(np.ones(3, np.float32) + x, minijax.Array)
    assert isinstance(np.float32(2) * x, minijax.Array)
    np.testing.assert_array_equal(jnp.ones(3) * 2, np.asarray(np.float32(2) * x))
