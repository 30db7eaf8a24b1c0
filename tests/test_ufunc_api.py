"""Ufuncs as objects: reduce, accumulate, at, outer, reduceat, frompyfunc; against JAX's."""
import jax
import jax.numpy as jnp
import numpy as np
import pytest

import minijax
import minijax.numpy as mnp

jax.config.update("jax_platforms", "cpu")

M = np.arange(6, dtype=np.float32).reshape(2, 3)
BITS = np.array([[7, 6, 3], [1, 2, 4]], np.int32)
NAMES = [n for n in dir(jnp) if isinstance(getattr(jnp, n), jnp.ufunc)]


def outcome(np_, call):
    try:
        return call(np_, np_.asarray), None
    except Exception as error:
        return None, error


def check(call):
    theirs, their_error = outcome(jnp, call)
    ours, error = outcome(mnp, call)
    if their_error is not None:
        kind = next(k for k in (NotImplementedError, TypeError, ValueError, Exception)
                    if isinstance(their_error, k))
        assert isinstance(error, kind), error
        return
    assert error is None, error
    assert (ours.shape, ours.dtype) == (theirs.shape, theirs.dtype)
    np.testing.assert_allclose(np.asarray(ours), np.asarray(theirs), rtol=2e-6)


def test_the_same_ufuncs_as_jax():
    for name in NAMES:
        ours, theirs = getattr(mnp, name), getattr(jnp, name)
        assert isinstance(ours, mnp.ufunc), name
        for attribute in ("nin", "nout", "nargs", "identity", "__name__"):
            assert getattr(ours, attribute) == getattr(theirs, attribute), (name, attribute)
        assert repr(ours) == repr(theirs)
        assert ours.__doc__


@pytest.mark.parametrize("name", [n for n in NAMES if n != "negative"])
def test_binary_ufuncs(name):
    x = BITS if name.startswith("bitwise") else M
    if name.startswith("logical"):
        x = M > 2
    check(lambda np_, a: getattr(np_, name).reduce(a(x)))
    check(lambda np_, a: getattr(np_, name).reduce(a(x), axis=1, keepdims=True))
    check(lambda np_, a: getattr(np_, name).reduce(a(x), axis=None))
    check(lambda np_, a: getattr(np_, name).reduce(a(x)[:0], axis=0))
    check(lambda np_, a: getattr(np_, name).accumulate(a(x), axis=-1))
    check(lambda np_, a: getattr(np_, name).outer(a(x)[0], a(x)))
    twice = np.array([1, 1])
    check(lambda np_, a: getattr(np_, name).at(a(x), (0, a(twice)), a(x)[1, 2], inplace=False))


CALLS = {
    "sum with options": lambda np_, a: np_.add.reduce(a(M), axis=(0, 1), initial=2, where=a(M) > 1),
    "sum with dtype": lambda np_, a: np_.add.reduce(a(M), dtype=int),
    "fold over a tuple": lambda np_, a: np_.subtract.reduce(a(M), axis=(0, 1)),
    "fold of nothing": lambda np_, a: np_.subtract.reduce(a(M)[:0]),
    "reduceat": lambda np_, a: np_.add.reduceat(a(np.arange(8)), a(np.array([0, 4, 1, 5]))),
    "accumulate flat": lambda np_, a: np_.maximum.accumulate(a(M), axis=None),
    "in place": lambda np_, a: np_.add.at(a(M), 0, 1),
    "unary at": lambda np_, a: np_.negative.at(a(M), 0, inplace=False),
    "unary reduce": lambda np_, a: np_.negative.reduce(a(M)),
    "unary outer": lambda np_, a: np_.negative.outer(a(M), a(M)),
    "out": lambda np_, a: np_.add(1, 2, out=a(M)),
    "where": lambda np_, a: np_.add(1, 2, where=True),
    "one argument": lambda np_, a: np_.add(1),
    "frompyfunc": lambda np_, a: np_.frompyfunc(lambda x, y: x * y + 1, 2, 1)(a(M), a(M)[0]),
    "frompyfunc reduce": lambda np_, a: np_.frompyfunc(lambda x, y: x + y, 2, 1).reduce(a(M), 1),
}


@pytest.mark.parametrize("what", CALLS)
def test_call(what):
    check(CALLS[what])


def test_under_transformations():
    reduce = lambda x: mnp.logaddexp.reduce(x, axis=0)
    np.testing.assert_allclose(minijax.jit(reduce)(M[0]), reduce(M[0]), rtol=1e-6)
    np.testing.assert_allclose(minijax.vmap(reduce)(M), [reduce(row) for row in M], rtol=1e-6)
    softmax = jax.nn.softmax(M[0])
    np.testing.assert_allclose(minijax.grad(reduce)(M[0]), softmax, rtol=1e-5)
