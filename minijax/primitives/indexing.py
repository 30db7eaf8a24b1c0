# Exported from notebooks/ref_indexing.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: primitives. Home: ref_indexing. In JAX: jax/_src/lax/slicing.py.

Reading and writing at places known only at run time. `gather` reads windows of an array, `scatter`
and its kin write them, and each is the transpose of the other; every NumPy-style index becomes one
of them. `dynamic_slice` and `dynamic_update_slice` are the special case of a single window.
"""

import builtins
import operator
from enum import Enum, auto
from functools import partial
from math import prod
from typing import NamedTuple

import numpy as np

from minijax import complex_pairs, dtypes, loop_ir
from minijax.array import Array
from minijax.avals import ShapedArray, typeof
from minijax.core import Primitive
from minijax.loop_ir import (
    Axis, Buffer, COMPLEX, Const, Load, Store, ZERO, axis_index, body_of, dynamic_index,
    elementwise_step, flat_index, guard_of, guarded, identity, in_pairs, library_step, op, read,
    row_major, store_part, view_step, wide,
)
from minijax.primitives.elementwise import (
    ANY, NUMERIC, add, convert_element_type, div, eq, largest, lt, mul, neg, rem, select_n,
    smallest,
)
from minijax.primitives.structural import (
    asarray, broadcast_in_dim, canonicalize_axis, canonicalize_shape, concatenate, expand_dims,
    full, full_like, index_in_dim, invert, iota, reshape, squeeze, zeros_like,
)
from minijax.rules import (
    Zero, batch_axis_first, check_dtypes, def_checked_impl, def_transpose_per_operand,
    defjet_linear, defjvp, deflinear_jointly, full_like_aval, instantiate_zeros,
    is_undefined_primal, is_zero, not_mapped, refuse_undefined, shape_of, shift_axes,
)

__all__ = [
    "GatherDimensionNumbers", "ScatterDimensionNumbers", "GatherScatterMode", "as_gather",
    "as_scatter", "check_access", "check_sizes", "check_integer_indices", "window_starts",
    "as_int64", "windows_inside", "move_inside", "read_windows", "window_index", "write_windows",
    "batch_axes_first", "gather_p", "gather", "default_fill_value", "gather_impl", "window_axes",
    "gather_abstract_eval", "zero_fill", "gather_transpose", "gather_batch", "gather_lowering",
    "add_batch_axis", "bind_scatter", "scatter_impl", "update_sizes", "scatter_abstract_eval",
    "scatter_batch", "def_scatter", "lower_scatter", "scattered_place", "unchanging", "negated",
    "gather_as_scattered", "scatter_add_p", "scatter_add", "scatter_sub_p", "scatter_sub",
    "scatter_p", "scatter", "scatter_jvp", "scatter_tangent_of_winners", "update_numbers",
    "batch_layout", "scatter_transpose_operand", "scatter_transpose_updates", "check_unique",
    "scatter_mul_p", "scatter_mul", "scatter_mul_jvp_updates", "scatter_mul_transpose_updates",
    "scatter_extremal_jvp", "scatter_min_p", "scatter_min", "scatter_max_p", "scatter_max",
    "dynamic_slice_p", "dynamic_slice", "dynamic_starts", "dynamic_start", "clamped_slices",
    "check_starts", "dynamic_slice_abstract_eval", "dynamic_slice_jvp", "dynamic_slice_transpose",
    "dynamic_slice_batch", "dynamic_slice_lowering", "dynamic_begins", "whole_start", "join_starts",
    "dynamic_update_slice_p", "dynamic_update_slice", "dynamic_update_slice_impl",
    "dynamic_update_slice_abstract_eval", "dynamic_update_slice_transpose",
    "dynamic_update_slice_batch", "dynamic_update_slice_lowering", "starts_along",
    "dynamic_slice_in_dim", "dynamic_index_in_dim", "dynamic_update_slice_in_dim",
    "dynamic_update_index_in_dim", "index_take", "wrap_index",
]


# --- How an access is described -------------------------------------------------------------------

class GatherDimensionNumbers(NamedTuple):
    """How the axes of a gather's operand, indices and result relate.

    offset_dims: the result's axes that run through a window; the others run through the indices.
    collapsed_slice_dims: the operand's axes of window size 1 that the result lacks.
    start_index_map: the operand's axis of each component of an index (the indices' last axis).
    operand_batching_dims, start_indices_batching_dims: pairs of axes that run together.
    """
    offset_dims: tuple
    collapsed_slice_dims: tuple
    start_index_map: tuple
    operand_batching_dims: tuple = ()
    start_indices_batching_dims: tuple = ()


class ScatterDimensionNumbers(NamedTuple):
    """The same for a scatter: its updates are shaped like the result of a gather.

    update_window_dims are a gather's offset_dims, inserted_window_dims its collapsed_slice_dims,
    scatter_dims_to_operand_dims its start_index_map.
    """
    update_window_dims: tuple
    inserted_window_dims: tuple
    scatter_dims_to_operand_dims: tuple
    operand_batching_dims: tuple = ()
    scatter_indices_batching_dims: tuple = ()


class GatherScatterMode(Enum):
    """What happens to a window that is not inside the array.

    CLIP moves it inside. FILL_OR_DROP reads a fill value and writes nothing. PROMISE_IN_BOUNDS says
    that there is none; should there be one, gather moves it inside and scatter writes nothing.
    """
    CLIP = auto()
    FILL_OR_DROP = auto()
    PROMISE_IN_BOUNDS = auto()

    @staticmethod
    def from_any(mode):
        """The mode of a name that users write; None is fill or drop."""
        if isinstance(mode, GatherScatterMode):
            return mode
        if mode not in _MODES:
            raise ValueError(f"unknown gather or scatter mode {mode!r}; expected one of "
                             f"{[name for name in _MODES if name]}")
        return _MODES[mode]


_MODES = {None: GatherScatterMode.FILL_OR_DROP, "fill": GatherScatterMode.FILL_OR_DROP,
          "drop": GatherScatterMode.FILL_OR_DROP, "clip": GatherScatterMode.CLIP,
          "promise_in_bounds": GatherScatterMode.PROMISE_IN_BOUNDS}


def as_gather(numbers):
    """The gather that reads what a scatter writes."""
    return GatherDimensionNumbers(*numbers)


def as_scatter(numbers):
    """The scatter that writes where a gather reads."""
    return ScatterDimensionNumbers(*numbers)


# --- Checks ---------------------------------------------------------------------------------------

def check_access(name, shape, indices, numbers, sizes, window_ndim):
    """Raise TypeError unless dimension numbers and window sizes fit operand and indices."""
    window_dims, collapsed, index_map, batching, indices_batching = numbers
    for what, dims, ndim in (("window dimensions", window_dims, window_ndim),
                             ("collapsed dimensions", collapsed, len(shape)),
                             ("indexed dimensions", index_map, len(shape)),
                             ("operand batching dimensions", batching, len(shape)),
                             ("indices batching dimensions", indices_batching, len(indices) - 1)):
        if len(set(dims)) != len(dims) or not all(0 <= d < ndim for d in dims):
            raise TypeError(f"{name} {what} must be distinct and in [0, {ndim}), got {dims}")
        ordered = what not in ("indexed dimensions", "indices batching dimensions")
        if ordered and list(dims) != sorted(dims):
            raise TypeError(f"{name} {what} must be sorted, got {dims}")
    if len(index_map) != indices[-1]:
        raise TypeError(f"{name} indices of shape {indices} have {indices[-1]} components, but "
                        f"{len(index_map)} dimensions are indexed, {index_map}")
    if set(batching) & {*collapsed, *index_map}:
        raise TypeError(f"{name} batching dimensions {batching} must be neither collapsed nor "
                        "indexed")
    if [shape[d] for d in batching] != [indices[d] for d in indices_batching]:
        raise TypeError(f"{name} batching dimensions must have the same size, got {batching} of "
                        f"the operand's shape {shape} and {indices_batching} of the indices' "
                        f"{indices}")
    check_sizes(name, shape, indices, numbers, sizes)


def check_sizes(name, shape, indices, numbers, sizes):
    if not len(sizes) == len(shape) == sum(map(len, (numbers[0], numbers[1], numbers[3]))):
        raise TypeError(f"{name} needs a window size for each of the operand's axes, which are "
                        f"window, collapsed or batching; got {sizes}, {numbers}, shape {shape}")
    if prod(indices) and not all(0 <= size <= n for size, n in zip(sizes, shape)):
        raise TypeError(f"{name} window sizes must be in [0, operand size], got {sizes} for an "
                        f"operand of shape {shape}")
    if any(sizes[d] != 1 for d in numbers[1]) or any(sizes[d] > 1 for d in numbers[3]):
        raise TypeError(f"{name} collapsed and batching dimensions must have window size 1, got "
                        f"sizes {sizes} and {numbers}")


def check_integer_indices(name, indices):
    if not dtypes.issubdtype(indices.dtype, np.integer):
        raise ValueError(f"{name} indices must have an integer type, got {indices.dtype}")
    if not indices.ndim:
        raise TypeError(f"{name} indices need a last axis of index components, got a scalar")


# --- Windows --------------------------------------------------------------------------------------

# Read or written, S windows of an array are an array of shape (S, *sizes), one size for each of the
# array's axes, and where they start is a dict: axis -> vector of S numbers.

def window_starts(indices, numbers):
    """The start of every window along each axis that has one."""
    _, _, index_map, batching, indices_batching = numbers
    *batch, k = indices.shape
    flat = as_int64(indices).reshape(prod(batch), k)
    starts = {axis: flat[:, j] for j, axis in enumerate(index_map)}
    for axis, d in zip(batching, indices_batching):
        along = np.arange(batch[d]).reshape([-1 if i == d else 1 for i in range(len(batch))])
        starts[axis] = np.broadcast_to(along, batch).reshape(prod(batch))
    return starts


def as_int64(indices):
    if indices.dtype == np.uint64:
        indices = np.minimum(indices, np.uint64(np.iinfo(np.int64).max))
    return indices.astype(np.int64)


def windows_inside(starts, shape, sizes):
    """Which of the windows lie inside the array."""
    inside = np.True_
    for axis, start in starts.items():
        inside = inside & (start >= 0) & (start <= shape[axis] - sizes[axis])
    return inside


def move_inside(starts, shape, sizes):
    return {axis: np.clip(start, 0, max(shape[axis] - sizes[axis], 0))
            for axis, start in starts.items()}


def read_windows(x, starts, sizes, count):
    """`count` windows of `x`: an array of shape (count, *sizes)."""
    # Indexed axes come first; the others, which windows take from 0, are left to faster slices.
    order = [*starts, *(d for d in range(x.ndim) if d not in starts)]
    whole = tuple(builtins.slice(None if d in starts else size) for d, size in enumerate(sizes))
    view = x[whole].transpose(order)
    if not starts:
        windows = np.broadcast_to(view, (count, *view.shape))
    else:
        windows = view[window_index(starts, sizes, count)]
    return windows.transpose((0, *shift_axes(invert(order))))


def window_index(starts, sizes, count):
    """An index array of shape (count, 1, …, size, …, 1) for each indexed axis."""
    k = len(starts)
    return tuple(start.reshape((count, *(1,) * k)) + np.arange(sizes[axis]).reshape(
        [-1 if i == j else 1 for i in range(k + 1)]) for j, (axis, start)
        in enumerate(starts.items(), 1))


def write_windows(x, starts, updates, combine):
    """combine(x, places, updates) in place, all three of them flat: the inverse of reading."""
    places = np.arange(x.size).reshape(x.shape)
    places = read_windows(places, starts, updates.shape[1:], len(updates))
    combine(x.reshape(-1), places.reshape(-1), updates.reshape(-1))


def batch_axes_first(ndim, window_dims):
    """The order of axes that puts those of the indices before those of the window."""
    return [*(d for d in range(ndim) if d not in window_dims), *window_dims]


# --- gather ---------------------------------------------------------------------------------------

gather_p = Primitive("gather")


def gather(operand, start_indices, dimension_numbers, slice_sizes, *, unique_indices=False,
           indices_are_sorted=False, mode=None, fill_value=None):
    """Read a window of sizes `slice_sizes` at every index; see `GatherDimensionNumbers`.

    In mode "fill" a window not quite inside reads `fill_value`: by default nan, the least signed or
    greatest unsigned integer, or True.
    """
    mode = GatherScatterMode.from_any(mode)
    if mode is not GatherScatterMode.FILL_OR_DROP:
        fill_value = None
    elif fill_value is None:
        fill_value = default_fill_value(dtypes.dtype(operand))
    return gather_p.bind(operand, start_indices, dimension_numbers=dimension_numbers,
                         slice_sizes=canonicalize_shape(slice_sizes),
                         indices_are_sorted=bool(indices_are_sorted),
                         unique_indices=bool(unique_indices), mode=mode, fill_value=fill_value)


def default_fill_value(dtype):
    if dtypes.issubdtype(dtype, np.inexact):
        return np.nan
    if dtype == bool:
        return True
    bounds = dtypes.iinfo(dtype)
    return bounds.min if dtypes.issubdtype(dtype, np.signedinteger) else bounds.max


def gather_impl(x, indices, *, dimension_numbers, slice_sizes, mode, fill_value, **_):
    starts = window_starts(indices, dimension_numbers)
    batch = indices.shape[:-1]
    out = read_windows(x, move_inside(starts, x.shape, slice_sizes), slice_sizes, prod(batch))
    if mode is GatherScatterMode.FILL_OR_DROP:
        inside = windows_inside(starts, x.shape, slice_sizes)
        if not inside.all():
            inside = inside.reshape((-1, *(1,) * x.ndim))
            out = np.where(inside, out, np.asarray(fill_value).astype(x.dtype))
    window = [slice_sizes[d] for d in window_axes(x.ndim, dimension_numbers)]
    order = batch_axes_first(len(batch) + len(window), dimension_numbers.offset_dims)
    return out.reshape((*batch, *window)).transpose(invert(order))


def_checked_impl(gather_p, gather_impl)


def window_axes(ndim, numbers):
    """The operand's axes that the window dimensions of result or updates run through."""
    return [d for d in range(ndim) if d not in numbers[1] and d not in numbers[3]]


