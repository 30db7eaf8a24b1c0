"""jax.numpy's ufuncs and reductions: the same call through minijax and through JAX.

Values, dtypes, weak types, shapes and error types, over a table of functions times kinds of
arguments.
JAX's side of a table is compiled as one program, since compiling is what takes the time.
"""
import functools

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import minijax
import minijax.numpy as mnp

jax.config.update("jax_platforms", "cpu")

# --- Comparing --------------------------------------------------------------------------------

RTOL = {2: 4e-3, 4: 4e-6, 8: 4e-6, 16: 1e-12}      # by itemsize; complex64 has 8 bytes


def rtol_of(dtype):
    return 6e-2 if dtype.name == "bfloat16" else RTOL[dtype.itemsize]


def assert_same(ours, theirs, what, weak=True):
    """Equal structure, shape, dtype, weak type (of numbers) and values."""
    if isinstance(theirs, (tuple, list)):
        assert len(ours) == len(theirs), what
        for a, b in zip(ours, theirs):
            assert_same(a, b, what, weak)
        return
    assert ours.shape == theirs.shape, f"{what}: shape {ours.shape}, JAX {theirs.shape}"
    assert ours.dtype == theirs.dtype, f"{what}: dtype {ours.dtype}, JAX {theirs.dtype}"
    if weak and theirs.dtype != bool:
        assert ours.weak_type == theirs.weak_type, f"{what}: weak {ours.weak_type}"
    assert_close(np.asarray(ours), np.asarray(theirs), what)


def assert_close(a, b, what):
    if b.dtype.kind in "biu":
        np.testing.assert_array_equal(a, b, err_msg=what)
        return
    rtol = rtol_of(b.dtype)
    wide = np.complex128 if b.dtype.kind == "c" else np.float64
    np.testing.assert_allclose(a.astype(wide), b.astype(wide), rtol=rtol, atol=rtol, err_msg=what)


def error_or_value(call):
    try:
        return call(), None
    except Exception as error:
        return None, error


class Table:
    """Calls of one function, by kind of arguments; JAX's answers come from one compiled program."""

    def __init__(self, calls):
        self.calls = dict(calls)

    @functools.cached_property
    def expected(self):
        errors, good = {}, {}
        for key, call in self.calls.items():
            _, error = error_or_value(lambda: jax.eval_shape(lambda: call(jnp, jnp.asarray)))
            if error is None:
                good[key] = call
            else:
                errors[key] = error
        # barriers keep XLA from evaluating constants by other means than it computes by
        values = jax.jit(lambda hide: [call(jnp, hide_by(hide)) for call in good.values()])(0.0)
        return errors, dict(zip(good, values))

    def check(self, key, call=None):
        errors, values = self.expected
        what = " of ".join(map(str, key))
        got, error = error_or_value(lambda: (call or self.calls[key])(mnp, mnp.asarray))
        if key in errors:
            assert error is not None, f"{what}: JAX raises {errors[key]!r}, we return {got!r}"
            kind = error_kind(errors[key])
            assert isinstance(error, kind), f"{what}: {error!r}, JAX {errors[key]!r}"
        else:
            assert error is None, f"{what}: we raise {error!r}, JAX returns {values[key]!r}"
            assert_same(got, values[key], what)


def hide_by(hide):
    def asarray(x):
        x = jnp.asarray(x)
        return jax.lax.optimization_barrier((x, hide))[0]
    return asarray


def error_kind(error):
    return next(kind for kind in (TypeError, ValueError, NotImplementedError, IndexError, Exception)
                if isinstance(error, kind))


def check_all(name, arguments, skip=()):
    """One function on all kinds of arguments; NumPy arrays become arrays of the library."""
    def call(args):
        return lambda np_, asarray: getattr(np_, name)(
            *[asarray(a) if isinstance(a, np.ndarray) else a for a in args])
    table = Table(((name, kind), call(args)) for kind, args in arguments.items()
                  if (name, kind) not in skip)
    for key in table.calls:
        table.check(key)


# --- One argument -----------------------------------------------------------------------------

SPECIAL = np.array([0., -0., 0.5, 1., -1., 2.5, -2.5, 3.5, 30., -30., 1e-3,
                    np.inf, -np.inf, np.nan], np.float32)

