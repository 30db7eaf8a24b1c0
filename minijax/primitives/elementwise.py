# Exported from notebooks/ref_elementwise.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: primitives. Home: ref_elementwise. In JAX: jax/_src/lax/lax.py, special.py.

The operations that work on each element by itself. Each is one block: name, function, impl,
abstract_eval, jvp, transpose, batch. Operands have one dtype and one shape, or are scalars.
"""

import enum
import functools
import math
from functools import partial

import numpy as np

from minijax import complex_pairs, dtypes, loop_ir
from minijax.array import Array, as_array
from minijax.avals import ShapedArray, typeof
from minijax.core import Primitive, Tracer, eval_trace
from minijax.loop_ir import (
    Axis, AxisValue, Const, Load, NARROW, Op, Store, axis_index, bits_of, body_of, const_like,
    elementwise_step, library_step, lower_elementwise, lower_moving, op, row_major, wide,
)
from minijax.primitives.special import scipy_special
from minijax.rules import (
    Zero, add_tangents, broadcast_to, check_dtypes, const, def_checked_impl, def_elementwise_aval,
    def_elementwise_impl, def_no_derivative, def_not_linear, def_transpose_per_operand, defbilinear,
    defbroadcasting, defjet_linear, defjvp, defjvp_with_result, deflinear, defvectorized,
    elementwise_shape, full_like_aval, instantiate_zeros, is_undefined_primal, is_zero, moveaxis,
    refuse_undefined, rounded_once, sum_of_products,
)

__all__ = [
    "FLOAT", "INEXACT", "INTEGER", "REAL", "NUMERIC", "BOOL_OR_INTEGER", "ORDERED", "ANY",
    "is_kind", "is_complex", "full_like", "zeros_like", "nonzero", "neg_p", "neg", "add_p", "add",
    "add_any_p", "add_any", "sub_p", "sub", "mul_p", "mul", "div_p", "div", "divide",
    "divide_integers", "quotient_term", "rem_p", "rem", "remainder", "Extremum", "is_real_float",
    "order_zeros", "largest", "smallest", "max_p", "max", "min_p", "min", "share_of_choice",
    "abs_p", "abs", "abs_tangent", "real_dtype", "sign_p", "sign", "square_p", "square",
    "integer_pow_p", "integer_pow", "reciprocal", "power_by_squaring", "integer_pow_aval",
    "scalar_power", "pair_power", "by_squaring", "integer_pow_tangent", "integer_power_term",
    "to_bool", "eq_p", "eq", "ne_p", "ne", "lt_p", "lt", "le_p", "le", "gt_p", "gt", "ge_p", "ge",
    "is_finite_p", "is_finite", "select_n_p", "select_n", "select", "select_case", "select_n_aval",
    "select_n_jvp", "select_n_transpose", "chosen", "select_scalar", "clamp_p", "clamp",
    "clamp_aval", "where_or_zero", "clamp_pair", "unsigned", "not_p", "bitwise_not", "and_p",
    "bitwise_and", "or_p", "bitwise_or", "xor_p", "bitwise_xor", "shift_left_p", "shift_left",
    "shift_right_arithmetic_p", "shift_right_arithmetic", "arithmetic_shift",
    "shift_right_logical_p", "shift_right_logical", "logical_shift", "population_count_p",
    "population_count", "count_ones", "clz_p", "clz", "count_leading_zeros", "exp_p", "exp",
    "exp2_p", "exp2", "expm1_p", "expm1", "log_p", "log", "log1p_p", "log1p", "logistic_p",
    "logistic", "pow_p", "pow", "pow_aval", "pow_base_tangent", "elementwise_shape_of", "power",
    "power_or_root", "power_term", "power_rest", "power_term_at_zero", "pair_like", "sqrt_p",
    "sqrt", "rsqrt_p", "rsqrt", "cbrt_p", "cbrt", "sin_p", "sin", "cos_p", "cos", "tan_p", "tan",
    "asin_p", "asin", "acos_p", "acos", "atan_p", "atan", "atan2_p", "atan2", "sinh_p", "sinh",
    "cosh_p", "cosh", "tanh_p", "tanh", "asinh_p", "asinh", "acosh_p", "acosh", "atanh_p", "atanh",
    "erf_p", "erf", "erfc_p", "erfc", "erf_inv_p", "erf_inv", "inverse_of_erf", "lgamma_p",
    "lgamma", "log_abs_gamma", "digamma_p", "digamma", "digamma_or_nan", "digamma_series",
    "DIGAMMA_TERMS", "polygamma_p", "polygamma", "no_derivative_by_order", "polygamma_series",
    "sum_of_powers", "sum_of_far_powers", "POWER_TERMS", "floor_p", "floor", "ceil_p", "ceil",
    "RoundingMethod", "round_p", "round", "round_to_nearest", "ROUNDINGS", "nextafter_p",
    "nextafter", "next_narrow", "reduce_precision_p", "reduce_precision", "round_to_precision",
    "reduce_precision_aval", "rounded_bits", "complex_dtype", "real_p", "real", "imag_p", "imag",
    "complex_p", "complex", "from_parts", "conj_p", "conj", "conjugate", "convert_element_type_p",
    "convert_element_type", "convert", "float_to_integer", "integer_bounds", "convert_aval",
    "convert_jvp", "convert_transpose", "bitcast_convert_type_p", "bitcast_convert_type",
    "reinterpret", "bit_width", "bitcast_shape", "bitcast_aval", "bitcast_batch",
    "bitcast_lowering", "take_bits_apart", "put_bits_together", "copy_p", "copy",
]


# --- Dtypes that primitives accept ----------------------------------------------------------------

FLOAT = (np.floating,)
INEXACT = (np.inexact,)
INTEGER = (np.integer,)
REAL = (np.integer, np.floating)
NUMERIC = (np.number,)
BOOL_OR_INTEGER = (np.bool_, np.integer)
ORDERED = (np.bool_, np.integer, np.floating)
ANY = (np.bool_, np.number)


def is_kind(x, kind):
    return dtypes.issubdtype(x.dtype, kind)


def is_complex(x):
    return dtypes.issubdtype(typeof(x).dtype, np.complexfloating)


# --- Constants of an operand's type ---------------------------------------------------------------

def full_like(x, value):
    return full_like_aval(typeof(x), value)


def zeros_like(x):
    return full_like(x, 0)


def nonzero(x):
    """x with 1 in place of 0: safe to divide by, or to take the logarithm of."""
    return select(eq(x, const(x, 0)), full_like(x, 1), x)


# --- Arithmetic -----------------------------------------------------------------------------------

neg_p = Primitive("neg")

def neg(x):
    """-x, elementwise; the smallest integer stays as it is."""
    return neg_p.bind(x)

def_elementwise_impl(neg_p, np.negative)
def_elementwise_aval(neg_p, NUMERIC)
deflinear(neg_p, lambda ct, x: neg(ct))
defvectorized(neg_p)
lower_elementwise(neg_p, "neg", complex_pairs.negative)


add_p = Primitive("add")

def add(x, y):
    """x + y, elementwise; integers wrap around."""
    return add_p.bind(x, y)

def_elementwise_impl(add_p, np.add)
def_elementwise_aval(add_p, NUMERIC)
defjvp(add_p, lambda t, x, y: t, lambda t, x, y: t)
def_transpose_per_operand(add_p, lambda ct, x, y: ct, lambda ct, x, y: ct)
defjet_linear(add_p)
defbroadcasting(add_p)
lower_elementwise(add_p, "add", complex_pairs.add)


# Sums of tangents and cotangents are written with a primitive of their own, as in JAX: they always
# have equal types, and a reader of a program sees where they come from.
add_any_p = Primitive("add_any")

def add_any(x, y):
    """x + y of two tangents or cotangents of one type."""
    return add_any_p.bind(x, y)

def_elementwise_impl(add_any_p, np.add)
def_elementwise_aval(add_any_p, NUMERIC)
defjvp(add_any_p, lambda t, x, y: t, lambda t, x, y: t)
def_transpose_per_operand(add_any_p, lambda ct, x, y: ct, lambda ct, x, y: ct)
defjet_linear(add_any_p)
defbroadcasting(add_any_p)
lower_elementwise(add_any_p, "add", complex_pairs.add)


sub_p = Primitive("sub")

def sub(x, y):
    """x - y, elementwise; integers wrap around."""
    return sub_p.bind(x, y)

def_elementwise_impl(sub_p, np.subtract)
def_elementwise_aval(sub_p, NUMERIC)
defjvp(sub_p, lambda t, x, y: t, lambda t, x, y: neg(t))
def_transpose_per_operand(sub_p, lambda ct, x, y: ct, lambda ct, x, y: neg(ct))
defjet_linear(sub_p)
defbroadcasting(sub_p)
lower_elementwise(sub_p, "sub", complex_pairs.subtract)


mul_p = Primitive("mul")

def mul(x, y):
    """x y, elementwise; integers wrap around."""
    return mul_p.bind(x, y)

def_elementwise_impl(mul_p, np.multiply)
def_elementwise_aval(mul_p, NUMERIC)
defbilinear(mul_p, lambda ct, x, y: mul(ct, y), lambda ct, x, y: mul(x, ct))
defbroadcasting(mul_p)
lower_elementwise(mul_p, "mul", complex_pairs.multiply)


div_p = Primitive("div")

def div(x, y):
    """x / y, elementwise; integers round towards zero, and integer division by zero gives -1."""
    return div_p.bind(x, y)

def divide(x, y):
    return divide_integers(x, y) if is_kind(x, np.integer) else np.divide(x, y)

def divide_integers(x, y):
    divisor = np.where(y == 0, y.dtype.type(1), y)
    quotient = np.floor_divide(x, divisor)
    rounded_down = (quotient * divisor != x) & ((x < 0) != (divisor < 0))
    minus_one = np.invert(x.dtype.type(0))      # all bits set: the largest value if unsigned
    return np.where(y == 0, minus_one, quotient + rounded_down.astype(x.dtype))

def_elementwise_impl(div_p, divide)
def_elementwise_aval(div_p, NUMERIC)
# d(x/y) = dx / y - (x/y) dy / y
defjvp_with_result(div_p, lambda t, out, x, y: div(t, y),
                   lambda t, out, x, y: mul(t, neg(div(out, y))))
def_transpose_per_operand(div_p, lambda ct, x, y: div(ct, y), None)
# v = x / y is v y = x, so x_k = Σ v_j y_{k-j}, where only v_k is not known
div_p.def_jet(lambda k, out, x, y: quotient_term(k, out, x, y))
defbroadcasting(div_p)
lower_elementwise(div_p, "div", complex_pairs.divide)

def quotient_term(k, out, x, y):
    known = sum_of_products(mul, y, out, k, out, first=1)
    rest = add_tangents(x[k], known if is_zero(known) else neg(known))
    return Zero.like(out[0]) if is_zero(rest) else div(rest, y[0])


rem_p = Primitive("rem")

def rem(x, y):
    """The remainder of x / y with the sign of x, elementwise; an integer x modulo zero is x."""
    return rem_p.bind(x, y)

def remainder(x, y):
    if is_kind(x, np.integer):
        return np.where(y == 0, x, np.fmod(x, np.where(y == 0, y.dtype.type(1), y)))
    return np.fmod(x, y)

def_elementwise_impl(rem_p, remainder)
def_elementwise_aval(rem_p, REAL)
# rem(x, y) = x - y trunc(x/y), and trunc moves in steps
defjvp(rem_p, lambda t, x, y: t,
       lambda t, x, y: mul(t, neg(mul(sign(div(x, y)), floor(abs(div(x, y)))))))
def_not_linear(rem_p)
defbroadcasting(rem_p)
lower_elementwise(rem_p, "rem")


class Extremum:
    """np.maximum or np.minimum, but -0.0 is less than 0.0. NumPy takes these for equal.

    The larger of two numbers is negative if both are, the smaller if either is.
    """

    nin = 2                             # as ufuncs say it

    def __init__(self, ufunc, of_signs):
        self.ufunc, self.of_signs = ufunc, of_signs

    def __call__(self, x, y):
        return order_zeros(self.ufunc(x, y), lambda: self.of_signs(np.signbit(x), np.signbit(y)))

    def reduce(self, x, axis, **options):
        return order_zeros(self.ufunc.reduce(x, axis=axis, **options),
                           lambda: self.of_signs.reduce(np.signbit(x), axis=axis))

    def accumulate(self, x, axis, **options):
        return order_zeros(self.ufunc.accumulate(x, axis=axis, **options),
                           lambda: self.of_signs.accumulate(np.signbit(x), axis=axis))

    def at(self, x, places, updates):
        is_negative = np.signbit(x) if is_real_float(x) else None
        self.ufunc.at(x, places, updates)
        if is_negative is not None:
            self.of_signs.at(is_negative, places, np.signbit(updates))
            x[...] = order_zeros(x, lambda: is_negative)


def is_real_float(x):
    return dtypes.issubdtype(x.dtype, np.floating)


def order_zeros(out, is_negative):
    """`out`, whose zeros get the signs that is_negative() says."""
    if not out.ndim and out:
        return out                      # a number that is no zero, quickly
    zeros = out == 0
    if not (zeros.any() and is_real_float(out)):
        return out
    signed = np.where(is_negative(), out.dtype.type(-0.0), out.dtype.type(0.0))
    return np.where(zeros, signed, out)


largest, smallest = Extremum(np.maximum, np.logical_and), Extremum(np.minimum, np.logical_or)


max_p = Primitive("max")

def max(x, y):
    """The larger of x and y, elementwise; NaN if either is; 0.0 of 0.0 and -0.0."""
    return max_p.bind(x, y)

def_elementwise_impl(max_p, largest)
def_elementwise_aval(max_p, ANY)
defjvp_with_result(max_p, lambda t, out, x, y: mul(t, share_of_choice(x, y, out)),
                   lambda t, out, x, y: mul(t, share_of_choice(y, x, out)))
def_not_linear(max_p)
defbroadcasting(max_p)
lower_elementwise(max_p, "max", complex_pairs.maximum)


min_p = Primitive("min")

def min(x, y):
    """The smaller of x and y, elementwise; NaN if either is; -0.0 of 0.0 and -0.0."""
    return min_p.bind(x, y)

def_elementwise_impl(min_p, smallest)
def_elementwise_aval(min_p, ANY)
defjvp_with_result(min_p, lambda t, out, x, y: mul(t, share_of_choice(x, y, out)),
                   lambda t, out, x, y: mul(t, share_of_choice(y, x, out)))
def_not_linear(min_p)
defbroadcasting(min_p)
lower_elementwise(min_p, "min", complex_pairs.minimum)

def share_of_choice(x, other, out):
    """1 where `out` was taken from x, 1/2 where it could have come from the other operand too."""
    share = select(eq(other, out), full_like(out, 0.5), full_like(out, 1))
    return select(eq(x, out), share, zeros_like(out))


abs_p = Primitive("abs")

def abs(x):
    """|x|, elementwise; real for complex x; the smallest integer stays as it is."""
    return abs_p.bind(x)

def_elementwise_impl(abs_p, np.absolute)
def_elementwise_aval(abs_p, (np.signedinteger, np.inexact), lambda dtype: real_dtype(dtype))
defjvp_with_result(abs_p, lambda t, out, x: abs_tangent(t, out, x))
def_not_linear(abs_p)
defvectorized(abs_p)
lower_elementwise(abs_p, "abs", complex_pairs.absolute)

def abs_tangent(t, out, x):
    if not is_complex(x):
        return select(ge(x, const(x, 0)), t, neg(t))
    # d|x| = Re(conj(x) dx) / |x|
    return div(real(mul(t, conj(x))), nonzero(out))

def real_dtype(dtype):
    return dtypes.finfo(dtype).dtype if dtypes.issubdtype(dtype, np.complexfloating) else dtype


sign_p = Primitive("sign")

def sign(x):
    """-1, 0 or 1, elementwise; x / |x| for complex x; zeros keep their sign."""
    return sign_p.bind(x)

def_elementwise_impl(sign_p, lambda x: np.where(x == 0, x, np.sign(x)))
def_elementwise_aval(sign_p, NUMERIC)
def_no_derivative(sign_p)
defvectorized(sign_p)
lower_elementwise(sign_p, "sign", complex_pairs.sign)


square_p = Primitive("square")

def square(x):
    """x², elementwise."""
    return square_p.bind(x)

def_elementwise_impl(square_p, np.square)
def_elementwise_aval(square_p, NUMERIC)
defjvp(square_p, lambda t, x: mul(t, mul(const(x, 2), x)))
def_not_linear(square_p)
defvectorized(square_p)
lower_elementwise(square_p, lambda x: op("mul", x, x), complex_pairs.square)


integer_pow_p = Primitive("integer_pow")

def integer_pow(x, y):
    """x to the power of a Python integer, elementwise; negative powers only of inexact x."""
    return integer_pow_p.bind(x, y=y)

def reciprocal(x):
    """1 / x, elementwise."""
    return integer_pow(x, -1)

def power_by_squaring(x, *, y):
    result, n = np.ones_like(x), y if y >= 0 else -y
    while n:
        result = result * x if n & 1 else result
        n >>= 1
        x = x * x if n else x
    return np.ones_like(result) / result if y < 0 else result

def integer_pow_aval(x, *, y):
    check_dtypes(integer_pow_p, [x], NUMERIC)
    if y < 0 and dtypes.issubdtype(x.dtype, np.integer):
        raise TypeError(f"integers cannot be raised to negative powers, got integer_pow({x}, {y})")
    return x

def_checked_impl(integer_pow_p, power_by_squaring)
integer_pow_p.def_abstract_eval(integer_pow_aval)
defjvp(integer_pow_p, lambda t, x, *, y: integer_pow_tangent(t, x, y))
def_not_linear(integer_pow_p)
integer_pow_p.def_jet(lambda k, out, x, *, y: integer_power_term(k, out, x, y))
defvectorized(integer_pow_p)
lower_elementwise(integer_pow_p, lambda x, *, y: scalar_power(x, y),
                  lambda x, *, y: pair_power(x, y))

def scalar_power(x, y):
    return by_squaring(x, y, const_like(x, 1), partial(op, "mul"), partial(op, "div"))

def pair_power(x, y):
    one = const_like(x[0], 1), const_like(x[0], 0)
    return by_squaring(x, y, one, complex_pairs.multiply, complex_pairs.divide)

def by_squaring(x, y, one, multiply, divide):
    result, n = None, y if y >= 0 else -y
    while n:
        if n & 1:
            result = x if result is None else multiply(result, x)
        n >>= 1
        x = multiply(x, x) if n else x
    result = one if result is None else result
    return divide(one, result) if y < 0 else result

def integer_pow_tangent(t, x, y):
    # x^0 and x^1 are special, or 0^-1 would make a NaN at x = 0
    if y in (0, 1):
        return t if y else zeros_like(t)
    return mul(t, mul(const(x, y), x if y == 2 else integer_pow(x, y - 1)))

def integer_power_term(k, out, x, y):
    # products of series are right at 0 too; a negative power has none there
    if y >= 0:
        return lambda x: by_squaring(x, y, full_like(x, 1), mul, div)
    rest = power_rest(k, out, x, const(x[0], y))
    return rest if is_zero(rest) else div(rest, x[0])


# --- Comparisons ----------------------------------------------------------------------------------

def to_bool(dtype):
    return np.bool_


eq_p = Primitive("eq")

def eq(x, y):
    """Whether x = y, elementwise."""
    return eq_p.bind(x, y)

def_elementwise_impl(eq_p, np.equal)
def_elementwise_aval(eq_p, ANY, to_bool)
def_no_derivative(eq_p)
defbroadcasting(eq_p)
lower_elementwise(eq_p, "eq", complex_pairs.equal)


ne_p = Primitive("ne")

def ne(x, y):
    """Whether x ≠ y, elementwise; NaN differs from itself."""
    return ne_p.bind(x, y)

def_elementwise_impl(ne_p, np.not_equal)
def_elementwise_aval(ne_p, ANY, to_bool)
def_no_derivative(ne_p)
defbroadcasting(ne_p)
lower_elementwise(ne_p, "ne", complex_pairs.not_equal)


lt_p = Primitive("lt")

def lt(x, y):
    """Whether x < y, elementwise."""
    return lt_p.bind(x, y)

def_elementwise_impl(lt_p, np.less)
def_elementwise_aval(lt_p, ORDERED, to_bool)
def_no_derivative(lt_p)
defbroadcasting(lt_p)
lower_elementwise(lt_p, "lt")


le_p = Primitive("le")

def le(x, y):
    """Whether x ≤ y, elementwise."""
    return le_p.bind(x, y)

def_elementwise_impl(le_p, np.less_equal)
def_elementwise_aval(le_p, ORDERED, to_bool)
def_no_derivative(le_p)
defbroadcasting(le_p)
lower_elementwise(le_p, "le")


gt_p = Primitive("gt")

def gt(x, y):
    """Whether x > y, elementwise."""
    return gt_p.bind(x, y)

def_elementwise_impl(gt_p, np.greater)
def_elementwise_aval(gt_p, ORDERED, to_bool)
def_no_derivative(gt_p)
defbroadcasting(gt_p)
lower_elementwise(gt_p, "gt")


ge_p = Primitive("ge")

def ge(x, y):
    """Whether x ≥ y, elementwise."""
    return ge_p.bind(x, y)

def_elementwise_impl(ge_p, np.greater_equal)
def_elementwise_aval(ge_p, ORDERED, to_bool)
def_no_derivative(ge_p)
defbroadcasting(ge_p)
lower_elementwise(ge_p, "ge")


is_finite_p = Primitive("is_finite")

def is_finite(x):
    """Whether x is neither infinite nor NaN, elementwise."""
    return is_finite_p.bind(x)

def_elementwise_impl(is_finite_p, np.isfinite)
def_elementwise_aval(is_finite_p, FLOAT, to_bool)
def_no_derivative(is_finite_p)
defvectorized(is_finite_p)
lower_elementwise(is_finite_p, "is_finite")


# --- Choices --------------------------------------------------------------------------------------

select_n_p = Primitive("select_n")

def select_n(which, *cases):
    """Each element from one of `cases`: `which` is a bool (false: the first) or a case number.

    The cases have one shape and dtype; `which` has their shape or is a scalar. Numbers too small or
    too large choose the first or last case. ValueError for no cases.
    """
    if not cases:
        raise ValueError("select_n wants cases to choose from, got none")
    return select_n_p.bind(which, *cases)

def select(pred, on_true, on_false):
    """Each element from `on_true` where `pred` holds, else from `on_false`."""
    return select_n_p.bind(pred, on_false, on_true)

def select_case(which, *cases):
    if which.dtype == np.bool_:
        return np.where(which, cases[-1], cases[0])
    out = cases[0]
    for number, case in enumerate(cases[1:], 1):
        out = np.where(which >= number, case, out)
    return out

def select_n_aval(which, *cases):
    check_dtypes(select_n_p, [which], BOOL_OR_INTEGER)
    check_dtypes(select_n_p, cases, ANY)
    if which.dtype == np.bool_ and len(cases) > 2:
        raise TypeError(f"select_n with a bool `which` has at most two cases, got {len(cases)}")
    if any(c.shape != cases[0].shape for c in cases) or which.shape not in ((), cases[0].shape):
        raise TypeError("select_n wants cases of one shape, and `which` of that shape or a scalar; "
                        f"got which {which.shape} and cases {[c.shape for c in cases]}")
    return cases[0].update(weak_type=all([c.weak_type for c in cases]))

def select_n_jvp(primals, tangents):
    which, *cases = primals
    out = select_n(which, *cases)
    live = [t for t in tangents[1:] if not is_zero(t)]
    if not live:
        return out, Zero.like(out)
    zero = zeros_like(live[0])
    return out, select_n(which, *[zero if is_zero(t) else t for t in tangents[1:]])

def select_n_transpose(ct, which, *cases):
    refuse_undefined(which)
    zero = zeros_like(ct)

    def cotangent(number):
        if len(cases) == 1:
            return ct
        if typeof(which).dtype == np.bool_:
            return select(which, *((ct, zero) if number else (zero, ct)))
        return select(chosen(which, number, len(cases)), ct, zero)
    return [None, *[cotangent(i) if is_undefined_primal(c) else None for i, c in enumerate(cases)]]

def chosen(which, number, count):
    """Whether `which` stands for case `number`; the outermost numbers stand for all beyond them."""
    if number == 0:
        return lt(which, const(which, 1))
    return (ge if number == count - 1 else eq)(which, const(which, number))

def_checked_impl(select_n_p, select_case)
select_n_p.def_abstract_eval(select_n_aval)
select_n_p.def_jvp(select_n_jvp)
select_n_p.def_transpose(select_n_transpose)
defjet_linear(select_n_p)
defbroadcasting(select_n_p, full=range(1, 1000))       # all cases; `which` may be a scalar
lower_moving(select_n_p, lambda which, *cases: select_scalar(which, cases))

def select_scalar(which, cases):
    if which.dtype == np.bool_:
        return op("select", which, cases[-1], cases[0])
    out = cases[0]
    for number, case in enumerate(cases[1:], 1):
        out = op("select", op("ge", which, const_like(which, number)), case, out)
    return out


clamp_p = Primitive("clamp")

def clamp(min, x, max):
    """x, but at least `min` and at most `max`; these have x's shape or are scalars."""
    return clamp_p.bind(min, x, max)

