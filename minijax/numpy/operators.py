# Exported from notebooks/ref_package.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: numpy. Home: ref_package. In JAX: jax/_src/numpy/array_methods.py.

Python's operators and NumPy's methods, put on `Array` and `Tracer` at once, so that code can't tell
them apart. `minijax.numpy` imports this module for that effect.
"""

import numpy as np

from minijax import dtypes, lax
from minijax.api import check_devices
from minijax.array import Array
from minijax.core import Tracer, concrete_or_error
from minijax.numpy import (
    contractions, creation, indexing, manipulation, reductions, sorting, ufuncs,
)
from minijax.tracebacks import api_boundary, bound_methods, let_out

__all__ = [
    "takes", "refuse", "operator_method", "reflected_method", "ARITHMETIC", "COMPARISONS",
    "round_number", "contains", "OTHER_OPERATORS", "reshape_method", "transpose_method", "flatten",
    "astype", "copy", "compress", "view", "bitcast", "view_of_bools", "byteswap", "tobytes",
    "to_device", "METHODS", "no_flat", "PROPERTIES", "PYTHONS", "UPDATES", "install",
]


# --- Which operands an operator takes -------------------------------------------------------------

_OPERAND_TYPES = (Array, Tracer, int, float, complex, np.ndarray, np.generic)
_FAST_TYPES = frozenset((Array, int, float))
_NEVER_OPERANDS = (list, tuple, set, dict)


def takes(x):
    """Whether `x` may stand beside an array; other types get their turn by NotImplemented."""
    return isinstance(x, _OPERAND_TYPES) or hasattr(x, "__jax_array__")


def refuse(symbol, self, other):
    """NotImplemented, or for containers a TypeError: they would repeat or compare themselves."""
    if isinstance(other, _NEVER_OPERANDS):
        raise TypeError(f"unsupported operand type(s) for {symbol}: {type(self).__name__!r} and "
                        f"{type(other).__name__!r}")
    return NotImplemented


def operator_method(symbol, function):
    def method(self, other):
        try:
            if type(other) in _FAST_TYPES or takes(other):
                return function(self, other)
            return refuse(symbol, self, other)
        except Exception as error:
            let_out(error)
            raise
    return method


def reflected_method(symbol, function):
    def method(self, other):
        try:
            if type(other) in _FAST_TYPES or takes(other):
                return function(other, self)
            return refuse(symbol, self, other)
        except Exception as error:
            let_out(error)
            raise
    return method


# --- Operators ------------------------------------------------------------------------------------

# name -> (symbol, function); each has a reflected form too
ARITHMETIC = {
    "add": ("+", ufuncs.add),
    "sub": ("-", ufuncs.subtract),
    "mul": ("*", ufuncs.multiply),
    "truediv": ("/", ufuncs.true_divide),
    "floordiv": ("//", ufuncs.floor_divide),
    "mod": ("%", ufuncs.remainder),
    "divmod": ("divmod()", ufuncs.divmod),
    "pow": ("**", ufuncs.power),
    "matmul": ("@", contractions.matmul),
    "and": ("&", ufuncs.bitwise_and),
    "or": ("|", ufuncs.bitwise_or),
    "xor": ("^", ufuncs.bitwise_xor),
    "lshift": ("<<", ufuncs.left_shift),
    "rshift": (">>", ufuncs.right_shift),
}

COMPARISONS = {
    "eq": ("==", ufuncs.equal),
    "ne": ("!=", ufuncs.not_equal),
    "lt": ("<", ufuncs.less),
    "le": ("<=", ufuncs.less_equal),
    "gt": (">", ufuncs.greater),
    "ge": (">=", ufuncs.greater_equal),
}


def round_number(self, ndigits=None):
    """Without digits Python wants an integer."""
    out = ufuncs.round(self, ndigits or 0)
    return lax.convert_element_type(out, dtypes.default_int_dtype()) if ndigits is None else out


def contains(self, x):
    """Whether an element equals x: a scalar bool array."""
    return bool(reductions.any(ufuncs.equal(self, x)))


OTHER_OPERATORS = {
    "__neg__": ufuncs.negative,
    "__pos__": ufuncs.positive,
    "__abs__": ufuncs.absolute,
    "__invert__": ufuncs.invert,
    "__round__": round_number,
    "__contains__": contains,
    "__getitem__": indexing.getitem,
}


# --- Methods --------------------------------------------------------------------------------------

def reshape_method(self, *args, order="C"):
    """The same elements in another shape, given as a tuple or as several integers."""
    shape = args[0] if len(args) == 1 else args
    return manipulation.reshape(self, shape, order)


def transpose_method(self, *args):
    """Axes reordered: reversed, or as given by a tuple or by several integers."""
    if not args:
        axes = None
    else:
        axes = args[0] if len(args) == 1 and (args[0] is None or np.ndim(args[0])) else args
    return manipulation.transpose(self, axes)


def flatten(self, order="C"):
    """The elements as a vector."""
    return manipulation.ravel(self, order)


def astype(self, dtype, copy=False, device=None):
    """The elements converted to another dtype."""
    return creation.astype(self, dtype, copy=copy, device=device)


def copy(self):
    """A copy; arrays are immutable, so it may share its buffer."""
    return lax.copy_p.bind(self)


def compress(self, condition, axis=None, *, out=None, size=None, fill_value=0):
    """The slices along `axis` where a condition holds."""
    return indexing.compress(condition, self, axis, size=size, fill_value=fill_value, out=out)


def view(self, dtype=None, type=None):
    """The bits read as another dtype; a dtype of another size changes the last axis."""
    if type is not None:
        raise NotImplementedError("view with a `type` is not supported: there are no subclasses")
    if dtype is None:
        return self
    dtype = dtypes.check_and_canonicalize_user_dtype(dtype, "view")
    old, new = self.dtype.itemsize, dtype.itemsize
    if bool in (self.dtype, dtype):
        return view_of_bools(self, dtype)
    if old == new:
        return bitcast(self, dtype)
    if not self.ndim:
        raise ValueError("Changing the dtype of a 0d array is only supported if the itemsize is "
                         "unchanged")
    if old > new:
        parts = bitcast(self, dtype)
        return lax.reshape(parts, (*self.shape[:-1], self.shape[-1] * (old // new)))
    if self.shape[-1] * old % new:
        raise ValueError("When changing to a larger dtype, its size must be a divisor of the total "
                         "size in bytes of the last axis of the array.")
    parts = lax.reshape(self, (*self.shape[:-1], self.shape[-1] * old // new, new // old))
    return bitcast(parts, dtype)


def bitcast(x, dtype):
    """Complex numbers too, by way of their parts."""
    if ufuncs.is_complex(x):
        x = lax.stack([lax.real(x), lax.imag(x)], axis=x.ndim)
    if not dtypes.issubdtype(dtype, np.complexfloating):
        return lax.bitcast_convert_type(x, dtype)
    parts = lax.bitcast_convert_type(x, dtypes.finfo(dtype).dtype)
    return lax.complex(*lax.unstack(parts, axis=-1))


def view_of_bools(self, dtype):
    as_bytes = lax.convert_element_type(self, np.uint8) if self.dtype == bool else self
    if dtype != bool:
        return view(as_bytes, dtype)
    return ufuncs.not_equal(view(as_bytes, np.uint8), 0)


def byteswap(self):
    """The bytes of each element in reverse order."""
    if self.dtype.itemsize == 1:
        return self
    parts = lax.bitcast_convert_type(self, np.uint8)
    return lax.bitcast_convert_type(lax.rev(parts, (self.ndim,)), self.dtype)


def tobytes(self, order="C"):
    """The bytes of all elements."""
    return concrete_or_error(np.asarray, self, "tobytes() needs a known value.",
                             "concrete-values").tobytes(order)


def to_device(self, device, *, stream=None):
    """The array on a device: there is one, so the array itself."""
    check_devices("to_device", device)
    return self


METHODS = {
    "all": reductions.all,
    "any": reductions.any,
    "argmax": reductions.argmax,
    "argmin": reductions.argmin,
    "argpartition": sorting.argpartition,
    "argsort": sorting.argsort,
    "astype": astype,
    "byteswap": byteswap,
    "choose": indexing.choose,
    "clip": ufuncs.clip,
    "compress": compress,
    "conj": ufuncs.conjugate,
    "conjugate": ufuncs.conjugate,
    "copy": copy,
    "cumprod": reductions.cumprod,
    "cumsum": reductions.cumsum,
    "diagonal": creation.diagonal,
    "dot": contractions.dot,
    "flatten": flatten,
    "max": reductions.max,
    "mean": reductions.mean,
    "min": reductions.min,
    "nonzero": indexing.nonzero,
    "prod": reductions.prod,
    "ptp": reductions.ptp,
    "ravel": flatten,
    "repeat": manipulation.repeat,
    "reshape": reshape_method,
    "round": ufuncs.round,
    "searchsorted": sorting.searchsorted,
    "sort": sorting.sort,
    "squeeze": manipulation.squeeze,
    "std": reductions.std,
    "sum": reductions.sum,
    "swapaxes": manipulation.swapaxes,
    "take": indexing.take,
    "to_device": to_device,
    "tobytes": tobytes,
    "trace": contractions.trace,
    "transpose": transpose_method,
    "var": reductions.var,
    "view": view,
}


# --- Properties -----------------------------------------------------------------------------------

def no_flat(self):
    raise NotImplementedError("arrays do not implement the arr.flat property: consider "
                              "arr.flatten() instead")


PROPERTIES = {
    "T": manipulation.transpose,
    "mT": manipulation.matrix_transpose,
    "real": ufuncs.real,
    "imag": ufuncs.imag,
    "at": indexing.IndexUpdateHelper,
    "flat": no_flat,
}


# --- Installation ---------------------------------------------------------------------------------

# What each class has of its own for Python to ask
PYTHONS = ("__setitem__", "__bool__", "__int__", "__float__", "__complex__", "__index__", "__len__",
           "__iter__", "__array__", "__format__", "__hash__", "item", "tolist")
UPDATES = ("get", "set", "add", "subtract", "multiply", "mul", "divide", "power", "min", "max",
           "apply")


def install(cls):
    """Give a class all operators, methods and properties above."""
    for name, (symbol, function) in ARITHMETIC.items():
        setattr(cls, f"__{name}__", operator_method(symbol, function))
        setattr(cls, f"__r{name}__", reflected_method(symbol, function))
    for name, (symbol, function) in COMPARISONS.items():
        setattr(cls, f"__{name}__", operator_method(symbol, function))
    for name, function in (OTHER_OPERATORS | METHODS).items():
        setattr(cls, name, api_boundary(function))
    bound_methods(cls, PYTHONS)
    for name, function in PROPERTIES.items():
        setattr(cls, name, property(api_boundary(function)))


install(Array)
install(Tracer)
bound_methods(Tracer, ("delete", "__reduce__"))
bound_methods(indexing.IndexUpdateRef, UPDATES)