ALIASES = {
    "abs": "absolute", "acos": "arccos", "acosh": "arccosh", "asin": "arcsin", "asinh": "arcsinh",
    "atan": "arctan", "atanh": "arctanh", "atan2": "arctan2", "bitwise_not": "invert",
    "bitwise_invert": "invert", "conj": "conjugate", "radians": "deg2rad", "degrees": "rad2deg",
    "around": "round", "divide": "true_divide", "mod": "remainder", "pow": "power", "amax": "max",
    "amin": "min", "bitwise_left_shift": "left_shift", "bitwise_right_shift": "right_shift",
}
UNARY = """
    absolute arccos arccosh arcsin arcsinh arctan arctanh bitwise_count cbrt ceil conjugate cos cosh
    deg2rad exp exp2 expm1 fabs floor frexp imag invert isfinite isinf isnan isneginf isposinf log
    log10 log1p log2 logical_not modf negative positive rad2deg real reciprocal rint sign signbit
    sin sinc sinh spacing sqrt square tan tanh trunc angle nan_to_num round iscomplex isreal clip
""".split()

ONE = {
    "float32": (SPECIAL,),
    "float16": (SPECIAL.astype(np.float16),),
    "bfloat16": (SPECIAL.astype(jnp.bfloat16),),
    "int32": (np.array([0, 1, -1, 2, -7, 100, 2**31 - 1, -2**31], np.int32),),
    "uint8": (np.array([0, 1, 2, 200, 255], np.uint8),),
    "bool": (np.array([True, False]),),
    "complex64": (np.array([0, 1, -1, 1j, -1j, 1 + 2j, -2.5 - 0.5j], np.complex64),),
    "empty": (np.zeros((0, 3), np.float32),),
    "Python float": (0.5,),
    "Python int": (3,),
    "Python bool": (True,),
    "Python complex": (0.5 + 0.25j,),
    "list": ([0.5],),
    "None": (None,),
    "text": ("a",),
}

# Why we differ on purpose, or where JAX contradicts itself:
UNARY_EXCEPT = {
    **{(name, "text"): "JAX's error comes from its jit" for name in UNARY},
    ("spacing", "float16"): "JAX: towards +inf for float16 only, so not with the sign of x",
    **{("round", kind): "JAX: an error of finfo" for kind in ("bool", "Python bool")},
}


def test_aliases():
    for alias, name in ALIASES.items():
        assert getattr(mnp, alias) is getattr(mnp, name)


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    check_all(name, ONE, UNARY_EXCEPT)


# --- Two arguments ----------------------------------------------------------------------------

BINARY = """
    add subtract multiply true_divide floor_divide remainder fmod divmod power float_power
    maximum minimum fmax fmin arctan2 hypot logaddexp logaddexp2 heaviside copysign nextafter
    bitwise_and bitwise_or bitwise_xor left_shift right_shift
    equal not_equal greater greater_equal less less_equal logical_and logical_or logical_xor
    ldexp isclose
""".split()

INTEGERS = np.array([0, 1, -1, 2, -7, 31, 2**31 - 1, -2**31], np.int32)
FEW = np.array([0.5, -1., 2., 3.], np.float32)

TWO = {
    "float32 float32": (SPECIAL[:, None], SPECIAL),
    "int32 int32": (INTEGERS[:, None], INTEGERS),
    "uint8 int8": (np.array([0, 3, 255], np.uint8), np.array([[0], [-2], [5]], np.int8)),
    "bool bool": (np.array([True, False, True]), np.array([True, False, False])),
    "float32 int32": (FEW[:, None], INTEGERS[:6]),
    "int32 bool": (INTEGERS, np.array(True)),
    "uint32 int32": (np.array([1, 2], np.uint32), np.array([1, 2], np.int32)),
    "bfloat16 float32": (FEW.astype(jnp.bfloat16), FEW[:, None]),
    "float16 bfloat16": (FEW.astype(np.float16), FEW.astype(jnp.bfloat16)),
    "float16 int": (FEW.astype(np.float16), 3),
    "complex64 float32": (np.array([1 + 2j, -1j, 2], np.complex64), FEW[1:]),
    "float32 float": (FEW, 2.5),
    "float32 int": (FEW, 2),
    "int float32": (2, FEW),
    "int32 int": (INTEGERS, 3),
    "int32 float": (INTEGERS, 2.5),
    "int int32": (3, INTEGERS[:6]),
    "bool int": (np.array([True, False]), 1),
    "uint8 int": (np.array([1, 2, 3], np.uint8), 2),
    "int int": (7, 3),
    "int float": (7, 2.5),
    "float float": (7.5, 2.0),
    "bool bool scalars": (True, False),
    "NumPy scalar": (FEW, np.float32(2)),
    "NumPy float64": (INTEGERS[:3], np.float64(2)),
    "scalar array": (FEW, np.array(2.0, np.float32)),
    "broadcast ranks": (np.ones((3, 4), np.float32), np.arange(1, 5, dtype=np.float32)),
    "broadcast units": (np.ones((3, 1), np.float32), np.ones((1, 4), np.float32)),
    "empty and scalar": (np.ones((0, 3), np.float32), 2.0),
    "unequal sizes": (np.ones(3, np.float32), np.ones(4, np.float32)),
    "unequal ranks and sizes": (np.ones((2, 3), np.float32), np.ones(2, np.float32)),
    "list": (FEW, [1., 2., 3., 4.]),
    "None": (FEW, None),
}