def clamp_aval(lower, x, upper):
    check_dtypes(clamp_p, [lower, x, upper], ANY)
    if not {lower.shape, upper.shape} <= {(), x.shape}:
        raise TypeError("clamp wants bounds that are scalars or of the operand's shape, got "
                        f"{lower.shape}, {x.shape}, {upper.shape}")
    return x.update(weak_type=lower.weak_type and x.weak_type and upper.weak_type)

def where_or_zero(condition, t):
    t = broadcast_to(t, typeof(condition).shape)
    return select(condition, t, zeros_like(t))

def_checked_impl(clamp_p, lambda lower, x, upper: smallest(largest(lower, x), upper))
clamp_p.def_abstract_eval(clamp_aval)
defjvp(clamp_p,
       lambda t, lower, x, upper: where_or_zero(bitwise_and(gt(lower, x), lt(lower, upper)), t),
       lambda t, lower, x, upper: where_or_zero(bitwise_and(gt(x, lower), lt(x, upper)), t),
       lambda t, lower, x, upper: where_or_zero(lt(upper, max(lower, x)), t))
def_not_linear(clamp_p)
defbroadcasting(clamp_p, full=[1])                     # the bounds may be scalars
lower_elementwise(clamp_p, lambda lower, x, upper: op("min", op("max", lower, x), upper),
                  lambda lower, x, upper: clamp_pair(lower, x, upper))

