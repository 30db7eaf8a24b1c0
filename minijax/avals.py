# Exported from notebooks/ref_array.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: abstract values. Home: ref_array. In JAX: jax/_src/core.py (ShapedArray).

An abstract value says all that a program may know about an array before it runs: shape, dtype and
whether the dtype is weak.
"""

from functools import cache

import numpy as np

from minijax import dtypes

__all__ = [
    "AbstractValue", "short_dtype_name", "ShapedArray", "aval_of_type", "refuse_masked",
    "abstractify", "typeof",
]


# --- Abstract values ------------------------------------------------------------------------------

class AbstractValue:
    """What tracing knows of a value. Subclasses add kinds of values, above all `ShapedArray`."""

    __slots__ = ()

    def to_tangent_aval(self):
        """The abstract value of tangents of such values."""
        raise TypeError(f"values of type {self} have no tangents")

    def str_short(self):
        return repr(self)


# Jaxprs abbreviate: float32 is f32, uint8 is u8, bfloat16 is bf16.
_ABBREVIATIONS = (("float", "f"), ("uint", "u"), ("int", "i"), ("complex", "c"))

@cache
def short_dtype_name(dtype):
    if dtype == dtypes.float0:
        return "float0"
    name = dtype.name
    for long, short in _ABBREVIATIONS:
        name = name.replace(long, short)
    return name


class ShapedArray(AbstractValue):
    """An array of a shape and dtype; `weak_type` marks dtypes that came from a Python scalar."""

    __slots__ = ("shape", "dtype", "weak_type", "_hash")

    def __init__(self, shape, dtype, weak_type=False):
        self.shape = tuple(shape)
        self.dtype = np.dtype(dtype)
        self.weak_type = weak_type
        self._hash = hash((self.shape, self.dtype, weak_type))

    ndim = property(lambda self: len(self.shape))

    @property
    def size(self):
        size = 1
        for n in self.shape:
            size *= n
        return size

    def update(self, **changes):
        """A copy with some of shape, dtype, weak_type changed."""
        kept = dict(shape=self.shape, dtype=self.dtype, weak_type=self.weak_type)
        return ShapedArray(**(kept | changes))

    def strip_weak_type(self):
        return self.update(weak_type=False) if self.weak_type else self

    def to_tangent_aval(self):
        # Integers and bools move in steps, so their tangents carry nothing: dtype float0.
        if dtypes.issubdtype(self.dtype, np.inexact):
            return self
        return ShapedArray(self.shape, dtypes.float0)

    def __eq__(self, other):
        return (self is other or isinstance(other, ShapedArray) and self._hash == other._hash
                and self.shape == other.shape and self.dtype == other.dtype
                and self.weak_type == other.weak_type)

    def __hash__(self):
        return self._hash

    def length(self):
        """What `len` of such an array is."""
        if not self.shape:
            raise TypeError("len() of unsized object")
        return self.shape[0]

    def str_short(self, short_dtypes=True):
        short = short_dtypes or self.dtype == dtypes.float0       # whose name in NumPy is void
        name = short_dtype_name(self.dtype) if short else self.dtype.name
        return f"{name}[{','.join(map(str, self.shape))}]"

    def __str__(self):
        return ("~" if self.weak_type else "") + self.str_short(short_dtypes=False)

    def __repr__(self):
        weak = ", weak_type=True" if self.weak_type else ""
        return f"ShapedArray({self.str_short(short_dtypes=False)}{weak})"


# --- From a value to its abstract value -----------------------------------------------------------

# type -> function from a value of that type to its abstract value; layers above add their types
aval_of_type = {}


def _aval_of_scalar(python_type):
    weak = {}        # one shared aval for each setting of x64

    def aval(x):
        dtype = dtypes.canonicalize_dtype(dtypes.python_scalar_dtypes[python_type])
        if dtype not in weak:
            weak[dtype] = ShapedArray((), dtype, weak_type=python_type is not bool)
        return weak[dtype]
    return aval


def _aval_of_numpy(x):
    if x.dtype != dtypes.float0:
        dtypes.check_valid_dtype(x.dtype)
    return ShapedArray(x.shape, dtypes.canonicalize_dtype(x.dtype))


for _type in (bool, int, float, complex):
    aval_of_type[_type] = _aval_of_scalar(_type)
aval_of_type[np.ndarray] = _aval_of_numpy


def refuse_masked(x):
    """ValueError for a masked NumPy array: an array here would lose the mask."""
    if isinstance(x, np.ndarray) and type(x) is not np.ndarray and isinstance(x, np.ma.MaskedArray):
        raise ValueError("numpy masked arrays are not supported: an array here has no mask. Give "
                         "the elements that are masked a value by x.filled(value), or pass x.data "
                         "and x.mask as two arrays")


def abstractify(x):
    """The abstract value of `x`: an Array, a tracer, a NumPy array or scalar, a Python scalar."""
    rule = aval_of_type.get(type(x))
    if rule is None:
        rule = _rule_by_superclass(x)
    return rule(x)

typeof = abstractify


def _rule_by_superclass(x):
    if isinstance(x, np.generic):       # first: a np.float64 is a Python float too, and not weak
        return _aval_of_numpy
    refuse_masked(x)
    for cls in type(x).__mro__:
        if cls in aval_of_type:
            aval_of_type[type(x)] = aval_of_type[cls]      # found at once the next time
            return aval_of_type[cls]
    if hasattr(x, "__jax_array__"):
        return lambda x: abstractify(x.__jax_array__())
    raise TypeError(f"value {x!r:.80} of type {type(x).__name__} is not a valid array type; "
                    "expected an array, a tracer, or a Python or NumPy number")
