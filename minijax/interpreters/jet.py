# Exported from notebooks/19_taylor.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: Taylor mode. Home: 19_taylor. In JAX: jax/experimental/jet.py.

Run a function on truncated power series. Each value is followed along a curve; its tracer holds the
Taylor coefficients, and gets more of them when it is asked. A jvp rule is a differential equation
for the results' coefficients; linear and bilinear primitives say in a `jet` rule what is quicker.
"""

from minijax.avals import typeof
from minijax.core import (
    Trace, Tracer, check_alive, get_current_trace, name_of, rule_for, set_current_trace, unzip2,
)
from minijax.dtypes import float0
from minijax.jaxpr import as_function
from minijax.leaks import leak_checked
from minijax.rules import Zero, bind, const, instantiate_zeros, is_zero

__all__ = [
    "Series", "Coefficients", "Constant", "JetTracer", "JetTrace", "begin", "by_rule",
    "by_equation", "tangents_of", "derivative", "moves", "scaled", "jet_flat",
]


# --- Series that grow -----------------------------------------------------------------------------

class Series:
    """Taylor coefficients of the results of one operation, worked out when they are asked for.

    `terms[k]` are the coefficients of order k, one a result; grow(k) makes them from those before.
    """

    __slots__ = ("terms", "grow")

    def __init__(self, values, grow):
        self.terms, self.grow = [values], grow

    def of_order(self, k):
        while len(self.terms) <= k:
            self.terms.append(self.grow(len(self.terms)))
        return self.terms[k]


class Coefficients:
    """The coefficients of one result: `x[k]` is that of order k, perhaps a symbolic `Zero`."""

    __slots__ = ("series", "number")

    def __init__(self, series, number=0):
        self.series, self.number = series, number

    def __getitem__(self, k):
        return self.series.of_order(k)[self.number]


class Constant:
    """The coefficients of a value that does not move."""

    __slots__ = ("value",)

    def __init__(self, value):
        self.value = value

    def __getitem__(self, k):
        return Zero.like(self.value) if k else self.value


# --- Tracer and trace -----------------------------------------------------------------------------

class JetTracer(Tracer):
    """A value together with its Taylor coefficients."""

    __slots__ = ("terms",)

    def __init__(self, trace, terms):
        super().__init__(trace)
        self.terms = terms

    @property
    def aval(self):
        return typeof(self.terms[0])

    def to_concrete_value(self):
        primal = self.terms[0]
        return primal.to_concrete_value() if isinstance(primal, Tracer) else primal


class JetTrace(Trace):
    """Computes Taylor coefficients up to `order`, on the parent trace."""

    __slots__ = ("parent", "order", "applied")
    doing = "expanding"

    def __init__(self, parent, order, name="<function>"):
        super().__init__(name)
        self.parent, self.order = parent, order
        self.applied = None          # while a rule runs: what it has applied, and to what

    def terms_of(self, x):
        if self.is_mine(x):
            return x.terms
        check_alive(x)
        return Constant(x)

    def process_primitive(self, primitive, args, params):
        if not any([self.is_mine(a) for a in args]):
            for a in args:
                check_alive(a)
            with set_current_trace(self.parent):
                return primitive.bind(*args, **params)
        if primitive.applies_functions:
            # As in JAX, a function with a rule of its own is expanded like any other.
            return as_function(params["call_jaxpr"])(*args)
        if self.applied is not None:
            outs = self.remembered(primitive, args, params)
        elif primitive.higher_order and "jet" in primitive.rules:
            outs = self.apply_program(primitive, args, params)
        else:
            outs = self.apply_first_order(primitive, args, params)
        return outs if primitive.multiple_results else outs[0]

    def apply_first_order(self, primitive, args, params):
        """Results with all their coefficients."""
        self.applied = {}
        try:
            outs = self.remembered(primitive, args, params)
            return [self.finished(out) for out in outs]
        finally:
            self.applied = None

    def finished(self, out):
        if not self.is_mine(out):
            return out
        terms = [out.terms[k] for k in range(self.order + 1)]
        return self.from_terms(terms[0], terms[1:])

    def from_terms(self, primal, terms):
        """A tracer, or the plain value if no coefficient moves it."""
        if all([is_zero(t) for t in terms]):
            return primal
        series = Series([primal], None)
        series.terms += [[t] for t in terms]
        return JetTracer(self, Coefficients(series))

    def apply_program(self, primitive, args, params):
        terms = [self.terms_of(a) for a in args]
        with set_current_trace(self.parent):
            outs, series = primitive.rules["jet"](
                [x[0] for x in terms], [[x[k] for k in range(1, self.order + 1)] for x in terms],
                **params)
        return [self.from_terms(*pair) for pair in zip(outs, series)]

    def remembered(self, primitive, args, params):
        key = primitive, *map(id, args), *params.items()
        try:
            if key not in self.applied:
                self.applied[key] = begin(self, primitive, args, params), args
            return self.applied[key][0]
        except TypeError:              # parameters that can't be looked up
            return begin(self, primitive, args, params)


def begin(trace, primitive, args, params):
    """Results whose coefficients are yet to be worked out."""
    operands = [trace.terms_of(a) for a in args]
    with set_current_trace(trace.parent):
        outs = primitive.bind(*[x[0] for x in operands], **params)
    series = Series(outs if primitive.multiple_results else [outs], None)
    if "jet" in primitive.rules and not primitive.higher_order:
        series.grow = by_rule(trace, primitive, series, args, params)
    else:
        series.grow = by_equation(trace, primitive, args, params)
    return [JetTracer(trace, Coefficients(series, i)) if moves(x) else x
            for i, x in enumerate(series.terms[0])]


def by_rule(trace, primitive, series, args, params):
    operands, written = [trace.terms_of(a) for a in args], []
    outs = [Coefficients(series, i) for i in range(len(series.terms[0]))]
    out = outs if primitive.multiple_results else outs[0]

    def grow(k):
        with set_current_trace(trace.parent):
            term = primitive.rules["jet"](k, out, *operands, **params)
        if not callable(term):
            return term if primitive.multiple_results else [term]
        if not written:
            with set_current_trace(trace):
                written.append(trace.terms_of(term(*args)))
        return [written[0][k]]
    return grow


def by_equation(trace, primitive, args, params):
    tangents = []

    def grow(k):
        if not tangents:
            tangents[:] = tangents_of(trace, primitive, args, params)
        with set_current_trace(trace.parent):
            return [t if is_zero(t) else scaled("div", t[k - 1], k) for t in tangents]
    return grow


def tangents_of(trace, primitive, args, params):
    rule = rule_for(primitive, "jvp")
    with set_current_trace(trace):
        _, tangents = rule(list(args), [derivative(trace, a) for a in args], **params)
    if not primitive.multiple_results:
        tangents = [tangents]
    return [t if is_zero(t) else trace.terms_of(t) for t in tangents]


def derivative(trace, x):
    """x' of a tracer, whose coefficients are those of x moved down by one."""
    if not trace.is_mine(x):
        return Zero.like(x)
    key = "derivative", id(x)
    if key not in trace.applied:
        def grow(k):
            with set_current_trace(trace.parent):
                return [scaled("mul", x.terms[k + 1], k + 1)]
        with set_current_trace(trace.parent):
            first = instantiate_zeros(x.terms[1])
        trace.applied[key] = JetTracer(trace, Coefficients(Series([first], grow))), x
    return trace.applied[key][0]


def moves(x):
    """Whether a value can have a velocity: integers move in steps."""
    return typeof(x).to_tangent_aval().dtype != float0


def scaled(operation, t, number):
    return t if is_zero(t) or number == 1 else bind(operation, t, const(t, number))


# --- The transformation of flat functions ---------------------------------------------------------

# jet_flat : ([a] -> [b]) -> [a] -> [[T a] of orders 1 … n] -> ([b], [[T b] of orders 1 … n])

@leak_checked
def jet_flat(f, primals, series, order):
    """Results and their Taylor coefficients of f(*primals), a function that returns a list.

    A coefficient may be a symbolic `Zero`, among the arguments as among the results.
    """
    trace = JetTrace(get_current_trace(), order, name_of(f))
    args = [trace.from_terms(x, terms) for x, terms in zip(primals, series)]
    try:
        with set_current_trace(trace):
            outs = f(*args)
        terms = [trace.terms_of(out) for out in outs]
        return unzip2([(x[0], [x[k] for k in range(1, order + 1)]) for x in terms])
    finally:
        trace.end()
