# Exported from notebooks/ref_nn.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: nn. Home: ref_nn. In JAX: jax/_src/nn/functions.py, jax/_src/ops/special.py.

Activation functions and what else networks share. Each is written so that the first-order rules of
its parts give the right gradient everywhere: a branch that is not taken gets an argument that is
harmless.
"""

import operator

import numpy as np

from minijax import dtypes, lax, numpy as jnp
from minijax.core import concrete_or_error
from minijax.numpy.promotion import check_arraylike, convert, ensure_arraylike, promote_args_inexact
from minijax.primitives.structural import canonicalize_axis

__all__ = [
    "identity", "relu", "relu6", "leaky_relu", "elu", "celu", "selu", "sigmoid", "hard_sigmoid",
    "sparse_sigmoid", "log_sigmoid", "soft_sign", "tanh", "hard_tanh", "softplus", "sparse_plus",
    "squareplus", "silu", "swish", "hard_silu", "hard_swish", "mish", "gelu", "glu", "log1mexp",
    "softmax", "log_softmax", "logsumexp", "finite_maximum", "log_of_sum", "logmeanexp",
    "standardize", "variance_by", "one_hot",
]


# --- Rectifiers -----------------------------------------------------------------------------------

def identity(x):
    """x, as an array."""
    return ensure_arraylike("identity", x)


def relu(x):
    """max(x, 0), with gradient 0 at 0."""
    x = ensure_arraylike("relu", x)
    return jnp.where(x <= 0, 0, x)      # not max, whose gradient at a tie is a half; keeps NaN


def relu6(x):
    """min(max(x, 0), 6), with gradient 0 at 0 and 6."""
    x = ensure_arraylike("relu6", x)
    return jnp.where(x <= 0, 0, jnp.where(x >= 6, 6.0, x))


def leaky_relu(x, negative_slope=1e-2):
    """x where x >= 0, else negative_slope · x."""
    x = ensure_arraylike("leaky_relu", x)
    return jnp.where(x >= 0, x, negative_slope * x)


def elu(x, alpha=1.0):
    """x where x > 0, else alpha · (exp(x) - 1)."""
    x = ensure_arraylike("elu", x)
    # exp of a large x would overflow, and its gradient times 0 is NaN.
    return jnp.where(x > 0, x, alpha * jnp.expm1(jnp.where(x > 0, 0.0, x)))


def celu(x, alpha=1.0):
    """max(x, 0) + alpha · (exp(min(x, 0) / alpha) - 1): as elu, but smooth for every alpha."""
    return jnp.maximum(x, 0.0) + alpha * jnp.expm1(jnp.minimum(x, 0.0) / alpha)


def selu(x):
    """elu scaled so that unit variance stays unit variance (Klambauer et al. 2017)."""
    alpha, scale = 1.6732632423543772848170429916717, 1.0507009873554804934193349852946
    return scale * elu(x, alpha)


# --- Sigmoids and their kin -----------------------------------------------------------------------

def sigmoid(x):
    """1 / (1 + exp(-x))."""
    return lax.logistic(ensure_arraylike("sigmoid", x))


def hard_sigmoid(x):
    """relu6(x + 3) / 6."""
    return relu6(ensure_arraylike("hard_sigmoid", x) + 3.0) / 6.0


def sparse_sigmoid(x):
    """0 below -1, 1 above 1, a straight line between them."""
    return 0.5 * jnp.clip(ensure_arraylike("sparse_sigmoid", x) + 1.0, 0.0, 2.0)


def log_sigmoid(x):
    """log(sigmoid(x)), without cancellation."""
    x = ensure_arraylike("log_sigmoid", x)
    return -softplus(-x)


def soft_sign(x):
    """x / (1 + |x|)."""
    x = ensure_arraylike("soft_sign", x)
    return x / (jnp.abs(x) + 1)


def tanh(x):
    """The hyperbolic tangent, elementwise."""
    return jnp.tanh(x)


def hard_tanh(x):
    """x cut off at -1 and 1."""
    x = ensure_arraylike("hard_tanh", x)
    return jnp.where(x > 1, 1, jnp.where(x < -1, -1, x))


# --- Smooth rectifiers ----------------------------------------------------------------------------

def softplus(x):
    """log(1 + exp(x)), without overflow."""
    return jnp.logaddexp(x, 0)


def sparse_plus(x):
    """0 below -1, x above 1, a parabola between them."""
    x = ensure_arraylike("sparse_plus", x)
    return jnp.where(x <= -1.0, 0.0, jnp.where(x >= 1.0, x, (x + 1.0) ** 2 / 4))


def squareplus(x, b=4):
    """(x + sqrt(x² + b)) / 2."""
    x, b = ensure_arraylike("squareplus", x, b)
    return (x + jnp.sqrt(jnp.square(x) + b)) / 2


def silu(x):
    """x · sigmoid(x)."""
    x = ensure_arraylike("silu", x)
    return x * sigmoid(x)


swish = silu


def hard_silu(x):
    """x · hard_sigmoid(x)."""
    x = ensure_arraylike("hard_silu", x)
    return x * hard_sigmoid(x)


hard_swish = hard_silu


def mish(x):
    """x · tanh(softplus(x))."""
    x = ensure_arraylike("mish", x)
    return x * jnp.tanh(softplus(x))


def gelu(x, approximate=True):
    """x · Φ(x) with Φ the normal distribution's cdf; `approximate` takes tanh in place of erf."""
    x, = promote_args_inexact("gelu", x)
    if approximate:
        slope = np.sqrt(2 / np.pi).astype(x.dtype)
        return x * (0.5 * (1.0 + jnp.tanh(slope * (x + 0.044715 * x ** 3))))
    return convert(0.5 * x * lax.erfc(-x * np.sqrt(0.5).astype(x.dtype)), x.dtype)


