# Exported from notebooks/ref_numpy_arrays.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: numpy. Home: ref_numpy_arrays. In JAX: jax/_src/numpy/array_creation.py.

Where arrays come from: Python and NumPy values, constants, ranges, triangles and grids. A dtype
that nobody asked for is 32-bit unless x64 is on; Python scalars make weakly typed arrays.
"""

import operator

import numpy as np

from minijax import dtypes, lax
from minijax.api import vmap
from minijax.array import Array, from_numpy
from minijax.avals import refuse_masked, typeof
from minijax.core import Tracer, concrete_or_error
from minijax.numpy.promotion import check_arraylike, convert, ensure_arraylike
from minijax.numpy.ufuncs import floor, log10, power, real, sign
from minijax.primitives.structural import canonicalize_axis, canonicalize_shape, check_shapelike
from minijax.rules import full_like_aval
from minijax.tracebacks import api_boundary

__all__ = [
    "pi", "e", "inf", "nan", "euler_gamma", "newaxis", "dtype", "finfo", "iinfo", "issubdtype",
    "isdtype", "promote_types", "result_type", "can_cast", "generic", "number", "integer",
    "signedinteger", "unsignedinteger", "inexact", "floating", "complexfloating", "object_",
    "character", "flexible", "ScalarMeta", "scalar_type", "bool_", "uint2", "uint4", "uint8",
    "uint16", "uint32", "uint64", "int2", "int4", "int8", "int16", "int32", "int64",
    "float4_e2m1fn", "float6_e2m3fn", "float6_e3m2fn", "float8_e3m4", "float8_e4m3",
    "float8_e4m3b11fnuz", "float8_e4m3fn", "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
    "float8_e8m0fnu", "bfloat16", "float16", "float32", "single", "float64", "double", "complex64",
    "csingle", "complex128", "cdouble", "int_", "uint", "float_", "complex_", "array_repr",
    "array_str", "get_printoptions", "set_printoptions", "printoptions", "save", "savez", "load",
    "ndim", "shape", "size", "isscalar", "iterable", "iscomplexobj", "isrealobj", "array",
    "asarray", "copy", "astype", "array_of", "from_host", "dtype_of_host", "known_dtype",
    "array_of_list", "leaves_of", "common_dtype", "stack_nested", "frombuffer", "from_dlpack",
    "fromiter", "fromstring", "fromfunction", "filled", "requested_dtype", "zeros", "ones", "empty",
    "full", "broadcast_trailing", "zeros_like", "ones_like", "empty_like", "full_like",
    "filled_like", "arange", "whole_range", "fits", "is_int", "range_bound", "linspace",
    "evenly_spaced", "spacing_of", "move_first_axis", "logspace", "geomspace", "exact_ends", "eye",
    "identity", "tri", "matrix_request", "column_minus_row", "tril", "triu", "keep_where", "diag",
    "matrix_of_diagonal", "diagflat", "diagonal", "last_diagonal", "meshgrid", "along_axis",
    "indices", "vander", "window", "bartlett", "blackman", "hamming", "hanning", "kaiser",
]


# --- Constants ------------------------------------------------------------------------------------

pi = np.pi
e = np.e
inf = np.inf
nan = np.nan
euler_gamma = np.euler_gamma
newaxis = None


# --- Dtypes ---------------------------------------------------------------------------------------

dtype = np.dtype
finfo = dtypes.finfo
iinfo = dtypes.iinfo
issubdtype = dtypes.issubdtype
isdtype = dtypes.isdtype
promote_types = dtypes.promote_types
result_type = dtypes.result_type
can_cast = np.can_cast

generic = np.generic
number = np.number
integer = np.integer
signedinteger = np.signedinteger
unsignedinteger = np.unsignedinteger
inexact = np.inexact
floating = np.floating
complexfloating = np.complexfloating
object_ = np.object_
character = np.character
flexible = np.flexible


class ScalarMeta(type):
    """The class of `float32` and its like: `float32(x)` is an array, `float32 == np.float32`."""

    def __hash__(self):
        return hash(self.dtype.type)

    def __eq__(self, other):
        return self is other or self.dtype.type == other

    def __ne__(self, other):
        return not self == other

    @api_boundary
    def __call__(self, x):
        return array(x, dtype=self.dtype)

    def __instancecheck__(self, instance):
        return isinstance(instance, self.dtype.type)

    def __repr__(self):
        return f"<class 'minijax.numpy.{self.__name__}'>"


def scalar_type(np_type):
    """The scalar type of a NumPy one; it stands for its dtype wherever a dtype is wanted."""
    dtype = np.dtype(np_type)
    return ScalarMeta(dtype.name, (), {"dtype": dtype, "__module__": "minijax.numpy"})


bool_ = scalar_type(np.bool_)
uint2 = scalar_type(dtypes.uint2)
uint4 = scalar_type(dtypes.uint4)
uint8 = scalar_type(np.uint8)
uint16 = scalar_type(np.uint16)
uint32 = scalar_type(np.uint32)
uint64 = scalar_type(np.uint64)
int2 = scalar_type(dtypes.int2)
int4 = scalar_type(dtypes.int4)
int8 = scalar_type(np.int8)
int16 = scalar_type(np.int16)
int32 = scalar_type(np.int32)


int64 = scalar_type(np.int64)
float4_e2m1fn = scalar_type(dtypes.float4_e2m1fn)
float6_e2m3fn = scalar_type(dtypes.float6_e2m3fn)
float6_e3m2fn = scalar_type(dtypes.float6_e3m2fn)
float8_e3m4 = scalar_type(dtypes.float8_e3m4)
float8_e4m3 = scalar_type(dtypes.float8_e4m3)
float8_e4m3b11fnuz = scalar_type(dtypes.float8_e4m3b11fnuz)
float8_e4m3fn = scalar_type(dtypes.float8_e4m3fn)
float8_e4m3fnuz = scalar_type(dtypes.float8_e4m3fnuz)
float8_e5m2 = scalar_type(dtypes.float8_e5m2)
float8_e5m2fnuz = scalar_type(dtypes.float8_e5m2fnuz)
float8_e8m0fnu = scalar_type(dtypes.float8_e8m0fnu)
bfloat16 = scalar_type(dtypes.bfloat16)
float16 = scalar_type(np.float16)
float32 = single = scalar_type(np.float32)
float64 = double = scalar_type(np.float64)
complex64 = csingle = scalar_type(np.complex64)
complex128 = cdouble = scalar_type(np.complex128)
int_ = int64
uint = uint64
float_ = float64
complex_ = complex128


# --- Printing and files ---------------------------------------------------------------------------

# NumPy does these; what it reads becomes an array of ours.

array_repr = np.array_repr
array_str = np.array_str
get_printoptions = np.get_printoptions
set_printoptions = np.set_printoptions
printoptions = np.printoptions
save = np.save
savez = np.savez


def load(file, *args, **kwargs):
    """The array in a file that `save` wrote (or what else `np.load` finds there)."""
    out = np.load(file, *args, **kwargs)
    return asarray(out) if isinstance(out, np.ndarray) else out


# --- Questions about a value ----------------------------------------------------------------------

def ndim(a):
    """The number of axes of an array or nested list."""
    return np.ndim(a)


def shape(a):
    """The sizes of all axes of an array or nested list."""
    return np.shape(a)


def size(a, axis=None):
    """The number of elements of an array, or of the places along `axis`."""
    return np.size(a) if axis is None else np.shape(a)[canonicalize_axis(axis, np.ndim(a))]


def isscalar(element):
    """Say whether `element` is a number: a Python or NumPy scalar, or an array without axes."""
    if isinstance(element, (np.ndarray, Array, Tracer)) or hasattr(element, "__jax_array__"):
        return np.ndim(element) == 0
    return np.isscalar(element)


def iterable(y):
    """Say whether one can iterate over `y`; not over an array without axes."""
    try:
        iter(y)
    except TypeError:
        return False
    return True


def iscomplexobj(x):
    """Say whether the dtype of `x` is complex."""
    return x is not None and issubdtype(dtypes.dtype(x), np.complexfloating)


def isrealobj(x):
    """Say whether the dtype of `x` is not complex."""
    return not iscomplexobj(x)


# --- Arrays from values ---------------------------------------------------------------------------

def array(object, dtype=None, copy=True, order="K", ndmin=0, *, device=None):
    """An array of a number, array, buffer, or nested list of those, tracers included.

    Without `dtype` the elements' types are promoted; only a Python number alone stays weakly typed.
    Leading axes of size 1 are added up to `ndmin`. Raises TypeError for elements that are no
    numbers, ValueError for None and ragged lists, OverflowError for integers that don't fit.
    """
    if order not in (None, "K"):
        raise NotImplementedError("only order='K' is implemented")
    if dtype is not None:
        dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "array")
    out = array_of(object, dtype)
    missing = ndmin - out.ndim
    return lax.expand_dims(out, range(missing)) if missing > 0 else out


def asarray(a, dtype=None, order=None, *, copy=None, device=None):
    """As `array`: arrays are immutable, so a copy and the original can't be told apart.

    Only masked NumPy arrays differ: `array` takes their elements without the mask.
    """
    refuse_masked(a)
    return array(a, dtype, order=order, device=device)


def copy(a, order=None):
    """An array of the elements of `a`."""
    return array(a, order=order)


def astype(x, dtype, /, *, copy=False, device=None):
    """`x` converted to `dtype` (the default float for None): complex to real drops the imaginary
    part."""
    check_arraylike("astype", x)
    dtype = requested_dtype("astype", dtype)
    x = array(x)
    if issubdtype(x.dtype, np.complexfloating) and not issubdtype(dtype, np.complexfloating):
        x = x != 0 if dtype == bool else real(x)
    return convert(x, dtype)


def array_of(object, dtype):
    if isinstance(object, (Array, Tracer)):
        return object if dtype is None else convert(object, dtype)
    if hasattr(object, "__jax_array__"):
        return array_of(object.__jax_array__(), dtype)
    if isinstance(object, (list, tuple)):
        return array_of_list(object, dtype)
    weak = dtype is None and type(object) in (int, float, complex)
    return from_host(object, dtype or dtype_of_host(object), weak)


def from_host(value, dtype, weak_type=False):
    with np.errstate(all="ignore"):
        return Array(np.array(value, dtype=dtype, order="C"), weak_type)


def dtype_of_host(x):
    """The dtype of an array made of `x`, which is no array of ours and no list."""
    if x is None:
        raise ValueError("None is not a valid value for an array")
    if type(x) is int:
        return dtypes.scalar_type_to_dtype(int, x)
    kind = getattr(x, "dtype", None) or np.asarray(x).dtype
    if kind != dtypes.float0 and not known_dtype(kind):
        raise TypeError(f"value {x!r:.80} with dtype {kind} is not a valid array type: only "
                        "booleans, integers, floats and complex numbers are")
    return dtypes.canonicalize_dtype(kind)


def known_dtype(kind):
    return kind in dtypes.all_dtypes and kind.isnative


def array_of_list(items, dtype):
    leaves = leaves_of(items)
    traced = any(isinstance(x, (Array, Tracer)) for x in leaves)
    if dtype is None:
        dtype = common_dtype(leaves)
    return stack_nested(items, dtype) if traced else from_host(items, dtype)


def leaves_of(items):
    """The elements of nested lists and tuples, in order."""
    leaves = []
    for x in items:
        if isinstance(x, (list, tuple)):
            leaves += leaves_of(x)
        else:
            leaves.append(x.__jax_array__() if hasattr(x, "__jax_array__") else x)
    return leaves


def common_dtype(leaves):
    """The dtype of an array with such elements. Only one element of each Python type is looked
    at."""
    if not leaves:
        return dtypes.default_float_dtype()
    if None in {None if x is None else 0 for x in leaves}:
        raise ValueError("None is not a valid value for an array")
    python = {type(x): x for x in leaves if type(x) in dtypes.python_scalar_dtypes}
    others = [x for x in leaves if type(x) not in python]
    for x in others:
        if not isinstance(x, (Array, Tracer)):
            dtype_of_host(x)
    found, _ = dtypes.lattice_result_type(*python.values(), *others)
    return dtypes.canonicalize_dtype(found)


def stack_nested(items, dtype):
    parts = [lax.expand_dims(array_of(x, dtype), (0,)) for x in items]
    return lax.concatenate(parts, 0) if parts else from_host([], dtype)


def frombuffer(buffer, dtype=float, count=-1, offset=0):
    """The one-axis array of the bytes of a buffer, read as `dtype`."""
    return from_numpy(np.frombuffer(buffer, dtype=np.dtype(dtype), count=count, offset=offset))


def from_dlpack(x, /, *, device=None, copy=None):
    """An array of the elements of any object that speaks the DLPack protocol."""
    return x if type(x) is Array else from_numpy(np.from_dlpack(x))


def fromiter(*args, **kwargs):
    """Refuse: an iterator yields its elements once, so no function that takes one can be traced
    twice."""
    raise NotImplementedError("jnp.fromiter() is not implemented, since iterators have a state; "
                              "use jnp.asarray(np.fromiter(...))")


def fromstring(string, dtype=float, count=-1, *, sep):
    """The one-axis array of numbers written in a text."""
    return array(np.fromstring(string, dtype=np.dtype(dtype), count=count, sep=sep))


def fromfunction(function, shape, *, dtype=float, **kwargs):
    """The array of function(i, j, …) for all indices in `shape`; the function sees numbers, by
    vmap."""
    shape = canonicalize_shape(shape)
    for i in range(len(shape)):
        in_axes = [0 if i == j else None for j in range(len(shape))]
        function = vmap(function, in_axes=(*in_axes[::-1], *[None] * len(kwargs)))
    return function(*[arange(n, dtype=dtype) for n in shape], **kwargs)


# --- Arrays of one number -------------------------------------------------------------------------

def filled(name, shape, value, dtype):
    shape, dtype = canonicalize_shape(shape), requested_dtype(name, dtype)
    check_shapelike(name, "shape", shape)
    return lax.full(shape, value, dtype)


def requested_dtype(name, dtype):
    """The dtype that a user asked for, or the default float."""
    if dtype is None:
        return dtypes.default_float_dtype()
    return dtypes.check_and_canonicalize_user_dtype(dtype, name)


def zeros(shape, dtype=None, *, device=None):
    """An array of zeros; the default dtype is float32."""
    return filled("zeros", shape, 0, dtype)


def ones(shape, dtype=None, *, device=None):
    """An array of ones; the default dtype is float32."""
    return filled("ones", shape, 1, dtype)


def empty(shape, dtype=None, *, device=None):
    """As `zeros`: an immutable array can't be filled later."""
    return filled("empty", shape, 0, dtype)


