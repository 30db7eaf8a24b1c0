# Exported from notebooks/ref_extend.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: JAX's names. Home: ref_extend. In JAX: jax/interpreters/xla.py."""

from minijax.extending import apply_primitive

__all__ = ["apply_primitive"]
