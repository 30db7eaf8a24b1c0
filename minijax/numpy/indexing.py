# Exported from notebooks/ref_numpy_indexing.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: numpy. Home: ref_numpy_indexing. In JAX: jax/_src/{numpy/indexing,ops/scatter}.py.

`x[index]` and `x.at[index]` with NumPy's indices. Numbers and slices known while tracing become
slice and reverse; a traced number becomes dynamic_slice; everything else becomes one gather. An
update is a scatter over the same plan. Negative indices count from the end; those out of bounds
after that are clamped when reading and dropped when writing, unless a `mode` says otherwise.
"""

import builtins
import operator
import warnings
from collections.abc import Sequence
from functools import lru_cache
from math import prod
from types import NoneType
from typing import NamedTuple

import numpy as np

from minijax import dtypes, lax
from minijax.array import Array, as_array
from minijax.avals import refuse_masked
from minijax.core import Tracer, concrete_or_error
from minijax.errors import NonConcreteBooleanIndexError, TracerIntegerConversionError
from minijax.numpy.creation import (
    arange, array, asarray, broadcast_trailing, full, indices as index_grids, ones_like, zeros,
    zeros_like,
)
from minijax.numpy.manipulation import (
    broadcast_arrays, concatenate, moveaxis, ravel, replaced, reshape, tile_to_size,
)
from minijax.numpy.promotion import (
    check_arraylike, convert, ensure_arraylike, promote_args_numeric, promote_dtypes,
)
from minijax.numpy.reductions import any as reduce_any, cumsum
from minijax.numpy.ufuncs import clip, divide, divmod, power, remainder, where as choose_between
from minijax.primitives.structural import canonicalize_axis, canonicalize_shape

__all__ = [
    "NewAxis", "Range", "Numbers", "ScalarBool", "Index", "NON_TUPLE", "WRONG_DTYPE", "as_tuple",
    "entry_of", "array_entry", "is_mask", "axes_used", "parse_index", "side_by_side", "parse_entry",
    "bounds_of", "parse_mask", "counted_from_front", "known_from_front", "getitem", "static_key",
    "static_plan", "take_at", "is_clamping", "is_static", "are_in_bounds", "is_dynamic_scalar",
    "check_fill_value", "refuse_empty_axis", "forward", "SlicePlan", "plan_slices",
    "changes_of_axes", "apply_slices", "dynamic_slice", "insert_axes", "Plan", "without_new_axes",
    "with_units", "broadcast_numbers", "align_numbers", "stacked", "gather_numbers",
    "scatter_numbers", "gather_by", "scatter_at", "known_window", "as_update", "warn_if_unsafe",
    "as_window", "IndexUpdateHelper", "IndexUpdateRef", "most_repeated", "take", "take_mode",
    "take_along_axis", "gather_along", "refuse_in_place", "put_along_axis", "put", "place",
    "fill_diagonal", "nonzero", "NONZERO_SIZE", "known_indices", "fill_values_for", "padded_places",
    "flatnonzero", "argwhere", "where", "compress", "reduce_any_known", "extract", "unravel_index",
    "ravel_multi_index", "into_bounds", "ix_", "diag_indices", "diag_indices_from", "tril_indices",
    "triu_indices", "tril_indices_from", "triu_indices_from", "matrix_shape", "mask_indices",
    "select", "choose", "stack_first", "piecewise", "piecewise_conditions", "value_of_piece",
    "delete", "delete_unique", "insert", "insert_along", "stable_order", "grid_axis", "MGrid",
    "OGrid", "mgrid", "ogrid", "index_exp", "s_", "Joiner", "r_", "c_",
]


# --- Entries of an index --------------------------------------------------------------------------

# An index is a tuple of entries. Each is one of these, after ellipses are spelled out and boolean
# masks replaced by the numbers of their true places:

class NewAxis(NamedTuple):
    """None: a new axis of size 1."""


class Range(NamedTuple):
    """A slice of one axis, its bounds known and within the axis."""
    start: int
    stop: int
    step: int

    @property
    def size(self):
        return len(range(*self))


class Numbers(NamedTuple):
    """Places along one axis: an array of integers of any shape, known (NumPy) or not (a tracer)."""
    value: object

    known = property(lambda self: isinstance(self.value, np.ndarray))
    ndim = property(lambda self: self.value.ndim)


class ScalarBool(NamedTuple):
    """True or False: a new axis of size 1 or 0."""
    value: bool


class Index(NamedTuple):
    """A whole index, parsed for an array of a given shape."""
    entries: list
    contiguous: bool          # whether the Numbers stand side by side: decides where their axes go


NON_TUPLE = ("Using a non-tuple sequence for multidimensional indexing is not allowed; use "
             "`arr[{}(seq)]` instead of `arr[seq]`.")
WRONG_DTYPE = "Indexer must have integer or boolean type, got indexer with type {}"


def as_tuple(index):
    if isinstance(index, tuple):
        return index
    if isinstance(index, Sequence) and not isinstance(index, str):
        nested = any(isinstance(i, (Sequence, builtins.slice)) or i is None or i is Ellipsis
                     or hasattr(i, "shape") and np.ndim(i) for i in index)
        raise TypeError(NON_TUPLE.format("tuple" if nested else "array"))
    return (index,)


def entry_of(i):
    """The entry for a part of an index: None, Ellipsis and slices as they are, else an array."""
    if i is None or i is Ellipsis or isinstance(i, builtins.slice):
        return i
    if isinstance(i, str):
        raise TypeError(f"JAX does not support string indexing; got idx={i!r}")
    if isinstance(i, (bool, int, np.integer, np.bool_)):
        return np.asarray(i)
    if isinstance(i, Sequence):
        return array_entry(array(i) if len(i) else np.zeros(np.shape(i), np.int32))
    if isinstance(i, (Array, Tracer, np.ndarray, np.generic, float, complex)) or hasattr(
            i, "__jax_array__"):
        return array_entry(i)
    raise IndexError("only integers, slices (`:`), ellipsis (`...`), newaxis (`None`) and integer "
                     f"or boolean arrays are valid indices. Got {i}")


def array_entry(i):
    """An array in an index: as a NumPy array if its elements are known, else as a tracer."""
    if hasattr(i, "__jax_array__"):
        i = i.__jax_array__()
    refuse_masked(i)
    i = np.asarray(i) if isinstance(i, (float, complex)) else i
    if not dtypes.issubdtype(i.dtype, np.integer) and i.dtype != bool:
        raise TypeError(WRONG_DTYPE.format(i.dtype))
    if isinstance(i, Tracer):
        value = i.to_concrete_value()
        return i if value is None else array_entry(value)
    return np.asarray(i)


def is_mask(entry):
    return getattr(entry, "dtype", None) == bool


def axes_used(entry):
    """How many axes of the array an entry uses up; an ellipsis uses what others leave."""
    if entry is None or entry is Ellipsis:
        return 0
    return entry.ndim if is_mask(entry) else 1


def parse_index(index, shape, wrap_negative=True):
    """The Index for an array of that shape. Raises IndexError or TypeError for what is no index."""
    entries = [entry_of(i) for i in as_tuple(index)]
    used = sum(axes_used(e) for e in entries)
    if sum(e is Ellipsis for e in entries) > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    if used > len(shape):
        raise IndexError(f"Too many indices: array is {len(shape)}-dimensional, but {used} were "
                         "indexed")
    if not any(e is Ellipsis for e in entries):
        entries.append(Ellipsis)
    parsed, axis = [], 0
    for e in entries:
        used_here = len(shape) - used if e is Ellipsis else axes_used(e)
        sizes = shape[axis:axis + used_here]
        parsed += parse_entry(e, sizes, wrap_negative)
        axis += used_here
    return Index(parsed, side_by_side(entries))


def side_by_side(entries):
    """Whether no slice, ellipsis or new axis stands between the integers of an index."""
    places = [i for i, e in enumerate(entries) if isinstance(e, (np.ndarray, Tracer))
              and not (is_mask(e) and e.ndim == 0)]
    return not places or places[-1] - places[0] == len(places) - 1


def parse_entry(entry, sizes, wrap_negative):
    if entry is None:
        return [NewAxis()]
    if entry is Ellipsis:
        return [Range(0, n, 1) for n in sizes]
    if isinstance(entry, builtins.slice):
        return [Range(*bounds_of(entry, sizes[0]))]
    if is_mask(entry):
        return parse_mask(entry, sizes)
    return [Numbers(counted_from_front(entry, sizes[0], wrap_negative))]


def bounds_of(entry, size):
    try:
        return entry.indices(size)
    except TracerIntegerConversionError:
        raise IndexError(f"Slice entries must be static integers. Got {entry}; use "
                         "lax.dynamic_slice for a start that is traced") from None


def parse_mask(mask, sizes):
    """A boolean mask as the numbers of its true places, which must be known."""
    if isinstance(mask, Tracer):
        raise NonConcreteBooleanIndexError(mask)
    if mask.ndim == 0:
        return [ScalarBool(bool(mask))]
    if any(m not in (0, n) for m, n in zip(mask.shape, sizes)):
        raise IndexError(f"boolean index did not match shape of indexed array: got {mask.shape}, "
                         f"expected {tuple(sizes)}")
    return [Numbers(places.astype(np.int32)) for places in np.nonzero(mask)]


def counted_from_front(numbers, size, wrap_negative=True):
    """Indices as int32, the negative ones counted from the end."""
    if isinstance(numbers, np.ndarray):
        return known_from_front(numbers, size, wrap_negative)
    converted = convert(numbers, np.dtype(np.int32))
    if not wrap_negative or dtypes.issubdtype(numbers.dtype, np.unsignedinteger):
        return converted
    return lax.select(converted < 0, converted + np.int32(size), converted)


def known_from_front(numbers, size, wrap_negative):
    signed = not dtypes.issubdtype(numbers.dtype, np.unsignedinteger)
    if numbers.dtype.itemsize >= 4:      # it may not fit; but what is far outside stays outside
        bounds = np.iinfo(np.int32)
        numbers = np.clip(numbers, bounds.min if signed else None, bounds.max)
    numbers = np.asarray(numbers, np.int32)
    if signed and wrap_negative:
        return np.where(numbers < 0, numbers + np.int32(size), numbers)
    return numbers


# --- Reading --------------------------------------------------------------------------------------

def getitem(x, index):
    """`x[index]`: indices out of bounds are clamped; errors are those of `parse_index`."""
    key = static_key(index)
    plan = None if key is None else static_plan(key, x.shape)
    return take_at(x, index) if plan is None else apply_slices(x, plan)


def static_key(index):
    """A hashable form of an index of Python numbers, slices of them, None and `...`; else None."""
    key = []
    for i in index if type(index) is tuple else (index,):
        if type(i) is builtins.slice:
            i = i.start, i.stop, i.step
            if not {type(bound) for bound in i} <= {int, NoneType}:
                return None
        elif type(i) is not int and i is not None and i is not Ellipsis:
            return None
        key.append(i)
    return tuple(key)


@lru_cache(4096)
def static_plan(key, shape):
    """How to read an index with a `static_key`: most programs use the same few again and again.

    None if it is out of bounds: a program is to show that, and a plan would hide it.
    """
    index = tuple([builtins.slice(*i) if type(i) is tuple else i for i in key])
    entries = parse_index(index, shape).entries
    return plan_slices(entries, shape) if are_in_bounds(entries, shape) else None


def take_at(x, index, *, indices_are_sorted=False, unique_indices=False, mode=None, fill_value=None,
            wrap_negative_indices=True):
    """`x[index]` with options; see `IndexUpdateHelper`."""
    parsed = parse_index(index, x.shape, wrap_negative_indices)
    if is_clamping(mode):
        if all(is_static(e) for e in parsed.entries) and are_in_bounds(parsed.entries, x.shape):
            return apply_slices(x, plan_slices(parsed.entries, x.shape))
        if all(is_static(e) or is_dynamic_scalar(e) for e in parsed.entries) \
                and all(e.step in (1, -1) for e in parsed.entries if isinstance(e, Range)):
            return dynamic_slice(x, parsed.entries)
    plan = Plan(x.shape, parsed)
    return gather_by(plan, x, mode=mode or "promise_in_bounds",
                     fill_value=check_fill_value(fill_value),
                     indices_are_sorted=indices_are_sorted or plan.is_simple,
                     unique_indices=unique_indices or plan.is_simple)


def is_clamping(mode):
    return mode is None or lax.GatherScatterMode.from_any(mode) in (
        lax.GatherScatterMode.CLIP, lax.GatherScatterMode.PROMISE_IN_BOUNDS)


def is_static(entry):
    return isinstance(entry, (NewAxis, Range)) or \
        isinstance(entry, Numbers) and entry.known and entry.ndim == 0


def are_in_bounds(entries, shape):
    """Whether the known numbers of an index, counted from the front, are places of the array."""
    of_array = [e for e in entries if not isinstance(e, NewAxis)]
    return all([0 <= e.value < size for e, size in zip(of_array, shape)
                if isinstance(e, Numbers) and is_static(e)])


def is_dynamic_scalar(entry):
    return isinstance(entry, Numbers) and entry.ndim == 0


def check_fill_value(fill_value):
    if fill_value is None:
        return None
    value = concrete_or_error(np.asarray, fill_value, "'fill_value' argument of indexed get().",
                              "concrete-values")
    if value.ndim:
        raise ValueError("fill_value argument to indexed get() must be a scalar")
    return value.item()


def refuse_empty_axis(size, axis):
    if size == 0:
        raise IndexError(f"index is out of bounds for axis {axis} with size 0")


def forward(r):
    """(start, limit, stride) of the elements of a Range, in increasing order."""
    if r.size == 0:
        return (r.start, r.start, 1) if r.step > 0 else (0, 0, 1)
    if r.step > 0:
        return r.start, r.stop, r.step
    last = r.start + (r.size - 1) * r.step
    return last, r.start + 1, -r.step


class SlicePlan(NamedTuple):
    """Slice, then reverse, drop and insert axes; `bounds` is None if nothing is sliced."""
    bounds: tuple
    backward: list
    dropped: list
    new_axes: list


def plan_slices(entries, shape):
    """The SlicePlan of known numbers and slices."""
    bounds = []
    for e in entries:
        if isinstance(e, Range):
            bounds.append(forward(e))
        elif isinstance(e, Numbers):
            size = shape[len(bounds)]
            refuse_empty_axis(size, len(bounds))
            place = min(max(int(e.value), 0), size - 1)
            bounds.append((place, place + 1, 1))
    if all(b == (0, n, 1) for b, n in zip(bounds, shape)):
        return SlicePlan(None, *changes_of_axes(entries))
    starts, limits, strides = zip(*bounds)
    strides = None if set(strides) == {1} else strides
    return SlicePlan((starts, limits, strides), *changes_of_axes(entries))


def changes_of_axes(entries):
    """(axes to reverse, axes to drop, new axes to insert)"""
    of_array = [e for e in entries if not isinstance(e, NewAxis)]
    backward = [i for i, e in enumerate(of_array) if isinstance(e, Range) and e.step < 0]
    dropped = [i for i, e in enumerate(of_array) if isinstance(e, Numbers)]
    kept = [e for e in entries if not isinstance(e, Numbers)]
    return backward, dropped, [i for i, e in enumerate(kept) if isinstance(e, NewAxis)]


def apply_slices(x, plan):
    bounds, backward, dropped, new_axes = plan
    x = lax.slice(x, *bounds) if bounds else x
    x = lax.rev(x, backward) if backward else x
    x = lax.squeeze(x, dropped) if dropped else x
    return insert_axes(x, new_axes)


def dynamic_slice(x, entries):
    """Slices with step 1 or -1 and numbers, some of them traced."""
    starts, sizes = [], []
    for e in entries:
        if isinstance(e, Range):
            start, limit, _ = forward(e)
            starts.append(np.int32(start))
            sizes.append(limit - start)
        elif isinstance(e, Numbers):
            refuse_empty_axis(x.shape[len(starts)], len(starts))
            starts.append(e.value)
            sizes.append(1)
    # the numbers count from the front already, and negative ones are clamped to 0
    x = lax.dynamic_slice(x, starts, sizes, allow_negative_indices=False)
    return apply_slices(x, SlicePlan(None, *changes_of_axes(entries)))


def insert_axes(x, axes):
    return lax.expand_dims(x, axes) if axes else x


# --- The plan of a gather or scatter --------------------------------------------------------------

class Plan:
    """How `x[index]` is a gather: which indices, which windows of x, and where both go.

    A gather takes, for each place in `batch_shape`, the window of x of `slice_sizes` that starts at
    the numbers there. The axes of windows that are not dropped are the `offset_dims` of the result.
    """

    def __init__(self, shape, index):
        self.bool_axes = [i for i, e in enumerate(without_new_axes(index.entries))
                          if isinstance(e, ScalarBool)]
        self.shape = with_units(shape, self.bool_axes)
        self.result_shape = []       # with new axes, before any reversal
        self.rank = 0                # axes of the gather's result so far, without new axes
        self.new_axes, self.reversed_dims = [], []
        self.offset_dims, self.dropped, self.start_map, self.slice_sizes = [], [], [], []
        self.batch_shape = []
        self.starts = []             # (numbers, first axis of batch_shape they lie along)
        self.is_simple = True        # each element of x is used once, in order
        self.walk(index)
        self.indices = stacked(self.starts, self.batch_shape)

    def walk(self, index):
        """Note every entry in turn, the arrays of numbers together at their place."""
        entries = [Numbers(np.arange(int(e.value), dtype=np.int32)) if isinstance(e, ScalarBool)
                   else e for e in index.entries]
        is_number = [isinstance(e, Numbers) for e in entries]
        arrays = [e for e in entries if isinstance(e, Numbers)]
        together = any(e.ndim for e in arrays)
        place = is_number.index(True) if together and index.contiguous else 0
        axis = 0
        for i, e in enumerate(entries):
            if together and i == place:
                axes = [j for j, f in enumerate(without_new_axes(entries))
                        if isinstance(f, Numbers)]
                self.take_arrays([a.value for a in arrays], axes)
            if isinstance(e, NewAxis):
                self.take_new_axis()
                continue
            if isinstance(e, Range):
                self.take_range(e, axis)
            elif together:
                self.slice_sizes.append(1)
            else:
                self.take_number(e.value, axis)
            axis += 1

    def take_arrays(self, arrays, axes):
        shape = lax.broadcast_shapes(*[a.shape for a in arrays])
        first = len(self.batch_shape)
        self.starts += [(broadcast_numbers(a, shape), first) for a in arrays]
        self.start_map += axes
        self.dropped += axes
        self.batch_shape += shape
        self.result_shape += shape
        self.rank += len(shape)
        self.is_simple = False

    def take_number(self, number, axis):
        refuse_empty_axis(self.shape[axis], axis)
        self.starts.append((number, len(self.batch_shape)))
        self.start_map.append(axis)
        self.dropped.append(axis)
        self.slice_sizes.append(1)

    def take_new_axis(self):
        self.new_axes.append(len(self.result_shape))
        self.result_shape.append(1)

    def take_range(self, r, axis):
        start, limit, stride = forward(r)
        if r.step < 0:
            self.reversed_dims.append(self.rank)
        if stride == 1:
            self.take_window(start, limit - start, axis)
        else:
            self.take_places(np.arange(start, limit, stride, dtype=np.int32), axis)
        self.result_shape.append(r.size)
        self.rank += 1

    def take_window(self, start, size, axis):
        if size != self.shape[axis]:
            self.starts.append((np.array(start, np.int32), len(self.batch_shape)))
            self.start_map.append(axis)
        self.slice_sizes.append(size)
        self.offset_dims.append(self.rank)

    def take_places(self, places, axis):
        self.starts.append((places, len(self.batch_shape)))
        self.start_map.append(axis)
        self.batch_shape.append(len(places))
        self.dropped.append(axis)
        self.slice_sizes.append(1)


def without_new_axes(entries):
    return [e for e in entries if not isinstance(e, NewAxis)]


def with_units(shape, axes):
    shape = list(shape)
    for i in axes:
        shape.insert(i, 1)
    return tuple(shape)


def broadcast_numbers(a, shape):
    return np.broadcast_to(a, shape) if isinstance(a, np.ndarray) else broadcast_trailing(a, shape)


def align_numbers(a, first, shape):
    """Numbers that lie along the axes `first`, … of `shape`, repeated along its other axes."""
    dims = tuple(range(first, first + a.ndim))
    if not isinstance(a, np.ndarray):
        return a if a.shape == tuple(shape) else lax.broadcast_in_dim(a, tuple(shape), dims)
    units = [1] * len(shape)
    units[first:first + a.ndim] = a.shape
    return np.broadcast_to(a.reshape(units), shape)


def stacked(starts, batch_shape):
    """All start numbers in one array, of shape (*batch_shape, how many)."""
    if not starts:
        return as_array(np.zeros((*batch_shape, 0), np.int32))
    aligned = [align_numbers(a, first, batch_shape) for a, first in starts]
    if all(isinstance(a, np.ndarray) for a in aligned):
        return as_array(np.stack(aligned, -1))
    columns = [lax.expand_dims(a, (len(batch_shape),)) for a in aligned]
    return lax.concatenate(columns, len(batch_shape))


def gather_numbers(plan):
    return lax.GatherDimensionNumbers(
        offset_dims=tuple(plan.offset_dims), collapsed_slice_dims=tuple(sorted(plan.dropped)),
        start_index_map=tuple(plan.start_map))


def scatter_numbers(plan):
    return lax.ScatterDimensionNumbers(
        update_window_dims=tuple(plan.offset_dims),
        inserted_window_dims=tuple(sorted(plan.dropped)),
        scatter_dims_to_operand_dims=tuple(plan.start_map))


def gather_by(plan, x, **options):
    x = insert_axes(x, plan.bool_axes)
    if prod(plan.result_shape) == 0:
        return lax.full_like(x, 0, shape=plan.result_shape)
    if plan.start_map:
        x = lax.gather(x, plan.indices, gather_numbers(plan), tuple(plan.slice_sizes), **options)
    x = lax.rev(x, plan.reversed_dims) if plan.reversed_dims else x
    return insert_axes(x, plan.new_axes)


# --- Writing --------------------------------------------------------------------------------------

def scatter_at(x, index, values, scatter, *, indices_are_sorted=False, unique_indices=False,
               mode=None, wrap_negative_indices=True):
    """A copy of `x` with `x[index]` updated by `scatter`, one of lax.scatter, lax.scatter_add, …"""
    x, mode = asarray(x), lax.GatherScatterMode.from_any(mode)
    values = as_update(values, x)
    warn_if_unsafe(values, x)
    plan = Plan(x.shape, parse_index(index, x.shape, wrap_negative_indices))
    if prod(plan.result_shape) == 0:
        return x
    dtype, weak_type = x.dtype, x.weak_type
    operand, values = promote_dtypes(x, values)
    operand, window = insert_axes(operand, plan.bool_axes), as_window(plan, values)
    starts = known_window(plan)
    if scatter is lax.scatter and starts is not None:
        out = lax.dynamic_update_slice(operand, insert_axes(window, sorted(plan.dropped)), starts)
    else:
        out = scatter(operand, plan.indices, window, scatter_numbers(plan), mode=mode,
                      indices_are_sorted=indices_are_sorted or plan.is_simple,
                      unique_indices=unique_indices or plan.is_simple)
    out = lax.squeeze(out, plan.bool_axes) if plan.bool_axes else out
    return convert(out, dtype, weak_type)


def known_window(plan):
    """The start along every axis, if the index means one window inside x that is known; or None."""
    if plan.batch_shape or not all(isinstance(a, np.ndarray) for a, _ in plan.starts):
        return None
    starts = [0] * len(plan.shape)
    for axis, (number, _) in zip(plan.start_map, plan.starts):
        starts[axis] = int(number)
    inside = all(0 <= start <= n - size
                 for start, n, size in zip(starts, plan.shape, plan.slice_sizes))
    return starts if inside else None


def as_update(values, x):
    """The values of an update; a Python int takes x's integer dtype if it fits."""
    if type(values) in (bool, float, complex):
        return values           # promotion converts numbers at once, without an equation
    if type(values) is int and dtypes.issubdtype(x.dtype, np.integer):
        bounds = dtypes.iinfo(x.dtype)
        if bounds.min <= values <= bounds.max:
            return asarray(values, dtype=x.dtype)
    return asarray(values)


