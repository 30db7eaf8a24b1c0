"""Layer: lax. Home: ref_numpy. In JAX: jax/lax/__init__.py.

The primitives' functions under the names that users know. They neither promote dtypes nor broadcast
shapes, except that a scalar may stand beside an array.
"""
import numpy as np

from minijax import dtypes
from minijax.avals import typeof
from minijax.core import Primitive
from minijax.loop_ir import lower_elementwise
from minijax.primitives.cumulative import (
    cumlogsumexp, cumlogsumexp_p, cummax, cummax_p, cummin, cummin_p, cumprod, cumprod_p, cumsum,
    cumsum_p)
from minijax.primitives.dot import (
    Precision, batch_matmul, dot, dot_general, dot_general_p)
from minijax.primitives.elementwise import (
    RoundingMethod, abs, abs_p, acos, acos_p, acosh, acosh_p, add, add_p, and_p, asin, asin_p,
    asinh, asinh_p, atan, atan2, atan2_p, atan_p, atanh, atanh_p, bitcast_convert_type,
    bitcast_convert_type_p, bitwise_and, bitwise_not, bitwise_or, bitwise_xor, cbrt, cbrt_p, ceil,
    ceil_p, clamp, clamp_p, clz, clz_p, complex, complex_p, conj, conj_p, convert_element_type,
    convert_element_type_p, copy_p, cos, cos_p, cosh, cosh_p, digamma, digamma_p, div, div_p, eq,
    eq_p, erf, erf_inv, erf_inv_p, erf_p, erfc, erfc_p, exp, exp2, exp2_p, exp_p, expm1, expm1_p,
    floor, floor_p, ge, ge_p, gt, gt_p, imag, imag_p, integer_pow, integer_pow_p, is_finite,
    is_finite_p, le, le_p, lgamma, lgamma_p, log, log1p, log1p_p, log_p, logistic, logistic_p, lt,
    lt_p, max, max_p, min, min_p, mul, mul_p, ne, ne_p, neg, neg_p, nextafter, nextafter_p,
    not_p, or_p, polygamma, polygamma_p, population_count, population_count_p, pow, pow_p, real,
    real_p, reciprocal, reduce_precision, reduce_precision_p, rem, rem_p, round, round_p, rsqrt,
    rsqrt_p, select, select_n, select_n_p, shift_left, shift_left_p, shift_right_arithmetic,
    shift_right_arithmetic_p, shift_right_logical, shift_right_logical_p, sign, sign_p, sin, sin_p,
    sinh, sinh_p, sqrt, sqrt_p, square, square_p, sub, sub_p, tan, tan_p, tanh, tanh_p, xor_p)
from minijax.primitives.indexing import (
    GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers, dynamic_index_in_dim,
    dynamic_slice, dynamic_slice_in_dim, dynamic_slice_p, dynamic_update_index_in_dim,
    dynamic_update_slice, dynamic_update_slice_in_dim, dynamic_update_slice_p, gather, gather_p,
    index_take, scatter, scatter_add, scatter_add_p, scatter_max, scatter_max_p, scatter_min,
    scatter_min_p, scatter_mul, scatter_mul_p, scatter_p, scatter_sub, scatter_sub_p)
from minijax.primitives.reductions import (
    argmax, argmax_p, argmin, argmin_p, reduce_and, reduce_and_p, reduce_max, reduce_max_p,
    reduce_min, reduce_min_p, reduce_or, reduce_or_p, reduce_prod, reduce_prod_p, reduce_sum,
    reduce_sum_p, reduce_xor, reduce_xor_p)
from minijax.primitives.sorting import sort, sort_key_val, sort_p, top_k, top_k_p
from minijax.primitives.structural import (
    broadcast, broadcast_in_dim, broadcast_in_dim_p, broadcast_shapes, broadcast_to_rank,
    broadcasted_iota, collapse, concatenate, concatenate_p, expand_dims, full, full_like,
    index_in_dim, iota, iota_p, pad, pad_p, reshape, reshape_p, rev, rev_p, slice, slice_in_dim,
    slice_p, split, split_p, squeeze, squeeze_p, transpose, transpose_p)
from minijax.rules import Zero, defvectorized
from minijax.tree_util import tree_map

# --- Constants for differentiation -------------------------------------------------------------

stop_gradient_p = Primitive("stop_gradient")


def stop_gradient(x):
    """x, but a constant for differentiation; x may be a pytree."""
    return tree_map(stop_gradient_of_leaf, x)


def stop_gradient_of_leaf(x):
    # What has no tangents needs no equation either.
    is_differentiable = dtypes.issubdtype(typeof(x).dtype, np.inexact)
    return stop_gradient_p.bind(x) if is_differentiable else x


def stop_gradient_jvp(primals, tangents):
    out = stop_gradient_p.bind(*primals)
    return out, Zero.like(out)


stop_gradient_p.def_impl(lambda x: x)
stop_gradient_p.def_abstract_eval(lambda x: x)
stop_gradient_p.def_jvp(stop_gradient_jvp)
stop_gradient_p.def_impossible("transpose", "its tangent is zero")
defvectorized(stop_gradient_p)
lower_elementwise(stop_gradient_p, lambda x: x)


# --- Small functions of primitives -------------------------------------------------------------

def dtype(x):
    """The dtype of an array or number."""
    return typeof(x).dtype


def broadcast_like(arr, like_arr):
    """`arr`, a scalar or an array with axes of size 1, in the shape of `like_arr`."""
    shape = typeof(like_arr).shape
    first = len(shape) - typeof(arr).ndim
    return broadcast_in_dim(arr, shape, tuple(range(first, len(shape))))


def stack(operands, axis=0):
    """Arrays of one shape, joined along a new axis."""
    ndim = typeof(operands[0]).ndim + 1
    return concatenate([expand_dims(x, (axis % ndim,)) for x in operands], axis % ndim)


def unstack(x, axis=0):
    """The parts of `x` along an axis, as a tuple."""
    axis %= typeof(x).ndim
    return tuple([index_in_dim(x, i, axis, keepdims=False) for i in range(typeof(x).shape[axis])])


def tile(operand, reps):
    """The operand repeated reps[i] times along axis i."""
    shape = typeof(operand).shape
    spread = [n for pair in zip(reps, shape) for n in pair]
    repeated = broadcast_in_dim(operand, spread, tuple(range(1, len(spread), 2)))
    return reshape(repeated, [n * r for n, r in zip(shape, reps)])


def empty(shape, dtype):
    """An array whose elements are not specified; here they are zeros."""
    return full(shape, 0, dtype)
