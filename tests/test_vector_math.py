"""Elementary functions against 80-bit numbers: NumPy's form, and the machine code made of it."""
import functools
import math
import re
from fractions import Fraction

import numpy as np
import pytest

from minijax.avals import ShapedArray
from minijax.compiler import executable, vector_math
from minijax.compiler.native import llvm_text
from minijax.compiler.passes import lower
from minijax.compiler.plan import Plan
from minijax.compiler.vector_math import FUNCTIONS, NumpyMath, evaluate, format_for
from minijax.interpreters.staging import trace_to_closed_jaxpr
from minijax.loop_ir import Axis, Buffer, Load, Nest, Program, Store, axis_index, body_of, op
from minijax.primitives import elementwise

wide = np.longdouble
has_wide = np.finfo(wide).nmant > 60                 # not where long double is double
PI = wide("3.14159265358979323846264338327950288")

quiet = np.errstate(all="ignore")                    # a decorator: overflow is no news here

# Units in the last place that a result may be away from the exact one.
FOUR = set("pow tan erfc erf_inv asin acos atan atan2 asinh acosh atanh".split())
BOUNDS = {name: 4 if name in FOUR else 2 for name in FUNCTIONS}


# --- References --------------------------------------------------------------------------------

def erf_series(x):
    """erf for |x| < 3: a series in which all terms have one sign."""
    term = total = x * np.exp(-x * x) * 2 / np.sqrt(PI)
    for n in range(1, 60):
        term = term * 2 * x * x / (2 * n + 1)
        total = total + term
    return total


def erfc_fraction(x):
    """erfc for x > 2, by its continued fraction; the square is split so that e^(-x²) is exact."""
    fraction = x
    for n in range(80, 0, -1):
        fraction = x + wide(n) / 2 / fraction
    head = x.astype(np.float32).astype(wide)
    return np.exp(-head * head) * np.exp(-(x - head) * (x + head)) / np.sqrt(PI) / fraction


def erf(x):
    size = np.minimum(np.abs(x), 8)
    small = np.where(size < 1e-30, size * 2 / np.sqrt(PI), erf_series(np.clip(size, 1e-30, 2.5)))
    out = np.where(size < 2.2, small, 1 - erfc_fraction(np.maximum(size, 2)))
    return np.where(np.isnan(x), x, np.copysign(out, x))


def erfc(x):
    size = np.abs(x)
    out = np.where(size < 2.2, 1 - erf(size), erfc_fraction(np.clip(size, 2, 110)))
    return np.where(np.isnan(x), x, np.where(x < 0, 2 - out, out))


def erf_inv(x):
    """Newton's iteration for erf(y) = |x|, or erfc(y) = 1 - |x|, from what is to be tested."""
    size = np.abs(x)
    y = np.abs(evaluate("erf_inv", x.astype(np.float64))).astype(wide)
    inside = (size > 1e-30) & (size < 1)
    y = np.where(inside, y, 1)
    for _ in range(2):
        rest = np.where(y < 0.5, erf(y) - size, (1 - size) - erfc(y))
        y = y - rest * np.sqrt(PI) / 2 * np.exp(y * y)
    edge = np.where(size < 1, size * np.sqrt(PI) / 2, np.where(size == 1, np.inf, np.nan))
    return np.copysign(np.where(inside, y, edge), x)


def logistic(x):
    e = np.exp(-np.abs(x))
    return np.where(x < 0, e, 1) / (1 + e)


REFERENCES = dict(
    exp=np.exp, exp2=np.exp2, expm1=np.expm1, log=np.log, log1p=np.log1p, log2=np.log2, sin=np.sin,
    cos=np.cos, tan=np.tan, sinh=np.sinh, cosh=np.cosh, tanh=np.tanh, asin=np.arcsin,
    acos=np.arccos, atan=np.arctan, atan2=np.arctan2, asinh=np.arcsinh, acosh=np.arccosh,
    atanh=np.arctanh, cbrt=np.cbrt, pow=np.power, rsqrt=lambda x: 1 / np.sqrt(x),
    logistic=logistic, erf=erf, erfc=erfc, erf_inv=erf_inv)


def test_references():
    """What is not NumPy's here, at numbers that other people computed."""
    x = np.array([0.5, 1, 2, 2.5, 5], wide)
    want = ["0.520499877813046537682746653891964529", "0.842700792949714869341220635082609259",
            "0.995322265018952734162069256367252929", "0.999593047982555041060435784260025087",
            "0.999999999998462540205571965149811657"]
    assert np.all(np.abs(erf(x) - np.array([wide(w) for w in want])) < 1e-17)
    want = wide("1.53745979442803485018834348538337889e-12")
    assert abs(erfc(x)[-1] / want - 1) < 1e-17
    assert np.all(np.abs(erf_inv(erf(x[:3]))[:3] / x[:3] - 1) < 1e-15)


