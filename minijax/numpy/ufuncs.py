# Exported from notebooks/ref_numpy_math.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: numpy. Home: ref_numpy_math. In JAX: jax/_src/numpy/ufuncs.py.

NumPy's elementwise functions. Each promotes its operands and then uses primitives, which neither
promote nor broadcast. A table defines those that are one primitive; the others follow by topic.
"""

import operator

import numpy as np

from minijax import dtypes, lax
from minijax.array import Array
from minijax.core import Tracer, concrete_or_error
from minijax.numpy.promotion import (
    asarray, check_arraylike, convert, ensure_arraylike, promote_args, promote_args_inexact,
    promote_args_numeric, promote_dtypes, promote_quickly, promote_shapes,
)
from minijax.rules import const

__all__ = [
    "unary", "binary", "named", "exp", "exp2", "expm1", "log", "log1p", "sqrt", "cbrt",
    "reciprocal", "square", "sin", "cos", "tan", "arcsin", "arccos", "arctan", "sinh", "cosh",
    "tanh", "arcsinh", "arctanh", "negative", "positive", "sign", "invert", "subtract",
    "true_divide", "maximum", "minimum", "float_power", "nextafter", "bitwise_and", "bitwise_or",
    "bitwise_xor", "left_shift", "equal", "not_equal", "divide", "bitwise_not", "bitwise_invert",
    "bitwise_left_shift", "asin", "acos", "atan", "asinh", "atanh", "arctan2", "atan2",
    "right_shift", "bitwise_right_shift", "bitwise_count", "arccosh", "acosh", "is_complex",
    "is_float", "is_whole", "to_bool", "where", "fill", "clip", "any_complex", "fmax", "fmin",
    "add", "multiply", "absolute", "abs", "fabs", "floor_divide", "remainder", "mod", "fmod",
    "divmod", "float_divmod", "power", "pow", "known_exponent", "holds_inexact", "EXPONENT_BITS",
    "integer_power", "log2", "log10", "not_weak", "scaled", "logaddexp", "logaddexp2", "log_of_sum",
    "deg2rad", "rad2deg", "radians", "degrees", "hypot", "sinc", "sinc_near_zero", "heaviside",
    "floor", "ceil", "trunc", "rint", "round_to_even", "by_parts", "round", "around",
    "round_to_decimals", "check_no_out", "comparison", "greater", "greater_equal", "less",
    "less_equal", "logical", "logical_and", "logical_or", "logical_xor", "logical_not", "isnan",
    "isfinite", "isinf", "isposinf", "isneginf", "is_infinity", "equals_constant", "iscomplex",
    "isreal", "isclose", "nan_to_num", "real", "imag", "conjugate", "conj", "angle", "gcd",
    "euclid_steps", "is_known_zero", "lcm", "promote_integers", "signbit", "bits_of", "copysign",
    "modf", "ldexp", "power_of_two", "frexp", "exponent_of", "spacing",
]


# --- One primitive each ---------------------------------------------------------------------------

def unary(name, function, promote, doc):
    """A ufunc of one operand: promote it, then apply a function of arrays."""
    def ufunc(x, /):
        return function(*promote(name, x))
    return named(ufunc, name, doc)


def binary(name, function, promote, doc):
    """A ufunc of two operands: promote and broadcast them, then apply a function of arrays."""
    def ufunc(x, y, /):
        return function(*promote(name, x, y))
    return named(ufunc, name, doc)


def named(ufunc, name, doc):
    ufunc.__name__ = ufunc.__qualname__ = name
    ufunc.__doc__ = doc
    return ufunc


exp = unary("exp", lax.exp, promote_args_inexact, "e to the power x, elementwise.")
exp2 = unary("exp2", lax.exp2, promote_args_inexact, "2 to the power x, elementwise.")
expm1 = unary("expm1", lax.expm1, promote_args_inexact, "e to the power x, less 1, elementwise.")
log = unary("log", lax.log, promote_args_inexact, "The natural logarithm, elementwise.")
log1p = unary("log1p", lax.log1p, promote_args_inexact, "log(1 + x), elementwise.")
sqrt = unary("sqrt", lax.sqrt, promote_args_inexact, "The square root, elementwise.")
cbrt = unary("cbrt", lax.cbrt, promote_args_inexact, "The cube root, elementwise.")
reciprocal = unary("reciprocal", lax.reciprocal, promote_args_inexact, "1 / x, elementwise.")
square = unary("square", lax.square, promote_args_numeric, "x², elementwise.")
sin = unary("sin", lax.sin, promote_args_inexact, "The sine of an angle in radians, elementwise.")
cos = unary("cos", lax.cos, promote_args_inexact, "The cosine, elementwise.")
tan = unary("tan", lax.tan, promote_args_inexact, "The tangent, elementwise.")
arcsin = unary("arcsin", lax.asin, promote_args_inexact, "The inverse of sin, in [-π/2, π/2].")
arccos = unary("arccos", lax.acos, promote_args_inexact, "The inverse of cos, in [0, π].")
arctan = unary("arctan", lax.atan, promote_args_inexact, "The inverse of tan, in [-π/2, π/2].")
sinh = unary("sinh", lax.sinh, promote_args_inexact, "The hyperbolic sine, elementwise.")
cosh = unary("cosh", lax.cosh, promote_args_inexact, "The hyperbolic cosine, elementwise.")
tanh = unary("tanh", lax.tanh, promote_args_inexact, "The hyperbolic tangent, elementwise.")
arcsinh = unary("arcsinh", lax.asinh, promote_args_inexact, "The inverse of sinh, elementwise.")
arctanh = unary("arctanh", lax.atanh, promote_args_inexact, "The inverse of tanh, elementwise.")
negative = unary("negative", lax.neg, promote_args, "-x, elementwise.")


positive = unary("positive", asarray, promote_args, "x itself, as an array.")
sign = unary("sign", lax.sign, promote_args, "-1, 0 or 1; for complex x the number x / |x|.")
invert = unary("invert", lax.bitwise_not, promote_args, "All bits flipped; not, for bools.")

subtract = binary("subtract", lax.sub, promote_args, "x - y, elementwise.")
true_divide = binary("true_divide", lax.div, promote_args_inexact,
                     "x / y, elementwise; floating even for integers.")
maximum = binary("maximum", lax.max, promote_args, "The larger of x and y; NaN if either is NaN.")
minimum = binary("minimum", lax.min, promote_args, "The smaller of x and y; NaN if either is NaN.")
float_power = binary("float_power", lax.pow, promote_args_inexact,
                     "x to the power y, floating even for integers.")
nextafter = binary("nextafter", lax.nextafter, promote_args_inexact,
                   "The next floating-point number after x in the direction of y.")
bitwise_and = binary("bitwise_and", lax.bitwise_and, promote_args, "The bits set in both x and y.")
bitwise_or = binary("bitwise_or", lax.bitwise_or, promote_args, "The bits set in x or in y.")
bitwise_xor = binary("bitwise_xor", lax.bitwise_xor, promote_args, "The bits in which x, y differ.")
left_shift = binary("left_shift", lax.shift_left, promote_args_numeric, "x 2ʸ: bits shifted left.")
equal = binary("equal", lax.eq, promote_args, "Whether x = y, elementwise.")
not_equal = binary("not_equal", lax.ne, promote_args, "Whether x ≠ y, elementwise.")

divide = true_divide
bitwise_not = bitwise_invert = invert
bitwise_left_shift = left_shift
asin, acos, atan = arcsin, arccos, arctan
asinh, atanh = arcsinh, arctanh


def arctan2(y, x, /):
    """The angle of the point (x, y), in [-π, π], elementwise."""
    y, x = promote_args_inexact("arctan2", y, x)
    if not is_complex(x):
        return lax.atan2(y, x)
    i = const(x, 1j)
    direction = lax.div(lax.add(x, lax.mul(i, y)), lax.sqrt(lax.add(lax.mul(x, x), lax.mul(y, y))))
    return lax.neg(lax.mul(i, lax.log(direction)))


atan2 = arctan2


def right_shift(x1, x2, /):
    """x1 / 2^x2 rounded down: bits shifted right, the sign bit being repeated if x1 has one."""
    x1, x2 = promote_args_numeric("right_shift", x1, x2)
    unsigned = dtypes.issubdtype(x1.dtype, np.unsignedinteger)
    return (lax.shift_right_logical if unsigned else lax.shift_right_arithmetic)(x1, x2)


bitwise_right_shift = right_shift


def bitwise_count(x, /):
    """The number of set bits of |x|, elementwise."""
    bits = absolute(*promote_args_numeric("bitwise_count", x))
    return lax.convert_element_type(lax.population_count(bits), np.uint8)


def arccosh(x, /):
    """The inverse of cosh, elementwise; not negative, and for complex x in the right half-plane."""
    out = lax.acosh(*promote_args_inexact("arccosh", x))
    if not is_complex(out):
        return out
    return where(less(lax.real(out), 0), lax.neg(out), out)


acosh = arccosh


# --- Kinds of dtype -------------------------------------------------------------------------------

def is_complex(x):
    return dtypes.issubdtype(x.dtype, np.complexfloating)


def is_float(x):
    return dtypes.issubdtype(x.dtype, np.floating)


def is_whole(x):
    """Whether the array holds integers or bools."""
    return not dtypes.issubdtype(x.dtype, np.inexact)


def to_bool(x):
    return x if x.dtype == bool else lax.ne(x, const(x, 0))


# --- Choosing -------------------------------------------------------------------------------------

def where(condition, x, y):
    """Elements of x where the condition holds, else of y: `where` with three arguments."""
    condition = to_bool(asarray(condition))
    x, y = promote_quickly((x, y)) or promote_dtypes(x, y)
    if not x.shape == y.shape == condition.shape:
        shape = np.broadcast_shapes(condition.shape, x.shape, y.shape)
        condition, x, y = promote_shapes("where", condition, x, y)
        x, y = fill(x, shape), fill(y, shape)
    return lax.select(condition, x, y)


def fill(x, shape):
    """A scalar in `shape`, which arrays have already."""
    return x if x.shape == shape else lax.broadcast_in_dim(x, shape, ())


def clip(arr=None, /, min=None, max=None):
    """`arr` with values below `min` raised to it and then those above `max` lowered to it."""
    if arr is None:
        raise ValueError("No input was provided to the clip function.")
    arr = ensure_arraylike("clip", arr)
    if any_complex(arr, min, max):
        raise ValueError("clip: complex numbers have no order, so they have no bounds either; clip "
                         "the real and imaginary parts")
    if min is not None:
        arr = maximum(min, arr)
    return arr if max is None else minimum(max, arr)


def any_complex(*args):
    return any([x is not None and dtypes.issubdtype(dtypes.dtype(x), np.complexfloating)
                for x in args])


def fmax(x1, x2):
    """The larger of x1 and x2, or the one that is not NaN."""
    return where(logical_or(greater(x1, x2), isnan(x2)), x1, x2)


def fmin(x1, x2):
    """The smaller of x1 and x2, or the one that is not NaN."""
    return where(logical_or(less(x1, x2), isnan(x2)), x1, x2)


# --- Arithmetic that depends on the dtype ---------------------------------------------------------

def add(x, y, /):
    """x + y, elementwise; for bools, or."""
    x, y = promote_args("add", x, y)
    return lax.bitwise_or(x, y) if x.dtype == bool else lax.add(x, y)


def multiply(x, y, /):
    """x y, elementwise; for bools, and."""
    x, y = promote_args("multiply", x, y)
    return lax.bitwise_and(x, y) if x.dtype == bool else lax.mul(x, y)


def absolute(x, /):
    """|x|, elementwise; real for complex x."""
    x = ensure_arraylike("absolute", x)
    nonnegative = x.dtype == bool or dtypes.issubdtype(x.dtype, np.unsignedinteger)
    return x if nonnegative else lax.abs(x)


abs = absolute


def fabs(x, /):
    """|x| of a real x, floating even for integers."""
    if any_complex(x):
        raise TypeError("ufunc 'fabs' does not support complex dtypes")
    return lax.abs(*promote_args_inexact("fabs", x))


def floor_divide(x1, x2, /):
    """x1 / x2 rounded down, elementwise; an integer divided by zero gives no error."""
    x1, x2 = promote_args_numeric("floor_divide", x1, x2)
    if is_complex(x1):
        raise TypeError("floor_divide does not support complex-valued inputs")
    if not is_whole(x1):
        return float_divmod(x1, x2)[0]
    quotient = lax.div(x1, x2)
    if dtypes.issubdtype(x1.dtype, np.unsignedinteger):
        return quotient
    # lax.div rounds towards zero: one too high where the signs differ and something remains.
    rounded_up = lax.bitwise_and(lax.ne(lax.sign(x1), lax.sign(x2)),
                                 lax.ne(lax.rem(x1, x2), const(x1, 0)))
    return lax.select(rounded_up, lax.sub(quotient, const(quotient, 1)), quotient)


def remainder(x1, x2, /):
    """What x1 // x2 leaves, with the sign of x2; 0 for integers modulo zero."""
    x1, x2 = promote_args_numeric("remainder", x1, x2)
    if is_whole(x1):
        x2 = where(lax.eq(x2, const(x2, 0)), const(x2, 1), x2)
    rest = lax.rem(x1, x2)
    zero = const(rest, 0)
    wrong_sign = lax.bitwise_and(lax.ne(lax.lt(rest, zero), lax.lt(x2, zero)), lax.ne(rest, zero))
    return lax.select(wrong_sign, lax.add(rest, x2), rest)