def full(shape, fill_value, dtype=None, *, device=None):
    """An array filled with a number, or with an array that broadcasts to `shape`."""
    check_arraylike("full", fill_value)
    if np.ndim(fill_value) == 0:
        return lax.full(shape, fill_value, dtype)
    return broadcast_trailing(asarray(fill_value, dtype), canonicalize_shape(shape))


def broadcast_trailing(x, shape):
    """`x` repeated to fill `shape`, its axes aligned with the last ones."""
    check_shapelike("broadcast_to", "shape", shape)
    if x.shape == shape:
        return x
    first = len(shape) - x.ndim
    if first < 0 or any(n not in (1, m) for n, m in zip(x.shape, shape[first:])):
        raise ValueError(f"Incompatible shapes for broadcasting: {x.shape} and requested shape "
                         f"{shape}")
    return lax.broadcast_in_dim(x, shape, tuple(range(first, len(shape))))


def zeros_like(a, dtype=None, shape=None, *, device=None):
    """Zeros of the shape and dtype of `a`, unless others are given."""
    return filled_like("zeros_like", a, 0, dtype, shape)


def ones_like(a, dtype=None, shape=None, *, device=None):
    """Ones of the shape and dtype of `a`, unless others are given."""
    return filled_like("ones_like", a, 1, dtype, shape)