@gather_p.def_abstract_eval
def gather_abstract_eval(x, indices, *, dimension_numbers, slice_sizes, **_):
    check_integer_indices("gather", indices)
    offset_dims = dimension_numbers.offset_dims
    ndim = len(offset_dims) + indices.ndim - 1
    check_access("gather", x.shape, indices.shape, dimension_numbers, slice_sizes, ndim)
    window = [slice_sizes[d] for d in window_axes(x.ndim, dimension_numbers)]
    order = batch_axes_first(ndim, offset_dims)
    sizes = (*indices.shape[:-1], *window)
    return x.update(shape=[sizes[d] for d in invert(order)])


defjvp(gather_p, lambda t, x, indices, *, fill_value, **params:
       gather_p.bind(t, indices, fill_value=zero_fill(fill_value), **params), None)
defjet_linear(gather_p)


def zero_fill(fill_value):
    return None if fill_value is None else 0


def gather_transpose(ct, x, indices, *, dimension_numbers, slice_sizes, fill_value, **params):
    zeros = full_like_aval(x.aval, 0)
    return scatter_add_p.bind(zeros, indices, ct, dimension_numbers=as_scatter(dimension_numbers),
                              **params)


def_transpose_per_operand(gather_p, gather_transpose, None)


@gather_p.def_batch
def gather_batch(axis, vals, dims, *, dimension_numbers, slice_sizes, **params):
    x, indices = (v if d is not_mapped else batch_axis_first(axis, v, d)
                  for v, d in zip(vals, dims))
    x_mapped, indices_mapped = (d is not not_mapped for d in dims)
    numbers = add_batch_axis(dimension_numbers, x_mapped, indices_mapped)
    if x_mapped:
        slice_sizes = (1 if indices_mapped else axis.size, *slice_sizes)
    if indices_mapped and not x_mapped:
        # what holds within an example does not hold between examples
        params.update(unique_indices=False, indices_are_sorted=False)
    out = gather_p.bind(x, indices, dimension_numbers=numbers, slice_sizes=slice_sizes, **params)
    return out, 0


