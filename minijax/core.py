# Exported from notebooks/01_tracing.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: tracing. Home: 01_tracing. In JAX: jax/_src/core.py.

A primitive does no work itself: it asks the current trace what to do. Evaluation, differentiation,
batching and program capture are traces. Which one is current is a thread-local fact.
"""

import contextvars
import functools
import itertools
import os
import sys
import threading
import weakref

import numpy as np

from minijax import avals
from minijax.array import Array, as_array
from minijax.avals import aval_of_type
from minijax.config import debug_infs, debug_nans
from minijax.errors import (
    ConcretizationTypeError, ImpossibleRuleError, TracerArrayConversionError,
    TracerBoolConversionError, TracerIntegerConversionError, UnexpectedTracerError, see,
)
from minijax.wrong_numbers import refuse_wrong_numbers

__all__ = [
    "RULE_KINDS", "primitives", "rules_epoch", "bump_rules_epoch", "RuleSlots", "Primitive",
    "rule_for", "Trace", "get_current_trace", "swap_ended_traces", "set_current_trace",
    "ConcreteWhenKnown", "raise_if_not_scalar", "concrete_or_error", "Tracer", "tracer_aval",
    "SourceInfo", "user_source", "swap_source", "unzip2", "EvalTrace", "eval_trace", "wrap",
    "run_quietly", "eval_operand", "weak_types_of_results", "predicted_weak_types", "weak_types",
    "check_alive", "forget", "extend_axis_env", "get_axis_env", "extend_scopes", "name_of",
]


# --- Rules hang on the primitive ------------------------------------------------------------------

RULE_KINDS = ("impl", "abstract_eval", "jvp", "transpose", "batch", "lowering", "partial_eval",
              "jet")

primitives = {}                   # name -> Primitive, in order of definition

_rules_epoch = 0


def rules_epoch():
    """A number that changes with every change of a rule: part of the key of every cache."""
    return _rules_epoch


def bump_rules_epoch():
    global _rules_epoch
    _rules_epoch += 1


class RuleSlots:
    """The rules of one primitive: a slot for each kind, and a method to fill it."""

    def __init__(self):
        self.rules = {}           # kind -> function
        self.impossible = {}      # kind -> why there can be no such rule

    def def_rule(self, kind, rule):
        self.rules[kind] = rule
        bump_rules_epoch()
        return rule

    def def_impossible(self, kind, why):
        self.impossible[kind] = why

    def def_impl(self, rule):
        """rule(*numpy_arrays, **params) -> numpy array, or a list of them"""
        return self.def_rule("impl", rule)

    def def_abstract_eval(self, rule):
        """rule(*avals, **params) -> aval, or a list of them"""
        return self.def_rule("abstract_eval", rule)

    def def_jvp(self, rule):
        """rule(primals, tangents, **params) -> (outputs, output tangents)"""
        return self.def_rule("jvp", rule)

    def def_transpose(self, rule):
        """rule(cotangents, *operands, **params) -> one cotangent, or None, an operand"""
        return self.def_rule("transpose", rule)

    def def_batch(self, rule):
        """rule(axis, values, dims, **params) -> (outputs, output dims)"""
        return self.def_rule("batch", rule)

    def def_lowering(self, rule):
        """rule(ctx, *values, **params) -> value, or a list of them: see the loop IR"""
        return self.def_rule("lowering", rule)

    def def_partial_eval(self, rule):
        """rule(trace, *operands, **params) -> outputs, some of them tracers of `trace`"""
        return self.def_rule("partial_eval", rule)

    def def_jet(self, rule):
        """rule(order, results, *operands, **params) -> the results' coefficients of that order"""
        return self.def_rule("jet", rule)


class Primitive(RuleSlots):
    """An operation named `name`. It has rules that give it meanings, and no meaning of its own."""

    # whether its parameters hold Python functions, which may close over tracers
    applies_functions = False

    def __init__(self, name, multiple_results=False, higher_order=False):
        super().__init__()
        self.name = name
        self.multiple_results = multiple_results
        self.higher_order = higher_order     # contains programs: its impl gets and returns Arrays
        self.usual_params = {}               # parameters that printers leave out at these values
        self.dce_rule = None                 # how to do less; see def_dce
        primitives[name] = self

    def bind(self, *args, **params):
        """Apply the primitive: the current trace decides what that means."""
        return (_thread.trace or eval_trace).process_primitive(self, args, params)

    def effects_of(self, params):
        """The side effects of an application; a primitive with some overrides this."""
        return frozenset()

    def effects_at(self, avals, params):
        """The same, for a primitive whose effects depend on the types of its operands."""
        return self.effects_of(params)

    def def_dce(self, rule):
        """rule(equation, which of its results are used) -> an equation that computes only those"""
        self.dce_rule = rule
        return rule

    def to_record(self, args, params):
        """Operands and parameters to write down; one that takes Python functions overrides this."""
        return args, params

    def missing_rule(self, kind):
        """The error for a rule that isn't there."""
        lack = f"no {kind} rule for primitive '{self}'"
        if why := self.impossible.get(kind):
            return ImpossibleRuleError(f"{lack}; it can't have one: {why}")
        return NotImplementedError(f"{lack}; add one with {self}_p.def_{kind}(rule)")

    def __repr__(self):
        return self.name


