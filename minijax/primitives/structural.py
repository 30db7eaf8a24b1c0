# Exported from notebooks/09_shapes.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: primitives. Home: 09_shapes. In JAX: jax/_src/lax/lax.py, jax/_src/lax/slicing.py (slice).

Operations that compute nothing: they move, repeat, select or join elements. All are linear, and
they come in pairs, each of which is the transpose of the other:

    broadcast_in_dim ↔ reduce_sum      transpose ↔ transpose      slice       ↔ pad
    reshape          ↔ reshape         rev       ↔ rev            concatenate ↔ split
"""

import builtins
import operator
from functools import partial
from math import prod

import numpy as np

from minijax import dtypes
from minijax.array import Array, as_array
from minijax.avals import ShapedArray, typeof
from minijax.core import Primitive, Tracer
from minijax.loop_ir import (
    Axis, AxisValue, Const, Load, Store, ZERO, axis_index, body_of, elementwise_step, flat_index,
    guard_of, guarded, library_step, lower_moving, lower_view, read, row_major, store_part,
    unflatten, view_step,
)
from minijax.rules import (
    Zero, batch_axis_first, bind, def_checked_impl, def_shape_aval, defbatch_front, defjet_linear,
    deflinear, deflinear_jointly, full_like_aval, instantiate_zeros, is_undefined_primal, is_zero,
    not_mapped, shape_of, shift_axes,
)

__all__ = [
    "canonicalize_shape", "canonicalize_axis", "check_shapelike", "asarray", "invert",
    "transpose_p", "transpose", "transpose_shape", "rev_p", "rev", "rev_shape", "reshape_p",
    "reshape", "reshape_shape", "reshape_transpose", "reordered", "reshape_lowering",
    "broadcast_in_dim_p", "broadcast_in_dim", "broadcast_in_dim_impl", "broadcast_in_dim_shape",
    "broadcast_in_dim_transpose", "broadcast", "expand_dims", "slice_p", "slice", "steps",
    "slice_shape", "slice_transpose", "zero_of", "pad_p", "pad", "pad_impl", "pad_places",
    "pad_shape", "pad_abstract_eval", "pad_transpose", "sum_all", "pad_batch", "pad_lowering",
    "concatenate_p", "concatenate", "concatenate_abstract_eval", "concatenate_transpose",
    "concatenate_lowering", "split_p", "split", "split_abstract_eval", "split_jvp",
    "split_transpose", "split_lowering", "squeeze_p", "squeeze", "squeeze_shape", "iota_p",
    "broadcasted_iota", "iota", "iota_impl", "iota_abstract_eval", "iota_lowering", "full",
    "full_like", "zeros_like", "convert_scalar", "broadcast_shapes", "broadcast_to_rank",
    "collapse", "slice_in_dim", "index_in_dim",
]


# --- Shapes and axes ------------------------------------------------------------------------------

def canonicalize_shape(shape):
    """A shape as a tuple of ints; an int alone is a shape of one axis."""
    if isinstance(shape, (int, np.integer)):
        return (int(shape),)
    is_scalar = getattr(shape, "ndim", 1) == 0
    try:
        return tuple([operator.index(n) for n in ([shape] if is_scalar else shape)])
    except TypeError:
        raise TypeError(f"a shape must be a sequence of concrete integers, got {shape!r:.80}. Take "
                        "it from another array's shape, or make the argument that it comes from "
                        "static (static_argnums)") from None


def canonicalize_axis(axis, ndim):
    """An axis counted from either end, counted from the front; ValueError if out of bounds."""
    axis = operator.index(axis)
    if not -ndim <= axis < ndim:
        raise ValueError(f"axis {axis} is out of bounds for array of dimension {ndim}")
    return axis % ndim


def check_shapelike(function, argument, value):
    """Raise TypeError unless `value` is a sequence of nonnegative integers."""
    if not isinstance(value, (tuple, list, np.ndarray)):
        raise TypeError(f"{function} {argument} must be a tuple, list or ndarray, "
                        f"got {type(value)}")
    if not all(isinstance(n, (int, np.integer)) for n in value):
        raise TypeError(f"{function} {argument} must have integer elements, got {value}")
    if not all(n >= 0 for n in value):
        raise TypeError(f"{function} {argument} must have nonnegative elements, got {value}")


def asarray(x):
    """`x` as an array: arrays and tracers as they are, numbers and NumPy arrays converted."""
    return x if isinstance(x, (Array, Tracer)) else as_array(x)


def invert(permutation):
    """The permutation that undoes this one."""
    inverse = [0] * len(permutation)
    for new, old in enumerate(permutation):
        inverse[old] = new
    return tuple(inverse)


# --- transpose ------------------------------------------------------------------------------------

transpose_p = Primitive("transpose")


def transpose(operand, permutation):
    """Reorder axes: axis i of the result is axis permutation[i] of the operand."""
    permutation = tuple([operator.index(i) for i in permutation])
    if permutation == tuple(range(np.ndim(operand))):
        return asarray(operand)
    return transpose_p.bind(operand, permutation=permutation)


def_checked_impl(transpose_p, lambda x, *, permutation: x.transpose(permutation))


def transpose_shape(shape, *, permutation):
    if sorted(permutation) != list(range(len(shape))):
        raise TypeError("transpose permutation isn't a permutation of operand dimensions, got "
                        f"permutation {permutation} for operand shape {shape}")
    return tuple(shape[i] for i in permutation)


def_shape_aval(transpose_p, transpose_shape)
deflinear(transpose_p, lambda ct, x, *, permutation: transpose(ct, invert(permutation)))
defbatch_front(transpose_p, lambda n, *, permutation: dict(
    permutation=(0, *shift_axes(permutation))))
lower_view(transpose_p, lambda out, shape, *, permutation: [out[i] for i in invert(permutation)])


# --- rev ------------------------------------------------------------------------------------------

rev_p = Primitive("rev")


def rev(operand, dimensions):
    """Reverse the order of elements along `dimensions`."""
    return rev_p.bind(operand, dimensions=tuple(dimensions))


def_checked_impl(rev_p, lambda x, *, dimensions: np.flip(x, dimensions))


def rev_shape(shape, *, dimensions):
    check_shapelike("rev", "dimensions", dimensions)
    if len(set(dimensions)) != len(dimensions):
        raise TypeError(f"rev dimensions must be unique, got {dimensions}")
    if any(i >= len(shape) for i in dimensions):
        raise TypeError("rev dimensions must all be less than operand ndim, got dimensions "
                        f"{dimensions} for operand ndim {len(shape)}")
    return shape


def_shape_aval(rev_p, rev_shape)
deflinear(rev_p, lambda ct, x, *, dimensions: rev(ct, dimensions))
defbatch_front(rev_p, lambda n, *, dimensions: dict(dimensions=shift_axes(dimensions)))
lower_view(rev_p, lambda out, shape, *, dimensions:
           [i * -1 + (n - 1) if d in dimensions else i for d, (i, n) in enumerate(zip(out, shape))])


# --- reshape --------------------------------------------------------------------------------------

reshape_p = Primitive("reshape")


def reshape(operand, new_sizes, dimensions=None):
    """The same elements in another shape, read in row-major order (of the axes `dimensions`)."""
    new_sizes = canonicalize_shape(new_sizes)
    shape = np.shape(operand)
    if dimensions is not None:
        dimensions = tuple([operator.index(i) for i in dimensions])
        dimensions = None if dimensions == tuple(range(len(shape))) else dimensions
    if shape and shape == new_sizes and dimensions is None:
        return asarray(operand)
    return reshape_p.bind(operand, new_sizes=new_sizes, dimensions=dimensions)


def_checked_impl(
    reshape_p, lambda x, *, new_sizes, dimensions:
    (x if dimensions is None else x.transpose(dimensions)).reshape(new_sizes))


def reshape_shape(shape, *, new_sizes, dimensions):
    if not all(n >= 0 for n in new_sizes):
        raise TypeError(f"reshape new_sizes must all be nonnegative, got {new_sizes}")
    if prod(new_sizes) != prod(shape):
        raise TypeError(f"cannot reshape array of shape {shape} (size {prod(shape)}) into shape "
                        f"{new_sizes} (size {prod(new_sizes)})")
    if dimensions is not None and sorted(dimensions) != list(range(len(shape))):
        raise TypeError("reshape dimensions must be a permutation of operand dimensions, got "
                        f"dimensions {dimensions} for shape {shape}")
    return new_sizes


def_shape_aval(reshape_p, reshape_shape)


def reshape_transpose(ct, x, *, new_sizes, dimensions):
    shape = shape_of(x)
    if dimensions is None:
        return reshape(ct, shape)
    return transpose(reshape(ct, [shape[i] for i in dimensions]), invert(dimensions))


deflinear(reshape_p, reshape_transpose)
defbatch_front(reshape_p, lambda n, *, new_sizes, dimensions: dict(
    new_sizes=(n, *new_sizes),
    dimensions=None if dimensions is None else (0, *shift_axes(dimensions))))


def reordered(new_sizes, dimensions, out, shape):
    """Where elements of a reshaped transpose are in its operand."""
    place = flat_index(out, new_sizes)
    along = dict(zip(dimensions, unflatten(place, [shape[d] for d in dimensions])))
    return [along[d] for d in range(len(shape))]


@reshape_p.def_lowering
def reshape_lowering(ctx, x, *, new_sizes, dimensions):
    if not ctx.is_native():
        return library_step(ctx, x, new_sizes=new_sizes, dimensions=dimensions)
    if dimensions is not None:
        return view_step(ctx, partial(reordered, new_sizes, dimensions), x)
    return elementwise_step(ctx, lambda x: x, x)       # memory stays as it is


# --- broadcast_in_dim -----------------------------------------------------------------------------

broadcast_in_dim_p = Primitive("broadcast_in_dim")


def broadcast_in_dim(operand, shape, broadcast_dimensions):
    """Repeat elements to fill `shape`: operand axis i is result axis broadcast_dimensions[i]."""
    if np.ndim(operand) == len(shape) and not len(broadcast_dimensions):
        return asarray(operand)
    return broadcast_in_dim_p.bind(operand, shape=tuple(shape),
                                   broadcast_dimensions=tuple(broadcast_dimensions))


def broadcast_in_dim_impl(x, *, shape, broadcast_dimensions):
    strides, sizes = [0] * len(shape), [1] * len(shape)
    for i, size, stride in zip(broadcast_dimensions, x.shape, x.strides):
        strides[i], sizes[i] = stride if size == shape[i] else 0, size
    if x.flags.c_contiguous and x.size:     # a step along a new axis leads to the same element
        return np.ndarray(shape, x.dtype, x, 0, strides)
    return np.broadcast_to(x.reshape(sizes), shape)


def_checked_impl(broadcast_in_dim_p, broadcast_in_dim_impl)


def broadcast_in_dim_shape(operand_shape, *, shape, broadcast_dimensions):
    check_shapelike("broadcast_in_dim", "shape", shape)
    check_shapelike("broadcast_in_dim", "broadcast_dimensions", broadcast_dimensions)
    got = (f"got operand shape {operand_shape}, target shape {shape}, "
           f"broadcast_dimensions {broadcast_dimensions}")
    if len(operand_shape) != len(broadcast_dimensions):
        raise TypeError("broadcast_in_dim broadcast_dimensions must have one entry an operand "
                        f"axis; {got}")
    if not set(broadcast_dimensions) <= set(range(len(shape))):
        raise TypeError("broadcast_in_dim broadcast_dimensions must be axes of the target shape; "
                        + got)
    if len(set(broadcast_dimensions)) != len(broadcast_dimensions):
        raise TypeError(f"broadcast_in_dim broadcast_dimensions must not repeat an axis; {got}")
    if any(n not in (1, shape[i]) for n, i in zip(operand_shape, broadcast_dimensions)):
        raise TypeError("broadcast_in_dim operand sizes must be 1 or equal to those of the target "
                        f"shape; {got}")
    return shape


def_shape_aval(broadcast_in_dim_p, broadcast_in_dim_shape)


def broadcast_in_dim_transpose(ct, x, *, shape, broadcast_dimensions):
    # What was copied is summed: the new axes, and those where the operand had size 1.
    units = [i for i, n in enumerate(shape_of(x)) if n == 1]
    kept = [j for i, j in enumerate(broadcast_dimensions) if i not in units]
    summed = bind("reduce_sum", ct, axes=tuple(j for j in range(len(shape)) if j not in kept))
    in_order = transpose(summed, invert([int(i) for i in np.argsort(kept)]))
    return expand_dims(in_order, units) if units else in_order


deflinear(broadcast_in_dim_p, broadcast_in_dim_transpose)
defbatch_front(broadcast_in_dim_p, lambda n, *, shape, broadcast_dimensions: dict(
    shape=(n, *shape), broadcast_dimensions=(0, *shift_axes(broadcast_dimensions))))
lower_view(broadcast_in_dim_p, lambda out, operand_shape, *, shape, broadcast_dimensions:
           [ZERO if n == 1 else out[d] for n, d in zip(operand_shape, broadcast_dimensions)])


def broadcast(operand, sizes):
    """Repeat the operand along new leading axes of the given sizes."""
    if not len(sizes):
        return asarray(operand)
    shape = np.shape(operand)
    dims = range(len(sizes), len(sizes) + len(shape))
    return broadcast_in_dim(operand, (*sizes, *shape), tuple(dims))


def expand_dims(array, dimensions):
    """Insert axes of size 1, which stand at `dimensions` of the result."""
    ndim = np.ndim(array) + len(dimensions)
    dims = sorted(canonicalize_axis(i, ndim) for i in dimensions)
    if len(set(dims)) != len(dims):
        raise ValueError(f"repeated axis in lax.expand_dims: {dimensions}")
    shape = list(np.shape(array))
    for i in dims:
        shape.insert(i, 1)
    return broadcast_in_dim(array, shape, [i for i in range(ndim) if i not in dims])


# --- slice ----------------------------------------------------------------------------------------

slice_p = Primitive("slice")


def slice(operand, start_indices, limit_indices, strides=None):
    """The elements start, start + stride, … before limit, along every axis."""
    return slice_p.bind(operand, start_indices=tuple(start_indices),
                        limit_indices=tuple(limit_indices),
                        strides=None if strides is None else tuple(strides))


def_checked_impl(
    slice_p, lambda x, *, start_indices, limit_indices, strides:
    x[tuple(map(builtins.slice, start_indices, limit_indices, steps(strides, x.ndim)))])


def steps(strides, ndim):
    return (1,) * ndim if strides is None else strides


def slice_shape(shape, *, start_indices, limit_indices, strides):
    strides = steps(strides, len(shape))
    for name, value in dict(start_indices=start_indices, limit_indices=limit_indices,
                            strides=strides).items():
        check_shapelike("slice", name, value)
        if len(value) != len(shape):
            raise TypeError(f"slice {name} must have one entry an operand axis, got {value} for "
                            f"operand shape {shape}")
    if any(limit > n for limit, n in zip(limit_indices, shape)):
        raise TypeError("slice limit_indices must be less than or equal to operand shape, got "
                        f"limit_indices {limit_indices} for operand shape {shape}")
    if any(start > limit for start, limit in zip(start_indices, limit_indices)):
        raise TypeError("slice limit_indices must be greater than or equal to start_indices, got "
                        f"start_indices {start_indices} and limit_indices {limit_indices}")
    if not all(strides):
        raise TypeError(f"slice strides must be positive, got {strides}")
    return tuple(len(range(*bounds)) for bounds in zip(start_indices, limit_indices, strides))


def_shape_aval(slice_p, slice_shape)


def slice_transpose(ct, x, *, start_indices, limit_indices, strides):
    # Zeros where the slice began, between its elements, and up to the end of the operand.
    shape, count = shape_of(x), typeof(ct).shape
    config = []
    for n, start, step, m in zip(shape, start_indices, steps(strides, len(shape)), count):
        end = start + (m - 1) * step + 1 if m else start
        config.append((start, n - end, step - 1))
    return pad(ct, zero_of(ct), config)


def zero_of(x):
    return full_like_aval(ShapedArray((), typeof(x).dtype), 0)


deflinear(slice_p, slice_transpose)
defbatch_front(slice_p, lambda n, *, start_indices, limit_indices, strides: dict(
    start_indices=(0, *start_indices), limit_indices=(n, *limit_indices),
    strides=None if strides is None else (1, *strides)))
lower_view(slice_p, lambda out, shape, *, start_indices, limit_indices, strides:
           [i * step + start for i, step, start
            in zip(out, steps(strides, len(shape)), start_indices)])


# --- pad ------------------------------------------------------------------------------------------

pad_p = Primitive("pad")


def pad(operand, padding_value, padding_config):
    """Put `padding_value` around and between elements: (low, high, interior) for every axis.

    Negative low or high cuts elements off instead.
    """
    config = tuple([tuple([operator.index(n) for n in triple]) for triple in padding_config])
    return pad_p.bind(operand, padding_value, padding_config=config)


def pad_impl(x, padding_value, *, padding_config):
    out = np.full(pad_shape(x.shape, padding_config), padding_value, x.dtype)
    places = [pad_places(*args) for args in zip(x.shape, out.shape, padding_config)]
    out[tuple(to for to, _ in places)] = x[tuple(of for _, of in places)]
    return out


def_checked_impl(pad_p, pad_impl)


def pad_places(n, out_n, triple):
    """Where the elements of one axis go, and which of them are left: two slices."""
    low, _, interior = triple
    step = interior + 1
    first = -(min(low, 0) // step)                  # of i with low + i * step >= 0
    stop = min(n, -((low - out_n) // step))         # and of those with low + i * step < out_n
    count = max(stop - first, 0)
    start = low + first * step
    return (builtins.slice(start, start + count * step, step) if count else builtins.slice(0),
            builtins.slice(first, first + count))


def pad_shape(shape, padding_config):
    return tuple(low + high + max(n + (n - 1) * interior, 0)
                 for n, (low, high, interior) in zip(shape, padding_config))


@pad_p.def_abstract_eval
def pad_abstract_eval(x, padding_value, *, padding_config):
    got = f"got padding_config {padding_config} for operand shape {x.shape}"
    if x.dtype != padding_value.dtype:
        raise TypeError("pad operand and padding_value must be same dtype: got "
                        f"{x.dtype} and {padding_value.dtype}")
    if padding_value.shape:
        raise ValueError(f"pad padding_value must be a scalar, got shape {padding_value.shape}")
    if len(padding_config) != x.ndim:
        raise ValueError(f"pad padding_config must have one entry an operand axis; {got}")
    if any(interior < 0 for _, _, interior in padding_config):
        raise ValueError(f"pad interior padding must be nonnegative; {got}")
    shape = pad_shape(x.shape, padding_config)
    if any(n < 0 for n in shape):
        raise ValueError(f"pad must leave sizes of at least 0, not {shape}; {got}")
    return ShapedArray(shape, x.dtype, x.weak_type and padding_value.weak_type)


deflinear_jointly(pad_p)


@pad_p.def_transpose
def pad_transpose(ct, x, padding_value, *, padding_config):
    # Padding by the negative of a number undoes it; then a slice skips what was put between.
    cut = pad(ct, zero_of(ct), [(-low, -high, 0) for low, high, _ in padding_config])
    ct_x = slice(cut, (0,) * cut.ndim, cut.shape, [interior + 1 for *_, interior in padding_config])
    if not is_undefined_primal(padding_value):
        return [ct_x, None]
    ct_padding = bind("sub", sum_all(ct), sum_all(ct_x))
    return [ct_x if is_undefined_primal(x) else None, ct_padding]


def sum_all(x):
    return bind("reduce_sum", x, axes=tuple(range(typeof(x).ndim)))


@pad_p.def_batch
def pad_batch(axis, vals, dims, *, padding_config):
    x = batch_axis_first(axis, vals[0], dims[0])
    config = ((0, 0, 0), *padding_config)
    if dims[1] is not_mapped:
        return pad(x, vals[1], config), 0
    # Each example pads with its own value: mark the places, then choose.
    padded = pad(x, zero_of(x), config)
    is_operand = pad(full(x.shape, True), False, config)
    values = broadcast_in_dim(vals[1], padded.shape, (0,))
    return bind("select_n", is_operand, values, padded), 0


@pad_p.def_lowering
def pad_lowering(ctx, x, padding_value, *, padding_config):
    if not ctx.is_native() or isinstance(x, Const):
        return library_step(ctx, x, padding_value, padding_config=padding_config)
    out = ctx.result()
    axes = [Axis(n) for n in out.shape]
    index, guard = [], []
    for axis, n, (low, _, interior) in zip(axes, x.shape, padding_config):
        place = axis_index(axis) - low
        guard += [(place % (interior + 1), 1), (place // (interior + 1), n)]
        index.append(place // (interior + 1))
    guard, padding = guard_of(guard), read(padding_value, ZERO)
    load = Load(x, flat_index(index, x.shape), guard) if x.size else padding
    store = Store(out, row_major(axes), guarded(load, guard, padding))
    ctx.nest(axes, body_of([store]))
    return out


# --- concatenate ----------------------------------------------------------------------------------

concatenate_p = Primitive("concatenate")


def concatenate(operands, dimension):
    """Join arrays along an existing axis."""
    if len(operands) == 0:
        raise ValueError("concatenate requires a non-empty sequence of arrays")
    if len(operands) == 1:
        return asarray(operands[0])
    return concatenate_p.bind(*operands, dimension=dimension)


def_checked_impl(concatenate_p, lambda *xs, dimension: np.concatenate(xs, dimension))


@concatenate_p.def_abstract_eval
def concatenate_abstract_eval(*xs, dimension):
    got = f"got dimension {dimension} for shapes {', '.join(str(x.shape) for x in xs)}"
    if any(x.dtype != xs[0].dtype for x in xs):
        raise TypeError("concatenate requires arguments to have the same dtypes, got "
                        f"{', '.join(x.dtype.name for x in xs)}")
    if any(x.ndim != xs[0].ndim for x in xs):
        raise TypeError(f"concatenate operands must have equally many axes; {got}")
    if not 0 <= dimension < xs[0].ndim:
        raise TypeError(f"concatenate dimension out of bounds; {got}")
    before, after = xs[0].shape[:dimension], xs[0].shape[dimension + 1:]
    if any(x.shape[:dimension] != before or x.shape[dimension + 1:] != after for x in xs):
        raise TypeError(f"concatenate operands may differ in size along dimension only; {got}")
    total = sum(x.shape[dimension] for x in xs)
    return ShapedArray((*before, total, *after), xs[0].dtype, all(x.weak_type for x in xs))


deflinear_jointly(concatenate_p)


@concatenate_p.def_transpose
def concatenate_transpose(ct, *xs, dimension):
    parts = split(ct, [shape_of(x)[dimension] for x in xs], dimension)
    return [part if is_undefined_primal(x) else None for part, x in zip(parts, xs)]


defbatch_front(concatenate_p, lambda n, *, dimension: dict(dimension=dimension + 1))


@concatenate_p.def_lowering
def concatenate_lowering(ctx, *xs, dimension):
    if not ctx.is_native():
        return library_step(ctx, *xs, dimension=dimension)
    out, start = ctx.result(), 0
    for x in xs:
        store_part(ctx, out, x, [start if d == dimension else 0 for d in range(len(x.shape))])
        start += x.shape[dimension]
    return out


# --- split ----------------------------------------------------------------------------------------

split_p = Primitive("split", multiple_results=True)


def split(operand, sizes, axis=0):
    """Cut an array along an axis into parts of the given sizes: a list of arrays."""
    return split_p.bind(operand, sizes=tuple([operator.index(n) for n in sizes]),
                        axis=canonicalize_axis(axis, np.ndim(operand)))


def_checked_impl(split_p, lambda x, *, sizes, axis: np.split(x, np.cumsum(sizes)[:-1], axis))


@split_p.def_abstract_eval
def split_abstract_eval(x, *, sizes, axis):
    if any(n < 0 for n in sizes):
        raise ValueError(f"sizes passed to split must be nonnegative, got {sizes}")
    if sum(sizes) != x.shape[axis]:
        raise ValueError(f"sum of sizes {sum(sizes)} must be equal to dimension {axis} of the "
                         f"operand shape {x.shape}")
    return [x.update(shape=(*x.shape[:axis], n, *x.shape[axis + 1:])) for n in sizes]


@split_p.def_jvp
def split_jvp(primals, tangents, **params):
    outs = split_p.bind(*primals, **params)
    if is_zero(tangents[0]):
        return outs, [Zero.like(out) for out in outs]
    return outs, split_p.bind(*tangents, **params)


defjet_linear(split_p)


@split_p.def_transpose
def split_transpose(cts, x, *, sizes, axis):
    return [concatenate([instantiate_zeros(ct) for ct in cts], axis)]


defbatch_front(split_p, lambda n, *, sizes, axis: dict(sizes=sizes, axis=axis + 1))


@split_p.def_lowering
def split_lowering(ctx, x, *, sizes, axis):
    if not ctx.is_native():
        return library_step(ctx, x, sizes=sizes, axis=axis)
    starts = np.cumsum([0, *sizes]).tolist()
    return [view_step(ctx, lambda out, shape: [i + starts[k] if d == axis else i for d, i
                                               in enumerate(out)], x, k) for k in range(len(sizes))]


# --- squeeze --------------------------------------------------------------------------------------

squeeze_p = Primitive("squeeze")


def squeeze(array, dimensions):
    """Drop axes of size 1."""
    ndim = np.ndim(array)
    dimensions = tuple(sorted([canonicalize_axis(i, ndim) for i in dimensions]))
    return squeeze_p.bind(array, dimensions=dimensions) if dimensions else asarray(array)


def_checked_impl(squeeze_p, lambda x, *, dimensions: x.squeeze(dimensions))


def squeeze_shape(shape, *, dimensions):
    if len(set(dimensions)) != len(dimensions):
        raise ValueError(f"squeeze dimensions are not unique: {dimensions}")
    if any(shape[i] != 1 for i in dimensions):
        raise ValueError("cannot select an axis to squeeze out which has size not equal to one, "
                         f"got shape={shape} and dimensions={dimensions}")
    return tuple(n for i, n in enumerate(shape) if i not in dimensions)


def_shape_aval(squeeze_p, squeeze_shape)
deflinear(squeeze_p, lambda ct, x, *, dimensions: reshape(ct, shape_of(x)))
defbatch_front(squeeze_p, lambda n, *, dimensions: dict(dimensions=shift_axes(dimensions)))
lower_moving(squeeze_p, lambda x, *, dimensions: x)     # memory stays as it is


# --- iota -----------------------------------------------------------------------------------------

iota_p = Primitive("iota")


def broadcasted_iota(dtype, shape, dimension):
    """An array whose elements are their own index along `dimension`."""
    dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "broadcasted_iota")
    return iota_p.bind(dtype=dtype, shape=canonicalize_shape(shape),
                       dimension=operator.index(dimension))


def iota(dtype, size):
    """The vector 0, 1, …, size - 1."""
    return broadcasted_iota(dtype, (size,), 0)


def iota_impl(*, dtype, shape, dimension):
    numbers = np.arange(shape[dimension]).astype(dtype)
    return broadcast_in_dim_impl(numbers, shape=shape, broadcast_dimensions=(dimension,))


def_checked_impl(iota_p, iota_impl)


@iota_p.def_abstract_eval
def iota_abstract_eval(*, dtype, shape, dimension):
    check_shapelike("iota", "shape", shape)
    if not dtypes.issubdtype(dtype, np.number):
        raise TypeError(f"iota does not accept dtype {dtype}; it takes integers, floats and "
                        "complex numbers")
    if not 0 <= dimension < len(shape):
        raise ValueError("iota dimension must be between 0 and len(shape), got "
                         f"dimension={dimension} for shape={shape}")
    return ShapedArray(shape, dtype)


iota_p.def_impossible("jvp", "it has no operand")
iota_p.def_impossible("transpose", "it has no operand")
iota_p.def_impossible("batch", "it has no operand")


@iota_p.def_lowering
def iota_lowering(ctx, *, dtype, shape, dimension):
    if not ctx.is_native():
        return library_step(ctx, dtype=dtype, shape=shape, dimension=dimension)
    out, axes = ctx.result(), [Axis(n) for n in shape]
    number = AxisValue(axis_index(axes[dimension]), dtype)
    ctx.nest(axes, [number, Store(out, row_major(axes), number)])
    return out


# --- Arrays of one number -------------------------------------------------------------------------

def full(shape, fill_value, dtype=None):
    """An array filled with one number, of its dtype or the one given."""
    shape = canonicalize_shape(shape)
    if np.shape(fill_value):
        raise TypeError("full must be called with scalar fill_value, got fill_value of shape "
                        f"{np.shape(fill_value)}")
    if dtype is None:
        weak_type, dtype = dtypes.is_weakly_typed(fill_value), dtypes.dtype(fill_value)
    else:
        weak_type, dtype = False, dtypes.check_and_canonicalize_user_dtype(dtype, "full")
    return broadcast(convert_scalar(fill_value, dtype, weak_type), shape)


def full_like(x, fill_value, dtype=None, shape=None):
    """An array of the shape and dtype of `x`, unless others are given, filled with one number."""
    shape = np.shape(x) if shape is None else canonicalize_shape(shape)
    weak_type = dtype is None and dtypes.is_weakly_typed(x)
    dtype = dtypes.canonicalize_dtype(dtypes.dtype(x if dtype is None else dtype))
    return full(shape, convert_scalar(fill_value, dtype, weak_type))


def zeros_like(x):
    """Zeros of the shape and dtype of `x`."""
    return full_like(x, 0)


def convert_scalar(x, dtype, weak_type):
    # A number of Python or NumPy is known now, so no program needs to record its conversion.
    if not isinstance(x, (Array, Tracer)):
        return Array(np.asarray(x).astype(dtype), weak_type)
    if x.dtype == dtype and x.weak_type == weak_type:
        return x
    return bind("convert_element_type", x, new_dtype=dtype, weak_type=weak_type)


# --- Structure, in fewer words --------------------------------------------------------------------

def broadcast_shapes(*shapes):
    """The shape that arrays of these shapes broadcast to; ValueError if there is none."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={list(shapes)}") from None


