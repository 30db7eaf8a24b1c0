# Exported from notebooks/18_machine.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: 18_machine. In JAX: XLA's polynomial approximations for LLVM.

Elementary functions from additions, multiplications and bit operations, so that LLVM can vectorise
the loops they stand in. Each is written once, in the operations of an `m`: either NumPy's, or ones
that write LLVM instructions. The error is at most 2 units in the last place; 4 for `pow`, `tan`,
`erfc`, `erf_inv` and the inverses of the trigonometric and hyperbolic functions.

The plan is the same everywhere: reduce the argument to a small interval, evaluate a polynomial
there, undo the reduction. Each polynomial is, among those of its length, the one with the smallest
largest error on its interval; `tools/minimax.py` finds them.
"""

import math
from fractions import Fraction

import numpy as np

__all__ = [
    "PI", "LOG2", "Format", "FLOAT32", "FLOAT64", "FLOAT32_IN_64", "Table", "series", "NumpyMath",
    "sum_and_error", "any_sum_and_error", "product_and_error", "quotient_and_error", "EXP", "exp",
    "quick_exp_parts", "exp_tail", "exp_parts", "reduce_exponent", "exp_of_moderate", "within",
    "at_least", "at_most", "nearest_integer", "power_of_two", "scale", "exp2", "expm1", "logistic",
    "TANH", "SINH", "odd_series", "tanh", "sinh", "cosh", "half_exp", "LOG", "log", "mantissa",
    "log_of_mantissa", "log_parts", "log_at_the_edge", "log2", "log1p", "log_of_one_plus", "asinh",
    "acosh", "log_or_log_twice", "atanh", "LOG_TAIL", "pow", "log_pair", "precise_log", "rsqrt",
    "CBRT", "cbrt", "by_sign", "SIN", "COS", "GROUP", "digits_of_two_over_pi", "TURNS",
    "reduce_angle", "short_turns", "long_turns", "without_turns", "sine_of_rest", "cosine_of_rest",
    "sin", "cos", "sin_of_quadrant", "is_odd", "tan", "itself_near_zero", "ASIN", "ATAN", "asin",
    "acos", "asin_parts", "atan", "atan2", "moderate", "angle_in_octant", "ERF", "ERF_FAR", "ERFC",
    "erf", "erf_near_zero", "erfc", "erfc_parts", "ERF_INV", "ERF_INV_TAIL", "erf_inv",
    "erf_inv_step", "FUNCTIONS", "BY_WAY_OF_FLOAT64", "format_for", "evaluate",
]


# --- Numbers of a format --------------------------------------------------------------------------

PI = Fraction(
    "3.14159265358979323846264338327950288419716939937510582097494459230781640628620899862803"
    "4825342117067982148086513282306647093844609550582231725359408128481117450284102701938521"
    "1055596446229489549303819644288109756659334461284756482337867831652712019091456485669234"
    "6034861045432664821339360726024914127372458700660631558817488152092096282925409171536436"
    "78925903600113305305488204665213841469519415116094")
LOG2 = Fraction("0.693147180559945309417232121458176568075500134360255254120680009493393622")


class Format:
    """What the functions know about the numbers they compute with, and for."""

    def __init__(self, dtype, short, max_exp, min_exp):
        info = np.finfo(dtype)
        self.dtype = np.dtype(dtype)
        self.integer = np.dtype(f"i{self.dtype.itemsize}")
        self.mantissa_bits, self.bias = info.nmant, 1 - info.minexp
        self.exponent_bits = 8 * self.dtype.itemsize - 1 - info.nmant
        self.tiny = float(info.tiny)
        self.short = short                         # whether results need only a float32's bits
        self.argument_bits = 24 if short else 53
        self.max_exp, self.min_exp = max_exp, min_exp
        # products of the first part with exponents are exact
        unit = 2.0 ** (-9 if info.nmant < 30 else -32)
        high = round(float(LOG2) / unit) * unit
        self.log2 = high, float(LOG2 - Fraction(high))

    def split(self, number):
        """A fraction as a number of the format and the rest."""
        high = self.dtype.type(float(number))
        return high, self.dtype.type(float(number - Fraction(float(high))))


FLOAT32 = Format(np.float32, True, 90.0, -110.0)
FLOAT64 = Format(np.float64, False, 711.0, -790.0)
FLOAT32_IN_64 = Format(np.float64, True, 711.0, -790.0)     # results are rounded to float32


class Table:
    """Coefficients of a polynomial: few of them for results in float32, more for float64."""

    def __init__(self, short, long=None):
        self.short, self.long = short, long or short


def series(m, x, table):
    """Σ coefficients[k] x^k: neighbours in pairs, b + c x, then pairs of these with x², ….

    This is Estrin's scheme. Horner's rule has fewer operations, but every one waits for the one
    before. The first coefficient, which is large, comes last: then little is rounded after it.
    """
    first, *terms = map(m.const, table.short if m.format.short else table.long)
    power = x
    while len(terms) > 1:
        pairs = [m.multiply_add(c, power, b) for b, c in zip(terms[::2], terms[1::2])]
        terms, power = pairs + terms[2 * len(pairs):], power * power
    return m.multiply_add(terms[0], x, first)


# --- The operations in NumPy ----------------------------------------------------------------------

class NumpyMath:
    """The operations on NumPy arrays of one float dtype."""

    def __init__(self, format):
        self.format = format

    def const(self, number):
        return self.format.dtype.type(number)

    def integer(self, number):
        return self.format.integer.type(number)

    def bits(self, x):
        return np.asarray(x).view(self.format.integer)

    def float_of_bits(self, n):
        return np.asarray(n).view(self.format.dtype)

    def to_float(self, n):
        return np.asarray(n).astype(self.format.dtype)

    def multiply_add(self, x, y, z):
        """x y + z. The product may keep all its bits where the machine can do both at once."""
        return x * y + z

    def product_error(self, x, y):
        """x y minus its rounded value, exactly (Dekker): by products of halves, which are exact."""
        (x1, x2), (y1, y2) = self.halves(x), self.halves(y)
        return ((x1 * y1 - x * y) + x1 * y2 + x2 * y1) + x2 * y2

    def halves(self, x):
        large = x * self.const(2.0 ** ((self.format.mantissa_bits + 2) // 2) + 1)
        high = large - (large - x)
        return high, x - high

    def lookup(self, table, index):
        return table[index]

    select = staticmethod(np.where)
    absolute = staticmethod(np.abs)
    copysign = staticmethod(np.copysign)
    nearest = staticmethod(np.rint)
    sqrt = staticmethod(np.sqrt)


# --- Sums and products with their rounding errors -------------------------------------------------

def sum_and_error(m, x, y):
    """x + y rounded, and what is missing; exact where |x| >= |y| or x is 0 (Dekker 1971)."""
    total = x + y
    return total, y - (total - x)


def any_sum_and_error(m, x, y):
    """x + y rounded, and what is missing, whichever is larger (Knuth)."""
    total = x + y
    y_part = total - x
    return total, (x - (total - y_part)) + (y - y_part)


def product_and_error(m, x, y):
    return x * y, m.product_error(x, y)


def quotient_and_error(m, x, x_low, y, y_low):
    """(x + x_low) / (y + y_low) as a number and nearly all of what it lacks; one division."""
    inverse = m.const(1.0) / y
    out = x * inverse
    product, error = product_and_error(m, out, y)
    return out, (((x - product) - error) + (x_low - out * y_low)) * inverse


# --- The exponential ------------------------------------------------------------------------------

# (e^r - 1 - r) / r² for |r| <= log(2) / 2; e^r - 1 is then exact to 2^-26.2 and 2^-61.7 of itself.
EXP = Table(
    (0.4999999814900259, 0.16666543181071244, 0.04166719987081545, 0.008366580654373242,
     0.0013882637476441014),
    (0.5, 0.16666666666666677, 0.041666666666666505, 0.00833333333332161, 0.0013888888888963146,
     0.0001984126988620411, 2.4801587171304205e-05, 2.755724410734581e-06, 2.755740342239707e-07,
     2.5109080462415177e-08, 2.087517633088608e-09))


def exp(m, x):
    """x = n log 2 + r with |r| <= log(2) / 2, and e^x = 2^n e^r."""
    x = within(m, x, m.format.min_exp, m.format.max_exp)
    return scale(m, *quick_exp_parts(m, x))


def quick_exp_parts(m, x):
    """(p, n) with e^x = 2^n p and p near 1."""
    k, n = nearest_integer(m, x, 1 / math.log(2))
    high, low = m.format.log2
    r = m.multiply_add(k, m.const(-high), x)       # exact
    r = m.multiply_add(k, m.const(-low), r)
    return m.const(1.0) + exp_tail(m, r, r), n


def exp_tail(m, r, low):
    """e^r - 1 - r + low."""
    return m.multiply_add(r * r, series(m, r, EXP), low)


def exp_parts(m, x, low):
    """(p, n) with e^(x + low) = 2^n p, rounded about once."""
    r, lost, n = reduce_exponent(m, within(m, x, m.format.min_exp, m.format.max_exp), low)
    p, error = sum_and_error(m, m.const(1.0), r)
    return p + (error + exp_tail(m, r, lost)), n


def reduce_exponent(m, x, low):
    """(r, lost, n) with x + low = n log 2 + r + lost, where `lost` is a rounding error of r."""
    k, n = nearest_integer(m, x, 1 / math.log(2))
    high, rest = m.format.log2
    exact = m.multiply_add(k, m.const(-high), x)
    return *sum_and_error(m, exact, m.multiply_add(k, m.const(-rest), low)), n


def exp_of_moderate(m, x):
    """e^x where 2^n is a number for certain."""
    p, n = quick_exp_parts(m, x)
    return p * power_of_two(m, n)


def within(m, x, low, high):
    """x moved into low … high; NaN stays."""
    return at_most(m, at_least(m, x, low), high)


def at_least(m, x, low):
    return m.select(x < m.const(low), m.const(low), x)


def at_most(m, x, high):
    return m.select(x > m.const(high), m.const(high), x)


def nearest_integer(m, x, factor=1.0):
    """x · factor rounded, as a float and as an integer: a large number pushes out the fraction."""
    large = m.const(1.5 * 2.0 ** m.format.mantissa_bits)
    shifted = m.multiply_add(x, m.const(factor), large)
    return shifted - large, m.bits(shifted) - m.bits(large)


def power_of_two(m, n):
    return m.float_of_bits((n + m.integer(m.format.bias)) << m.format.mantissa_bits)


def scale(m, p, n):
    """2^n p. 2^n alone may not be representable where the product is: multiply in two steps.

    By 2^(n - 4) and 2^4, or if that is too small a number, by one that is `lift` times as large.
    """
    f = m.format
    lift, is_small = f.bias // 2, n < m.integer(16 - f.bias)
    first = power_of_two(m, n + m.select(is_small, m.integer(lift), m.integer(-4)))
    return p * first * m.select(is_small, m.const(2.0 ** -lift), m.const(16.0))


def exp2(m, x):
    """2^x = 2^k e^(f log 2) with k the nearest integer and f the rest."""
    bias = float(m.format.bias)
    x = within(m, x, -(bias + m.format.mantissa_bits + 3.0), bias + 1.0)
    k, n = nearest_integer(m, x)
    high, low = map(m.const, m.format.split(LOG2))
    r, lost = product_and_error(m, x - k, high)
    return scale(m, m.const(1.0) + (r + exp_tail(m, r, m.multiply_add(x - k, low, lost))), n)


def expm1(m, x):
    """e^x - 1 = 2^n (e^r - 1) + (2^n - 1), where e^r - 1 is added up without the 1."""
    y = within(m, x, -50.0, m.format.max_exp - 1.0)
    r, lost, n = reduce_exponent(m, y, m.const(0.0))
    tail = exp_tail(m, r, lost)
    # half the result first, since 2^n overflows where the result does not
    half = power_of_two(m, n - m.integer(1))
    out, error = sum_and_error(m, half - m.const(0.5), half * r)
    out = (out + (error + half * tail)) * m.const(2.0)
    return m.select(m.absolute(x) < m.const(m.format.tiny), x, out)


def logistic(m, x):
    """1 / (1 + e^-x), with an e^-|x| that does not overflow."""
    e, one = scale(m, *exp_parts(m, -m.absolute(x), m.const(0.0))), m.const(1.0)
    whole, error = sum_and_error(m, one, e)
    out = m.select(x < m.const(0.0), e, one) / whole
    return out - out * (error / whole)


# (tanh(x) / x - 1) / x² as a polynomial in x² for |x| <= 5/8: to 2^-27.7 and 2^-61.2 of tanh x.
TANH = Table(
    (-0.33333282078253557, 0.13331444247012533, -0.05373978330136041, 0.020639090039270412,
     -0.005704830018445718),
    (-0.33333333333333315, 0.13333333333329744, -0.053968253966059296, 0.02186948846872294,
     -0.008863234312666378, 0.0035921140005400628, -0.0014557259514483784, 0.0005894518106701666,
     -0.0002370117574737472, 9.155845274905046e-05, -3.018725626032408e-05, 6.042482123757064e-06))
# (sinh(x) / x - 1) / x² in x² for |x| <= 1: to 2^-34.2 and 2^-63.3.
SINH = Table(
    (0.16666666497689225, 0.008333350061097032, 0.00019836158287292945, 2.8169621608724463e-06),
    (0.16666666666666669, 0.008333333333333148, 0.0001984126984143165, 2.7557319157126838e-06,
     2.505212313012109e-08, 1.605726014336102e-10, 7.75874094481659e-13))


def odd_series(m, x, table):
    """x + x³ p(x²)."""
    z = x * x
    return m.multiply_add(x * z, series(m, z, table), x)


def tanh(m, x):
    """A polynomial near 0, and 1 - 2 / (e^(2|x|) + 1) beyond."""
    size = m.absolute(x)
    y = at_most(m, size, 20.0)
    far = m.const(1.0) - m.const(2.0) / (exp_of_moderate(m, y + y) + m.const(1.0))
    out = m.select(size < m.const(0.625), odd_series(m, size, TANH), far)
    return m.copysign(out, x)


def sinh(m, x):
    size = m.absolute(x)
    half = half_exp(m, size)
    far = half - m.const(0.25) / half
    return m.select(size < m.const(1.0), odd_series(m, x, SINH), m.copysign(far, x))


def cosh(m, x):
    half = half_exp(m, m.absolute(x))
    return half + m.const(0.25) / half


def half_exp(m, x):
    """e^x / 2, which does not overflow before sinh and cosh do."""
    p, n = exp_parts(m, x, m.const(0.0))
    return scale(m, p, n - m.integer(1))


# --- The logarithm --------------------------------------------------------------------------------

# (2 artanh(s) / s - 2) / s² in s² for |s| <= 3 - √8: to 2^-30.2 and 2^-59.5 of 2 artanh s.
LOG = Table(
    (0.6666677642214864, 0.39977528609202, 0.2987226691854897),
    (0.6666666666666735, 0.39999999999412883, 0.2857142874287732, 0.2222219851411029,
     0.1818356783006214, 0.1531395041391378, 0.1479705115895394))


def log(m, x):
    """x = 2^k (1 + f) with 1 + f from √½ to √2, and log x = k log 2 + log(1 + f)."""
    k, f = mantissa(m, x)
    return log_at_the_edge(m, x, log_of_mantissa(m, k, f))


def mantissa(m, x):
    """(k, f) with x = 2^k (1 + f)."""
    fmt = m.format
    is_small = x < m.const(fmt.tiny)
    scaled = m.select(is_small, x * m.const(2.0 ** (fmt.mantissa_bits + 1)), x)
    # subtracting the bits of √½ makes the exponent bits change at √2 rather than at 2
    number = m.bits(scaled) - m.bits(m.const(math.sqrt(0.5)))
    k = number >> fmt.mantissa_bits
    one_plus_f = m.float_of_bits(m.bits(scaled) - (k << fmt.mantissa_bits))
    k = m.to_float(k) - m.select(is_small, m.const(fmt.mantissa_bits + 1), m.const(0.0))
    return k, one_plus_f - m.const(1.0)


def log_of_mantissa(m, k, f, low=None):
    """k log 2 + log(1 + f) + low."""
    high, rest = m.format.log2
    square, tail = log_parts(m, f)
    tail = m.multiply_add(k, m.const(rest), tail)
    tail = tail if low is None else tail + low
    return k * m.const(high) - ((square - tail) - f)


def log_parts(m, f):
    """(q, t) with log(1 + f) = f - q + t, in which the large part, f, is exact."""
    # with s = f / (2 + f): log(1 + f) = 2 artanh s = f - f²/2 + s (f²/2 + R(s²))
    s = f / (m.const(2.0) + f)
    z = s * s
    square = m.const(0.5) * f * f
    return square, s * m.multiply_add(z, series(m, z, LOG), square)


def log_at_the_edge(m, x, out):
    out = m.select(x < m.const(0.0), m.const(math.nan), out)
    out = m.select(x == m.const(0.0), m.const(-math.inf), out)
    # inf and NaN are their own logarithms
    return m.select(x < m.const(math.inf), out, m.select(x == x, x, x))


def log2(m, x):
    k, f = mantissa(m, x)
    square, tail = log_parts(m, f)
    high, low = map(m.const, m.format.split(1 / LOG2))
    main, error = sum_and_error(m, f, tail - square)
    out = k + m.multiply_add(main, high, error * high + main * low)
    return log_at_the_edge(m, x, out)


def log1p(m, x):
    return log_of_one_plus(m, x, m.const(0.0))


def log_of_one_plus(m, x, doublings):
    """log(1 + x) + doublings · log 2, corrected for what the rounding of 1 + x lost."""
    u = m.const(1.0) + x
    k, f = mantissa(m, u)
    lost = m.select(m.absolute(x) < m.const(1.0), x - (u - m.const(1.0)), m.const(1.0) - (u - x))
    out = log_of_mantissa(m, k + doublings, f, lost / u)
    out = log_at_the_edge(m, u, out)
    return m.select(m.absolute(x) < m.const(m.format.tiny), x, out)


def asinh(m, x):
    """log(s + √(s² + 1)) for s = |x|, as the logarithm of 1 plus something."""
    s = m.absolute(x)
    square, one = s * s, m.const(1.0)
    y = s + square / (one + m.sqrt(one + square))
    return m.copysign(log_or_log_twice(m, s, y), x)


def acosh(m, x):
    t = x - m.const(1.0)
    y = t + m.sqrt(t * (t + m.const(2.0)))
    return m.select(x < m.const(1.0), m.const(math.nan), log_or_log_twice(m, x, y))


def log_or_log_twice(m, x, y):
    """log(1 + y), or log(2 x) if x² may not be representable."""
    is_large = x > m.const(2.0 ** 60)
    return log_of_one_plus(m, m.select(is_large, x, y),
                           m.select(is_large, m.const(1.0), m.const(0.0)))


def atanh(m, x):
    s = m.absolute(x)
    out = m.const(0.5) * log1p(m, (s + s) / (m.const(1.0) - s))
    return m.copysign(out, x)


# --- Powers and roots -----------------------------------------------------------------------------

# (2 artanh(s) - 2 s - ⅔ s³) / s⁵ in s² for |s| <= 3 - √8: to 2^-66.3 of 2 artanh s.
LOG_TAIL = Table(
    (0.40000000000002267, 0.28571428570094815, 0.22222222520852752, 0.1818178427911266,
     0.15386761673169316, 0.1325671036147105, 0.13197379973357415))


def pow(m, x, y):
    """e^(y log |x|) with the sign of x^y, and the cases of IEEE 754's pow."""
    size, one, zero = m.absolute(x), m.const(1.0), m.const(0.0)
    high, low = log_pair(m, size)
    product, error = product_and_error(m, y, high)
    low = m.select(m.absolute(product) < m.const(2.0 ** 12), error + y * low, zero)
    out = scale(m, *exp_parts(m, product, low))
    out = m.select((size == one) & (y == y), one, out)
    half = y * m.const(0.5)
    is_integer, is_even = m.nearest(y) == y, m.nearest(half) == half
    out = m.select(is_integer, m.select(is_even, out, m.copysign(out, x)), out)
    # finite negative numbers have integer powers only
    out = m.select((x < zero) & (x > m.const(-math.inf)),
                   m.select(is_integer, out, m.const(math.nan)), out)
    return m.select((x == one) | (y == zero), one, out)


