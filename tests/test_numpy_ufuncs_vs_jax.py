"""jax.numpy's ufuncs and reductions: the same call through minijax and through JAX.

Values, dtypes, weak types, shapes and error types, over a table of functions times kinds of arguments.
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
    """Calls of one function, by kind of arguments; JAX's answers to all, from one compiled program."""

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
            assert isinstance(error, error_kind(errors[key])), f"{what}: {error!r}, JAX {errors[key]!r}"
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
    """One function on all kinds of arguments; NumPy arrays among these become arrays of the library."""
    def call(args):
        return lambda np_, asarray: getattr(np_, name)(
            *[asarray(a) if isinstance(a, np.ndarray) else a for a in args])
    table = Table(((name, kind), call(args)) for kind, args in arguments.items()
                  if (name, kind) not in skip)
    for key in table.calls:
        table.check(key)


# --- One argument -----------------------------------------------------------------------------

SPECIAL = np.array([0., -0., 0.5, 1., -1., 2.5, -2.5, 3.5, 30., -30., 1e-3, np.inf, -np.inf, np.nan],
                   np.float32)

UNARY = """
    abs absolute acos acosh arccos arccosh arcsin arcsinh arctan arctanh asin asinh atan atanh
    bitwise_count bitwise_invert bitwise_not cbrt ceil conj conjugate cos cosh deg2rad degrees exp exp2
    expm1 fabs floor frexp imag invert isfinite isinf isnan isneginf isposinf log log10 log1p log2
    logical_not modf negative positive rad2deg radians real reciprocal rint sign signbit sin sinc sinh
    spacing sqrt square tan tanh trunc angle nan_to_num round around iscomplex isreal clip
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
    ("round", "bool"): "JAX: an error of finfo",
    ("around", "bool"): "JAX: an error of finfo",
}


@pytest.mark.parametrize("name", UNARY)
def test_unary(name):
    check_all(name, ONE, UNARY_EXCEPT)


# --- Two arguments ----------------------------------------------------------------------------

BINARY = """
    add subtract multiply divide true_divide floor_divide remainder mod fmod divmod power pow float_power
    maximum minimum fmax fmin arctan2 atan2 hypot logaddexp logaddexp2 heaviside copysign nextafter
    bitwise_and bitwise_or bitwise_xor left_shift right_shift bitwise_left_shift bitwise_right_shift
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