@gather_p.def_lowering
def gather_lowering(ctx, x, indices, *, dimension_numbers, slice_sizes, mode, fill_value, **params):
    if not ctx.is_native() or not x.size or not isinstance(indices, Buffer):
        return library_step(ctx, x, indices, dimension_numbers=dimension_numbers, mode=mode,
                            slice_sizes=slice_sizes, fill_value=fill_value, **params)
    out = ctx.result()
    axes = [Axis(n) for n in out.shape]
    window_dims, collapsed, index_map, batching, indices_batching = dimension_numbers
    batch = [axis_index(a) for d, a in enumerate(axes) if d not in window_dims]
    place = [ZERO] * len(x.shape)
    for d, window in zip(window_axes(len(x.shape), dimension_numbers), window_dims):
        place[d] = axis_index(axes[window])
    for d, k in zip(batching, indices_batching):
        place[d] = batch[k]
    guard = []
    for k, d in enumerate(index_map):
        start = read(indices, flat_index([*batch, ZERO + k], indices.shape))
        last = x.shape[d] - slice_sizes[d]
        beyond = mode is GatherScatterMode.FILL_OR_DROP        # one step outside is outside enough
        begin = dynamic_index(start, -beyond, last + beyond)
        place[d] = place[d] + begin
        guard += [(begin, last + 1)] * beyond
    guard = guard_of(guard)
    value = Load(x, flat_index(place, x.shape), guard)
    if guard:
        value = guarded(value, guard, Const(fill_value, x.dtype))
    ctx.nest(axes, body_of([Store(out, row_major(axes), value)]))
    return out