def log_pair(m, x):
    """log x as a sum of two numbers; as one number if that has bits to spare."""
    k, f = mantissa(m, x)
    if m.format.short:
        return log_at_the_edge(m, x, log_of_mantissa(m, k, f)), m.const(0.0)
    high, low = precise_log(m, k, f)
    out = log_at_the_edge(m, x, high)
    return out, m.select(out == high, low, m.const(0.0))


def precise_log(m, k, f):
    """k log 2 + 2 s + ⅔ s³ + s⁵ (…) for s = f / (2 + f), with the errors of large terms."""
    bottom = sum_and_error(m, m.const(2.0), f)
    s, s_low = quotient_and_error(m, f, m.const(0.0), *bottom)
    z, z_low = product_and_error(m, s, s)
    cube, cube_low = product_and_error(m, s, z)
    cube_low = cube_low + s * (z_low + m.const(2.0) * s * s_low) + s_low * z
    third, third_low = map(m.const, m.format.split(Fraction(2, 3)))
    c, c_low = product_and_error(m, cube, third)
    log2_high, log2_low = map(m.const, m.format.log2)
    high, low1 = sum_and_error(m, k * log2_high, s + s)
    high, low2 = sum_and_error(m, high, c)
    rest = (c_low + (cube_low * third + cube * third_low)) + cube * z * series(m, z, LOG_TAIL)
    low = ((s_low + s_low) + (rest + k * log2_low)) + (low1 + low2)
    return sum_and_error(m, high, low)