def glu(x, axis=-1):
    """a · sigmoid(b), where a and b are the halves of x along an axis of even size."""
    x = ensure_arraylike("glu", x)
    if x.shape[axis] % 2:
        raise AssertionError(f"axis size must be divisible by 2, got {x.shape[axis]}")
    a, b = jnp.split(x, 2, axis)
    return a * sigmoid(b)


def log1mexp(x):
    """log(1 - exp(-x)) for x > 0, accurate for small and large x (Mächler 2012)."""
    x, = promote_args_inexact("log1mexp", x)
    small = x < np.log(2)
    x_small, x_large = jnp.where(small, x, 1.0), jnp.where(small, 1.0, x)
    return jnp.where(small, jnp.log(-jnp.expm1(-x_small)), jnp.log1p(-jnp.exp(-x_large)))


# --- Sums of exponentials -------------------------------------------------------------------------

def softmax(x, axis=-1, where=None):
    """exp(x) / Σ exp(x) along the axes, over the elements where `where` holds; 0 elsewhere."""
    x_max = jnp.max(x, axis, where=where, initial=-np.inf, keepdims=True)
    x_safe = x if where is None else jnp.where(where, x, -np.inf)
    # Any constant may be subtracted, so the maximum has no part in the derivative.
    unnormalized = jnp.exp(x_safe - lax.stop_gradient(x_max))
    result = unnormalized / jnp.sum(unnormalized, axis, where=where, keepdims=True)
    return result if where is None else jnp.where(where, result, 0)


def log_softmax(x, axis=-1, where=None):
    """log(softmax(x)), without underflow; -inf where `where` does not hold."""
    x = ensure_arraylike("log_softmax", x)
    x_max = jnp.max(x, axis, where=where, initial=-np.inf, keepdims=True)
    x_safe = x if where is None else jnp.where(where, x, -np.inf)
    shifted = x_safe - lax.stop_gradient(x_max)
    total = jnp.sum(jnp.exp(shifted), axis, where=where, keepdims=True)
    result = shifted - jnp.log(total)
    return result if where is None else jnp.where(where, result, -np.inf)


