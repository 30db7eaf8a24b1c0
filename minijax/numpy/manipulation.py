# Exported from notebooks/ref_numpy_arrays.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: numpy. Home: ref_numpy_arrays. In JAX: jax/_src/numpy/lax_numpy.py.

Functions that move, repeat, join, cut and pad arrays, and the few that combine neighbours: diff,
gradient, convolve. Each is NumPy's signature over the structural primitives.
"""

import operator
import re
from functools import wraps
from math import prod

import numpy as np

from minijax import dtypes, lax
from minijax.api import vmap
from minijax.array import Array, as_array
from minijax.core import Tracer, concrete_or_error
from minijax.numpy.creation import array, asarray, broadcast_trailing, linspace, zeros_like
from minijax.numpy.promotion import (
    check_arraylike, convert, ensure_arraylike, promote_dtypes, promote_dtypes_inexact,
)
from minijax.numpy.reductions import cumsum, max as reduce_max, mean, median, min as reduce_min, sum
from minijax.numpy.ufuncs import (
    absolute, conjugate, not_equal, remainder, round, subtract, where as where3,
)
from minijax.primitives.structural import canonicalize_axis, canonicalize_shape
from minijax.tracebacks import api_boundary
from minijax.tree_util import tree_map

__all__ = [
    "as_axes", "replaced", "cut", "reshape", "completed_shape", "ravel", "transpose",
    "permute_dims", "matrix_transpose", "swapaxes", "moveaxis", "rollaxis", "squeeze",
    "expand_dims", "atleast_1d", "atleast_2d", "atleast_3d", "at_least", "with_leading_axes",
    "three_axes", "broadcast_shapes", "broadcast_to", "broadcast_arrays", "arrays_of",
    "concatenate", "concat", "stack", "unstack", "vstack", "hstack", "dstack", "column_stack",
    "block", "block_and_depth", "append", "split", "array_split", "split_by", "part_sizes",
    "sizes_between", "vsplit", "hsplit", "dsplit", "trim_zeros", "tile", "tile_to_size", "repeat",
    "repeat_each", "repeat_to_length", "parts_at", "resize", "flip", "flipud", "fliplr", "rot90",
    "roll", "roll_axis", "PAD_OPTIONS", "pad", "pairs_for", "concrete_tree", "check_pad_widths",
    "pad_constant", "asarray_of_pairs", "pad_maker", "STATISTICS", "pad_edge", "pad_empty",
    "pad_wrap", "mirror_maker", "pad_mirror", "pad_ramp", "pad_statistic", "pad_by_function",
    "diff", "edge_part", "ediff1d", "gradient", "gradient_along", "trapezoid", "spacing_last",
    "sum_of_trapezoids", "unwrap", "convolve", "correlate", "conv_operands", "sliding_dot",
    "apply_along_axis", "vectorize", "parse_signature", "map_items", "check_item_axes", "checked",
    "apply_over_axes", "packbits", "bit_places", "unpackbits",
]


# --- Arguments ------------------------------------------------------------------------------------

def as_axes(axis, ndim):
    """One axis or several, as a tuple of axes counted from the front."""
    axes = axis if isinstance(axis, (tuple, list)) else (axis,)
    return tuple([canonicalize_axis(operator.index(i), ndim) for i in axes])


def replaced(values, place, value):
    return (*values[:place], value, *values[place + 1:])


def cut(x, start, stop, axis):
    """x[start:stop] along an axis; the bounds may be None or negative."""
    start, stop, _ = slice(start, stop).indices(x.shape[axis])
    stop = max(start, stop)
    if (start, stop) == (0, x.shape[axis]):
        return x
    starts, limits = (0,) * x.ndim, x.shape
    return lax.slice(x, replaced(starts, axis, start), replaced(limits, axis, stop))


# --- Shape and order of axes ----------------------------------------------------------------------

def reshape(a, shape, order="C", *, copy=None):
    """The same elements in another shape, one size of which may be -1: what is left over.

    They are read and written in row-major order ('C'), or with the first axis fastest ('F').
    """
    a = ensure_arraylike("reshape", a)
    shape = completed_shape(a, shape)
    if order == "C":
        return lax.reshape(a, shape)
    if order == "F":
        return transpose(lax.reshape(transpose(a), shape[::-1]))
    if order == "A":
        raise NotImplementedError("np.reshape order=A is not implemented.")
    raise ValueError(f"Unexpected value for 'order' argument: {order}.")


def completed_shape(a, shape):
    """A shape with -1 replaced; TypeError if the elements don't fill it."""
    shape = canonicalize_shape(shape)
    unknown = [i for i, n in enumerate(shape) if n == -1]
    if len(unknown) > 1:
        raise TypeError(f"can only specify one unknown axis size with a `-1` value, got {shape}")
    if not unknown:
        if prod(shape) != a.size:
            raise TypeError(f"cannot reshape array of shape {a.shape} (size {a.size}) into shape "
                            f"{shape} (size {prod(shape)})")
        return shape
    rest = prod(replaced(shape, unknown[0], 1))
    if rest == 0 or a.size % rest:
        raise TypeError(f"cannot reshape array of shape {a.shape} (size {a.size}) into shape "
                        f"{shape}")
    return replaced(shape, unknown[0], a.size // rest)


def ravel(a, order="C"):
    """The elements along one axis."""
    if order == "K":
        raise NotImplementedError("Ravel not implemented for order='K'.")
    a = ensure_arraylike("ravel", a)
    return reshape(a, (a.size,), order)


def transpose(a, axes=None):
    """The axes of `a` in the order `axes`, reversed if None."""
    a = ensure_arraylike("transpose", a)
    if axes is None:
        return lax.transpose(a, range(a.ndim)[::-1])
    return lax.transpose(a, [canonicalize_axis(i, a.ndim) for i in axes])


def permute_dims(a, /, axes):
    """The axes of `a` in the order `axes`."""
    return transpose(a, axes)


def matrix_transpose(x, /):
    """`x` with its last two axes swapped."""
    x = ensure_arraylike("matrix_transpose", x)
    if x.ndim < 2:
        raise ValueError("x must be at least two-dimensional for matrix_transpose; got "
                         f"ndim={x.ndim}")
    return swapaxes(x, -1, -2)


def swapaxes(a, axis1, axis2):
    """`a` with two axes swapped."""
    a = ensure_arraylike("swapaxes", a)
    order = list(range(a.ndim))
    i, j = canonicalize_axis(axis1, a.ndim), canonicalize_axis(axis2, a.ndim)
    order[i], order[j] = j, i
    return lax.transpose(a, order)


def moveaxis(a, source, destination):
    """`a` with the axes `source` moved to the places `destination`, the others kept in order."""
    a = ensure_arraylike("moveaxis", a)
    source, destination = as_axes(source, a.ndim), as_axes(destination, a.ndim)
    if len(source) != len(destination):
        raise ValueError("Inconsistent number of elements: source and destination must have the "
                         f"same number of axes, got {len(source)} and {len(destination)}")
    order = [i for i in range(a.ndim) if i not in source]
    for place, axis in sorted(zip(destination, source)):
        order.insert(place, axis)
    return lax.transpose(a, order)


def rollaxis(a, axis, start=0):
    """`a` with one axis moved before the axis `start`."""
    a = ensure_arraylike("rollaxis", a)
    start = concrete_or_error(operator.index, start, "'start' argument of jnp.rollaxis()")
    axis = canonicalize_axis(axis, a.ndim)
    if not -a.ndim <= start <= a.ndim:
        raise ValueError(f"start={start} must satisfy {-a.ndim}<=start<={a.ndim}")
    start += a.ndim if start < 0 else 0
    return moveaxis(a, axis, start - (start > axis))


def squeeze(a, axis=None):
    """`a` without axes of size 1: all of them, or those named, which must have size 1."""
    a = ensure_arraylike("squeeze", a)
    if axis is None:
        return lax.squeeze(a, [i for i, n in enumerate(a.shape) if n == 1])
    return lax.squeeze(a, axis if isinstance(axis, (tuple, list)) else (axis,))


def expand_dims(a, axis):
    """`a` with new axes of size 1, which stand at `axis` of the result."""
    a = ensure_arraylike("expand_dims", a)
    return lax.expand_dims(a, axis if isinstance(axis, (tuple, list)) else (axis,))


def atleast_1d(*arys):
    """The arguments with at least one axis; an array for one argument, a list for more."""
    return at_least("atleast_1d", arys, lambda x: x if x.ndim else lax.expand_dims(x, (0,)))


def atleast_2d(*arys):
    """The arguments with at least two axes, new ones in front."""
    return at_least("atleast_2d", arys, lambda x: with_leading_axes(x, 2))


def atleast_3d(*arys):
    """The arguments with at least three axes; a vector's axis becomes the middle one."""
    return at_least("atleast_3d", arys, three_axes)


def at_least(name, arys, convert_one):
    if len(arys) == 1 and isinstance(arys[0], (list, tuple)):
        arys = arys[0]
        return [convert_one(ensure_arraylike(name, x)) for x in arys]
    out = [convert_one(ensure_arraylike(name, x)) for x in arys]
    return out[0] if len(out) == 1 else out


def with_leading_axes(x, ndim):
    return lax.expand_dims(x, range(ndim - x.ndim)) if x.ndim < ndim else x


def three_axes(x):
    new = {0: (0, 1, 2), 1: (0, 2), 2: (2,)}.get(x.ndim)
    return lax.expand_dims(x, new) if new else x


# --- Broadcasting ---------------------------------------------------------------------------------

broadcast_shapes = lax.broadcast_shapes


def broadcast_to(array, shape):
    """`array` repeated to fill `shape`, its axes aligned with the last ones."""
    return broadcast_trailing(ensure_arraylike("broadcast_to", array), canonicalize_shape(shape))


def broadcast_arrays(*args):
    """All arguments repeated to their common shape: a list."""
    check_arraylike("broadcast_arrays", *args)
    shape = broadcast_shapes(*[np.shape(a) for a in args])
    return [broadcast_trailing(asarray(a), shape) for a in args]


# --- Joining --------------------------------------------------------------------------------------

def arrays_of(name, arrays):
    """The arguments of a joining function as a list of arrays; an array counts as its parts."""
    if isinstance(arrays, (Array, Tracer, np.ndarray)):
        return [asarray(a) for a in asarray(arrays)]
    if not isinstance(arrays, (list, tuple)):
        raise TypeError(f"{name} requires a sequence of arrays, got {type(arrays).__name__}")
    check_arraylike(name, *arrays)
    return [asarray(a) for a in arrays]


def concatenate(arrays, axis=0, dtype=None):
    """Join arrays along an existing axis (flat if None); dtypes are promoted, or `dtype`."""
    arrays = arrays_of("concatenate", arrays)
    if not arrays:
        raise ValueError("Need at least one array to concatenate.")
    if axis is None:
        return concatenate([ravel(a) for a in arrays], 0, dtype)
    if arrays[0].ndim == 0:
        raise ValueError("Zero-dimensional arrays cannot be concatenated.")
    axis = canonicalize_axis(axis, arrays[0].ndim)
    arrays = promote_dtypes(*arrays) if dtype is None else [asarray(a, dtype) for a in arrays]
    return lax.concatenate(arrays, axis)


def concat(arrays, /, *, axis=0):
    """Join arrays along an existing axis (flat if None)."""
    return concatenate(arrays, axis)


def stack(arrays, axis=0, out=None, dtype=None):
    """Join arrays of one shape along a new axis."""
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.stack is not supported.")
    arrays = arrays_of("stack", arrays)
    if not arrays:
        raise ValueError("Need at least one array to stack.")
    if len({a.shape for a in arrays}) > 1:
        raise ValueError("All input arrays must have the same shape.")
    axis = canonicalize_axis(axis, arrays[0].ndim + 1)
    return concatenate([lax.expand_dims(a, (axis,)) for a in arrays], axis, dtype)


def unstack(x, /, *, axis=0):
    """The parts of `x` along an axis: a tuple of arrays without it."""
    x = ensure_arraylike("unstack", x)
    if x.ndim == 0:
        raise ValueError("Unstack requires arrays with rank > 0, not a scalar.")
    axis = canonicalize_axis(axis, x.ndim)
    return tuple([lax.index_in_dim(x, i, axis, keepdims=False) for i in range(x.shape[axis])])


def vstack(tup, dtype=None):
    """Join rows: vectors become rows, then along axis 0."""
    return concatenate([with_leading_axes(a, 2) for a in arrays_of("vstack", tup)], 0, dtype)


def hstack(tup, dtype=None):
    """Join columns: along axis 1, vectors along their axis."""
    arrays = [with_leading_axes(a, 1) for a in arrays_of("hstack", tup)]
    return concatenate(arrays, 0 if arrays[0].ndim == 1 else 1, dtype)


def dstack(tup, dtype=None):
    """Join along the third axis."""
    return concatenate([three_axes(a) for a in arrays_of("dstack", tup)], 2, dtype)


def column_stack(tup):
    """Join columns: vectors become columns, then along axis 1."""
    columns = [with_leading_axes(a, 2).T if a.ndim < 2 else a
               for a in arrays_of("column_stack", tup)]
    return concatenate(columns, axis=1)


def block(arrays):
    """The array made of nested lists of blocks; the innermost lists run along the last axis."""
    return block_and_depth(arrays)[0]


def block_and_depth(xs):
    if isinstance(xs, tuple):
        raise ValueError(f"jax.numpy.block does not allow tuples, got {xs}")
    if not isinstance(xs, list):
        return asarray(xs), 1
    if not xs:
        raise ValueError("jax.numpy.block does not allow empty list arguments")
    blocks, depths = zip(*[block_and_depth(x) for x in xs])
    if len(set(depths)) > 1:
        raise ValueError("Mismatched list depths in jax.numpy.block")
    rank = max(depths[0], *[x.ndim for x in blocks])
    return concatenate([with_leading_axes(x, rank) for x in blocks], axis=-depths[0]), depths[0] + 1


def append(arr, values, axis=None):
    """`arr` with `values` after it along `axis`; both flat if None."""
    if axis is None:
        return concatenate([ravel(arr), ravel(values)])
    return concatenate([arr, values], axis)


# --- Cutting --------------------------------------------------------------------------------------

def split(ary, indices_or_sections, axis=0):
    """Parts of `ary` along an axis: that many of equal size, or cut at the indices."""
    return split_by("split", ary, indices_or_sections, axis)


def array_split(ary, indices_or_sections, axis=0):
    """As `split`; if sizes can't be equal, the first parts are larger by one."""
    return split_by("array_split", ary, indices_or_sections, axis)


def split_by(name, ary, indices_or_sections, axis):
    ary = ensure_arraylike(name, ary)
    axis = canonicalize_axis(concrete_or_error(operator.index, axis,
                                               f"in jax.numpy.{name} argument `axis`"), ary.ndim)
    return list(lax.split(ary, part_sizes(name, ary.shape[axis], indices_or_sections), axis))


def part_sizes(name, size, indices_or_sections):
    known = lambda x: concrete_or_error(operator.index, x, f"in jax.numpy.{name} argument 1")
    if np.ndim(indices_or_sections):
        ends = [*[known(i) for i in indices_or_sections], size]
        return sizes_between([slice(None, i).indices(size)[1] for i in ends])
    count = known(indices_or_sections)
    each, rest = divmod(size, count)
    if rest and name != "array_split":
        raise ValueError(f"array split does not result in an equal division: rest is {rest}")
    return [each + 1] * rest + [each] * (count - rest)


def sizes_between(ends):
    return [max(end - start, 0) for start, end in zip([0, *ends], ends)]


def vsplit(ary, indices_or_sections):
    """`split` along axis 0."""
    return split_by("vsplit", ary, indices_or_sections, 0)


def hsplit(ary, indices_or_sections):
    """`split` along axis 1, a vector along its only axis."""
    ary = ensure_arraylike("hsplit", ary)
    return split_by("hsplit", ary, indices_or_sections, 0 if ary.ndim == 1 else 1)


def dsplit(ary, indices_or_sections):
    """`split` along axis 2."""
    return split_by("dsplit", ary, indices_or_sections, 2)


def trim_zeros(filt, trim="fb", axis=None):
    """A known array without the zeros at the front ('f') and back ('b') of the axes (default
    all)."""
    filt = ensure_arraylike("trim_zeros", filt)
    known = concrete_or_error(np.asarray, filt,
                              "Error arose in the `filt` argument of trim_zeros()")
    axes = range(filt.ndim) if axis is None else as_axes(axis, filt.ndim)
    for i in axes:
        places = np.flatnonzero(known.any(axis=tuple(j for j in range(filt.ndim) if j != i)))
        if not len(places):
            filt = cut(filt, 0, 0, i)
            continue
        filt = cut(filt, int(places[0]) if "f" in trim.lower() else 0,
                   int(places[-1]) + 1 if "b" in trim.lower() else None, i)
    return filt


# --- Repeating ------------------------------------------------------------------------------------

def tile(A, reps):
    """Copies of `A` laid out side by side, reps[i] of them along axis i."""
    A = ensure_arraylike("tile", A)
    reps = tuple(reps) if np.iterable(reps) else (reps,)
    reps = [concrete_or_error(operator.index, r, "'reps' argument of jnp.tile") for r in reps]
    A = with_leading_axes(A, len(reps))
    reps = [1] * (A.ndim - len(reps)) + reps
    pairs = [n for pair in zip(reps, A.shape) for n in pair]
    spread = lax.broadcast_in_dim(A, pairs, range(1, 2 * A.ndim, 2))
    return lax.reshape(spread, [r * n for r, n in zip(reps, A.shape)])


def tile_to_size(a, size):
    """The vector `a` repeated, or cut, to a size."""
    if a.size < size:
        a = tile(a, -(-size // a.size))
    return a if a.size == size else cut(a, 0, size, 0)


def repeat(a, repeats, axis=None, *, total_repeat_length=None):
    """Every part of `a` along `axis` (flat if None) `repeats` times: a number, or one a part.

    The size of the result must be known: either `repeats` is, or `total_repeat_length` gives it;
    then parts are cut off, or the last one repeated, to fit.
    """
    check_arraylike("repeat", a)
    a, axis = (ravel(a), 0) if axis is None else (asarray(a), axis)
    axis = concrete_or_error(operator.index, axis, "'axis' argument of jnp.repeat()")
    axis = canonicalize_axis(axis, max(a.ndim, 1))
    if total_repeat_length is not None:
        return repeat_to_length(a, repeats, axis, total_repeat_length)
    known = concrete_or_error(np.asarray, repeats, "When jit-compiling jnp.repeat, the total "
                                                   "number of "
                              "repeats must be static. To fix this, either specify a static value "
                              "for `repeats`, or pass a static value to `total_repeat_length`.")
    if not dtypes.issubdtype(known.dtype, np.integer):
        raise TypeError(f"the repeats of jnp.repeat must be integers, got {known.dtype}")
    a = with_leading_axes(a, 1)
    if known.size == 1:
        return repeat_each(a, int(known.reshape(())), axis)
    places = np.repeat(np.arange(a.shape[axis]), np.broadcast_to(np.ravel(known), (a.shape[axis],)))
    return parts_at(a, as_array(places.astype(np.int32)), axis)


def repeat_each(a, count, axis):
    spread = lax.broadcast_in_dim(a, (*a.shape[:axis + 1], count, *a.shape[axis + 1:]),
                                  [i for i in range(a.ndim + 1) if i != axis + 1])
    return lax.reshape(spread, replaced(a.shape, axis, a.shape[axis] * count))


def repeat_to_length(a, repeats, axis, length):
    length = concrete_or_error(operator.index, length, "'total_repeat_length' argument of "
                                                       "jnp.repeat")
    a = with_leading_axes(a, 1)
    n = a.shape[axis]
    if n == 0 or length == 0:
        return zeros_like(a, shape=replaced(a.shape, axis, length if n else 0))
    ends = cumsum(broadcast_trailing(ravel(repeats), (n,)))
    # Place i of the result belongs to the part before which so many others have ended.
    ended = lax.broadcast_in_dim(ends, (length, n), (1,)) \
        <= lax.broadcasted_iota(ends.dtype, (length, n), 0)
    return parts_at(a, lax.min(sum(ended, axis=1, dtype=np.int32), np.int32(n - 1)), axis)


def parts_at(a, places, axis):
    """The parts of `a` along an axis at places within bounds."""
    numbers = lax.GatherDimensionNumbers(
        offset_dims=tuple(i for i in range(a.ndim) if i != axis), collapsed_slice_dims=(axis,),
        start_index_map=(axis,))
    if places.size == 0:
        return zeros_like(a, shape=replaced(a.shape, axis, 0))
    return lax.gather(a, lax.expand_dims(places, (1,)), numbers, replaced(a.shape, axis, 1),
                      mode="promise_in_bounds")


def resize(a, new_shape):
    """The elements of `a`, repeated or cut off to fill `new_shape`."""
    new_shape = canonicalize_shape(new_shape)
    if any(n < 0 for n in new_shape):
        raise ValueError("all elements of `new_shape` must be non-negative")
    a = ravel(a)
    if a.size == 0 or prod(new_shape) == 0:
        return zeros_like(a, shape=new_shape)
    return lax.reshape(tile_to_size(a, prod(new_shape)), new_shape)


# --- Turning and shifting -------------------------------------------------------------------------

def flip(m, axis=None):
    """`m` reversed along the axes, all if None."""
    m = ensure_arraylike("flip", m)
    axes = tuple(range(m.ndim)) if axis is None else as_axes(axis, m.ndim)
    return lax.rev(m, axes)


def flipud(m):
    """`m` reversed along axis 0."""
    return flip(m, 0)


def fliplr(m):
    """`m` reversed along axis 1."""
    return flip(m, 1)


def rot90(m, k=1, axes=(0, 1)):
    """`m` turned by k quarter turns in the plane of two axes, the first towards the second."""
    m = ensure_arraylike("rot90", m)
    if m.ndim < 2:
        raise ValueError("rot90 requires its first argument to have ndim at least two, but got "
                         f"first argument of shape {m.shape}, which has ndim {m.ndim}")
    first, second = as_axes(axes, m.ndim)
    if first == second:
        raise ValueError("Axes must be different")
    if k % 4 == 0:
        return m
    if k % 4 == 2:
        return flip(m, (first, second))
    if k % 4 == 1:
        return swapaxes(flip(m, second), first, second)
    return flip(swapaxes(m, first, second), second)


def roll(a, shift, axis=None):
    """`a` shifted along the axes (flat if None); what leaves at one end enters at the other.

    The shifts may be traced.
    """
    a = ensure_arraylike("roll", a)
    if axis is None:
        return reshape(roll(ravel(a), shift, 0), a.shape)
    axes = as_axes(axis, a.ndim)
    shifts = shift if isinstance(shift,
                                 (tuple, list)) else [shift] if not np.ndim(shift) else list(shift)
    count = broadcast_shapes((len(axes),), (len(shifts),))[0]
    for i, s in zip(axes * (count if len(axes) == 1 else 1),
                    list(shifts) * (count if len(shifts) == 1 else 1)):
        a = roll_axis(a, s, i)
    return a


def roll_axis(a, shift, axis):
    n = a.shape[axis]
    if n == 0:
        return a
    if isinstance(shift, Tracer):
        start = remainder(-shift, np.int32(n))
        return lax.dynamic_slice_in_dim(lax.concatenate([a, a], axis), start, n, axis)
    start = -operator.index(shift) % n
    return lax.concatenate([cut(a, start, None, axis), cut(a, 0, start, axis)], axis)


# --- Padding --------------------------------------------------------------------------------------

PAD_OPTIONS = {"constant": {"constant_values"}, "empty": set(), "edge": set(), "wrap": set(),
               "reflect": {"reflect_type"}, "symmetric": {"reflect_type"},
               "linear_ramp": {"end_values"}, "maximum": {"stat_length"},
               "minimum": {"stat_length"},
               "mean": {"stat_length"}, "median": {"stat_length"}}


def pad(array, pad_width, mode="constant", **kwargs):
    """`array` with more elements before and after along every axis.

    pad_width is (before, after) for each axis, one pair for all, or one number. Modes: constant
    (constant_values), edge, reflect and symmetric (reflect_type 'even' or 'odd'), wrap, linear_ramp
    (end_values), maximum, minimum, mean, median (stat_length), empty, or a function of NumPy's kind
    that returns the padded vector.
    """
    array = ensure_arraylike("pad", array)
    widths = pairs_for(pad_width, array.ndim, "pad_width")
    check_pad_widths(widths)
    if callable(mode):
        return pad_by_function(array, widths, mode, kwargs)
    if mode not in PAD_OPTIONS:
        raise NotImplementedError(f"Unimplemented padding mode '{mode}' for np.pad.")
    if set(kwargs) - PAD_OPTIONS[mode]:
        raise ValueError(f"unsupported keyword arguments for mode '{mode}': "
                         f"{set(kwargs) - PAD_OPTIONS[mode]}")
    if mode == "constant":
        return pad_constant(array, widths, kwargs.get("constant_values", 0))
    make = pad_maker(mode, array.ndim, kwargs)
    for axis, (before, after) in enumerate(widths):
        if before or after:
            if array.shape[axis] == 0:
                raise ValueError(f"jnp.pad: cannot pad the empty axis {axis} with mode {mode}")
            array = make(array, axis, before, after)
    return array


def pairs_for(values, ndim, name):
    """A (before, after) pair for every axis."""
    try:
        values = np.asarray(concrete_tree(values, name))
    except ValueError:
        raise TypeError(f"`{name}` entries must be the same shape: {values}") from None
    if values.shape not in ((ndim, 2), (1, 2), (2,), (1,), ()):
        raise ValueError(f"jnp.pad: {name} with nd={ndim} has unsupported shape {values.shape}. "
                         f"Valid shapes are ({ndim}, 2), (1, 2), (2,), (1,), or ().")
    return np.broadcast_to(values, (ndim, 2)).tolist()


def concrete_tree(values, name):
    if isinstance(values, (list, tuple)):
        return [concrete_tree(v, name) for v in values]
    return concrete_or_error(np.asarray, values, f"{name} argument of jnp.pad")


def check_pad_widths(widths):
    if not all(isinstance(n, int) for pair in widths for n in pair):
        raise TypeError("`pad_width` must be of integral type.")
    if any(n < 0 for pair in widths for n in pair):
        raise ValueError("index can't contain negative values")


def pad_constant(x, widths, values):
    values = convert(asarray_of_pairs(values), x.dtype, x.weak_type)
    if values.ndim == 0 or values.shape == (1,):
        return lax.pad(x, lax.reshape(values, ()), [(low, high, 0) for low, high in widths])
    values = broadcast_trailing(values, (x.ndim, 2))
    for axis, (before, after) in enumerate(widths):
        none = [(0, 0, 0)] * x.ndim
        x = lax.pad(x, values[axis, 0], replaced(none, axis, (before, 0, 0)))
        x = lax.pad(x, values[axis, 1], replaced(none, axis, (0, after, 0)))
    return x


def asarray_of_pairs(values):
    return asarray(values) if not isinstance(values, (list, tuple)) else array(values)


def pad_maker(mode, ndim, options):
    """make(x, axis, before, after) -> x padded along one axis."""
    if mode in ("reflect", "symmetric"):
        return mirror_maker(mode, options.get("reflect_type", "even"))
    if mode == "linear_ramp":
        ends = pairs_for(options.get("end_values", 0), ndim, "end_values")
        return lambda x, axis, before, after: pad_ramp(x, axis, before, after, ends[axis])
    if mode in STATISTICS:
        lengths = options.get("stat_length")
        lengths = [(None, None)] * ndim if lengths is None else pairs_for(lengths, ndim,
                                                                          "stat_length")
        return lambda x, axis, before, after: pad_statistic(x, axis, before, after,
                                                            STATISTICS[mode], lengths[axis])
    return {"edge": pad_edge, "wrap": pad_wrap, "empty": pad_empty}[mode]


STATISTICS = {"maximum": reduce_max, "minimum": reduce_min, "mean": mean, "median": median}


def pad_edge(x, axis, before, after):
    return lax.concatenate([repeat_each(cut(x, 0, 1, axis), before, axis), x,
                            repeat_each(cut(x, -1, None, axis), after, axis)], axis)


def pad_empty(x, axis, before, after):
    return lax.concatenate([zeros_like(x, shape=replaced(x.shape, axis, before)), x,
                            zeros_like(x, shape=replaced(x.shape, axis, after))], axis)


def pad_wrap(x, axis, before, after):
    n = x.shape[axis]
    whole = before // n + 1 + after // n
    parts = [cut(x, n - before % n, n, axis), *[x] * whole, cut(x, 0, after % n, axis)]
    return lax.concatenate([p for p in parts if p.shape[axis]], axis)


def mirror_maker(mode, reflect_type):
    """Padding by the mirror image at the edge, whose own element counts once if mode is
    'reflect'."""
    if reflect_type not in ("even", "odd"):
        raise ValueError(f"reflect_type must be 'even' or 'odd', got {reflect_type!r}")

    def make(x, axis, before, after):
        skip = 1 if mode == "reflect" and x.shape[axis] > 1 else 0
        after_side = pad_mirror(x, axis, before, skip, reflect_type)
        turned = pad_mirror(flip(after_side, axis), axis, after, skip, reflect_type, x.shape[axis])
        return flip(turned, axis)
    return make


def pad_mirror(x, axis, count, skip, reflect_type, period=None):
    """Put `count` mirrored elements before x; a long padding is mirrored again and again."""
    size = (period or x.shape[axis]) - skip
    while count > 0:
        some = min(count, max(size, 1))
        image = flip(cut(x, skip, skip + some, axis), axis)
        if reflect_type == "odd":
            image = 2 * cut(x, 0, 1, axis) - image
        x = lax.concatenate([convert(image, x.dtype, x.weak_type), x], axis)
        count -= some
    return x


def pad_ramp(x, axis, before, after, ends):
    """Straight lines from the edges to the end values."""
    first, last = (lax.squeeze(cut(x, *at, axis), (axis,)) for at in ((0, 1), (-1, None)))
    ramp = lambda end, edge, n: convert(linspace(end, edge, n, endpoint=False, dtype=x.dtype,
                                                 axis=axis),
                                        x.dtype, x.weak_type)
    return lax.concatenate([ramp(ends[0], first, before), x,
                            flip(ramp(ends[1], last, after), axis)],
                           axis)


def pad_statistic(x, axis, before, after, statistic, lengths):
    n = x.shape[axis]
    if 0 in lengths:
        raise ValueError("stat_length of 0 yields no value for padding")
    near = [n if m is None else min(m, n) for m in lengths]
    values = [statistic(part, axis=axis, keepdims=True)
              for part in (cut(x, 0, near[0], axis), cut(x, n - near[1], n, axis))]
    if dtypes.issubdtype(x.dtype, np.integer):
        values = [round(v) for v in values]
    low, high = (convert(v, x.dtype, x.weak_type) for v in values)
    return lax.concatenate([repeat_each(low, before, axis), x, repeat_each(high, after, axis)],
                           axis)


def pad_by_function(x, widths, function, kwargs):
    padded = pad_constant(x, widths, 0)
    for axis in range(x.ndim):
        padded = apply_along_axis(function, axis, padded, tuple(widths[axis]), axis, kwargs)
    return padded


# --- Neighbours -----------------------------------------------------------------------------------

def diff(a, n=1, axis=-1, prepend=None, append=None):
    """The differences of neighbours along an axis, taken n times."""
    a = ensure_arraylike("diff", a)
    n = concrete_or_error(operator.index, n, "'n' argument of jnp.diff")
    axis = concrete_or_error(operator.index, axis, "'axis' argument of jnp.diff")
    if n == 0:
        return a
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if a.ndim == 0:
        raise ValueError(f"diff requires input that is at least one dimensional; got {a}")
    axis = canonicalize_axis(axis, a.ndim)
    parts = [edge_part(p, a, axis) for p in (prepend, a, append) if p is not None]
    a = concatenate(parts, axis) if len(parts) > 1 else a
    combine = not_equal if a.dtype == bool else subtract
    for _ in range(n):
        a = combine(cut(a, 1, None, axis), cut(a, 0, -1, axis))
    return a


def edge_part(part, a, axis):
    part = ensure_arraylike("diff", part)
    return part if part.ndim else broadcast_trailing(part, replaced(a.shape, axis, 1))


def ediff1d(ary, to_end=None, to_begin=None):
    """The differences of neighbours in the flat array, with values put before and after."""
    a = ravel(ensure_arraylike("ediff1d", ary))
    parts = [to_begin, lax.sub(cut(a, 1, None, 0), cut(a, 0, -1, 0)), to_end]
    parts = [ravel(asarray(p)) for p in parts if p is not None]
    return lax.concatenate([convert(p, a.dtype) for p in parts], 0)


def gradient(f, *varargs, axis=None, edge_order=None):
    """The derivative of samples along axes by central differences, one-sided at the ends.

    `varargs` are the spacing: one number or vector of coordinates for all axes or for each. An
    array for one axis, else a list.
    """
    if edge_order is not None:
        raise NotImplementedError("The 'edge_order' argument to jnp.gradient is not supported.")
    check_arraylike("gradient", f)
    a, *spacing = promote_dtypes_inexact(f, *varargs)
    axes = tuple(range(a.ndim)) if axis is None else as_axes(axis, a.ndim)
    if not axes:
        return []
    if min(a.shape[i] for i in axes) < 2:
        raise ValueError("Shape of array too small to calculate a numerical gradient, at least 2 "
                         "elements are required.")
    if len(spacing) not in (0, 1, len(axes)):
        raise TypeError(f"Invalid number of spacing arguments {len(spacing)} for axis={axis!r}")
    spacing = (spacing or [convert(1.0, a.dtype)]) * (len(axes) if len(spacing) < 2 else 1)
    out = [gradient_along(a, h, i) for i, h in zip(axes, spacing)]
    return out[0] if len(out) == 1 else out


def gradient_along(a, h, axis):
    part = lambda x, start, stop: cut(x, start, stop, axis)
    first, last = part(a, 1, 2) - part(a, 0, 1), part(a, -1, None) - part(a, -2, -1)
    if h.ndim > 1:
        raise ValueError("Spacing arrays must be 1D arrays or scalars.")
    if h.ndim == 0:
        inner = (part(a, 2, None) - part(a, 0, -2)) * 0.5 / h
        return lax.concatenate([first / h, inner, last / h], axis)
    if h.shape[0] != a.shape[axis]:
        raise ValueError("Spacing arrays must have the same length as the dimension along which "
                         "the gradient is calculated.")
    h = diff(lax.broadcast_in_dim(h, [h.size if i == axis else 1 for i in range(a.ndim)], (axis,)),
             axis=axis)
    left, right = part(h, 0, -1), part(h, 1, None)
    inner = (-right / (left * (left + right)) * part(a, 0, -2)
             + (right - left) / (left * right) * part(a, 1, -1)
             + left / (right * (left + right)) * part(a, 2, None))
    return lax.concatenate([first / part(h, 0, 1), inner, last / part(h, -1, None)], axis)


def trapezoid(y, x=None, dx=1.0, axis=-1):
    """The integral of samples by the trapezoid rule, at coordinates `x` or spacing `dx`."""
    check_arraylike("trapezoid", y)
    if x is None:
        y, = promote_dtypes_inexact(y)
        return sum_of_trapezoids(moveaxis(y, axis, -1), spacing_last(asarray(dx), y.ndim, axis))
    check_arraylike("trapezoid", x)
    y, x = promote_dtypes_inexact(y, x)
    steps = diff(x) if x.ndim == 1 else moveaxis(diff(x, axis=axis), axis, -1)
    return sum_of_trapezoids(moveaxis(y, axis, -1), steps)


def spacing_last(dx, ndim, axis):
    return moveaxis(with_leading_axes(dx, ndim), axis, -1) if dx.ndim else dx


def sum_of_trapezoids(y, dx):
    last = y.ndim - 1
    if dx.ndim == 0 or dx.shape[-1] == 1:
        dx = lax.squeeze(dx, (dx.ndim - 1,)) if dx.ndim else dx
        ends = lax.squeeze(cut(y, 0, 1, last) + cut(y, -1, None, last), (last,))
        return dx * (sum(y, axis=-1) - 0.5 * ends)
    return 0.5 * sum(dx * (cut(y, 1, None, last) + cut(y, 0, -1, last)), axis=-1)


def unwrap(p, discont=None, axis=-1, period=2 * np.pi):
    """Angles with jumps of more than half a period removed by adding whole periods."""
    p = ensure_arraylike("unwrap", p)
    p, period = promote_dtypes(p, period)
    if dtypes.issubdtype(p.dtype, np.complexfloating):
        raise ValueError("jnp.unwrap does not support complex inputs.")
    axis = canonicalize_axis(axis, p.ndim)
    if p.shape[axis] == 0:
        return p
    half = period // 2 if dtypes.issubdtype(p.dtype, np.integer) else period / 2
    step = diff(p, axis=axis)
    wrapped = remainder(step + half, period) - half
    wrapped = where3((wrapped == -half) & (step > 0), half, wrapped)
    correction = where3(absolute(step) < (period / 2 if discont is None else discont), 0,
                        wrapped - step)
    return concatenate([cut(p, 0, 1, axis), cut(p, 1, None, axis) + cumsum(correction, axis=axis)],
                       axis)


def convolve(a, v, mode="full", *, precision=None, preferred_element_type=None):
    """out[n] = Σ_k a[k] v[n - k] for vectors; mode 'full', 'same' or 'valid' says which n."""
    x, y = conv_operands("convolve", a, v, preferred_element_type)
    x, y = (y, x) if x.size < y.size else (x, y)
    return sliding_dot("convolve", x, flip(y), mode, precision, preferred_element_type)


def correlate(a, v, mode="valid", *, precision=None, preferred_element_type=None):
    """out[n] = Σ_k a[n + k] conj(v[k]) for vectors; modes as in `convolve`."""
    x, y = conv_operands("correlate", a, v, preferred_element_type)
    y = conjugate(y)
    if x.size < y.size:
        return flip(sliding_dot("correlate", y, x, mode, precision, preferred_element_type))
    return sliding_dot("correlate", x, y, mode, precision, preferred_element_type)


def conv_operands(name, a, v, preferred_element_type):
    check_arraylike(name, a, v)
    if np.ndim(a) != 1 or np.ndim(v) != 1:
        raise ValueError(f"{name}() only support 1-dimensional inputs.")
    if not np.size(a) or not np.size(v):
        raise ValueError(f"{name}: inputs cannot be empty, got shapes {np.shape(a)} and "
                         f"{np.shape(v)}.")
    return (promote_dtypes_inexact if preferred_element_type is None else promote_dtypes)(a, v)


def sliding_dot(name, x, y, mode, precision, preferred_element_type):
    """The products of y with every window of x, which is the longer one."""
    n = y.size
    widths = {"valid": (0, 0), "same": (n // 2, n - n // 2 - 1), "full": (n - 1, n - 1)}
    if mode not in widths:
        raise ValueError("mode must be one of ['full', 'same', 'valid']")
    x = lax.pad(x, convert(0, x.dtype), [(*widths[mode], 0)])
    places = np.arange(x.size - n + 1)[:, None] + np.arange(n)
    windows = reshape(parts_at(x, as_array(places.astype(np.int32).reshape(-1)), 0), places.shape)
    return lax.dot_general(windows, y, (((1,), (0,)), ((), ())), precision=precision,
                           preferred_element_type=preferred_element_type)


# --- Applying functions to parts ------------------------------------------------------------------

def apply_along_axis(func1d, axis, arr, *args, **kwargs):
    """func1d of every vector of `arr` along an axis; the axes of its result take that axis's
    place."""
    arr = ensure_arraylike("apply_along_axis", arr)
    axis = canonicalize_axis(axis, arr.ndim)
    function = lambda vector: func1d(vector, *args, **kwargs)
    for i in range(1, arr.ndim - axis):
        function = vmap(function, in_axes=i, out_axes=-1)
    for _ in range(axis):
        function = vmap(function)
    return function(arr)


def vectorize(pyfunc, *, excluded=frozenset(), signature=None):
    """`pyfunc` on arrays: the function of one item, over all leading axes, which broadcast.

    `signature` such as '(n,m),(m)->(n)' says which last axes make up an item; without it items are
    numbers. Arguments in `excluded` (positions or names) are passed as they are. Keyword arguments
    too.
    """
    names = None if signature is None else parse_signature(signature)

    @api_boundary
    @wraps(pyfunc, assigned=("__name__", "__qualname__", "__doc__", "__module__"))
    def vectorized(*args, **kwargs):
        kept = {i: a for i, a in enumerate(args) if i in excluded}
        mapped = [a for i, a in enumerate(args) if i not in kept]

        def item_function(*items):
            rest = iter(items)
            return pyfunc(*[kept[i] if i in kept else next(rest) for i in range(len(args))],
                          **kwargs)
        check_arraylike("vectorize", *mapped)
        return map_items(item_function, [asarray(a) for a in mapped], names, signature)
    return vectorized


def parse_signature(signature):
    """'(n,m),(m)->(n)' as names of axes: [['n', 'm'], ['m']], [['n']]."""
    sides = signature.replace(" ", "").split("->")
    if len(sides) != 2 or not all(re.fullmatch(r"\((\w+(,\w+)*)?\)(,\((\w+(,\w+)*)?\))*", s)
                                  or not s
                                  for s in sides):
        raise ValueError(f"not a valid gufunc signature: {signature}")
    return [[[n for n in term.split(",") if n] for term in re.findall(r"\(([\w,]*)\)", s)]
            for s in sides]


def map_items(function, arrays, names, signature):
    in_names, out_names = names or ([[]] * len(arrays), None)
    if len(in_names) != len(arrays):
        raise TypeError(f"wrong number of positional arguments: expected {len(in_names)}, got "
                        f"{len(arrays)}")
    sizes = {}
    for a, term in zip(arrays, in_names):
        check_item_axes(a, term, sizes, signature)
    loops = [a.shape[:a.ndim - len(term)] for a, term in zip(arrays, in_names)]
    shape = broadcast_shapes(*loops)
    used = [{len(shape) - len(loop) + i for i, n in enumerate(loop) if n != 1} for loop in loops]
    items = [lax.squeeze(a, [i for i, n in enumerate(loop) if n == 1]) for a,
             loop in zip(arrays, loops)]
    mapped = checked(function, out_names, sizes, signature)
    units = [i for i in range(len(shape)) if not any(i in axes for axes in used)]
    for i in reversed(range(len(shape))):
        if i not in units:
            mapped = vmap(mapped, in_axes=tuple(0 if i in axes else None for axes in used))
    return tree_map(lambda out: lax.expand_dims(asarray(out), units), mapped(*items))


def check_item_axes(a, term, sizes, signature):
    """Note the size of every named axis; ValueError for one that is missing or has two sizes."""
    if a.ndim < len(term):
        raise ValueError(f"input with shape {a.shape} does not have enough dimensions for all core "
                         f"dimensions {term} of the signature {signature}")
    for name, n in zip(term, a.shape[a.ndim - len(term):]):
        if sizes.setdefault(name, n) != n:
            raise ValueError(f"inconsistent size for core dimension {name!r}: {n} vs "
                             f"{sizes[name]}, signature {signature}")


def checked(function, out_names, sizes, signature):
    """The function of items with its results held to the signature."""
    if out_names is None:
        return function

    def of_items(*items):
        out = function(*items)
        outs = out if isinstance(out, (tuple, list)) else [out]
        if len(outs) != len(out_names):
            raise TypeError(f"wrong number of output arguments: expected {len(out_names)}, got "
                            f"{len(outs)}")
        for x, term in zip(outs, out_names):
            if np.ndim(x) != len(term):
                raise ValueError(f"output shape {np.shape(x)} does not match core dimensions "
                                 f"{term} of the signature {signature}")
            check_item_axes(asarray(x), term, dict(sizes), signature)
        return out
    return of_items


def apply_over_axes(func, a, axes):
    """func(…func(a, axes[0])…, axes[-1]); a result that lost its axis gets it back with size 1."""
    a = ensure_arraylike("apply_over_axes", a)
    for axis in axes:
        out = func(a, axis)
        if out.ndim not in (a.ndim, a.ndim - 1):
            raise ValueError("function is not returning an array of the correct shape")
        a = out if out.ndim == a.ndim else expand_dims(out, axis)
    return a


# --- Bits -----------------------------------------------------------------------------------------

def packbits(a, axis=None, bitorder="big"):
    """Eight truth values in each byte, along an axis (flat if None)."""
    a = ensure_arraylike("packbits", a)
    if not dtypes.issubdtype(a.dtype, np.integer) and a.dtype != bool:
        raise TypeError("Expected an input array of integer or boolean data type")
    a, axis = (ravel(a), 0) if axis is None else (a, canonicalize_axis(axis, a.ndim))
    bits = convert(moveaxis(a != 0, axis, -1), np.dtype(np.uint8))
    bits = lax.pad(bits, np.uint8(0), [*[(0, 0, 0)] * (bits.ndim - 1), (0, -bits.shape[-1] % 8, 0)])
    groups = lax.reshape(bits, (*bits.shape[:-1], bits.shape[-1] // 8, 8))
    packed = sum(groups << bit_places(bitorder), axis=-1, dtype=np.uint8)
    return moveaxis(packed, -1, axis)


def bit_places(bitorder):
    if bitorder not in ("little", "big"):
        raise ValueError("'order' must be either 'little' or 'big'")
    places = np.arange(8, dtype=np.uint8)
    return as_array(places if bitorder == "little" else places[::-1])


def unpackbits(a, axis=None, count=None, bitorder="big"):
    """The eight bits of each byte, along an axis (flat if None), `count` of them."""
    a = ensure_arraylike("unpackbits", a)
    if a.dtype != np.uint8:
        raise TypeError("Expected an input array of unsigned byte data type")
    a, axis = (ravel(a), 0) if axis is None else (a, canonicalize_axis(axis, a.ndim))
    a = lax.expand_dims(moveaxis(a, axis, -1), (a.ndim,))
    bits = (a >> bit_places(bitorder)) & np.uint8(1)
    bits = lax.reshape(bits, (*bits.shape[:-2], bits.shape[-2] * 8))
    if count is not None:
        short = max(0, count - bits.shape[-1]) if count > 0 else 0
        bits = lax.pad(bits, np.uint8(0), [*[(0, 0, 0)] * (bits.ndim - 1), (0, short, 0)])
        bits = cut(bits, None, count, bits.ndim - 1)
    return moveaxis(bits, -1, axis)