def empty_like(prototype, dtype=None, shape=None, *, device=None):
    """As `zeros_like`."""
    return filled_like("empty_like", prototype, 0, dtype, shape)


def full_like(a, fill_value, dtype=None, shape=None, *, device=None):
    """An array of the shape and dtype of `a`, unless others are given, filled with `fill_value`."""
    check_arraylike("full_like", fill_value)
    if np.ndim(fill_value) == 0:
        return filled_like("full_like", a, fill_value, dtype, shape)
    shape = np.shape(a) if shape is None else canonicalize_shape(shape)
    return broadcast_trailing(asarray(fill_value, dtypes.dtype(a if dtype is None else dtype)),
                              shape)


def filled_like(name, a, value, dtype, shape):
    if not (hasattr(a, "shape") and hasattr(a, "dtype")):    # a ShapeDtypeStruct will do
        check_arraylike(name, a)
    if dtype is not None:
        dtype = dtypes.check_and_canonicalize_user_dtype(dtype, name)
    return lax.full_like(a, value, dtype, shape)


# --- Ranges ---------------------------------------------------------------------------------------

def arange(start, stop=None, step=None, dtype=None, *, device=None):
    """The numbers start, start + step, … before stop; one argument alone is `stop`.

    The arguments must be known numbers, not tracers; the dtype is their promoted one.
    """
    names = ("stop",) if stop is None and step is None else ("start", "stop", "step")
    if start is None:
        raise TypeError(f"arange: {names[0]} must be a real number, not NoneType")
    given = [None if x is None else range_bound(x, name)
             for x, name in zip((start, stop, step), names)]
    if len(given) == 3 and given[2] is not None and given[2] == 0:
        raise ZeroDivisionError("arange: step must not be 0")
    if dtype is None:
        dtype = dtypes.result_type(*[x for x in given if x is not None])
    dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "arange")
    if len(given) == 1:
        return lax.iota(dtype, max(int(np.ceil(given[0])), 0))
    if stop is None:
        given[:2] = [0, given[0]]
    whole = whole_range(given, dtype)
    return from_host(np.arange(*given, dtype=dtype), dtype) if whole is None else whole