BINARY_EXCEPT = {
    ("fmod", "bool bool"): "JAX: guards against zero for integers only, before bools become such",
    **{(name, "unequal sizes"): "JAX: a ValueError, where other functions raise TypeError"
       for name in ("copysign", "fmax", "fmin", "heaviside", "isclose")},
    ("ldexp", "int32 int32"): "JAX: wrong for exponents that do not fit the float's",
}

# Functions that promote in one of these ways are alike in it; the others need a few kinds only.
FULLY = "add true_divide power remainder maximum bitwise_and left_shift equal logical_and".split()
SOME = ("float32 float32", "int32 int32", "uint8 int8", "bool bool", "float32 int32",
        "complex64 float32", "int32 int", "float float", "broadcast ranks", "unequal sizes", "None")
MODEST = np.array([0, 1, -1, 6, -8, 31, 2**31 - 1], np.int32)
COMMON_DIVISORS = {
    "int32 int32": (MODEST[:, None], MODEST),      # JAX never returns for the smallest integer
    "int8 uint8": (np.array([-12, 5], np.int8), np.array([9, 200], np.uint8)),
    "int int": (12, 18),
    "float int": (1.5, 3),
    "unequal sizes": (MODEST, MODEST[:3]),
}


@pytest.mark.parametrize("name", BINARY)
def test_binary(name):
    kinds = TWO if name in FULLY else {kind: TWO[kind] for kind in SOME}
    check_all(name, kinds, BINARY_EXCEPT)


@pytest.mark.parametrize("name", ["gcd", "lcm"])
def test_common_divisors(name):
    check_all(name, COMMON_DIVISORS)
    fibonacci = np.array([1836311903, 1134903170], np.int32)
    assert mnp.gcd(*fibonacci).item() == 1        # takes the most steps
    assert minijax.jit(mnp.gcd)(*fibonacci).item() == 1


# --- Reductions -------------------------------------------------------------------------------

RANDOM = np.random.default_rng(0).normal(size=(3, 4)).astype(np.float32)
WITH_NAN = RANDOM.copy()
WITH_NAN[0, 1] = WITH_NAN[2, :] = np.nan
MASK = np.random.default_rng(1).random((3, 4)) > 0.4
ROWS = np.array([True, False, True])[:, None]
TIES = np.array([[1, 3, 3, 0], [2, 2, 2, 2], [0, 5, 5, 5]], np.int32)

DTYPES = {
    "float32": RANDOM, "float16": (RANDOM * 9).astype(np.float16),
    "bfloat16": RANDOM.astype(jnp.bfloat16), "int32": TIES, "int8": TIES.astype(np.int8),
    "uint8": TIES.astype(np.uint8), "bool": MASK, "complex64": (RANDOM + 1j * RANDOM[::-1]),
    "nan": WITH_NAN, "vector": RANDOM[0], "scalar": RANDOM[0, 0],
    "empty": np.zeros((0, 3), np.float32),
    "empty integers": np.zeros(0, np.int32), "Python float": 2.5, "Python int": 3,
    "Python bool": True,
    "list": [1., 2.],
}
AXES = {
    "axis 0": dict(axis=0), "axis -1": dict(axis=-1), "axes": dict(axis=(0, 1)),
    "no axes": dict(axis=()), "keepdims": dict(axis=1, keepdims=True),
    "keepdims of all": dict(keepdims=True), "axis out of range": dict(axis=2),
    "axis twice": dict(axis=(0, 0)), "out": dict(out=np.zeros(4)),
}
WHERE = {"where": dict(where=MASK), "where rows": dict(where=ROWS), "where none": dict(where=False)}
DTYPE = {"dtype float16": dict(dtype="float16"), "dtype int32": dict(dtype="int32"),
         "dtype float32": dict(dtype="float32")}