def rsqrt(m, x):
    return m.const(1.0) / m.sqrt(x)


# x^(-1/3) for x from √½ to √2: to 2^-11.9.
CBRT = Table(
    (1.7307414256539042, -1.2856860595281332, 0.7131631401685793, -0.15844396093539295))


def cbrt(m, x):
    """|x| = 8^n y with y from √½ / 2 to 2 √2; a root of y by two steps of iteration."""
    size, one, third = m.absolute(x), m.const(1.0), m.const(1 / 3)
    k, f = mantissa(m, size)
    n, number = nearest_integer(m, k * third)
    rest = k - n * m.const(3.0)
    y = (one + f) * by_sign(m, rest, 0.5, 1.0, 2.0)
    r = series(m, one + f, CBRT) * by_sign(m, rest, 2.0 ** (1 / 3), 1.0, 0.5 ** (1 / 3))
    # r near y^(-1/3) with y r³ = 1 - d: multiply by the beginning of (1 - d)^(-1/3)
    d = one - y * r * r * r
    r = r + r * d * m.multiply_add(d, m.const(2 / 9), third)
    root = y * r * r
    root = root + (y - root * root * root) * (r * r * third)
    out = m.copysign(root * power_of_two(m, number), x)
    return m.select((size > m.const(0.0)) & (size < m.const(math.inf)), out, x)