def warn_if_unsafe(values, x):
    if not dtypes.safe_to_cast(values, x):
        warnings.warn("scatter inputs have incompatible types: cannot safely cast value from "
                      f"dtype={dtypes.dtype(values)} to dtype={x.dtype}; JAX will make this an "
                      "error",
                      FutureWarning, stacklevel=4)


def as_window(plan, values):
    """The values of an update in the shape of the gather that the plan describes."""
    values = broadcast_trailing(values, tuple(plan.result_shape))
    values = lax.squeeze(values, plan.new_axes) if plan.new_axes else values
    return lax.rev(values, plan.reversed_dims) if plan.reversed_dims else values


class IndexUpdateHelper:
    """`x.at`: with an index, the pure form of NumPy's updates in place.

    `x.at[index].set(v)`, `add`, `subtract`, `multiply`, `divide`, `power`, `min`, `max` return a
    copy of x with `x[index]` replaced by v or combined with it; repeated indices all count.
    `apply(f)` applies a function, `get()` reads. Options: `mode` for indices out of bounds is
    'promise_in_bounds' (default: reads clamp, writes drop), 'clip', 'drop' or 'fill' (reads give
    `fill_value`); `wrap_negative_indices=False` makes negative indices out of bounds;
    `indices_are_sorted` and `unique_indices` are promises.
    """

    __slots__ = ("array",)

    def __init__(self, array):
        self.array = array

    def __getitem__(self, index):
        return IndexUpdateRef(self.array, index)

    def __repr__(self):
        return f"IndexUpdateHelper({self.array!r})"


