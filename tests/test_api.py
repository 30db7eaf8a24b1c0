"""The transformations as users call them: argnums, has_aux, axes, pytrees, against real JAX."""
import collections

import jax
import numpy as np
import pytest

import minijax

Point = collections.namedtuple("Point", "x y")
W = np.arange(6, dtype=np.float32).reshape(2, 3) / 5
V = np.array([0.5, -1.0, 2.0], np.float32)


def same(ours, theirs):
    assert str(minijax.tree.structure(ours)) == str(jax.tree.structure(theirs))
    for a, b in zip(minijax.tree.leaves(ours), jax.tree.leaves(theirs)):
        assert np.shape(a) == np.shape(b) and np.asarray(a).dtype == np.asarray(b).dtype
        if np.asarray(b).dtype != jax.dtypes.float0:
            np.testing.assert_allclose(a, b, rtol=2e-5, atol=1e-6)


def check(f):
    """The same call, through minijax and through JAX, gives equal trees."""
    same(f(minijax), f(jax))


def loss(lib):
    return lambda p, x: lib.numpy.sum(lib.numpy.tanh(lib.numpy.dot(p["w"], x) + p["b"][0]) ** 2)


PARAMS = {"w": W, "b": (np.array([0.1, -0.2], np.float32),)}


@pytest.mark.parametrize("argnums", [0, 1, -1, (0, 1), (1,), [0], (1, 0)])
def test_argnums(argnums):
    check(lambda lib: lib.grad(loss(lib), argnums)(PARAMS, V))
    check(lambda lib: lib.value_and_grad(loss(lib), argnums)(PARAMS, V))
    check(lambda lib: lib.jit(lib.grad(loss(lib), argnums))(PARAMS, V))


@pytest.mark.parametrize("argnums", [0, 1, (0, 1), (1,)])
@pytest.mark.parametrize("name", ["jacfwd", "jacrev", "hessian", "jacobian"])
def test_jacobians(name, argnums):
    f = lambda lib: lambda a, b: {"out": lib.numpy.sin(a) * b, "sum": (lib.numpy.sum(a * b * b),)}
    check(lambda lib: getattr(lib, name)(f(lib), argnums)(V, V * 2))
    check(lambda lib: lib.jit(getattr(lib, name)(f(lib), argnums))(V, V * 2))


def test_jacobians_of_trees():
    for name in ("jacfwd", "jacrev", "hessian"):
        check(lambda lib: getattr(lib, name)(loss(lib))(PARAMS, V))


@pytest.mark.parametrize("name", ["jacfwd", "jacrev", "hessian"])
def test_weak_types_of_jacobians(name):
    def types(lib, f, x):
        jac = getattr(lib, name)(lambda x: f(lib, x))(x)
        return [(y.dtype, y.shape, y.weak_type) for y in lib.tree_util.tree_leaves(jac)]

    for f, x in (lambda lib, x: x * x * 2.0, 1.5), (lambda lib, x: x * lib.numpy.ones(2), 1.5), (
            lambda lib, x: {"s": x[0] * x[1], "w": x[0] * 2}, (1.5, V)), (
            lambda lib, x: 2.0 + 0 * lib.numpy.sum(x), V):
        assert types(minijax, f, x) == types(jax, f, x)


def test_has_aux():
    f = lambda lib: lambda x: (lib.numpy.sum(x ** 2), {"seen": x, "name": 3})
    check(lambda lib: lib.grad(f(lib), has_aux=True)(V))
    check(lambda lib: lib.value_and_grad(f(lib), has_aux=True)(V))
    check(lambda lib: lib.jit(lib.value_and_grad(f(lib), has_aux=True))(V))
    check(lambda lib: lib.jvp(f(lib), (V,), (V,), has_aux=True))
    check(lambda lib: lib.vjp(f(lib), V, has_aux=True)[0])
    check(lambda lib: lib.vjp(f(lib), V, has_aux=True)[2])
    check(lambda lib: lib.jacrev(f(lib), has_aux=True)(V))
    check(lambda lib: lib.jacfwd(f(lib), has_aux=True)(V))