INITIAL = {"initial": dict(initial=2), "initial and where": dict(initial=-1.5, where=MASK)}
DDOF = {"ddof": dict(ddof=1, axis=1), "ddof of all": dict(ddof=12),
        "correction": dict(correction=2)}

OPTIONS = {
    "sum": AXES | WHERE | DTYPE | INITIAL | {"as it is": dict(promote_integers=False)},
    "prod": AXES | WHERE | DTYPE | INITIAL,
    "max": AXES | WHERE | INITIAL, "min": AXES | WHERE | INITIAL,
    "mean": AXES | WHERE | DTYPE, "var": AXES | WHERE | DDOF | {"dtype": dict(dtype="float16")},
    "std": AXES | WHERE | DDOF, "all": AXES | WHERE, "any": AXES | WHERE, "ptp": AXES,
    "count_nonzero": {k: v for k, v in AXES.items() if k != "out"},
    "argmax": {k: v for k, v in AXES.items() if not isinstance(v.get("axis"), tuple)},
    "argmin": {"axis 0": dict(axis=0), "keepdims": dict(axis=1, keepdims=True)},
    "nanargmax": {"axis 0": dict(axis=0), "axis 1": dict(axis=1, keepdims=True)},
    "nanargmin": {"axis 0": dict(axis=0), "axis 1": dict(axis=1)},
    "nansum": AXES | WHERE | INITIAL, "nanprod": AXES | DTYPE, "nanmax": AXES | INITIAL,
    "nanmin": AXES | INITIAL, "nanmean": AXES | WHERE,
    "nanvar": AXES | WHERE | {"ddof": dict(ddof=1)},
    "nanstd": AXES, "median": AXES, "nanmedian": AXES,
    "cumsum": {"axis 0": dict(axis=0), "axis -1": dict(axis=-1), "axis 2": dict(axis=2)} | DTYPE,
    "cumprod": {"axis 0": dict(axis=0)} | DTYPE,
    "nancumsum": {"axis 1": dict(axis=1)}, "nancumprod": {"axis 1": dict(axis=1)},
    "cumulative_sum": {"axis": dict(axis=1), "initial": dict(axis=0, include_initial=True)},
    "cumulative_prod": {"axis": dict(axis=1), "initial": dict(axis=0, include_initial=True)},
    "average": {"axis 0": dict(axis=0), "weights": dict(weights=RANDOM + 3),
                "weights along": dict(axis=1, weights=np.arange(4.0), returned=True),
                "no axis": dict(weights=np.arange(4.0)), "keepdims": dict(axis=0, keepdims=True),
                "returned": dict(returned=True),
                "bad weights": dict(axis=0, weights=np.arange(4.0))},
}

REDUCTIONS_EXCEPT = {
    **{(name, "axis out of range"): "JAX: an IndexError, where other functions raise ValueError"
       for name in ("argmax", "mean", "var", "std")},
    **{(name, "complex64"): "JAX: an error of the compiler"
       for name in ("argmax", "argmin", "nanargmax", "nanargmin")},
    ("ptp", "complex64"): "complex numbers have no order",
    ("median", "empty"): "JAX: an error of gather",
    ("median", "empty integers"): "JAX: an error of gather",
    ("nanmedian", "empty"): "JAX: an error of gather",
    ("nanmedian", "empty integers"): "JAX: an error of gather",
}


def reduction_call(name, a, options):
    def call(np_, asarray):
        given = {k: asarray(v) if isinstance(v, np.ndarray) else v for k, v in options.items()}
        known = isinstance(a, np.ndarray | np.generic)
        return getattr(np_, name)(asarray(a) if known else a, **given)
    return call


