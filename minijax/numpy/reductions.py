# Exported from notebooks/ref_numpy_math.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: numpy. Home: ref_numpy_math. In JAX: jax/_src/numpy/reductions.py.

Sums, extremes, means, quantiles and running sums. All follow one plan: choose the axes, choose the
dtype to compute in and the one to return, hide what `where` masks, reduce, put reduced axes back.
"""

import operator
from math import prod as product_of_numbers
from typing import NamedTuple

import numpy as np

from minijax import dtypes, lax
from minijax.core import concrete_or_error
from minijax.numpy import ufuncs
from minijax.numpy.creation import array as array_of
from minijax.numpy.promotion import (
    asarray, broadcast_to, check_arraylike, convert, ensure_arraylike, promote_args_inexact,
    promote_dtypes_inexact,
)
from minijax.numpy.ufuncs import check_no_out, is_complex, isnan, to_bool
from minijax.primitives.structural import canonicalize_axis
from minijax.rules import const

__all__ = [
    "canonical_axes", "computation_dtype", "summation_dtype", "requested_dtype", "Reduction", "SUM",
    "PROD", "MAX", "MIN", "run", "check_has_result", "mask", "reduce_any_dtype", "sum", "prod",
    "max", "min", "amax", "amin", "ptp", "all", "any", "logical", "count_nonzero", "allclose",
    "array_equal", "array_equiv", "mean", "count", "average", "weights_along", "var",
    "variance_dtypes", "mean_over", "squared_distances", "std", "argmax", "argmin",
    "place_of_extreme", "nanargmax", "nanargmin", "place_without_nan", "nansum", "nanprod",
    "without_nan", "nanmax", "nanmin", "extreme_without_nan", "present", "nanmean", "nanvar",
    "nanstd", "cumsum", "cumprod", "nancumsum", "nancumprod", "running", "cumulative_sum",
    "cumulative_prod", "cumulative", "quantile", "nanquantile", "percentile", "nanpercentile",
    "fraction_of", "median", "nanmedian", "METHODS", "quantile_by_sorting",
    "check_quantile_request", "rows_along", "of_sorted_rows", "position_of", "between",
    "element_at", "by_inverted_cdf",
]


# --- Axes and dtypes ------------------------------------------------------------------------------

def canonical_axes(axis, ndim):
    """`axis`, an int, a sequence of ints or None for all, as a tuple of nonnegative ints.

    Raises ValueError for an axis that is out of bounds or named twice.
    """
    if axis is None:
        return tuple(range(ndim))
    if not isinstance(axis, (tuple, list)):
        axis = concrete_or_error(operator.index, axis, "An axis must be known while tracing.")
        return (canonicalize_axis(axis, ndim),)
    axes = tuple([canonicalize_axis(i, ndim) for i in axis])
    if len(set(axes)) != len(axes):
        raise ValueError(f"duplicate value in 'axis': {axis}")
    return axes


def computation_dtype(dtype):
    """float32 for narrower floats, whose sums lose too much; others compute in themselves."""
    narrow = dtype.itemsize < 4 and dtypes.issubdtype(dtype, np.floating)
    return np.dtype(np.float32) if narrow else dtype


def summation_dtype(dtype):
    """Bools and narrow integers add up in the default integer, signed or unsigned."""
    if dtype.kind in "fc":
        return dtype
    if dtype == bool:
        return dtypes.default_int_dtype()
    for kind, default in ((np.unsignedinteger, dtypes.default_uint_dtype()),
                          (np.integer, dtypes.default_int_dtype())):
        if dtypes.issubdtype(dtype, kind):
            return default if dtype.itemsize < default.itemsize else dtype
    return dtype


def requested_dtype(dtype, fun_name):
    return None if dtype is None else dtypes.check_and_canonicalize_user_dtype(dtype, fun_name)


# --- The plan of a reduction ----------------------------------------------------------------------

class Reduction(NamedTuple):
    """What tells one reduction from another."""
    name: str
    reduce: object            # (array, axes) -> array
    combine: object           # of a result and `initial`
    identity: object          # a number, or None: then an empty array has no result
    widens: bool              # whether integers and bools become default integers


SUM = Reduction("sum", lax.reduce_sum, lax.add, 0, widens=True)
PROD = Reduction("prod", lax.reduce_prod, lax.mul, 1, widens=True)
MAX = Reduction("max", lax.reduce_max, lax.max, None, widens=False)
MIN = Reduction("min", lax.reduce_min, lax.min, None, widens=False)


def run(r, a, axis, dtype, out, keepdims, initial, where, promote_integers=True):
    """Apply a reduction to the axes of an array-like `a`."""
    check_no_out(r.name, out)
    a = ensure_arraylike(r.name, a)
    axes = canonical_axes(axis, a.ndim)
    check_has_result(r, a, axes, initial, where)
    dtype = requested_dtype(dtype, r.name)
    if dtype is None:
        dtype = summation_dtype(a.dtype) if r.widens and promote_integers else a.dtype
    a = convert(a, computation_dtype(dtype) if r.widens else dtype)
    if where is not None:
        a = mask(r, a, where, initial)
    total = reduce_any_dtype(r, a, axes)
    if initial is not None:
        total = r.combine(convert(initial, total.dtype), total)
    total = convert(total, dtype)
    return lax.expand_dims(total, axes) if keepdims else total


def check_has_result(r, a, axes, initial, where):
    if r.identity is not None or initial is not None:
        return
    if 0 in [a.shape[i] for i in axes]:
        raise ValueError(f"zero-size array to reduction operation {r.name} which has no identity")
    if where is not None:
        raise ValueError(f"reduction operation {r.name} does not have an identity, so to use a "
                         "where mask one has to specify 'initial'")


def mask(r, a, where, initial):
    """`a` with what `where` leaves out made the identity, or `initial` where there is none."""
    check_arraylike(r.name, where)
    neutral = initial if r.identity is None else r.identity
    return ufuncs.where(where, a, convert(neutral, a.dtype))


def reduce_any_dtype(r, a, axes):
    # Bools have no sums; as integers they have, and back again a sum is `or`, a product `and`.
    if a.dtype == bool and r.widens:
        return (lax.reduce_or if r is SUM else lax.reduce_and)(a, axes)
    return r.reduce(a, axes)


# --- Sums, products, extremes ---------------------------------------------------------------------

def sum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None,
        promote_integers=True):
    """The sum over `axis` (an int, several, or None for all).

    Narrow integers and bools add up as default integers unless `promote_integers` is False.
    Elements where `where` is False don't count; `initial` is added to the result.
    """
    return run(SUM, a, axis, dtype, out, keepdims, initial, where, promote_integers)


def prod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None,
         promote_integers=True):
    """The product over `axis`; arguments as of `sum`."""
    return run(PROD, a, axis, dtype, out, keepdims, initial, where, promote_integers)


def max(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """The largest element over `axis`; NaN if one is NaN.

    Raises ValueError for no elements at all, or a mask `where`, unless there is an `initial`.
    """
    return run(MAX, a, axis, None, out, keepdims, initial, where)


def min(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """The smallest element over `axis`; arguments and errors as of `max`."""
    return run(MIN, a, axis, None, out, keepdims, initial, where)


amax, amin = max, min


def ptp(a, axis=None, out=None, keepdims=False):
    """The largest less the smallest element over `axis`."""
    check_no_out("ptp", out)
    return lax.sub(max(a, axis, keepdims=keepdims), min(a, axis, keepdims=keepdims))


def all(a, axis=None, out=None, keepdims=False, *, where=None):
    """Whether all elements over `axis` are not 0; true of no elements."""
    return logical("all", lax.reduce_and, True, a, axis, out, keepdims, where)


def any(a, axis=None, out=None, keepdims=False, *, where=None):
    """Whether any element over `axis` is not 0; false of no elements."""
    return logical("any", lax.reduce_or, False, a, axis, out, keepdims, where)


def logical(fun_name, reduce, identity, a, axis, out, keepdims, where):
    check_no_out(fun_name, out)
    a = to_bool(ensure_arraylike(fun_name, a))
    axes = canonical_axes(axis, a.ndim)
    if where is not None:
        a = ufuncs.where(where, a, identity)
    result = reduce(a, axes)
    return lax.expand_dims(result, axes) if keepdims else result


def count_nonzero(a, axis=None, keepdims=False):
    """How many elements over `axis` are not 0."""
    a = to_bool(ensure_arraylike("count_nonzero", a))
    return sum(a, axis, keepdims=keepdims)


def allclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether all elements are close, in the sense of `isclose`."""
    return all(ufuncs.isclose(a, b, rtol, atol, equal_nan))