class IndexUpdateRef:
    """An array and an index into it. Options of all methods: see `IndexUpdateHelper`."""

    __slots__ = ("array", "index")

    def __init__(self, array, index):
        self.array, self.index = array, index

    def __repr__(self):
        return f"IndexUpdateRef({self.array!r}, {self.index!r})"

    def get(self, **options):
        """The elements at the index."""
        return take_at(self.array, self.index, **options)

    def set(self, values, **options):
        """Replace them by `values`."""
        return scatter_at(self.array, self.index, values, lax.scatter, **options)

    def add(self, values, **options):
        """Add `values` to them."""
        return scatter_at(self.array, self.index, values, lax.scatter_add, **options)

    def subtract(self, values, **options):
        """Subtract `values` from them."""
        return scatter_at(self.array, self.index, values, lax.scatter_sub, **options)

    def multiply(self, values, **options):
        """Multiply them by `values`."""
        return scatter_at(self.array, self.index, values, lax.scatter_mul, **options)

    mul = multiply

    def divide(self, values, **options):
        """Divide them by `values`."""
        factors = scatter_at(ones_like(self.array), self.index, values, lax.scatter_mul, **options)
        return divide(self.array, factors)

    def power(self, values, **options):
        """Raise them to the powers `values`."""
        factors = scatter_at(ones_like(self.array), self.index, values, lax.scatter_mul, **options)
        return power(self.array, factors)

    def min(self, values, **options):
        """Replace them by the minimum of themselves and `values`."""
        return scatter_at(self.array, self.index, values, lax.scatter_min, **options)

    def max(self, values, **options):
        """Replace them by the maximum of themselves and `values`."""
        return scatter_at(self.array, self.index, values, lax.scatter_max, **options)

    def apply(self, func, **options):
        """Apply an elementwise function to them, as often as their index is repeated.

        The number of repetitions must be known while tracing, unless `unique_indices` says there
        are none.
        """
        x = self.array
        times = scatter_at(zeros_like(x, np.int32), self.index, 1, lax.scatter_add, **options)
        most = 1 if options.get("unique_indices") else most_repeated(x.shape, self.index, times)
        for already in range(most):
            x = choose_between(times > already, func(x), x)
        return convert(x, self.array.dtype, self.array.weak_type)