def logsumexp(a, axis=None, b=None, keepdims=False, return_sign=False, where=None):
    """log Σ b exp(a) over the axes, without overflow.

    Of a negative sum it is NaN; with `return_sign` return (log |sum|, sign) instead.
    """
    if b is None:
        a, = promote_args_inexact("logsumexp", a)
    else:
        a, b = promote_args_inexact("logsumexp", a, b)
        a = jnp.where(b != 0, a, -np.inf)       # 0 · exp(a) is 0, however large a is
    largest = finite_maximum(a, axis, where)
    terms = lax.exp(lax.sub(a, jnp.broadcast_to(largest, a.shape)))
    terms = terms if b is None else lax.mul(*jnp.broadcast_arrays(terms, b))
    total = jnp.sum(terms, axis=axis, keepdims=keepdims, where=where)
    return log_of_sum(total, jnp.reshape(largest, total.shape), b is not None, return_sign)


def finite_maximum(a, axis, where):
    """The largest real part over the axes, kept with size 1; 0 where it is not finite."""
    largest = jnp.max(jnp.real(a), axis=axis, keepdims=True, where=where, initial=-np.inf)
    largest = jnp.where(jnp.isfinite(largest), largest, 0)
    return convert(lax.stop_gradient(largest), a.dtype)


def log_of_sum(total, offset, may_be_negative, return_sign):
    is_complex = jnp.iscomplexobj(total)
    sign = jnp.sign(total)
    magnitude = convert(jnp.abs(total), total.dtype) if return_sign or not is_complex else total
    out = jnp.log(magnitude) + offset
    if return_sign:
        return (jnp.real(out) if is_complex else out), sign
    if may_be_negative and not is_complex:
        out = jnp.where(sign < 0, np.nan, out)
    return out


def logmeanexp(x, axis=None, where=None, keepdims=False):
    """log of the mean of exp(x) over the axes."""
    total = logsumexp(x, axis=axis, where=where, keepdims=keepdims)
    everywhere = jnp.ones(np.shape(x), total.dtype)
    return total - jnp.log(jnp.sum(everywhere, axis=axis, where=where, keepdims=keepdims))


# --- Normalization and encoding -------------------------------------------------------------------

def standardize(x, axis=-1, mean=None, variance=None, epsilon=1e-5, where=None, *,
                algorithm="fast"):
    """(x - mean) / sqrt(variance + epsilon), the moments being those along the axes if not given.

    algorithm 'fast' takes E[x²] - E[x]² for the variance, 'stable' E[(x - E[x])²].
    """
    check_arraylike("standardize", x)
    if mean is None:
        mean = jnp.mean(x, axis, keepdims=True, where=where)
    if variance is None:
        variance = variance_by(algorithm, x, mean, axis, where)
    return jnp.subtract(x, mean) * lax.rsqrt(variance + epsilon)


def variance_by(algorithm, x, mean, axis, where):
    if algorithm == "stable":
        return jnp.mean(jnp.square(jnp.subtract(x, mean)), axis, keepdims=True, where=where)
    if algorithm != "fast":
        raise ValueError(f"Unknown algorithm '{algorithm}'. Expected 'fast' or 'stable'.")
    squares = jnp.mean(jnp.square(x), axis, keepdims=True, where=where)
    return jnp.clip(squares - jnp.square(mean), 0)       # rounding may leave it below 0


def one_hot(x, num_classes, *, dtype=None, axis=-1):
    """For every number in `x` a vector, along a new axis, with 1 at its place and 0 elsewhere.

    Numbers outside 0 … num_classes - 1 give zeros.
    """
    num_classes = concrete_or_error(
        operator.index, num_classes, "The error arose in jax.nn.one_hot argument `num_classes`.")
    x = jnp.asarray(x)
    dtype = dtypes.default_float_dtype() if dtype is None else dtype
    axis = canonicalize_axis(axis, x.ndim + 1)
    shape = [num_classes if i == axis else 1 for i in range(x.ndim + 1)]
    places = lax.broadcasted_iota(x.dtype, shape, axis)
    return jnp.astype(lax.expand_dims(x, (axis,)) == places, dtype)
