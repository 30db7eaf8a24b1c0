"""Compare functions of `minijax.numpy` with those of the same names in NumPy.

The reference notebooks assert `agrees("sort", "argsort", args=(x,))`.
"""

import warnings

import numpy as np

import minijax.numpy as jnp

__all__ = ["same", "agrees"]


def same(ours, theirs):
    """The same nested tuples and lists of arrays, up to rounding."""
    if isinstance(theirs, (tuple, list)):
        return len(ours) == len(theirs) and all(map(same, ours, theirs))
    return (np.shape(ours) == np.shape(theirs)
            and np.allclose(ours, theirs, 1e-5, 1e-5, equal_nan=True))


def agrees(*names, args, **kwargs):
    """Assert that the functions of these names return what NumPy's do; returns True."""
    for name in names:
        with warnings.catch_warnings(action="ignore"):
            expected = getattr(np, name)(*args, **kwargs)
        assert same(getattr(jnp, name)(*args, **kwargs), expected), name
    return True