def clamp_pair(lower, x, upper):
    return complex_pairs.minimum(complex_pairs.maximum(lower, x), upper)


# --- Bits -----------------------------------------------------------------------------------------

def unsigned(x):
    """The same bits as unsigned integers."""
    return x.view(np.dtype(f"u{x.dtype.itemsize}"))


not_p = Primitive("not")

def bitwise_not(x):
    """Every bit flipped, elementwise; the negation of bools."""
    return not_p.bind(x)

def_elementwise_impl(not_p, np.invert)
def_elementwise_aval(not_p, BOOL_OR_INTEGER)
def_no_derivative(not_p)
defvectorized(not_p)
lower_elementwise(not_p, "not")


and_p = Primitive("and")

def bitwise_and(x, y):
    """The bits set in both x and y, elementwise."""
    return and_p.bind(x, y)

def_elementwise_impl(and_p, np.bitwise_and)
def_elementwise_aval(and_p, BOOL_OR_INTEGER)
def_no_derivative(and_p)
defbroadcasting(and_p)
lower_elementwise(and_p, "and")


or_p = Primitive("or")

def bitwise_or(x, y):
    """The bits set in x or y, elementwise."""
    return or_p.bind(x, y)

def_elementwise_impl(or_p, np.bitwise_or)
def_elementwise_aval(or_p, BOOL_OR_INTEGER)
def_no_derivative(or_p)
defbroadcasting(or_p)
lower_elementwise(or_p, "or")


xor_p = Primitive("xor")