@pytest.mark.parametrize("name", OPTIONS)
def test_reduction(name):
    calls = {(name, kind): reduction_call(name, a, {}) for kind, a in DTYPES.items()}
    data = WITH_NAN if name.startswith("nan") else RANDOM
    calls |= {(name, what): reduction_call(name, data, options)
              for what, options in OPTIONS[name].items()}
    table = Table({k: call for k, call in calls.items() if k not in REDUCTIONS_EXCEPT})
    for key in table.calls:
        table.check(key)


Q = np.array([0.0, 0.3, 0.5, 1.0], np.float32)


def quantile_call(name, method, by):
    data = WITH_NAN if name.startswith("nan") else RANDOM
    return lambda np_, asarray: getattr(np_, name)(asarray(data), by * asarray(Q), axis=1,
                                                   method=method)


QUANTILES = {
    **{f"{name} {method}": quantile_call(name, method, by)
       for name, by in (("quantile", 1), ("nanquantile", 1), ("percentile", 100))
       for method in ("linear", "lower", "higher", "midpoint", "nearest", "inverted_cdf")},
    "of all": lambda np_, asarray: np_.quantile(asarray(RANDOM), 0.25),
    "two axes": lambda np_, asarray: np_.quantile(asarray(RANDOM)[None], asarray(Q), axis=(0, 2)),
    "keepdims": lambda np_, asarray: np_.quantile(asarray(RANDOM), asarray(Q), axis=0,
                                                  keepdims=True),
    "nan": lambda np_, asarray: np_.quantile(asarray(WITH_NAN), 0.5, axis=1),
    "integers": lambda np_, asarray: np_.percentile(asarray(TIES), 30),
    "float16": lambda np_, asarray: np_.quantile(asarray(DTYPES["float16"]), 0.3),
    "weights": lambda np_, asarray: np_.quantile(
        asarray(RANDOM), asarray(Q), axis=1, method="inverted_cdf",
        weights=asarray(np.arange(1, 5, dtype=np.float32))),
    "weights need a method": lambda np_, asarray: np_.quantile(asarray(RANDOM), 0.5,
                                                               weights=RANDOM),
    "unknown method": lambda np_, asarray: np_.quantile(asarray(RANDOM), 0.5, method="best"),
    "matrix of q": lambda np_, asarray: np_.quantile(asarray(RANDOM), asarray(RANDOM)),
    "complex": lambda np_, asarray: np_.quantile(asarray(DTYPES["complex64"]), 0.5),
}


def test_quantiles():
    table = Table({("quantile", what): call for what, call in QUANTILES.items()})
    for key in table.calls:
        table.check(key)


# --- Choosing and comparing -------------------------------------------------------------------

