"""`check_grads` passes what JAX's passes and refuses what JAX's refuses."""

import importlib

import jax
import numpy as np
import pytest

import minijax

F = np.float32
X = np.linspace(0.5, 2, 6, dtype=F).reshape(2, 3)

CASES = {
    "a number": (lambda lib, x: lib.numpy.sin(x) * x, (1.5,), 3),
    "arrays": (lambda lib, x, y: lib.numpy.tanh(x @ y), (X / 4, X.T / 4), 2),
    "trees": (lambda lib, p: {"y": lib.numpy.exp(p["w"]) * p["b"][0], "w": p["w"]},
              ({"w": X, "b": [F(2), F(3)]},), 2),
    "complex": (lambda lib, z: z * z * 1j, (np.array([1 + 2j, 3], np.complex64),), 2),
    "half": (lambda lib, x: x * x, (np.ones(3, np.float16),), 1),
    "a loop": (lambda lib, x: lib.lax.scan(lambda c, _: (lib.numpy.sin(c) * x, None), x, None, 4)[0],
               (F(0.7),), 2),
}


def wrong(lib, factor, second=1.0):
    """cube, whose first derivative is wrong by a factor, or its second."""
    @lib.custom_jvp
    def slope(x):
        return 3 * x * x
    slope.defjvps(lambda t, ans, x: second * 6 * x * t)

    @lib.custom_jvp
    def cube(x):
        return x ** 3
    cube.defjvps(lambda t, ans, x: factor * slope(x) * t)
    return cube


def passes(lib, f, args, order, **options):
    check = importlib.import_module(f"{lib.__name__}.test_util").check_grads
    try:
        check(f, args, order, **options)
    except AssertionError:
        return False
    return True


@pytest.mark.parametrize("modes", [("fwd",), ("rev",), ("lin",), ("fwd", "rev")], ids="".join)
@pytest.mark.parametrize("name", CASES)
def test_right_derivatives_pass(name, modes):
    f, args, order = CASES[name]
    for lib in (minijax, jax):
        assert passes(lib, lambda *args: f(lib, *args), args, order, modes=modes,
                      **({"eps": 1e-2, "atol": 0.1} if name == "half" else {}))


@pytest.mark.parametrize("order", [1, 2])
@pytest.mark.parametrize("factor, second", [(1, 1), (1.1, 1), (1, 1.1)])
@pytest.mark.parametrize("mode", ["fwd", "rev", "lin"])
def test_wrong_derivatives_are_found_where_jax_finds_them(mode, factor, second, order):
    got, want = (passes(lib, wrong(lib, factor, second), (np.array([1.5, 2.0], F),), order, modes=(mode,))
                 for lib in (minijax, jax))
    assert got == want == (factor == 1 and (second == 1 or order == 1))


@pytest.mark.parametrize("tol", [0.5, {F: 0.5}, {np.float64: 0.5}], ids=str)
def test_tolerances(tol):
    got, want = (passes(lib, wrong(lib, 1.1), (F(1.5),), 1, rtol=tol, atol=tol) for lib in (minijax, jax))
    assert got == want == (tol != {np.float64: 0.5})