def by_sign(m, x, negative, zero, positive):
    out = m.select(x > m.const(0.0), m.const(positive), m.const(zero))
    return m.select(x < m.const(0.0), m.const(negative), out)


# --- Sine and cosine ------------------------------------------------------------------------------

# (sin(r) / r - 1) / r² in r² for |r| <= π/4: to 2^-37.5 and 2^-57.9 of sin r.
SIN = Table(
    (-0.166666666407104, 0.008333329293083594, -0.00019839308272489824, 2.718082564274271e-06),
    (-0.1666666666666663, 0.008333333333322089, -0.00019841269829561022, 2.7557313610063996e-06,
     -2.5050745780417408e-08, 1.589610421411177e-10))
# (cos(r) - 1 + r²/2) / r⁴ in r²: to 2^-33.0 and 2^-63.9 of cos r.
COS = Table(
    (0.04166664561713695, -0.001388731292189755, 2.4432766048594143e-05),
    (0.041666666666666595, -0.0013888888888872975, 2.4801587288798337e-05,
     -2.755731416323258e-07, 2.087569858837096e-09, -1.1358416752388632e-11))

GROUP = 16                        # exponents that share a row of the table below


def digits_of_two_over_pi(columns):
    """Row j: (2/π · 2^(16 j)) mod 4 as a sum of `columns` doubles."""
    two_over_pi = 2 / PI
    rows = []
    for j in range((1024 - 24) // GROUP + 1):
        rest, row = two_over_pi * 2 ** (GROUP * j) % 4, []
        for _ in range(columns):
            row.append(float(rest))
            rest -= Fraction(row[-1])
        rows.append(row)
    return [np.array(column) for column in zip(*rows)]


TURNS = digits_of_two_over_pi(4)


def reduce_angle(m, x):
    """(r, low, n): x = n π/2 + r + low up to multiples of 2 π, and |r| <= π/4.

    Where row j > 0 of the table applies, x 2^(-16 j) is an integer; so multiples of 4 may be left
    out of the other factor (Payne and Hanek 1983).
    """
    f = m.format
    exponent = (m.bits(m.absolute(x)) >> f.mantissa_bits) - m.integer(f.bias + f.argument_bits)
    j = m.select(exponent > m.integer(GROUP - 1), exponent >> 4, m.integer(0))
    x = x * power_of_two(m, m.integer(0) - (j << 4))
    turns, low, n = (short_turns if f.short else long_turns)(m, x, j)
    high, rest = map(m.const, f.split(PI / 2))
    r, error = product_and_error(m, turns, high)
    return r, error + (turns * rest + low * high), n


def short_turns(m, x, j):
    """x · row j less the nearest integer; that integer up to multiples of 4."""
    p, error = product_and_error(m, x, m.lookup(TURNS[0], j))
    k, n = nearest_integer(m, without_turns(m, p))
    return (without_turns(m, p) - k) + (error + x * m.lookup(TURNS[1], j)), m.const(0.0), n


def long_turns(m, x, j):
    """As short_turns, with a second number for what the first lacks."""
    # a, b, c, d are of falling size; every sum hands its error on
    a, b = product_and_error(m, x, m.lookup(TURNS[0], j))
    b2, c = product_and_error(m, x, m.lookup(TURNS[1], j))
    c2, d = product_and_error(m, x, m.lookup(TURNS[2], j))
    d = d + x * m.lookup(TURNS[3], j)
    b, c3 = any_sum_and_error(m, b, b2)
    c, d2 = any_sum_and_error(m, c, c2)
    c, d3 = any_sum_and_error(m, c, c3)
    a, b2 = any_sum_and_error(m, without_turns(m, a), b)
    k, n = nearest_integer(m, a)
    b, c2 = any_sum_and_error(m, b2, c)
    a, b = any_sum_and_error(m, a - k, b)
    return a, b + (c2 + ((d + d2) + d3)), n


def without_turns(m, x):
    """x up to multiples of 4."""
    return x - m.const(4.0) * m.nearest(x * m.const(0.25))


def sine_of_rest(m, r, low):
    z = r * r
    tail = m.multiply_add(z * r, series(m, z, SIN), low * (m.const(1.0) - m.const(0.5) * z))
    return r + tail


def cosine_of_rest(m, r, low):
    z = r * r
    half = m.const(0.5) * z
    out, error = sum_and_error(m, m.const(1.0), -half)
    return out + (error + m.multiply_add(z * z, series(m, z, COS), -(r * low)))


def sin(m, x):
    r, low, n = reduce_angle(m, x)
    return itself_near_zero(m, x, sin_of_quadrant(m, r, low, n))


def cos(m, x):
    r, low, n = reduce_angle(m, x)
    return sin_of_quadrant(m, r, low, n + m.integer(1))


def sin_of_quadrant(m, r, low, n):
    """sin(r + low + n π/2)."""
    value = m.select(is_odd(m, n), cosine_of_rest(m, r, low), sine_of_rest(m, r, low))
    # the sign bit is bit 1 of n
    flip = (n & m.integer(2)) << (m.format.mantissa_bits + m.format.exponent_bits - 1)
    return m.float_of_bits(m.bits(value) ^ flip)


def is_odd(m, n):
    return (n & m.integer(1)) == m.integer(1)


def tan(m, x):
    """sin / cos in the even quadrants, and -cos / sin in the odd ones."""
    r, low, n = reduce_angle(m, x)
    sine, cosine = sine_of_rest(m, r, low), cosine_of_rest(m, r, low)
    turned = is_odd(m, n)
    out = m.select(turned, -cosine, sine) / m.select(turned, sine, cosine)
    return itself_near_zero(m, x, out)


def itself_near_zero(m, x, out):
    return m.select(m.absolute(x) < m.const(2.0 ** -28), x, out)


# --- Inverse trigonometric functions --------------------------------------------------------------

# (arcsin(x) / x - 1) / x² in x² for |x| <= ½: to 2^-31.7 and 2^-59.9 of arcsin x.
ASIN = Table(
    (0.16666659989802213, 0.07500504475252331, 0.04451686516891424, 0.031808728953462824,
     0.01443385808549961, 0.0375243474687621),
    (0.1666666666666676, 0.0749999999997062, 0.04464285717479164, 0.030381942698812545,
     0.02237221524951868, 0.017351607153766158, 0.013980880606040436, 0.011398406530342037,
     0.010783165457395463, 0.003695116907373136, 0.021735614575487117, -0.021039889954188755,
     0.032654751577052735))
# (arctan(t) / t - 1) / t² in t² for |t| <= tan(π/8): to 2^-30.4 and 2^-59.4 of arctan t.
ATAN = Table(
    (-0.3333331514079909, 0.19998467276446183, -0.1424343296031299, 0.10592959449698468,
     -0.06075839351580396),
    (-0.3333333333333319, 0.1999999999995283, -0.14285714280122128, 0.11111110779835573,
     -0.09090897656085321, 0.07692058447324349, -0.0666308435037559, 0.05847748382874211,
     -0.05038678909094474, 0.03804886033478924, -0.017890203826670007))


def asin(m, x):
    """A polynomial up to ½; beyond, π/2 - 2 arcsin √((1 - |x|) / 2)."""
    is_near, value = asin_parts(m, m.absolute(x))
    high, low = map(m.const, m.format.split(PI / 2))
    far = high - ((value + value) - low)
    return m.copysign(m.select(is_near, value, far), x)


def acos(m, x):
    size, zero = m.absolute(x), m.const(0.0)
    is_near, value = asin_parts(m, size)
    high, low = map(m.const, m.format.split(PI / 2))
    near = high - (m.copysign(value, x) - low)
    far = m.select(x < zero, (high - (value - low)) * m.const(2.0), value + value)
    return m.select(is_near, near, far)


def asin_parts(m, size):
    """(size < ½, arcsin y) with y = size there and √((1 - size) / 2) elsewhere."""
    is_near = size < m.const(0.5)
    y = m.select(is_near, size, m.sqrt(m.const(0.5) * (m.const(1.0) - size)))
    return is_near, odd_series(m, y, ASIN)


def atan(m, x):
    return atan2(m, x, m.const(1.0))


def atan2(m, y, x):
    """The angle of the point (x, y): that of the smaller over the larger side, in its octant."""
    a, b = m.absolute(y), m.absolute(x)
    is_steep = a > b
    a, b = m.select(is_steep, b, a), m.select(is_steep, a, b)
    k, angle = angle_in_octant(m, *moderate(m, a, b))
    # each reflection changes the angle's sign and counts eighths of a turn from another axis
    k, angle = m.select(is_steep, m.const(2.0) - k, k), m.select(is_steep, -angle, angle)
    is_left = m.copysign(m.const(1.0), x) < m.const(0.0)
    k, angle = m.select(is_left, m.const(4.0) - k, k), m.select(is_left, -angle, angle)
    high, low = map(m.const, m.format.split(PI / 4))
    base, error = product_and_error(m, k, high)
    out = base + (angle + (error + k * low))
    return m.select((x == x) & (y == y), m.copysign(out, y), x + y)


def moderate(m, a, b):
    """Two sizes a <= b with the same ratio, that can be added; 0/0 is 0 here and inf/inf is 1."""
    infinite, one, zero = b == m.const(math.inf), m.const(1.0), m.const(0.0)
    a = m.select(infinite, m.select(a == b, one, zero), a)
    b = m.select(infinite | (b == zero), one, b)
    shrink = m.select(b > m.const(2.0 ** (m.format.bias - 2)), m.const(0.25), one)
    return a * shrink, b * shrink


def angle_in_octant(m, a, b):
    """(k, t) with arctan(a / b) = k π/4 + t: t is the angle to the diagonal if that is nearer."""
    is_near = a > m.const(math.tan(math.pi / 8)) * b
    t = m.select(is_near, a - b, a) / m.select(is_near, a + b, b)
    return m.select(is_near, m.const(1.0), m.const(0.0)), odd_series(m, t, ATAN)


# --- The error function ---------------------------------------------------------------------------

# erf(x) / x - 1 in x² for |x| <= 0.85: to 2^-27.3 and 2^-56.2 of erf x.
ERF = Table(
    (0.12837916023746526, -0.37612571866644917, 0.11282717598247938, -0.02680255189678173,
     0.005051097335620358, -0.0006315126416951509),
    (0.12837916709551256, -0.37612638903183315, 0.11283791670931322, -0.026866170640031977,
     0.005223977569272242, -0.0008548323404098447, 0.00012055187127521765,
     -1.4921859461449961e-05, 1.6398394601958539e-06, -1.569238687880293e-07,
     1.0662646575708593e-08))
# -log(erfc x) / x for 0.84 <= x <= 4.1, or 6: 1 - e^(-x p(x)) is exact to 2^-28.2 and 2^-56.7.
ERF_FAR = Table(
    (1.1285307373973488, 0.6356622542191213, 0.10533652582282005, -0.02293832286479783,
     0.0032301681426904283, -0.00021584437848055335),
    (1.1283791747624776, 0.6366196497439446, 0.1027734663401147, -0.019132081590917945,
     -0.00019879866582444858, 0.0016745873868023579, -0.0005560710261930134,
     -1.5811305206785756e-05, 0.00010476300995463313, -6.060746206982846e-05,
     2.2123920322563185e-05, -5.9238181356575e-06, 1.2047171585319628e-06,
     -1.8555829467809896e-07, 2.1064743752216742e-08, -1.665727898043838e-09,
     8.199096892846878e-11, -1.8911384139363053e-12))
# (1 + 2 x) e^(x²) erfc(x) in (x - 3) / (x + 3) for 0.49 <= x <= 10.3, or 28: to 2^-28.2, 2^-57.6.
ERFC = Table(
    (1.2530080583895284, -0.13562104245069292, -0.04756231073081714, 0.12964248001651033,
     -0.11927378050405013, 0.06833916163044074, -0.02376285033953592, 0.0023878381126812473,
     0.0018341466698210175, -0.0005264806155500013),
    (1.2530080582697296, -0.13562110612458134, -0.047562294353449795, 0.129645158702781,
     -0.11927366341537521, 0.068308027343168, -0.023770514916760598, 0.002529391830855479,
     0.001888690330403063, -0.000779832420507071, -0.00010515953424003937,
     0.00012510024591900663, 4.94793056107877e-06, -2.0103921865260212e-05,
     -7.256257502945208e-07, 3.4802616796366066e-06, 3.424460987369978e-07,
     -6.275626611682672e-07, -1.1950591906351443e-07, 1.0960162364519004e-07,
     2.206912588013193e-08, -1.4549106616882362e-08))


def erf(m, x):
    """A polynomial up to 0.85, and 1 - e^(-x p(x)) beyond."""
    size = m.absolute(x)
    y = at_most(m, size, 4.1 if m.format.short else 6.0)
    far = m.const(1.0) - exp_of_moderate(m, -(y * series(m, y, ERF_FAR)))
    return m.select(size < m.const(0.85), erf_near_zero(m, x), m.copysign(far, x))


def erf_near_zero(m, x):
    return m.multiply_add(x, series(m, x * x, ERF), x)


def erfc(m, x):
    size = at_most(m, m.absolute(x), 10.3 if m.format.short else 28.0)
    p, _, n = erfc_parts(m, size)
    far = scale(m, p, n)
    far = m.select(x < m.const(0.0), m.const(2.0) - far, far)
    return m.select(size < m.const(0.5), m.const(1.0) - erf_near_zero(m, x), far)


def erfc_parts(m, x):
    """(p, q, n) with e^(-x²) = 2^n q for 0 <= x, and erfc(x) = 2^n p for 0.49 <= x."""
    square, error = product_and_error(m, x, x)
    q, n = exp_parts(m, -square, -error)
    x = at_least(m, x, 0.49)
    g = series(m, (x - m.const(3.0)) / (x + m.const(3.0)), ERFC)
    top = product_and_error(m, q, g)
    p, low = quotient_and_error(m, *top, *sum_and_error(m, x + x, m.const(1.0)))
    return p + low, q, n


# With w = -log(1 - x²): erf⁻¹(x) / x in w - 3.125 for w <= 6.25, to 2^-27.5 (Giles 2010).
ERF_INV = Table(
    (1.6536545712973523, 0.24015817420441624, -0.0060337300311213045, -0.0007406877017009468,
     0.0001867996546055584, -1.3891455040863843e-05, -1.3919512007823706e-06,
     4.2630967027255353e-07, -2.420889311752385e-08, -4.638615716225925e-09,
     6.377672793587393e-10))
# The same in √w - 4.25 for 2.5 <= √w <= 6.06: to 2^-26.3.
ERF_INV_TAIL = Table(
    (4.092223396332037, 1.0099779853755566, 0.0007134197085061947, -0.0006052189075991682,
     0.00020939859807454897, -7.130702316742435e-05, 2.6492225304061442e-05,
     -2.7290528341576185e-06, 2.138605752716577e-06, -7.026116831740376e-06,
     3.1085650477036795e-06, 3.2911142751927964e-07, -2.7798689357207697e-07))


def erf_inv(m, x):
    """Polynomials good to float32, and for float64 a step of Halley's iteration for erf(y) = x."""
    size, one = m.absolute(x), m.const(1.0)
    w = -log(m, (one - size) * (one + size))
    near = x * series(m, w - m.const(3.125), ERF_INV)
    far = x * series(m, m.sqrt(w) - m.const(4.25), ERF_INV_TAIL)
    out = m.select(w < m.const(6.25), near, far)
    out = out if m.format.short else erf_inv_step(m, x, out)
    # 0 keeps its sign, and ±1 goes to infinity
    edge = m.select(size == one, x * m.const(math.inf), m.const(math.nan))
    return m.select(size < one, out, edge)


def erf_inv_step(m, x, y):
    """y less (erf(y) - x) / erf'(y), where erf'(y) = 2/√π e^(-y²), with Halley's correction."""
    size, one = at_most(m, m.absolute(y), 6.0), m.const(1.0)
    p, q, n = erfc_parts(m, size)
    unit = power_of_two(m, n)
    near = erf_near_zero(m, size) - m.absolute(x)
    far = (one - m.absolute(x)) - p * unit
    excess = m.select(size < m.const(0.5), near, far)
    ratio = excess * m.const(math.sqrt(math.pi) / 2) / (q * unit)
    return m.copysign(size - ratio / (one + size * ratio), x)


# --- All functions --------------------------------------------------------------------------------

FUNCTIONS = {f.__name__: f for f in (
    exp, exp2, expm1, log, log1p, log2, logistic, sin, cos, tan, tanh, sinh, cosh, asin, acos, atan,
    atan2, asinh, acosh, atanh, erf, erfc, erf_inv, rsqrt, cbrt, pow)}

# Functions of float32 that are faster, or right at all, with numbers of twice the size.
BY_WAY_OF_FLOAT64 = frozenset({"sin", "cos", "tan", "pow"})


def format_for(name, dtype):
    """The format in which a function of float32 or float64 is computed."""
    if np.dtype(dtype) == np.float64:
        return FLOAT64
    return FLOAT32_IN_64 if name in BY_WAY_OF_FLOAT64 else FLOAT32


def evaluate(name, *arrays):
    """A function of NumPy arrays, all float32 or all float64, by NumPy's operations."""
    f = format_for(name, arrays[0].dtype)
    with np.errstate(all="ignore"):
        out = FUNCTIONS[name](NumpyMath(f), *[a.astype(f.dtype) for a in arrays])
        return np.asarray(out).astype(arrays[0].dtype)