def add_batch_axis(numbers, operand_mapped, indices_mapped):
    """The dimension numbers when operand, indices or both get a batch axis in front.

    The result gets it in front too: as a batching axis of operand and indices if both have it, else
    as an axis of the window, or of the indices.
    """
    window_dims, collapsed, index_map, batching, indices_batching = numbers
    window_dims = shift_axes(window_dims)
    if operand_mapped:
        collapsed, index_map, batching = map(shift_axes, (collapsed, index_map, batching))
    if indices_mapped:
        indices_batching = shift_axes(indices_batching)
    if operand_mapped and indices_mapped:
        batching, indices_batching = (0, *batching), (0, *indices_batching)
    elif operand_mapped:
        window_dims = (0, *window_dims)
    return type(numbers)(window_dims, collapsed, index_map, batching, indices_batching)


# --- scatter and its kin --------------------------------------------------------------------------

def bind_scatter(primitive, operand, indices, updates, dimension_numbers, indices_are_sorted,
                 unique_indices, mode):
    return primitive.bind(operand, indices, updates, dimension_numbers=dimension_numbers,
                          indices_are_sorted=bool(indices_are_sorted),
                          unique_indices=bool(unique_indices),
                          mode=GatherScatterMode.from_any(mode))


def scatter_impl(combine, x, indices, updates, *, dimension_numbers, mode, **_):
    """A copy of `x` with the windows `updates` written to it by combine(x, places, updates)."""
    sizes = update_sizes(x.shape, updates.shape, dimension_numbers)
    starts = window_starts(indices, dimension_numbers)
    order = batch_axes_first(updates.ndim, dimension_numbers.update_window_dims)
    updates = updates.transpose(order).reshape((prod(indices.shape[:-1]), *sizes))
    inside = windows_inside(starts, x.shape, sizes)
    if mode is GatherScatterMode.CLIP:
        starts = move_inside(starts, x.shape, sizes)
    elif not inside.all():
        starts, updates = {d: s[inside] for d, s in starts.items()}, updates[inside]
    out = np.array(x, order="C")
    write_windows(out, starts, updates, combine)
    return out


def update_sizes(shape, updates_shape, numbers):
    """The window's size along each of the operand's axes."""
    sizes = [1] * len(shape)
    for axis, d in zip(window_axes(len(shape), numbers), numbers.update_window_dims):
        sizes[axis] = updates_shape[d]
    return tuple(sizes)


def scatter_abstract_eval(x, indices, updates, *, dimension_numbers, **_):
    check_integer_indices("scatter", indices)
    if x.dtype != updates.dtype:
        raise TypeError("scatter requires operand and updates to have the same dtypes, got "
                        f"{x.dtype} and {updates.dtype}")
    window_dims = dimension_numbers.update_window_dims
    if updates.ndim != indices.ndim - 1 + len(window_dims):
        raise TypeError(f"scatter updates must have {indices.ndim - 1} axes of the indices and "
                        f"{len(window_dims)} of the window, got shape {updates.shape}")
    sizes = update_sizes(x.shape, updates.shape, dimension_numbers)
    check_access("scatter", x.shape, indices.shape, dimension_numbers, sizes, updates.ndim)
    batch = tuple(n for d, n in enumerate(updates.shape) if d not in window_dims)
    if batch != indices.shape[:-1]:
        raise TypeError(f"scatter updates of shape {updates.shape} must have the indices' shape "
                        f"{indices.shape[:-1]} outside the window, got {batch}")
    return x


def scatter_batch(primitive, axis, vals, dims, *, dimension_numbers, **params):
    """Every example gets an operand of its own to write to, and updates of its own."""
    x, updates = (batch_axis_first(axis, vals[i], dims[i]) for i in (0, 2))
    indices_mapped = dims[1] is not not_mapped
    indices = batch_axis_first(axis, vals[1], dims[1]) if indices_mapped else vals[1]
    numbers = add_batch_axis(dimension_numbers, True, indices_mapped)
    return primitive.bind(x, indices, updates, dimension_numbers=numbers, **params), 0


def def_scatter(primitive, combine, accepts=ANY):
    """What the family has in common: impl, abstract_eval and batch.

    combine(x, places, updates) writes into a flat NumPy array, such as np.add.at.
    """
    def abstract_eval(x, indices, updates, **params):
        check_dtypes(primitive, [x], accepts)
        return scatter_abstract_eval(x, indices, updates, **params)

    def_checked_impl(primitive, partial(scatter_impl, combine))
    primitive.def_abstract_eval(abstract_eval)
    primitive.def_batch(partial(scatter_batch, primitive))


