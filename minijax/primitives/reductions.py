# Exported from notebooks/ref_reductions.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: primitives. Home: ref_reductions. In JAX: jax/_src/lax/lax.py.

Operations that take the elements along some axes together: sums, products, extremes, their places.
"""

import operator

import numpy as np

from minijax import dtypes
from minijax.avals import ShapedArray, typeof
from minijax.core import Primitive
from minijax.loop_ir import lower_reduction
from minijax.lower_loops import lower_place
from minijax.primitives.elementwise import (
    ANY, BOOL_OR_INTEGER, NUMERIC, ORDERED, add, convert_element_type, div, eq, largest, mul,
    smallest,
)
from minijax.primitives.structural import concatenate, split, squeeze
from minijax.rules import (
    Zero, broadcast, check_dtypes, def_checked_impl, def_no_derivative, def_not_linear,
    defjvp_with_result, deflinear, defreducer, full_like_aval, is_zero,
)

__all__ = [
    "as_axes", "kept_axes", "check_axes", "def_reduction_aval", "expand", "accumulate_wide", "ROWS",
    "shortened", "reduce_sum_p", "reduce_sum", "reduce_prod_p", "reduce_prod", "reduce_prod_jvp",
    "product_along", "tangent_of_chosen", "reduce_max_p", "reduce_max", "maximum_over",
    "reduce_min_p", "reduce_min", "minimum_over", "def_place_aval", "argmax_p", "argmax",
    "first_maximum", "argmin_p", "argmin", "first_minimum", "reduce_and_p", "reduce_and",
    "reduce_or_p", "reduce_or", "reduce_xor_p", "reduce_xor",
]


# --- What reductions share ------------------------------------------------------------------------

def as_axes(axes):
    return tuple(map(operator.index, axes))


def kept_axes(ndim, axes):
    return [i for i in range(ndim) if i not in axes]


def check_axes(primitive, x, axes):
    if len(set(axes)) != len(axes):
        raise ValueError(f"{primitive} got an axis twice: axes={axes}")
    if not all(0 <= a < x.ndim for a in axes):
        raise ValueError(f"{primitive} got axes={axes}, out of bounds for an operand of {x.ndim}")


def def_reduction_aval(primitive, accepts, keeps_weak_type=True):
    """The operand's type without the reduced axes."""
    def abstract_eval(x, *, axes):
        check_dtypes(primitive, [x], accepts)
        check_axes(primitive, x, axes)
        shape = [x.shape[i] for i in kept_axes(x.ndim, axes)]
        return ShapedArray(shape, x.dtype, x.weak_type and keeps_weak_type)
    primitive.def_abstract_eval(abstract_eval)


def expand(y, x, axes):
    """A reduction's result repeated along the axes of x that it was reduced over."""
    shape = typeof(x).shape
    return broadcast(y, shape, kept_axes(len(shape), axes))


def accumulate_wide(ufunc):
    """reduce(x, axes) by a ufunc: narrow floats accumulate in float32 and are rounded once."""
    def reduction(x, *, axes):
        dtype, parts = dtypes.computed_in.get(x.dtype, x.dtype), x
        for axis in axes if len(axes) < x.ndim else ():
            parts = shortened(ufunc, parts, axis, dtype)
        return ufunc.reduce(parts, axis=axes, dtype=dtype).astype(x.dtype, copy=False)
    return reduction


ROWS = 32


def shortened(ufunc, x, axis, dtype):
    """`x` with a long axis cut into ROWS pieces that are combined, until it is short.

    NumPy combines neighbours in memory by a tree, but rows one after the other: the sum of many
    loses digits, and short rows take long. A piece is one long row.
    """
    while x.shape[axis] > 2 * ROWS and x.strides[axis] > x.itemsize:
        length = x.shape[axis] // ROWS
        pieces, rest = np.split(x, [length * ROWS], axis)
        pieces = pieces.reshape(*x.shape[:axis], ROWS, length, *x.shape[axis + 1:])
        parts = ufunc.reduce(pieces, axis=axis, dtype=dtype)
        x = np.concatenate([parts, rest], axis, dtype=dtype) if rest.shape[axis] else parts
    return x


