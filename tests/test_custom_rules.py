"""Custom derivative and batching rules: the same programs through JAX and through minijax."""
from functools import partial

import jax
import numpy as np
import pytest
from programs import by_grad, by_jit, by_jvp, by_linearize, by_vmap

import minijax
from minijax.errors import UnexpectedTracerError

BOTH = pytest.mark.parametrize("lib", [jax, minijax], ids=["jax", "minijax"])
X = np.array([0.3, -0.8, 1.7], np.float32)


def leaves(lib, tree):
    return [np.asarray(x) for x in lib.tree_util.tree_leaves(tree)]


def same(program, *args):
    """Assert that program(lib, *args) has the same structure, types and values in both libraries."""
    theirs, ours = program(jax, *args), program(minijax, *args)
    assert str(jax.tree_util.tree_structure(theirs)) == str(
        minijax.tree_util.tree_structure(ours))
    for want, got in zip(leaves(jax, theirs), leaves(minijax, ours), strict=True):
        assert got.shape == want.shape
        assert want.dtype.kind == "V" or got.dtype == want.dtype
        if want.dtype.kind != "V":
            np.testing.assert_allclose(got, want, rtol=2e-5, atol=1e-6)


def same_error(program, *args):
    """Assert that both libraries raise an error of the same name; return minijax's message."""
    with pytest.raises(Exception) as theirs:
        program(jax, *args)
    with pytest.raises(Exception) as ours:
        program(minijax, *args)
    assert ours.type.__name__ == theirs.type.__name__, ours.value
    return str(ours.value)


# --- Functions under test: their rules are visibly not the derivatives ----------------------------

def stretched(lib):
    """sin(x) y with the slopes times 10, by defjvp."""
    np_ = lib.numpy
    f = lib.custom_jvp(lambda x, y: np_.sin(x) * y)

    @f.defjvp
    def f_jvp(primals, tangents):
        (x, y), (dx, dy) = primals, tangents
        return f(x, y), 10 * (np_.cos(x) * dx * y + np_.sin(x) * dy)
    return f


def by_argument(lib):
    """As `stretched`, by defjvps, and y without a slope."""
    np_ = lib.numpy
    f = lib.custom_jvp(lambda x, y: np_.sin(x) * y)
    f.defjvps(lambda dx, out, x, y: 10 * np_.cos(x) * dx * y, None)
    return f


def clipped(lib):
    """x y, whose cotangents are clipped, by custom_vjp."""
    np_ = lib.numpy
    f = lib.custom_vjp(lambda x, y: x * y)

    def bwd(residuals, ct):
        x, y = residuals
        return np_.clip(ct * y, -0.5, 0.5), np_.clip(ct * x, -0.5, 0.5)
    f.defvjp(lambda x, y: (f(x, y), (x, y)), bwd)
    return f


def on_trees(lib):
    """A function of a dict to a pair, one of them an integer."""
    np_ = lib.numpy
    f = lib.custom_jvp(lambda d: (d["a"] * d["b"][0], np_.int32(3)))

    @f.defjvp
    def f_jvp(primals, tangents):
        (d,), (t,) = primals, tangents
        zero = lib.custom_derivatives.zero_from_primal(np_.int32(3))
        return f(d), (2 * (t["a"] * d["b"][0] + d["a"] * t["b"][0]), zero)
    return lambda x, y: f({"a": np_.cos(x), "b": [y]})[0]


def with_static(lib):
    """nondiff_argnums: the function to apply, and a number of times."""
    @partial(lib.custom_jvp, nondiff_argnums=(0, 2))
    def repeat(g, x, n):
        for _ in range(n):
            x = g(x)
        return x

    @repeat.defjvp
    def repeat_jvp(g, n, primals, tangents):
        return repeat(g, primals[0], n), 3 * tangents[0] * primals[0]
    return lambda x, y: repeat(lib.numpy.sin, x, 2) * y


FORWARD = [stretched, by_argument, on_trees, with_static]
TRANSFORMATIONS = {"grad": by_grad, "jit": by_jit, "vmap": by_vmap}
FORWARD_TRANSFORMATIONS = TRANSFORMATIONS | {"jvp": by_jvp, "linearize": by_linearize}


def composed(make, names, transformations):
    def program(lib, x):
        f = make(lib)
        g = lambda x: f(x, lib.numpy.cos(x)) + f(x * x, x)
        for name in reversed(names):
            g = transformations[name](lib, g)
        return g(lib.numpy.asarray(x))
    return program


def pairs(names):
    return [(a, b) for a in names for b in names]


@pytest.mark.parametrize("names", pairs(FORWARD_TRANSFORMATIONS), ids="-".join)
@pytest.mark.parametrize("make", FORWARD, ids=lambda f: f.__name__)
def test_compositions_of_custom_jvp(make, names):
    same(composed(make, names, FORWARD_TRANSFORMATIONS), X)


@pytest.mark.parametrize("names", pairs(TRANSFORMATIONS) + [("jit", "grad", "vmap", "grad"),
                                                            ("grad", "vmap", "jit", "grad")],
                         ids="-".join)
def test_compositions_of_custom_vjp(names):
    same(composed(clipped, names, TRANSFORMATIONS), X)