mod = remainder


def fmod(x1, x2, /):
    """The remainder of x1 / x2 with the sign of x1; 0 for integers modulo zero."""
    x1, x2 = promote_args_numeric("fmod", x1, x2)
    if is_whole(x1):
        x2 = where(lax.eq(x2, const(x2, 0)), const(x2, 1), x2)
    return lax.rem(x1, x2)


def divmod(x1, x2, /):
    """(x1 // x2, x1 % x2), elementwise."""
    x1, x2 = promote_args_numeric("divmod", x1, x2)
    if is_whole(x1):
        return floor_divide(x1, x2), remainder(x1, x2)
    return float_divmod(x1, x2)


def float_divmod(x1, x2):
    rest = lax.rem(x1, x2)
    zero = const(x1, 0)
    # Zero divides nothing off, so the quotient is ±inf rather than NaN.
    quotient = lax.div(where(lax.eq(x2, zero), x1, lax.sub(x1, rest)), x2)
    differ = lax.bitwise_and(lax.ne(rest, zero), lax.ne(lax.sign(x2), lax.sign(rest)))
    rest = lax.select(differ, lax.add(rest, x2), rest)
    quotient = where(differ, lax.sub(quotient, const(quotient, 1)), quotient)
    return lax.round(quotient), rest


# --- Powers ---------------------------------------------------------------------------------------

