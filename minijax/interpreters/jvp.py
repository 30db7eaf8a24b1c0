# Exported from notebooks/03_jvp.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: forward-mode differentiation. Home: 03_jvp. In JAX: jax/_src/interpreters/ad.py.

Run a function on pairs (primal, tangent). Each primitive's jvp rule says how a velocity of its
operands becomes a velocity of its result; the chain rule is the order in which they run.
"""

from minijax.avals import typeof
from minijax.core import (
    Trace, Tracer, check_alive, get_current_trace, name_of, rule_for, set_current_trace, unzip2,
)
from minijax.dtypes import float0
from minijax.leaks import leak_checked
from minijax.rules import Zero, instantiate_zeros, is_zero

__all__ = ["JVPTracer", "JVPTrace", "jvp_flat", "symbolic_if_float0", "jvp_instantiated"]


# --- Tracer and trace -----------------------------------------------------------------------------

class JVPTracer(Tracer):
    """A value together with its velocity."""

    __slots__ = ("primal", "tangent")

    def __init__(self, trace, primal, tangent):
        super().__init__(trace)
        self.primal, self.tangent = primal, tangent

    @property
    def aval(self):
        return typeof(self.primal)

    def to_concrete_value(self):
        primal = self.primal
        return primal.to_concrete_value() if isinstance(primal, Tracer) else primal

    def __repr__(self):
        return f"JVPTracer(primal={self.primal}, tangent={self.tangent})"


class JVPTrace(Trace):
    """Computes primals and tangents together, both on the parent trace."""

    __slots__ = ("parent",)
    doing = "differentiating"

    def __init__(self, parent, name="<function>"):
        super().__init__(name)
        self.parent = parent

    def to_pair(self, x):
        # Compare the trace, not the class: a tracer of another jvp is a constant here.
        if isinstance(x, JVPTracer) and x._trace is self:
            return x.primal, x.tangent
        check_alive(x)
        return x, Zero.like(x)

    def from_pair(self, x, t):
        return x if is_zero(t) else JVPTracer(self, x, t)

    def process_primitive(self, primitive, args, params):
        primals, tangents = unzip2([self.to_pair(a) for a in args])
        with set_current_trace(self.parent):
            if all([is_zero(t) for t in tangents]):
                return primitive.bind(*primals, **params)
            out, out_tangents = rule_for(primitive, "jvp")(primals, tangents, **params)
        if primitive.multiple_results:
            return [self.from_pair(x, t) for x, t in zip(out, out_tangents)]
        return self.from_pair(out, out_tangents)


# --- The transformation of flat functions ---------------------------------------------------------

# jvp_flat : ([a] -> [b]) -> [a] -> [T a] -> ([b], [T b])

@leak_checked         # finds tracers that got away, if asked to: see chapter 17
def jvp_flat(f, primals, tangents):
    """Results and their tangents of f(*primals), a function that returns a list.

    A tangent may be a symbolic `Zero`, among the arguments as among the results.
    """
    trace = JVPTrace(get_current_trace(), name_of(f))
    args = [trace.from_pair(x, symbolic_if_float0(t)) for x, t in zip(primals, tangents)]
    try:
        with set_current_trace(trace):
            outs = f(*args)
        return unzip2([trace.to_pair(out) for out in outs])
    finally:
        trace.end()


def symbolic_if_float0(t):
    """An integer's tangent is zero in any form it is given; rules see the symbol only."""
    return t if is_zero(t) or typeof(t).dtype != float0 else Zero(typeof(t))


def jvp_instantiated(f, primals, tangents):
    """As `jvp_flat`, with arrays in place of symbolic zeros among the results."""
    outs, out_tangents = jvp_flat(f, primals, tangents)
    return outs, [instantiate_zeros(t) for t in out_tangents]
