# Exported from notebooks/11_jit.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: 11_jit. In JAX: jax/_src/compiler.py and XLA.

From a jaxpr to machine code: a list of passes, a loop IR, Python source, Numba.
"""

from minijax.compiler.executable import Executable, compile_jaxpr

__all__ = ["Executable", "compile_jaxpr"]
