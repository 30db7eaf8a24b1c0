# Exported from notebooks/ref_array.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: arrays. Home: ref_array. In JAX: jax/_src/array.py (ArrayImpl).

An `Array` is an immutable NumPy buffer with a weak-type mark. Its arithmetic is installed by
`minijax.numpy`, the layer that owns operators, on arrays and tracers alike.
"""

import numpy as np

from minijax import dtypes
from minijax.avals import ShapedArray, abstractify, aval_of_type
from minijax.errors import see

__all__ = [
    "PythonConversions", "BufferProtocols", "Immutable", "ArrayMeta", "Array", "DeletedArray",
    "show_array", "from_numpy", "as_array",
]


# --- What Python may ask of an array --------------------------------------------------------------

class PythonConversions:
    """From an array to Python's numbers and lists."""

    __slots__ = ()

    def item(self, *args):
        """The element as a Python scalar; with arguments, the element at that place."""
        return self._value.item(*args)

    def tolist(self):
        return self._value.tolist()

    def __bool__(self):
        if self._value.size != 1:
            many = "more than one element" if self._value.size else "no elements"
            raise ValueError(f"the truth value of an array with {many} is ambiguous; use .any() or "
                             ".all()")
        return bool(self._value)

    def __int__(self):
        return int(self._scalar("int"))

    def __float__(self):
        return float(self._scalar("float"))

    def __complex__(self):
        return complex(self._scalar("complex"))

    def _scalar(self, kind):
        if self._value.ndim:
            raise TypeError(f"only scalar arrays can be converted to Python {kind}s; got an array "
                            f"of shape {self.shape}")
        return self._value.item()

    def __index__(self):
        if self._value.ndim or not np.issubdtype(self._value.dtype, np.integer):
            raise TypeError("only integer scalar arrays can be converted to a scalar index, got "
                            f"{self.aval.str_short()}")
        return int(self._value)


# --- What NumPy and other libraries may ask -------------------------------------------------------

class BufferProtocols:
    """From an array to the arrays of other libraries."""

    __slots__ = ()

    def __array__(self, dtype=None, copy=None):
        return np.asarray(self._value, dtype=dtype, copy=copy)

    def __dlpack__(self, **kwargs):
        # A consumer could write through the capsule, so it gets a buffer of its own.
        return self._value.copy().__dlpack__(**{k: v for k, v in kwargs.items() if k != "copy"})

    def __dlpack_device__(self):
        return self._value.__dlpack_device__()


# --- What does not change -------------------------------------------------------------------------

class Immutable:
    """Refuses changes, and knows that a copy is the same thing."""

    __slots__ = ()

    def __setitem__(self, index, value):
        raise TypeError("Array is immutable: instead of `x[index] = value` write "
                        "`x = x.at[index].set(value)`, which returns an updated copy\n"
                        + see("in-place-updates"))

    def __hash__(self):
        raise TypeError("unhashable type: an Array compares elementwise and may not be a dict key; "
                        "use a tuple of numbers, or pass it as an ordinary (not static) argument")

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return from_numpy, (np.array(self._value), self.weak_type)


# --- The Array ------------------------------------------------------------------------------------

class ArrayMeta(type):
    """`isinstance(x, Array)` holds for tracers too, which stand for Arrays. JAX: jax.Array's."""

    def __instancecheck__(cls, x):
        return type.__instancecheck__(cls, x) or getattr(type(x), "stands_for_array", False)