def whole_range(given, dtype):
    """A range of integers as a program can record it, without its elements; None for other
    ranges."""
    if not issubdtype(dtype, np.integer) or not all(x is None or is_int(x) for x in given):
        return None
    start, stop, step = given
    numbers = range(int(start), int(stop), 1 if step is None else int(step))
    if not len(numbers) or not fits(numbers[-1], dtype) or not fits(numbers.step, dtype):
        return None
    i = lax.iota(dtype, len(numbers))
    scaled = i if numbers.step == 1 else i * convert(numbers.step, dtype)
    return scaled if numbers.start == 0 else scaled + convert(numbers.start, dtype)


def fits(x, dtype):
    bounds = dtypes.iinfo(dtype)
    return bounds.min <= x <= bounds.max


def is_int(x):
    return isinstance(x, (int, np.integer)) and not isinstance(x, bool)


def range_bound(x, name):
    if np.ndim(x) != 0:
        raise ValueError(f"jax.numpy.arange: arguments must be scalars; got {name}={x}")
    value = concrete_or_error(lambda v: v, x, f"It arose in the jax.numpy.arange argument '{name}'")
    return value._value[()] if type(value) is Array else value


def linspace(start, stop, num=50, endpoint=True, retstep=False, dtype=None, axis=0, *, device=None):
    """`num` evenly spaced numbers from `start` to `stop`, which is left out if not `endpoint`.

    start and stop may be arrays, broadcast together; the new axis of the result is `axis`. With
    `retstep` return (numbers, step). Integer dtypes round down.
    """
    num = concrete_or_error(operator.index, num, "'num' argument of jnp.linspace")
    if num < 0:
        raise ValueError(f"Number of samples, {num}, must be non-negative.")
    check_arraylike("linspace", start, stop)
    kind = dtypes.to_inexact_dtype(dtypes.result_type(start, stop)) if dtype is None else \
        dtypes.check_and_canonicalize_user_dtype(dtype, "linspace")
    computation = dtypes.to_inexact_dtype(kind)
    shape = lax.broadcast_shapes(np.shape(start), np.shape(stop))
    start, stop = (broadcast_trailing(convert(x, computation), shape) for x in (start, stop))
    out = evenly_spaced(start, stop, num, endpoint)
    out = floor(out) if issubdtype(kind, np.integer) else out
    out = convert(move_first_axis(out, axis), kind)
    return (out, spacing_of(start, stop, num - bool(endpoint))) if retstep else out