def rule_for(primitive, kind):
    """The rule of a kind, or an error that says whether it can exist at all."""
    rule = primitive.rules.get(kind)
    if rule is None:
        raise primitive.missing_rule(kind)
    return rule


# --- A trace is an interpreter --------------------------------------------------------------------

class Trace:
    """An interpreter: it says what a primitive applied to its tracers means.

    `name` is that of the function it runs; `doing` says in messages what it does to it.
    """

    __slots__ = ("alive", "name", "__weakref__")
    doing = "transforming"

    def __init__(self, name="<function>"):
        self.alive, self.name = True, name

    def process_primitive(self, primitive, args, params):
        raise NotImplementedError(f"{type(self).__name__} must say what a primitive means")

    def is_mine(self, x):
        return isinstance(x, Tracer) and x._trace is self

    def end(self):
        """Nothing may be asked of this trace any more: using its tracers is now an error."""
        self.alive = False
        if _thread.ended is not None:
            _thread.ended.append(weakref.ref(self))


# --- The current trace ----------------------------------------------------------------------------

class _ThreadState(threading.local):
    trace = None                  # None: evaluate
    axis_env = ()                 # (name, size) of each named axis in scope, innermost last
    source = None                 # of the equation that is being run again
    scopes = ()                   # names given by named_scope, innermost last
    ended = None                  # weak references to traces that ended, if leaks are looked for

    def __init__(self):
        # NumPy's error state is a context variable: this context has all warnings off. Running in
        # it costs a tenth of entering np.errstate.
        self.quiet_context = contextvars.copy_context()
        self.quiet_context.run(np.seterr, all="ignore")


_thread = _ThreadState()


def get_current_trace():
    return _thread.trace or eval_trace


def swap_ended_traces(ended):
    """Collect weak references to traces that end from here on in this list; the one before."""
    previous, _thread.ended = _thread.ended, ended
    return previous


class set_current_trace:
    """`with set_current_trace(trace):` — every primitive inside asks `trace`."""

    __slots__ = ("trace", "previous")

    def __init__(self, trace):
        self.trace = trace

    def __enter__(self):
        self.previous = _thread.trace
        _thread.trace = self.trace
        return self.trace

    def __exit__(self, *exc):
        _thread.trace = self.previous


# --- Values with luggage: tracers -----------------------------------------------------------------

class ConcreteWhenKnown:
    """What Python may ask of an array that takes its elements: works if the trace knows them."""

    __slots__ = ()

    def to_concrete_value(self):
        """The Array behind this tracer if its trace knows it, else None."""
        return None

    def _concrete(self, error):
        value = self.to_concrete_value()
        if value is None:
            raise error(self)
        return value

    def _number(self):
        return self._concrete(ConcretizationTypeError)

    def __bool__(self):
        raise_if_not_scalar(self)
        return bool(self._concrete(TracerBoolConversionError))

    def __int__(self):
        return int(self._number())

    def __float__(self):
        return float(self._number())

    def __complex__(self):
        return complex(self._number())

    def __index__(self):
        return self._concrete(TracerIntegerConversionError).__index__()

    def item(self, *args):
        return self._number().item(*args)

    def tolist(self):
        return self._number().tolist()

    def delete(self):
        return self._number().delete()

    def __format__(self, spec):
        return format(self._number(), spec) if spec else str(self)

    def __reduce__(self):
        return self._number().__reduce__()

    def __copy__(self):
        return self

    def __deepcopy__(self, memo):
        return self

    def __hash__(self):
        raise TypeError("unhashable type: a traced array compares elementwise and may not be a "
                        "dict key; use a Python number, or what is known of it, such as x.shape")


def raise_if_not_scalar(x):
    if x.size != 1:
        raise ValueError("the truth value of an array with more than one element is ambiguous; "
                         f"got {x.aval.str_short()}. Use .any() or .all()")


def concrete_or_error(convert, x, context="", section="shapes-of-values"):
    """convert(x) for a known value; for an unknown one a ConcretizationTypeError with `context`.

    Most values that must be known say how large something is: `section` is where that is explained.
    """
    if not isinstance(x, Tracer):
        return convert(x)
    value = x.to_concrete_value()
    if value is None:
        raise ConcretizationTypeError(x, context, section)
    return convert(value)