class Array(PythonConversions, BufferProtocols, Immutable, metaclass=ArrayMeta):
    """An immutable n-dimensional array. Make one with `minijax.numpy.array`."""

    __slots__ = ("_value", "weak_type", "_aval", "__weakref__")
    __array_priority__ = 100

    def __init__(self, value, weak_type=False):
        # The caller hands `value` over: nobody else may write to it. See `from_numpy` for copies.
        value.setflags(False)     # `write`; as a keyword it takes three times as long
        self._value = value
        self.weak_type = weak_type
        self._aval = None

    @property
    def aval(self):
        if self._aval is None:
            self._aval = ShapedArray(self._value.shape, self._value.dtype, self.weak_type)
        return self._aval

    shape = property(lambda self: self._value.shape)
    dtype = property(lambda self: self._value.dtype)
    ndim = property(lambda self: self._value.ndim)
    size = property(lambda self: self._value.size)
    nbytes = property(lambda self: self._value.nbytes)
    itemsize = property(lambda self: self._value.itemsize)

    def to_concrete_value(self):
        return self

    def block_until_ready(self):
        """Return self: minijax computes at once, so the value is there already."""
        return self

    def delete(self):
        """Give the memory back; from now on the elements can't be asked for."""
        self._aval = self.aval
        del self._value
        self.__class__ = DeletedArray

    def is_deleted(self):
        return False

    def copy_to_host_async(self):
        """Do nothing: the buffer is on the host already."""

    def __len__(self):
        return self.aval.length()

    def __iter__(self):
        if not self._value.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self._value.shape[0]))

    def __reversed__(self):
        return iter([self[i] for i in reversed(range(len(self)))])

    def __format__(self, spec):
        if spec and self._value.ndim:
            raise TypeError(f"an array of shape {self.shape} takes no format {spec!r}: format its "
                            "elements, or np.asarray(x) by np.array2string\n"
                            + see("arrays-as-python-values"))
        return format(self._value if self._value.ndim else self._value[()], spec)

    def __str__(self):
        return str(self._value)

    def __repr__(self):
        return show_array(self._value, self.weak_type)


aval_of_type[Array] = lambda x: x.aval


class DeletedArray(Array):
    """What an Array becomes when its memory is given away, by `delete` or by donation to `jit`."""

    __slots__ = ()

    shape = property(lambda self: self._aval.shape)
    dtype = property(lambda self: self._aval.dtype)
    ndim = property(lambda self: self._aval.ndim)
    size = property(lambda self: self._aval.size)

    @property
    def _value(self):
        raise RuntimeError(f"Array has been deleted with shape="
                           f"{self._aval.str_short(short_dtypes=False)}.")

    def delete(self):
        """Do nothing: it is deleted already."""

    def is_deleted(self):
        return True


def show_array(value, weak_type):
    body = f"[], shape={value.shape}" if not value.size else np.array2string(
        value, prefix="Array(", suffix=",", separator=", ", threshold=1000)
    tail = f"dtype={value.dtype.name}{', weak_type=True' if weak_type else ''})"
    last_line = len(body) - body.rfind("\n") + 1
    fits = last_line + len(tail) + 1 <= np.get_printoptions()["linewidth"]
    return f"Array({body},{' ' if fits else ' ' * len('Array(')}{tail}"


# --- From other values to arrays ------------------------------------------------------------------

def from_numpy(value, weak_type=False):
    """An Array of a NumPy array's elements; copied, so later writes to `value` don't show.

    64-bit dtypes become 32-bit ones unless `jax_enable_x64` is on.
    """
    dtype = dtypes.canonicalize_dtype(value.dtype)
    if dtype == value.dtype:
        return Array(np.array(value, order="C"), weak_type)
    with np.errstate(all="ignore"):       # 1e300 is inf in 32 bits, as IEEE says
        return Array(np.array(value, dtype=dtype, order="C"), weak_type)


def as_array(x):
    """The Array of `x`: itself, or of a NumPy array or scalar, or a Python scalar (weak type).

    Raises TypeError for what is none of these.
    """
    if type(x) is Array:
        return x
    if type(x) in dtypes.python_scalar_dtypes:
        dtype = dtypes.canonicalize_dtype(dtypes.python_scalar_dtypes[type(x)])
        return Array(_scalar_buffer(x, dtype), type(x) is not bool)
    if hasattr(x, "__jax_array__"):
        return x.__jax_array__()
    return from_numpy(np.asarray(x), abstractify(x).weak_type)


def _scalar_buffer(x, dtype):
    try:
        return np.array(x, dtype)
    except OverflowError:
        raise OverflowError(f"Python integer {x} does not fit into {dtype.name}; enable "
                            "jax_enable_x64 for 64-bit integers") from None