def evenly_spaced(start, stop, num, endpoint):
    """Along a new first axis. The ends are exact: (1 - t) start + t stop, then stop itself."""
    parts = num - bool(endpoint)
    if num == 0 or parts <= 0:
        return broadcast_trailing(start, (num, *start.shape))
    kind = finfo(start.dtype).dtype
    t = lax.iota(kind, parts) / convert(parts, kind)
    t = lax.broadcast_in_dim(t, (parts, *[1] * start.ndim), (0,)) if start.ndim else t
    out = start * (1 - t) + stop * t
    return lax.concatenate([out, lax.expand_dims(stop, (0,))], 0) if endpoint else out


def spacing_of(start, stop, parts):
    if parts <= 0:
        return full_like_aval(typeof(start), np.nan)
    return (stop - start) / convert(parts, start.dtype)


def move_first_axis(x, axis):
    axis = canonicalize_axis(axis, x.ndim)
    return lax.transpose(x, [*range(1, axis + 1), 0, *range(axis + 1, x.ndim)])


def logspace(start, stop, num=50, endpoint=True, base=10.0, dtype=None, axis=0):
    """base ** linspace(start, stop, …): numbers evenly spaced on a logarithmic scale."""
    kind = dtypes.to_inexact_dtype(dtypes.result_type(start, stop)) if dtype is None else \
        dtypes.check_and_canonicalize_user_dtype(dtype, "logspace")
    check_arraylike("logspace", start, stop)
    computation = dtypes.to_inexact_dtype(kind)
    exponents = linspace(convert(start, computation), convert(stop, computation), num, endpoint,
                         axis=axis)
    return convert(power(base, exponents), kind)