def most_repeated(shape, index, times):
    if all(is_static(e) or is_dynamic_scalar(e) for e in parse_index(index, shape).entries):
        return 1
    return concrete_or_error(lambda t: int(np.max(np.asarray(t), initial=0)), times,
                             "The indices of .at[].apply() must be known, or unique_indices=True.")


# --- Taking and putting along an axis -------------------------------------------------------------

def take(a, indices, axis=None, out=None, mode=None, unique_indices=False, indices_are_sorted=False,
         fill_value=None):
    """The elements of `a` at integer `indices` along `axis` (of the flat array if None).

    Indices out of bounds give `fill_value` (default NaN, or the extreme integer) in the default
    mode 'fill', the nearest element in mode 'clip', and wrap around in mode 'wrap'.
    """
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.take is not supported.")
    check_arraylike("take", a, indices)
    a = ravel(a) if axis is None else asarray(a)
    axis = 0 if axis is None else canonicalize_axis(axis, a.ndim)
    indices = promote_args_numeric("take", indices)[0]      # a bool is 0 or 1 here, no mask
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"take: indices must have an integer type, got {indices.dtype}")
    gather_mode, indices = take_mode(mode, indices, a.shape[axis])
    if a.shape[axis] == 0 and indices.size:
        raise IndexError("Cannot do a non-empty jnp.take() from an empty axis.")
    index = (*[builtins.slice(None)] * axis, indices)
    return take_at(a, index, mode=gather_mode, unique_indices=unique_indices, fill_value=fill_value,
                   indices_are_sorted=indices_are_sorted, wrap_negative_indices=mode != "clip")