def array_equal(a1, a2, equal_nan=False):
    """Whether two arrays have the same shape and elements; lists are taken as arrays."""
    a1, a2 = array_of(a1), array_of(a2)
    if a1.shape != a2.shape:
        return lax.full((), False, bool)
    same = ufuncs.equal(a1, a2)
    if equal_nan:
        same = ufuncs.logical_or(same, ufuncs.logical_and(isnan(a1), isnan(a2)))
    return all(same)


def array_equiv(a1, a2):
    """Whether two arrays have the same elements once they are broadcast."""
    a1, a2 = array_of(a1), array_of(a2)
    try:
        np.broadcast_shapes(a1.shape, a2.shape)
    except ValueError:
        return lax.full((), False, bool)
    return all(ufuncs.equal(a1, a2))


# --- Means and variances --------------------------------------------------------------------------

def mean(a, axis=None, dtype=None, out=None, keepdims=False, *, where=None):
    """The mean over `axis` of the elements where `where` holds; NaN of none."""
    check_no_out("mean", out)
    a = ensure_arraylike("mean", a)
    dtype = requested_dtype(dtype, "mean") or dtypes.to_inexact_dtype(a.dtype)
    wide = computation_dtype(dtypes.to_inexact_dtype(dtype))
    total = sum(convert(a, wide), axis, keepdims=keepdims, where=where)
    return convert(lax.div(total, count(a, axis, where, keepdims, total)), dtype)


