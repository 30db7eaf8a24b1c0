# Exported from notebooks/ref_numpy_sorting.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: numpy. Home: ref_numpy_sorting. In JAX: jax/_src/numpy/polynomial.py.

Polynomials as vectors of coefficients, the highest power first.
"""

import operator

from minijax import lax
from minijax.core import concrete_or_error
from minijax.numpy.creation import arange, array, asarray, broadcast_trailing, zeros, zeros_like
from minijax.numpy.manipulation import atleast_1d, concatenate, convolve, cut, trim_zeros
from minijax.numpy.promotion import (
    check_arraylike, ensure_arraylike, promote_dtypes, promote_dtypes_inexact,
)
from minijax.numpy.ufuncs import add, multiply, negative, true_divide

__all__ = [
    "polyval", "polyadd", "polysub", "polymul", "poly", "order_of", "polyder", "polyint", "polydiv",
]


# --- Values ---------------------------------------------------------------------------------------

def polyval(p, x, *, unroll=16):
    """The polynomial p at `x`, by Horner's rule."""
    p, x = promote_dtypes(*ensure_arraylike("polyval", p, x))
    shape = lax.broadcast_shapes(x.shape, p.shape[1:])
    y = zeros_like(x, shape=shape)
    for i in range(p.shape[0]):
        y = y * x + lax.index_in_dim(p, i, 0, keepdims=False)
    return y


# --- Arithmetic -----------------------------------------------------------------------------------

def polyadd(a1, a2):
    """The sum of two polynomials."""
    a1, a2 = promote_dtypes(*ensure_arraylike("polyadd", a1, a2))
    if a1.shape[0] < a2.shape[0]:
        a1, a2 = a2, a1
    before = a1.shape[0] - a2.shape[0]
    return concatenate([cut(a1, 0, before, 0), add(cut(a1, before, None, 0), a2)])


def polysub(a1, a2):
    """The difference of two polynomials."""
    a1, a2 = promote_dtypes(*ensure_arraylike("polysub", a1, a2))
    return polyadd(a1, negative(a2))


def polymul(a1, a2, *, trim_leading_zeros=False):
    """The product of two polynomials; leading zeros are dropped on request, if they are known."""
    a1, a2 = promote_dtypes_inexact(*ensure_arraylike("polymul", a1, a2))
    if trim_leading_zeros and a1.size > 1 and a2.size > 1:
        a1, a2 = trim_zeros(a1, trim="f"), trim_zeros(a2, trim="f")
    a1, a2 = (a if a.size else asarray([0], a2.dtype) for a in (a1, a2))
    return convolve(a1, a2, mode="full")


def poly(seq_of_zeros):
    """The polynomial with these zeros and leading coefficient 1."""
    check_arraylike("poly", seq_of_zeros)
    roots, = promote_dtypes_inexact(seq_of_zeros)
    roots = atleast_1d(roots)
    if roots.ndim != 1:
        raise NotImplementedError("poly of a matrix needs its eigenvalues: poly(linalg.eigvals(m))")
    out = array([1], dtype=roots.dtype)
    for root in roots:
        out = convolve(out, array([1, -root], dtype=roots.dtype))
    return out


# --- Calculus -------------------------------------------------------------------------------------

def order_of(name, m):
    m = concrete_or_error(operator.index, m, f"'m' argument of jnp.{name}")
    if m < 0:
        raise ValueError("Order of derivative must be positive" if name == "polyder"
                         else "Order of integral must be positive (see polyder)")
    return m


def polyder(p, m=1):
    """The m-th derivative of a polynomial."""
    p, = promote_dtypes_inexact(ensure_arraylike("polyder", p))
    m = order_of("polyder", m)
    for _ in range(m):
        p = multiply(cut(p, 0, -1, 0), arange(p.shape[0] - 1, 0, -1, dtype=p.dtype))
    return p


def polyint(p, m=1, k=None):
    """The m-th integral of a polynomial, with constants `k`: one for all steps, or one a step."""
    m = order_of("polyint", m)
    k = 0 if k is None else k
    p, k = promote_dtypes_inexact(*ensure_arraylike("polyint", p, asarray(k)))
    k = atleast_1d(k)
    if k.size not in (1, m):
        raise ValueError("k must be a scalar or a rank-1 array of length 1 or m.")
    k = broadcast_trailing(k, (max(m, 1),))
    for i in range(m):
        powers = arange(p.shape[0], 0, -1, dtype=p.dtype)
        p = concatenate([true_divide(p, powers), cut(k, i, i + 1, 0)])
    return p


def polydiv(u, v, *, trim_leading_zeros=False):
    """(quotient, remainder) of the long division of two polynomials."""
    u, v = promote_dtypes_inexact(*ensure_arraylike("polydiv", u, v))
    degree = u.shape[0] - v.shape[0]
    quotient = zeros((max(degree + 1, 1),), u.dtype)
    for k in range(degree + 1):
        factor = u[k] / v[0]
        quotient = quotient.at[k].set(factor)
        u = u.at[k:k + v.shape[0]].add(-factor * v)
    return quotient, trim_zeros(u, trim="f") if trim_leading_zeros else u