def power(x1, x2, /):
    """x1 to the power x2, elementwise.

    A known integer power is a product of x1's, whose derivative is right at 0 and which keeps x1's
    dtype. Raises TypeError for integers to a known negative power.
    """
    check_arraylike("power", x1, x2)
    exponent = known_exponent(x1, x2)
    if exponent is not None:
        return lax.integer_pow(*promote_args_numeric("power", x1), exponent)
    if not holds_inexact(x1) and not holds_inexact(x2):
        return integer_power(*promote_args_numeric("power", x1, x2))
    if not dtypes.issubdtype(dtypes.dtype(x2), np.integer):
        return lax.pow(*promote_args_inexact("power", x1, x2))
    base_type = dtypes.lattice_result_type(x1, x2)
    return lax.pow(*promote_shapes("power", convert(x1, *base_type), asarray(x2)))


pow = power


def known_exponent(x1, x2):
    """The Python int that x2 stands for if it is known now, else None."""
    if isinstance(x2, (int, np.integer)):
        return operator.index(x2)
    # A program made for many calls must not depend on an array's value.
    is_array = ((type(x2) is Array or isinstance(x2, np.ndarray))
                and not isinstance(x1, Tracer))
    if is_array and not x2.ndim and dtypes.issubdtype(x2.dtype, np.integer):
        return int(x2)
    return None


