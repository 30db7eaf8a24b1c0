"""dtypes against JAX: the whole promotion table, conversions, warnings and errors."""

import itertools
import subprocess
import sys
import warnings

import jax
import jax._src.dtypes as jax_dtypes
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

from minijax import dtypes
from minijax.config import enable_x64, numpy_dtype_promotion

DTYPES = dtypes.all_dtypes
WEAK_TYPES = (int, float, complex)


class Typed:
    """Stands for an array or tracer: all that promotion may look at."""

    def __init__(self, dtype, weak_type):
        self.dtype, self.weak_type, self.aval = np.dtype(dtype), weak_type, self

    def __repr__(self):
        return f"{self.dtype}{'*' if self.weak_type else ''}"


# JAX keeps the dtype of its own arrays even when x64 is off; make it take Typed for one
jax_dtypes.register_type_whose_dtype_should_not_be_canonicalized(Typed)

ARRAYS = [Typed(d, weak) for d in DTYPES for weak in (False, True)]
SCALARS = [True, 1, 1., 1j, bool, int, float, complex, np.float64(1), np.int64(1), np.int8(1),
           np.zeros(2), np.zeros(2, "int64"), np.zeros(2, "float16"), np.zeros(2, bool)]


def outcome(function, *args, **kwargs):
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return function(*args, **kwargs)
    except Exception as error:
        return type(error).__name__


@pytest.fixture(params=[False, True], ids=["x32", "x64"])
def x64(request):
    with enable_x64(request.param), jax.enable_x64(request.param):
        yield request.param


@pytest.fixture(params=["standard", "strict"])
def mode(request):
    with numpy_dtype_promotion(request.param), jax.numpy_dtype_promotion(request.param):
        yield request.param


def test_every_jax_dtype_is_known():
    missing = set(jax_dtypes._jax_types) - set(DTYPES)
    assert {d.name for d in missing} <= {"int1", "uint1"}
    assert dtypes.float0 == jax.dtypes.float0


def test_promote_types(x64, mode):
    for a, b in itertools.product(DTYPES + WEAK_TYPES, repeat=2):
        assert outcome(dtypes.promote_types, a, b) == outcome(jnp.promote_types, a, b), (a, b)


@pytest.mark.parametrize("name", ["result_type", "lattice_result_type"])
def test_result_type_of_pairs(name, x64, mode):
    flag = {"return_weak_type_flag": True} if name == "result_type" else {}
    ours, theirs = getattr(dtypes, name), getattr(jax_dtypes, name)
    for args in itertools.chain(itertools.product(ARRAYS, repeat=2),
                                itertools.product(ARRAYS, SCALARS),
                                itertools.product(SCALARS, repeat=2),
                                ((x,) for x in ARRAYS + SCALARS)):
        expected = outcome(theirs, *args, **flag)
        if expected != "KeyError":      # JAX has no default for a weak int4
            assert outcome(ours, *args, **flag) == expected, args


def test_result_type_of_triples(x64):
    some = [a for a in ARRAYS if a.dtype.name in ("bool", "uint32", "int8", "int4", "bfloat16",
                                                  "float16", "float8_e5m2", "complex64")]
    for args in itertools.product(some, repeat=3):
        got = outcome(dtypes.result_type, *args, return_weak_type_flag=True)
        expected = outcome(jax_dtypes.result_type, *args, return_weak_type_flag=True)
        assert got == expected or expected == "KeyError", args


def test_the_lattice_join_is_commutative_idempotent_and_associative(x64):
    def join(*nodes):
        return outcome(dtypes._least_upper_bound, "standard", x64, frozenset(nodes))
    nodes = list(dtypes.promotion_lattice("standard", x64))
    for a, b, c in itertools.product(nodes, repeat=3):
        ab, bc = join(a, b), join(b, c)
        if ab in nodes and bc in nodes:
            assert join(ab, c) == join(a, bc) == join(a, b, c), (a, b, c)
    assert all(join(a, a) == a for a in nodes)


def test_result_type_needs_arguments():
    with pytest.raises(ValueError, match="at least one"):
        dtypes.result_type()


def test_result_type_of_None_is_the_default_float(x64):
    assert dtypes.result_type(None) == jax_dtypes.result_type(None)


@pytest.mark.parametrize("name", ["canonicalize_dtype", "to_numeric_dtype", "to_inexact_dtype",
                                  "to_complex_dtype", "scalar_type_of", "dtype"])
def test_unary_functions(name, x64):
    for d in (*DTYPES, *(d.name for d in DTYPES), *(d.type for d in DTYPES), bool, *WEAK_TYPES):
        got = outcome(getattr(dtypes, name), d)
        assert got == outcome(getattr(jax_dtypes, name), d), d


def test_to_floating_dtype():
    for d in DTYPES:
        got = outcome(dtypes.to_floating_dtype, d)
        assert got == outcome(jax_dtypes.to_floating_dtype, d), d


def test_dtype_and_weakness_of_values(x64):
    for x in SCALARS + ARRAYS:
        assert dtypes.dtype(x) == jax_dtypes.dtype(x)
        assert dtypes.is_weakly_typed(x) == jax_dtypes.is_weakly_typed(x)


