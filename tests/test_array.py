"""Arrays and abstract values: what can't change, what is copied, how they convert and print. JAX is the oracle."""

import copy
import operator
import pickle

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest

import minijax
import minijax.numpy as mnp
from minijax import dtypes
from minijax.array import Array, as_array, from_numpy
from minijax.avals import AbstractValue, ShapedArray, abstractify, typeof
from minijax.config import enable_x64

ARRAYS = [
    np.float32(2.5), np.int32(-3), np.bool_(True), np.complex64(1 - 2j), np.zeros(0, np.float32),
    np.zeros((0, 3), np.int32), np.arange(3, dtype=np.uint8), np.array([True, False]),
    np.linspace(0, 1, 7, dtype=np.float32), np.linspace(0, 1, 5, dtype=np.float32),
    np.arange(24, dtype=np.float32).reshape(2, 3, 4), np.arange(60, dtype=np.int16),
    np.array([1e-30, np.nan, np.inf], np.float32), np.ones((2, 2), ml_dtypes.bfloat16),
    np.arange(5000, dtype=np.int32), np.array([1 + 1j, 2], np.complex64), np.ones(2, np.float16)]


def ident(x):
    return f"{x.dtype}{list(x.shape)}" if hasattr(x, "dtype") else repr(x)


# --- Printing -------------------------------------------------------------------------------------

@pytest.mark.parametrize("x", ARRAYS + [2.0, 3, True, 1j], ids=ident)
def test_prints_as_jax_does(x):
    assert repr(as_array(x)) == repr(jnp.asarray(x))
    assert str(as_array(x)) == str(jnp.asarray(x))


@pytest.mark.parametrize("width", [20, 40, 75, 120])
@pytest.mark.parametrize("n", [1, 3, 8, 11])
def test_prints_as_jax_does_when_there_is_no_room(n, width):
    x = np.arange(n, dtype=np.float32)
    with np.printoptions(linewidth=width):
        assert repr(as_array(x)) == repr(jnp.asarray(x))


@pytest.mark.parametrize("x, spec", [(2.5, ".3f"), (7, "04d"), (2.5, ""), (np.arange(2), "")])
def test_format(x, spec):
    assert format(as_array(x), spec) == format(jnp.asarray(x), spec)


# --- Nothing changes ------------------------------------------------------------------------------

def test_assignment_is_refused():
    x = from_numpy(np.zeros(3, np.float32))
    with pytest.raises(TypeError, match=r"x.at\[index\].set\(value\)"):
        x[0] = 1.0
    with pytest.raises(AttributeError):
        x.shape = (3, 1)


@pytest.mark.parametrize("view", [np.asarray, lambda x: np.asarray(x).T, lambda x: np.asarray(x)[:2]])
def test_the_buffer_is_read_only(view):
    buffer = view(from_numpy(np.zeros(3, np.float32)))
    with pytest.raises(ValueError, match="read-only"):
        buffer[0] = 1


@pytest.mark.parametrize("make", [from_numpy, as_array, mnp.array, mnp.asarray])
def test_later_writes_to_the_original_do_not_show(make):
    original = np.zeros(3, np.float32)
    x = make(original)
    original[:] = 7
    assert x.tolist() == [0, 0, 0] and original.flags.writeable


def test_a_write_through_a_base_does_not_show():
    base = np.zeros(4, np.float32)
    view = base[:2]
    view.setflags(write=False)
    x = from_numpy(view)
    base[:] = 7
    assert x.tolist() == [0, 0]


def test_copies():
    x = from_numpy(np.zeros(3, np.float32))
    assert copy.copy(x) is x and copy.deepcopy({"a": x})["a"] is x and as_array(x) is x
    ours = np.array(x)
    ours[0] = 1
    assert x.tolist() == [0, 0, 0]


def test_array_protocol():
    x = from_numpy(np.arange(3, dtype=np.float32))
    assert np.asarray(x) is np.asarray(x)              # no copy: the buffer itself
    assert np.asarray(x, np.int64).dtype == np.int64
    assert np.asarray(x, copy=True).flags.writeable
    with pytest.raises(ValueError):
        np.asarray(x, np.int64, copy=False)


