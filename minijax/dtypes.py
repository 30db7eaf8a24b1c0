# Exported from notebooks/ref_foundations.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: foundations. Home: ref_foundations. In JAX: jax/_src/dtypes.py.

A value's type here is a pair (dtype, weak). Two types join in the promotion lattice, a small
graph of names in which the weak types int*, float*, complex* are nodes of their own.
"""

import abc
import functools
import warnings

import ml_dtypes
import numpy as np

from minijax.config import enable_x64, numpy_dtype_promotion

__all__ = [
    "bfloat16", "float8_e3m4", "float8_e4m3", "float8_e4m3b11fnuz", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz", "float8_e8m0fnu", "float6_e2m3fn",
    "float6_e3m2fn", "float4_e2m1fn", "int2", "int4", "uint2", "uint4", "all_dtypes", "computed_in",
    "float0", "finfo", "iinfo", "extended", "prng_key", "ExtendedDType", "issubdtype", "isdtype",
    "supports_inf", "lowest", "highest", "python_scalar_dtypes", "canonicalize_dtype",
    "default_int_dtype", "default_uint_dtype", "default_float_dtype", "default_complex_dtype",
    "scalar_type_to_dtype", "check_and_canonicalize_user_dtype", "check_valid_dtype", "dtype",
    "is_weakly_typed", "dtype_and_weak_type", "scalar_type_of", "to_numeric_dtype",
    "to_inexact_dtype", "to_floating_dtype", "to_complex_dtype", "promotion_lattice",
    "TypePromotionError", "promote_types", "lattice_result_type", "result_type", "safe_to_cast",
]


# --- The dtypes -----------------------------------------------------------------------------------

bfloat16 = ml_dtypes.bfloat16
float8_e3m4 = ml_dtypes.float8_e3m4
float8_e4m3 = ml_dtypes.float8_e4m3
float8_e4m3b11fnuz = ml_dtypes.float8_e4m3b11fnuz
float8_e4m3fn = ml_dtypes.float8_e4m3fn
float8_e4m3fnuz = ml_dtypes.float8_e4m3fnuz
float8_e5m2 = ml_dtypes.float8_e5m2
float8_e5m2fnuz = ml_dtypes.float8_e5m2fnuz
float8_e8m0fnu = ml_dtypes.float8_e8m0fnu
float6_e2m3fn = ml_dtypes.float6_e2m3fn
float6_e3m2fn = ml_dtypes.float6_e3m2fn
float4_e2m1fn = ml_dtypes.float4_e2m1fn
int2 = ml_dtypes.int2
int4 = ml_dtypes.int4
uint2 = ml_dtypes.uint2
uint4 = ml_dtypes.uint4

_TINY_FLOATS = (float4_e2m1fn, float6_e2m3fn, float6_e3m2fn, float8_e3m4, float8_e4m3,
                float8_e8m0fnu, float8_e4m3b11fnuz, float8_e4m3fn, float8_e4m3fnuz,
                float8_e5m2, float8_e5m2fnuz)
_CUSTOM_FLOATS = (*_TINY_FLOATS, bfloat16)
_CUSTOM_SIGNED, _CUSTOM_UNSIGNED = (int2, int4), (uint2, uint4)


def _dtypes(*types):
    return tuple(np.dtype(t) for t in types)


# JAX: _jax_types, by kind and from narrow to wide
_BOOL = _dtypes("bool")
_UNSIGNED = _dtypes(*_CUSTOM_UNSIGNED, "uint8", "uint16", "uint32", "uint64")
_SIGNED = _dtypes(*_CUSTOM_SIGNED, "int8", "int16", "int32", "int64")
_FLOATS = _dtypes(*_CUSTOM_FLOATS, "float16", "float32", "float64")
_COMPLEX = _dtypes("complex64", "complex128")
all_dtypes = _BOOL + _UNSIGNED + _SIGNED + _FLOATS + _COMPLEX

# dtypes too narrow to compute in, and those that their numbers are computed in
computed_in = {
    **dict.fromkeys(_dtypes(*_CUSTOM_FLOATS, "float16"), np.dtype("float32")),
    **dict.fromkeys(_dtypes(*_CUSTOM_SIGNED), np.dtype("int8")),
    **dict.fromkeys(_dtypes(*_CUSTOM_UNSIGNED), np.dtype("uint8")),
}

# the tangent type of integers and booleans: no bytes, so nothing can be stored in it
float0 = np.dtype([("float0", np.void, 0)])

_VALID = frozenset((float0, *all_dtypes))

finfo = ml_dtypes.finfo
iinfo = ml_dtypes.iinfo


# --- Extended dtypes ------------------------------------------------------------------------------

class extended(np.generic):
    """Scalar class above all extended dtypes, only for `issubdtype`."""


class prng_key(extended):
    """Scalar class of random keys, only for `issubdtype`."""


class ExtendedDType(abc.ABC):
    """Base of dtypes that NumPy does not know, such as that of random keys."""

    @property
    @abc.abstractmethod
    def type(self):
        """The scalar class, a subclass of `extended`."""


# --- Kinds ----------------------------------------------------------------------------------------

def issubdtype(a, b):
    """Say whether dtype `a` is of kind `b`, as np.issubdtype; bfloat16 is a np.floating here."""
    known = (type, np.dtype, ExtendedDType)
    return _issubdtype(a if isinstance(a, known) else np.dtype(a),
                       b if isinstance(b, known) else np.dtype(b))


@functools.lru_cache(1024)
def _issubdtype(a, b):
    if isinstance(b, ExtendedDType):
        return a == b
    a, b = _scalar_class(a), _scalar_class(b)
    for types, parents in _CUSTOM_PARENTS:
        if a in types:
            return b is a or b in parents
    return bool(np.issubdtype(a, b))


def _scalar_class(t):
    if isinstance(t, ExtendedDType):
        return t.type
    is_class = isinstance(t, type) and issubclass(t, np.generic)
    return t if is_class else np.dtype(t).type


# the scalar classes of ml_dtypes descend from np.generic only
_CUSTOM_PARENTS = (
    (_CUSTOM_FLOATS, (np.floating, np.inexact, np.number, np.generic)),
    (_CUSTOM_SIGNED, (np.signedinteger, np.integer, np.number, np.generic)),
    (_CUSTOM_UNSIGNED, (np.unsignedinteger, np.integer, np.number, np.generic)),
)

_KINDS = {
    "bool": _BOOL, "signed integer": _SIGNED, "unsigned integer": _UNSIGNED,
    "integral": _SIGNED + _UNSIGNED, "real floating": _FLOATS, "complex floating": _COMPLEX,
    "numeric": _SIGNED + _UNSIGNED + _FLOATS + _COMPLEX,
}


def isdtype(dtype, kind):
    """Say whether `dtype` belongs to `kind`: a name of the array API, a dtype, or a tuple of them.

    Raises ValueError for a string that names neither a kind nor a dtype.
    """
    kinds = kind if isinstance(kind, tuple) else (kind,)
    return any(np.dtype(dtype) in _dtypes_of_kind(k) for k in kinds)


def _dtypes_of_kind(kind):
    if isinstance(kind, str) and kind in _KINDS:
        return _KINDS[kind]
    try:
        return _dtypes(kind)
    except TypeError as error:
        if isinstance(kind, str):
            raise ValueError(f"unrecognized kind {kind!r}: expected one of {list(_KINDS)} "
                             "or a dtype") from error
        raise TypeError(f"kind must be a string, a dtype or a tuple, got {kind!r}") from error


@functools.cache
def supports_inf(dtype):
    """Say whether the dtype is inexact and has an infinity (many 8-bit floats have none)."""
    return issubdtype(dtype, np.inexact) and bool(np.isinf(np.array(np.inf).astype(dtype)))


def lowest(dtype):
    """The number that is above no other one of the dtype: -∞ if it has that."""
    if dtype == np.bool_:
        return np.False_
    if issubdtype(dtype, np.inexact):
        return dtype.type(-np.inf if supports_inf(dtype) else finfo(dtype).min)
    return dtype.type(iinfo(dtype).min)


def highest(dtype):
    """The number that is below no other one of the dtype: ∞ if it has that."""
    if dtype == np.bool_:
        return np.True_
    if issubdtype(dtype, np.inexact):
        return dtype.type(np.inf if supports_inf(dtype) else finfo(dtype).max)
    return dtype.type(iinfo(dtype).max)


# --- Defaults and canonical dtypes ----------------------------------------------------------------

python_scalar_dtypes = {
    bool: np.dtype("bool"), int: np.dtype("int64"),
    float: np.dtype("float64"), complex: np.dtype("complex128"),
}

_TO_32_BIT = {np.dtype(wide): np.dtype(narrow) for wide, narrow in [
    ("int64", "int32"), ("uint64", "uint32"), ("float64", "float32"), ("complex128", "complex64")]}


def canonicalize_dtype(dtype, allow_extended_dtype=False):
    """Return the np.dtype that `dtype` stands for: 64-bit ones become 32-bit unless x64 is on."""
    if isinstance(dtype, ExtendedDType):
        if allow_extended_dtype:
            return dtype
        raise ValueError(f"an ordinary dtype is expected here, got {dtype}")
    return _canonicalize(dtype, enable_x64.value)


@functools.lru_cache(1024)
def _canonicalize(dtype, x64):
    try:
        dtype = np.dtype(dtype)
    except TypeError as error:
        raise TypeError(f"dtype {dtype!r} not understood") from error
    return dtype if x64 else _TO_32_BIT.get(dtype, dtype)


def default_int_dtype():
    """Return int32, or int64 under x64."""
    return canonicalize_dtype(np.int64)


def default_uint_dtype():
    """Return uint32, or uint64 under x64."""
    return canonicalize_dtype(np.uint64)


def default_float_dtype():
    """Return float32, or float64 under x64."""
    return canonicalize_dtype(np.float64)


def default_complex_dtype():
    """Return complex64, or complex128 under x64."""
    return canonicalize_dtype(np.complex128)


@functools.cache
def _default_dtype(t, x64):
    unsigned = issubdtype(t, np.unsignedinteger)
    wide = np.dtype("uint64") if unsigned else python_scalar_dtypes[_scalar_type(t)]
    return wide if x64 else _TO_32_BIT.get(wide, wide)


def scalar_type_to_dtype(typ, value=None):
    """Return the default dtype of a Python scalar type.

    Raises OverflowError when `value` is an int that the dtype cannot hold.
    """
    dtype = canonicalize_dtype(python_scalar_dtypes[typ])
    if typ is int and value is not None:
        bounds = np.iinfo(dtype)
        if not bounds.min <= value <= bounds.max:
            raise OverflowError(f"Python int {value} too large to convert to {dtype}")
    return dtype


# --- Requests by the user -------------------------------------------------------------------------

def check_and_canonicalize_user_dtype(dtype, fun_name=""):
    """Return the dtype to use for one that a user asked for.

    Warns when a 64-bit dtype is truncated because x64 is off.  Raises TypeError for dtypes that
    arrays cannot have and ValueError for None.
    """
    if dtype is None:
        raise ValueError("dtype must be specified, got None")
    if isinstance(dtype, ExtendedDType):
        return dtype
    if isinstance(dtype, type) and dtype in python_scalar_dtypes:
        return canonicalize_dtype(dtype)
    return _canonicalize_explicit(check_valid_dtype(np.dtype(dtype)), fun_name)


def check_valid_dtype(dtype):
    """Return the np.dtype unchanged, or raise TypeError if arrays cannot have it."""
    if dtype not in _VALID:
        raise TypeError(f"dtype {dtype} is not a valid JAX array type: "
                        "only booleans, integers, floats and complex numbers are")
    return dtype


def _canonicalize_explicit(dtype, fun_name):
    canonical = canonicalize_dtype(dtype)
    if canonical != dtype:
        where = f" in {fun_name}" if fun_name else ""
        warnings.warn(f"Explicitly requested dtype {dtype}{where} is not available and becomes "
                      f"{canonical}; config.update('jax_enable_x64', True) makes it available.",
                      stacklevel=4)
    return canonical


# --- The type of a value --------------------------------------------------------------------------

_WEAK_SCALARS = frozenset((int, float, complex))


def dtype(x):
    """Return the canonical dtype of an array, scalar, dtype, dtype name or scalar type.

    Our own arrays, tracers and avals (anything with a `weak_type`) keep a 64-bit dtype even when
    x64 is off; every other 64-bit dtype becomes 32-bit.  Raises TypeError for other objects.
    """
    return dtype_and_weak_type(x)[0]


def is_weakly_typed(x):
    """Say whether `x` adapts to the dtype of others: Python numbers and weakly typed arrays."""
    return type(x) in _WEAK_SCALARS or bool(getattr(x, "weak_type", False))


def dtype_and_weak_type(x):
    """Return the pair (dtype, weak) of a value or type."""
    weak = getattr(x, "weak_type", None)
    if weak is True or weak is False:      # an instance of ours, not a class with such a property
        return x.dtype, weak
    scalar_type = type(x)
    if scalar_type in python_scalar_dtypes:
        return _default_dtype(scalar_type, enable_x64.value), scalar_type in _WEAK_SCALARS
    if isinstance(x, (type, str, np.dtype)):
        return _dtype_of_type(x)
    return _dtype_of_array(x), False


def _dtype_of_type(t):
    if isinstance(t, type) and t in python_scalar_dtypes:
        return canonicalize_dtype(t), t in _WEAK_SCALARS
    if isinstance(t, type) and not issubclass(t, np.generic):
        return _dtype_of_array(t), False   # a class with a dtype attribute, such as jnp.float32
    return _canonicalize_explicit(check_valid_dtype(np.dtype(t)), "dtype"), False


def _dtype_of_array(x):
    if x is None:
        raise ValueError("None has no dtype")
    found = getattr(x, "dtype", None)
    if isinstance(found, ExtendedDType):
        return found
    if isinstance(x, ExtendedDType):
        return x
    if not isinstance(found, np.dtype):
        try:
            found = np.result_type(x)
        except TypeError as error:
            raise TypeError(f"cannot determine the dtype of {x!r}") from error
    return canonicalize_dtype(check_valid_dtype(found))


def scalar_type_of(x):
    """Return the Python scalar type (bool, int, float or complex) of a value or dtype.

    Raises TypeError for dtypes that are no numbers.
    """
    return _scalar_type(dtype(x))


@functools.cache
def _scalar_type(dtype):
    for kind, scalar in [(np.bool_, bool), (np.integer, int), (np.floating, float),
                         (np.complexfloating, complex)]:
        if issubdtype(dtype, kind):
            return scalar
    raise TypeError(f"{dtype} has no scalar type")


# --- From one kind to another ---------------------------------------------------------------------

_TO_INEXACT = {
    **dict.fromkeys(_dtypes("bool", "uint4", "int4", "uint8", "int8", "uint16", "int16",
                            "uint32", "int32"), np.dtype("float32")),
    **dict.fromkeys(_dtypes("uint64", "int64"), np.dtype("float64")),
}


def to_numeric_dtype(dtype):
    """Return int32 for bool and every other dtype unchanged."""
    dtype = np.dtype(dtype)
    return np.dtype("int32") if dtype == bool else dtype


def to_inexact_dtype(dtype):
    """Return the float dtype in which an integer or boolean computes; others stay."""
    dtype = np.dtype(dtype)
    return _TO_INEXACT.get(dtype, dtype)


def to_floating_dtype(dtype):
    """Return the real float dtype in which `dtype` computes: that of its parts if complex."""
    return finfo(to_inexact_dtype(dtype)).dtype


def to_complex_dtype(dtype):
    """Return the complex dtype in which `dtype` computes."""
    wide = to_inexact_dtype(dtype) in _dtypes("float64", "complex128")
    return np.dtype("complex128" if wide else "complex64")


# --- The promotion lattice ------------------------------------------------------------------------

_TINY_FLOAT_NAMES = tuple(np.dtype(t).name for t in _TINY_FLOATS)
_NEVER_PROMOTED = frozenset((*_TINY_FLOAT_NAMES, "int2", "int4", "uint2", "uint4"))
_WEAK_NODES = {"int*": int, "float*": float, "complex*": complex}


@functools.cache
def promotion_lattice(mode="standard", x64=True):
    """Return the lattice as a dict: the name of a type -> the types immediately above it.

    `mode` is 'standard' or 'strict'; without `x64` no 64-bit type arises from narrower ones.
    """
    if mode == "strict":
        return _strict_lattice()
    return {
        "bool": ("int*",),
        "int*": ("uint8", "uint2", "uint4", "int8", "int2", "int4"),
        "uint2": (), "uint4": (), "int2": (), "int4": (),
        "uint8": ("int16", "uint16"),
        "uint16": ("int32", "uint32"),
        "uint32": ("int64" if x64 else "int32", "uint64"),
        "uint64": ("float*",),
        "int8": ("int16",), "int16": ("int32",), "int32": ("int64",), "int64": ("float*",),
        "float*": (*_TINY_FLOAT_NAMES, "bfloat16", "float16", "complex*"),
        **dict.fromkeys(_TINY_FLOAT_NAMES, ()),
        "bfloat16": ("float32",), "float16": ("float32",),
        "float32": ("float64", "complex64"), "float64": ("complex128",),
        "complex*": ("complex64",), "complex64": ("complex128",), "complex128": (),
    }


def _strict_lattice():
    names = lambda dtypes: tuple(d.name for d in dtypes)
    return {
        **dict.fromkeys(names(all_dtypes), ()),
        "int*": ("float*", *names(_UNSIGNED + _SIGNED)),
        "float*": ("complex*", *names(_FLOATS)),
        "complex*": names(_COMPLEX),
    }


@functools.cache
def _upper_bounds(mode, x64):
    lattice = promotion_lattice(mode, x64)

    @functools.cache
    def above(node):
        return frozenset([node]).union(*map(above, lattice[node]))

    return {node: above(node) for node in lattice}


class TypePromotionError(ValueError):
    """Raised when dtypes have no common type in the lattice; cast one of them with `astype`."""


def _least_upper_bound(mode, x64, nodes):
    above = _upper_bounds(mode, x64)
    for node in nodes:
        if node not in above:
            raise ValueError(f"dtype {node} takes no part in type promotion")
    common = frozenset.intersection(*(above[node] for node in nodes))
    least = [c for c in common if common <= above[c]]
    if not least:
        raise TypePromotionError(_no_promotion(mode, nodes))
    return least[0]


def _no_promotion(mode, nodes):
    remedy = "cast explicitly with x.astype(...)"
    if mode == "strict":
        remedy += " or set jax_numpy_dtype_promotion to 'standard'"
    narrow = sorted(_NEVER_PROMOTED.intersection(nodes))
    why = f" ({narrow[0]} is too narrow to be promoted silently)" if narrow else ""
    return f"no implicit promotion of {' and '.join(sorted(nodes))}{why}: {remedy}"


# --- Joining types --------------------------------------------------------------------------------

def promote_types(a, b):
    """Return the dtype in which a binary operation on dtypes `a` and `b` computes.

    The Python types int, float and complex are weak.  Raises TypePromotionError without a path.
    """
    nodes = frozenset((_promotion_node(a), _promotion_node(b)))
    return _node_dtype(_least_upper_bound(numpy_dtype_promotion.value, enable_x64.value, nodes))


def _promotion_node(t):
    if isinstance(t, type) and t in _WEAK_SCALARS:
        return t.__name__ + "*"
    return np.dtype(t).name


def _node_dtype(node):
    return np.dtype(_WEAK_NODES.get(node, node))


def lattice_result_type(*args):
    """Return (dtype, weak) of the join of all arguments' types."""
    types = tuple([dtype_and_weak_type(arg) for arg in args])
    return _join(numpy_dtype_promotion.value, enable_x64.value, types)