def holds_inexact(x):
    return dtypes.issubdtype(dtypes.dtype(x), np.inexact)


EXPONENT_BITS = 6       # as in JAX: beyond 63 all but a few bases have overflowed


def integer_power(x, y):
    """Integers to the power of integers, by squaring: one factor for each bit of the exponent."""
    one, zero = const(x, 1), const(x, 0)
    vanishes = lax.bitwise_and(lax.eq(x, zero), lax.ne(y, const(y, 0)))
    out = where(vanishes, zero, one)
    for _ in range(EXPONENT_BITS):
        bit = lax.bitwise_and(y, const(y, 1))
        out = where(bit, lax.mul(out, x), out)
        x, y = lax.mul(x, x), lax.shift_right_logical(y, const(y, 1))
    return out


# --- Logarithms, angles and other real functions --------------------------------------------------

def log2(x, /):
    """The logarithm to base 2, elementwise."""
    return not_weak(scaled(lax.log(*promote_args_inexact("log2", x)), 1 / np.log(2)))


def log10(x, /):
    """The logarithm to base 10, elementwise."""
    return not_weak(scaled(lax.log(*promote_args_inexact("log10", x)), 1 / np.log(10)))


def not_weak(x):
    """x at its dtype for good: some functions of Python numbers return such arrays in JAX."""
    return convert(x, x.dtype)


def scaled(x, factor):
    # part by part, or an infinite one would make a NaN of the other
    return by_parts(lambda part: lax.mul(part, const(part, factor)), x)


def logaddexp(x1, x2, /):
    """log(exp(x1) + exp(x2)) without overflow, elementwise."""
    high, excess = log_of_sum(*promote_args_inexact("logaddexp", x1, x2), lax.exp)
    return lax.add(high, excess)