CHOICES = {
    "where": lambda np_, a: np_.where(a(RANDOM) > 0, a(RANDOM), 0),
    "where of a scalar condition": lambda np_, a: np_.where(True, a(RANDOM), a(RANDOM)[0]),
    "where of integers": lambda np_, a: np_.where(a(TIES), 1, 2.5),
    "where of numbers": lambda np_, a: np_.where(True, 1, 2),
    "where, three shapes": lambda np_, a: np_.where(a(ROWS), a(RANDOM)[:1], a(RANDOM)[:, :1]),
    "where with one value": lambda np_, a: np_.where(a(ROWS), a(RANDOM)),
    "clip": lambda np_, a: np_.clip(a(RANDOM), -0.5, 0.5),
    "clip by arrays": lambda np_, a: np_.clip(a(RANDOM), a(RANDOM)[0], a(RANDOM)[1]),
    "clip integers": lambda np_, a: np_.clip(a(TIES), 1.5, 3),
    "clip, min above max": lambda np_, a: np_.clip(a(RANDOM), 1.0, -1.0),
    "clip NaN": lambda np_, a: np_.clip(a(SPECIAL), max=1.0),
    "clip complex": lambda np_, a: np_.clip(a(RANDOM) + 1j, 0, 1),
    "isclose": lambda np_, a: np_.isclose(a(SPECIAL)[:, None], a(SPECIAL) * (1 + 1e-6)),
    "isclose, NaN": lambda np_, a: np_.isclose(a(SPECIAL)[:, None], a(SPECIAL), equal_nan=True),
    "isclose, loose": lambda np_, a: np_.isclose(a(SPECIAL)[:, None], a(SPECIAL), rtol=0.5,
                                                 atol=0.1),
    "allclose": lambda np_, a: np_.allclose(a(RANDOM), a(RANDOM) + 1e-9),
    "array_equal": lambda np_, a: np_.array_equal(a(RANDOM), a(RANDOM)),
    "array_equal, shapes": lambda np_, a: np_.array_equal(a(RANDOM), a(RANDOM)[0]),
    "array_equal, lists": lambda np_, a: np_.array_equal([1, 2], [1.0, 2.0]),
    "array_equal, NaN": lambda np_, a: np_.array_equal(a(WITH_NAN), a(WITH_NAN)),
    "array_equal, equal NaN": lambda np_, a: np_.array_equal(a(WITH_NAN), a(WITH_NAN),
                                                             equal_nan=True),
    "array_equiv": lambda np_, a: np_.array_equiv(a(ROWS), a(ROWS) & a(MASK)),
    "array_equiv, shapes": lambda np_, a: np_.array_equiv(a(ROWS), a(Q)[:2]),
    "nan_to_num": lambda np_, a: np_.nan_to_num(a(SPECIAL), nan=7.0, posinf=1.0, neginf=-1),
    "round to decimals": lambda np_, a: np_.round(a(RANDOM), 2),
    "round to tens": lambda np_, a: np_.round(a(RANDOM) * 100, -1),
    "round float16": lambda np_, a: np_.round(a(DTYPES["float16"]), 1),
    "round integers to tens": lambda np_, a: np_.round(a(TIES), -1),
    "angle in degrees": lambda np_, a: np_.angle(a(DTYPES["complex64"]), deg=True),
    "power, known negative": lambda np_, a: np_.power(a(FEW), -2),
    "power of integers, known negative": lambda np_, a: np_.power(a(TIES), -2),
    "int8 to a NumPy int": lambda np_, a: a(TIES.astype(np.int8)) ** np.int32(2),
    "float to bool": lambda np_, a: a(FEW) ** True,
    "float to a NumPy bool": lambda np_, a: a(FEW) ** np.bool_(True),
    "float to bools": lambda np_, a: a(FEW) ** (a(FEW) > 0),
    "number to bools": lambda np_, a: 2.5 ** (a(FEW) > 0),
    "integers to bools": lambda np_, a: a(TIES) ** (a(TIES) > 0),
    "list to ufunc": lambda np_, a: np_.add([1], 2),
}


def test_choices():
    table = Table({("call", what): call for what, call in CHOICES.items()})
    for key in table.calls:
        table.check(key)


# --- Gradients --------------------------------------------------------------------------------

SMOOTH = """
    abs arccos arccosh arcsin arcsinh arctan arctanh cbrt ceil cos cosh deg2rad exp exp2 expm1 fabs
    floor log log10 log1p log2 negative positive rad2deg real reciprocal rint sign sin sinc sinh
    sqrt square tan tanh trunc angle nan_to_num conj imag
""".split()
INSIDE = {"arccosh": 1.75, "default": 0.375}
EDGES = {
    "abs": [0.0, -0.0], "sinc": [0.0, 1.0], "cbrt": [0.0], "nan_to_num": [np.nan, np.inf],
    "sign": [0.0], "square": [0.0], "fabs": [0.0], "log1p": [0.0], "expm1": [0.0], "angle": [-1.0],
    "tanh": [-200.0, 200.0], "sqrt": [0.0, 4.0], "reciprocal": [-2.0],
}
PAIRS = {
    "add": [(1., 2.)], "multiply": [(1., 2.)], "true_divide": [(1., 2.), (-3., 0.5)],
    "subtract": [(1., 2.)], "maximum": [(1., 2.), (1., 1.)], "minimum": [(1., 2.), (1., 1.)],
    "fmax": [(1., 2.), (1., 1.), (np.nan, 1.)], "fmin": [(1., 2.), (1., 1.), (1., np.nan)],
    "power": [(2., 3.), (0., 2.), (-2., 2.)], "float_power": [(2., 0.5)],
    "remainder": [(7., 2.), (-7., 2.), (7., -2.)], "fmod": [(7., 2.), (-7., 2.)],
    "floor_divide": [(7., 2.)], "arctan2": [(1., 2.), (-1., -2.)],
    "hypot": [(3., 4.), (3., 3.), (0., 0.), (-3., 4.)],
    "logaddexp": [(1., 2.), (2., 2.), (-20., 0.), (1., -np.inf), (-10., -10.)],
    "logaddexp2": [(1., 2.), (2., 2.)], "heaviside": [(1., 2.), (0., 2.)],
    "copysign": [(1., -2.), (-1., 2.)],
}
KNOWN = {
    "x ** 0 at 0": (lambda np_, x: x ** 0, 0.), "x ** 1 at 0": (lambda np_, x: x ** 1, 0.),
    "x ** 2 at 0": (lambda np_, x: x ** 2, 0.), "x ** -1": (lambda np_, x: x ** -1, 2.),
    "x ** integers": (lambda np_, x: np_.sum(x ** np_.arange(4)), 0.),
    "2 ** x": (lambda np_, x: 2 ** x, 1.5), "modf": (lambda np_, x: np_.modf(x)[0], 1.5),
    "ldexp": (lambda np_, x: np_.ldexp(x, 3), 1.5), "frexp": (lambda np_, x: np_.frexp(x)[0], 1.5),
    "clip inside": (lambda np_, x: np_.clip(x, 0, 2), 1.),
    "clip at": (lambda np_, x: np_.clip(x, 0, 2), 2.),
    "clip outside": (lambda np_, x: np_.clip(x, 0, 2), 3.),
    "guarded sqrt": (lambda np_, x: np_.where(x > 0, np_.sqrt(np_.where(x > 0, x, 1.)), 0.), 0.),
    "round": (lambda np_, x: np_.round(x, 1), 1.23),
    "second of sinc": (lambda np_, x: second(np_, np_.sinc)(x), 0.),
    "second of sinc inside": (lambda np_, x: second(np_, np_.sinc)(x), 0.3),
    "second of logaddexp": (lambda np_, x: second(np_, lambda y: np_.logaddexp(y, 1.0))(x), 1.0),
    "second of cube": (lambda np_, x: second(np_, lambda y: y ** 3)(x), 0.),
}