def take_mode(mode, indices, size):
    """(mode of the gather, indices) for a mode of `take`."""
    if mode in (None, "fill"):
        return "fill", indices
    if mode == "clip":
        return "clip", indices
    if mode == "wrap":
        return "promise_in_bounds", remainder(indices, np.array(size, indices.dtype))
    if mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.take is not supported.")
    raise ValueError(f"Invalid mode '{mode}' for np.take")


def take_along_axis(arr, indices, axis=-1, mode=None, fill_value=None, *,
                    wrap_negative_indices=None):
    """arr[i, …, indices[i, …, j, …], …]: one index per place, matched along all other axes.

    The other axes broadcast. Modes as those of `take`; with axis=None both arrays are flat.
    """
    arr, indices = ensure_arraylike("take_along_axis", arr, indices)
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise TypeError(f"take_along_axis indices must be of integer type, got {indices.dtype}")
    if axis is None:
        if indices.ndim != 1:
            raise ValueError(f"take_along_axis indices must be 1D if axis=None, got shape "
                             f"{indices.shape}")
        arr, axis = ravel(arr), 0
    if arr.ndim != indices.ndim:
        raise ValueError("indices and arr must have the same number of dimensions; "
                         f"{indices.ndim} vs. {arr.ndim}")
    axis = canonicalize_axis(axis, arr.ndim)
    wrap = mode != "promise_in_bounds" if wrap_negative_indices is None else wrap_negative_indices
    return gather_along(arr, indices, axis, mode or "fill", fill_value, wrap)


def gather_along(arr, indices, axis, mode, fill_value, wrap):
    """One gather whose batching dimensions are the axes that arr and indices share."""
    size = arr.shape[axis]
    others = lax.broadcast_shapes(replaced(arr.shape, axis, 1), replaced(indices.shape, axis, 1))
    out_shape = replaced(others, axis, indices.shape[axis])
    if size == 0 or prod(out_shape) == 0:
        return lax.full_like(arr, 0, shape=out_shape)
    arr = broadcast_trailing(arr, replaced(others, axis, size))
    indices = broadcast_trailing(counted_from_front(indices, size, wrap), out_shape)
    shared = tuple(i for i in range(arr.ndim) if i != axis)
    numbers = lax.GatherDimensionNumbers(
        offset_dims=(), collapsed_slice_dims=(axis,), start_index_map=(axis,),
        operand_batching_dims=shared, start_indices_batching_dims=shared)
    starts = lax.expand_dims(indices, (arr.ndim,))
    return lax.gather(arr, starts, numbers, (1,) * arr.ndim, mode=mode, fill_value=fill_value)


def refuse_in_place(name, inplace):
    if inplace:
        kind = NotImplementedError if name == "fill_diagonal" else ValueError          # as in JAX
        raise kind(f"jax.numpy.{name} cannot modify arrays in-place, because JAX arrays are "
                   "immutable. Pass inplace=False to instead return an updated array.")


def put_along_axis(arr, indices, values, axis, inplace=True, *, mode=None):
    """A copy of `arr` with `values` at the places that `take_along_axis` would read."""
    refuse_in_place("put_along_axis", inplace)
    check_arraylike("put_along_axis", arr, indices, values)
    original, indices = asarray(arr), asarray(indices)
    arr, axis = (ravel(original), 0) if axis is None else (original, axis)
    if arr.ndim != indices.ndim:
        raise ValueError("put_along_axis arguments 'arr' and 'indices' must have same ndim. Got "
                         f"{arr.ndim} and {indices.ndim}.")
    axis = canonicalize_axis(axis, arr.ndim)
    places = [*index_grids(arr.shape, sparse=True)]
    places[axis] = indices
    updated = arr.at[tuple(places)].set(broadcast_trailing(asarray(values), indices.shape),
                                        mode=mode)
    return reshape(updated, original.shape)


def put(a, ind, v, mode=None, *, inplace=True):
    """A copy of `a` with `v`, repeated as needed, at the flat indices `ind`.

    Indices out of bounds are clipped, or wrapped around in mode 'wrap'; negative ones count from
    the end, but in mode 'clip' they are clipped too.
    """
    refuse_in_place("put", inplace)
    check_arraylike("put", a, ind, v)
    a, ind, v = asarray(a), ravel(ind), ravel(v)
    if not a.size or not ind.size or not v.size:
        return a
    if mode is None:
        ind = clip(choose_between(ind < 0, ind + a.size, ind), 0, a.size - 1)
    elif mode == "clip":
        ind = clip(ind, 0, a.size - 1)
    elif mode == "wrap":
        ind = remainder(ind, np.array(a.size, ind.dtype))
    elif mode == "raise":
        raise NotImplementedError("The 'raise' mode to jnp.put is not supported.")
    else:
        raise ValueError(f"mode should be one of 'wrap' or 'clip'; got mode={mode!r}")
    flat = ravel(a).at[ind].set(tile_to_size(v, ind.size), mode="drop")
    return reshape(flat, a.shape)


