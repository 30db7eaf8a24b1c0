# Exported from notebooks/ref_extend.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: JAX's names. Home: ref_extend. In JAX: jax/interpreters/ad.py."""

from minijax.extending import (
    add_jaxvals, deflinear, deflinear2, get_primitive_transpose, zeros_like_aval,
)
from minijax.interpreters.jvp import JVPTrace, JVPTracer
from minijax.primitives.elementwise import add_any_p as add_jaxvals_p
from minijax.rule_tables import primitive_jvps, primitive_transposes
from minijax.rules import (
    UndefinedPrimal, Zero, add_tangents, defbilinear, defjvp, defjvp_with_result as defjvp2,
    instantiate_zeros, is_undefined_primal,
)

__all__ = [
    "add_jaxvals", "deflinear", "deflinear2", "get_primitive_transpose", "zeros_like_aval",
    "JVPTrace", "JVPTracer", "add_jaxvals_p", "primitive_jvps", "primitive_transposes",
    "UndefinedPrimal", "Zero", "add_tangents", "defbilinear", "defjvp", "defjvp2",
    "instantiate_zeros", "is_undefined_primal",
]