def geomspace(start, stop, num=50, endpoint=True, dtype=None, axis=0):
    """`num` numbers from `start` to `stop`, each a constant multiple of the one before."""
    kind = dtypes.to_inexact_dtype(dtypes.result_type(start, stop)) if dtype is None else \
        dtypes.check_and_canonicalize_user_dtype(dtype, "geomspace")
    check_arraylike("geomspace", start, stop)
    computation = dtypes.to_inexact_dtype(kind)
    start, stop = convert(start, computation), convert(stop, computation)
    # Two negative ends: count in positive numbers and turn the sign.
    flip = convert(1 - (1 - sign(real(start))) * (1 - sign(real(stop))) // 2, computation)
    out = flip * logspace(log10(flip * start), log10(flip * stop), num, endpoint)
    return convert(move_first_axis(exact_ends(out, start, stop, endpoint), axis), kind)


def exact_ends(x, start, stop, endpoint):
    """`x` with the ends of its first axis replaced, since powers of logarithms miss them by a
    little."""
    count = x.shape[0]
    if count == 0:
        return x
    i = lax.broadcasted_iota(np.int32, x.shape, 0)
    x = lax.select(i == 0, broadcast_trailing(start, x.shape), x)
    if not endpoint or count == 1:
        return x
    return lax.select(i == count - 1, broadcast_trailing(stop, x.shape), x)


# --- Triangles and diagonals ----------------------------------------------------------------------

def eye(N, M=None, k=0, dtype=None, *, device=None):
    """The N×M matrix (M = N if None) with ones on the k-th diagonal and zeros elsewhere."""
    shape, dtype = matrix_request("eye", N, M, dtype)
    return convert(column_minus_row(shape, k, "eye") == 0, dtype)


def identity(n, dtype=None):
    """The n×n matrix with ones on the diagonal."""
    return eye(n, dtype=dtype)


def tri(N, M=None, k=0, dtype=None):
    """The N×M matrix with ones on and below the k-th diagonal."""
    shape, dtype = matrix_request("tri", N, M, dtype)
    return convert(column_minus_row(shape, k, "tri") <= 0, dtype)


def matrix_request(name, N, M, dtype):
    N = concrete_or_error(operator.index, N, f"'N' argument of jnp.{name}()")
    M = N if M is None else concrete_or_error(operator.index, M, f"'M' argument of jnp.{name}()")
    check_shapelike(name, "shape", (N, M))
    return (N, M), requested_dtype(name, dtype)


def column_minus_row(shape, k, name):
    """Of every place of a matrix: how far right of the k-th diagonal it is."""
    k = concrete_or_error(operator.index, k, f"'k' argument of jnp.{name}()")
    row, column = (lax.broadcasted_iota(np.int32, shape, i) for i in range(2))
    return column - row - np.int32(k)


def tril(m, k=0):
    """`m` with zeros above the k-th diagonal of its last two axes."""
    return keep_where("tril", m, k, lambda distance: distance <= 0)


def triu(m, k=0):
    """`m` with zeros below the k-th diagonal of its last two axes."""
    return keep_where("triu", m, k, lambda distance: distance >= 0)


def keep_where(name, m, k, inside):
    check_arraylike(name, m)
    m = asarray(m)
    if m.ndim < 2:
        raise ValueError(f"Argument to jax.numpy.{name} must be at least 2D")
    mask = inside(column_minus_row(m.shape[-2:], k, name))
    return lax.select(broadcast_trailing(mask, m.shape), m, lax.full_like(m, 0))


def diag(v, k=0):
    """The k-th diagonal of a matrix, or for a vector the matrix that has it as its k-th
    diagonal."""
    v = ensure_arraylike("diag", v)
    k = concrete_or_error(operator.index, k, "'k' argument of jnp.diag")
    if v.ndim == 1:
        return matrix_of_diagonal(v, k)
    if v.ndim == 2:
        return diagonal(v, offset=k)
    raise ValueError("diag input must be 1d or 2d")


def matrix_of_diagonal(v, k):
    n = v.shape[0] + abs(k)
    placed = lax.pad(v, full_like_aval(typeof(v).update(shape=()), 0), [(max(0, k), max(0, -k), 0)])
    on_diagonal = column_minus_row((n, n), k, "diag") == 0
    rows = lax.broadcast_in_dim(placed, (n, n), (1,))
    return lax.select(on_diagonal, rows, lax.full_like(rows, 0))


def diagflat(v, k=0):
    """The matrix with the elements of `v`, whatever its shape, on its k-th diagonal."""
    check_arraylike("diagflat", v)
    return diag(lax.reshape(asarray(v), (np.size(v),)), k)


def diagonal(a, offset=0, axis1=0, axis2=1):
    """The diagonals of the matrices in axes axis1 and axis2, as a new last axis."""
    a = ensure_arraylike("diagonal", a)
    if a.ndim < 2:
        raise ValueError("diagonal requires an array of at least two dimensions.")
    offset = concrete_or_error(operator.index, offset, "'offset' argument of jnp.diagonal()")
    axes = canonicalize_axis(axis1, a.ndim), canonicalize_axis(axis2, a.ndim)
    if axes[0] == axes[1]:
        raise ValueError(f"diagonal: axis1 and axis2 must differ, got {axis1} and {axis2}")
    rest = [i for i in range(a.ndim) if i not in axes]
    return last_diagonal(lax.transpose(a, (*rest, *axes)), offset)


def last_diagonal(a, offset):
    # In the flat matrix the elements of a diagonal are columns + 1 apart, so a slice is enough.
    *batch, rows, columns = a.shape
    count = max(0, min(rows - max(-offset, 0), columns - max(offset, 0)))
    flat = lax.reshape(a, (*batch, rows * columns))
    start = max(offset, 0) + max(-offset, 0) * columns if count else 0
    limit = start + (count - 1) * (columns + 1) + 1 if count else 0
    return lax.slice(flat, (*[0] * len(batch), start), (*batch, limit),
                     (*[1] * len(batch), columns + 1))


# --- Grids ----------------------------------------------------------------------------------------

def meshgrid(*xi, copy=True, sparse=False, indexing="xy"):
    """The coordinates of a grid: array i holds the i-th coordinate of every point.

    With indexing 'xy' the first coordinate runs along axis 1, with 'ij' along axis 0; `sparse`
    arrays have size 1 along the other axes.
    """
    check_arraylike("meshgrid", *xi)
    if not copy:
        raise ValueError("jax.numpy.meshgrid only supports copy=True")
    if indexing not in ("xy", "ij"):
        raise ValueError(f"Valid values for indexing are 'xy' and 'ij', got {indexing}")
    xi = [asarray(x) for x in xi]
    if any(x.ndim != 1 for x in xi):
        raise ValueError("Arguments to jax.numpy.meshgrid must be 1D, got shapes "
                         f"{[x.shape for x in xi]}")
    order = list(range(len(xi)))
    if indexing == "xy" and len(xi) >= 2:
        order[:2] = 1, 0
    sizes = [xi[i].shape[0] for i in order]
    return [along_axis(x, order[i], sizes, sparse) for i, x in enumerate(xi)]


def along_axis(x, axis, sizes, sparse):
    target = [n if i == axis or not sparse else 1 for i, n in enumerate(sizes)]
    return lax.broadcast_in_dim(x, target, (axis,))


def indices(dimensions, dtype=None, sparse=False):
    """For every axis of a shape the array of indices along it, stacked (or a tuple if `sparse`)."""
    dtype = dtypes.default_int_dtype() if dtype is None else dtype
    dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "indices")
    shape = canonicalize_shape(dimensions)
    grids = [along_axis(lax.iota(dtype, n), i, shape, sparse) for i, n in enumerate(shape)]
    if sparse:
        return tuple(grids)
    return stack_nested(grids, dtype) if grids else zeros((0,), dtype)