def place(arr, mask, vals, *, inplace=True):
    """A copy of `arr` with `vals`, repeated as needed, where `mask` is true."""
    refuse_in_place("place", inplace)
    check_arraylike("place", arr, mask, vals)
    arr, mask, vals = asarray(arr), ravel(mask), ravel(vals)
    if arr.size != mask.size:
        raise ValueError("place: arr and mask must be the same size")
    if not vals.size:
        raise ValueError("Cannot place values from an empty array")
    if not arr.size:
        return arr
    places, = nonzero(mask, size=mask.size, fill_value=mask.size)
    flat = ravel(arr).at[places].set(tile_to_size(vals, mask.size), mode="drop")
    return reshape(flat, arr.shape)


def fill_diagonal(a, val, wrap=False, *, inplace=True):
    """A copy of `a` with `val` on its main diagonal."""
    refuse_in_place("fill_diagonal", inplace)
    check_arraylike("fill_diagonal", a, val)
    a = asarray(a)
    if wrap:
        raise NotImplementedError("wrap=True is not implemented")
    if a.ndim < 2:
        raise ValueError("array must be at least 2-d")
    n = min(a.shape)
    if a.ndim > 2 and len(set(a.shape)) > 1:
        raise ValueError("All dimensions of input must be of equal length")
    places = np.arange(n)
    return a.at[(places,) * a.ndim].set(tile_to_size(ravel(val), n) if np.ndim(val) else val)


# --- The places where something holds -------------------------------------------------------------

def nonzero(a, *, size=None, fill_value=None):
    """The indices of the elements that are not zero: one array of indices for each axis.

    Their number must be known: either `a` is no tracer, or `size` says how many to return; what is
    missing is filled up with `fill_value` (a number, or one an axis; default 0).
    """
    a = ensure_arraylike("nonzero", a)
    if not a.ndim:
        raise ValueError("Calling nonzero on 0d arrays is not allowed. Use "
                         "jnp.atleast_1d(scalar).nonzero() instead.")
    mask = a if a.dtype == bool else a != 0
    if size is None:
        known = concrete_or_error(np.asarray, mask, NONZERO_SIZE)
        return known_indices(np.nonzero(known))
    size = concrete_or_error(operator.index, size, NONZERO_SIZE)
    dtype = dtypes.default_int_dtype()
    if mask.size == 0 or size == 0:
        return tuple(zeros(size, dtype) for _ in mask.shape)
    counts = cumsum(convert(ravel(mask), dtype))
    return padded_places(mask.shape, counts, size, fill_values_for(fill_value, mask.ndim))


NONZERO_SIZE = ("The size argument of jnp.nonzero must be statically specified to use jnp.nonzero "
                "within JAX transformations.")


def known_indices(places):
    return tuple([as_array(p.astype(dtypes.default_int_dtype())) for p in places])


def fill_values_for(fill_value, ndim):
    values = fill_value if isinstance(fill_value, tuple) else (fill_value or 0,) * ndim
    if len(values) != ndim or any(np.shape(v) for v in values):
        raise ValueError(f"fill_value of nonzero must be a scalar or a tuple of length {ndim}; got "
                         f"{fill_value}")
    return values


def padded_places(shape, counts, size, fill_values):
    """Where the running count first reaches 1, 2, …, size: so many elements lie before each."""
    before = cumsum(zeros(size, counts.dtype).at[counts].add(1, mode="drop"))
    missing = arange(size) >= counts[-1]
    return tuple([choose_between(missing, convert(fill, counts.dtype), place)
                  for fill, place in zip(fill_values, unravel_index(before, shape))])


def flatnonzero(a, *, size=None, fill_value=None):
    """The indices of the nonzero elements in the flat array; see `nonzero`."""
    return nonzero(ravel(a), size=size, fill_value=fill_value)[0]


def argwhere(a, *, size=None, fill_value=None):
    """The indices of the nonzero elements, one row each; see `nonzero`."""
    check_arraylike("argwhere", a)
    if np.ndim(a) == 0:
        count = len(nonzero(ravel(a))[0]) if size is None else size
        return zeros((count, 0), dtypes.default_int_dtype())
    places = nonzero(a, size=size, fill_value=fill_value)
    return concatenate([lax.expand_dims(p, (1,)) for p in places], axis=1)


def where(condition, x=None, y=None, /, *, size=None, fill_value=None):
    """Elements of `x` where `condition` holds, else of `y`; with the condition alone, `nonzero`."""
    if x is None and y is None:
        check_arraylike("where", condition)
        return nonzero(condition, size=size, fill_value=fill_value)
    if x is None or y is None:
        raise TypeError("Either both or neither of the x and y arguments should be provided to "
                        "jax.numpy.where")
    if size is not None or fill_value is not None:
        raise ValueError("size and fill_value arguments cannot be used in three-term where "
                         "function.")
    return choose_between(condition, x, y)


def compress(condition, a, axis=None, *, size=None, fill_value=0, out=None):
    """The parts of `a` along `axis` (the flat array if None) where the one-axis condition holds.

    With `size` the condition may be traced; the result has that many parts, filled up with
    fill_value.
    """
    check_arraylike("compress", condition, a, fill_value)
    condition = asarray(condition)
    if condition.ndim != 1:
        raise ValueError("condition must be a 1D array")
    if out is not None:
        raise NotImplementedError("out argument is not supported for jnp.compress.")
    a = ravel(a) if axis is None else asarray(a)
    axis = 0 if axis is None else canonicalize_axis(axis, a.ndim)
    if reduce_any_known(condition[a.shape[axis]:]):
        raise ValueError("condition contains entries that are out of bounds")
    places = flatnonzero(condition[:a.shape[axis]], size=size, fill_value=a.shape[axis])
    return take(a, places, axis=axis, mode="fill", fill_value=fill_value)


def reduce_any_known(condition):
    return condition.size and concrete_or_error(bool, reduce_any(condition),
                                                "condition of compress")


def extract(condition, arr, *, size=None, fill_value=0):
    """The elements of the flat array where the condition holds; see `compress`."""
    return compress(ravel(condition), ravel(arr), size=size, fill_value=fill_value)


# --- Flat indices and back ------------------------------------------------------------------------

def unravel_index(indices, shape):
    """Indices into the flat array as a tuple of indices into an array of that shape.

    Numbers out of bounds are clipped.
    """
    check_arraylike("unravel_index", indices)
    rest = asarray(indices)
    known = concrete_or_error(np.asarray, shape, "shape argument of unravel_index")
    sizes = canonicalize_shape(known.tolist())
    out = []
    for n in reversed(sizes):
        rest, place = divmod(rest, n)
        out.append(place)
    # What is left over says whether the index was out of bounds: -1 are those that count from the
    # end.
    return tuple([choose_between(rest > 0, n - 1, choose_between(rest < -1, 0, place))
                  for n, place in zip(sizes, reversed(out))])


