# Exported from notebooks/ref_numpy_indexing.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: what a user imports. Home: ref_numpy_indexing. In JAX: jax/_src/ops/scatter.py.

Each group of rows reduced to one row, where a number for each row says to which group it belongs.
All functions take `data`; `segment_ids`, the group of each row; and `num_segments`, how many groups
there are, which a compiled function must be told (else as many as the largest number asks for).
Rows whose number is negative or too large are left out. `bucket_size` rows at a time are reduced by
themselves, which rounds less.
"""

import numpy as np

from minijax import lax
from minijax.core import concrete_or_error
from minijax.dtypes import highest, lowest
from minijax.numpy import reductions
from minijax.numpy.creation import arange, asarray, full
from minijax.numpy.indexing import scatter_at
from minijax.numpy.promotion import check_arraylike

__all__ = [
    "segment_sum", "segment_prod", "segment_max", "segment_min", "by_segment", "count_segments",
]


# --- Groups of rows -------------------------------------------------------------------------------

def segment_sum(data, segment_ids, num_segments=None, indices_are_sorted=False,
                unique_indices=False, bucket_size=None, mode=None):
    """The sum of the rows of each segment; 0 for a segment without rows."""
    return by_segment("segment_sum", lax.scatter_add, lambda dtype: 0, reductions.sum, data,
                      segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size,
                      mode)


def segment_prod(data, segment_ids, num_segments=None, indices_are_sorted=False,
                 unique_indices=False, bucket_size=None, mode=None):
    """The product of the rows of each segment; 1 for a segment without rows."""
    return by_segment("segment_prod", lax.scatter_mul, lambda dtype: 1, reductions.prod, data,
                      segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size,
                      mode)


def segment_max(data, segment_ids, num_segments=None, indices_are_sorted=False,
                unique_indices=False, bucket_size=None, mode=None):
    """The maximum of the rows of each segment; -∞ or the smallest number if there are none."""
    return by_segment("segment_max", lax.scatter_max, lowest, reductions.max, data,
                      segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size,
                      mode)


def segment_min(data, segment_ids, num_segments=None, indices_are_sorted=False,
                unique_indices=False, bucket_size=None, mode=None):
    """The minimum of the rows of each segment; ∞ or the largest number if there are none."""
    return by_segment("segment_min", lax.scatter_min, highest, reductions.min, data,
                      segment_ids, num_segments, indices_are_sorted, unique_indices, bucket_size,
                      mode)


def by_segment(name, scatter, identity, reduce, data, segment_ids, num_segments,
               indices_are_sorted, unique_indices, bucket_size, mode):
    check_arraylike(name, data, segment_ids)
    data, segment_ids = asarray(data), asarray(segment_ids)
    size = count_segments(name, segment_ids, num_segments)
    if size == 0:
        return full((0, *data.shape[1:]), 0, data.dtype)
    options = dict(indices_are_sorted=indices_are_sorted, unique_indices=unique_indices, mode=mode,
                   wrap_negative_indices=False)
    rows, index = (size, *data.shape[1:]), segment_ids
    if bucket_size is not None:
        n = segment_ids.shape[0]
        rows, index = (-(-n // bucket_size), *rows), (arange(n) // bucket_size, segment_ids)
    out = scatter_at(full(rows, identity(data.dtype), data.dtype), index, data, scatter, **options)
    return out if bucket_size is None else reduce(out, axis=0).astype(data.dtype)


def count_segments(name, segment_ids, num_segments):
    context = f"The num_segments of {name} must be known while tracing."
    if num_segments is None:
        return concrete_or_error(lambda ids: int(np.max(ids)) + 1, segment_ids, context)
    size = concrete_or_error(int, num_segments, context)
    if size < 0:
        raise ValueError(f"the num_segments of {name} must not be negative, got {size}")
    return size