def bitwise_xor(x, y):
    """The bits set in exactly one of x and y, elementwise."""
    return xor_p.bind(x, y)

def_elementwise_impl(xor_p, np.bitwise_xor)
def_elementwise_aval(xor_p, BOOL_OR_INTEGER)
def_no_derivative(xor_p)
defbroadcasting(xor_p)
lower_elementwise(xor_p, "xor")


# NumPy's shifts follow the same rule as XLA's: a shift by the width or more, or by a negative
# number, leaves no bit but copies of the sign.
shift_left_p = Primitive("shift_left")

def shift_left(x, y):
    """The bits of x moved up by y places, elementwise; 0 if y is not in 0 … width - 1."""
    return shift_left_p.bind(x, y)

def_elementwise_impl(shift_left_p, np.left_shift)
def_elementwise_aval(shift_left_p, INTEGER)
def_no_derivative(shift_left_p)
defbroadcasting(shift_left_p)
lower_elementwise(shift_left_p, "shift_left")


shift_right_arithmetic_p = Primitive("shift_right_arithmetic")

def shift_right_arithmetic(x, y):
    """The bits of x moved down by y places, elementwise; the top is filled with the sign bit."""
    return shift_right_arithmetic_p.bind(x, y)

def arithmetic_shift(x, y):
    signed = x.dtype.str.replace("u", "i")
    return np.right_shift(x.view(signed), y.view(signed)).view(x.dtype)

def_elementwise_impl(shift_right_arithmetic_p, arithmetic_shift)
def_elementwise_aval(shift_right_arithmetic_p, INTEGER)
def_no_derivative(shift_right_arithmetic_p)
defbroadcasting(shift_right_arithmetic_p)
lower_elementwise(shift_right_arithmetic_p, "shift_right_arithmetic")


shift_right_logical_p = Primitive("shift_right_logical")

def shift_right_logical(x, y):
    """The bits of x moved down by y places, elementwise; the top is filled with zeros."""
    return shift_right_logical_p.bind(x, y)

def logical_shift(x, y):
    return np.right_shift(unsigned(x), unsigned(y)).view(x.dtype)

def_elementwise_impl(shift_right_logical_p, logical_shift)
def_elementwise_aval(shift_right_logical_p, INTEGER)
def_no_derivative(shift_right_logical_p)
defbroadcasting(shift_right_logical_p)
lower_elementwise(shift_right_logical_p, "shift_right_logical")


population_count_p = Primitive("population_count")

def population_count(x):
    """The number of bits set, elementwise."""
    return population_count_p.bind(x)

def count_ones(x):
    return np.bitwise_count(unsigned(x)).astype(x.dtype)

def_elementwise_impl(population_count_p, count_ones)
def_elementwise_aval(population_count_p, INTEGER)
def_no_derivative(population_count_p)
defvectorized(population_count_p)
lower_elementwise(population_count_p, "popcount")


clz_p = Primitive("clz")

def clz(x):
    """The number of zero bits above the highest bit that is set, elementwise."""
    return clz_p.bind(x)

def count_leading_zeros(x):
    bits, width = unsigned(x), 8 * x.dtype.itemsize
    shift = 1
    while shift < width:        # set all bits below the highest one
        bits = bits | bits >> bits.dtype.type(shift)
        shift *= 2
    return (width - np.bitwise_count(bits)).astype(x.dtype)

def_elementwise_impl(clz_p, count_leading_zeros)
def_elementwise_aval(clz_p, INTEGER)
def_no_derivative(clz_p)
defvectorized(clz_p)
lower_elementwise(clz_p, "clz")


# --- Exponentials and logarithms ------------------------------------------------------------------

exp_p = Primitive("exp")

def exp(x):
    """eˣ, elementwise."""
    return exp_p.bind(x)

def_elementwise_impl(exp_p, np.exp)
def_elementwise_aval(exp_p, INEXACT)
defjvp_with_result(exp_p, lambda t, out, x: mul(t, out))
def_not_linear(exp_p)
defvectorized(exp_p)
lower_elementwise(exp_p, "exp", complex_pairs.exponential)


exp2_p = Primitive("exp2")

def exp2(x):
    """2ˣ, elementwise."""
    return exp2_p.bind(x)

def_elementwise_impl(exp2_p, np.exp2)
def_elementwise_aval(exp2_p, INEXACT)
defjvp_with_result(exp2_p, lambda t, out, x: mul(t, mul(const(x, np.log(2)), out)))
def_not_linear(exp2_p)
defvectorized(exp2_p)
lower_elementwise(exp2_p, "exp2", complex_pairs.power_of_two)


expm1_p = Primitive("expm1")

def expm1(x):
    """eˣ - 1, elementwise, accurate near 0."""
    return expm1_p.bind(x)

def_elementwise_impl(expm1_p, np.expm1)
def_elementwise_aval(expm1_p, INEXACT)
defjvp_with_result(expm1_p, lambda t, out, x: mul(t, add(out, const(x, 1))))
def_not_linear(expm1_p)
defvectorized(expm1_p)
lower_elementwise(expm1_p, "expm1", complex_pairs.exponential_minus_one)


log_p = Primitive("log")

def log(x):
    """The natural logarithm, elementwise; NaN for negative x."""
    return log_p.bind(x)

def_elementwise_impl(log_p, np.log)
def_elementwise_aval(log_p, INEXACT)
defjvp(log_p, lambda t, x: div(t, x))
def_not_linear(log_p)
defvectorized(log_p)
lower_elementwise(log_p, "log", complex_pairs.logarithm)


log1p_p = Primitive("log1p")

def log1p(x):
    """log(1 + x), elementwise, accurate near 0."""
    return log1p_p.bind(x)

def_elementwise_impl(log1p_p, np.log1p)
def_elementwise_aval(log1p_p, INEXACT)
defjvp(log1p_p, lambda t, x: div(t, add(x, const(x, 1))))
def_not_linear(log1p_p)
defvectorized(log1p_p)
lower_elementwise(log1p_p, "log1p", complex_pairs.logarithm_of_one_plus)


logistic_p = Primitive("logistic")

def logistic(x):
    """1 / (1 + e⁻ˣ), elementwise."""
    return logistic_p.bind(x)

def_elementwise_impl(logistic_p, lambda x: x.dtype.type(1) / (x.dtype.type(1) + np.exp(-x)))
def_elementwise_aval(logistic_p, INEXACT)
defjvp_with_result(logistic_p,
                   lambda t, out, x: mul(t, mul(out, sub(const(out, 1), out))))
def_not_linear(logistic_p)
defvectorized(logistic_p)
lower_elementwise(logistic_p, "logistic", complex_pairs.logistic)


# --- Powers and roots -----------------------------------------------------------------------------

pow_p = Primitive("pow")

def pow(x, y):
    """x to the power y, elementwise: x inexact, y of the same dtype or an integer."""
    return pow_p.bind(x, y)

def pow_aval(x, y):
    check_dtypes(pow_p, [x], INEXACT)
    if not dtypes.issubdtype(y.dtype, np.integer) and x.dtype != y.dtype:
        raise TypeError("pow takes an inexact base, and an exponent of the same dtype or an "
                        f"integer one, got {x.dtype.name} and {y.dtype.name}")
    return ShapedArray(elementwise_shape(pow_p, [x, y]), x.dtype, x.weak_type and y.weak_type)

def pow_base_tangent(t, x, y):
    # x^y' = y x^(y-1); an integer exponent 0 makes a constant, also at x = 0
    x = convert_element_type(x, typeof(x).dtype)         # strongly typed, as in JAX
    if dtypes.issubdtype(typeof(y).dtype, np.inexact):
        y = convert_element_type(y, typeof(y).dtype)
        return mul(t, mul(y, pow(x, sub(y, const(y, 1)))))
    exponent = broadcast_to(convert_element_type(y, typeof(x).dtype), elementwise_shape_of(x, y))
    slope = mul(nonzero(exponent), pow(x, sub(exponent, const(exponent, 1))))
    return mul(t, select(eq(exponent, const(exponent, 0)), zeros_like(slope), slope))

def elementwise_shape_of(x, y):
    return elementwise_shape(pow_p, [typeof(x), typeof(y)])

def power(x, y):
    out = np.power(x, y.astype(x.dtype, copy=False))
    if y.ndim or y != 0.5 or not dtypes.issubdtype(x.dtype, np.floating):
        return out
    # NumPy takes √x, which is NaN at -∞ and -0.0 at -0.0
    return np.where(x == -np.inf, x.dtype.type(np.inf), out + x.dtype.type(0))

def_checked_impl(pow_p, power)
pow_p.def_abstract_eval(pow_aval)
# x^y = e^(y log x), so its derivative by y is x^y log x; 0^y is constant where it is defined
defjvp_with_result(pow_p, lambda t, out, x, y: pow_base_tangent(t, x, y),
                   lambda t, out, x, y: mul(t, mul(log(nonzero(x)), out)))
def_not_linear(pow_p)
pow_p.def_jet(lambda k, out, x, y: power_term(k, out, x, y))
defbroadcasting(pow_p)

def power_or_root(x, y):
    y = loop_ir.convert(y, x.dtype)
    if not (isinstance(y, Const) and y.value == 0.5):
        return op("pow", x, y)
    root = op("add", op("sqrt", x), const_like(x, 0))
    return op("select", op("eq", x, const_like(x, -np.inf)), const_like(x, np.inf), root)

lower_elementwise(pow_p, power_or_root, lambda x, y: complex_pairs.power(x, pair_like(y, x)))

