# Exported from notebooks/ref_package.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: what a user imports. Home: ref_package. In JAX: jax/typing.py."""

from typing import Any

import numpy as np

from minijax.array import Array

__all__ = ["ArrayLike", "DTypeLike"]


# --- Trees as vectors, and names of types ---------------------------------------------------------

ArrayLike = Array | np.ndarray | np.bool_ | np.number | bool | int | float | complex
DTypeLike = Any                    # whatever `np.dtype` takes, and the small floats
