# Exported from notebooks/ref_compiler.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_compiler. In JAX: XLA's polynomial approximations for LLVM.

Elementary functions from additions, multiplications and bit operations, so that LLVM can vectorise
the loops they stand in. Each is written once, for float32 and float64, in the operations of an `m`:
either NumPy's, or ones that write LLVM instructions. Errors are below 2.5 units in the last place.

The plan is the same everywhere: reduce the argument to a small interval, add up a series there,
undo the reduction. Coefficients are those of the Taylor series; the interval is so small that these
need only one or two terms more than the best polynomial.
"""

import math
from fractions import Fraction

import numpy as np

__all__ = [
    "Format", "split_log2", "FORMATS", "series", "exp", "nearest_integer", "power_of_two", "expm1",
    "tanh", "logistic", "log", "mantissa", "log_of_mantissa", "log_at_the_edge", "log1p", "PI",
    "quarter_turns", "ANGLES", "reduce_angle", "sin_of_quadrant", "sin", "cos", "SCALED_ERFC",
    "erf", "NumpyMath",
]


# --- Numbers of a format --------------------------------------------------------------------------

class Format:
    """What the functions know about a float format."""

    def __init__(self, dtype, exp_terms, log_terms, max_exp, min_exp):
        info = np.finfo(dtype)
        self.dtype = np.dtype(dtype)
        self.integer = np.dtype(f"i{self.dtype.itemsize}")
        self.mantissa_bits, self.bias = info.nmant, 1 - info.minexp
        self.tiny = float(info.tiny)
        self.exp_terms, self.log_terms = exp_terms, log_terms
        self.max_exp, self.min_exp = max_exp, min_exp
        self.log2_high, self.log2_low = split_log2(2.0 ** -9 if info.nmant < 30 else 2.0 ** -32)


def split_log2(unit):
    """log 2 as a multiple of `unit`, whose products with small integers are exact, and a rest."""
    high = round(math.log(2) / unit) * unit
    return high, (math.log(2) - high) + 2.3190468138462996e-17     # what math.log(2) lacks


FORMATS = {np.dtype(np.float32): Format(np.float32, 8, 5, 89.0, -104.0),
           np.dtype(np.float64): Format(np.float64, 14, 11, 710.0, -746.0)}


def series(m, x, coefficients):
    """Σ coefficients[k] x^k, by Horner's rule."""
    out = m.const(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        out = out * x + m.const(c)
    return out


# --- The exponential ------------------------------------------------------------------------------

def exp(m, x):
    """x = k log 2 + r with |r| <= log(2) / 2, and e^x = 2^k e^r."""
    f = m.format
    x = m.select(x > m.const(f.max_exp), m.const(f.max_exp), x)
    x = m.select(x < m.const(f.min_exp), m.const(f.min_exp), x)
    k, number = nearest_integer(m, x * m.const(1 / math.log(2)))
    r = (x - k * m.const(f.log2_high)) - k * m.const(f.log2_low)
    p = series(m, r, [1 / math.factorial(n) for n in range(f.exp_terms)])
    # 2^k alone may not be representable where e^x is: multiply in two steps
    half = number >> 1
    return p * power_of_two(m, half) * power_of_two(m, number - half)


def nearest_integer(m, x):
    """x rounded, as a float and as an integer: adding a large number pushes out the fraction."""
    large = m.const(1.5 * 2.0 ** m.format.mantissa_bits)
    shifted = x + large
    return shifted - large, m.bits(shifted) - m.bits(large)


def power_of_two(m, n):
    return m.float_of_bits((n + m.integer(m.format.bias)) << m.format.mantissa_bits)


def expm1(m, x):
    """As exp, but e^r - 1 is added up without the 1: e^x - 1 = 2^k (e^r - 1) + (2^k - 1)."""
    f = m.format
    y = m.select(x > m.const(f.max_exp), m.const(f.max_exp), x)
    y = m.select(y < m.const(-50.0), m.const(-50.0), y)
    k, number = nearest_integer(m, y * m.const(1 / math.log(2)))
    r = (y - k * m.const(f.log2_high)) - k * m.const(f.log2_low)
    q = series(m, r, [1 / math.factorial(n) for n in range(2, f.exp_terms + 1)])
    p = r + r * r * q
    # half the result first, since 2^k overflows where the result does not
    scale = power_of_two(m, number - m.integer(1))
    out = (scale * p + (scale - m.const(0.5))) * m.const(2.0)
    return m.select(m.absolute(x) < m.const(f.tiny), x, out)


def tanh(m, x):
    """tanh |x| = e / (e + 2) with e = e^(2|x|) - 1."""
    size = m.absolute(x)
    size = m.select(size > m.const(20.0), m.const(20.0), size)
    e = expm1(m, size + size)
    out = m.select(m.absolute(x) < m.const(1e-4 if m.format.mantissa_bits < 30 else 1e-8), size,
                   e / (e + m.const(2.0)))
    return m.copysign(out, x)


def logistic(m, x):
    return m.const(1.0) / (m.const(1.0) + exp(m, -x))


# --- The logarithm --------------------------------------------------------------------------------

def log(m, x):
    """x = 2^k (1 + f) with 1 + f from √½ to √2, and log x = k log 2 + log(1 + f)."""
    k, f = mantissa(m, x)
    out = log_of_mantissa(m, k, f)
    return log_at_the_edge(m, x, out)


def mantissa(m, x):
    """(k, f) with x = 2^k (1 + f)."""
    fmt = m.format
    is_small = x < m.const(fmt.tiny)
    scaled = m.select(is_small, x * m.const(2.0 ** (fmt.mantissa_bits + 1)), x)
    # subtracting the bits of √½ makes the exponent bits change at √2 rather than at 2
    offset = m.bits(m.const(math.sqrt(0.5)))
    number = m.bits(scaled) - offset
    k = number >> fmt.mantissa_bits
    one_plus_f = m.float_of_bits(m.bits(scaled) - (k << fmt.mantissa_bits))
    k = m.to_float(k) - m.select(is_small, m.const(fmt.mantissa_bits + 1), m.const(0.0))
    return k, one_plus_f - m.const(1.0)


def log_of_mantissa(m, k, f):
    # with s = f / (2 + f): log(1 + f) = 2 (s + s³/3 + s⁵/5 + …) = f - f²/2 + s (f²/2 + R(s²)),
    # in which the large part, f, is exact
    fmt = m.format
    s = f / (m.const(2.0) + f)
    z = s * s
    r = z * series(m, z, [2 / (2 * n + 3) for n in range(fmt.log_terms)])
    square = m.const(0.5) * f * f
    low = s * (square + r) + k * m.const(fmt.log2_low)
    return k * m.const(fmt.log2_high) - ((square - low) - f)


def log_at_the_edge(m, x, out):
    out = m.select(x < m.const(0.0), m.const(math.nan), out)
    out = m.select(x == m.const(0.0), m.const(-math.inf), out)
    # inf and NaN are their own logarithms
    return m.select(x < m.const(math.inf), out, m.select(x == x, x, x))


def log1p(m, x):
    """log(1 + x), corrected for what the rounding of 1 + x lost."""
    u = m.const(1.0) + x
    k, f = mantissa(m, u)
    lost = m.select(m.absolute(x) < m.const(1.0), x - (u - m.const(1.0)), m.const(1.0) - (u - x))
    out = log_of_mantissa(m, k, f) + lost / u
    out = log_at_the_edge(m, u, out)
    return m.select(m.absolute(x) < m.const(m.format.tiny), x, out)


# --- Sine and cosine ------------------------------------------------------------------------------

PI = Fraction("3.1415926535897932384626433832795028841971693993751058209749445923078164062862")


def quarter_turns(scale):
    """(scale · 2/π) mod 4 as a sum of two doubles."""
    exact = scale * 2 / PI % 4
    return float(exact), float(exact - Fraction(float(exact)))


# (x is below this bound, 2^-e, 2^e 2/π mod 4). If the row before does not apply, x 2^-e is an
# integer of at most 44 bits, so multiples of 4 may be left out of the other factor.
ANGLES = [(2.0 ** (e + 44), 2.0 ** -e, quarter_turns(2 ** e)) for e in (0, 21, 42, 63, 84)]


def reduce_angle(m, x):
    """(r, n) with x = n π/2 + r, up to multiples of 2 π, and |r| <= π/4."""
    size = m.absolute(x)
    _, scale, (high, low) = ANGLES[-1]
    scale, high, low = map(m.const, (scale, high, low))
    for limit, s, (h, l) in reversed(ANGLES[:-1]):
        fits = size < m.const(limit)
        scale, high, low = (m.select(fits, m.const(new), old)
                            for new, old in ((s, scale), (h, high), (l, low)))
    x = x * scale
    turns = x * high
    rest = m.rounding_error(x, high) + x * low
    turns = turns - m.const(4.0) * nearest_integer(m, turns * m.const(0.25))[0]
    whole, n = nearest_integer(m, turns)
    return ((turns - whole) + rest) * m.const(math.pi / 2), n


def sin_of_quadrant(m, r, n):
    """sin(r + n π/2)."""
    z = r * r
    sine = r * series(m, z, [(-1) ** k / math.factorial(2 * k + 1) for k in range(6)])
    cosine = series(m, z, [(-1) ** k / math.factorial(2 * k) for k in range(7)])
    value = m.select((n & m.integer(1)) == m.integer(0), sine, cosine)
    # the sign bit is bit 1 of n
    flip = (n & m.integer(2)) << (m.format.mantissa_bits + m.exponent_bits - 1)
    return m.float_of_bits(m.bits(value) ^ flip)


def sin(m, x):
    r, n = reduce_angle(m, x)
    return m.select(x == m.const(0.0), x, sin_of_quadrant(m, r, n))      # -0.0 stays


def cos(m, x):
    r, n = reduce_angle(m, x)
    return sin_of_quadrant(m, r, n + m.integer(1))


# --- The error function ---------------------------------------------------------------------------

# e^(x²) erfc(x) for 0.8 <= x <= 4.2 as a polynomial in 1 / (1 + x/2): Chebyshev interpolation.
SCALED_ERFC = (-0.00015883849118836224, 0.2849830389022827, 0.25923827290534973,
               0.34936612844467163, -0.1068197712302208, 0.5671553015708923,
               -0.473776251077652, 0.12007023394107819)


def erf(m, x):
    """A series up to 0.85, and 1 - e^(-x²) g(x) beyond."""
    size = m.absolute(x)
    z = x * x
    near = x * series(m, z, [2 / math.sqrt(math.pi) * (-1) ** n / (math.factorial(n) * (2 * n + 1))
                             for n in range(11)])
    t = m.const(1.0) / (m.const(1.0) + m.const(0.5) * size)
    far = m.const(1.0) - exp(m, -z) * series(m, t, SCALED_ERFC)
    far = m.copysign(m.select(size > m.const(4.2), m.const(1.0), far), x)
    return m.select(size < m.const(0.85), near, m.select(x == x, far, x))


# --- The operations in NumPy ----------------------------------------------------------------------

class NumpyMath:
    """The operations on NumPy arrays of one float dtype."""

    def __init__(self, dtype):
        self.format = FORMATS[np.dtype(dtype)]
        self.exponent_bits = 8 * self.format.dtype.itemsize - 1 - self.format.mantissa_bits

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

    def rounding_error(self, x, y):
        """x y minus its rounded value, exactly (Dekker): by products of halves, which are exact."""
        (x1, x2), (y1, y2) = self.halves(x), self.halves(y)
        return ((x1 * y1 - x * y) + x1 * y2 + x2 * y1) + x2 * y2

    def halves(self, x):
        large = x * self.const(2.0 ** ((self.format.mantissa_bits + 2) // 2) + 1)
        high = large - (large - x)
        return high, x - high

    select = staticmethod(np.where)
    absolute = staticmethod(np.abs)
    copysign = staticmethod(np.copysign)