def test_dlpack():
    x = from_numpy(np.arange(3, dtype=np.float32))
    ours = np.from_dlpack(x)
    assert ours.tolist() == [0, 1, 2]
    if ours.flags.writeable:
        ours[0] = 9
    assert x.tolist() == [0, 1, 2]
    assert x.__dlpack_device__() == np.zeros(1).__dlpack_device__()
    assert jnp.from_dlpack(x).tolist() == [0, 1, 2]


@pytest.mark.parametrize("x", ARRAYS + [2.0, 3], ids=ident)
def test_pickling(x):
    x = as_array(x)
    again = pickle.loads(pickle.dumps(x))
    assert again.aval == x.aval and repr(again) == repr(x)
    with pytest.raises(ValueError):
        np.asarray(again)[...] = 0


def test_is_no_key():
    for f in (hash, lambda x: {x: 1}):
        with pytest.raises(TypeError, match="unhashable"):
            f(as_array(1.0))


# --- Conversions ----------------------------------------------------------------------------------

CONVERSIONS = {"bool": bool, "int": int, "float": float, "complex": complex, "index": operator.index,
               "len": len, "iter": lambda x: len(list(x)), "range": lambda x: len(range(x)),
               "item": lambda x: x.item(), "tolist": lambda x: x.tolist(), "list index": lambda x: [5, 6, 7][x],
               "reversed": lambda x: [float(v) for v in reversed(x)], "size": lambda x: (x.size, x.nbytes, x.itemsize, x.ndim)}
VALUES = [2.5, 2, True, 1j, np.int8(1), np.zeros(0, np.float32), np.ones(1, np.float32),
          np.array([1, 2], np.int32), np.ones((1, 1), np.int32), np.float32(np.nan)]


def outcome(f, x):
    try:
        return "value", f(x)
    except Exception as error:
        return "error", next(c for c in type(error).__mro__ if c.__module__ == "builtins")


@pytest.mark.parametrize("name", CONVERSIONS)
@pytest.mark.parametrize("x", VALUES, ids=ident)
def test_converts_as_jax_does(name, x):
    ours, theirs = outcome(CONVERSIONS[name], as_array(x)), outcome(CONVERSIONS[name], jnp.asarray(x))
    assert ours[0] == theirs[0] and type(ours[1]) is type(theirs[1])
    assert ours[0] == "value" and repr(ours[1]) == repr(theirs[1]) or ours[1] is theirs[1]


def test_errors_of_conversions_say_what_is_wrong():
    x = from_numpy(np.ones((2, 3), np.float32))
    for convert, message in [(float, r"to Python floats; .* shape \(2, 3\)"), (bool, "more than one element"),
                             (operator.index, r"scalar index, got f32\[2,3\]")]:
        with pytest.raises((TypeError, ValueError), match=message):
            convert(x)


def test_big_integers():
    with pytest.raises(OverflowError, match="does not fit into int32; enable jax_enable_x64"):
        as_array(2**31)
    with enable_x64(True):
        assert as_array(2**31).dtype == np.int64


# --- Dtypes on the way in -------------------------------------------------------------------------

@pytest.mark.parametrize("x", ARRAYS + [np.float64(2), np.complex128(2), np.int64(3), np.ones(2), 1, 2.0, 1j, False],
                         ids=ident)
def test_type_is_jax_s(x):
    ours, theirs = typeof(x), jax.typeof(x)
    assert repr(ours) == repr(theirs) and str(ours) == str(theirs) and ours.weak_type == theirs.weak_type
    assert as_array(x).aval == ours


@pytest.mark.filterwarnings("error")
def test_overflow_on_the_way_in_is_silent():
    assert from_numpy(np.array([1e300])).tolist() == [np.inf]
    assert np.isnan(from_numpy(np.array([np.nan])).item(0))