# --- Arguments ---------------------------------------------------------------------------------

# Where a function does most of its work, for float32 and float64.
RANGES = dict(
    exp=(-104, 89, -746, 710), exp2=(-150, 128, -1075, 1024), expm1=(-20, 89, -40, 710),
    log=(0, 4), log2=(0, 4), log1p=(-1, 4), sin=(-40, 40), cos=(-40, 40), tan=(-40, 40),
    tanh=(-10, 10, -20, 20), sinh=(-90, 90, -711, 711), cosh=(-90, 90, -711, 711), asin=(-1, 1),
    acos=(-1, 1), atan=(-8, 8), asinh=(-8, 8), acosh=(1, 9), atanh=(-1, 1), erf=(-5, 5, -6.5, 6.5),
    erfc=(-5, 10.2, -6.5, 27.5), erf_inv=(-1, 1), logistic=(-104, 40, -745, 40), rsqrt=(0, 4),
    cbrt=(-8, 8), pow=(0, 4), atan2=(-4, 4))

# Where some function changes its formula.
SEAMS = np.array([1, 0.5, 2, 0.49, 0.625, 0.85, 4.1, 6, 10.3, 28, 2.0 ** 60, 2.0 ** -28,
                  math.log(2) / 2, math.sqrt(0.5), math.sqrt(2), math.tan(math.pi / 8), math.pi / 4,
                  math.pi / 2, math.sqrt(1 - math.exp(-6.25)), 2.0 ** 40, 2.0 ** 53, 2.0 ** 69])
EDGES = np.array([0.0, np.inf, np.nan, 0.5, 1, 2, 3, 2.5, 1e300, 1e-300, 1e-320, 2.0 ** 52 + 1,
                  2.0 ** 53, 1 - 2.0 ** -24, 1 + 2.0 ** -23])


def every_exponent(dtype, rng, each=12):
    """Numbers of both signs with every exponent: powers of two, their neighbours, and others."""
    info = np.finfo(dtype)
    powers = np.arange(info.minexp - info.nmant, info.maxexp)
    x = np.ldexp(dtype(1), powers).astype(dtype)
    others = [(x * rng.uniform(1, 2, len(x))).astype(dtype) for _ in range(each)]
    near = [np.nextafter(x, dtype(0)), np.nextafter(x, dtype(np.inf))]
    x = np.concatenate([x, *near, *others])
    return np.concatenate([x, -x])


def near(points, dtype):
    """Some neighbours of points, of both signs."""
    steps = np.arange(-8, 9) * np.finfo(dtype).eps
    x = (points[:, None] * (1 + steps)).ravel().astype(dtype)
    return np.concatenate([x, -x])


@functools.cache
@quiet
def arguments(name, dtype, count=6_000):
    rng = np.random.default_rng(7)
    low, high = RANGES[name][-2:] if dtype == np.float64 else RANGES[name][:2]
    inside = rng.uniform(low, high, count)
    dense = np.linspace(low, high, count)
    small = rng.uniform(-1, 1, count) * 2.0 ** rng.integers(-30, 2, count)
    x = np.concatenate([a.astype(dtype) for a in (
        inside, dense, small, every_exponent(dtype, rng), near(SEAMS, dtype), EDGES, -EDGES)])
    return (x, partner(name, x, dtype, rng)) if name in ("pow", "atan2") else (x,)


@quiet
def partner(name, x, dtype, rng):
    """Second arguments: such that many powers x^y are neither 0 nor infinite."""
    exponents = rng.uniform(-30, 30, len(x))
    if name == "atan2":
        signs = rng.choice([-1, 1], len(x))
        return (np.clip(x, 1e-30, 1e30) * 2.0 ** exponents * signs).astype(dtype)
    log = np.log2(np.maximum(np.abs(x), 1e-300).astype(np.float64))
    largest = np.finfo(dtype).maxexp
    fitting = rng.uniform(-1.1, 1, len(x)) * largest / np.where(np.abs(log) > 1e-6, log, 1)
    y = np.where(rng.random(len(x)) < 0.5, fitting, np.round(exponents))
    return np.where(np.isfinite(y), y, 1).astype(dtype)


# --- Errors ------------------------------------------------------------------------------------

