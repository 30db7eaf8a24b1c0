# Exported from notebooks/ref_debugging.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: looking into programs. Home: ref_debugging. In JAX: jax/debug.py."""

from minijax.debugger import debug_breakpoint as breakpoint
from minijax.debugging import debug_callback as callback, debug_log as log, debug_print as print

__all__ = ["breakpoint", "callback", "log", "print"]