def broadcast_to_rank(x, rank):
    """`x` with leading axes of size 1, `rank` axes in all."""
    return broadcast(x, (1,) * (rank - np.ndim(x)))


def collapse(operand, start_dimension, stop_dimension=None):
    """Merge the axes start_dimension … stop_dimension - 1 into one."""
    shape = tuple(np.shape(operand))
    lo, hi, _ = builtins.slice(start_dimension, stop_dimension).indices(len(shape))
    if hi < lo:
        raise ValueError(f"collapse got an empty range of dimensions, {start_dimension}:"
                         f"{stop_dimension}, of shape {shape}")
    return reshape(operand, (*shape[:lo], prod(shape[lo:hi]), *shape[hi:]))


def slice_in_dim(operand, start_index, limit_index, stride=1, axis=0):
    """Slice one axis; the indices may be None or negative, as in Python."""
    shape = np.shape(operand)
    axis = canonicalize_axis(axis, len(shape))
    start, limit = ((default if i is None else operator.index(i))
                    for i, default in ((start_index, 0), (limit_index, shape[axis])))
    starts, limits, strides = [0] * len(shape), list(shape), [1] * len(shape)
    starts[axis] = start + shape[axis] if start < 0 else start
    limits[axis] = limit + shape[axis] if limit < 0 else limit
    strides[axis] = operator.index(stride)
    return slice(operand, starts, limits, strides)


def index_in_dim(operand, index, axis=0, keepdims=True):
    """The part of the operand at one index of an axis; IndexError if out of bounds."""
    shape = np.shape(operand)
    axis, index = canonicalize_axis(axis, len(shape)), operator.index(index)
    if not -shape[axis] <= index < shape[axis]:
        raise IndexError(f"index {index} is out of bounds for axis {axis} with size {shape[axis]}")
    start = index % shape[axis]
    result = slice_in_dim(operand, start, start + 1, 1, axis)
    return result if keepdims else squeeze(result, (axis,))