def count(a, axis, where, keepdims, like):
    """How many elements take part in a reduction, as numbers of `like`'s dtype."""
    if where is None:
        return const(like, product_of_numbers([a.shape[i] for i in canonical_axes(axis, a.ndim)]))
    taking_part = ufuncs.where(where, lax.full_like(a, 1, like.dtype), const(like, 0))
    return sum(taking_part, axis, keepdims=keepdims)


def average(a, axis=None, weights=None, returned=False, keepdims=False):
    """The mean over `axis` weighted by `weights`, and with `returned` also the sum of weights.

    Weights have the shape of `a`, or are a vector along one axis.
    """
    if weights is None:
        a, = promote_args_inexact("average", a)
        mean_of_a = mean(a, axis, keepdims=keepdims)
        total = lax.full_like(mean_of_a, count(a, axis, None, keepdims, mean_of_a))
    else:
        check_arraylike("average", a, weights)
        a, weights = promote_dtypes_inexact(a, weights)
        weights = weights_along(weights, a, axis)
        total = sum(weights, axis, keepdims=keepdims)
        mean_of_a = lax.div(sum(lax.mul(a, weights), axis, keepdims=keepdims), total)
    return (mean_of_a, total) if returned else mean_of_a


def weights_along(weights, a, axis):
    if weights.shape == a.shape:
        return weights
    if axis is None:
        raise ValueError("Axis must be specified when shapes of a and weights differ.")
    axes = canonical_axes(axis, a.ndim)
    if weights.shape != tuple([a.shape[i] for i in axes]):
        raise ValueError("Shape of weights must be consistent with shape of a along specified "
                         "axis.")
    return lax.broadcast_in_dim(weights, a.shape, axes)


def var(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None, mean=None,
        correction=None):
    """The variance over `axis`: mean squared distance from the mean, real for complex `a` too.

    The sum of squares is divided by the number of elements less `ddof` (or `correction`); NaN if
    that is not positive. A known `mean` may be given, with reduced axes of size 1.
    """
    check_no_out("var", out)
    a = ensure_arraylike("var", a)
    wide, dtype = variance_dtypes(a.dtype, requested_dtype(dtype, "var"))
    a = convert(a, wide)
    squares = squared_distances(a, mean_over(a, axis, where) if mean is None else mean)
    total = sum(squares, axis, keepdims=keepdims, where=where)
    degrees = ufuncs.subtract(count(a, axis, where, keepdims, total),
                              ddof if correction is None else correction)
    # Dividing by NaN rather than by 0: the result is NaN whatever the sum.
    return convert(ufuncs.divide(total, ufuncs.where(ufuncs.greater(degrees, 0), degrees, np.nan)),
                   dtype)