@pytest.mark.parametrize("x", ["two", None, object(), b"x", {1: 2}, [1.0]], ids=lambda x: type(x).__name__)
def test_what_is_no_array(x):
    with pytest.raises(TypeError, match="not a valid"):
        typeof(x)


def test_jax_array_protocol():
    class Wrapped:
        def __jax_array__(self):
            return as_array(3.0)
    assert typeof(Wrapped()) == typeof(3.0) and as_array(Wrapped()).item() == 3


def test_subclasses_of_arrays_and_numbers():
    class Plain(np.ndarray):
        pass
    class Count(int):
        pass
    assert typeof(np.ones(2, np.float32).view(Plain)) == ShapedArray((2,), np.float32)
    assert typeof(Count(3)) == typeof(3)


# --- Abstract values ------------------------------------------------------------------------------

def test_avals_are_values():
    a = ShapedArray([2, 3], "float32")
    assert a == ShapedArray((2, 3), np.float32) and hash(a) == hash(ShapedArray((2, 3), np.float32))
    others = [a.update(shape=(3, 2)), a.update(dtype=np.dtype(np.int32)), a.update(weak_type=True)]
    assert len({a, *others}) == 4 and a != (2, 3)
    assert a.strip_weak_type() is a and others[2].strip_weak_type() == a


@pytest.mark.parametrize("dtype, short", [("float32", "f32"), ("bfloat16", "bf16"), ("int8", "i8"),
                                          ("uint16", "u16"), ("bool", "bool"), ("complex64", "c64")])
def test_short_names(dtype, short):
    aval = ShapedArray((4, 1), dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    assert aval.str_short() == f"{short}[4,1]" and str(aval) == f"{dtype}[4,1]"


def test_tangents():
    assert ShapedArray((2,), "complex64").to_tangent_aval().dtype == np.complex64
    for dtype in ("int32", "bool", "uint8"):
        assert ShapedArray((2,), dtype).to_tangent_aval() == ShapedArray((2,), dtypes.float0)
    with pytest.raises(TypeError, match="no tangents"):
        AbstractValue().to_tangent_aval()


def test_aval_of_an_array_is_made_once():
    x = Array(np.ones(2, np.float32))
    assert x.aval is x.aval is abstractify(x)


# --- Masked NumPy arrays --------------------------------------------------------------------------

MASKED = np.ma.masked_array(np.float32([1, 2]), mask=[False, True])
TAKE_ARRAYS = {
    "asarray": lambda lib, x: lib.numpy.asarray(x), "array": lambda lib, x: lib.numpy.array(x),
    "sin": lambda lib, x: lib.numpy.sin(x), "lax": lambda lib, x: lib.lax.sin(x),
    "add": lambda lib, x: lib.numpy.ones(2) + x, "reflected": lambda lib, x: x + lib.numpy.ones(2),
    "stack": lambda lib, x: lib.numpy.stack([x, x]), "a list": lambda lib, x: lib.numpy.array([x, x]),
    "where": lambda lib, x: lib.numpy.where(x > 1, x, 0.0),
    "index": lambda lib, x: lib.numpy.ones(2)[x.astype(int)],
    "jit": lambda lib, x: lib.jit(lambda x: x)(x), "grad": lambda lib, x: lib.grad(lib.numpy.sum)(x),
    "vmap": lambda lib, x: lib.vmap(lib.numpy.sin)(x), "put": lambda lib, x: lib.device_put(x),
    "scan": lambda lib, x: lib.lax.scan(lambda c, x: (c, x), 0.0, x)[1],
    "one": lambda lib, x: lib.numpy.asarray(np.ma.masked),
    "nothing masked": lambda lib, x: lib.numpy.sin(np.ma.masked_array([1.0])),
}


@pytest.mark.parametrize("name", TAKE_ARRAYS)
def test_masked_arrays_are_refused_where_jax_refuses_them(name):
    def outcome(lib):
        try:
            return np.asarray(TAKE_ARRAYS[name](lib, MASKED)).tolist()
        except ValueError as error:
            assert "masked arrays are not supported" in str(error)
            return "refused"
    assert outcome(minijax) == outcome(jax)
