# Exported from notebooks/ref_extend.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: JAX's names. Home: ref_extend. In JAX: jax/interpreters/mlir.py."""

from minijax.extending import lower_fun, register_lowering
from minijax.loop_ir import LoweringContext as LoweringRuleContext

__all__ = ["lower_fun", "register_lowering", "LoweringRuleContext"]