def logaddexp2(x1, x2, /):
    """log2(2^x1 + 2^x2) without overflow, elementwise."""
    high, excess = log_of_sum(*promote_args_inexact("logaddexp2", x1, x2), lax.exp2)
    return lax.add(high, lax.div(excess, const(excess, np.log(2))))


def log_of_sum(x, y, power_of_base):
    """The larger operand, and log(1 + base^(smaller - larger)).

    Choosing by `select`, unlike |x - y|, leaves a formula that is smooth across x = y, so all
    derivatives are right there.
    """
    first = lax.ge(lax.real(x), lax.real(y)) if is_complex(x) else lax.ge(x, y)
    high, low = where(first, x, y), where(first, y, x)
    # Two infinities of one sign have no difference; let both be 0 there.
    no_gap = lax.bitwise_and(lax.eq(x, y), isinf(x))
    low, subtracted = where(no_gap, const(x, 0), low), where(no_gap, const(x, 0), high)
    return high, lax.log1p(power_of_base(lax.sub(low, subtracted)))


def deg2rad(x, /):
    """Degrees as radians, elementwise."""
    return scaled(*promote_args_inexact("deg2rad", x), np.pi / 180)


def rad2deg(x, /):
    """Radians as degrees, elementwise."""
    return scaled(*promote_args_inexact("rad2deg", x), 180 / np.pi)


radians, degrees = deg2rad, rad2deg


def hypot(x1, x2, /):
    """√(x1² + x2²) without overflow, elementwise; infinite if either operand is."""
    x1, x2 = promote_args_inexact("hypot", x1, x2)
    if is_complex(x1):
        raise ValueError("hypot does not support complex-valued inputs")
    x1, x2 = lax.abs(x1), lax.abs(x2)
    inf, zero = const(x1, np.inf), const(x1, 0)
    is_infinite = lax.bitwise_or(lax.eq(x1, inf), lax.eq(x2, inf))
    large, small = lax.max(x1, x2), lax.min(x1, x2)
    ratio = lax.div(small, where(lax.eq(large, zero), const(x1, 1), large))
    length = lax.mul(large, lax.sqrt(lax.add(const(x1, 1), lax.square(ratio))))
    return where(is_infinite, inf, where(lax.eq(large, zero), large, length))


def sinc(x, /):
    """sin(πx) / (πx), and 1 at 0, elementwise."""
    x, = promote_args_inexact("sinc", x)
    pi_x = lax.mul(x, const(x, np.pi))
    is_zero = lax.eq(x, const(x, 0))
    safe = where(is_zero, const(x, 1), pi_x)
    return where(is_zero, sinc_near_zero(pi_x), lax.div(lax.sin(safe), safe))


def sinc_near_zero(x):
    # Only derivatives at 0 come from this series, which gives the first seven of them.
    square = lax.mul(x, x)
    out = const(x, 1)
    for n in (6, 4, 2):
        out = lax.sub(const(x, 1), lax.mul(out, lax.mul(square, const(x, 1 / (n * (n + 1))))))
    return out


def heaviside(x1, x2, /):
    """0 where x1 < 0, x2 where x1 = 0, 1 where x1 > 0; NaN where x1 is NaN."""
    x1, x2 = promote_args_inexact("heaviside", x1, x2)
    zero, one = const(x1, 0), const(x1, 1)
    at_zero = where(isnan(x1), x1, x2)
    return where(lax.lt(x1, zero), zero, where(lax.gt(x1, zero), one, at_zero))


# --- Rounding -------------------------------------------------------------------------------------

def floor(x, /):
    """The largest whole number ≤ x, elementwise; integers keep their dtype."""
    x = ensure_arraylike("floor", x)
    return x if is_whole(x) else lax.floor(x)


def ceil(x, /):
    """The smallest whole number ≥ x, elementwise; integers keep their dtype."""
    x = ensure_arraylike("ceil", x)
    return x if is_whole(x) else lax.ceil(x)


def trunc(x, /):
    """x rounded towards zero, elementwise; integers keep their dtype."""
    x = ensure_arraylike("trunc", x)
    return x if is_whole(x) else where(lax.lt(x, const(x, 0)), lax.ceil(x), lax.floor(x))


def rint(x, /):
    """The nearest whole number, elementwise, halves to even ones; floating for integers."""
    x = ensure_arraylike("rint", x)
    if is_whole(x):
        return lax.convert_element_type(x, dtypes.default_float_dtype())
    return by_parts(round_to_even, x)