def ulps(got, want, dtype):
    """|got - want| in units in the last place of `want`; inf if only one of them is special."""
    info = np.finfo(dtype)
    rounded = want.astype(dtype)
    exponent = np.maximum(np.frexp(np.abs(want))[1] - 1, info.minexp)
    error = np.abs(got.astype(wide) - want) / np.ldexp(wide(1), exponent - info.nmant)
    alike = (got == rounded) | np.isnan(got) & np.isnan(rounded)
    return np.where(alike & ~np.isfinite(error), 0, np.where(np.isnan(error), np.inf, error))


@functools.cache
@quiet
def reference(name, dtype):
    return REFERENCES[name](*[a.astype(wide) for a in arguments(name, dtype)])


@quiet
def assert_within(name, got, args, dtype, bound):
    want = reference(name, dtype)
    error = ulps(got, want, dtype)
    worst = int(np.argmax(error))
    at = ", ".join(repr(a[worst]) for a in args)
    assert error[worst] <= bound, \
        f"{name}({at}) = {got[worst]!r}, not {want[worst]!r}: {error[worst]:.3g} ulp"
    # zeros have their sign
    zero = (want.astype(dtype) == 0) & (got == 0)
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(want[zero]), name)


# --- The two forms -----------------------------------------------------------------------------

class FusedMath(NumpyMath):
    """multiply_add as a machine does it that has an instruction for it: rounded once (nearly)."""

    def multiply_add(self, x, y, z):
        total, error = vector_math.any_sum_and_error(self, x * y, z)
        return total + (error + self.product_error(x, y))


@quiet
def fused(name, *arrays):
    f = format_for(name, arrays[0].dtype)
    out = FUNCTIONS[name](FusedMath(f), *[a.astype(f.dtype) for a in arrays])
    return out.astype(arrays[0].dtype)


def machine_code(names, dtype, count, arity):
    """The functions of these names of `count` numbers, in one loop of one program."""
    inputs = [Buffer((count,), np.dtype(dtype)) for _ in range(arity)]
    outputs = [Buffer((count,), np.dtype(dtype)) for _ in names]
    axis = Axis(count)
    values = [Load(b, axis_index(axis)) for b in inputs]
    stores = [Store(b, axis_index(axis), op(name, *values)) for b, name in zip(outputs, names)]
    steps = [Nest([axis], body_of([store])) for store in stores]
    main, _ = executable.load_native(Plan(Program(inputs, steps, outputs, [])), "functions")
    return main


@pytest.fixture(scope="module", params=[np.float32, np.float64], ids=["float32", "float64"])
def results(request):
    """(dtype, {name: (arguments, machine code's results)})"""
    dtype = request.param
    args = {name: arguments(name, dtype) for name in FUNCTIONS}
    return dtype, {name: (xs, machine_code([name], dtype, len(xs[0]), len(xs))(*xs)[0])
                   for name, xs in args.items()}


@pytest.mark.skipif(not has_wide, reason="no numbers wider than float64")
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_of_machine_code(name, results):
    dtype, out = results
    args, got = out[name]
    assert got.dtype == dtype
    assert_within(name, got, args, dtype, BOUNDS[name])


@pytest.mark.skipif(not has_wide, reason="no numbers wider than float64")
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_error_of_numpy_form(name, dtype):
    args = arguments(name, dtype)
    got = evaluate(name, *args)
    assert got.dtype == dtype
    assert_within(name, got, args, dtype, BOUNDS[name])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_forms_agree(name, results):
    """Machine code rounds where NumPy's form does; its multiply_add rounds once, or twice."""
    dtype, out = results
    args, got = out[name]
    # below, what a product lacks is too small to be a number, and FusedMath can't know it
    usual = np.abs(args[0]) > 1e-30
    args, got = [a[usual] for a in args], got[usual]
    same = [np.mean((got == form) | np.isnan(got) & np.isnan(form))
            for form in (fused(name, *args), evaluate(name, *args))]
    assert max(same) > 0.999, same


