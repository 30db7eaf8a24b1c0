# Exported from notebooks/ref_package.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: lax. Home: ref_package. In JAX: jax/lax/__init__.py.

The primitives' functions under the names that users know. They neither promote dtypes nor broadcast
shapes, except that a scalar may stand beside an array.
"""

import numpy as np

from minijax import dtypes
from minijax.avals import typeof
from minijax.control_flow import (
    associative_scan as associative_scan, cond as cond, fori_loop as fori_loop, map as map,
    platform_dependent as platform_dependent, scan as scan, switch as switch,
    while_loop as while_loop,
)
from minijax.core import Primitive
from minijax.higher_order.cond import cond_p as cond_p
from minijax.higher_order.linear_solve import linear_solve_p as linear_solve_p
from minijax.higher_order.scan import scan_p as scan_p
from minijax.higher_order.while_loop import while_p as while_p
from minijax.loop_ir import lower_moving
from minijax.primitives.barrier import (
    optimization_barrier as optimization_barrier, optimization_barrier_p as optimization_barrier_p,
)
from minijax.primitives.cumulative import (
    cumlogsumexp as cumlogsumexp, cumlogsumexp_p as cumlogsumexp_p, cummax as cummax,
    cummax_p as cummax_p, cummin as cummin, cummin_p as cummin_p, cumprod as cumprod,
    cumprod_p as cumprod_p, cumsum as cumsum, cumsum_p as cumsum_p,
)
from minijax.primitives.dot import (
    Precision as Precision, batch_matmul as batch_matmul, dot as dot, dot_general as dot_general,
    dot_general_p as dot_general_p,
)
from minijax.primitives.elementwise import (
    RoundingMethod as RoundingMethod, abs as abs, abs_p as abs_p, acos as acos, acos_p as acos_p,
    acosh as acosh, acosh_p as acosh_p, add as add, add_p as add_p, and_p as and_p, asin as asin,
    asin_p as asin_p, asinh as asinh, asinh_p as asinh_p, atan as atan, atan2 as atan2,
    atan2_p as atan2_p, atan_p as atan_p, atanh as atanh, atanh_p as atanh_p,
    bitcast_convert_type as bitcast_convert_type, bitcast_convert_type_p as bitcast_convert_type_p,
    bitwise_and as bitwise_and, bitwise_not as bitwise_not, bitwise_or as bitwise_or,
    bitwise_xor as bitwise_xor, cbrt as cbrt, cbrt_p as cbrt_p, ceil as ceil, ceil_p as ceil_p,
    clamp as clamp, clamp_p as clamp_p, clz as clz, clz_p as clz_p, complex as complex,
    complex_p as complex_p, conj as conj, conj_p as conj_p,
    convert_element_type as convert_element_type, convert_element_type_p as convert_element_type_p,
    copy_p as copy_p, cos as cos, cos_p as cos_p, cosh as cosh, cosh_p as cosh_p,
    digamma as digamma, digamma_p as digamma_p, div as div, div_p as div_p, eq as eq, eq_p as eq_p,
    erf as erf, erf_inv as erf_inv, erf_inv_p as erf_inv_p, erf_p as erf_p, erfc as erfc,
    erfc_p as erfc_p, exp as exp, exp2 as exp2, exp2_p as exp2_p, exp_p as exp_p, expm1 as expm1,
    expm1_p as expm1_p, floor as floor, floor_p as floor_p, ge as ge, ge_p as ge_p, gt as gt,
    gt_p as gt_p, imag as imag, imag_p as imag_p, integer_pow as integer_pow,
    integer_pow_p as integer_pow_p, is_finite as is_finite, is_finite_p as is_finite_p, le as le,
    le_p as le_p, lgamma as lgamma, lgamma_p as lgamma_p, log as log, log1p as log1p,
    log1p_p as log1p_p, log_p as log_p, logistic as logistic, logistic_p as logistic_p, lt as lt,
    lt_p as lt_p, max as max, max_p as max_p, min as min, min_p as min_p, mul as mul,
    mul_p as mul_p, ne as ne, ne_p as ne_p, neg as neg, neg_p as neg_p, nextafter as nextafter,
    nextafter_p as nextafter_p, not_p as not_p, or_p as or_p, polygamma as polygamma,
    polygamma_p as polygamma_p, population_count as population_count,
    population_count_p as population_count_p, pow as pow, pow_p as pow_p, real as real,
    real_p as real_p, reciprocal as reciprocal, reduce_precision as reduce_precision,
    reduce_precision_p as reduce_precision_p, rem as rem, rem_p as rem_p, round as round,
    round_p as round_p, rsqrt as rsqrt, rsqrt_p as rsqrt_p, select as select, select_n as select_n,
    select_n_p as select_n_p, shift_left as shift_left, shift_left_p as shift_left_p,
    shift_right_arithmetic as shift_right_arithmetic,
    shift_right_arithmetic_p as shift_right_arithmetic_p,
    shift_right_logical as shift_right_logical, shift_right_logical_p as shift_right_logical_p,
    sign as sign, sign_p as sign_p, sin as sin, sin_p as sin_p, sinh as sinh, sinh_p as sinh_p,
    sqrt as sqrt, sqrt_p as sqrt_p, square as square, square_p as square_p, sub as sub,
    sub_p as sub_p, tan as tan, tan_p as tan_p, tanh as tanh, tanh_p as tanh_p, xor_p as xor_p,
)
from minijax.primitives.indexing import (
    GatherDimensionNumbers as GatherDimensionNumbers, GatherScatterMode as GatherScatterMode,
    ScatterDimensionNumbers as ScatterDimensionNumbers,
    dynamic_index_in_dim as dynamic_index_in_dim, dynamic_slice as dynamic_slice,
    dynamic_slice_in_dim as dynamic_slice_in_dim, dynamic_slice_p as dynamic_slice_p,
    dynamic_update_index_in_dim as dynamic_update_index_in_dim,
    dynamic_update_slice as dynamic_update_slice,
    dynamic_update_slice_in_dim as dynamic_update_slice_in_dim,
    dynamic_update_slice_p as dynamic_update_slice_p, gather as gather, gather_p as gather_p,
    index_take as index_take, scatter as scatter, scatter_add as scatter_add,
    scatter_add_p as scatter_add_p, scatter_max as scatter_max, scatter_max_p as scatter_max_p,
    scatter_min as scatter_min, scatter_min_p as scatter_min_p, scatter_mul as scatter_mul,
    scatter_mul_p as scatter_mul_p, scatter_p as scatter_p, scatter_sub as scatter_sub,
    scatter_sub_p as scatter_sub_p,
)
from minijax.primitives.reductions import (
    argmax as argmax, argmax_p as argmax_p, argmin as argmin, argmin_p as argmin_p,
    reduce_and as reduce_and, reduce_and_p as reduce_and_p, reduce_max as reduce_max,
    reduce_max_p as reduce_max_p, reduce_min as reduce_min, reduce_min_p as reduce_min_p,
    reduce_or as reduce_or, reduce_or_p as reduce_or_p, reduce_prod as reduce_prod,
    reduce_prod_p as reduce_prod_p, reduce_sum as reduce_sum, reduce_sum_p as reduce_sum_p,
    reduce_xor as reduce_xor, reduce_xor_p as reduce_xor_p,
)
from minijax.primitives.sorting import (
    sort as sort, sort_key_val as sort_key_val, sort_p as sort_p, top_k as top_k,
    top_k_p as top_k_p,
)
from minijax.primitives.structural import (
    broadcast as broadcast, broadcast_in_dim as broadcast_in_dim,
    broadcast_in_dim_p as broadcast_in_dim_p, broadcast_shapes as broadcast_shapes,
    broadcast_to_rank as broadcast_to_rank, broadcasted_iota as broadcasted_iota,
    collapse as collapse, concatenate as concatenate, concatenate_p as concatenate_p,
    expand_dims as expand_dims, full as full, full_like as full_like, index_in_dim as index_in_dim,
    iota as iota, iota_p as iota_p, pad as pad, pad_p as pad_p, reshape as reshape,
    reshape_p as reshape_p, rev as rev, rev_p as rev_p, slice as slice,
    slice_in_dim as slice_in_dim, slice_p as slice_p, split as split, split_p as split_p,
    squeeze as squeeze, squeeze_p as squeeze_p, transpose as transpose, transpose_p as transpose_p,
)
from minijax.rules import Zero, defvectorized
from minijax.solves import custom_linear_solve as custom_linear_solve, custom_root as custom_root
from minijax.tree_util import tree_map

__all__ = [
    "associative_scan", "cond", "fori_loop", "map", "platform_dependent", "scan", "switch",
    "while_loop", "cond_p", "linear_solve_p", "scan_p", "while_p", "optimization_barrier",
    "optimization_barrier_p", "cumlogsumexp", "cumlogsumexp_p", "cummax", "cummax_p", "cummin",
    "cummin_p", "cumprod", "cumprod_p", "cumsum", "cumsum_p", "Precision", "batch_matmul", "dot",
    "dot_general", "dot_general_p", "RoundingMethod", "abs", "abs_p", "acos", "acos_p", "acosh",
    "acosh_p", "add", "add_p", "and_p", "asin", "asin_p", "asinh", "asinh_p", "atan", "atan2",
    "atan2_p", "atan_p", "atanh", "atanh_p", "bitcast_convert_type", "bitcast_convert_type_p",
    "bitwise_and", "bitwise_not", "bitwise_or", "bitwise_xor", "cbrt", "cbrt_p", "ceil", "ceil_p",
    "clamp", "clamp_p", "clz", "clz_p", "complex", "complex_p", "conj", "conj_p",
    "convert_element_type", "convert_element_type_p", "copy_p", "cos", "cos_p", "cosh", "cosh_p",
    "digamma", "digamma_p", "div", "div_p", "eq", "eq_p", "erf", "erf_inv", "erf_inv_p", "erf_p",
    "erfc", "erfc_p", "exp", "exp2", "exp2_p", "exp_p", "expm1", "expm1_p", "floor", "floor_p",
    "ge", "ge_p", "gt", "gt_p", "imag", "imag_p", "integer_pow", "integer_pow_p", "is_finite",
    "is_finite_p", "le", "le_p", "lgamma", "lgamma_p", "log", "log1p", "log1p_p", "log_p",
    "logistic", "logistic_p", "lt", "lt_p", "max", "max_p", "min", "min_p", "mul", "mul_p", "ne",
    "ne_p", "neg", "neg_p", "nextafter", "nextafter_p", "not_p", "or_p", "polygamma", "polygamma_p",
    "population_count", "population_count_p", "pow", "pow_p", "real", "real_p", "reciprocal",
    "reduce_precision", "reduce_precision_p", "rem", "rem_p", "round", "round_p", "rsqrt",
    "rsqrt_p", "select", "select_n", "select_n_p", "shift_left", "shift_left_p",
    "shift_right_arithmetic", "shift_right_arithmetic_p", "shift_right_logical",
    "shift_right_logical_p", "sign", "sign_p", "sin", "sin_p", "sinh", "sinh_p", "sqrt", "sqrt_p",
    "square", "square_p", "sub", "sub_p", "tan", "tan_p", "tanh", "tanh_p", "xor_p",
    "GatherDimensionNumbers", "GatherScatterMode", "ScatterDimensionNumbers",
    "dynamic_index_in_dim", "dynamic_slice", "dynamic_slice_in_dim", "dynamic_slice_p",
    "dynamic_update_index_in_dim", "dynamic_update_slice", "dynamic_update_slice_in_dim",
    "dynamic_update_slice_p", "gather", "gather_p", "index_take", "scatter", "scatter_add",
    "scatter_add_p", "scatter_max", "scatter_max_p", "scatter_min", "scatter_min_p", "scatter_mul",
    "scatter_mul_p", "scatter_p", "scatter_sub", "scatter_sub_p", "argmax", "argmax_p", "argmin",
    "argmin_p", "reduce_and", "reduce_and_p", "reduce_max", "reduce_max_p", "reduce_min",
    "reduce_min_p", "reduce_or", "reduce_or_p", "reduce_prod", "reduce_prod_p", "reduce_sum",
    "reduce_sum_p", "reduce_xor", "reduce_xor_p", "sort", "sort_key_val", "sort_p", "top_k",
    "top_k_p", "broadcast", "broadcast_in_dim", "broadcast_in_dim_p", "broadcast_shapes",
    "broadcast_to_rank", "broadcasted_iota", "collapse", "concatenate", "concatenate_p",
    "expand_dims", "full", "full_like", "index_in_dim", "iota", "iota_p", "pad", "pad_p", "reshape",
    "reshape_p", "rev", "rev_p", "slice", "slice_in_dim", "slice_p", "split", "split_p", "squeeze",
    "squeeze_p", "transpose", "transpose_p", "custom_linear_solve", "custom_root",
    "stop_gradient_p", "stop_gradient", "stop_gradient_of_leaf", "stop_gradient_jvp", "dtype",
    "broadcast_like", "stack", "unstack", "tile", "empty",
]


# --- Constants for differentiation ----------------------------------------------------------------

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
stop_gradient_p.def_transpose(lambda ct, x: [Zero(x.aval)])     # batched branches cut off tangents
defvectorized(stop_gradient_p)
lower_moving(stop_gradient_p, lambda x: x)


# --- Small functions of primitives ----------------------------------------------------------------

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
