"""Layer: arrays. Home: ref_array. In JAX: jax/_src/array.py (ArrayImpl).

An `Array` is an immutable NumPy buffer with a weak-type mark. Its arithmetic is installed by
`minijax.numpy`, the layer that owns operators, on arrays and tracers alike.
"""
import numpy as np

from minijax import dtypes
from minijax.avals import ShapedArray, aval_of_type

# --- The Array type ----------------------------------------------------------------------------

class Array:
    """An immutable n-dimensional array. Make one with `minijax.numpy.array`, not by calling this."""

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

    def block_until_ready(self):
        """Return self: minijax computes at once, so the value is there already."""
        return self

    def is_deleted(self):
        return False

    def copy_to_host_async(self):
        """Do nothing: the buffer is on the host already."""

    def to_concrete_value(self):
        return self

    def item(self, *args):
        """The element as a Python scalar; with arguments, the element at that place."""
        return self._value.item(*args)

    def tolist(self):
        return self._value.tolist()

    # conversions to Python and NumPy

    def __array__(self, dtype=None, copy=None):
        if dtype is not None and np.dtype(dtype) != self._value.dtype:
            return self._value.astype(dtype)
        return self._value.copy() if copy else self._value

    def __dlpack__(self, **kwargs):
        # A consumer could write through the capsule, so it gets a buffer of its own.
        return self._value.copy().__dlpack__(**{k: v for k, v in kwargs.items() if k != "copy"})

    def __dlpack_device__(self):
        return self._value.__dlpack_device__()

    def __bool__(self):
        return bool(self._value)

    def __int__(self):
        return self._scalar("int").__int__()

    def __float__(self):
        return self._scalar("float").__float__()

    def __complex__(self):
        return complex(self._scalar("complex"))

    def __index__(self):
        if self._value.ndim or not np.issubdtype(self._value.dtype, np.integer):
            raise TypeError("only integer scalar arrays can be converted to a scalar index, got "
                            f"{self.aval.str_short()}")
        return int(self._value)

    def _scalar(self, kind):
        if self._value.ndim:
            raise TypeError(f"only scalar arrays can be converted to Python {kind}s; got an array "
                            f"of shape {self.shape}")
        return self._value.item()

    def __len__(self):
        return self.aval.length()

    def __iter__(self):
        if not self._value.ndim:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self._value.shape[0]))

    def __reversed__(self):
        return iter([self[i] for i in reversed(range(len(self)))])

    def __format__(self, spec):
        return format(self._value[()], spec) if not self._value.ndim else format(self._value, spec)

    def __hash__(self):
        raise TypeError("unhashable type: an Array compares elementwise and may not be a dict key; "
                        "use a tuple of numbers, or pass it as an ordinary (not static) argument")

    def __setitem__(self, index, value):
        raise TypeError("Array is immutable: instead of `x[index] = value` write "
                        "`x = x.at[index].set(value)`, which returns an updated copy")

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __reduce__(self):
        return from_numpy, (np.array(self._value), self.weak_type)

    def __repr__(self):
        prefix = "Array("
        body = np.array2string(self._value, prefix=prefix, suffix=",", separator=", ",
                               threshold=1000)
        weak = ", weak_type=True" if self.weak_type else ""
        return f"{prefix}{body}, dtype={self._value.dtype.name}{weak})"

    def __str__(self):
        return str(self._value)


# --- From NumPy --------------------------------------------------------------------------------

def from_numpy(value, weak_type=False):
    """An Array of the same elements as a NumPy array; copied, so later writes to `value` don't show.

    64-bit dtypes become 32-bit ones unless `jax_enable_x64` is on.
    """
    dtype = dtypes.canonicalize_dtype(value.dtype)
    return Array(np.array(value, dtype=dtype, order="C"), weak_type)


def as_array(x):
    """The Array of `x`: itself, or of a NumPy array or scalar, or of a Python scalar (weak type)."""
    if type(x) is Array:
        return x
    if type(x) in dtypes.python_scalar_dtypes:
        dtype = dtypes.canonicalize_dtype(dtypes.python_scalar_dtypes[type(x)])
        return Array(_scalar_buffer(x, dtype), type(x) is not bool)
    if hasattr(x, "__jax_array__"):
        return x.__jax_array__()
    return from_numpy(np.asarray(x))


def _scalar_buffer(x, dtype):
    try:
        return np.array(x, dtype)
    except OverflowError:
        raise OverflowError(f"Python integer {x} does not fit into {dtype.name}; enable "
                            "jax_enable_x64 for 64-bit integers") from None


aval_of_type[Array] = lambda x: x.aval