def lower_scatter(primitive, combine, change=lambda value: value):
    """A copy of the operand, then a loop over the updates; those outside change nothing.

    A `combine` of IDENTITIES takes change(update).
    """
    def lowering(ctx, x, indices, updates, *, dimension_numbers, mode, **params):
        if (not ctx.is_native() or not isinstance(x, Buffer) or not isinstance(indices, Buffer)
                or not x.size):
            return library_step(ctx, x, indices, updates, dimension_numbers=dimension_numbers,
                                mode=mode, **params)
        out = elementwise_step(ctx, lambda x: x, x)
        axes = [Axis(n) for n in ctx.avals_in[2].shape]
        place, guard = scattered_place(x, indices, axes, dimension_numbers)
        value = change(read(updates, row_major(axes)))
        if mode is not GatherScatterMode.CLIP:
            value = guarded(value, guard_of(guard), unchanging(combine, out, place))
        ctx.nest(axes, body_of([Store(out, place, value, combine)]))
        return out
    primitive.def_lowering(lowering)


def scattered_place(x, indices, axes, numbers):
    """Where each update goes, moved inside; and the guard that holds where it need not be moved."""
    window_dims, _, index_map, batching, indices_batching = numbers
    sizes = update_sizes(x.shape, [a.size for a in axes], numbers)
    batch = [axis_index(a) for d, a in enumerate(axes) if d not in window_dims]
    place, guard = [ZERO] * len(x.shape), []
    for d, window in zip(window_axes(len(x.shape), numbers), window_dims):
        place[d] = axis_index(axes[window])
    for d, k in zip(batching, indices_batching):
        place[d] = batch[k]
    for k, d in enumerate(index_map):
        start = read(indices, flat_index([*batch, ZERO + k], indices.shape))
        last = x.shape[d] - sizes[d]
        place[d] = place[d] + dynamic_index(start, 0, last)
        guard.append((dynamic_index(start, -1, last + 1), last + 1))    # one step outside will do
    return flat_index(place, x.shape), guard


def unchanging(combine, out, place):
    """The update that leaves an element as it is."""
    if combine == "replace":
        return Load(out, place)
    if combine == "add" and dtypes.issubdtype(out.dtype, np.inexact):
        return negated(identity(combine, out.dtype))         # adding 0 would turn -0 into 0
    return identity(combine, out.dtype)


def negated(value):
    """-value, of any dtype."""
    if value.dtype in COMPLEX:
        return in_pairs(complex_pairs.negative, value)
    return loop_ir.convert(op("neg", wide(value)), value.dtype)


def gather_as_scattered(x, indices, updates, *, dimension_numbers, mode, unique_indices,
                        indices_are_sorted):
    """Read from `x` where `updates` would be written; 0 where they would be dropped."""
    sizes = update_sizes(typeof(x).shape, shape_of(updates), dimension_numbers)
    return gather(x, indices, as_gather(dimension_numbers), sizes, mode=mode, fill_value=0,
                  unique_indices=unique_indices, indices_are_sorted=indices_are_sorted)


# --- scatter_add ----------------------------------------------------------------------------------

scatter_add_p = Primitive("scatter-add")