EXACT = [
    ("exp", 0.0, 1), ("exp", -np.inf, 0), ("exp", np.inf, np.inf), ("exp2", 10, 1024),
    ("exp2", -1, 0.5), ("log", 1, 0), ("log", 0, -np.inf), ("log", -1, np.nan), ("log2", 0.25, -2),
    ("log2", 2.0 ** 100, 100), ("log1p", -1, -np.inf), ("log1p", -2, np.nan), ("cos", 0, 1),
    ("sin", np.inf, np.nan), ("tan", -np.inf, np.nan), ("tanh", np.inf, 1), ("tanh", -np.inf, -1),
    ("sinh", -np.inf, -np.inf), ("cosh", -np.inf, np.inf), ("asin", 1.5, np.nan),
    ("acos", 1, 0), ("acosh", 1, 0), ("acosh", 0.5, np.nan), ("acosh", -3, np.nan),
    ("atanh", 1, np.inf), ("atanh", -1, -np.inf), ("atanh", 2, np.nan), ("asinh", -np.inf, -np.inf),
    ("erf", np.inf, 1), ("erfc", np.inf, 0), ("erfc", -np.inf, 2), ("erf_inv", 1, np.inf),
    ("erf_inv", -1, -np.inf), ("erf_inv", 1.5, np.nan), ("logistic", np.inf, 1),
    ("logistic", -np.inf, 0), ("rsqrt", 0.0, np.inf), ("rsqrt", -0.0, -np.inf),
    ("rsqrt", -1, np.nan), ("rsqrt", 0.25, 2), ("cbrt", -27, -3), ("cbrt", 1000, 10),
    ("cbrt", -np.inf, -np.inf)]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_exact_values(dtype):
    for name, x, want in EXACT:
        got = evaluate(name, np.array([x], dtype))
        np.testing.assert_array_equal(got, np.array([want], dtype), f"{name}({x})")
    for name in FUNCTIONS:
        if name not in ("pow", "atan2"):
            assert np.isnan(evaluate(name, np.array([np.nan], dtype))), name


POINTS = np.array([0.0, -0.0, 1, -1, 0.5, -0.5, 2, -2, 3, -3, 2.5, -2.5, np.inf, -np.inf, np.nan])


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("name, of_c", [("pow", np.power), ("atan2", np.arctan2)])
def test_cases_of_two_arguments(name, of_c, dtype):
    """Zeros, infinities and NaN in all pairs, as the C library has them, zeros with their sign."""
    x, y = (a.ravel().astype(dtype) for a in np.meshgrid(POINTS, POINTS))
    with np.errstate(all="ignore"):
        want = of_c(x, y)
    for got in (evaluate(name, x, y), machine_code([name], dtype, len(x), 2)(x, y)[0]):
        np.testing.assert_allclose(got, want, rtol=2 * np.finfo(dtype).eps)
        number = ~np.isnan(want)
        np.testing.assert_array_equal(np.signbit(got[number]), np.signbit(want[number]))


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_angles_of_every_size(dtype):
    """Sine and cosine against the remainder of x / (π/2) in exact arithmetic."""
    x = every_exponent(dtype, np.random.default_rng(1), each=1)
    turns = [Fraction(float(v)) * 2 / vector_math.PI for v in x]
    rest = [(t - round(t)) * vector_math.PI / 2 for t in turns]
    head = np.array([float(r) for r in rest])
    tail = np.array([float(r - Fraction(h)) for r, h in zip(rest, head)])
    r, n = head.astype(wide) + tail, np.array([round(t) % 4 for t in turns])
    want = np.choose(n, [np.sin(r), np.cos(r), -np.sin(r), -np.cos(r)])
    assert np.max(ulps(evaluate("sin", x), want, dtype)) < 1
    want = np.choose(n, [np.cos(r), -np.sin(r), -np.cos(r), np.sin(r)])
    assert np.max(ulps(evaluate("cos", x), want, dtype)) < 1


# --- What the compiler makes of them -----------------------------------------------------------

def functions_called(name, dtype, arity):
    """What the machine code of a loop calls that is neither an instruction nor in the module."""
    axis = Axis(4096)
    inputs = [Buffer((4096,), np.dtype(dtype)) for _ in range(arity)]
    out = Buffer((4096,), np.dtype(dtype))
    value = op(name, *[Load(b, axis_index(axis)) for b in inputs])
    nest = Nest([axis], body_of([Store(out, axis_index(axis), value)]))
    text = llvm_text(Plan(Program(inputs, [nest], [out], [])))
    called = {c for c in re.findall(r"call .*?@\"?([\w.]+)", text) if not c.startswith("llvm.")}
    return called - set(re.findall(r"define .*?@\"?([\w.]+)", text))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_loops_call_nothing(name):
    """No function is left to the C library."""
    arity = 2 if name in ("pow", "atan2") else 1
    for dtype in (np.float32, np.float64):
        plain = functions_called("neg" if arity == 1 else "add", dtype, arity)
        assert functions_called(name, dtype, arity) == plain
    assert functions_called("lgamma", dtype, 1) > plain


def test_erf_inv_is_a_loop():
    aval = ShapedArray((8,), np.float32)
    program = lower(trace_to_closed_jaxpr(lambda x: [elementwise.erf_inv(x)], [aval]))
    assert [type(step) for step in program.steps] == [Nest]