# --- Sums and products ----------------------------------------------------------------------------

reduce_sum_p = Primitive("reduce_sum")

def reduce_sum(operand, axes):
    """The sum over `axes`; 0 over none or empty ones."""
    return reduce_sum_p.bind(operand, axes=as_axes(axes))

def_checked_impl(reduce_sum_p, accumulate_wide(np.add))
def_reduction_aval(reduce_sum_p, NUMERIC)
deflinear(reduce_sum_p, lambda ct, x, *, axes: broadcast(ct, x.aval.shape,
                                                         kept_axes(x.aval.ndim, axes)))
defreducer(reduce_sum_p)
lower_reduction(reduce_sum_p, "add")


reduce_prod_p = Primitive("reduce_prod")

def reduce_prod(operand, axes):
    """The product over `axes`; 1 over none or empty ones."""
    return reduce_prod_p.bind(operand, axes=as_axes(axes))

def reduce_prod_jvp(primals, tangents, *, axes):
    (x,), (t,) = primals, tangents
    out = reduce_prod(x, axes)
    if is_zero(t):
        return out, Zero.like(out)
    for axis in sorted(axes, reverse=True):
        x, t = product_along(x, t, axis)
    return out, t

def product_along(x, t, axis):
    """The product of x along an axis and its tangent: (xy)˙ = ẋ y + x ẏ in a tree of pairs.

    Dividing the product by each factor would be shorter, and wrong where a factor is 0.
    """
    if typeof(x).shape[axis] == 0:
        empty = typeof(reduce_prod(x, [axis]))
        return full_like_aval(empty, 1), full_like_aval(empty, 0)
    while (n := typeof(x).shape[axis]) > 1:
        half = n // 2
        sizes = half, half, n - 2 * half
        x1, x2, x_rest = split(x, sizes, axis)
        t1, t2, t_rest = split(t, sizes, axis)
        t = concatenate([add(mul(t1, x2), mul(x1, t2)), t_rest], axis)
        x = concatenate([mul(x1, x2), x_rest], axis)
    return squeeze(x, [axis]), squeeze(t, [axis])

def_checked_impl(reduce_prod_p, accumulate_wide(np.multiply))
def_reduction_aval(reduce_prod_p, NUMERIC)
reduce_prod_p.def_jvp(reduce_prod_jvp)
def_not_linear(reduce_prod_p)
defreducer(reduce_prod_p)
lower_reduction(reduce_prod_p, "mul")


# --- Extremes -------------------------------------------------------------------------------------

def tangent_of_chosen(t, out, x, *, axes):
    """The tangent of a maximum or minimum: the mean over all elements that equal it."""
    chosen = convert_element_type(eq(x, expand(out, x, axes)), typeof(x).dtype)
    return div(reduce_sum(mul(t, chosen), axes), reduce_sum(chosen, axes))


reduce_max_p = Primitive("reduce_max")

def reduce_max(operand, axes):
    """The largest element over `axes`, NaN if there is one; the lowest number over empty axes."""
    return reduce_max_p.bind(operand, axes=as_axes(axes))

def maximum_over(x, *, axes):
    return largest.reduce(x, axis=axes, initial=None if x.size else dtypes.lowest(x.dtype))

def_checked_impl(reduce_max_p, maximum_over)
def_reduction_aval(reduce_max_p, ANY)
defjvp_with_result(reduce_max_p, tangent_of_chosen)
def_not_linear(reduce_max_p)
defreducer(reduce_max_p)
lower_reduction(reduce_max_p, "max")


reduce_min_p = Primitive("reduce_min")

def reduce_min(operand, axes):
    """The smallest element over `axes`, NaN if there is one; the highest number over empty axes."""
    return reduce_min_p.bind(operand, axes=as_axes(axes))

def minimum_over(x, *, axes):
    return smallest.reduce(x, axis=axes, initial=None if x.size else dtypes.highest(x.dtype))