def round_to_even(x):
    return lax.round(x, lax.RoundingMethod.TO_NEAREST_EVEN)


def by_parts(function, x):
    """A function of real arrays applied to x, or to both parts of a complex x."""
    if not is_complex(x):
        return function(x)
    return lax.complex(function(lax.real(x)), function(lax.imag(x)))


def round(a, decimals=0, out=None):
    """`a` to a number of decimals, elementwise, halves to even digits.

    Integers stay as they are; NotImplementedError for integers and negative `decimals`.
    """
    a = ensure_arraylike("round", a)
    check_no_out("round", out)
    decimals = concrete_or_error(operator.index, decimals, "'decimals' argument of jnp.round().")
    if is_whole(a):
        if decimals < 0:
            raise NotImplementedError("integer round is not implemented for decimals < 0")
        return a
    if decimals == 0:
        return by_parts(round_to_even, a)
    return by_parts(lambda x: round_to_decimals(x, decimals), a)


around = round


def round_to_decimals(x, decimals):
    # A narrow float would overflow times the power of ten.
    dtype = dtypes.promote_types(x.dtype, np.float32) if x.dtype.itemsize < 4 else x.dtype
    wide = lax.convert_element_type(x, dtype, x.weak_type)
    factor = const(wide, 10 ** decimals)
    rounded = lax.div(round_to_even(lax.mul(wide, factor)), factor)
    return lax.convert_element_type(rounded, x.dtype, x.weak_type)


def check_no_out(fun_name, out):
    """Raise NotImplementedError if an output array is given: arrays are immutable."""
    if out is not None:
        raise NotImplementedError(f"The 'out' argument to jnp.{fun_name} is not supported.")


# --- Comparisons and logic ------------------------------------------------------------------------

def comparison(name, compare, doc):
    """A comparison that orders complex numbers by real parts first, then by imaginary ones."""
    def ufunc(x, y, /):
        x, y = promote_args(name, x, y)
        if not is_complex(x):
            return compare(x, y)
        return lax.select(lax.eq(lax.real(x), lax.real(y)), compare(lax.imag(x), lax.imag(y)),
                          compare(lax.real(x), lax.real(y)))
    return named(ufunc, name, doc)


greater = comparison("greater", lax.gt, "Whether x > y, elementwise.")
greater_equal = comparison("greater_equal", lax.ge, "Whether x ≥ y, elementwise.")
less = comparison("less", lax.lt, "Whether x < y, elementwise.")
less_equal = comparison("less_equal", lax.le, "Whether x ≤ y, elementwise.")


def logical(name, combine, doc):
    def ufunc(*args):
        return combine(*map(to_bool, promote_args(name, *args)))
    return named(ufunc, name, doc)


logical_and = logical("logical_and", lax.bitwise_and, "Whether x and y are both not 0.")
logical_or = logical("logical_or", lax.bitwise_or, "Whether x or y is not 0.")
logical_xor = logical("logical_xor", lax.bitwise_xor, "Whether exactly one of x, y is not 0.")
logical_not = logical("logical_not", lax.bitwise_not, "Whether x is 0, elementwise.")


def isnan(x, /):
    """Whether x is NaN, elementwise."""
    x = ensure_arraylike("isnan", x)
    return lax.ne(x, x)


def isfinite(x, /):
    """Whether x is neither infinite nor NaN, elementwise."""
    x = ensure_arraylike("isfinite", x)
    if is_complex(x):
        return lax.bitwise_and(lax.is_finite(lax.real(x)), lax.is_finite(lax.imag(x)))
    return lax.full_like(x, True, bool) if is_whole(x) else lax.is_finite(x)


def isinf(x, /):
    """Whether x is infinite, elementwise; a complex x is if one of its parts is."""
    x = ensure_arraylike("isinf", x)
    if is_complex(x):
        return lax.bitwise_or(isinf(lax.real(x)), isinf(lax.imag(x)))
    return equals_constant(lax.abs(x), np.inf) if is_float(x) else lax.full_like(x, False, bool)


def isposinf(x, /, out=None):
    """Whether a real x is infinite and positive, elementwise."""
    return is_infinity("isposinf", np.inf, x, out)


def isneginf(x, /, out=None):
    """Whether a real x is infinite and negative, elementwise."""
    return is_infinity("isneginf", -np.inf, x, out)


