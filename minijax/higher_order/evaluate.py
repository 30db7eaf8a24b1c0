# Exported from notebooks/14_control_flow.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: loops and branches, evaluated. Home: 14_control_flow. In JAX: jax/_src/dispatch.py.

An eager loop is compiled like any other: as a program of one equation. Only where an operand is of
float0, whose numbers have no bytes, are the turns compiled and Python goes round.
"""

from minijax.avals import typeof
from minijax.config import disable_jit
from minijax.core import rule_for
from minijax.higher_order.jit import run
from minijax.higher_order.programs import memo_by_jaxpr
from minijax.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Var, eval_jaxpr
from minijax.loop_ir import NATIVE

__all__ = ["runs_compiled", "run_program", "run_equation", "one_equation"]


# --- Running at once ------------------------------------------------------------------------------

def runs_compiled(avals):
    """Whether a whole loop on such values becomes machine code."""
    return not disable_jit.value and all(a.dtype in NATIVE for a in avals)


def run_program(jaxpr, arrays):
    """Results of a program without constvars, compiled unless jit is disabled."""
    return eval_jaxpr(jaxpr, [], *arrays) if disable_jit.value else run(jaxpr, arrays)


def run_equation(primitive, arrays, params):
    """Results of a primitive with programs among its parameters, compiled as one equation."""
    items = tuple([(k, v.jaxpr if isinstance(v, ClosedJaxpr) else v) for k, v in params.items()])
    jaxpr = next(v for _, v in items if isinstance(v, Jaxpr))
    return run(one_equation(jaxpr, primitive, items, tuple([typeof(x) for x in arrays])), arrays)


@memo_by_jaxpr
def one_equation(jaxpr, primitive, items, avals):
    params = {k: ClosedJaxpr(v) if isinstance(v, Jaxpr) else v for k, v in items}
    args = [Var(a) for a in avals]
    outs = [Var(a) for a in rule_for(primitive, "abstract_eval")(*avals, **params)]
    eqn = JaxprEqn(args, outs, primitive, params, primitive.effects_of(params))
    return Jaxpr([], args, outs, [eqn], eqn.effects, primitive.name)
