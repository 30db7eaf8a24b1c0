# Exported from notebooks/ref_debugging.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: what is experimental in JAX. Home: ref_debugging. In JAX: jax/experimental/__init__.py."""

from minijax.debugging import io_callback
from minijax.experimental import checkify

__all__ = ["io_callback", "checkify"]