def_checked_impl(reduce_min_p, minimum_over)
def_reduction_aval(reduce_min_p, ANY)
defjvp_with_result(reduce_min_p, tangent_of_chosen)
def_not_linear(reduce_min_p)
defreducer(reduce_min_p)
lower_reduction(reduce_min_p, "min")


# --- Places of extremes ---------------------------------------------------------------------------

def def_place_aval(primitive):
    """`index_dtype` without the one reduced axis, which may not be empty."""
    def abstract_eval(x, *, axes, index_dtype):
        check_dtypes(primitive, [x], ORDERED)
        check_axes(primitive, x, axes)
        if x.shape[axes[0]] == 0:
            raise ValueError(f"{primitive} of an empty axis: shape {x.shape}, axis {axes[0]}")
        if not dtypes.issubdtype(index_dtype, np.integer):
            raise TypeError(f"{primitive} needs an integer index_dtype, got {index_dtype.name}")
        shape = [x.shape[i] for i in kept_axes(x.ndim, axes)]
        return ShapedArray(shape, index_dtype)
    primitive.def_abstract_eval(abstract_eval)


argmax_p = Primitive("argmax")

def argmax(operand, axis, index_dtype):
    """The index of the first largest element along an axis; of the first NaN if there is one."""
    return argmax_p.bind(operand, axes=as_axes([axis]),
                         index_dtype=dtypes.canonicalize_dtype(index_dtype))

def first_maximum(x, *, axes, index_dtype):
    return np.argmax(x, axes[0]).astype(index_dtype)

def_checked_impl(argmax_p, first_maximum)
def_place_aval(argmax_p)
def_no_derivative(argmax_p)
defreducer(argmax_p)
lower_place(argmax_p, "gt")


argmin_p = Primitive("argmin")

def argmin(operand, axis, index_dtype):
    """The index of the first smallest element along an axis; of the first NaN if there is one."""
    return argmin_p.bind(operand, axes=as_axes([axis]),
                         index_dtype=dtypes.canonicalize_dtype(index_dtype))

def first_minimum(x, *, axes, index_dtype):
    return np.argmin(x, axes[0]).astype(index_dtype)

def_checked_impl(argmin_p, first_minimum)
def_place_aval(argmin_p)
def_no_derivative(argmin_p)
defreducer(argmin_p)
lower_place(argmin_p, "lt")


# --- Logical reductions ---------------------------------------------------------------------------

reduce_and_p = Primitive("reduce_and")

def reduce_and(operand, axes):
    """Whether all are true over `axes`; for integers the bits set in all."""
    return reduce_and_p.bind(operand, axes=as_axes(axes))

def_checked_impl(reduce_and_p, lambda x, *, axes: np.bitwise_and.reduce(x, axis=axes))
def_reduction_aval(reduce_and_p, BOOL_OR_INTEGER, keeps_weak_type=False)
def_no_derivative(reduce_and_p)
defreducer(reduce_and_p)
lower_reduction(reduce_and_p, "and")


reduce_or_p = Primitive("reduce_or")

def reduce_or(operand, axes):
    """Whether any is true over `axes`; for integers the bits set in any."""
    return reduce_or_p.bind(operand, axes=as_axes(axes))

def_checked_impl(reduce_or_p, lambda x, *, axes: np.bitwise_or.reduce(x, axis=axes))
def_reduction_aval(reduce_or_p, BOOL_OR_INTEGER, keeps_weak_type=False)
def_no_derivative(reduce_or_p)
defreducer(reduce_or_p)
lower_reduction(reduce_or_p, "or")


reduce_xor_p = Primitive("reduce_xor")

def reduce_xor(operand, axes):
    """Whether an odd number is true over `axes`; for integers the bits set in an odd number."""
    return reduce_xor_p.bind(operand, axes=as_axes(axes))

def_checked_impl(reduce_xor_p, lambda x, *, axes: np.bitwise_xor.reduce(x, axis=axes))
def_reduction_aval(reduce_xor_p, BOOL_OR_INTEGER, keeps_weak_type=False)
def_no_derivative(reduce_xor_p)
defreducer(reduce_xor_p)
lower_reduction(reduce_xor_p, "xor")