def power_term(k, out, x, y):
    # an exponent that moves: x^y = x^r e^((y - r) log x) with a constant r, that of order 0 of y
    r = convert_element_type(y[0], typeof(x[0]).dtype)
    if any([not is_zero(y[j]) for j in range(1, k + 1)]):
        return lambda x, y: mul(pow(x, r), exp(mul(sub(y, r), log(nonzero(x)))))
    at_zero, rest, base = [broadcast_to(instantiate_zeros(t), typeof(out[0]).shape) for t in (
        power_term_at_zero(k, r, x), power_rest(k, out, x, r), x[0])]
    return select(eq(base, const(base, 0)), at_zero, div(rest, nonzero(base)))

def power_rest(k, out, x, r):
    # v = x^r has x v' = r v x', so x_0 v_k is the sum of ((r + 1) j/k - 1) x_j v_{k-j} for j ≥ 1
    products = [(j, mul(x[j], out[k - j])) for j in range(1, k + 1)
                if not (is_zero(x[j]) or is_zero(out[k - j]))]
    if not products:
        return Zero.like(out[0])
    weighted = functools.reduce(add, [mul(p, const(p, j / k)) for j, p in products])
    return sub(mul(add(r, const(r, 1)), weighted), functools.reduce(add, [p for _, p in products]))

def power_term_at_zero(k, r, x):
    # (x_1 t + …)^r: below the order r all is 0, at r it is x_1^r, and above it is no power series
    number = functools.reduce(mul, [sub(r, const(r, i)) for i in range(k)])
    number = div(number, const(r, math.factorial(k)))
    return mul(mul(number, pow(x[0], sub(r, const(r, k)))), integer_pow(instantiate_zeros(x[1]), k))

def pair_like(y, x):
    return y if isinstance(y, tuple) else (loop_ir.convert(y, x[0].dtype), const_like(x[0], 0))


sqrt_p = Primitive("sqrt")

def sqrt(x):
    """√x, elementwise; NaN for negative x."""
    return sqrt_p.bind(x)

def_elementwise_impl(sqrt_p, np.sqrt)
def_elementwise_aval(sqrt_p, INEXACT)
defjvp_with_result(sqrt_p, lambda t, out, x: mul(t, div(const(x, 0.5), out)))
def_not_linear(sqrt_p)
defvectorized(sqrt_p)
lower_elementwise(sqrt_p, "sqrt", complex_pairs.square_root)


rsqrt_p = Primitive("rsqrt")

def rsqrt(x):
    """1 / √x, elementwise."""
    return rsqrt_p.bind(x)

def_elementwise_impl(rsqrt_p, rounded_once(lambda x: x.dtype.type(1) / np.sqrt(x)))
def_elementwise_aval(rsqrt_p, INEXACT)
defjvp_with_result(rsqrt_p, lambda t, out, x: mul(t, mul(const(x, -0.5), div(out, x))))
def_not_linear(rsqrt_p)
defvectorized(rsqrt_p)
lower_elementwise(rsqrt_p, "rsqrt", complex_pairs.one_over_square_root)


cbrt_p = Primitive("cbrt")

def cbrt(x):
    """The real cube root, elementwise."""
    return cbrt_p.bind(x)

def_elementwise_impl(cbrt_p, np.cbrt)
def_elementwise_aval(cbrt_p, FLOAT)
defjvp_with_result(cbrt_p, lambda t, out, x: mul(t, mul(const(x, 1 / 3), integer_pow(out, -2))))
def_not_linear(cbrt_p)
defvectorized(cbrt_p)
lower_elementwise(cbrt_p, "cbrt")


# --- Trigonometric functions ----------------------------------------------------------------------

sin_p = Primitive("sin")

def sin(x):
    """The sine of x (in radians), elementwise."""
    return sin_p.bind(x)

def_elementwise_impl(sin_p, np.sin)
def_elementwise_aval(sin_p, INEXACT)
defjvp(sin_p, lambda t, x: mul(t, cos(x)))
def_not_linear(sin_p)
defvectorized(sin_p)
lower_elementwise(sin_p, "sin", complex_pairs.sine)


cos_p = Primitive("cos")

def cos(x):
    """The cosine of x (in radians), elementwise."""
    return cos_p.bind(x)

def_elementwise_impl(cos_p, np.cos)
def_elementwise_aval(cos_p, INEXACT)
defjvp(cos_p, lambda t, x: neg(mul(t, sin(x))))
def_not_linear(cos_p)
defvectorized(cos_p)
lower_elementwise(cos_p, "cos", complex_pairs.cosine)


tan_p = Primitive("tan")

def tan(x):
    """The tangent of x (in radians), elementwise."""
    return tan_p.bind(x)

def_elementwise_impl(tan_p, np.tan)
def_elementwise_aval(tan_p, INEXACT)
defjvp_with_result(tan_p, lambda t, out, x: mul(t, add(const(x, 1), square(out))))
def_not_linear(tan_p)
defvectorized(tan_p)
lower_elementwise(tan_p, "tan", complex_pairs.tangent)


asin_p = Primitive("asin")

def asin(x):
    """The angle in [-π/2, π/2] whose sine is x, elementwise."""
    return asin_p.bind(x)

def_elementwise_impl(asin_p, np.arcsin)
def_elementwise_aval(asin_p, INEXACT)
defjvp(asin_p, lambda t, x: mul(t, rsqrt(sub(const(x, 1), square(x)))))
def_not_linear(asin_p)
defvectorized(asin_p)
lower_elementwise(asin_p, "asin", complex_pairs.inverse_sine)


acos_p = Primitive("acos")

def acos(x):
    """The angle in [0, π] whose cosine is x, elementwise."""
    return acos_p.bind(x)

def_elementwise_impl(acos_p, np.arccos)
def_elementwise_aval(acos_p, INEXACT)
defjvp(acos_p, lambda t, x: mul(t, neg(rsqrt(sub(const(x, 1), square(x))))))
def_not_linear(acos_p)
defvectorized(acos_p)
lower_elementwise(acos_p, "acos", complex_pairs.inverse_cosine)


atan_p = Primitive("atan")

def atan(x):
    """The angle in [-π/2, π/2] whose tangent is x, elementwise."""
    return atan_p.bind(x)

def_elementwise_impl(atan_p, np.arctan)
def_elementwise_aval(atan_p, INEXACT)
defjvp(atan_p, lambda t, x: div(t, add(const(x, 1), square(x))))
def_not_linear(atan_p)
defvectorized(atan_p)
lower_elementwise(atan_p, "atan", complex_pairs.inverse_tangent)


atan2_p = Primitive("atan2")

def atan2(x, y):
    """The angle of the point with ordinate x and abscissa y, in [-π, π], elementwise."""
    return atan2_p.bind(x, y)

def_elementwise_impl(atan2_p, np.arctan2)
def_elementwise_aval(atan2_p, FLOAT)
defjvp(atan2_p, lambda t, x, y: mul(t, div(y, add(square(x), square(y)))),
       lambda t, x, y: mul(t, div(neg(x), add(square(x), square(y)))))
def_not_linear(atan2_p)
defbroadcasting(atan2_p)
lower_elementwise(atan2_p, "atan2")


# --- Hyperbolic functions -------------------------------------------------------------------------

sinh_p = Primitive("sinh")

def sinh(x):
    """(eˣ - e⁻ˣ) / 2, elementwise."""
    return sinh_p.bind(x)

def_elementwise_impl(sinh_p, np.sinh)
def_elementwise_aval(sinh_p, INEXACT)
defjvp(sinh_p, lambda t, x: mul(t, cosh(x)))
def_not_linear(sinh_p)
defvectorized(sinh_p)
lower_elementwise(sinh_p, "sinh", complex_pairs.hyperbolic_sine)


cosh_p = Primitive("cosh")

def cosh(x):
    """(eˣ + e⁻ˣ) / 2, elementwise."""
    return cosh_p.bind(x)

def_elementwise_impl(cosh_p, np.cosh)
def_elementwise_aval(cosh_p, INEXACT)
defjvp(cosh_p, lambda t, x: mul(t, sinh(x)))
def_not_linear(cosh_p)
defvectorized(cosh_p)
lower_elementwise(cosh_p, "cosh", complex_pairs.hyperbolic_cosine)


tanh_p = Primitive("tanh")

def tanh(x):
    """sinh(x) / cosh(x), elementwise."""
    return tanh_p.bind(x)

def_elementwise_impl(tanh_p, np.tanh)
def_elementwise_aval(tanh_p, INEXACT)
# 1 - out² as (1 + out) (1 - out), which loses no digits near ±1
defjvp_with_result(tanh_p, lambda t, out, x: mul(t, mul(add(const(out, 1), out),
                                                        sub(const(out, 1), out))))
def_not_linear(tanh_p)
defvectorized(tanh_p)
lower_elementwise(tanh_p, "tanh", complex_pairs.hyperbolic_tangent)


asinh_p = Primitive("asinh")

def asinh(x):
    """The number whose hyperbolic sine is x, elementwise."""
    return asinh_p.bind(x)

def_elementwise_impl(asinh_p, np.arcsinh)
def_elementwise_aval(asinh_p, INEXACT)
defjvp(asinh_p, lambda t, x: mul(t, rsqrt(add(square(x), const(x, 1)))))
def_not_linear(asinh_p)
defvectorized(asinh_p)
lower_elementwise(asinh_p, "asinh", complex_pairs.inverse_hyperbolic_sine)


acosh_p = Primitive("acosh")

