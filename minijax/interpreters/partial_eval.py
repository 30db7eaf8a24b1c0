# Exported from notebooks/06_linearize.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: partial evaluation and linearize. Home: 06_linearize. In JAX: partial_eval.py, ad.py.

Do now what depends on known values only, write down the rest. `linearize` is jvp run this way, with
primals known and tangents unknown.
"""

from minijax.avals import typeof
from minijax.core import get_current_trace, set_current_trace
from minijax.interpreters.jvp import jvp_flat
from minijax.interpreters.staging import JaxprTrace
from minijax.jaxpr import convert_constvars_jaxpr, dce_jaxpr, eval_jaxpr, inputs_read
from minijax.leaks import leak_checked
from minijax.rules import Zero, is_zero

__all__ = [
    "PartialEvalTrace", "trace_unknown", "without_unread_consts", "linearize_flat", "apply_linear",
    "split_jaxpr",
]


# --- The trace ------------------------------------------------------------------------------------

class PartialEvalTrace(JaxprTrace):
    """Runs a primitive on the parent if all its operands are known; otherwise records it."""

    __slots__ = ("parent",)

    def __init__(self, parent, name="<function>"):
        super().__init__(name)
        self.parent = parent

    def process_primitive(self, primitive, args, params):
        if not any(self.is_mine(a) for a in args):
            with set_current_trace(self.parent):
                return primitive.bind(*args, **params)
        rule = primitive.rules.get("partial_eval")
        if rule is not None:
            return rule(self, *args, **params)
        return super().process_primitive(primitive, args, params)


# trace_unknown : ([a] -> [b]) -> [aval] -> (Jaxpr : [a] -> [b], consts)

@leak_checked
def trace_unknown(f, in_avals, name="<function>"):
    """The program of f on unknown arguments; what does not depend on them is done now."""
    trace = PartialEvalTrace(get_current_trace(), name)
    try:
        args = [trace.new_arg(a) for a in in_avals]
        with set_current_trace(trace):
            outs = f(*args)
        jaxpr, consts = trace.to_jaxpr(outs)
        return without_unread_consts(dce_jaxpr(jaxpr), consts)
    finally:
        trace.end()


def without_unread_consts(jaxpr, consts):
    """The program without constvars that it does not read, which would keep their values alive."""
    read = inputs_read(jaxpr.replace(invars=jaxpr.constvars))
    kept = [(v, x) for v, x, flag in zip(jaxpr.constvars, consts, read) if flag]
    return jaxpr.replace(constvars=[v for v, _ in kept]), [x for _, x in kept]


# --- linearize ------------------------------------------------------------------------------------

# linearize_flat : ([a] -> [b]) -> [a] -> ([b], Jaxpr : [T a] -o [T b], consts)

def linearize_flat(f, primals, name="<function>"):
    """Results of f(*primals) and the linear program from their tangents to those of the results.

    Returns (results, jaxpr, consts, zero_avals): `zero_avals[i]` is the aval of result i's tangent
    if that is zero by construction (the jaxpr then leaves it out), else None.
    """
    outs, zero_avals = [], []

    def push(*tangents):
        outs[:], out_tangents = jvp_flat(f, primals, tangents)
        zero_avals[:] = [t.aval if is_zero(t) else None for t in out_tangents]
        return [t for t in out_tangents if not is_zero(t)]

    tangent_avals = [typeof(x).to_tangent_aval() for x in primals]
    jaxpr, consts = trace_unknown(push, tangent_avals, name)
    return outs, jaxpr, consts, zero_avals


def apply_linear(jaxpr, consts, zero_avals, tangents):
    """Tangents of the results, with symbolic zeros where they are zero by construction."""
    outs = iter(eval_jaxpr(jaxpr, consts, *tangents))
    return [next(outs) if aval is None else Zero(aval) for aval in zero_avals]


# --- Splitting a program --------------------------------------------------------------------------

# split_jaxpr : ((a, b) -> c) -> which are unknown -> (a -> (known c, res), (res, b) -> other c)

def split_jaxpr(jaxpr, unknown, wanted=()):
    """Split a program (without constvars) into what its known inputs decide and the rest.

    Returns (known program, its consts, later program, which results are unknown, number of
    residuals). The known program returns the known results and then the residuals; the later one
    takes the residuals and then the unknown inputs. Results flagged in `wanted` count as unknown.
    """
    known = JaxprTrace(jaxpr.name)
    later = PartialEvalTrace(known, jaxpr.name)
    try:
        args = [(later if u else known).new_arg(v.aval) for v, u in zip(jaxpr.invars, unknown)]
        with set_current_trace(later):
            outs = eval_jaxpr(jaxpr, [], *args)
        wanted = wanted or [False] * len(outs)
        out_unknown = [later.is_mine(out) or flag for out, flag in zip(outs, wanted)]
        later_jaxpr, residuals = later.to_jaxpr([o for o, u in zip(outs, out_unknown) if u])
        known_outs = [o for o, u in zip(outs, out_unknown) if not u]
        known_jaxpr, consts = known.to_jaxpr([*known_outs, *residuals])
    finally:
        known.end(), later.end()
    return known_jaxpr, consts, convert_constvars_jaxpr(later_jaxpr), out_unknown, len(residuals)
