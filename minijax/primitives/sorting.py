# Exported from notebooks/ref_sorting.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: primitives. Home: ref_sorting. In JAX: jax/_src/lax/lax.py.

Sorting along an axis, by one key or several, and the largest elements. A derivative of something
sorted is the same rearrangement of the tangents, so these stand above indexing.
"""

import operator

import numpy as np

from minijax import dtypes
from minijax.avals import typeof
from minijax.core import Primitive
from minijax.lower_sorting import lower_sort, lower_top_k
from minijax.primitives.elementwise import ANY, ORDERED
from minijax.primitives.indexing import GatherDimensionNumbers, GatherScatterMode, gather
from minijax.primitives.structural import broadcasted_iota, canonicalize_axis, expand_dims
from minijax.rules import (
    Zero, check_dtypes, def_batch_along, def_checked_impl, def_not_linear, is_zero,
)

__all__ = [
    "take_along", "sort_p", "sort", "sort_key_val", "sort_together", "sort_key", "sort_aval",
    "sort_jvp", "top_k_p", "top_k", "largest", "places_of_largest", "ordered_integers",
    "top_k_aval", "top_k_jvp",
]


# --- Taking elements along an axis ----------------------------------------------------------------

def take_along(x, indices, axis):
    """x[…, indices[…, i, …], …]: along `axis` the elements at `indices`, the other axes in step."""
    ndim = typeof(x).ndim
    others = tuple([i for i in range(ndim) if i != axis])
    numbers = GatherDimensionNumbers(
        offset_dims=(), collapsed_slice_dims=(axis,), start_index_map=(axis,),
        operand_batching_dims=others, start_indices_batching_dims=others)
    return gather(x, expand_dims(indices, [ndim]), numbers, slice_sizes=(1,) * ndim,
                  mode=GatherScatterMode.PROMISE_IN_BOUNDS)


# --- Sorting --------------------------------------------------------------------------------------

sort_p = Primitive("sort", multiple_results=True)

def sort(operand, dimension=-1, is_stable=True, num_keys=1):
    """The operand in ascending order along an axis; or several operands, by the first `num_keys`.

    NaNs come last, and -0.0 equals 0.0. A list or tuple of operands of one shape is rearranged
    together, in the order of the first operand, ties by the second, …; the result is a tuple.
    """
    several = isinstance(operand, (list, tuple))
    operands = tuple(operand) if several else (operand,)
    if not 1 <= num_keys <= len(operands):
        raise ValueError(f"sort of {len(operands)} operands by num_keys={num_keys} of them")
    out = sort_p.bind(*operands, dimension=canonicalize_axis(dimension, typeof(operands[0]).ndim),
                      is_stable=bool(is_stable), num_keys=num_keys)
    return tuple(out) if several else out[0]

def sort_key_val(keys, values, dimension=-1, is_stable=True):
    """The keys in ascending order along an axis, and the values in the order of their keys."""
    return sort((keys, values), dimension, is_stable, num_keys=1)

# A stable order is an unstable one too, so `is_stable` makes no difference here.
def sort_together(*arrays, dimension, is_stable, num_keys):
    keys = [sort_key(a) for a in arrays[:num_keys]]
    if len(arrays) == 1:
        return [np.sort(keys[0], axis=dimension, kind="stable").astype(arrays[0].dtype)]
    order = np.lexsort(keys[::-1], axis=dimension)
    return [np.take_along_axis(a, order, dimension) for a in arrays]

def sort_key(x):
    # ml_dtypes does not sort NaN to the end, NumPy's own floats do
    return x.astype(dtypes.computed_in.get(x.dtype, x.dtype), copy=False)

def sort_aval(*avals, dimension, is_stable, num_keys):
    for a in avals:
        check_dtypes(sort_p, [a], ANY)
    if any(a.shape != avals[0].shape for a in avals):
        raise TypeError(f"sort wants operands of one shape, got {[a.shape for a in avals]}")
    return list(avals)

def sort_jvp(primals, tangents, *, dimension, is_stable, num_keys):
    places = broadcasted_iota(np.int32, typeof(primals[0]).shape, dimension)
    *outs, order = sort_p.bind(*primals, places, dimension=dimension, is_stable=is_stable,
                               num_keys=num_keys)
    return outs, [Zero.like(out) if is_zero(t) else take_along(t, order, dimension)
                  for t, out in zip(tangents, outs)]

def_checked_impl(sort_p, sort_together)
sort_p.def_abstract_eval(sort_aval)
sort_p.def_jvp(sort_jvp)
def_not_linear(sort_p)
def_batch_along(sort_p, "dimension")
sort_p.def_lowering(lower_sort)


# --- The largest ----------------------------------------------------------------------------------

top_k_p = Primitive("top_k", multiple_results=True)

def top_k(operand, k, *, axis=-1):
    """The k largest elements along an axis in descending order, and their indices (int32).

    Of equal elements the first comes first. NaN is larger than all numbers, 0.0 larger than -0.0.
    """
    axis = canonicalize_axis(axis, typeof(operand).ndim)
    return top_k_p.bind(operand, k=operator.index(k), axis=axis)

def largest(x, *, k, axis):
    keys = np.moveaxis(ordered_integers(x), axis, -1)
    places = places_of_largest(keys, k)
    # ~ reverses the order of integers (-x would overflow), so a stable sort finds first ones first
    order = np.argsort(~np.take_along_axis(keys, places, -1), axis=-1, kind="stable")
    indices = np.moveaxis(np.take_along_axis(places, order, -1), -1, axis)
    return [np.take_along_axis(x, indices, axis), indices.astype(np.int32)]

def places_of_largest(keys, k):
    """Where the k largest keys of each row are, first to last; of equal keys the first ones."""
    *rows, n = keys.shape
    if k == 0:
        return np.zeros((*rows, 0), np.intp)
    bound = np.partition(keys, n - k, axis=-1)[..., n - k, None]
    above, equal = keys > bound, keys == bound
    room = k - np.sum(above, axis=-1, keepdims=True)
    chosen = above | (equal & (np.cumsum(equal, axis=-1) <= room))
    return np.nonzero(chosen)[-1].reshape(*rows, k)

def ordered_integers(x):
    """Integers (or bools) in the order of x: a float's bits, those of negative ones flipped."""
    if not dtypes.issubdtype(x.dtype, np.floating):
        return x
    x = x.astype(dtypes.computed_in.get(x.dtype, x.dtype), copy=False)
    bits = x.view(f"i{x.dtype.itemsize}")
    return np.where(bits < 0, bits ^ np.iinfo(bits.dtype).max, bits)

def top_k_aval(x, *, k, axis):
    check_dtypes(top_k_p, [x], ORDERED)
    if not 0 <= k <= x.shape[axis]:
        raise ValueError(f"top_k of {k} among {x.shape[axis]}: shape {x.shape}, axis {axis}")
    shape = (*x.shape[:axis], k, *x.shape[axis + 1:])
    return [x.update(shape=shape), x.update(shape=shape, dtype=np.int32)]

def top_k_jvp(primals, tangents, *, k, axis):
    values, indices = top_k(*primals, k, axis=axis)
    t = tangents[0]
    t_out = Zero.like(values) if is_zero(t) else take_along(t, indices, axis)
    return [values, indices], [t_out, Zero.like(indices)]

def_checked_impl(top_k_p, largest)
top_k_p.def_abstract_eval(top_k_aval)
top_k_p.def_jvp(top_k_jvp)
def_not_linear(top_k_p)
def_batch_along(top_k_p, "axis")
top_k_p.def_lowering(lower_top_k)