def is_infinity(fun_name, infinity, x, out):
    check_no_out(fun_name, out)
    x = ensure_arraylike(fun_name, x)
    if is_complex(x):
        raise ValueError(f"{fun_name} is not well defined for complex numbers")
    return equals_constant(x, infinity) if is_float(x) else lax.full_like(x, False, bool)


def equals_constant(x, value):
    return lax.eq(x, const(x, value))


def iscomplex(x):
    """Whether the imaginary part is not 0, elementwise."""
    x = imag(x)
    return lax.ne(x, const(x, 0))


def isreal(x):
    """Whether the imaginary part is 0, elementwise."""
    return equals_constant(imag(x), 0)


# --- Closeness ------------------------------------------------------------------------------------

def isclose(a, b, rtol=1e-05, atol=1e-08, equal_nan=False):
    """Whether |a - b| ≤ atol + rtol |b|, elementwise; infinities are close to themselves only."""
    a, b = promote_args("isclose", a, b)
    if is_whole(a):
        a, b = promote_args_inexact("isclose", a, b)
    bound = add(atol, multiply(rtol, lax.abs(b)))
    bound = convert(bound, lax.abs(b).dtype, False)
    distance = lax.abs(lax.sub(a, b))
    near = logical_and(isfinite(b), lax.le(*promote_shapes("isclose", distance, bound)))
    out = logical_or(lax.eq(a, b), near)
    return logical_or(out, logical_and(isnan(a), isnan(b))) if equal_nan else out


def nan_to_num(x, copy=True, nan=0.0, posinf=None, neginf=None):
    """x with NaN replaced by 0 and infinities by the dtype's extremes, unless others are given."""
    x = ensure_arraylike("nan_to_num", x)
    if is_complex(x):
        return by_parts(lambda part: nan_to_num(part, copy, nan, posinf, neginf), x)
    if is_whole(x):
        return x
    info = dtypes.finfo(x.dtype)
    x = where(isnan(x), lax.convert_element_type(nan, x.dtype), x)
    for infinity, other in ((np.inf, info.max if posinf is None else posinf),
                            (-np.inf, info.min if neginf is None else neginf)):
        x = where(equals_constant(x, infinity), lax.convert_element_type(other, x.dtype), x)
    return x


# --- Complex numbers ------------------------------------------------------------------------------

def real(val, /):
    """The real part, elementwise; a real `val` itself."""
    val = ensure_arraylike("real", val)
    return lax.real(val) if is_complex(val) else val


def imag(val, /):
    """The imaginary part, elementwise; zeros for a real `val`."""
    val = ensure_arraylike("imag", val)
    return lax.imag(val) if is_complex(val) else lax.full_like(val, 0)


def conjugate(x, /):
    """The complex conjugate, elementwise; a real x itself."""
    x = ensure_arraylike("conjugate", x)
    return lax.conj(x) if is_complex(x) else x


conj = conjugate


def angle(z, deg=False):
    """The angle of z in the complex plane, in radians or degrees, elementwise."""
    re, im = real(z), imag(z)
    if not any_complex(z):
        dtype = dtypes.to_inexact_dtype(re.dtype)
        re, im = convert(re, dtype), convert(im, dtype)
    out = lax.atan2(im, re)
    return rad2deg(out) if deg else out


# --- Integers -------------------------------------------------------------------------------------

def gcd(x1, x2):
    """The greatest common divisor, elementwise, not negative; gcd(0, 0) = 0."""
    x1, x2 = promote_integers("gcd", x1, x2)
    a, b = lax.abs(x1), lax.abs(x2)
    for _ in range(euclid_steps(a.dtype)):
        if is_known_zero(b):
            break
        done = equals_constant(b, 0)
        rest = lax.rem(a, where(done, const(b, 1), b))
        a, b = where(done, a, b), where(done, b, rest)
    return a


def euclid_steps(dtype):
    # Consecutive Fibonacci numbers take longest; they grow by the golden ratio a step.
    return int(np.ceil(8 * dtype.itemsize / np.log2((1 + 5 ** 0.5) / 2))) + 1


def is_known_zero(x):
    return type(x) is Array and not x._value.any()


def lcm(x1, x2):
    """The least common multiple, elementwise, not negative; 0 if an operand is 0."""
    x1, x2 = promote_integers("lcm", x1, x2)
    divisor = gcd(x1, x2)
    safe = where(equals_constant(divisor, 0), const(divisor, 1), divisor)
    return lax.mul(lax.abs(x1), lax.div(lax.abs(x2), safe))