@pytest.mark.parametrize("bad", [None, "S3", np.dtype("datetime64[s]"), object(), "nonsense"])
def test_dtype_rejects_what_arrays_cannot_hold(bad):
    assert outcome(dtypes.dtype, bad) == outcome(jax_dtypes.dtype, bad)
    assert isinstance(outcome(dtypes.dtype, bad), str)


def test_classes_with_a_dtype_attribute_count_as_that_dtype():
    class scalar_class:
        dtype = np.dtype("float16")
    assert dtypes.dtype(scalar_class) == np.float16
    assert dtypes.promote_types(scalar_class, "float32") == np.float32
    assert dtypes.result_type(scalar_class, 1.) == np.float16


def test_issubdtype():
    kinds = [np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact,
             np.floating, np.complexfloating, np.bool_, dtypes.extended, dtypes.prng_key]
    for a, b in itertools.product([*DTYPES, *kinds[:-2], float, "int32"], [*kinds, *DTYPES]):
        theirs = getattr(jax.dtypes, b.__name__) if b in kinds[-2:] else b
        assert dtypes.issubdtype(a, b) == jnp.issubdtype(a, theirs), (a, b)


def test_isdtype():
    kinds = ["bool", "signed integer", "unsigned integer", "integral", "real floating",
             "complex floating", "numeric", "int8", np.float32, ("bool", "int8")]
    for d, kind in itertools.product(DTYPES, kinds):
        assert dtypes.isdtype(d, kind) == jnp.isdtype(d, kind), (d, kind)
    for bad in ("real", 3):
        assert outcome(dtypes.isdtype, "int8", bad) == outcome(jnp.isdtype, "int8", bad)


def test_extended_dtypes_pass_through_result_type():
    class KeyType(dtypes.ExtendedDType):
        type = dtypes.prng_key
        __str__ = lambda self: "key<fry>"
    key = KeyType()
    assert dtypes.issubdtype(key, dtypes.prng_key) and dtypes.issubdtype(key, dtypes.extended)
    assert not dtypes.issubdtype(key, np.number) and not dtypes.issubdtype(np.int8, key)
    keys = Typed("int8", False)
    keys.dtype = key
    assert dtypes.result_type(keys, keys) is key and dtypes.dtype(keys) is key
    assert dtypes.canonicalize_dtype(key, allow_extended_dtype=True) is key
    with pytest.raises(ValueError, match="ordinary dtype"):
        dtypes.canonicalize_dtype(key)
    with pytest.raises(ValueError, match="no part in type promotion"):
        dtypes.result_type(keys, Typed("int8", False))


def test_defaults(x64):
    for kind in ("int", "uint", "float", "complex"):
        name = f"default_{kind}_dtype"
        assert getattr(dtypes, name)() == getattr(jax_dtypes, name)()
    assert dtypes.scalar_type_to_dtype(int, 3) == dtypes.default_int_dtype()
    with pytest.raises(OverflowError, match="too large"):
        dtypes.scalar_type_to_dtype(int, 1 << 63)


def test_a_64_bit_request_warns_only_without_x64():
    with enable_x64(False), pytest.warns(UserWarning, match="int64 in zeros is not"):
        assert dtypes.check_and_canonicalize_user_dtype("int64", "zeros") == np.int32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dtypes.check_and_canonicalize_user_dtype(float, "zeros") == np.float32
        with enable_x64(True):
            assert dtypes.check_and_canonicalize_user_dtype("int64", "zeros") == np.int64
    with pytest.raises(TypeError, match="not a valid JAX array type"):
        dtypes.check_and_canonicalize_user_dtype("S3", "zeros")


def test_joining_never_warns_about_values():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert dtypes.result_type(np.zeros(2), np.int64(1)) == np.float32
        assert dtypes.result_type(Typed("int64", True), 1.) == np.float32


def test_promotion_errors_name_the_types_and_the_remedy():
    with pytest.raises(dtypes.TypePromotionError, match="float32 and float8_e5m2.*too narrow"):
        dtypes.promote_types("float32", "float8_e5m2")
    with numpy_dtype_promotion("strict"):
        with pytest.raises(dtypes.TypePromotionError, match="float32 and int32.*'standard'"):
            dtypes.promote_types("float32", "int32")
        assert dtypes.result_type(np.float16(1), 2) == np.float16


def test_supports_inf():
    assert dtypes.supports_inf("bfloat16") and dtypes.supports_inf("complex64")
    for d in ("int32", "float8_e4m3fn", "float8_e5m2fnuz", "float4_e2m1fn"):
        assert not dtypes.supports_inf(d)


def test_safe_to_cast(x64):
    for a, b in itertools.product([*DTYPES, 1, 1., 1j], DTYPES):
        assert outcome(dtypes.safe_to_cast, a, b) == outcome(jax_dtypes.safe_to_cast, a, b)


def test_finfo_and_iinfo_know_ml_dtypes():
    assert dtypes.finfo("bfloat16").bits == 16 and dtypes.finfo(np.float32).eps == 2.0 ** -23
    assert dtypes.iinfo("int4").max == 7 and dtypes.finfo is ml_dtypes.finfo


def test_foundations_import_neither_numba_nor_scipy_nor_jax():
    code = ("import sys, minijax.config, minijax.errors, minijax.dtypes; "
            'print([m for m in ("numba", "scipy", "jax") if m in sys.modules])')
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    assert done.stdout.strip() == "[]", done.stderr
