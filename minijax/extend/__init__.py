# Exported from notebooks/ref_extend.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: JAX's names. Home: ref_extend. In JAX: jax/extend/__init__.py."""

from minijax.extend import core

__all__ = ["core"]