def test_aux_through_nested_transformations():
    f = lambda lib: lambda x: (lib.numpy.sum(lib.numpy.sin(x)), x * 2)
    check(lambda lib: lib.vmap(lib.grad(f(lib), has_aux=True))(np.stack([V, V + 1])))
    check(lambda lib: lib.grad(lambda x: lib.grad(f(lib), has_aux=True)(x)[1].sum())(V))


def test_kwargs():
    f = lambda lib: lambda x, *, scale: lib.numpy.sum(x * scale)
    check(lambda lib: lib.grad(f(lib))(V, scale=2.0))
    check(lambda lib: lib.vmap(lambda x, *, y: x * y)(V, y=V))


def test_jvp_vjp_linearize_trees():
    check(lambda lib: lib.jvp(loss(lib), (PARAMS, V), (PARAMS, V)))
    check(lambda lib: lib.vjp(loss(lib), PARAMS, V)[1](lib.numpy.float32(2.0)))
    check(lambda lib: lib.linearize(loss(lib), PARAMS, V)[1](PARAMS, V))
    check(lambda lib: lib.vjp(lambda p: Point(p.x * p.y, p.y), Point(V, V))[1](Point(V, V)))


def test_derivatives_are_pytrees_of_their_residuals():
    f = lambda lib: lambda x, w: lib.numpy.sin(x @ w)
    for transform in ("vjp", "linearize"):
        shapes = []
        for lib in (minijax, jax):
            derivative = getattr(lib, transform)(f(lib), V, W.T)[1]
            shapes.append(sorted(leaf.shape for leaf in lib.tree.leaves(derivative)))
        assert shapes[0] == shapes[1]
    _, f_vjp = minijax.jit(lambda x: minijax.vjp(minijax.numpy.sin, x))(V)
    _, f_lin = minijax.vmap(lambda x: minijax.linearize(minijax.numpy.sin, x))(V)
    np.testing.assert_allclose(minijax.jit(lambda f, ct: f(ct))(f_vjp, V)[0], np.cos(V) * V, rtol=1e-6)
    np.testing.assert_allclose(minijax.vmap(lambda f, t: f(t))(f_lin, V), np.cos(V) * V, rtol=1e-6)


def test_integers_have_float0_tangents():
    i = np.arange(3)
    check(lambda lib: lib.vjp(lambda x, i: x * i, V, i)[1](lib.numpy.asarray(V)))
    check(lambda lib: lib.jvp(lambda x, i: x * i, (V, i), (V, np.zeros(3, jax.dtypes.float0))))
    check(lambda lib: lib.grad(lambda i: lib.numpy.sum(i * 2.0), allow_int=True)(i))
    check(lambda lib: lib.jvp(lambda x: x > 0, (V,), (V,)))


@pytest.mark.parametrize("in_axes, out_axes", [(0, 0), ((0, None), 0), ((None, 1), 1), (-1, -1),
                                               ((1, 0), (0,)), ([0, 0], 0)])
def test_vmap_axes(in_axes, out_axes):
    a, b = np.arange(9, dtype=np.float32).reshape(3, 3), np.ones((3, 3), np.float32) * 2
    f = lambda a, b: (a * b.sum() + b,)
    if out_axes == (0,) or isinstance(out_axes, int):
        check(lambda lib: lib.vmap(f, in_axes, out_axes)(a, b))
        check(lambda lib: lib.jit(lib.vmap(f, in_axes, out_axes))(a, b))


def test_vmap_trees_and_prefixes():
    tree = {"a": W, "b": (W.T, V[0])}
    axes = ({"a": 1, "b": (0, None)},)
    f = lambda t: {"s": t["a"] * 2 + t["b"][1], "c": t["b"][0]}
    check(lambda lib: lib.vmap(f, in_axes=axes, out_axes={"s": 1, "c": 0})(tree))
    check(lambda lib: lib.vmap(f, in_axes=axes)(tree))
    check(lambda lib: lib.vmap(lambda t: t, in_axes=(None,), axis_size=2)(V))
    check(lambda lib: lib.vmap(lambda t: 1.0, axis_size=3)(V))
    check(lambda lib: lib.vmap(lambda t, u: u, in_axes=(0, None), out_axes=None)(V, 2.0))


