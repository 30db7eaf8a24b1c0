# Exported from notebooks/10_numpy.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: numpy. Home: 10_numpy. In JAX: jax/_src/numpy/util.py.

What happens to operands before a primitive sees them: they are checked, joined in the dtype lattice
and broadcast to one shape. Primitives do none of this; `minijax.numpy` does all of it here.
"""

import numpy as np

from minijax import dtypes, lax
from minijax.array import Array, as_array
from minijax.avals import refuse_masked
from minijax.core import Tracer
from minijax.primitives.elementwise import convert_element_type_p

__all__ = [
    "is_arraylike", "check_arraylike", "check_no_float0s", "holds_float0", "asarray",
    "ensure_arraylike", "convert", "scalar_buffer", "promote_dtypes", "promote_dtypes_numeric",
    "promote_dtypes_inexact", "promote_dtypes_complex", "broadcast_shapes", "promote_shapes",
    "shape_of_equal_ranks", "broadcast_to", "promote_args", "promote_args_numeric",
    "promote_args_inexact", "promote_by", "promote_quickly", "two_alike", "array_and_number",
]


# --- What counts as an array ----------------------------------------------------------------------

_ARRAY_TYPES = (Array, Tracer, np.ndarray, np.generic, bool, int, float, complex)


def is_arraylike(x):
    """Whether `x` is an array, a tracer, a number, or converts itself by `__jax_array__`."""
    return isinstance(x, _ARRAY_TYPES) or hasattr(x, "__jax_array__")


def check_arraylike(fun_name, *args):
    """Raise TypeError, naming the function and the position, unless all are array-like.

    Masked NumPy arrays are a ValueError.
    """
    for position, x in enumerate(args):
        if not is_arraylike(x):
            raise TypeError(f"{fun_name} requires ndarray or scalar arguments, got {type(x)} "
                            f"at position {position}.")
        refuse_masked(x)


def check_no_float0s(fun_name, *args):
    """Raise TypeError if an argument is the tangent of an integer, which holds nothing."""
    if any(holds_float0(x) for x in args):
        raise TypeError(f"{fun_name} was called with a float0 array. Such arrays are derivatives "
                        "by integers; they hold no numbers, so nothing can be computed from them. "
                        "np.zeros_like(x, float) makes an array of zeros of the same shape.")


def holds_float0(x):
    dtype = getattr(x, "dtype", None)
    return isinstance(dtype, np.dtype) and dtype.kind == "V" and dtype == dtypes.float0


def asarray(x):
    """`x` as an Array or tracer; Python numbers become weakly typed Arrays.

    The conversion of a known value is never part of a program.
    """
    if isinstance(x, (Array, Tracer)):
        return x
    if hasattr(x, "__jax_array__"):
        return asarray(x.__jax_array__())
    return as_array(x)


def ensure_arraylike(fun_name, *args):
    """The arguments as arrays, checked: one array if there is one argument, else a list."""
    check_arraylike(fun_name, *args)
    return asarray(args[0]) if len(args) == 1 else [asarray(x) for x in args]


# --- Dtypes ---------------------------------------------------------------------------------------

def convert(x, dtype, weak_type=False):
    """`x` at a dtype and weak type: a constant at once, anything else by `convert_element_type`."""
    kind = type(x)
    if kind in dtypes.python_scalar_dtypes:
        return Array(scalar_buffer(x, dtype), weak_type)
    if kind is Array or isinstance(x, Tracer):
        if x.dtype == dtype and x.weak_type == weak_type:
            return x
        return convert_element_type_p.bind(x, new_dtype=dtype, weak_type=weak_type)
    if hasattr(x, "__jax_array__"):
        return convert(x.__jax_array__(), dtype, weak_type)
    return Array(np.array(x).astype(dtype), weak_type)


def scalar_buffer(x, dtype):
    # An int fits the default int or it is an error, but wraps around in narrower dtypes.
    if type(x) is int and abs(x) >> 31:
        as_array(x)                         # raises OverflowError if there are no 64 bits
    try:
        return np.array(x, dtype)
    except OverflowError:
        return as_array(x)._value.astype(dtype)


def promote_dtypes(*args):
    """The arguments at the dtype in which they join."""
    dtype, weak_type = dtypes.lattice_result_type(*args)
    return [convert(x, dtype, weak_type) for x in args]


def promote_dtypes_numeric(*args):
    """As `promote_dtypes`, with bool become int32."""
    dtype, weak_type = dtypes.lattice_result_type(*args)
    return [convert(x, dtypes.to_numeric_dtype(dtype), weak_type) for x in args]


def promote_dtypes_inexact(*args):
    """As `promote_dtypes`, with integers and bool become floats."""
    dtype, weak_type = dtypes.lattice_result_type(*args)
    return [convert(x, dtypes.to_inexact_dtype(dtype), weak_type) for x in args]


def promote_dtypes_complex(*args):
    """As `promote_dtypes`, with everything become complex."""
    dtype, weak_type = dtypes.lattice_result_type(*args)
    return [convert(x, dtypes.to_complex_dtype(dtype), weak_type) for x in args]


# --- Shapes ---------------------------------------------------------------------------------------

def broadcast_shapes(*shapes):
    """The shape to which all shapes broadcast; ValueError if there is none."""
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        raise ValueError(f"Incompatible shapes for broadcasting: shapes={list(shapes)}") from None


def promote_shapes(fun_name, *arrays):
    """The arrays broadcast to one shape, as NumPy does; scalars stay scalars beside an array."""
    shapes = [x.shape for x in arrays]
    if len({s for s in shapes if s}) < 2:
        return list(arrays)
    if len({len(s) for s in shapes}) > 1:
        shape = broadcast_shapes(*shapes)
    else:
        shape = shape_of_equal_ranks(fun_name, shapes)
    return [broadcast_to(x, shape) if x.shape else x for x in arrays]


def shape_of_equal_ranks(fun_name, shapes):
    try:
        return broadcast_shapes(*shapes)
    except ValueError:
        raise TypeError(f"{fun_name} got incompatible shapes for broadcasting: "
                        f"{', '.join(map(str, shapes))}.") from None


def broadcast_to(x, shape):
    """`x` in a shape to which it broadcasts: its axes are the last ones of `shape`."""
    if x.shape == tuple(shape):
        return x
    first = len(shape) - x.ndim
    return lax.broadcast_in_dim(x, shape, tuple(range(first, len(shape))))


# --- All of it ------------------------------------------------------------------------------------

def promote_args(fun_name, *args):
    """Check the arguments, join their dtypes and broadcast them."""
    return promote_quickly(args) or promote_by(promote_dtypes, fun_name, args)


def promote_args_numeric(fun_name, *args):
    """As `promote_args`, with bool become int32."""
    arrays = promote_quickly(args)
    if arrays and arrays[0]._value.dtype.kind != "b":
        return arrays
    return promote_by(promote_dtypes_numeric, fun_name, args)


def promote_args_inexact(fun_name, *args):
    """As `promote_args`, with integers and bool become floats."""
    arrays = promote_quickly(args)
    if arrays and arrays[0]._value.dtype.kind in "fc":
        return arrays
    return promote_by(promote_dtypes_inexact, fun_name, args)


def promote_by(promote, fun_name, args):
    check_arraylike(fun_name, *args)
    check_no_float0s(fun_name, *args)
    args = [x if isinstance(x, _ARRAY_TYPES) else asarray(x) for x in args]
    return promote_shapes(fun_name, *promote(*args))


# --- The usual cases ------------------------------------------------------------------------------

# Most calls have one Array, two of the same type, or an Array and a Python number. For those,
# what follows gives what `promote_by` would, in a tenth of the time.
# Python type -> kinds of dtype that such a number takes on
_ABSORBED_BY = {int: "iufc", float: "fc", complex: "c"}


def promote_quickly(args):
    """The promoted arguments if this is a usual case, else None."""
    if len(args) == 2:
        x, y = args
        if type(x) is Array:
            return two_alike(x, y) if type(y) is Array else array_and_number(x, y)
        if type(y) is Array:
            pair = array_and_number(y, x)
            return pair and pair[::-1]
    elif len(args) == 1 and type(args[0]) is Array and args[0]._value.dtype.kind != "V":
        return args
    return None


def two_alike(x, y):
    u, v = x._value, y._value
    if (u.dtype is v.dtype and u.shape == v.shape and x.weak_type is y.weak_type
            and u.dtype.kind != "V"):     # V: float0, which must be refused, and narrow floats
        return x, y
    return None


def array_and_number(x, number):
    dtype = x._value.dtype
    if x.weak_type or dtype.kind not in _ABSORBED_BY.get(type(number), ""):
        return None
    return x, Array(scalar_buffer(number, dtype))
