# Exported from notebooks/ref_extend.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: JAX's names. Home: ref_extend. In JAX: jax/extend/core/__init__.py."""

from minijax.core import concrete_or_error, set_current_trace
from minijax.extend.core import primitives
from minijax.extending import (
    Primitive, mapped_aval, new_jaxpr_eqn, no_effects, subjaxprs, unmapped_aval, valid_jaxtype,
)
from minijax.jaxpr import (
    ClosedJaxpr, Jaxpr, JaxprEqn, JaxprTypeError, Literal, Var, check_jaxpr, jaxpr_as_fun,
    jaxprs_in_params,
)
from minijax.primitives.callbacks import Effect

__all__ = [
    "concrete_or_error", "set_current_trace", "primitives", "Primitive", "mapped_aval",
    "new_jaxpr_eqn", "no_effects", "subjaxprs", "unmapped_aval", "valid_jaxtype", "ClosedJaxpr",
    "Jaxpr", "JaxprEqn", "JaxprTypeError", "Literal", "Var", "check_jaxpr", "jaxpr_as_fun",
    "jaxprs_in_params", "Effect",
]