def variance_dtypes(found, requested):
    """The dtype to compute a variance in, and that of the result."""
    if requested is None:
        exact = dtypes.to_inexact_dtype(found)
        return computation_dtype(exact), dtypes.to_floating_dtype(exact)
    if dtypes.issubdtype(found, np.complexfloating):
        if not dtypes.issubdtype(requested, np.complexfloating):
            raise ValueError("var of complex numbers with a real dtype is not supported: its "
                             "meaning is unclear")
    requested = dtypes.to_inexact_dtype(requested)
    return computation_dtype(requested), dtypes.to_floating_dtype(requested)


def mean_over(a, axis, where):
    return mean(a, axis, keepdims=True, where=where)


def squared_distances(a, center):
    distances = ufuncs.subtract(a, center)
    if not is_complex(distances):
        return lax.square(distances)
    return lax.real(lax.mul(distances, lax.conj(distances)))


def std(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, *, where=None, mean=None,
        correction=None):
    """The standard deviation over `axis`: the root of `var`, with the same arguments."""
    check_no_out("std", out)
    return lax.sqrt(var(a, axis, dtype, None, ddof, keepdims, where=where, mean=mean,
                        correction=correction))


# --- Places of extremes ---------------------------------------------------------------------------

def argmax(a, axis=None, out=None, keepdims=None):
    """The index of the first largest element along `axis`, or in the flattened array.

    NaN counts as the largest. Raises ValueError for an empty axis.
    """
    return place_of_extreme(lax.argmax, "argmax", a, axis, out, keepdims)


def argmin(a, axis=None, out=None, keepdims=None):
    """The index of the first smallest element along `axis`; NaN counts as the smallest."""
    return place_of_extreme(lax.argmin, "argmin", a, axis, out, keepdims)


def place_of_extreme(find, fun_name, a, axis, out, keepdims):
    check_no_out(fun_name, out)
    a = ensure_arraylike(fun_name, a)
    flat = lax.reshape(a, (a.size,)) if axis is None else a
    i = 0 if axis is None else canonicalize_axis(axis, a.ndim)
    if flat.shape[i] == 0:
        raise ValueError(f"attempt to get {fun_name} of an empty sequence")
    index = find(flat, i, dtypes.default_int_dtype())
    if not keepdims:
        return index
    return lax.expand_dims(index, tuple(range(a.ndim)) if axis is None else (i,))


def nanargmax(a, axis=None, out=None, keepdims=None):
    """As `argmax`, without NaN; -1 where there is nothing else."""
    return place_without_nan(argmax, "nanargmax", -np.inf, a, axis, out, keepdims)


def nanargmin(a, axis=None, out=None, keepdims=None):
    """As `argmin`, without NaN; -1 where there is nothing else."""
    return place_without_nan(argmin, "nanargmin", np.inf, a, axis, out, keepdims)


def place_without_nan(find, fun_name, replacement, a, axis, out, keepdims):
    check_no_out(fun_name, out)
    a = ensure_arraylike(fun_name, a)
    if not dtypes.issubdtype(a.dtype, np.inexact):
        return find(a, axis, keepdims=keepdims)
    missing = isnan(a)
    index = find(ufuncs.where(missing, const(a, replacement), a), axis, keepdims=keepdims)
    nothing = all(missing, axis, keepdims=bool(keepdims))
    return ufuncs.where(nothing, const(index, -1), index)


# --- Reductions that skip NaN ---------------------------------------------------------------------