def ravel_multi_index(multi_index, dims, mode="raise", order="C"):
    """A tuple of indices into an array of shape `dims` as indices into the flat array.

    Out of bounds: mode 'raise' is an error (the indices must be known), 'wrap' and 'clip' bring
    them in.
    """
    dims = canonicalize_shape(dims)
    if len(multi_index) != len(dims):
        raise ValueError(f"len(multi_index)={len(multi_index)} != len(dims)={len(dims)}")
    indices = [asarray(i) for i in multi_index]
    for i in indices:
        if not dtypes.issubdtype(i.dtype, np.integer):
            raise TypeError("only int indices permitted")
    if order not in ("C", "F"):
        raise ValueError(f"invalid order={order!r}. Expected 'C' or 'F'")
    indices = [into_bounds(i, n, mode) for i, n in zip(indices, dims)]
    strides = [prod(dims[i + 1:]) if order == "C" else prod(dims[:i]) for i in range(len(dims))]
    result = np.int32(0)
    for i, stride in zip(indices, strides):
        result = result + i * np.int32(stride)
    return asarray(result)


def into_bounds(i, n, mode):
    if mode == "clip":
        return clip(i, 0, n - 1)
    if mode == "wrap":
        return remainder(i, np.array(n, i.dtype))
    if mode != "raise":
        raise ValueError(f"invalid mode={mode!r}. Expected 'raise', 'wrap', or 'clip'")
    known = concrete_or_error(np.asarray, i, "The error occurred because ravel_multi_index was jit-"
                              "compiled with mode='raise'. Use mode='wrap' or mode='clip' instead.")
    if np.any((known < 0) | (known >= n)):
        raise ValueError("invalid entry in coordinates array")
    return i


def ix_(*args):
    """Vectors shaped so that together they index the grid of all combinations."""
    out = []
    for i, a in enumerate(args):
        a = asarray(a)
        if a.ndim != 1:
            raise ValueError("Arguments to jax.numpy.ix_ must be 1-dimensional, got shape "
                             f"{a.shape}")
        if a.dtype == bool:
            raise NotImplementedError("Boolean arguments to jax.numpy.ix_ are not implemented")
        out.append(reshape(a, [a.shape[0] if i == j else 1 for j in range(len(args))]))
    return tuple(out)


def diag_indices(n, ndim=2):
    """The indices of the main diagonal of an array with `ndim` axes of size n."""
    n = concrete_or_error(operator.index, n, "'n' argument of jnp.diag_indices()")
    ndim = concrete_or_error(operator.index, ndim, "'ndim' argument of jnp.diag_indices()")
    if n < 0:
        raise ValueError(f"n argument to diag_indices must be nonnegative, got {n}")
    if ndim < 0:
        raise ValueError(f"ndim argument to diag_indices must be nonnegative, got {ndim}")
    return (arange(n),) * ndim


def diag_indices_from(arr):
    """The indices of the main diagonal of `arr`, whose axes have one size."""
    check_arraylike("diag_indices_from", arr)
    if np.ndim(arr) < 2:
        raise ValueError("input array must be at least 2-d")
    if len(set(np.shape(arr))) != 1:
        raise ValueError("All dimensions of input must be of equal length")
    return diag_indices(np.shape(arr)[0], ndim=np.ndim(arr))


def tril_indices(n, k=0, m=None):
    """The indices of the elements on and below the k-th diagonal of an n×m matrix."""
    return known_indices(np.nonzero(np.tri(n, m, k, dtype=bool)))


def triu_indices(n, k=0, m=None):
    """The indices of the elements on and above the k-th diagonal of an n×m matrix."""
    return known_indices(np.nonzero(~np.tri(n, m, k - 1, dtype=bool)))


def tril_indices_from(arr, k=0):
    """`tril_indices` for a matrix of the shape of `arr`."""
    return tril_indices(*matrix_shape(arr, k))


def triu_indices_from(arr, k=0):
    """`triu_indices` for a matrix of the shape of `arr`."""
    return triu_indices(*matrix_shape(arr, k))


def matrix_shape(arr, k):
    shape = np.shape(arr)
    if len(shape) != 2:
        raise ValueError(f"Only 2-D inputs are accepted, got {len(shape)} dimensions")
    return shape[0], k, shape[1]


def mask_indices(n, mask_func, k=0, *, size=None):
    """The indices of the elements of an n×n matrix of ones that mask_func(matrix, k) keeps."""
    return nonzero(mask_func(full((n, n), 1), k), size=size)


# --- Choices --------------------------------------------------------------------------------------

def select(condlist, choicelist, default=0):
    """Each element from the choice whose condition is the first to hold, else `default`."""
    if len(condlist) != len(choicelist):
        raise ValueError(f"condlist must have length equal to choicelist ({len(condlist)} vs "
                         f"{len(choicelist)})")
    if not len(condlist):
        raise ValueError("condlist must be non-empty")
    *choices, out = promote_dtypes(*[asarray(c) for c in choicelist], default)
    for condition, choice in zip(reversed(condlist), reversed(choices)):
        out = choose_between(condition, choice, out)
    return out


def choose(a, choices, out=None, mode="raise"):
    """choices[a[i]][i] for every place i; choices broadcast. Out of bounds as
    `ravel_multi_index`."""
    if out is not None:
        raise NotImplementedError("The 'out' argument to jnp.choose is not supported.")
    check_arraylike("choose", a, *choices)
    a = asarray(a)
    if not dtypes.issubdtype(a.dtype, np.integer):
        raise ValueError("`a` array must be integer typed")
    a, *choices = broadcast_arrays(into_bounds(a, len(choices), mode), *choices)
    stacked = stack_first(promote_dtypes(*choices))
    return gather_along(stacked, lax.expand_dims(a, (0,)), 0, "clip", None, False)[0]


def stack_first(arrays):
    return lax.concatenate([lax.expand_dims(a, (0,)) for a in arrays], 0)


def piecewise(x, condlist, funclist, *args, **kw):
    """f(x) with the function (or number) whose condition is the last to hold; one more is the
    default."""
    x = ensure_arraylike("piecewise", x)
    conditions = piecewise_conditions(condlist)
    count = len(conditions)
    if len(funclist) == count:
        out, funcs = zeros_like(x), funclist
    elif len(funclist) == count + 1:
        out, funcs = value_of_piece(funclist[-1], x, args, kw), funclist[:-1]
    else:
        raise ValueError(f"with {count} condition(s), either {count} or {count + 1} functions are "
                         f"expected; got {len(funclist)}")
    out = broadcast_trailing(convert(out, x.dtype), x.shape)
    for condition, f in zip(conditions, funcs):
        piece = convert(value_of_piece(f, x, args, kw), x.dtype)
        out = choose_between(condition, piece, out)
    return out


def piecewise_conditions(condlist):
    if np.ndim(condlist) == 0 if not isinstance(condlist, (list, tuple)) else False:
        return [asarray(condlist)]
    return [asarray(c, dtype=bool) for c in condlist]


