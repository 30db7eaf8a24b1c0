# Exported from notebooks/ref_elementwise.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: primitives. Home: ref_elementwise. SciPy's special functions, imported late.

SciPy is slow to import and most programs need none of it. This is the only place that names it for
implementations.
"""

import importlib

import numpy as np

__all__ = ["scipy_special"]


# --- SciPy, late ----------------------------------------------------------------------------------

def scipy_special(name):
    """SciPy's function `name`, with results of its operands' dtype; narrow floats use float32."""
    def function(*arrays):
        dtype = arrays[0].dtype
        wide = arrays if dtype.itemsize >= 4 else [a.astype(np.float32) for a in arrays]
        special = importlib.import_module("scipy.special")
        return np.asarray(getattr(special, name)(*wide)).astype(dtype, copy=False)
    return function