def acosh(x):
    """The number ≥ 0 whose hyperbolic cosine is x, elementwise; NaN for x < 1."""
    return acosh_p.bind(x)

def_elementwise_impl(acosh_p, np.arccosh)
def_elementwise_aval(acosh_p, INEXACT)
defjvp(acosh_p, lambda t, x: mul(t, rsqrt(sub(square(x), const(x, 1)))))
def_not_linear(acosh_p)
defvectorized(acosh_p)
lower_elementwise(acosh_p, "acosh", complex_pairs.inverse_hyperbolic_cosine)


atanh_p = Primitive("atanh")

def atanh(x):
    """The number whose hyperbolic tangent is x, elementwise; NaN outside [-1, 1]."""
    return atanh_p.bind(x)

def_elementwise_impl(atanh_p, np.arctanh)
def_elementwise_aval(atanh_p, INEXACT)
defjvp(atanh_p, lambda t, x: div(t, mul(add(const(x, 1), x), sub(const(x, 1), x))))
def_not_linear(atanh_p)
defvectorized(atanh_p)
lower_elementwise(atanh_p, "atanh", complex_pairs.inverse_hyperbolic_tangent)


# --- Special functions ----------------------------------------------------------------------------

erf_p = Primitive("erf")

def erf(x):
    """2/√π ∫₀ˣ e^(-s²) ds, elementwise."""
    return erf_p.bind(x)

def_elementwise_impl(erf_p, scipy_special("erf"))
def_elementwise_aval(erf_p, FLOAT)
defjvp(erf_p, lambda t, x: mul(t, mul(const(x, 2 / np.sqrt(np.pi)), exp(neg(square(x))))))
def_not_linear(erf_p)
defvectorized(erf_p)
lower_elementwise(erf_p, "erf")


erfc_p = Primitive("erfc")

def erfc(x):
    """1 - erf(x), elementwise, accurate for large x."""
    return erfc_p.bind(x)

def_elementwise_impl(erfc_p, scipy_special("erfc"))
def_elementwise_aval(erfc_p, FLOAT)
defjvp(erfc_p, lambda t, x: mul(t, mul(const(x, -2 / np.sqrt(np.pi)), exp(neg(square(x))))))
def_not_linear(erfc_p)
defvectorized(erfc_p)
lower_elementwise(erfc_p, "erfc")


erf_inv_p = Primitive("erf_inv")

def erf_inv(x):
    """The number whose erf is x, elementwise; NaN outside [-1, 1]."""
    return erf_inv_p.bind(x)

def inverse_of_erf(x):
    return np.where(x == 0, x, scipy_special("erfinv")(x))      # SciPy's drops the sign of -0.0

def_elementwise_impl(erf_inv_p, inverse_of_erf)
def_elementwise_aval(erf_inv_p, FLOAT)
defjvp_with_result(erf_inv_p, lambda t, out, x: mul(t, mul(const(x, np.sqrt(np.pi) / 2),
                                                           exp(square(out)))))
def_not_linear(erf_inv_p)
defvectorized(erf_inv_p)
lower_elementwise(erf_inv_p, "erf_inv")


lgamma_p = Primitive("lgamma")

def lgamma(x):
    """log |Γ(x)|, elementwise."""
    return lgamma_p.bind(x)

def log_abs_gamma(x):
    return np.where(np.isinf(x), np.abs(x), scipy_special("gammaln")(x))    # SciPy has -∞ at -∞

def_elementwise_impl(lgamma_p, log_abs_gamma)
def_elementwise_aval(lgamma_p, FLOAT)
defjvp(lgamma_p, lambda t, x: mul(t, digamma(x)))
def_not_linear(lgamma_p)
defvectorized(lgamma_p)
lower_elementwise(lgamma_p, "lgamma")


digamma_p = Primitive("digamma")

def digamma(x):
    """The derivative of log Γ(x), elementwise; NaN at its poles 0, -1, -2, …"""
    return digamma_p.bind(x)

def digamma_or_nan(x):
    at_pole = (x <= 0) & (x == np.floor(x))
    return np.where(at_pole, x.dtype.type(np.nan), scipy_special("psi")(x))

def_elementwise_impl(digamma_p, digamma_or_nan)
def_elementwise_aval(digamma_p, FLOAT)
defjvp(digamma_p, lambda t, x: mul(t, polygamma(const(x, 1), x)))
def_not_linear(digamma_p)
defvectorized(digamma_p)
lower_elementwise(digamma_p, lambda x: digamma_series(x))

def digamma_series(x):
    """An asymptotic series from 10 on (DLMF 5.11.2); to there by recurrence, and by reflection.

    Computed in float64: near the zeros of digamma the terms cancel.
    """
    z = loop_ir.convert(x, np.float64)
    one, zero = const_like(z, 1), const_like(z, 0)
    is_reflected = op("le", z, zero)
    argument = op("select", is_reflected, op("sub", one, z), z)         # ψ(z) = ψ(1-z) - π cot πz
    is_small = op("lt", argument, const_like(z, 10))
    steps = zero
    for k in range(10):
        steps = op("add", steps, op("div", one, op("add", argument, const_like(z, k))))
    steps = op("select", is_small, steps, zero)                         # ψ(z) = ψ(z+1) - 1/z
    large = op("select", is_small, op("add", argument, const_like(z, 10)), argument)
    inverse = op("div", one, large)
    square, series = op("mul", inverse, inverse), zero
    for term in DIGAMMA_TERMS[::-1]:
        series = op("mul", square, op("add", series, const_like(z, term)))
    series = op("add", series, op("mul", const_like(z, 0.5), inverse))
    out = op("sub", op("sub", op("log", large), series), steps)
    whole = op("round_even", z)
    angle = op("mul", const_like(z, np.pi), op("sub", z, whole))
    reflection = op("div", const_like(z, np.pi), op("tan", angle))
    out = op("select", is_reflected, op("sub", out, reflection), out)
    at_pole = op("and", is_reflected, op("eq", z, whole))
    return loop_ir.convert(op("select", at_pole, const_like(z, np.nan), out), x.dtype)

# Bernoulli numbers B₂, B₄, …, each divided by its index.
DIGAMMA_TERMS = (1 / 12, -1 / 120, 1 / 252, -1 / 240, 1 / 132, -691 / 32760, 1 / 12)


polygamma_p = Primitive("polygamma")

def polygamma(m, x):
    """The derivative of order m of digamma(x), elementwise; m a whole number stored as a float."""
    return polygamma_p.bind(m, x)

def no_derivative_by_order():
    raise ValueError("polygamma has no derivative by its order m, only by x")

def_checked_impl(polygamma_p, scipy_special("polygamma"))
def_elementwise_aval(polygamma_p, FLOAT)
defjvp(polygamma_p, lambda t, m, x: no_derivative_by_order(),
       lambda t, m, x: mul(t, polygamma(add(m, const(m, 1)), x)))
def_not_linear(polygamma_p)
defbroadcasting(polygamma_p)
lower_elementwise(polygamma_p, lambda m, x: polygamma_series(m, x))

def polygamma_series(m, x):
    """(-1)^(m+1) m! Σ (x + k)^-(m+1) over k ≥ 0 (DLMF 5.15.1), in float64; digamma for m = 0."""
    order, z = (loop_ir.convert(v, np.float64) for v in (m, x))
    zero, power, whole = const_like(z, 0), op("add", order, const_like(z, 1)), op("floor", z)
    half = op("mul", order, const_like(z, 0.5))
    sign = op("select", op("eq", half, op("floor", half)), const_like(z, -1), const_like(z, 1))
    total = sum_of_powers(power, z, whole, sign, 10 if x.dtype == np.float64 else 4)
    at_pole = op("and", op("le", z, zero), op("eq", z, whole))
    total = op("select", at_pole, const_like(z, np.inf), total)
    out = op("mul", op("mul", sign, op("exp", op("lgamma", power))), total)
    is_order = op("and", op("gt", order, zero), op("eq", order, op("floor", order)))
    out = loop_ir.convert(op("select", is_order, out, const_like(z, np.nan)), x.dtype)
    if isinstance(m, Const) and m.value != 0:
        return out
    return op("select", op("eq", order, zero), digamma_series(x), out)

def sum_of_powers(s, x, whole, sign, head):
    """Σ (x + k)^-s over k ≥ 0, the first terms one by one; `sign` is (-1)^s, `whole` ⌊x⌋.

    The terms with x + k < 0 are those of 1 - x + ⌊x⌋ up to -x: for large -x a difference of sums.
    """
    one, zero = const_like(x, 1), const_like(x, 0)
    count = op("neg", whole)                            # of negative terms
    right = op("select", op("gt", count, zero), op("sub", x, whole), x)
    left = op("sub", op("add", whole, one), x)
    total = sum_of_far_powers(s, op("add", right, const_like(x, head)))
    negative = op("sub", sum_of_far_powers(s, op("add", left, const_like(x, head))),
                  sum_of_far_powers(s, op("sub", one, x)))
    negative = op("select", op("gt", count, const_like(x, head)), negative, zero)
    for k in map(partial(const_like, x), range(head)):
        total = op("add", total, op("pow", op("add", right, k), op("neg", s)))
        term = op("pow", op("add", left, k), op("neg", s))
        negative = op("add", negative, op("select", op("gt", count, k), term, zero))
    return op("add", total, op("mul", sign, negative))