def scatter_add(operand, scatter_indices, updates, dimension_numbers, *, indices_are_sorted=False,
                unique_indices=False, mode=None):
    """Add updates to windows of a copy of the operand; repeated indices add up."""
    return bind_scatter(scatter_add_p, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


def_scatter(scatter_add_p, np.add.at, NUMERIC)

deflinear_jointly(scatter_add_p, lambda i: i != 1)
def_transpose_per_operand(
    scatter_add_p, lambda ct, x, indices, updates, **params: ct, None,
    lambda ct, x, indices, updates, **params: gather_as_scattered(ct, indices, updates, **params))
lower_scatter(scatter_add_p, "add")


# --- scatter_sub ----------------------------------------------------------------------------------

scatter_sub_p = Primitive("scatter-sub")


def scatter_sub(operand, scatter_indices, updates, dimension_numbers, *, indices_are_sorted=False,
                unique_indices=False, mode=None):
    """Subtract updates from windows of a copy of the operand."""
    return bind_scatter(scatter_sub_p, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


def_scatter(scatter_sub_p, np.subtract.at, NUMERIC)

deflinear_jointly(scatter_sub_p, lambda i: i != 1)
def_transpose_per_operand(
    scatter_sub_p, lambda ct, x, indices, updates, **params: ct, None,
    lambda ct, x, indices, updates, **params:
        neg(gather_as_scattered(ct, indices, updates, **params)))
lower_scatter(scatter_sub_p, "add", negated)


# --- scatter --------------------------------------------------------------------------------------

scatter_p = Primitive("scatter")


def scatter(operand, scatter_indices, updates, dimension_numbers, *, indices_are_sorted=False,
            unique_indices=False, mode=None):
    """Write updates to windows of a copy of the operand; of a repeated index the last wins."""
    return bind_scatter(scatter_p, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


def_scatter(scatter_p, operator.setitem)


@scatter_p.def_jvp
def scatter_jvp(primals, tangents, **params):
    x, indices, updates = primals
    t_x, _, t_updates = tangents
    out = scatter_p.bind(*primals, **params)
    if is_zero(t_x) and is_zero(t_updates):
        return out, Zero.like(out)
    t_x, t_updates = instantiate_zeros(t_x), instantiate_zeros(t_updates)
    if not params["unique_indices"]:
        return out, scatter_tangent_of_winners(t_x, indices, t_updates, **params)
    return out, scatter_p.bind(t_x, indices, t_updates, **params)


defjet_linear(scatter_p)


def scatter_tangent_of_winners(t_x, indices, t_updates, **params):
    # Where indices repeat, only the update that was written last has a tangent. To find it, scatter
    # numbers in place of the updates and see which of them are there afterwards; then a scatter-add
    # of the winners alone is the tangent, and it, unlike scatter, has a transpose at any indices.
    numbers = broadcast_in_dim(update_numbers(indices), *batch_layout(t_updates, **params))
    written = scatter_p.bind(full_like(t_x, 0, np.uint32), indices, numbers, **params)
    won = eq(numbers, gather_as_scattered(written, indices, numbers, **params))
    untouched = eq(written, full_like(written, 0))
    return scatter_add_p.bind(select_n(untouched, zeros_like(t_x), t_x), indices,
                              select_n(won, zeros_like(t_updates), t_updates), **params)


def update_numbers(indices):
    batch = typeof(indices).shape[:-1]
    return reshape(add(iota(np.uint32, prod(batch)), full((prod(batch),), 1, np.uint32)), batch)


def batch_layout(updates, *, dimension_numbers, **_):
    """The updates' shape and their axes that run through the indices."""
    shape = typeof(updates).shape
    return shape, [d for d in range(len(shape)) if d not in dimension_numbers.update_window_dims]


def scatter_transpose_operand(ct, x, indices, updates, **params):
    check_unique("the transpose of scatter", params)
    zeros = full_like_aval(ShapedArray(shape_of(updates), typeof(ct).dtype), 0)
    return scatter_p.bind(ct, indices, zeros, **params)


def scatter_transpose_updates(ct, x, indices, updates, **params):
    check_unique("the transpose of scatter", params)
    return gather_as_scattered(ct, indices, updates, **params)


def check_unique(what, params):
    if not params["unique_indices"]:
        raise NotImplementedError(f"{what} is only implemented where unique_indices=True")


def_transpose_per_operand(scatter_p, scatter_transpose_operand, None, scatter_transpose_updates)
lower_scatter(scatter_p, "replace")


# --- scatter_mul ----------------------------------------------------------------------------------

scatter_mul_p = Primitive("scatter-mul")


def scatter_mul(operand, scatter_indices, updates, dimension_numbers, *, indices_are_sorted=False,
                unique_indices=False, mode=None):
    """Multiply windows of a copy of the operand by updates."""
    return bind_scatter(scatter_mul_p, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


def_scatter(scatter_mul_p, np.multiply.at, NUMERIC)


def scatter_mul_jvp_updates(t, x, indices, updates, **params):
    check_unique("the gradient of scatter_mul by its updates", params)
    return mul(x, scatter_add_p.bind(zeros_like(x), indices, t, **params))


defjvp(scatter_mul_p, lambda t, x, indices, updates, **params:
       scatter_mul_p.bind(t, indices, updates, **params), None, scatter_mul_jvp_updates)


def scatter_mul_transpose_updates(ct, x, indices, updates, **params):
    check_unique("the transpose of scatter_mul by its updates", params)
    return gather_as_scattered(mul(ct, x), indices, updates, **params)


def_transpose_per_operand(scatter_mul_p, lambda ct, x, indices, updates, **params:
                          scatter_mul_p.bind(ct, indices, updates, **params),
                          None, scatter_mul_transpose_updates)
lower_scatter(scatter_mul_p, "mul")


# --- scatter_min, scatter_max ---------------------------------------------------------------------

def scatter_extremal_jvp(primitive, primals, tangents, **params):
    """Of all values that equal the extreme one, operand's or updates', the mean of the tangents."""
    x, indices, updates = primals
    t_x, _, t_updates = tangents
    out = primitive.bind(*primals, **params)
    if is_zero(t_x) and is_zero(t_updates):
        return out, Zero.like(out)
    dtype = typeof(x).dtype
    x_won = convert_element_type(eq(x, out), dtype)
    updates_won = convert_element_type(
        eq(updates, gather_as_scattered(out, indices, updates, **params)), dtype)
    count = scatter_add_p.bind(x_won, indices, updates_won, **params)
    total = scatter_add_p.bind(mul(instantiate_zeros(t_x), x_won), indices,
                               mul(instantiate_zeros(t_updates), updates_won), **params)
    return out, div(total, count)


scatter_min_p = Primitive("scatter-min")


def scatter_min(operand, scatter_indices, updates, dimension_numbers, *, indices_are_sorted=False,
                unique_indices=False, mode=None):
    """The lesser of updates and windows of a copy of the operand."""
    return bind_scatter(scatter_min_p, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


def_scatter(scatter_min_p, smallest.at)
scatter_min_p.def_jvp(partial(scatter_extremal_jvp, scatter_min_p))
scatter_min_p.def_impossible("transpose", "it is linear in no operand")
lower_scatter(scatter_min_p, "min")


scatter_max_p = Primitive("scatter-max")


def scatter_max(operand, scatter_indices, updates, dimension_numbers, *, indices_are_sorted=False,
                unique_indices=False, mode=None):
    """The greater of updates and windows of a copy of the operand."""
    return bind_scatter(scatter_max_p, operand, scatter_indices, updates, dimension_numbers,
                        indices_are_sorted, unique_indices, mode)


def_scatter(scatter_max_p, largest.at)
scatter_max_p.def_jvp(partial(scatter_extremal_jvp, scatter_max_p))
scatter_max_p.def_impossible("transpose", "it is linear in no operand")
lower_scatter(scatter_max_p, "max")


# --- dynamic_slice --------------------------------------------------------------------------------

dynamic_slice_p = Primitive("dynamic_slice")


def dynamic_slice(operand, start_indices, slice_sizes, *, allow_negative_indices=True):
    """The part of the operand that starts at indices known at run time, of a size known before.

    Negative indices count from the end; a start too large or small is moved to fit.
    """
    starts = dynamic_starts(operand, start_indices, allow_negative_indices)
    return dynamic_slice_p.bind(operand, *starts, slice_sizes=canonicalize_shape(slice_sizes))


def dynamic_starts(operand, start_indices, allow_negative):
    """The start along each axis, negative ones counted from the end: this happens only here."""
    shape = np.shape(operand)
    if not isinstance(start_indices, (tuple, list)):
        if np.ndim(start_indices) != 1:
            raise ValueError("dynamic_slice start_indices must be a sequence or a vector, got "
                             f"shape {np.shape(start_indices)}")
        start_indices = [index_in_dim(start_indices, k, keepdims=False)
                         for k in range(np.shape(start_indices)[0])]
    if len(start_indices) != len(shape):
        raise ValueError("dynamic_slice start_indices must have one index for each axis of the "
                         f"operand, got {len(start_indices)} for shape {shape}")
    if isinstance(allow_negative, bool):
        allow_negative = [allow_negative] * len(shape)
    return [dynamic_start(i, n, allowed) for i, n, allowed
            in zip(start_indices, shape, allow_negative)]


def dynamic_start(i, n, allow_negative):
    dtype = dtypes.dtype(i)
    if not allow_negative or not dtypes.issubdtype(dtype, np.signedinteger) or np.ndim(i):
        return asarray(i)
    # known now: nothing to record
    if type(i) is Array or isinstance(i, (int, np.integer, np.ndarray)):
        return np.asarray(int(i) + n * (int(i) < 0)).astype(dtype)
    end = np.array(n).astype(dtype)
    return select_n(lt(i, np.zeros((), dtype)), i, add(i, end))


def_checked_impl(
    dynamic_slice_p, lambda x, *starts, slice_sizes:
    x[clamped_slices(x.shape, starts, slice_sizes)])


def clamped_slices(shape, starts, sizes):
    begins = [builtins.min(builtins.max(int(i), 0), n - size)
              for i, n, size in zip(starts, shape, sizes)]
    return tuple(builtins.slice(begin, begin + size) for begin, size in zip(begins, sizes))


def check_starts(name, shape, starts, sizes, what):
    if len(sizes) != len(shape) or not all(0 <= size <= n for size, n in zip(sizes, shape)):
        raise TypeError(f"{name} {what} must be nonnegative and at most the operand's shape, got "
                        f"{sizes} for operand shape {shape}")
    if any(i.ndim for i in starts):
        raise TypeError(f"{name} start_indices must be scalars, got shapes "
                        f"{[i.shape for i in starts]}")
    index_types = {i.dtype for i in starts}
    if len(index_types) > 1 or not all(dtypes.issubdtype(t, np.integer) for t in index_types):
        raise TypeError(f"index arguments to {name} must be integers of the same type, got "
                        f"{', '.join(i.dtype.name for i in starts)}")


@dynamic_slice_p.def_abstract_eval
def dynamic_slice_abstract_eval(x, *starts, slice_sizes):
    check_starts("dynamic_slice", x.shape, starts, slice_sizes, "slice_sizes")
    return x.update(shape=slice_sizes)


@dynamic_slice_p.def_jvp
def dynamic_slice_jvp(primals, tangents, **params):
    out = dynamic_slice_p.bind(*primals, **params)
    if is_zero(tangents[0]):
        return out, Zero.like(out)
    return out, dynamic_slice_p.bind(tangents[0], *primals[1:], **params)


defjet_linear(dynamic_slice_p)


@dynamic_slice_p.def_transpose
def dynamic_slice_transpose(ct, x, *starts, slice_sizes):
    zeros = full_like_aval(x.aval, 0)
    return [dynamic_update_slice_p.bind(zeros, ct, *starts), *[None] * len(starts)]


@dynamic_slice_p.def_batch
def dynamic_slice_batch(axis, vals, dims, *, slice_sizes):
    # An example each with its own start is a gather. It clips as dynamic_slice does, so that
    # gradients of a start out of range reach the elements that were read.
    x, *starts = vals
    if all(d is not_mapped for d in dims[1:]):
        front = batch_axis_first(axis, x, dims[0])
        return dynamic_slice_p.bind(front, *whole_start(starts), *starts,
                                    slice_sizes=(axis.size, *slice_sizes)), 0
    window = tuple(range(len(starts)))
    return gather_batch(axis, [x, join_starts(axis, starts, dims[1:])], [dims[0], 0],
                        dimension_numbers=GatherDimensionNumbers(window, (), window),
                        slice_sizes=slice_sizes, mode=GatherScatterMode.CLIP, fill_value=None,
                        indices_are_sorted=True, unique_indices=True)


@dynamic_slice_p.def_lowering
def dynamic_slice_lowering(ctx, x, *starts, slice_sizes):
    if not ctx.is_native() or not isinstance(x, Buffer):
        return library_step(ctx, x, *starts, slice_sizes=slice_sizes)
    begins = dynamic_begins(x.shape, starts, slice_sizes)
    return view_step(ctx, lambda out, shape: [i + begin for i, begin in zip(out, begins)], x)


def dynamic_begins(shape, starts, sizes):
    return [dynamic_index(read(start, ZERO), 0, n - size)
            for start, n, size in zip(starts, shape, sizes)]


def whole_start(starts):
    """The start of a new axis that is taken whole, of the type of the others."""
    return [np.zeros((), typeof(starts[0]).dtype if starts else np.int32)]


def join_starts(axis, starts, dims):
    """The indices of a gather, one row an example."""
    columns = [broadcast_in_dim(i, (axis.size, 1), () if d is not_mapped else (0,))
               for i, d in zip(starts, dims)]
    return concatenate(columns, 1)


# --- dynamic_update_slice -------------------------------------------------------------------------

dynamic_update_slice_p = Primitive("dynamic_update_slice")


def dynamic_update_slice(operand, update, start_indices, *, allow_negative_indices=True):
    """A copy of the operand with `update` written at start indices known at run time.

    Negative indices count from the end; a start too large or small is moved to fit.
    """
    starts = dynamic_starts(operand, start_indices, allow_negative_indices)
    return dynamic_update_slice_p.bind(operand, update, *starts)


def dynamic_update_slice_impl(x, update, *starts):
    out = x.copy()
    out[clamped_slices(x.shape, starts, update.shape)] = update
    return out


def_checked_impl(dynamic_update_slice_p, dynamic_update_slice_impl)


@dynamic_update_slice_p.def_abstract_eval
def dynamic_update_slice_abstract_eval(x, update, *starts):
    if x.dtype != update.dtype:
        raise TypeError("dynamic_update_slice requires operand and update to have the same dtypes, "
                        f"got {x.dtype} and {update.dtype}")
    check_starts("dynamic_update_slice", x.shape, starts, update.shape, "update's sizes")
    return x.update(weak_type=all(a.weak_type for a in (x, update, *starts)))


deflinear_jointly(dynamic_update_slice_p, lambda i: i < 2)


@dynamic_update_slice_p.def_transpose
def dynamic_update_slice_transpose(ct, x, update, *starts):
    refuse_undefined(*starts)
    shape = shape_of(update)
    ct_x = ct_update = None
    if is_undefined_primal(x):
        zeros = full_like_aval(ShapedArray(shape, typeof(ct).dtype), 0)
        ct_x = dynamic_update_slice_p.bind(ct, zeros, *starts)
    if is_undefined_primal(update):
        ct_update = dynamic_slice_p.bind(ct, *starts, slice_sizes=shape)
    return [ct_x, ct_update, *[None] * len(starts)]


@dynamic_update_slice_p.def_batch
def dynamic_update_slice_batch(axis, vals, dims):
    x, update, *starts = vals
    if all(d is not_mapped for d in dims[2:]):
        x, update = (batch_axis_first(axis, v, d) for v, d in zip(vals[:2], dims))
        return dynamic_update_slice_p.bind(x, update, *whole_start(starts), *starts), 0
    window = tuple(range(len(starts)))
    return scatter_batch(scatter_p, axis, [x, join_starts(axis, starts, dims[2:]), update],
                         [dims[0], 0, dims[1]],
                         dimension_numbers=ScatterDimensionNumbers(window, (), window),
                         mode=GatherScatterMode.CLIP, indices_are_sorted=True, unique_indices=True)


@dynamic_update_slice_p.def_lowering
def dynamic_update_slice_lowering(ctx, x, update, *starts):
    if not ctx.is_native() or not isinstance(x, Buffer) or not isinstance(update, Buffer):
        return library_step(ctx, x, update, *starts)
    out = elementwise_step(ctx, lambda x: x, x)
    store_part(ctx, out, update, dynamic_begins(x.shape, starts, update.shape), combine="replace")
    return out


# --- One axis at a time ---------------------------------------------------------------------------

def starts_along(axis, start_index, ndim):
    starts = [np.zeros((), dtypes.dtype(start_index))] * ndim
    starts[axis] = start_index
    return starts


def dynamic_slice_in_dim(operand, start_index, slice_size, axis=0, *, allow_negative_indices=True):
    """`dynamic_slice` along one axis; all of the others."""
    shape = np.shape(operand)
    axis = canonicalize_axis(axis, len(shape))
    sizes = (*shape[:axis], operator.index(slice_size), *shape[axis + 1:])
    return dynamic_slice(operand, starts_along(axis, start_index, len(shape)), sizes,
                         allow_negative_indices=allow_negative_indices)


def dynamic_index_in_dim(operand, index, axis=0, keepdims=True, *, allow_negative_indices=True):
    """The part of the operand at one index of an axis; the axis goes unless `keepdims`."""
    result = dynamic_slice_in_dim(operand, index, 1, axis,
                                  allow_negative_indices=allow_negative_indices)
    return result if keepdims else squeeze(result, (axis,))


def dynamic_update_slice_in_dim(operand, update, start_index, axis, *, allow_negative_indices=True):
    """`dynamic_update_slice` along one axis; from the start of the others."""
    ndim = np.ndim(operand)
    starts = starts_along(canonicalize_axis(axis, ndim), start_index, ndim)
    return dynamic_update_slice(operand, update, starts,
                                allow_negative_indices=allow_negative_indices)


def dynamic_update_index_in_dim(operand, update, index, axis, *, allow_negative_indices=True):
    """A copy of the operand with `update` at one index of an axis; it may lack that axis."""
    axis = canonicalize_axis(axis, np.ndim(operand))
    if np.ndim(update) != np.ndim(operand):
        update = expand_dims(update, (axis,))
    return dynamic_update_slice_in_dim(operand, update, index, axis,
                                       allow_negative_indices=allow_negative_indices)


def index_take(src, idxs, axes):
    """The parts of `src` at index vectors `idxs`, one for each of `axes`; negative ones wrap."""
    columns = [expand_dims(wrap_index(i, np.shape(src)[axis]), (1,))
               for i, axis in zip(idxs, axes)]
    sizes = [1 if d in axes else n for d, n in enumerate(np.shape(src))]
    numbers = GatherDimensionNumbers(tuple(range(1, np.ndim(src) - len(axes) + 1)), tuple(axes),
                                     tuple(axes))
    return gather(src, concatenate(columns, 1), numbers, sizes)


def wrap_index(i, n):
    size = full_like(i, n)
    return rem(add(rem(i, size), size), size)