def vander(x, N=None, increasing=False):
    """The matrix of powers of the vector `x`, N columns, from high to low unless `increasing`."""
    x = ensure_arraylike("vander", x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array")
    N = x.shape[0] if N is None else concrete_or_error(operator.index, N, "'N' argument of "
                                                                          "jnp.vander")
    if N < 0:
        raise ValueError("N must be nonnegative")
    exponents = lax.iota(x.dtype, N)
    if not increasing:
        exponents = lax.rev(exponents, (0,))
    return power(lax.expand_dims(x, (1,)), lax.expand_dims(exponents, (0,)))


# --- Windows --------------------------------------------------------------------------------------

def window(name, M, *args):
    M = concrete_or_error(operator.index, M, f"M argument of {name}")
    return from_host(getattr(np, name)(M, *args), dtypes.default_float_dtype())


def bartlett(M):
    """The triangular window of M points."""
    return window("bartlett", M)


def blackman(M):
    """Blackman's window of M points."""
    return window("blackman", M)


def hamming(M):
    """Hamming's window of M points."""
    return window("hamming", M)


def hanning(M):
    """Hann's window of M points."""
    return window("hanning", M)


def kaiser(M, beta):
    """Kaiser's window of M points; beta, a known number, sets its width."""
    beta = concrete_or_error(float, beta, "'beta' argument of jnp.kaiser().", "concrete-values")
    return window("kaiser", M, beta)