def sum_of_far_powers(s, x):
    """Σ (x + k)^-s over k ≥ 0 for large x, by Euler's and Maclaurin's formula (DLMF 25.11.7)."""
    one, inverse, series = const_like(x, 1), op("div", const_like(x, 1), x), const_like(x, 0)
    for k, term in reversed(list(enumerate(POWER_TERMS))):
        first, second = (op("mul", op("add", s, const_like(x, 2 * k + i)), inverse) for i in (1, 2))
        series = op("add", const_like(x, term), op("mul", op("mul", first, second), series))
    series = op("add", const_like(x, 0.5), op("mul", op("mul", s, inverse), series))
    series = op("add", op("div", one, op("sub", s, one)), op("mul", inverse, series))
    return op("mul", op("pow", x, op("sub", one, s)), series)

# Bernoulli numbers B₂, B₄, …, each divided by the factorial of its index.
POWER_TERMS = (1 / 12, -1 / 720, 1 / 30240, -1 / 1209600, 1 / 47900160, -691 / 1307674368000,
               1 / 74724249600, -3617 / 10670622842880000)


# --- Rounding and neighbours ----------------------------------------------------------------------

floor_p = Primitive("floor")

def floor(x):
    """The largest whole number ≤ x, elementwise."""
    return floor_p.bind(x)

def_elementwise_impl(floor_p, np.floor)
def_elementwise_aval(floor_p, FLOAT)
def_no_derivative(floor_p)
defvectorized(floor_p)
lower_elementwise(floor_p, "floor")


ceil_p = Primitive("ceil")

def ceil(x):
    """The smallest whole number ≥ x, elementwise."""
    return ceil_p.bind(x)

def_elementwise_impl(ceil_p, np.ceil)
def_elementwise_aval(ceil_p, FLOAT)
def_no_derivative(ceil_p)
defvectorized(ceil_p)
lower_elementwise(ceil_p, "ceil")


class RoundingMethod(enum.IntEnum):
    """What `round` does with numbers halfway between two whole ones."""
    AWAY_FROM_ZERO = 0
    TO_NEAREST_EVEN = 1


round_p = Primitive("round")

def round(x, rounding_method=RoundingMethod.AWAY_FROM_ZERO):
    """The nearest whole number, elementwise."""
    return round_p.bind(x, rounding_method=RoundingMethod(rounding_method))

def round_to_nearest(x, *, rounding_method):
    if rounding_method is RoundingMethod.TO_NEAREST_EVEN:
        return np.rint(x)
    whole = np.trunc(x)
    step = np.abs(x - whole) >= x.dtype.type(0.5)
    return np.copysign(np.abs(whole) + step.astype(x.dtype), x)

def_checked_impl(round_p, rounded_once(round_to_nearest))
def_elementwise_aval(round_p, FLOAT)
def_no_derivative(round_p)
defvectorized(round_p)
lower_elementwise(round_p, lambda x, *, rounding_method: op(ROUNDINGS[rounding_method], x))

ROUNDINGS = {RoundingMethod.AWAY_FROM_ZERO: "round_away",
             RoundingMethod.TO_NEAREST_EVEN: "round_even"}


nextafter_p = Primitive("nextafter")

def nextafter(x1, x2):
    """The next number of the dtype after x1 towards x2, elementwise."""
    return nextafter_p.bind(x1, x2)

def_elementwise_impl(nextafter_p, np.nextafter)
def_elementwise_aval(nextafter_p, FLOAT)
nextafter_p.def_impossible("jvp", "a step to the next number is not smooth; JAX has no rule either")
def_not_linear(nextafter_p)
defbroadcasting(nextafter_p)
lower_moving(nextafter_p, lambda x, y: next_narrow(x, y) if x.dtype in NARROW else
             op("nextafter", x, y))

def next_narrow(x, y):
    """The next narrow float: its neighbours' bits are those of the next integers."""
    value, target, bits = wide(x), wide(y), Op("bitcast", (x,), bits_of(x.dtype))
    zero, is_up = const_like(value, 0), op("lt", value, target)
    outwards = op("eq", is_up, op("gt", value, zero))
    one = const_like(bits, 1)
    step = op("select", outwards, one, op("neg", one))
    below_zero = np.asarray(-dtypes.finfo(x.dtype).smallest_subnormal).view(bits.dtype)
    smallest = op("select", is_up, one, const_like(bits, below_zero))
    moved = op("select", op("eq", value, zero), smallest, op("add", bits, step))
    moved = Op("bitcast", (moved,), x.dtype)
    is_nan = op("ne", value, value)
    return op("select", op("eq", value, target), y, op("select", is_nan, x,
              op("select", op("ne", target, target), y, moved)))


reduce_precision_p = Primitive("reduce_precision")

def reduce_precision(operand, exponent_bits, mantissa_bits):
    """x rounded to a float of so many bits, elementwise, kept in x's dtype."""
    return reduce_precision_p.bind(operand, exponent_bits=int(exponent_bits),
                                   mantissa_bits=int(mantissa_bits))

def round_to_precision(x, *, exponent_bits, mantissa_bits):
    fraction, exponent = np.frexp(x.astype(np.float64))
    rounded = np.ldexp(np.rint(np.ldexp(fraction, mantissa_bits + 1)), exponent - mantissa_bits - 1)
    bias = 2.0 ** (exponent_bits - 1) - 1
    rounded = np.where(np.abs(rounded) >= 2.0 ** (bias + 1), np.copysign(np.inf, x), rounded)
    rounded = np.where(np.abs(rounded) < 2.0 ** (1 - bias), np.copysign(0.0, x), rounded)
    return np.where(np.isfinite(x), rounded.astype(x.dtype), x)

def reduce_precision_aval(x, *, exponent_bits, mantissa_bits):
    check_dtypes(reduce_precision_p, [x], FLOAT)
    if exponent_bits < 1 or mantissa_bits < 0:
        raise ValueError("reduce_precision needs exponent_bits ≥ 1 and mantissa_bits ≥ 0, got "
                         f"{exponent_bits} and {mantissa_bits}")
    return x

def_checked_impl(reduce_precision_p, round_to_precision)
reduce_precision_p.def_abstract_eval(reduce_precision_aval)
# differentiated as the identity that it nearly is, tangents being rounded too
deflinear(reduce_precision_p, lambda ct, x, **bits: reduce_precision_p.bind(ct, **bits))
defvectorized(reduce_precision_p)
lower_elementwise(reduce_precision_p, lambda x, **bits: rounded_bits(x, **bits))

def rounded_bits(x, *, exponent_bits, mantissa_bits):
    """As `round_to_precision`: half of the last bit that stays is added, the others are cut off."""
    info = np.finfo(x.dtype)
    integer = bits_of(x.dtype)
    bits = Op("bitcast", (x,), integer)
    cut = info.nmant - mantissa_bits
    if cut > 0:
        last = op("shift_right_logical", bits, const_like(bits, cut))
        last = op("and", last, const_like(bits, 1))
        bits = op("add", bits, op("add", last, const_like(bits, 2 ** (cut - 1) - 1)))
        bits = op("and", bits, const_like(bits, 2 ** (8 * integer.itemsize) - 2 ** cut))
    rounded, bias = Op("bitcast", (bits,), x.dtype), 2 ** (exponent_bits - 1) - 1
    size = op("abs", rounded)
    sign = complex_pairs.with_sign_of
    if exponent_bits < info.nexp:
        infinite = op("ge", size, const_like(x, 2.0 ** (bias + 1)))
        rounded = op("select", infinite, sign(const_like(x, np.inf), x), rounded)
        rounded = op("select", op("lt", size, const_like(x, 2.0 ** (1 - bias))),
                     sign(const_like(x, 0), x), rounded)
    return op("select", op("is_finite", x), rounded, x)


# --- Complex numbers ------------------------------------------------------------------------------

def complex_dtype(dtype):
    return np.result_type(dtype, np.complex64)


real_p = Primitive("real")

def real(x):
    """The real part of complex x, elementwise."""
    return real_p.bind(x)

def_elementwise_impl(real_p, lambda x: x.real.copy())
def_elementwise_aval(real_p, (np.complexfloating,), real_dtype)
deflinear(real_p, lambda ct, x: complex(ct, const(ct, 0)))
defvectorized(real_p)
lower_elementwise(real_p, None, lambda x: x[0])


imag_p = Primitive("imag")

def imag(x):
    """The imaginary part of complex x, elementwise."""
    return imag_p.bind(x)

def_elementwise_impl(imag_p, lambda x: x.imag.copy())
def_elementwise_aval(imag_p, (np.complexfloating,), real_dtype)
# transposes are those of complex-linear maps, without conjugation: imag is Re(-i x)
deflinear(imag_p, lambda ct, x: complex(const(ct, 0), neg(ct)))
defvectorized(imag_p)
lower_elementwise(imag_p, None, lambda x: x[1])


complex_p = Primitive("complex")

def complex(x, y):
    """x + iy, elementwise."""
    return complex_p.bind(x, y)

def from_parts(x, y):
    out = np.empty(np.broadcast_shapes(x.shape, y.shape), complex_dtype(x.dtype))
    out.real, out.imag = x, y
    return out

def_elementwise_impl(complex_p, from_parts)
def_elementwise_aval(complex_p, (np.float32, np.float64), complex_dtype)
defjvp(complex_p, lambda t, x, y: complex(t, zeros_like(t)),
       lambda t, x, y: complex(zeros_like(t), t))
def_transpose_per_operand(complex_p, lambda ct, x, y: real(ct), lambda ct, x, y: imag(neg(ct)))
defjet_linear(complex_p)
defbroadcasting(complex_p)
lower_elementwise(complex_p, lambda x, y: loop_ir.join(x, y))


conj_p = Primitive("conj")