@functools.lru_cache(4096)
def _join(mode, x64, types):
    dtypes = {d for d, _ in types}
    all_weak = all(weak for _, weak in types)
    if len(types) == 1 or len(dtypes) == 1 and not all_weak:
        found = types[0][0]     # needs no lattice, so extended dtypes pass
        return found, all_weak and found != bool
    if all_weak and mode != "strict":
        # join the strong counterparts: a weak int16 is not the weak int of the lattice
        node = _least_upper_bound(mode, x64, frozenset(d.name for d in dtypes))
    else:
        node = _least_upper_bound(mode, x64, frozenset(map(_node_of, types)))
        all_weak = node in _WEAK_NODES
    joined = _node_dtype(node)
    joined = joined if x64 else _TO_32_BIT.get(joined, joined)
    return joined, all_weak and joined != bool


def _node_of(dtype_and_weak):
    dtype, weak = dtype_and_weak
    if isinstance(dtype, ExtendedDType):
        return str(dtype)
    return f"{_scalar_type(dtype).__name__}*" if weak and dtype != bool else dtype.name


def result_type(*args, return_weak_type_flag=False):
    """Return the dtype of an operation on all arguments (values, dtypes, scalar types).

    With `return_weak_type_flag`, return (dtype, weak).  A weak result has a default dtype.
    Raises TypePromotionError if two types have no join, ValueError without arguments.
    """
    if not args:
        raise ValueError("at least one array or dtype is required")
    types = [dtype_and_weak_type(default_float_dtype() if arg is None else arg) for arg in args]
    joined = types[0]
    if joined[1] or types.count(joined) != len(types):
        joined = _join_to_default(numpy_dtype_promotion.value, enable_x64.value, tuple(types))
    return joined if return_weak_type_flag else joined[0]


@functools.lru_cache(4096)
def _join_to_default(mode, x64, types):
    joined, weak = _join(mode, x64, types)
    return (_default_dtype(joined, x64) if weak else joined), weak


def safe_to_cast(source, target):
    """Say whether promotion would turn the type of `source` into the dtype of `target`."""
    target_dtype = dtype(target)
    return dtype(source) == target_dtype or result_type(source, target_dtype) == target_dtype
