# Exported from notebooks/ref_extend.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: JAX's names. Home: ref_extend. In JAX: jax/stages.py."""

from minijax.dispatch import ArgInfo, Compiled, JitFunction as Wrapped, Lowered, Traced

__all__ = ["ArgInfo", "Compiled", "Lowered", "Traced", "Wrapped"]