class Tracer(ConcreteWhenKnown):
    """Stands for a value that a trace is following. It has an aval, not (always) a value."""

    __slots__ = ("_trace", "_source", "__weakref__")
    __array_priority__ = 1000
    stands_for_array = True       # isinstance(tracer, Array) holds

    aval = None                   # subclasses have one

    def __init__(self, trace):
        self._trace, self._source = trace, user_source()

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)
    weak_type = property(lambda self: self.aval.weak_type)
    nbytes = property(lambda self: self.aval.size * self.aval.dtype.itemsize)
    itemsize = property(lambda self: self.aval.dtype.itemsize)

    def __array__(self, *args, **kwargs):
        raise TracerArrayConversionError(self)

    def __len__(self):
        return self.aval.length()

    def __iter__(self):
        if not self.aval.shape:
            raise TypeError("iteration over a 0-d array")
        return (self[i] for i in range(self.aval.shape[0]))

    def __setitem__(self, index, value):
        raise TypeError("arrays are immutable, and so are traced ones: instead of `x[index] = "
                        "value` write `x = x.at[index].set(value)`\n" + see("in-place-updates"))

    def _origin_msg(self):
        return f"made while {self._trace.doing} {self._trace.name}, at {self._source}"

    def __repr__(self):
        return f"{type(self).__name__}({self.aval})"


def tracer_aval(x):
    return x.aval


aval_of_type[Tracer] = tracer_aval


class _OwnFiles(dict):
    """file name -> whether it is one of this package: asked of many frames for every operation"""

    def __missing__(self, filename):
        self[filename] = filename.startswith(os.path.dirname(avals.__file__) + os.sep)
        return self[filename]


_is_ours = _OwnFiles()