def value_of_piece(f, x, args, kw):
    return f(x, *args, **kw) if callable(f) else asarray(f)


# --- Deleting and inserting -----------------------------------------------------------------------

def delete(arr, obj, axis=None, *, assume_unique_indices=False):
    """`arr` without the parts at `obj` (a number, slice, indices or mask) along `axis`.

    The size of the result must be known, so `obj` must be, or its elements are promised to be
    unique.
    """
    check_arraylike("delete", arr)
    arr = ravel(arr) if axis is None else asarray(arr)
    axis = 0 if axis is None else canonicalize_axis(axis, arr.ndim)
    size = arr.shape[axis]
    if isinstance(obj, builtins.slice):
        return take(arr, np.delete(np.arange(size, dtype=np.int32), obj), axis=axis)
    if isinstance(obj, (int, np.integer)):
        obj = canonicalize_axis(obj, size)
    obj = ensure_arraylike("delete", obj)
    if assume_unique_indices and obj.dtype != bool:
        return delete_unique(arr, ravel(obj), axis)
    known = concrete_or_error(np.asarray, obj, "'obj' array argument of jnp.delete()")
    if known.dtype != bool and not dtypes.issubdtype(known.dtype, np.integer):
        raise ValueError(f"np.delete(arr, obj): got obj.dtype={known.dtype}; must be integer or "
                         "bool.")
    if known.dtype == bool and known.shape != (size,):
        raise ValueError("np.delete(arr, obj): for boolean indices, obj must be one-dimensional "
                         f"with length matching specified axis; got {known.shape} and {size}.")
    return take(arr, np.delete(np.arange(size, dtype=np.int32), known), axis=axis)


def delete_unique(arr, obj, axis):
    """Skip places that need not be known, but whose number is."""
    size = arr.shape[axis]
    gone = zeros(size, bool).at[clip(choose_between(obj < 0, obj + size, obj), 0,
                                     size - 1)].set(True)
    return take(arr, flatnonzero(~gone, size=size - obj.size), axis=axis)


def insert(arr, obj, values, axis=None):
    """`arr` with `values` inserted before the indices `obj` along `axis` (flat if None)."""
    check_arraylike("insert", arr, values)
    a = ravel(arr) if axis is None else asarray(arr)
    axis = 0 if axis is None else canonicalize_axis(axis, a.ndim)
    n = a.shape[axis]
    places = arange(*obj.indices(n)) if isinstance(obj, builtins.slice) else array(obj)
    if places.ndim > 1:
        raise ValueError("jnp.insert(): obj must be a slice, a one-dimensional array, or a scalar; "
                         f"got {obj}")
    if not dtypes.issubdtype(places.dtype, np.integer):
        if places.size:
            raise ValueError(f"jnp.insert(): index array must be integer typed; got {obj}")
        places = places.astype(np.int32)
    values = array(values, ndmin=a.ndim, dtype=a.dtype)
    if places.ndim == 0:
        values = moveaxis(values, 0, axis)
    return insert_along(a, places, values, axis)


def insert_along(a, places, values, axis):
    n = a.shape[axis]
    if places.size == 1:
        places = broadcast_trailing(reshape(places, (1,)), (values.shape[axis],))
    count, = lax.broadcast_shapes(places.shape, (values.shape[axis],))
    places = clip(choose_between(places < 0, places + n, places), 0, n)
    # A value inserted at a place lands behind those inserted before it.
    places = broadcast_trailing(places, (count,))
    order = stable_order(places)
    new = zeros(count, places.dtype).at[order].set(places[order]
                                                   + arange(count, dtype=places.dtype))
    is_old = ~zeros(n + count, bool).at[new].set(True)
    old = flatnonzero(is_old, size=n)
    shape = replaced(a.shape, axis, n + count)
    before = (builtins.slice(None),) * axis
    out = zeros_like(a, shape=shape).at[(*before, old)].set(a)
    return out.at[(*before, new)].set(broadcast_trailing(values, replaced(a.shape, axis, count)))


def stable_order(x):
    return lax.sort((x, lax.iota(np.int32, x.shape[0])), num_keys=1, is_stable=True)[1]


# --- Grids by slicing -----------------------------------------------------------------------------

def grid_axis(s):
    """The numbers that a slice of mgrid or ogrid stands for; an imaginary step counts them."""
    start = 0 if s.start is None else s.start
    step = 1 if s.step is None else s.step
    if isinstance(step, complex):
        return np.linspace(start, s.stop, int(abs(step)))
    return np.arange(start, s.stop, step)


class MGrid:
    """mgrid[a:b, c:d]: the coordinates of a grid, stacked; an imaginary step counts the points."""

    def __getitem__(self, key):
        axes = [array(grid_axis(s)) for s in (key if isinstance(key, tuple) else (key,))]
        if not isinstance(key, tuple):
            return axes[0]
        axes = promote_dtypes(*axes)
        shape = tuple(a.size for a in axes)
        return stack_first([lax.broadcast_in_dim(a, shape, (i,)) for i, a in enumerate(axes)])


class OGrid:
    """ogrid[a:b, c:d]: the coordinates of a grid, each along its own axis."""

    def __getitem__(self, key):
        axes = [array(grid_axis(s)) for s in (key if isinstance(key, tuple) else (key,))]
        return list(ix_(*promote_dtypes(*axes))) if isinstance(key, tuple) else axes[0]


mgrid = MGrid()
ogrid = OGrid()
index_exp = np.index_exp
s_ = np.s_


# --- Joining by slicing ---------------------------------------------------------------------------

class Joiner:
    """r_[a, 1, 2:5] and c_[a, b]: join arrays, numbers and ranges along an axis.

    A first entry such as "0,2" says: along axis 0, with at least 2 axes; a third number says where
    the axes of the arrays start.
    """

    def __init__(self, axis, ndmin, first_axis):
        self.defaults = axis, ndmin, first_axis

    def __getitem__(self, key):
        key = key if isinstance(key, tuple) else (key,)
        axis, ndmin, first = self.defaults
        if isinstance(key[0], str):
            axis, ndmin, first = self.directive(key[0])
            key = key[1:]
        parts = [array(grid_axis(k)) if isinstance(k, builtins.slice) else array(k) for k in key]
        return concatenate([self.placed(p, ndmin, first) for p in parts], axis)

    def directive(self, text):
        try:
            numbers = [int(n) for n in text.split(",")]
        except ValueError:
            raise ValueError(f"could not understand directive {text!r}") from None
        return (*numbers, *self.defaults[len(numbers):])

    @staticmethod
    def placed(part, ndmin, first):
        """With at least `ndmin` axes, those it has starting at axis `first`."""
        if part.ndim >= ndmin:
            return part
        missing = ndmin - part.ndim
        before = min(first if first >= 0 else missing + 1 + first, missing)
        return lax.expand_dims(part, [*range(before), *range(before + part.ndim, ndmin)])


r_ = Joiner(0, 1, -1)
c_ = Joiner(-1, 2, 0)
