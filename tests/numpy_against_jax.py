"""The same expression evaluated with minijax.numpy and with jax.numpy, and compared."""
import os

os.environ.setdefault("JAX_PLATFORMS", "cpu")
os.environ.setdefault("XLA_FLAGS", "--xla_backend_optimization_level=0")     # compile fast

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
    """`agree` on f(library, *args) and on its gradient; and our jit and vmap of it against our
    f."""
    agree(lambda m: f(m, *args), **tolerances)
    if differentiable:
        agree(lambda m: m.grad(lambda *a: weighted_sum(f(m, *a)))(*args), weak=False, **tolerances)
    plain = lambda *a: f(OURS, *a)
    assert_close(OURS.jit(plain)(*args), plain(*args))
    examples = [args, [a[::-1] if np.ndim(a) else a + 1 for a in args], args]
    batches = [np.stack(batch) for batch in zip(*examples)]
    mapped = flat(OURS.vmap(plain)(*batches))
    for i, example in enumerate(examples):
        assert_close([out[i] for out in mapped], plain(*example))


def assert_close(found, expected):
    for x, y in zip(flat(found), flat(expected), strict=True):
        assert (x.dtype, x.shape) == (y.dtype, y.shape)
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), 1e-4, 1e-5)


def flat(out):
    return [x for part in out for x in flat(part)] if isinstance(out, (tuple, list)) else [out]


def weighted_sum(out):
    return sum((x * np.cos(np.arange(x.size, dtype=x.dtype)).reshape(x.shape)).sum()
               for x in flat(out))