def promote_integers(fun_name, *args):
    check_arraylike(fun_name, *args)
    arrays = promote_dtypes(*args)
    if not dtypes.issubdtype(arrays[0].dtype, np.integer):
        raise ValueError(f"Arguments to jax.numpy.{fun_name} must be integers.")
    shape = np.broadcast_shapes(*[x.shape for x in arrays])
    return [fill(x, shape) for x in promote_shapes(fun_name, *arrays)]


# --- The parts of a floating-point number ---------------------------------------------------------

def signbit(x, /):
    """Whether the sign bit is set, elementwise: true of -0.0 too."""
    x = ensure_arraylike("signbit", x)
    if is_complex(x):
        raise ValueError("signbit is not well defined for complex numbers")
    if is_whole(x):
        return lax.lt(x, const(x, 0)) if x.dtype != bool else lax.full_like(x, False)
    bits = bits_of(x)
    return lax.lt(bits, const(bits, 0))


def bits_of(x):
    """The bits of floats as signed integers of the same size."""
    return lax.bitcast_convert_type(x, np.dtype(f"int{8 * x.dtype.itemsize}"))


def copysign(x1, x2, /):
    """|x1| with the sign of x2, elementwise."""
    x1, x2 = promote_args_inexact("copysign", x1, x2)
    if is_complex(x1):
        raise TypeError("copysign does not support complex-valued inputs")
    size = lax.abs(x1)
    return where(signbit(x2), lax.neg(size), size)


def modf(x, /, out=None):
    """(fractional part, whole part) of x, both with the sign of x."""
    check_no_out("modf", out)
    x, = promote_args_inexact("modf", x)
    whole = trunc(x)
    return lax.sub(x, whole), whole


def ldexp(x1, x2, /):
    """x1 times 2 to the power x2, an integer, elementwise."""
    check_arraylike("ldexp", x1, x2)
    x1, = promote_args_inexact("ldexp", x1)
    x2 = asarray(x2)
    if is_complex(x1) or not is_whole(x2):
        raise ValueError(f"ldexp takes a real x1 and an integer x2, got {x1.dtype} and {x2.dtype}")
    x1, x2 = promote_shapes("ldexp", x1, lax.convert_element_type(x2, np.int32))
    # One power of two can overflow where the product does not; three smaller ones can't.
    third = lax.div(x2, const(x2, 3))
    for part in (third, third, lax.sub(x2, lax.add(third, third))):
        x1 = lax.mul(x1, power_of_two(part, x1.dtype))
    return x1


def power_of_two(exponent, dtype):
    """2^exponent as floats, for an exponent that the dtype can hold; the nearest that it can."""
    info = dtypes.finfo(dtype)
    exponent = lax.clamp(const(exponent, info.minexp), exponent, const(exponent, info.maxexp))
    bits = lax.convert_element_type(exponent, np.dtype(f"int{8 * info.dtype.itemsize}"))
    biased = lax.add(bits, const(bits, 1 - info.minexp))
    return lax.bitcast_convert_type(lax.shift_left(biased, const(bits, info.nmant)), dtype)


def frexp(x, /):
    """(m, e) with x = m 2^e and ½ ≤ |m| < 1, elementwise; (x, 0) for 0, infinities and NaN."""
    x, = promote_args_inexact("frexp", x)
    if is_complex(x):
        raise TypeError("frexp does not support complex-valued inputs")
    info = dtypes.finfo(x.dtype)
    special = lax.bitwise_or(lax.bitwise_not(lax.is_finite(x)), equals_constant(x, 0))
    # Subnormal numbers have no exponent of their own: make them normal first.
    subnormal = lax.lt(lax.abs(x), const(x, info.smallest_normal))
    scaled = where(subnormal, lax.mul(x, const(x, 2.0 ** info.nmant)), x)
    shift = where(subnormal, np.int32(info.nmant), np.int32(0))
    exponent = where(special, np.int32(0), lax.sub(exponent_of(scaled, info), shift))
    return where(special, x, ldexp(x, lax.neg(exponent))), exponent


def exponent_of(x, info):
    """e of normal x = m 2^e with ½ ≤ |m| < 1, read off its bits."""
    bits = bits_of(lax.abs(x))
    biased = lax.shift_right_logical(bits, const(bits, info.nmant))
    return lax.add(lax.convert_element_type(biased, np.int32), np.int32(info.minexp))


def spacing(x, /):
    """The distance from |x| to the next larger number, with the sign of x."""
    x, = promote_args_inexact("spacing", x)
    if is_complex(x):
        raise ValueError("spacing is not defined for complex inputs")
    return not_weak(lax.sub(lax.nextafter(x, copysign(np.inf, x)), x))