def nansum(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """As `sum`, with NaN counted as 0."""
    check_no_out("nansum", out)
    return sum(without_nan("nansum", a, 0), axis, dtype, None, keepdims, initial, where)


def nanprod(a, axis=None, dtype=None, out=None, keepdims=False, initial=None, where=None):
    """As `prod`, with NaN counted as 1."""
    check_no_out("nanprod", out)
    return prod(without_nan("nanprod", a, 1), axis, dtype, None, keepdims, initial, where)


def without_nan(fun_name, a, replacement):
    a = ensure_arraylike(fun_name, a)
    if not dtypes.issubdtype(a.dtype, np.inexact):
        return a
    return ufuncs.where(isnan(a), const(a, replacement), a)


def nanmax(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """As `max`, without NaN; NaN where there is nothing else."""
    return extreme_without_nan(max, "nanmax", -np.inf, a, axis, out, keepdims, initial, where)


def nanmin(a, axis=None, out=None, keepdims=False, initial=None, where=None):
    """As `min`, without NaN; NaN where there is nothing else."""
    return extreme_without_nan(min, "nanmin", np.inf, a, axis, out, keepdims, initial, where)


def extreme_without_nan(reduce, fun_name, replacement, a, axis, out, keepdims, initial, where):
    check_no_out(fun_name, out)
    a = ensure_arraylike(fun_name, a)
    if not dtypes.issubdtype(a.dtype, np.inexact):
        return reduce(a, axis, None, keepdims, initial, where)
    found = reduce(without_nan(fun_name, a, replacement), axis, None, keepdims, initial, where)
    if initial is not None:
        return found
    return ufuncs.where(all(isnan(a), axis, keepdims=keepdims), const(found, np.nan), found)


def present(a, where):
    """The mask of elements that are not NaN and that `where` does not leave out."""
    found = lax.bitwise_not(isnan(a))
    return found if where is None else ufuncs.logical_and(found, where)


def nanmean(a, axis=None, dtype=None, out=None, keepdims=False, where=None):
    """As `mean`, without NaN."""
    check_no_out("nanmean", out)
    a = ensure_arraylike("nanmean", a)
    return mean(a, axis, dtype, None, keepdims, where=present(a, where))


def nanvar(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, mean=None):
    """As `var`, without NaN."""
    check_no_out("nanvar", out)
    a = ensure_arraylike("nanvar", a)
    return var(without_nan("nanvar", a, 0), axis, dtype, None, ddof, keepdims,
               where=present(a, where), mean=mean)


def nanstd(a, axis=None, dtype=None, out=None, ddof=0, keepdims=False, where=None, mean=None):
    """As `std`, without NaN."""
    check_no_out("nanstd", out)
    return lax.sqrt(nanvar(a, axis, dtype, None, ddof, keepdims, where, mean))


# --- Running sums and products --------------------------------------------------------------------

def cumsum(a, axis=None, dtype=None, out=None):
    """The sums of the elements up to each one along `axis`, or of the flattened array."""
    return running("cumsum", lax.cumsum, a, axis, dtype, out)


def cumprod(a, axis=None, dtype=None, out=None):
    """The products of the elements up to each one along `axis`, or of the flattened array."""
    return running("cumprod", lax.cumprod, a, axis, dtype, out)


def nancumsum(a, axis=None, dtype=None, out=None):
    """As `cumsum`, with NaN counted as 0."""
    return running("nancumsum", lax.cumsum, without_nan("nancumsum", a, 0), axis, dtype, out)


def nancumprod(a, axis=None, dtype=None, out=None):
    """As `cumprod`, with NaN counted as 1."""
    return running("nancumprod", lax.cumprod, without_nan("nancumprod", a, 1), axis, dtype, out)


def running(fun_name, accumulate, a, axis, dtype, out=None):
    check_no_out(fun_name, out)
    a = ensure_arraylike(fun_name, a)
    a = lax.reshape(a, (a.size,)) if axis is None else a
    axis = canonicalize_axis(0 if axis is None else axis, a.ndim)
    dtype = requested_dtype(dtype, fun_name) or a.dtype
    wide = dtypes.default_int_dtype() if a.dtype == bool and dtype == bool else dtype
    return accumulate(convert(a, wide), axis)


def cumulative_sum(x, /, *, axis=None, dtype=None, include_initial=False):
    """The sums of the elements up to each one along `axis`, which may be left out for a vector.

    With `include_initial` they start with the empty sum, 0.
    """
    return cumulative("cumulative_sum", "sum", lax.cumsum, 0, x, axis, dtype, include_initial)


def cumulative_prod(x, /, *, axis=None, dtype=None, include_initial=False):
    """The products of the elements up to each one; arguments as of `cumulative_sum`."""
    return cumulative("cumulative_prod", "product", lax.cumprod, 1, x, axis, dtype, include_initial)


def cumulative(fun_name, what, accumulate, identity, x, axis, dtype, include_initial):
    x = ensure_arraylike(fun_name, x)
    if x.ndim == 0:
        raise ValueError(f"The input must be non-scalar to take a cumulative {what}, however a "
                         "scalar value or scalar array was given.")
    if axis is None and x.ndim > 1:
        raise ValueError(f"The input array has rank {x.ndim}, however axis was not set to an "
                         "explicit value. The axis argument is only optional for one-dimensional "
                         "arrays.")
    axis = canonicalize_axis(axis or 0, x.ndim)
    dtype = requested_dtype(dtype, fun_name) or summation_dtype(x.dtype)
    sums = accumulate(convert(x, dtype), axis)
    if not include_initial:
        return sums
    first = lax.full((*x.shape[:axis], 1, *x.shape[axis + 1:]), identity, dtype)
    return lax.concatenate([first, sums], axis)


# --- Quantiles ------------------------------------------------------------------------------------

def quantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *,
             weights=None):
    """The value below which a fraction `q` of the elements over `axis` lies.

    Between two elements `method` decides: 'linear', 'lower', 'higher', 'midpoint', 'nearest', or
    'inverted_cdf', which alone takes `weights`. A vector `q` gives results along a new first axis.
    NaN if an element is NaN.
    """
    return quantile_by_sorting("quantile", a, q, axis, out, overwrite_input, method, keepdims,
                               weights, skip_nan=False)


def nanquantile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False,
                *, weights=None):
    """As `quantile`, without NaN."""
    return quantile_by_sorting("nanquantile", a, q, axis, out, overwrite_input, method, keepdims,
                               weights, skip_nan=True)


def percentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False, *,
               weights=None):
    """As `quantile`, with `q` in percent."""
    return quantile(a, fraction_of(q), axis, out, overwrite_input, method, keepdims,
                    weights=weights)


def nanpercentile(a, q, axis=None, out=None, overwrite_input=False, method="linear", keepdims=False,
                  *, weights=None):
    """As `percentile`, without NaN."""
    return nanquantile(a, fraction_of(q), axis, out, overwrite_input, method, keepdims,
                       weights=weights)


def fraction_of(percent):
    percent, = promote_args_inexact("percentile", percent)
    return lax.div(percent, const(percent, 100))


def median(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    """The middle element over `axis` in order, or the mean of the two middle ones."""
    return quantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


def nanmedian(a, axis=None, out=None, overwrite_input=False, keepdims=False):
    """As `median`, without NaN."""
    return nanquantile(a, 0.5, axis, out, overwrite_input, "midpoint", keepdims)


METHODS = ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")


def quantile_by_sorting(fun_name, a, q, axis, out, overwrite_input, method, keepdims, weights,
                        skip_nan):
    check_quantile_request(fun_name, out, overwrite_input, method, weights)
    check_arraylike(fun_name, a, q)
    q = asarray(q)
    if q.ndim > 1:
        raise ValueError(f"q must be have rank <= 1, got shape {q.shape}")
    a, = promote_dtypes_inexact(a)
    if is_complex(a):
        raise ValueError(f"{fun_name} does not support complex input: complex numbers have no "
                         "order")
    axes = canonical_axes(axis, a.ndim)
    if weights is not None:
        weights = weights_along(convert(weights, a.dtype), a, axis)
    rows = rows_along(a, axes)
    rows_weights = None if weights is None else rows_along(weights, axes)
    values = of_sorted_rows(rows, q, method, rows_weights, skip_nan)
    values = lax.convert_element_type(values, a.dtype)
    return lax.expand_dims(values, [i + q.ndim for i in axes]) if keepdims else values


def check_quantile_request(fun_name, out, overwrite_input, method, weights):
    if overwrite_input or out is not None:
        raise ValueError(f"{fun_name} does not support overwrite_input=True or out != None")
    if method not in METHODS:
        raise ValueError("method can only be 'linear', 'lower', 'higher', 'midpoint', 'nearest' or "
                         "'inverted_cdf'")
    if weights is not None and method != "inverted_cdf":
        raise NotImplementedError(f"weights need method 'inverted_cdf', got {method!r}")


def rows_along(a, axes):
    """`a` with all reduced axes merged into one, which is the last."""
    kept = [i for i in range(a.ndim) if i not in axes]
    a = lax.transpose(a, (*kept, *axes))
    shape = a.shape[:len(kept)]
    return lax.reshape(a, (*shape, product_of_numbers(a.shape[len(kept):])))


def of_sorted_rows(rows, q, method, weights, skip_nan):
    """Quantiles of the last axis, those of each q along a first axis."""
    if method == "inverted_cdf":
        return by_inverted_cdf(rows, q, weights, skip_nan)
    ordered = lax.sort(rows, dimension=-1)           # NaN goes last
    missing = sum(isnan(ordered), axis=-1)
    size = lax.full_like(missing, rows.shape[-1])
    size = lax.sub(size, missing) if skip_nan else size
    position = position_of(q, lax.convert_element_type(size, rows.dtype))
    value = between(ordered, position, method)
    bad = lax.eq(size, const(size, 0)) if skip_nan else lax.gt(missing, const(missing, 0))
    return ufuncs.where(bad, np.nan, value)


def position_of(q, size):
    """q (size - 1), of shape (*q's, *size's)."""
    q = lax.convert_element_type(q, size.dtype)
    shape = (*q.shape, *size.shape)
    q = lax.broadcast_in_dim(q, shape, tuple(range(q.ndim)))
    last = lax.max(lax.sub(size, const(size, 1)), const(size, 0))
    return lax.mul(q, broadcast_to(last, shape))


def between(ordered, position, method):
    """The values at fractional places of the sorted last axis."""
    low, high = lax.floor(position), lax.ceil(position)
    low_value, high_value = element_at(ordered, low), element_at(ordered, high)
    part = lax.sub(position, low)
    if method == "lower":
        return low_value
    if method == "higher":
        return high_value
    if method == "nearest":
        return lax.select(lax.le(part, const(part, 0.5)), low_value, high_value)
    if method == "midpoint":
        return lax.mul(lax.add(low_value, high_value), const(low_value, 0.5))
    rest = lax.sub(const(part, 1), part)
    return lax.add(lax.mul(low_value, rest), lax.mul(high_value, part))


def element_at(rows, places):
    """rows[..., places] with one place a row: a masked sum, since each row has exactly one."""
    n = rows.shape[-1]
    shape = (*places.shape, n)
    at = lax.broadcast_in_dim(lax.convert_element_type(places, np.int32), shape,
                              tuple(range(places.ndim)))
    chosen = lax.eq(at, lax.broadcasted_iota(np.int32, shape, len(shape) - 1))
    return sum(broadcast_to(rows, shape), axis=-1, where=chosen)


def by_inverted_cdf(rows, q, weights, skip_nan):
    """The first element at which the sorted weights add up to a fraction q of them all."""
    weights = lax.full_like(rows, 1) if weights is None else weights
    bad_weights = any(ufuncs.logical_or(ufuncs.less(weights, 0), isnan(weights)), axis=-1)
    missing = isnan(rows)
    weights = ufuncs.where(missing, 0, weights)
    ordered, weights = lax.sort_key_val(rows, weights, dimension=-1)
    reached = lax.cumsum(weights, axis=weights.ndim - 1)
    total = sum(weights, axis=-1)
    shape = (*q.shape, *total.shape)
    target = ufuncs.multiply(lax.broadcast_in_dim(q, shape, tuple(range(q.ndim))), total)
    before = sum(ufuncs.less(reached, lax.expand_dims(target, (len(shape),))), axis=-1)
    count_of_values = sum(lax.bitwise_not(missing), axis=-1)
    last = lax.max(lax.sub(count_of_values, const(before, 1)), const(before, 0))
    value = element_at(ordered, ufuncs.minimum(before, last))
    no_answer = lax.eq(count_of_values, const(before, 0)) if skip_nan else any(missing, axis=-1)
    return ufuncs.where(ufuncs.logical_or(no_answer, bad_weights), np.nan, value)