def test_nested_vmap():
    check(lambda lib: lib.vmap(lib.vmap(lambda x, y: x * y, (0, None)), (None, 0))(V, W[:, 0]))
    check(lambda lib: lib.vmap(lib.vmap(lib.numpy.dot, (0, None)), (None, 1))(W, W.T))
    check(lambda lib: lib.vmap(lib.grad(loss(lib), 1), (None, 0))(PARAMS, np.stack([V, -V])))


def test_make_jaxpr_and_eval_shape():
    closed, shape = minijax.make_jaxpr(lambda x: {"a": x[None]}, return_shape=True)(V)
    assert shape["a"] == minijax.ShapeDtypeStruct((1, 3), np.float32)
    assert minijax.eval_shape(lambda x: x @ x.T, W) == minijax.ShapeDtypeStruct((2, 2), np.float32)
    static = minijax.make_jaxpr(lambda x, n: x * n, static_argnums=1)(V, 3)
    assert "mul a 3.0" in str(static) and len(static.in_avals) == 1


def test_linear_transpose():
    check(lambda lib: lib.linear_transpose(lambda x: W @ x, V)(np.ones(2, np.float32)))


def test_holomorphic():
    check(lambda lib: lib.grad(lambda z: z * z * 2, holomorphic=True)(1.0 + 2.0j))


def test_printed_jaxprs_are_jaxs():
    for f, args in [
        (lambda lib: lambda x: lib.numpy.sin(x) * 2.0 + x, (V,)),
        (lambda lib: lambda x: lib.numpy.cos(lib.numpy.sin(x)), (2.0,)),
        (lambda lib: lambda x: lib.numpy.tanh(x @ W.T), (V,)),
        (lambda lib: lambda x: x[1:] + lib.numpy.sum(x) + x[0], (V,)),
        (lambda lib: lib.jit(lambda x, y: lib.numpy.exp(x) - y), (V, 2.0)),
        (lambda lib: lambda x: lib.lax.reshape(x, (3, 1)).T + 1, (V,)),
        (lambda lib: lambda x: x.astype(int), (V,)),
        (lambda lib: lib.grad(lambda x: lib.numpy.sum(lib.numpy.sin(x) * 3.0)), (V,)),
    ]:
        ours, theirs = (normal(str(lib.make_jaxpr(f(lib))(*args))) for lib in (minijax, jax))
        assert ours == theirs


@pytest.mark.parametrize("transform", [
    lambda lib, f: lib.jit(f)(2.0), lambda lib, f: lib.vmap(f)(V), lambda lib, f: lib.jvp(f, (2.0,), (1.0,)),
    lambda lib, f: lib.jvp(lib.jit(f), (V,), (V,)), lambda lib, f: lib.jit(lib.vmap(f))(V)])
def test_tracers_are_printed_like_jaxs(transform):
    printed = {lib: [] for lib in (minijax, jax)}
    for lib, seen in printed.items():
        transform(lib, lambda x: (seen.append(str(x)), x * 2.0)[1])
    assert printed[minijax] == printed[jax] and printed[jax]


def normal(text):
    """Without JAX's parameters that minijax has none of."""
    for extra in (" out_sharding=None", " sharding=None", "sharding=None ",
                  "\n      preferred_element_type=float32"):
        text = text.replace(extra, "")
    return text


Z = np.array([1 + 2j, 0.5j, 0.3 - 1j], np.complex64)


@pytest.mark.parametrize("f", [lambda lib, z: (z * z).imag.sum(), lambda lib, z: lib.numpy.max(z).real,
                               lambda lib, z: lib.numpy.abs(lib.numpy.prod(z))])
def test_grad_of_a_real_function_of_complex_numbers(f):
    check(lambda lib: lib.grad(lambda z: f(lib, z))(Z))


def test_jacrev_takes_complex_inputs_and_real_outputs_and_jacfwd_the_reverse():
    check(lambda lib: lib.jacrev(lambda z: lib.numpy.abs(z))(Z))
    check(lambda lib: lib.jacfwd(lambda x: x * lib.numpy.asarray(Z))(np.float32(2)))
    for lib in (minijax, jax):
        with pytest.raises(TypeError, match="real-valued outputs"):
            lib.jacrev(lambda x: x * 1j)(1.0)
        with pytest.raises(TypeError, match="jacfwd requires real"):
            lib.jacfwd(lambda z: z * z)(Z)