def library_of(np_):
    return minijax if np_ is mnp else jax


def second(np_, f):
    grad = library_of(np_).grad
    return grad(grad(f))


def scalar_cases():
    cases = {}
    for name in SMOOTH:
        for x in [INSIDE.get(name, INSIDE["default"]), *EDGES.get(name, [])]:
            cases[f"{name} at {x}"] = (lambda np_, x, name=name: getattr(np_, name)(x), (x,))
    for name, points in PAIRS.items():
        for point in points:
            cases[f"{name} at {point}"] = (
                lambda np_, x, y, name=name: getattr(np_, name)(x, y), point)
    for what, (f, x) in KNOWN.items():
        cases[what] = (f, (x,))
    return cases


V = np.array([[3., 1., 2.], [1., -1., 5.]], np.float32)
ARRAY_CASES = {
    "sum": lambda np_, x: np_.sum(np_.sum(x, axis=0) ** 2), "mean": lambda np_, x: np_.mean(x),
    "prod": lambda np_, x: np_.prod(x),
    "prod with zeros": lambda np_, x: np_.sum(np_.prod(x * (x > 2), 1)),
    "max": lambda np_, x: np_.max(x), "max with ties": lambda np_, x: np_.max(np_.minimum(x, 1.)),
    "min over an axis": lambda np_, x: np_.sum(np_.min(x, 1) ** 2),
    "ptp": lambda np_, x: np_.ptp(x),
    "var": lambda np_, x: np_.var(x), "std": lambda np_, x: np_.sum(np_.std(x, 1, ddof=1)),
    "masked mean": lambda np_, x: np_.mean(x, where=x > 1),
    "masked mean of infinities": lambda np_, x: np_.mean(np_.where(x > 1, x, np_.inf), where=x > 1),
    "nansum": lambda np_, x: np_.nansum(np_.where(x > 1, x, np_.nan)),
    "nanmean": lambda np_, x: np_.nanmean(np_.where(x > 1, x, np_.nan)),
    "nanvar": lambda np_, x: np_.nanvar(np_.where(x > 1, x, np_.nan)),
    "nanmax": lambda np_, x: np_.nanmax(x), "average": lambda np_, x: np_.average(x, weights=x),
    "cumsum": lambda np_, x: np_.sum(np_.cumsum(x, 1) ** 2),
    "cumprod": lambda np_, x: np_.sum(np_.cumprod(x, 1) ** 2),
    "median": lambda np_, x: np_.median(x), "quantile": lambda np_, x: np_.quantile(x, 0.3),
    "sum of none": lambda np_, x: np_.sum(x, where=False),
    "initial": lambda np_, x: np_.max(x, initial=9.),
}


