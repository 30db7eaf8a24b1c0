# Exported from notebooks/ref_bodies.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: loop IR. Home: ref_bodies. In JAX: XLA's elemental IR emitter, for complex numbers.

Functions of complex numbers, each a pair of nodes: the real and the imaginary part. So loops need
no complex arithmetic of their own; what is fused and vectorised is real numbers.
"""

import numpy as np

from minijax.loop_ir import Op, const_like, join, op, parts_of

__all__ = [
    "add", "subtract", "negative", "conjugate", "multiply", "divide", "choose", "square", "equal",
    "not_equal", "maximum", "minimum", "absolute", "larger_and_ratio", "sign", "with_sign_of",
    "exponential", "power_of_two", "exponential_minus_one", "logarithm", "log_absolute",
    "logarithm_of_one_plus", "logistic", "power", "square_root", "one_over_square_root", "sine",
    "cosine", "hyperbolic_sine", "hyperbolic_cosine", "hyperbolic_tangent", "tangent",
    "inverse_sine", "inverse_cosine", "inverse_hyperbolic_sine", "inverse_hyperbolic_cosine",
    "root_and_size", "on_ellipse", "is_far", "inverse_hyperbolic_tangent", "inverse_tangent",
]


# --- Arithmetic -----------------------------------------------------------------------------------

def add(x, y):
    return op("add", x[0], y[0]), op("add", x[1], y[1])


def subtract(x, y):
    return op("sub", x[0], y[0]), op("sub", x[1], y[1])


def negative(x):
    return op("neg", x[0]), op("neg", x[1])


def conjugate(x):
    return x[0], op("neg", x[1])


def multiply(x, y):
    """(a + ib)(c + id) = ac - bd + i(ad + bc)"""
    (a, b), (c, d) = x, y
    return (op("sub", op("mul", a, c), op("mul", b, d)),
            op("add", op("mul", a, d), op("mul", b, c)))


def divide(x, y):
    """x conj(y) / |y|², with y scaled by its larger part: |y|² could overflow (Smith, 1962)."""
    (a, b), (c, d) = x, y
    real_is_larger = op("ge", op("abs", c), op("abs", d))
    small, large = choose(real_is_larger, (d, c), (c, d))
    is_zero = op("eq", large, const_like(c, 0))
    ratio = op("select", is_zero, const_like(c, 0), op("div", small, large))
    size = op("select", is_zero, op("abs", large), op("add", large, op("mul", small, ratio)))
    scale = op("div", const_like(c, 1), size)
    (p, q), (r, s) = choose(real_is_larger, ((a, b), (b, a)), ((b, a), (a, b)))
    top = op("add", p, op("mul", q, ratio))
    other = op("sub", r, op("mul", s, ratio))
    other = op("select", real_is_larger, other, op("neg", other))
    return op("mul", top, scale), op("mul", other, scale)


def choose(condition, if_true, if_false):
    """One of two nested tuples of nodes."""
    if isinstance(if_true, tuple):
        return tuple(choose(condition, x, y) for x, y in zip(if_true, if_false))
    return op("select", condition, if_true, if_false)


def square(x):
    return multiply(x, x)


def equal(x, y):
    return op("and", op("eq", x[0], y[0]), op("eq", x[1], y[1]))


def not_equal(x, y):
    return op("or", op("ne", x[0], y[0]), op("ne", x[1], y[1]))


def maximum(x, y):
    """The one with the larger real part; of equal ones, with the larger imaginary part."""
    return parts_of(op("max", join(*x), join(*y)))


def minimum(x, y):
    return parts_of(op("min", join(*x), join(*y)))


# --- Size and angle -------------------------------------------------------------------------------

def absolute(x):
    """√(a² + b²), with the larger part taken out of the root: squares could overflow."""
    large, ratio = larger_and_ratio(x)
    one = const_like(large, 1)
    return op("mul", large, op("sqrt", op("add", one, op("mul", ratio, ratio))))


def larger_and_ratio(x):
    """The larger of |a| and |b|, and how large the other is in comparison."""
    a, b = op("abs", x[0]), op("abs", x[1])
    large, small = op("max", a, b), op("min", a, b)
    has_ratio = op("and", op("ne", large, const_like(a, 0)), op("ne", large, const_like(a, np.inf)))
    return large, op("select", has_ratio, op("div", small, large), const_like(a, 0))


def sign(x):
    """x / |x|; zeros stay as they are."""
    size = absolute(x)
    size = op("select", op("eq", size, const_like(size, 0)), const_like(size, 1), size)
    return op("div", x[0], size), op("div", x[1], size)


def with_sign_of(size, x):
    """A number that is not negative, with the sign of another, also that of a zero."""
    bits = Op("bitcast", (x,), np.dtype(f"i{x.dtype.itemsize}"))
    return op("select", op("lt", bits, const_like(bits, 0)), op("neg", size), size)


# --- Exponentials and logarithms ------------------------------------------------------------------

def exponential(x):
    """e^a cos b + i e^a sin b, where a real number keeps its zero."""
    a, b = x
    # e^a alone may overflow where e^a cos b does not: then a part of it is multiplied last
    part = const_like(a, 16)
    is_large = op("gt", a, const_like(a, np.log(np.finfo(a.dtype).max) - 1))
    size = op("exp", op("select", is_large, op("sub", a, part), a))
    rest = op("select", is_large, op("exp", part), const_like(a, 1))
    imaginary = op("mul", op("mul", size, op("sin", b)), rest)
    is_real = op("eq", b, const_like(b, 0))
    return (op("mul", op("mul", size, op("cos", b)), rest), op("select", is_real, b, imaginary))


def power_of_two(x):
    """2^a cos(b log 2) + i 2^a sin(b log 2), where a real number keeps its zero."""
    a, b = x
    size, angle = op("exp2", a), op("mul", b, const_like(b, np.log(2)))
    imaginary = op("mul", size, op("sin", angle))
    is_real = op("eq", b, const_like(b, 0))
    return op("mul", size, op("cos", angle)), op("select", is_real, b, imaginary)


def exponential_minus_one(x):
    """(e^a - 1) cos b - 2 sin²(b/2) + i e^a sin b"""
    a, b = x
    half = op("sin", op("mul", b, const_like(b, 0.5)))
    real = op("sub", op("mul", op("expm1", a), op("cos", b)),
              op("mul", const_like(b, 2), op("mul", half, half)))
    return real, exponential(x)[1]


def logarithm(x):
    """log |x| + i arg x"""
    return log_absolute(x), op("atan2", x[1], x[0])


def log_absolute(x):
    """log |x|, also where |x| is near 1 and its logarithm near 0."""
    large, ratio = larger_and_ratio(x)
    one, half = const_like(large, 1), const_like(large, 0.5)
    far = op("add", op("log", large), op("mul", half, op("log1p", op("mul", ratio, ratio))))
    small = op("mul", large, ratio)
    more = op("add", op("mul", op("sub", large, one), op("add", large, one)),
              op("mul", small, small))                  # |x|² - 1
    is_near = op("and", op("gt", large, half), op("lt", large, const_like(large, 2)))
    return op("select", is_near, op("mul", half, op("log1p", more)), far)


def logarithm_of_one_plus(x):
    """log(1 + x), accurate near 0: |1 + x|² = 1 + a (2 + a) + b²"""
    a, b = x
    one = const_like(a, 1)
    more = op("add", op("mul", a, op("add", a, const_like(a, 2))), op("mul", b, b))
    near = op("mul", const_like(a, 0.5), op("log1p", more))
    real, imaginary = logarithm((op("add", a, one), b))
    is_near = op("lt", op("max", op("abs", a), op("abs", b)), const_like(a, 0.5))
    return op("select", is_near, near, real), imaginary


def logistic(x):
    """1 / (1 + e⁻ˣ)"""
    one = const_like(x[0], 1), const_like(x[0], 0)
    return divide(one, add(one, exponential(negative(x))))


# --- Powers and roots -----------------------------------------------------------------------------

def power(x, y):
    """e^(y log x), and 0^y = 0 or, if y is 0, 1."""
    zero = const_like(x[0], 0)
    out = exponential(multiply(y, logarithm(x)))
    no_power = op("and", op("eq", y[0], zero), op("eq", y[1], zero))
    is_zero = op("and", equal(x, (zero, zero)), op("gt", y[0], zero))
    out = choose(is_zero, (zero, zero), out)
    return choose(no_power, (const_like(zero, 1), zero), out)


def square_root(x):
    """√x with its angle in -π/2 … π/2: from t = √((|a| + |x|) / 2) follow both parts."""
    a, b = x
    half, zero = const_like(a, 0.5), const_like(a, 0)
    size = op("add", op("mul", half, op("abs", a)), op("mul", half, absolute(x)))
    t = op("sqrt", size)
    rest = op("div", op("mul", half, op("abs", b)), t)
    rest = op("select", op("eq", b, zero), zero, rest)
    rest = op("select", op("eq", op("abs", b), const_like(b, np.inf)), t, rest)
    is_positive = op("ge", a, zero)
    real, imaginary = choose(is_positive, (t, rest), (rest, t))
    return real, with_sign_of(imaginary, b)


def one_over_square_root(x):
    one = const_like(x[0], 1), const_like(x[0], 0)
    return divide(one, square_root(x))


# --- Sines and tangents ---------------------------------------------------------------------------

def sine(x):
    a, b = x
    return op("mul", op("sin", a), op("cosh", b)), op("mul", op("cos", a), op("sinh", b))


def cosine(x):
    a, b = x
    return op("mul", op("cos", a), op("cosh", b)), op("neg", op("mul", op("sin", a), op("sinh", b)))


def hyperbolic_sine(x):
    a, b = x
    return op("mul", op("sinh", a), op("cos", b)), op("mul", op("cosh", a), op("sin", b))


def hyperbolic_cosine(x):
    a, b = x
    return op("mul", op("cosh", a), op("cos", b)), op("mul", op("sinh", a), op("sin", b))


def hyperbolic_tangent(x):
    """With t = tan b, s = sinh a: (s √(1+s²) (1+t²) + i t) / (1 + (1+t²) s²) (Kahan, 1987)."""
    a, b = x
    one, t, s = const_like(a, 1), op("tan", b), op("sinh", a)
    beta = op("add", one, op("mul", t, t))
    below = op("add", one, op("mul", beta, op("mul", s, s)))
    root = op("sqrt", op("add", one, op("mul", s, s)))
    near = (op("div", op("mul", beta, op("mul", root, s)), below), op("div", t, below))
    # far out, s² would overflow, and the real part is 1
    size = op("abs", a)
    falling = op("exp", op("neg", size))
    product = op("mul", op("sin", b), op("cos", b))
    imaginary = op("mul", op("mul", const_like(a, 4), product), op("mul", falling, falling))
    return choose(op("gt", size, const_like(a, 20)), (op("sign", a), imaginary), near)


def tangent(x):
    """tan x = -i tanh(ix)"""
    p, q = hyperbolic_tangent((op("neg", x[1]), x[0]))
    return q, op("neg", p)


# --- Inverse functions ----------------------------------------------------------------------------

def inverse_sine(x):
    root, size = root_and_size(x)
    return op("atan2", x[0], root), with_sign_of(size, x[1])


def inverse_cosine(x):
    root, size = root_and_size(x)
    return op("atan2", root, x[0]), with_sign_of(size, op("neg", x[1]))


def inverse_hyperbolic_sine(x):
    """arsinh x = -i asin(ix)"""
    q, p = inverse_sine((x[1], x[0]))
    return p, q


def inverse_hyperbolic_cosine(x):
    """arcosh x = ± i acos x, with the sign for which the real part is not negative."""
    root, size = root_and_size(x)
    return size, with_sign_of(op("atan2", root, x[0]), x[1])


def root_and_size(x):
    """(√(m² - a²), arcosh m), where 2m is the sum of the distances from x to -1 and 1."""
    a, b = op("abs", x[0]), op("abs", x[1])
    half = const_like(a, 0.5)
    # far out, where squares could overflow, m is as good as |x|
    size = op("log", absolute((op("mul", half, a), op("mul", half, b))))
    far_out = b, op("add", size, const_like(a, np.log(4)))
    return choose(is_far(a, b, 4 * np.finfo(a.dtype).eps ** -0.5), far_out, on_ellipse(a, b))


def on_ellipse(a, b):
    """As `root_and_size`, with no difference that cancels (Hull, Fairgrieve & Tang, 1997).

    With r and s the distances from a + ib to -1 and 1, p = r - (a + 1) = b² / (r + a + 1), and
    near = s + |a - 1|: of 2 (m - 1) and 2 (m - a), one is p + near and the other p + b² / near.
    """
    one, half, zero = const_like(a, 1), const_like(a, 0.5), const_like(a, 0)
    beyond, distance = op("add", a, one), op("abs", op("sub", a, one))
    r, s = absolute((beyond, b)), absolute((distance, b))
    m, below, near = op("mul", half, op("add", r, s)), op("add", r, beyond), op("add", s, distance)
    large = op("mul", half, op("add", op("div", op("mul", b, b), below), near))
    # the other one, as a square times a factor, for squares of small numbers vanish
    steep = op("select", op("eq", near, zero), zero, op("div", b, op("sqrt", near)))
    factor = op("mul", half, op("add", op("div", near, below), one))
    small = op("mul", factor, op("mul", steep, steep))
    is_inside, plus_one, plus_a = op("lt", a, one), op("add", m, one), op("add", m, a)
    of_small, of_large = choose(is_inside, (plus_one, plus_a), (plus_a, plus_one))
    of_small = op("mul", steep, op("sqrt", op("mul", factor, of_small)))
    of_large = op("sqrt", op("mul", large, of_large))
    minus_one, root_of_size, root = choose(is_inside, (small, of_small, of_large),
                                           (large, of_large, of_small))
    return root, op("log1p", op("add", minus_one, root_of_size))


def is_far(a, b, limit):
    return op("gt", op("max", a, b), const_like(a, limit))


def inverse_hyperbolic_tangent(x):
    """log1p(4|a| / ((1-|a|)² + b²)) / 4 and arg((1-a²) - b² + 2ib) / 2 (Kahan, 1987)."""
    a, b = op("abs", x[0]), op("abs", x[1])
    one, half, eps = const_like(a, 1), const_like(a, 0.5), np.finfo(a.dtype).eps
    below, beyond, squared = op("sub", one, a), op("add", one, a), op("mul", b, b)
    ratio = op("div", op("mul", const_like(a, 4), a), op("add", op("mul", below, below), squared))
    real = op("mul", const_like(a, 0.25), op("log1p", ratio))
    angle = op("atan2", op("add", b, b), op("sub", op("mul", below, beyond), squared))
    # close to a pole squares could vanish, and log(2/distance) / 2 is exact enough
    distance = absolute((below, b))
    pole = op("mul", half, op("sub", const_like(a, np.log(2)), op("log", distance)))
    real = op("select", op("lt", distance, const_like(a, eps)), pole, real)
    # far out squares could overflow, and the function is as good as a/|x|² ± iπ/2
    large, ratio = larger_and_ratio((a, b))
    share = op("select", op("ge", a, b), one, ratio)
    share = op("div", share, op("mul", large, op("add", one, op("mul", ratio, ratio))))
    far_out = share, const_like(a, np.pi)
    real, angle = choose(is_far(a, b, 4 / eps), far_out, (real, angle))
    return with_sign_of(real, x[0]), with_sign_of(op("mul", half, angle), x[1])


def inverse_tangent(x):
    """atan x = -i artanh(ix)"""
    q, p = inverse_hyperbolic_tangent((x[1], x[0]))
    return p, q
