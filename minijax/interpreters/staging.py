# Exported from notebooks/05_jaxpr.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: staging. Home: 05_jaxpr. In JAX: DynamicJaxprTrace, jax/_src/interpreters/partial_eval.py.

The free interpreter: it computes nothing and writes down every primitive that it is asked to run.
"""

from minijax import dtypes
from minijax.array import as_array
from minijax.avals import typeof
from minijax.config import enable_checks
from minijax.core import Trace, Tracer, check_alive, rule_for, set_current_trace, user_source
from minijax.jaxpr import ClosedJaxpr, Jaxpr, JaxprEqn, Literal, Var, check_jaxpr, is_literable
from minijax.leaks import leak_checked

__all__ = ["JaxprTracer", "JaxprTrace", "constant_value", "trace_to_jaxpr", "trace_to_closed_jaxpr"]


# --- The staging interpreter ----------------------------------------------------------------------

class JaxprTracer(Tracer):
    """A variable of the program that is being written. JAX: DynamicJaxprTracer."""

    __slots__ = ("variable", "aval")     # not `var`: that is a method of arrays

    def __init__(self, trace, var, source):
        # Not super().__init__: the equation knows its source already.
        self._trace, self._source = trace, source
        self.variable, self.aval = var, var.aval

    def __repr__(self):
        return f"JitTracer({self.aval})"


class JaxprTrace(Trace):
    """Writes down every primitive. JAX: DynamicJaxprTrace."""

    __slots__ = ("invars", "eqns", "constants", "effects")
    doing = "tracing"

    def __init__(self, name="<function>"):
        super().__init__(name)
        self.invars, self.eqns = [], []
        self.constants = {}              # id -> (Var, value, x), of arrays and outer tracers
        self.effects = set()

    def new_arg(self, aval):
        var = Var(aval)
        self.invars.append(var)
        return JaxprTracer(self, var, user_source())

    def to_atom(self, x):
        """The variable or literal that stands for a value in this program."""
        if isinstance(x, Tracer):
            if x._trace is self:
                return x.variable
            check_alive(x)
        if is_literable(x):
            return self.literal(x)
        if id(x) not in self.constants:
            # x is kept as well: as long as it lives, nothing else has its id
            self.constants[id(x)] = Var(typeof(x)), constant_value(x), x
        return self.constants[id(x)][0]

    @staticmethod
    def literal(x):
        aval = typeof(x)
        if aval.dtype == dtypes.float0:
            return Literal(x, aval)
        value = as_array(x)
        # Weakly typed values stay Arrays, so that they are weak when the program is run again.
        return Literal(value if aval.weak_type else value._value[()], aval)

    def process_primitive(self, primitive, args, params):
        args, params = primitive.to_record(args, params)
        atoms = [self.to_atom(a) for a in args]
        avals = rule_for(primitive, "abstract_eval")(*[a.aval for a in atoms], **params)
        return self.record(primitive, atoms, params, avals)

    def record(self, primitive, atoms, params, avals):
        """Append one equation; tracers of its results."""
        source = user_source()
        outvars = [Var(a) for a in (avals if primitive.multiple_results else [avals])]
        effects = primitive.effects_at([a.aval for a in atoms], params)
        self.effects |= effects
        self.eqns.append(JaxprEqn(atoms, outvars, primitive, params, effects, source))
        outs = [JaxprTracer(self, v, source) for v in outvars]
        return outs if primitive.multiple_results else outs[0]

    def to_result(self, x):
        try:
            typeof(x)
        except TypeError as error:
            raise TypeError(f"a result of {self.name}: {error}") from None
        return self.to_atom(x)

    def to_jaxpr(self, outs):
        """The finished program with results `outs`, and the values of its constvars."""
        outvars = [self.to_result(x) for x in outs]
        constvars = [var for var, _, _ in self.constants.values()]
        consts = [value for _, value, _ in self.constants.values()]
        effects = frozenset(self.effects)
        return Jaxpr(constvars, self.invars, outvars, self.eqns, effects, self.name), consts


def constant_value(x):
    return x if isinstance(x, Tracer) or typeof(x).dtype == dtypes.float0 else as_array(x)


# --- The transformation of flat functions ---------------------------------------------------------

# trace_to_jaxpr : ([a] -> [b]) -> [aval] -> (Jaxpr, consts)

@leak_checked
def trace_to_jaxpr(f, in_avals, name="<function>"):
    """The program of f, a function that returns a list, on arguments of those avals.

    Constants come separately; those from an enclosing trace are its tracers.
    """
    trace = JaxprTrace(name)
    try:
        args = [trace.new_arg(a) for a in in_avals]
        with set_current_trace(trace):
            outs = f(*args)
        jaxpr, consts = trace.to_jaxpr(outs)
    finally:
        trace.end()
    if enable_checks.value:
        check_jaxpr(jaxpr)
    return jaxpr, consts


def trace_to_closed_jaxpr(f, in_avals, name="<function>"):
    """As `trace_to_jaxpr`, as a ClosedJaxpr."""
    return ClosedJaxpr(*trace_to_jaxpr(f, in_avals, name))