@functools.cache
def expected_gradients():
    def of_scalars():
        return [jax.grad(lambda *a, f=f: f(jnp, *a), tuple(range(len(args))))(*args)
                for f, args in scalar_cases().values()]
    scalars = dict(zip(scalar_cases(), jax.jit(of_scalars)()))
    arrays = jax.jit(lambda x: [jax.grad(lambda x: f(jnp, x))(x) for f in ARRAY_CASES.values()])(V)
    return scalars | dict(zip(ARRAY_CASES, arrays))


def assert_gradient(got, what):
    expected = expected_gradients()[what]
    for a, b in zip(got if isinstance(got, tuple) else (got,),
                    expected if isinstance(expected, tuple) else (expected,)):
        np.testing.assert_allclose(np.asarray(a), np.asarray(b), rtol=2e-5, atol=1e-6, err_msg=what)


@pytest.mark.parametrize("what", scalar_cases())
def test_gradient(what):
    f, args = scalar_cases()[what]
    gradient = minijax.grad(lambda *a: f(mnp, *a), tuple(range(len(args))))
    assert_gradient(gradient(*args), what)


@pytest.mark.parametrize("what", ARRAY_CASES)
def test_gradient_of_reduction(what):
    gradient = minijax.grad(lambda x: ARRAY_CASES[what](mnp, x))
    assert_gradient(gradient(V), what)
    assert_gradient(minijax.jit(gradient)(V), what)


# --- Under jit and vmap -----------------------------------------------------------------------

@pytest.mark.parametrize("name", [n for n in UNARY if n not in ("bitwise_count", "invert")])
def test_unary_under_jit_and_vmap(name):
    f = getattr(mnp, name)
    kind = "int32" if name.startswith("bitwise") else "float32"
    x = mnp.asarray(ONE[kind][0])
    expected = f(x)
    assert_same(minijax.jit(f)(x), expected, name + " under jit")
    assert_same(minijax.vmap(f)(x), expected, name + " under vmap")


@pytest.mark.parametrize("name", BINARY)
def test_binary_under_jit_and_vmap(name):
    f = getattr(mnp, name)
    bitwise = "bitwise" in name or "shift" in name
    x = INTEGERS if bitwise or name == "ldexp" else SPECIAL
    y = x[::-1].copy()
    expected = f(mnp.asarray(x), mnp.asarray(y))
    assert_same(minijax.jit(f)(x, y), expected, name + " under jit")
    assert_same(minijax.vmap(f)(x, y), expected, name + " under vmap")
    half = minijax.vmap(f, in_axes=(0, None))(x, y)
    assert_same(half, f(mnp.asarray(x)[:, None], mnp.asarray(y)), name + " under half a vmap")


@pytest.mark.parametrize("name", OPTIONS)
def test_reduction_under_jit_and_vmap(name):
    f = getattr(mnp, name)
    over_rows = lambda x: f(x, axis=0)
    expected = f(mnp.asarray(WITH_NAN), axis=1)
    assert_same(minijax.vmap(over_rows)(WITH_NAN), expected, name + " under vmap")
    assert_same(minijax.jit(minijax.vmap(over_rows))(WITH_NAN), expected, name + " under both")


@pytest.mark.parametrize("dtype", ["float32", "float16", "bfloat16"])
def test_a_power_that_is_a_root(dtype):
    """It is √x but at -∞ and -0.0: of an array, of one number, compiled and not."""
    x = np.array([-np.inf, -0.0, 0.0, np.inf, -1, 4, np.nan, 2, 1e4, -1e-3], np.float32)
    root = lambda x: x ** 0.5
    want = np.asarray(root(jnp.asarray(x, dtype))).astype(np.float32)
    x = mnp.asarray(x, dtype)
    one_by_one = lambda f: mnp.stack([f(number) for number in x])
    for got in root(x), minijax.jit(root)(x), one_by_one(root), one_by_one(minijax.jit(root)):
        got = np.asarray(got).astype(np.float32)
        np.testing.assert_allclose(got, want, rtol=2e-6 if dtype == "float32" else 1e-2)
        assert not np.signbit(got[~np.isnan(got)]).any()
