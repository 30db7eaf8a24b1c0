# Exported from notebooks/ref_debugging.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: foundations. Home: ref_debugging. In JAX: jax/_src/dispatch.py (check_special).

What `debug_nans` and `debug_infs` look for in the results of operations.
"""

import numpy as np

from minijax import dtypes
from minijax.config import debug_infs, debug_nans
from minijax.errors import see

__all__ = ["wrong_number", "refuse_wrong_numbers"]


# --- NaN and infinity -----------------------------------------------------------------------------

def wrong_number(arrays):
    """"nan" or "inf" if an array has one and the option against it is on, else None."""
    arrays = [x for x in arrays if dtypes.issubdtype(x.dtype, np.inexact)]
    if debug_nans.value and any([np.isnan(x).any() for x in arrays]):
        return "nan"
    if debug_infs.value and any([np.isinf(x).any() for x in arrays]):
        return "inf"
    return None


def refuse_wrong_numbers(name, arrays):
    """FloatingPointError if `debug_nans` or `debug_infs` is on and an operation returned one."""
    found = wrong_number(arrays)
    if found:
        raise FloatingPointError(f"invalid value ({found}) encountered in {name}\n"
                                 + see("nan-behind-where"))
