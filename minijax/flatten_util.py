# Exported from notebooks/ref_package.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: what a user imports. Home: ref_package. In JAX: jax/_src/flatten_util.py."""

import numpy as np

from minijax import dtypes, lax
from minijax.avals import typeof
from minijax.tracebacks import api_boundary
from minijax.tree_util import tree_flatten, tree_unflatten

__all__ = ["ravel_pytree", "without_imaginary"]


# --- Trees as vectors, and names of types ---------------------------------------------------------

@api_boundary
def ravel_pytree(pytree):
    """(the leaves' elements as one vector, the function from such vectors to trees like this one).

    The vector has the leaves' common dtype. If that is not the dtype of all of them, the function
    gives each its own back, and raises TypeError for a vector of another dtype.
    """
    leaves, tree = tree_flatten(pytree)
    avals = [typeof(x) for x in leaves]
    common = dtypes.result_type(*[a.dtype for a in avals]) if avals else np.dtype(np.float32)
    mixed = any(a.dtype != common for a in avals)
    rows = [lax.reshape(lax.convert_element_type(x, common), (a.size,))
            for x, a in zip(leaves, avals)]

    @api_boundary
    def unravel(vector):
        if mixed and typeof(vector).dtype != common:
            raise TypeError(f"unravel function given array of dtype {typeof(vector).dtype}, but "
                            f"expected dtype {common}")
        parts = lax.split(vector, [a.size for a in avals]) if avals else []
        parts = [lax.reshape(part, a.shape) for part, a in zip(parts, avals)]
        if mixed:
            parts = [without_imaginary(part, a.dtype) for part, a in zip(parts, avals)]
        return tree_unflatten(tree, parts)
    return lax.concatenate(rows, 0) if rows else lax.full((0,), 0, common), unravel


def without_imaginary(x, dtype):
    """x in a dtype that may have no imaginary part, which is then left out without a warning."""
    is_complex = dtypes.issubdtype(dtype, np.complexfloating)
    if dtypes.issubdtype(typeof(x).dtype, np.complexfloating) and not is_complex:
        x = lax.real(x)
    return lax.convert_element_type(x, dtype)
