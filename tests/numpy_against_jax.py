"""The same expression evaluated with minijax.numpy and with jax.numpy, and compared."""
import os

os.environ["JAX_PLATFORMS"] = "cpu"

import warnings
from types import SimpleNamespace

import jax
import jax.nn
import jax.numpy
import numpy as np

import minijax.nn
import minijax.numpy
from minijax import api
from minijax.array import Array
from minijax.dispatch import jit

OURS = SimpleNamespace(np=minijax.numpy, nn=minijax.nn, jit=jit, grad=api.grad, vmap=api.vmap,
                       jvp=api.jvp)
THEIRS = SimpleNamespace(np=jax.numpy, nn=jax.nn, jit=jax.jit, grad=jax.grad, vmap=jax.vmap,
                         jvp=jax.jvp)

# Names of ours and theirs whose instances count as the same kind of error.
SAME_ERROR = {"TypePromotionError": "ValueError", "ShapeError": "TypeError"}


def outcome(library, f):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return f(library)
    except Exception as error:
        return error


def kinds_of_error(error):
    """The built-in exception classes that an error is an instance of."""
    return {c.__name__ for c in type(error).__mro__
            if c.__module__ == "builtins"} - {"object", "BaseException", "Exception", "LookupError",
                                              "ArithmeticError"}


def agree(f, rtol=2e-6, atol=1e-6, weak=True):
    """Assert that f(library) is the same for both: values, shapes, dtypes, weak types, or error."""
    ours, theirs = outcome(OURS, f), outcome(THEIRS, f)
    if isinstance(theirs, Exception):
        assert isinstance(ours, Exception), f"JAX raises {theirs!r}, ours is {ours!r}"
        assert kinds_of_error(ours) == kinds_of_error(theirs), (ours, theirs)
        return
    if isinstance(ours, Exception):
        raise ours
    compare(ours, theirs, rtol, atol, weak)


def compare(ours, theirs, rtol, atol, weak):
    if isinstance(theirs, (tuple, list)):
        assert isinstance(ours, (tuple, list)) and len(ours) == len(theirs), (ours, theirs)
        for x, y in zip(ours, theirs):
            compare(x, y, rtol, atol, weak)
    elif isinstance(theirs, jax.Array):
        compare_arrays(ours, theirs, rtol, atol, weak)
    else:
        assert ours == theirs, (ours, theirs)


def compare_arrays(ours, theirs, rtol, atol, weak):
    assert isinstance(ours, Array), type(ours)
    assert ours.dtype == theirs.dtype, (ours.dtype, theirs.dtype)
    assert ours.shape == theirs.shape, (ours.shape, theirs.shape)
    if weak:
        assert ours.weak_type == theirs.weak_type, f"weak type: {ours.weak_type} {theirs.weak_type}"
    x, y = np.asarray(ours), np.asarray(theirs)
    if x.dtype.kind in "biu":
        np.testing.assert_array_equal(x, y)
    else:
        wide = np.complex128 if x.dtype.kind == "c" else np.float64
        eps = float(jax.numpy.finfo(x.dtype).eps)
        np.testing.assert_allclose(x.astype(wide), y.astype(wide), max(rtol, 4 * eps),
                                   max(atol, eps))


def agree_transformed(f, *args, differentiable=True, **tolerances):
    """`agree` on f(library, *args): plain, jitted, mapped over a new axis of each argument, and its
    gradient of a weighted sum."""
    agree(lambda m: f(m, *args), **tolerances)
    agree(lambda m: m.jit(lambda *a: f(m, *a))(*args), **tolerances)
    batches = [np.stack([a, a[::-1] if a.ndim else a + 1, a]) for a in map(np.asarray, args)]
    agree(lambda m: m.vmap(lambda *a: f(m, *a))(*batches), weak=False, **tolerances)
    if differentiable:
        agree(lambda m: m.grad(lambda *a: weighted_sum(m, f(m, *a)), argnums=0)(*args), weak=False,
              **tolerances)


def weighted_sum(m, out):
    outs = out if isinstance(out, (tuple, list)) else [out]
    return sum((x * np.cos(np.arange(x.size, dtype=x.dtype)).reshape(x.shape)).sum() for x in outs)
