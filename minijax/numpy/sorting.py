# Exported from notebooks/ref_numpy_sorting.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: numpy. Home: ref_numpy_sorting. In JAX: jax/_src/numpy/{sorting,setops}.py.

Sorting, searching what is sorted, counting into bins, and sets. The sizes of results must be known
while tracing: where values decide, arrays must be known, or a `size` says how many elements to
return.
"""

import operator
from math import prod
from typing import NamedTuple

import numpy as np

from minijax import dtypes, lax
from minijax.array import Array, as_array
from minijax.core import concrete_or_error
from minijax.numpy.creation import arange, array, asarray, full, full_like, linspace, ones, zeros
from minijax.numpy.indexing import getitem, nonzero, take
from minijax.numpy.manipulation import concatenate, cut, flip, moveaxis, ravel, reshape
from minijax.numpy.promotion import (
    check_arraylike, convert, ensure_arraylike, promote_dtypes, promote_dtypes_inexact,
)
from minijax.numpy.reductions import (
    any as reduce_any, cumsum, max as reduce_max, min as reduce_min, sum as reduce_sum,
)
from minijax.numpy.ufuncs import absolute, clip, isnan, where
from minijax.primitives.structural import canonicalize_axis

__all__ = [
    "to_sort", "sort", "argsort", "lexsort", "sort_complex", "partition", "argpartition",
    "partition_places", "searchsorted", "binary_search", "comes_before", "digitize", "interp",
    "one_period", "between_points", "bincount", "histogram_bin_edges", "histogram", "histogram2d",
    "histogramdd", "count_cells", "SIZE_HINT", "unique", "Distinct", "sorting_order",
    "marks_of_first", "UniqueAllResult", "UniqueCountsResult", "UniqueInverseResult", "unique_all",
    "unique_counts", "unique_inverse", "unique_values", "known_vector", "isin", "union1d",
    "intersect1d", "SortedSet", "default_filler", "setdiff1d", "setxor1d", "chosen_elements",
]


# --- Sorting --------------------------------------------------------------------------------------

def to_sort(name, a, axis, kind, order):
    if kind is not None:
        raise TypeError(f"'kind' argument to {name} is not supported. Use stable=True or "
                        "stable=False to specify sort stability.")
    if order is not None:
        raise TypeError(f"'order' argument to {name} is not supported.")
    check_arraylike(name, a)
    a, axis = (ravel(a), 0) if axis is None else (asarray(a), axis)
    return a, canonicalize_axis(axis, a.ndim)


def sort(a, axis=-1, *, kind=None, order=None, stable=True, descending=False):
    """`a` in ascending order along an axis (flat if None), NaN last."""
    a, axis = to_sort("sort", a, axis, kind, order)
    out = lax.sort(a, dimension=axis, is_stable=stable)
    return lax.rev(out, (axis,)) if descending else out


def argsort(a, axis=-1, *, kind=None, order=None, stable=True, descending=False, dtype=None):
    """The indices that sort `a` along an axis (flat if None); equal elements keep their order."""
    a, axis = to_sort("argsort", a, axis, kind, order)
    dtype = dtypes.default_int_dtype() if dtype is None else \
        dtypes.check_and_canonicalize_user_dtype(dtype, "argsort")
    places = lax.broadcasted_iota(dtype, a.shape, axis)
    if descending and stable:
        a, places = lax.rev(a, (axis,)), lax.rev(places, (axis,))
    out = lax.sort_key_val(a, places, dimension=axis, is_stable=stable)[1]
    return lax.rev(out, (axis,)) if descending else out


def lexsort(keys, axis=-1):
    """The indices that sort by the last key, ties by the one before it, and so on."""
    keys = [asarray(k) for k in keys]
    if not keys:
        raise TypeError("need sequence of keys with len > 0 in lexsort")
    if len({k.shape for k in keys}) > 1:
        raise ValueError("all keys need to be the same shape")
    if keys[0].ndim == 0:
        return zeros((), dtypes.default_int_dtype())
    axis = canonicalize_axis(axis, keys[0].ndim)
    places = lax.broadcasted_iota(dtypes.default_int_dtype(), keys[0].shape, axis)
    return lax.sort((*keys[::-1], places), dimension=axis, num_keys=len(keys))[-1]


def sort_complex(a):
    """`a` sorted along its last axis, as complex numbers."""
    check_arraylike("sort_complex", a)
    out = lax.sort(asarray(a))
    return convert(out, dtypes.to_complex_dtype(out.dtype))


def partition(a, kth, axis=-1):
    """`a` with the kth smallest along an axis at its place, smaller ones before it, in some
    order."""
    places, a, axis = partition_places("partition", a, kth, axis)
    return lax.sort(a, dimension=axis)


def argpartition(a, kth, axis=-1):
    """The indices that `partition` would arrange elements by."""
    places, a, axis = partition_places("argpartition", a, kth, axis)
    return lax.sort_key_val(a, places, dimension=axis)[1]


def partition_places(name, a, kth, axis):
    # A full sort is one of the orders that a partition may leave.
    check_arraylike(name, a)
    a = asarray(a)
    if dtypes.issubdtype(a.dtype, np.complexfloating):
        raise NotImplementedError(f"jnp.{name} for complex dtype is not implemented.")
    axis = canonicalize_axis(axis, a.ndim)
    canonicalize_axis(kth, a.shape[axis])
    return lax.broadcasted_iota(np.int32, a.shape, axis), a, axis


# --- Searching ------------------------------------------------------------------------------------

def searchsorted(a, v, side="left", sorter=None, *, method="scan"):
    """Where to insert `v` into the sorted vector `a` to keep it sorted.

    side 'left': before equal elements, 'right': behind them. `sorter` are indices that sort `a`.
    All methods ('scan', 'scan_unrolled', 'sort', 'compare_all') give the same; here they are one.
    """
    check_arraylike("searchsorted", a, v)
    if side not in ("left", "right"):
        raise ValueError(f"{side!r} is an invalid value for keyword 'side'. Expected one of "
                         "['left', 'right'].")
    if method not in ("scan", "scan_unrolled", "sort", "compare_all"):
        raise ValueError(f"{method!r} is an invalid value for keyword 'method'.")
    a, v = asarray(a), asarray(v)
    if a.ndim != 1:
        raise ValueError("a should be 1-dimensional")
    a = a if sorter is None else getitem(a, asarray(sorter))
    a, v = promote_dtypes(a, v)
    if type(a) is Array and type(v) is Array and a.dtype.kind in "biuf":
        return as_array(np.searchsorted(a._value, v._value, side).astype(np.int32))
    return binary_search(a, v, side)


def binary_search(a, v, side):
    """Halve the interval [low, high) that holds the answer, as often as the length of `a` asks
    for."""
    n = a.shape[0]
    low, high = full_like(v, 0, np.int32), full_like(v, n, np.int32)
    for _ in range(n.bit_length()):
        middle = (low + high) // 2
        element = take(a, middle, mode="clip") if n else v
        goes_on = comes_before(element, v) if side == "left" else ~comes_before(v, element)
        goes_on = goes_on & (low < high)
        low, high = where(goes_on, middle + 1, low), where(goes_on, high, middle)
    return low


def comes_before(x, y):
    """x < y in the order of sorting, in which NaN is last."""
    if not dtypes.issubdtype(x.dtype, np.inexact):
        return x < y
    return (x < y) | (isnan(y) & ~isnan(x))


def digitize(x, bins, right=False, *, method=None):
    """The number of the bin each element is in; bins[i-1] <= x < bins[i], or (…] with `right`.

    The edges may rise or fall.
    """
    x, bins = ensure_arraylike("digitize", x, bins)
    if bins.ndim != 1:
        raise ValueError(f"digitize: bins must be a 1-dimensional array; got bins={bins}")
    n = bins.shape[0]
    if n == 0:
        return full_like(x, 0, np.int32)
    right = concrete_or_error(bool, right, "'right' argument of jnp.digitize().", "concrete-values")
    side = "left" if right else "right"
    rising = searchsorted(bins, x, side=side)
    falling = n - searchsorted(flip(bins), x, side=side)
    return where(bins[-1] >= bins[0], rising, falling)


def interp(x, xp, fp, left=None, right=None, period=None):
    """Linear interpolation at `x` between the points (xp, fp), xp rising.

    Outside: `left` and `right`, by default the first and last fp; 'extrapolate' continues the line.
    With `period` the points repeat.
    """
    check_arraylike("interp", x, xp, fp)
    if np.shape(xp) != np.shape(fp) or np.ndim(xp) != 1:
        raise ValueError("xp and fp must be one-dimensional arrays of equal size")
    for name, side in (("left", left), ("right", right)):
        if isinstance(side, str) and side != "extrapolate":
            raise ValueError(f"the only valid string value of `{name}` is 'extrapolate', but got: "
                             f"{side!r}")
    x, xp = promote_dtypes_inexact(x, xp)
    fp, = promote_dtypes_inexact(fp)
    if dtypes.issubdtype(x.dtype, np.complexfloating):
        raise ValueError("jnp.interp: complex x values not supported.")
    if period is not None:
        x, xp, fp = one_period(x, xp, fp, period)
        left = right = "extrapolate"
    out = between_points(x, xp, fp)
    if left != "extrapolate":
        out = where(x < xp[0], fp[0] if left is None else left, out)
    if right != "extrapolate":
        out = where(x > xp[-1], fp[-1] if right is None else right, out)
    return out


def one_period(x, xp, fp, period):
    if np.ndim(period) != 0:
        raise ValueError(f"period must be a scalar; got {period}")
    period = absolute(period)
    xp, fp = lax.sort_key_val(xp % period, fp)
    return (x % period, concatenate([xp[-1:] - period, xp, xp[:1] + period]),
            concatenate([fp[-1:], fp, fp[:1]]))


def between_points(x, xp, fp):
    i = clip(searchsorted(xp, x, side="right"), 1, xp.shape[0] - 1)
    y0, x0 = fp[i - 1], xp[i - 1]
    rise, run = fp[i] - y0, xp[i] - x0
    # Two points at one place: the first counts, and no derivative divides by zero.
    is_step = absolute(run) <= np.spacing(np.finfo(xp.dtype).eps)
    return where(is_step, y0, y0 + (x - x0) / where(is_step, 1, run) * rise)


# --- Counting -------------------------------------------------------------------------------------

def bincount(x, weights=None, minlength=0, *, length=None):
    """How often each number occurs in a vector of integers, or the sum of its weights.

    Negative numbers count as 0. The result has `length` places, larger numbers being dropped;
    without it `x` must be known, and the result is as long as needed, but at least `minlength`.
    """
    x = ensure_arraylike("bincount", x)
    x = convert(x, np.dtype(np.int32)) if x.dtype == bool else x
    if not dtypes.issubdtype(x.dtype, np.integer):
        raise TypeError(f"x argument to bincount must have an integer type; got {x.dtype}")
    if x.ndim != 1:
        raise ValueError("only 1-dimensional input supported.")
    minlength = concrete_or_error(operator.index, minlength,
                                  "'minlength' argument of jnp.bincount.")
    if length is None:
        known = concrete_or_error(np.asarray, x, "The error occurred because of argument 'x' of "
                                  "jnp.bincount. To avoid this error, pass a static `length` "
                                  "argument.")
        length = max(minlength, int(known.max(initial=-1)) + 1, int(known.size > 0))
    length = concrete_or_error(operator.index, length, "'length' argument of jnp.bincount.")
    if weights is not None and np.shape(weights) != x.shape:
        raise ValueError("shape of weights must match shape of x.")
    weights = np.array(1, dtypes.default_int_dtype()) if weights is None else asarray(weights)
    return zeros(length, weights.dtype).at[clip(x, 0)].add(weights, mode="drop")


def histogram_bin_edges(a, bins=10, range=None, weights=None):
    """The edges of `bins` equal bins over `range`, by default that of `a`; or `bins` if these are
    edges."""
    if isinstance(bins, str):
        raise NotImplementedError("string values for `bins` not implemented.")
    check_arraylike("histogram_bin_edges", a, bins)
    a = asarray(a)
    dtype = dtypes.to_inexact_dtype(a.dtype)
    if np.ndim(bins) == 1:
        return asarray(bins, dtype)
    bins = concrete_or_error(operator.index, bins, "bins argument of histogram_bin_edges")
    low, high = array([reduce_min(a), reduce_max(a)] if range is None else range, dtype=dtype)
    is_point = low == high
    return linspace(where(is_point, low - 0.5, low), where(is_point, high + 0.5, high), bins + 1,
                    dtype=dtype)


def histogram(a, bins=10, range=None, weights=None, density=None):
    """(counts, edges): how many elements fall into each bin, the last of which includes its end.

    With `weights` their sums; with `density` divided by the total and the widths of bins.
    """
    check_arraylike("histogram", a, bins)
    if weights is None:
        a, = promote_dtypes_inexact(a)
        weights = full_like(a, 1)
    elif np.shape(a) != np.shape(weights):
        raise ValueError("weights should have the same shape as a.")
    a, weights = promote_dtypes_inexact(a, weights)
    edges = histogram_bin_edges(a, bins, range, weights)
    n = edges.shape[0]
    place = where(a == edges[-1], n - 1, searchsorted(edges, a, side="right"))
    counts = zeros(n, weights.dtype).at[place].add(weights)[1:]
    if density:
        counts = counts / (edges[1:] - edges[:-1]) / reduce_sum(counts)
    return counts, edges


def histogram2d(x, y, bins=10, range=None, weights=None, density=None):
    """(counts, x edges, y edges) of points in the plane; `bins` and `range` as pairs or one for
    both."""
    edges = np.ndim(bins) == 1 and np.shape(bins)[0] not in (1, 2)
    x, y = ensure_arraylike("histogram2d", x, y)
    points = concatenate([lax.expand_dims(ravel(a), (1,)) for a in (x, y)], axis=1)
    counts, edges = histogramdd(points, [bins, bins] if edges else bins, range, weights, density)
    return counts, *edges


def histogramdd(sample, bins=10, range=None, weights=None, density=None):
    """(counts, list of edges) of the rows of `sample`, points in as many dimensions as columns.

    `bins` is a number of bins for all dimensions, or for each a number or vector of edges.
    """
    check_arraylike("histogramdd", sample)
    sample, = promote_dtypes_inexact(sample)
    n, dims = sample.shape
    if range is not None and len(range) != dims:
        raise ValueError("For sample.shape=(N, D), `range` argument must have length D.")
    if weights is not None and np.shape(weights) != (n,):
        raise ValueError("should have one weight for each sample.")
    bins = [bins] * dims if np.ndim(bins) == 0 and not isinstance(bins, list) else bins
    if len(bins) != dims:
        raise ValueError("should be a bin for each dimension.")
    columns = [lax.index_in_dim(sample, i, 1, keepdims=False) for i in np.arange(dims)]
    edges = [histogram_bin_edges(c, b, None if range is None else range[i])
             for i, (c, b) in enumerate(zip(columns, bins))]
    return count_cells(columns, edges, weights, density), edges


def count_cells(columns, edges, weights, density):
    """How many points lie in each cell of the grid of edges; those outside it go to no cell."""
    places = [where(c == e[-1], e.shape[0] - 1, searchsorted(e, c, side="right")) - 1
              for c, e in zip(columns, edges)]
    shape = [e.shape[0] - 1 for e in edges]
    weights = full_like(columns[0], 1, int) if weights is None else asarray(weights)
    counts = zeros(shape, weights.dtype).at[tuple(places)].add(
        weights, mode="drop", wrap_negative_indices=False)
    if density:
        counts = counts / reduce_sum(counts)
        for i, e in enumerate(edges):
            widths = e[1:] - e[:-1]
            counts = counts / reshape(widths, [-1 if i == j else 1 for j in np.arange(len(edges))])
    return counts


# --- Distinct elements ----------------------------------------------------------------------------

SIZE_HINT = ("To make this function compatible with JIT and other transforms, it is necessary to "
             "specify a concrete value for the `size` argument.")


def unique(ar, return_index=False, return_inverse=False, return_counts=False, axis=None, *,
           equal_nan=True, size=None, fill_value=None, sorted=True):
    """The distinct elements of `ar` in order, or the distinct parts along `axis`.

    Optionally also the index of each one's first occurrence, the index of the result for each
    element of `ar`, and counts. With `size` the result has that many, filled up with `fill_value`
    (default: the smallest).
    """
    ar = ensure_arraylike("unique", ar)
    if size is None:
        ar = concrete_or_error(asarray, ar, "The error arose for the first argument of "
                                            "jnp.unique(). "
                               + SIZE_HINT)
    else:
        size = concrete_or_error(operator.index, size, "'size' argument of jnp.unique(). "
                                 + SIZE_HINT)
    shape = ar.shape
    flat, along = (ravel(ar), 0) if axis is None else (ar, canonicalize_axis(axis, ar.ndim))
    if flat.shape[along] == 0 and size and fill_value is None:
        raise ValueError("jnp.unique: for zero-sized input with nonzero size argument, fill_value "
                         "must be specified")
    out = Distinct(moveaxis(flat, along, 0), equal_nan, size)
    results = [moveaxis(out.values(fill_value), 0, along)]
    if return_index:
        results.append(out.indices())
    if return_inverse:
        inverse = out.inverse()
        results.append(reshape(inverse, shape) if axis is None else inverse)
    if return_counts:
        results.append(out.counts())
    return results[0] if len(results) == 1 else tuple(results)


class Distinct:
    """The distinct rows of `x`: `order` sorts the rows, `first` marks the first of each kind in
    it."""

    def __init__(self, x, equal_nan, size):
        if dtypes.issubdtype(x.dtype, np.complexfloating):
            x = where(isnan(x), np.array(np.nan, x.dtype), x)
        self.rows = x.shape[0]
        columns = reshape(x, (self.rows, prod(x.shape[1:]))) if x.size else x
        self.order = sorting_order(columns) if x.size else zeros(min(self.rows, 1), int)
        self.sorted = take(x, self.order, axis=0) if x.size else cut(x, 0, min(self.rows, 1), 0)
        self.first = marks_of_first(self.sorted, equal_nan) if x.size \
            else ones(self.order.shape[0], bool)
        self.size = size
        self.places, = nonzero(self.first, size=size)

    def values(self, fill_value):
        if not self.sorted.shape[0]:
            shape = (self.size or 0, *self.sorted.shape[1:])
            return full(shape, 0 if fill_value is None else fill_value, self.sorted.dtype)
        found = take(self.sorted, self.places, axis=0)
        if self.size is None or fill_value is None:
            return found
        is_real = arange(self.size) < reduce_sum(self.first)
        is_real = lax.expand_dims(is_real, range(1, found.ndim))
        return where(is_real, found, convert(fill_value, found.dtype))

    def indices(self):
        return take(self.order, self.places) if self.order.shape[0] else self.order

    def inverse(self):
        if not self.sorted.size:
            return zeros(self.rows, int)
        return zeros(self.rows, int).at[self.order].set(cumsum(self.first.astype(int)) - 1)

    def counts(self):
        if not self.sorted.size:
            return full((self.order.shape[0],), self.rows, int)
        if self.size is None:
            ends = concatenate([self.places[1:], array([self.rows])])
            return ends - self.places
        starts, = nonzero(self.first, size=self.size + 1, fill_value=self.rows)
        return starts[1:] - starts[:-1]


def sorting_order(columns):
    return lexsort([lax.index_in_dim(columns, j, 1, keepdims=False)
                    for j in reversed(range(columns.shape[1]))])


def marks_of_first(rows, equal_nan):
    """Which sorted rows differ from the one before."""
    this, before = cut(rows, 1, None, 0), cut(rows, 0, -1, 0)
    differs = this != before
    if equal_nan and dtypes.issubdtype(rows.dtype, np.inexact):
        differs = differs & ~(isnan(this) & isnan(before))
    differs = reduce_any(differs, axis=tuple(range(1, rows.ndim)))
    return concatenate([ones(min(rows.shape[0], 1), bool), differs])


class UniqueAllResult(NamedTuple):
    """Result of `unique_all`."""
    values: Array
    indices: Array
    inverse_indices: Array
    counts: Array


class UniqueCountsResult(NamedTuple):
    """Result of `unique_counts`."""
    values: Array
    counts: Array


class UniqueInverseResult(NamedTuple):
    """Result of `unique_inverse`."""
    values: Array
    inverse_indices: Array


def unique_all(x, /, *, size=None, fill_value=None):
    """Distinct elements, first indices, inverse and counts; NaNs are distinct. See `unique`."""
    return UniqueAllResult(*unique(x, True, True, True, equal_nan=False, size=size,
                                   fill_value=fill_value))


def unique_counts(x, /, *, size=None, fill_value=None):
    """Distinct elements and counts; NaNs are distinct. See `unique`."""
    return UniqueCountsResult(*unique(x, return_counts=True, equal_nan=False, size=size,
                                      fill_value=fill_value))


def unique_inverse(x, /, *, size=None, fill_value=None):
    """Distinct elements and inverse; NaNs are distinct. See `unique`."""
    return UniqueInverseResult(*unique(x, return_inverse=True, equal_nan=False, size=size,
                                       fill_value=fill_value))


def unique_values(x, /, *, size=None, fill_value=None):
    """Distinct elements; NaNs are distinct. See `unique`."""
    return unique(x, equal_nan=False, size=size, fill_value=fill_value)


# --- Sets -----------------------------------------------------------------------------------------

def known_vector(x, name):
    return ravel(concrete_or_error(asarray, asarray(x), f"The error arose in {name}(). "
                                   + SIZE_HINT))


def isin(element, test_elements, assume_unique=False, invert=False, *, method="auto"):
    """Whether each element is among the test elements."""
    check_arraylike("isin", element, test_elements)
    if method not in ("auto", "compare_all", "binary_search", "sort"):
        raise ValueError(f"method={method!r} is not implemented; options are 'compare_all', "
                         "'binary_search', 'sort', and 'auto'")
    element, test = promote_dtypes(asarray(element), asarray(test_elements))
    test = ravel(test)
    if not test.size:
        found = zeros(element.shape, bool)
    else:
        found = reduce_any(lax.expand_dims(element, (element.ndim,)) == test, axis=-1)
    return ~found if invert else found


def union1d(ar1, ar2, *, size=None, fill_value=None):
    """The sorted distinct elements of both arrays."""
    check_arraylike("union1d", ar1, ar2)
    if size is None:
        ar1, ar2 = known_vector(ar1, "union1d"), known_vector(ar2, "union1d")
    return unique(concatenate([ravel(ar1), ravel(ar2)]), size=size, fill_value=fill_value)


def intersect1d(ar1, ar2, assume_unique=False, return_indices=False, *, size=None, fill_value=None):
    """The sorted distinct elements that are in both arrays; optionally their first indices in
    each."""
    check_arraylike("intersect1d", ar1, ar2)
    ar1, ar2 = (ravel(x) for x in promote_dtypes(asarray(ar1), asarray(ar2)))
    if size is None:
        ar1, ar2 = known_vector(ar1, "intersect1d"), known_vector(ar2, "intersect1d")
    first, second = (SortedSet(x) for x in (ar1, ar2))
    common = first.is_first & isin(first.values, ar2)
    places, = nonzero(common, size=size)
    chosen = take(first.values, places)
    filler = None if size is None else arange(size) < reduce_sum(common)
    values = chosen if size is None else where(filler, chosen, convert(
        default_filler(first, common, fill_value), chosen.dtype))
    if not return_indices:
        return values
    index1 = take(first.order, places)
    index2 = take(second.order, searchsorted(second.values, chosen), mode="clip")
    if size is None:
        return values, index1, index2
    return values, where(filler, index1, ar1.size), where(filler, index2, ar2.size)


class SortedSet:
    """A vector in order, the order, and which elements are the first of their kind."""

    def __init__(self, x):
        self.order = argsort(x)
        self.values = take(x, self.order)
        self.is_first = marks_of_first(self.values, True)


def default_filler(first, common, fill_value):
    if fill_value is not None:
        return fill_value
    place, = nonzero(common, size=1)
    return take(first.values, place)[0] if first.values.size else 0


def setdiff1d(ar1, ar2, assume_unique=False, *, size=None, fill_value=None):
    """The sorted distinct elements of ar1 that are not in ar2 (as they come, if
    `assume_unique`)."""
    check_arraylike("setdiff1d", ar1, ar2)
    ar1, ar2 = ravel(ar1), ravel(ar2)
    if size is None:
        ar1, ar2 = known_vector(ar1, "setdiff1d"), known_vector(ar2, "setdiff1d")
    values, is_first = ar1, ones(ar1.shape, bool)
    if not assume_unique:
        first = SortedSet(ar1)
        values, is_first = first.values, first.is_first
    kept = is_first & isin(values, ar2, invert=True)
    return chosen_elements(values, kept, size, 0 if fill_value is None else fill_value)


def setxor1d(ar1, ar2, assume_unique=False, *, size=None, fill_value=None):
    """The sorted distinct elements that are in exactly one of the arrays."""
    check_arraylike("setxor1d", ar1, ar2)
    ar1, ar2 = (ravel(x) for x in promote_dtypes(asarray(ar1), asarray(ar2)))
    if size is None:
        ar1, ar2 = known_vector(ar1, "setxor1d"), known_vector(ar2, "setxor1d")
    both = SortedSet(concatenate([ar1, ar2]))
    kept = both.is_first & (isin(both.values, ar1) ^ isin(both.values, ar2))
    if size is not None and fill_value is None:
        fill_value = default_filler(both, kept, None)
    return chosen_elements(both.values, kept, size, fill_value)


def chosen_elements(values, kept, size, fill_value):
    places, = nonzero(kept, size=size)
    chosen = take(values, places)
    if size is None:
        return chosen
    if not values.size:
        return full((size,), fill_value, values.dtype)
    return where(arange(size) < reduce_sum(kept), chosen, convert(fill_value, values.dtype))