class SourceInfo:
    """A place in the user's code: code object, last instruction, and the named scopes around."""

    __slots__ = ("code", "lasti", "scopes")

    def __init__(self, code, lasti, scopes=()):
        self.code, self.lasti, self.scopes = code, lasti, scopes

    @property
    def position(self):
        """(line, column), which cost too much to work out for every operation."""
        positions = itertools.islice(self.code.co_positions(), self.lasti // 2, None)
        line, _, column, _ = next(positions, (None,) * 4)
        return line, column

    line = property(lambda self: self.position[0])
    name_stack = property(lambda self: "/".join(self.scopes))

    def summary(self):
        """The place as printed programs show it: file:line:column (function)."""
        place = ":".join(str(n) for n in self.position if n)
        return f"{self.code.co_filename}:{place} ({self.code.co_qualname})"

    def __str__(self):
        scope = f" in {self.name_stack}" if self.scopes else ""
        return f"{self.code.co_filename}:{self.line} ({self.code.co_name}){scope}"


def user_source():
    """The innermost place in the call stack outside this package, or None.

    While a program is run again, it is the place that its equation came from.
    """
    if _thread.source is not None:
        return _thread.source
    frame = sys._getframe(1)
    while frame is not None and _is_ours[frame.f_code.co_filename]:
        frame = frame.f_back
    return None if frame is None else SourceInfo(frame.f_code, frame.f_lasti, _thread.scopes)


def swap_source(source):
    """Make user_source() return `source`, or look at the stack if that is None; the one before."""
    previous, _thread.source = _thread.source, source
    return previous


def unzip2(pairs):
    firsts, seconds = [], []
    for first, second in pairs:
        firsts.append(first)
        seconds.append(second)
    return firsts, seconds


# --- Evaluation, in earnest -----------------------------------------------------------------------

class EvalTrace(Trace):
    """Run the primitive's implementation on NumPy buffers. JAX: EvalTrace."""

    __slots__ = ()

    def process_primitive(self, primitive, args, params):
        rule = primitive.rules.get("impl") or rule_for(primitive, "impl")
        if primitive.higher_order:
            outs = rule(*[eval_operand(primitive, a) for a in args], **params)
            # A result of the program inside may be a literal of its jaxpr.
            outs = [as_array(x) for x in (outs if primitive.multiple_results else [outs])]
            if debug_nans.touched or debug_infs.touched:
                refuse_wrong_numbers(primitive.name, [x._value for x in outs])
            return outs if primitive.multiple_results else outs[0]
        # One loop over the operands: this is the path of every eager operation.
        values, weak = [], "weak_type" in params
        for a in args:
            if type(a) is not Array:
                a = eval_operand(primitive, a)
            weak = a.weak_type or weak
            values.append(a._value)
        out = run_quietly(rule, values, params)
        if debug_nans.touched or debug_infs.touched:
            refuse_wrong_numbers(primitive.name, out if primitive.multiple_results else [out])
        if weak:
            return self.weak_results(primitive, out, args, params)
        return [wrap(o, False) for o in out] if primitive.multiple_results else wrap(out, False)

    def weak_results(self, primitive, out, args, params):
        """Results some of which may be weakly typed, as only those of weakly typed operands are."""
        arrays = [eval_operand(primitive, a) for a in args]
        weak = weak_types_of_results(primitive, arrays, params)
        return list(map(wrap, out, weak)) if primitive.multiple_results else wrap(out, weak)


eval_trace = EvalTrace()


def wrap(out, weak_type):
    return Array(out if type(out) is np.ndarray else np.asarray(out), weak_type)


def run_quietly(rule, values, params):
    """rule(*values, **params) without NumPy's floating-point warnings: IEEE defines what 1/0 is."""
    try:
        return _thread.quiet_context.run(rule, *values, **params)
    except RuntimeError as error:
        if "already entered" not in str(error):
            raise
        return rule(*values, **params)      # a rule that itself applies primitives


def eval_operand(primitive, x):
    """The Array of an operand of an evaluation, which can't be a tracer."""
    if isinstance(x, Tracer):
        check_alive(x)
        raise UnexpectedTracerError(
            f"primitive '{primitive}' was evaluated with a traced operand, {x!r}, "
            f"{x._origin_msg()}, whose trace is not the current one.")
    return as_array(x)


def weak_types_of_results(primitive, arrays, params):
    """What the abstract evaluation rule says; remembered for operations without parameters."""
    operands = [a.aval for a in arrays]
    if not params:
        return predicted_weak_types(primitive, _rules_epoch, *operands)
    return weak_types(rule_for(primitive, "abstract_eval")(*operands, **params))


@functools.lru_cache(4096)
def predicted_weak_types(primitive, epoch, *operands):
    return weak_types(rule_for(primitive, "abstract_eval")(*operands))


def weak_types(results):
    is_list = isinstance(results, (list, tuple))
    return [a.weak_type for a in results] if is_list else results.weak_type


# --- A tracer that got away -----------------------------------------------------------------------

def check_alive(x):
    """Refuse a tracer whose trace has ended."""
    if isinstance(x, Tracer) and not x._trace.alive:
        raise UnexpectedTracerError(
            f"a traced value was used after its trace ended: {x!r}, {x._origin_msg()}. It escaped "
            "by a side effect (a global, a list, an attribute, a closure or a generator). Return "
            "the value from the transformed function instead of storing it.")


# --- Emptying a column ----------------------------------------------------------------------------

_kept = {}         # (primitive, kind) -> the package's own rule, or None, while it is away


class forget:
    """Take away the rules of one kind, from all primitives or from those named, until `restore()`.

    Works at once, and as `with forget("jvp"): …`, which undoes it on leaving even after an error.
    While a rule is away the reader may define another; restoring brings the package's rule back.
    Forgetting or restoring twice is the same as once.
    """

    def __init__(self, kind, *only):
        if kind not in RULE_KINDS:
            raise ValueError(f"no rule kind {kind!r}; the kinds are {', '.join(RULE_KINDS)}")
        self.kind = kind
        self.before = {p: p.rules.pop(kind, None) for p in only or primitives.values()}
        self.first = [p for p in self.before if (p, kind) not in _kept]
        for p in self.first:
            _kept[p, kind] = self.before[p]
        bump_rules_epoch()

    def restore(self):
        """Bring back the package's rules, whoever took them away."""
        away = [p for p in self.before if (p, self.kind) in _kept]
        self._put_back({p: _kept.pop((p, self.kind)) for p in away})

    def __enter__(self):
        return self

    def __exit__(self, *exc):
        # Undo this forgetting only: an outer one may go on.
        self._put_back(self.before)
        for p in self.first:
            _kept.pop((p, self.kind), None)

    def _put_back(self, rules):
        for primitive, rule in rules.items():
            primitive.rules.pop(self.kind, None)
            if rule is not None:
                primitive.rules[self.kind] = rule
        bump_rules_epoch()


# --- Names of axes --------------------------------------------------------------------------------

class extend_axis_env:
    """`with extend_axis_env(name, size):` — the name of a mapped axis is in scope inside."""

    def __init__(self, name, size):
        self.added = () if name is None else ((name, size),)

    def __enter__(self):
        self.previous = _thread.axis_env
        _thread.axis_env = self.previous + self.added

    def __exit__(self, *exc):
        _thread.axis_env = self.previous


def get_axis_env():
    return _thread.axis_env


class extend_scopes:
    """`with extend_scopes(name):` — what is traced inside remembers that it belongs to `name`."""

    def __init__(self, name):
        self.name = name

    def __enter__(self):
        self.previous = _thread.scopes
        _thread.scopes = (*self.previous, self.name)

    def __exit__(self, *exc):
        _thread.scopes = self.previous


def name_of(f):
    return getattr(f, "__name__", "<function>")
