"""Base programs closed under {jvp, grad, vmap, jit, linearize}², against real JAX."""
from itertools import product

import jax
import numpy as np
import pytest

import minijax
from programs import PROGRAMS, TRANSFORMATIONS, transformed

X = np.array([0.3, 0.7, 1.1], np.float32)
TOWERS = [(), *((t,) for t in TRANSFORMATIONS), *product(TRANSFORMATIONS, repeat=2)]


@pytest.mark.parametrize("names", TOWERS, ids="∘".join)
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_equals_jax(program, names):
    ours = transformed(minijax, program, names)(minijax.numpy.asarray(X))
    with jax.disable_jit():
        theirs = transformed(jax, program, names)(jax.numpy.asarray(X))
    assert ours.shape == theirs.shape and ours.dtype == theirs.dtype
    np.testing.assert_allclose(ours, theirs, rtol=2e-4, atol=2e-5)


@pytest.mark.parametrize("program", PROGRAMS[:4], ids=lambda p: p.__name__)
@pytest.mark.parametrize("names", [("jit", "vmap", "grad"), ("vmap", "grad", "jit"),
                                   ("grad", "vmap", "jit"), ("grad", "jit", "vmap"),
                                   ("jit", "grad", "vmap", "jit", "grad"),
                                   ("vmap", "jit", "grad", "vmap", "jit")], ids="∘".join)
def test_deep_towers(program, names):
    ours = transformed(minijax, program, names)(minijax.numpy.asarray(X))
    with jax.disable_jit():
        theirs = transformed(jax, program, names)(jax.numpy.asarray(X))
    np.testing.assert_allclose(ours, theirs, rtol=5e-4, atol=5e-5)


def test_perturbation_confusion():
    d = lambda f: lambda x: minijax.jvp(f, (x,), (1.0,))[1]
    assert d(lambda x: x * d(lambda y: x)(0.0))(0.0) == 0.0
    assert minijax.grad(lambda x: x * minijax.grad(lambda y: x + y)(2.0))(1.0) == 1.0


def test_python_control_flow_under_grad():
    f = lambda x: x * x if x > 0 else -x
    assert minijax.grad(f)(3.0) == 6.0 and minijax.grad(f)(-3.0) == -1.0


def test_nesting_does_not_cost_two_to_the_depth():
    f = lambda x: x * x
    for _ in range(25):
        f = minijax.jit(f)
    assert minijax.grad(f)(3.0) == 6.0