def conj(x):
    """The complex conjugate, elementwise; complex for real x too."""
    return conj_p.bind(x, input_dtype=typeof(x).dtype)

def conjugate(x, *, input_dtype):
    return np.conjugate(x).astype(complex_dtype(x.dtype), copy=False)

def_elementwise_impl(conj_p, conjugate)
def_elementwise_aval(conj_p, (np.float32, np.float64, np.complexfloating), complex_dtype)
deflinear(conj_p, lambda ct, x, *, input_dtype: conj(ct) if input_dtype.kind == "c" else real(ct))
defvectorized(conj_p)
lower_elementwise(conj_p, lambda x, *, input_dtype: loop_ir.convert(x, complex_dtype(x.dtype)),
                  lambda x, *, input_dtype: complex_pairs.conjugate(x))


# --- Conversions ----------------------------------------------------------------------------------

convert_element_type_p = Primitive("convert_element_type")

def convert_element_type(operand, new_dtype, weak_type=False):
    """The operand's numbers in another dtype; an operand of that type already is returned as it is.

    Floats become integers by rounding towards zero; those out of range become the nearest integer
    in range, and NaN becomes 0. Integers wrap around. Complex numbers lose their imaginary part.
    A known scalar is converted at once: a program records its result.
    """
    new_dtype = dtypes.canonicalize_dtype(new_dtype)
    params = dict(new_dtype=new_dtype, weak_type=weak_type)
    if not weak_type and isinstance(operand, (np.generic, *dtypes.python_scalar_dtypes)):
        with np.errstate(all="ignore"):     # of digits that its own dtype may have no room for
            return as_array(convert(np.asarray(operand), **params))
    aval = typeof(operand)
    if aval.dtype == new_dtype and aval.weak_type == weak_type:
        return operand if isinstance(operand, (Array, Tracer)) else as_array(operand)
    if isinstance(operand, Tracer) or aval.shape:
        return convert_element_type_p.bind(operand, **params)
    return eval_trace.process_primitive(convert_element_type_p, [operand], params)

def convert(x, *, new_dtype, weak_type):
    if is_kind(x, np.complexfloating) and not dtypes.issubdtype(new_dtype, np.complexfloating):
        x = x if new_dtype == np.bool_ else x.real
    if is_kind(x, np.floating) and dtypes.issubdtype(new_dtype, np.integer):
        return float_to_integer(x, new_dtype)
    return x.astype(new_dtype)

def float_to_integer(x, dtype):
    x = x.astype(dtypes.computed_in.get(x.dtype, x.dtype), copy=False)
    smallest, largest, top = integer_bounds(dtype)
    inside = (x >= smallest) & (x < top)            # false for NaN
    if inside.all():
        return x.astype(dtype)
    nearest = np.where(x < smallest, smallest, np.where(x >= top, largest, dtype.type(0)))
    return np.where(inside, np.where(inside, x, 0).astype(dtype), nearest)

@functools.cache
def integer_bounds(dtype):
    """The smallest and largest integer, and one above it: a power of two, so exact as a float."""
    bounds = dtypes.iinfo(dtype)
    return dtype.type(bounds.min), dtype.type(bounds.max), (bounds.max // 2 + 1) * 2.0

def convert_aval(x, *, new_dtype, weak_type):
    check_dtypes(convert_element_type_p, [x], ANY)
    return ShapedArray(x.shape, new_dtype, weak_type)

def convert_jvp(primals, tangents, *, new_dtype, weak_type):
    out = convert_element_type_p.bind(*primals, new_dtype=new_dtype, weak_type=weak_type)
    if is_zero(tangents[0]) or not dtypes.issubdtype(new_dtype, np.inexact):
        return out, Zero.like(out)
    return out, convert_element_type(*tangents, new_dtype, weak_type)

def convert_transpose(ct, x, *, new_dtype, weak_type):
    return [convert_element_type(ct, x.aval.dtype, x.aval.weak_type)]

def_elementwise_impl(convert_element_type_p, convert)
convert_element_type_p.def_abstract_eval(convert_aval)
convert_element_type_p.def_jvp(convert_jvp)
convert_element_type_p.def_transpose(convert_transpose)
defjet_linear(convert_element_type_p)
defvectorized(convert_element_type_p)
lower_elementwise(convert_element_type_p,
                  lambda x, *, new_dtype, weak_type: loop_ir.convert(x, new_dtype),
                  lambda x, *, new_dtype, weak_type: loop_ir.convert(loop_ir.join(*x), new_dtype))


bitcast_convert_type_p = Primitive("bitcast_convert_type")

def bitcast_convert_type(operand, new_dtype):
    """The operand's bits read as another dtype.

    A narrower dtype adds a last axis that holds the parts, lowest bits first; a wider one drops it.
    """
    return bitcast_convert_type_p.bind(operand, new_dtype=dtypes.canonicalize_dtype(new_dtype))

def reinterpret(x, *, new_dtype):
    shape, old, new = bitcast_shape(x, new_dtype), bit_width(x.dtype), bit_width(new_dtype)
    x = np.ascontiguousarray(x).reshape(-1)
    if old == new or min(old, new) >= 8:
        return x.view(new_dtype).reshape(shape)
    bits = np.unpackbits(x.view(np.uint8).reshape(x.size, -1), 1, old, bitorder="little")
    return np.packbits(bits.reshape(-1, new), 1, bitorder="little").view(new_dtype).reshape(shape)

def bit_width(dtype):
    if dtype not in dtypes.computed_in:
        return 8 * dtype.itemsize
    return (dtypes.iinfo if dtypes.issubdtype(dtype, np.integer) else dtypes.finfo)(dtype).bits

def bitcast_shape(x, new_dtype):
    unlike = [d for d in (x.dtype, new_dtype) if d == np.bool_ or d.kind == "c"]
    if unlike and x.dtype != new_dtype:
        raise TypeError("bitcast_convert_type converts no bools and complex numbers, got "
                        f"{x.dtype.name} to {new_dtype.name}")
    old, new = bit_width(x.dtype), bit_width(new_dtype)
    if old == new:
        return x.shape
    if old % new == 0:
        return (*x.shape, old // new)
    if new % old or not x.shape or x.shape[-1] * old != new:
        needs = "another number of bits" if new % old else f"a last axis of size {new // old}"
        raise ValueError(f"bitcast of {x.dtype.name} to {new_dtype.name} needs {needs}, got shape "
                         f"{x.shape}")
    return x.shape[:-1]

def bitcast_aval(x, *, new_dtype):
    check_dtypes(bitcast_convert_type_p, [x], ANY)
    return ShapedArray(bitcast_shape(x, new_dtype), new_dtype)

def bitcast_batch(axis, vals, dims, *, new_dtype):
    # the axis of the parts must stay the last one
    x = moveaxis(vals[0], dims[0], 0)
    return bitcast_convert_type(x, new_dtype), 0

bitcast_convert_type_p.def_impl(reinterpret)
bitcast_convert_type_p.def_abstract_eval(bitcast_aval)
def_no_derivative(bitcast_convert_type_p, "bits are no numbers to differentiate by")
bitcast_convert_type_p.def_batch(bitcast_batch)


@bitcast_convert_type_p.def_lowering
def bitcast_lowering(ctx, x, *, new_dtype):
    if not ctx.is_native():
        return library_step(ctx, x, new_dtype=new_dtype)
    if x.dtype == new_dtype:
        return elementwise_step(ctx, lambda x: x, x)
    if bit_width(x.dtype) == bit_width(new_dtype):
        return elementwise_step(ctx, lambda x: Op("bitcast", (x,), new_dtype), x)
    is_wider = bit_width(x.dtype) > bit_width(new_dtype)
    return (take_bits_apart if is_wider else put_bits_together)(ctx, ctx.as_buffer(x), ctx.result())


def take_bits_apart(ctx, x, out):
    """Append loops that store the parts of each element, the lowest first."""
    width = bit_width(out.dtype)
    axes = Axis(x.size), Axis(bit_width(x.dtype) // width)
    shift = AxisValue(axis_index(axes[1]) * width, bits_of(x.dtype))
    bits = Op("bitcast", (Load(x, axis_index(axes[0])),), shift.dtype)
    part = loop_ir.convert(op("shift_right_logical", bits, shift), bits_of(out.dtype))
    if width < 8:
        part = op("and", part, const_like(part, 2 ** width - 1))
    ctx.nest(axes, body_of([Store(out, row_major(axes), Op("bitcast", (part,), out.dtype))]))
    return out


def put_bits_together(ctx, x, out):
    """Append a loop that makes each element of its parts, the lowest first."""
    axis, width = Axis(out.size), bit_width(x.dtype)
    count = bit_width(out.dtype) // width
    whole = None
    for k in range(count):
        load = Load(x, axis_index(axis) * count + k)
        part = loop_ir.convert(Op("bitcast", (load,), bits_of(x.dtype)), bits_of(out.dtype))
        part = op("shift_left", part, const_like(part, k * width))
        whole = part if whole is None else op("or", whole, part)
    ctx.nest([axis], body_of([Store(out, axis_index(axis), Op("bitcast", (whole,), out.dtype))]))
    return out


copy_p = Primitive("copy")

def copy(x):
    """A copy of x. Arrays are immutable, so it may share its buffer with x."""
    return copy_p.bind(x)

copy_p.def_impl(lambda x: x)
copy_p.def_abstract_eval(lambda x: x)
deflinear(copy_p, lambda ct, x: copy(ct))
defvectorized(copy_p)
lower_moving(copy_p, lambda x: x)
