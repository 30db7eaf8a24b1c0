# Exported from notebooks/ref_numpy_math.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: numpy. Home: ref_numpy_math. In JAX: jax/_src/numpy/ufunc_api.py.

Universal functions as objects: `add(x, y)` is a call, `add.reduce(x)` a sum, `add.outer(x, y)` a
table.
"""

import itertools

import numpy as np

from minijax import lax
from minijax.core import concrete_or_error
from minijax.numpy import reductions, ufuncs
from minijax.numpy.creation import arange
from minijax.numpy.indexing import IndexUpdateHelper, getitem
from minijax.numpy.manipulation import vectorize
from minijax.numpy.promotion import convert, ensure_arraylike
from minijax.primitives.structural import canonicalize_axis
from minijax.tracebacks import bound_methods

__all__ = [
    "ufunc", "along_one_axis", "value_of_nothing", "at_one_by_one", "frompyfunc", "by",
    "by_extreme", "by_bits", "by_logic", "binary", "negative", "add", "multiply", "subtract",
    "maximum", "minimum", "bitwise_and", "bitwise_or", "bitwise_xor", "logical_and", "logical_or",
    "logical_xor", "logaddexp", "logaddexp2",
]


# --- The class ------------------------------------------------------------------------------------

class ufunc:
    """An elementwise function with NumPy's methods `reduce`, `accumulate`, `at`, `outer` and
    `reduceat`.

    Methods of functions that are no named reduction run through the elements one after the other.
    """

    def __init__(self, func, /, nin, nout, *, name=None, identity=None, reduce=None,
                 accumulate=None, at=None):
        self.func, self.nin, self.nout, self.nargs, self.identity = func, nin, nout, nin, identity
        self.__name__ = name or getattr(func, "__name__", type(func).__name__)
        self.__doc__ = func.__doc__
        self._reduce, self._accumulate, self._at = reduce, accumulate, at

    def __call__(self, *args, out=None, where=None):
        if out is not None or where is not None:
            raise NotImplementedError(f"{'out' if where is None else 'where'} argument of {self!r}")
        return self.func(*args)

    def __repr__(self):
        return f"<jnp.ufunc '{self.__name__}'>"

    def check_binary(self, method):
        if self.nin != 2 or self.nout != 1:
            raise ValueError(f"{method} only supported for binary ufuncs")

    def reduce(self, a, axis=0, dtype=None, out=None, keepdims=False, initial=None, where=None):
        """Combine the elements along `axis`, from the first to the last; None for all axes."""
        self.check_binary("reduce")
        if out is not None:
            raise NotImplementedError(f"out argument of {self!r}.reduce")
        if self._reduce is not None:
            return self._reduce(a, axis, dtype, keepdims, initial, where)
        if where is not None:
            raise NotImplementedError(f"where argument of {self!r}.reduce")
        a, axis, shape = along_one_axis(self, "reduce", a, axis, dtype)
        first = () if initial is None else (convert(initial, a.dtype),)
        parts = (*first, *lax.unstack(a, axis)) or (value_of_nothing(self, a, axis),)
        *_, total = itertools.accumulate(parts, self.func)
        return lax.reshape(total, shape) if keepdims else total

    def accumulate(self, a, axis=0, dtype=None, out=None):
        """The results of `reduce` on the elements up to each one along `axis`."""
        self.check_binary("accumulate")
        if out is not None:
            raise NotImplementedError(f"out argument of {self!r}.accumulate")
        if axis is None or isinstance(axis, tuple):
            raise ValueError("accumulate does not allow multiple axes")
        if self._accumulate is not None:
            return self._accumulate(a, axis, dtype)
        a, axis, _ = along_one_axis(self, "accumulate", a, axis, dtype)
        results = itertools.accumulate(lax.unstack(a, axis), self.func)
        return lax.stack(list(results), axis) if a.shape[axis] else a

    def at(self, a, indices, b=None, /, *, inplace=True):
        """`a` with the elements at `indices` replaced by f(element) or f(element, b).

        An index given twice counts twice.
        """
        if inplace:
            raise NotImplementedError("arrays are immutable, so ufunc.at cannot work in place: "
                                      "pass inplace=False and use the array it returns")
        a = ensure_arraylike(f"{self.__name__}.at", a)
        if self._at is not None:
            return self._at(IndexUpdateHelper(a)[indices], b)
        if self.nin == 1:
            return IndexUpdateHelper(a)[indices].apply(self.func)
        return at_one_by_one(self, a, indices, ensure_arraylike(f"{self.__name__}.at", b))

    def outer(self, A, B, /):
        """f of every element of A with every element of B: shape (*A.shape, *B.shape)."""
        self.check_binary("outer")
        A, B = ensure_arraylike(f"{self.__name__}.outer", A, B)
        return self.func(lax.reshape(A, (*A.shape, *(1,) * B.ndim)), B)

    def reduceat(self, a, indices, axis=0, dtype=None, out=None):
        """`reduce` of the slice from each index to the next, or of one element if that is smaller.

        The indices must be known.
        """
        self.check_binary("reduceat")
        a = ensure_arraylike(f"{self.__name__}.reduceat", a)
        axis = canonicalize_axis(axis, a.ndim)
        why = f"indices of {self!r}.reduceat must be known"
        starts = concrete_or_error(np.asarray, indices, why)
        pieces = [lax.slice_in_dim(a, start, stop if stop > start else start + 1, axis=axis)
                  for start, stop in zip(starts, [*starts[1:], a.shape[axis]])]
        return lax.stack([self.reduce(piece, axis, dtype, out) for piece in pieces], axis)


bound_methods(ufunc, ("__call__", "reduce", "accumulate", "at", "outer", "reduceat"))


def along_one_axis(ufunc, method, a, axis, dtype):
    """`a`, flat if `axis` is None, with its one axis and its shape with that axis made 1."""
    a = ensure_arraylike(f"{ufunc.__name__}.{method}", a)
    a = a if dtype is None else convert(a, np.dtype(dtype))
    if isinstance(axis, tuple):
        raise NotImplementedError(f"{ufunc!r}.{method} over a tuple of axes")
    if axis is None:
        return lax.reshape(a, (a.size,)), 0, (1,) * a.ndim
    axis = canonicalize_axis(axis, a.ndim)
    return a, axis, (*a.shape[:axis], 1, *a.shape[axis + 1:])


def value_of_nothing(ufunc, a, axis):
    if ufunc.identity is None:
        raise ValueError(f"zero-size array to reduction operation {ufunc.__name__} which has no "
                         "identity")
    return lax.full((*a.shape[:axis], *a.shape[axis + 1:]), ufunc.identity, a.dtype)


def at_one_by_one(ufunc, a, indices, b):
    numbers = getitem(lax.reshape(arange(a.size), a.shape), indices)
    places = concrete_or_error(np.asarray, numbers, f"indices of {ufunc!r}.at must be known")
    b = lax.reshape(lax.broadcast_like(b, numbers), (places.size,))
    flat = lax.reshape(a, (a.size,))
    for i, place in enumerate(places.ravel()):
        new = convert(ufunc.func(getitem(flat, place), getitem(b, i)), a.dtype)
        flat = IndexUpdateHelper(flat)[place].set(new)
    return lax.reshape(flat, a.shape)


def frompyfunc(func, /, nin, nout, *, identity=None):
    """A ufunc of a function of scalars, which is mapped over the elements."""
    mapped = vectorize(func)
    mapped.__name__ = getattr(func, "__name__", "<function>")
    return ufunc(mapped, nin, nout, identity=identity)


# --- The ufuncs that are such objects -------------------------------------------------------------

def by(reduction):
    """A reduction of arrays as the `reduce` of a ufunc; those that have no dtype convert first."""
    def reduce(a, axis, dtype, keepdims, initial, where):
        return reduction(a, axis, dtype, keepdims=keepdims, initial=initial, where=where)
    return reduce


def by_extreme(reduction):
    def reduce(a, axis, dtype, keepdims, initial, where):
        a = a if dtype is None else convert(a, np.dtype(dtype))
        return reduction(a, axis, keepdims=keepdims, initial=initial, where=where)
    return reduce


def by_bits(name, reduction):
    def reduce(a, axis, dtype, keepdims, initial, where):
        if initial is not None or where is not None:
            raise NotImplementedError(f"{name}.reduce with initial or where")
        a = ensure_arraylike(f"{name}.reduce", a)
        a = a if dtype is None else convert(a, np.dtype(dtype))
        axes = reductions.canonical_axes(axis, a.ndim)
        total = reduction(a, axes)
        return lax.expand_dims(total, axes) if keepdims else total
    return reduce


def by_logic(reduction):
    def reduce(a, axis, dtype, keepdims, initial, where):
        if initial is not None:
            raise NotImplementedError("the reduce of a logical ufunc with initial")
        return reduction(a, axis, keepdims=keepdims, where=where)
    return reduce


def binary(function, **methods):
    return ufunc(function, 2, 1, **methods)


negative = ufunc(ufuncs.negative, 1, 1)
add = binary(ufuncs.add, identity=0, reduce=by(reductions.sum), accumulate=reductions.cumsum,
             at=lambda place, b: place.add(b))


multiply = binary(ufuncs.multiply, identity=1, reduce=by(reductions.prod),
                  accumulate=reductions.cumprod, at=lambda place, b: place.multiply(b))
subtract = binary(ufuncs.subtract, at=lambda place, b: place.subtract(b))
maximum = binary(ufuncs.maximum, reduce=by_extreme(reductions.max),
                 at=lambda place, b: place.max(b))
minimum = binary(ufuncs.minimum, reduce=by_extreme(reductions.min),
                 at=lambda place, b: place.min(b))
bitwise_and = binary(ufuncs.bitwise_and, identity=-1, reduce=by_bits("bitwise_and", lax.reduce_and))
bitwise_or = binary(ufuncs.bitwise_or, identity=0, reduce=by_bits("bitwise_or", lax.reduce_or))
bitwise_xor = binary(ufuncs.bitwise_xor, identity=0, reduce=by_bits("bitwise_xor", lax.reduce_xor))
logical_and = binary(ufuncs.logical_and, identity=True, reduce=by_logic(reductions.all))
logical_or = binary(ufuncs.logical_or, identity=False, reduce=by_logic(reductions.any))
logical_xor = binary(ufuncs.logical_xor, identity=False)
logaddexp = binary(ufuncs.logaddexp, identity=-np.inf)
logaddexp2 = binary(ufuncs.logaddexp2, identity=-np.inf)
