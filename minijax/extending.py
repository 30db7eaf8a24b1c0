# Exported from notebooks/ref_extend.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: JAX's names. Home: ref_extend. In JAX: jax/extend/core, jax/interpreters/*.py.

What those need who define primitives and interpreters as JAX's users do: primitives whose rules are
given in JAX's way, lowering, and the names that JAX has in `jax.core` and `jax.interpreters`.
"""

from functools import partial

from minijax import core
from minijax.array import as_array
from minijax.avals import AbstractValue, ShapedArray, typeof
from minijax.compiler.passes import inline_calls
from minijax.core import rule_for
from minijax.debugging import ensure_compile_time_eval
from minijax.dispatch import jit
from minijax.flatten import fun_name
from minijax.higher_order.programs import batched_aval
from minijax.interpreters import batching
from minijax.interpreters.batching import axis_of
from minijax.interpreters.staging import trace_to_closed_jaxpr
from minijax.jaxpr import (
    ClosedJaxpr, Jaxpr, JaxprEqn, JaxprTypeError, Literal, Var, check_jaxpr, eval_jaxpr,
    jaxpr_as_fun, jaxprs_in_params,
)
from minijax.primitives.callbacks import Effect
from minijax.rule_tables import fancy_primitive_batchers, primitive_batchers, primitive_transposes
from minijax.rules import (
    AxisData, add_tangents, batch_axis_first, broadcast, defbroadcasting, defreducer, defvectorized,
    drop, full_like_aval, instantiate_zeros, moveaxis, not_mapped,
)
from minijax.tracebacks import make_boundaries

__all__ = [
    "no_effects", "Primitive", "deflinear", "deflinear2", "get_primitive_transpose", "add_jaxvals",
    "zeros_like_aval", "bdim_at_front", "register_lowering", "lower_fun", "apply_primitive",
    "new_jaxpr_eqn", "subjaxprs", "mapped_aval", "unmapped_aval", "valid_jaxtype", "eval_context",
    "IN_CORE", "IN_BATCHING",
]


# --- What users define ----------------------------------------------------------------------------

no_effects = frozenset()


class Primitive(core.Primitive):
    """A primitive as JAX's users define it: its implementation gets Arrays and returns any arrays.

    `multiple_results` may be set afterwards. A name that the library has is left to the library.
    """

    def __init__(self, name):
        taken = core.primitives.get(name)
        super().__init__(name, higher_order=True)
        if taken is not None:
            core.primitives[name] = taken

    def def_impl(self, rule):
        """rule(*arrays, **params) -> an array, or a list of them"""
        def impl(*args, **params):
            outs = rule(*args, **params)
            return list(map(as_array, outs)) if self.multiple_results else as_array(outs)
        super().def_impl(impl)
        return rule

    def def_effectful_abstract_eval(self, rule):
        """rule(*avals, **params) -> (aval of the result, or a list of them; a set of effects)"""
        self.def_abstract_eval(lambda *avals, **params: rule(*avals, **params)[0])
        self.effects_at = lambda avals, params: frozenset(rule(*avals, **params)[1])
        return rule

    impl = property(lambda self: rule_for(self, "impl"))
    abstract_eval = property(lambda self: rule_for(self, "abstract_eval"))

    def get_bind_params(self, params):
        """What `bind` takes for an equation's parameters: here and in today's JAX, the same."""
        return params

    def bind_with_trace(self, trace, args, avals, params, /):
        """As `bind`, asking a trace that need not be the current one."""
        return trace.process_primitive(self, args, params)


def deflinear(primitive, transpose_rule):
    """A primitive linear in all operands: transpose_rule(ct, **params) -> a list of cotangents."""
    deflinear2(primitive, lambda ct, *operands, **params: transpose_rule(ct, **params))


def deflinear2(primitive, transpose_rule):
    """As `deflinear`, for rules that look at operands: transpose_rule(ct, *operands, **params)."""
    def jvp(primals, tangents, **params):
        outs = primitive.bind(*primals, **params)
        return outs, primitive.bind(*map(instantiate_zeros, tangents), **params)
    primitive.def_jvp(jvp)
    primitive.def_transpose(transpose_rule)


def get_primitive_transpose(primitive):
    """The transpose rule; NotImplementedError if there is none."""
    if primitive not in primitive_transposes:
        raise NotImplementedError(f"Transpose rule (for reverse-mode differentiation) for "
                                  f"'{primitive}' not implemented")
    return primitive_transposes[primitive]


def add_jaxvals(x, y):
    """x + y, as fan-out sums cotangents."""
    return add_tangents(x, y)


def zeros_like_aval(aval):
    """Zeros of an abstract value."""
    return full_like_aval(aval, 0)


def bdim_at_front(x, bdim, size):
    """x with its batch axis in front; if it has none, repeated along a new one."""
    return batch_axis_first(AxisData(size, None, None), x, bdim)


def register_lowering(prim, rule, platform=None, inline=True, cacheable=True):
    """Make `rule(ctx, *values, **params)` the lowering rule of a primitive, and return it.

    There is one platform, the CPU: rules for others are ignored.
    """
    if platform in (None, "cpu"):
        prim.def_lowering(rule)
    return rule


def lower_fun(fun, multiple_results=True):
    """The lowering rule that computes fun(*operands, **params), a function of other primitives."""
    def rule(ctx, *values, **params):
        def flat(*args):
            outs = fun(*args, **params)
            return list(outs) if multiple_results else [outs]
        program = inline_calls(trace_to_closed_jaxpr(flat, ctx.avals_in, fun_name(fun)))
        outs = ctx.lower_closed(program, values)
        return outs if multiple_results else outs[0]
    return rule


def apply_primitive(prim, *args, **params):
    """The result of a primitive that has a lowering rule: compile it by itself, and run it.

    For primitives without an implementation: `prim.def_impl(partial(xla.apply_primitive, prim))`.
    """
    return jit(partial(prim.bind, **params))(*args)


def new_jaxpr_eqn(invars, outvars, primitive, params, effects=no_effects, source_info=None):
    """An equation."""
    return JaxprEqn(invars, outvars, primitive, params, effects, source_info)


def subjaxprs(jaxpr):
    """The programs in the equations of a program."""
    for eqn in jaxpr.eqns:
        for _, inner in jaxprs_in_params(eqn.params):
            yield inner.jaxpr if isinstance(inner, ClosedJaxpr) else inner


def mapped_aval(size, axis, aval):
    """The type of one example of a batch."""
    return aval if axis is None else aval.update(shape=drop(aval.shape, axis))


def unmapped_aval(size, axis, aval):
    """The type of a batch of examples."""
    return batched_aval(aval, axis_of(size), axis)


def valid_jaxtype(x):
    """Whether a program can have x as a value."""
    try:
        typeof(x)
    except TypeError:
        return False
    return True


def eval_context():
    """`with eval_context():` — primitives are evaluated, whatever is being traced."""
    return core.set_current_trace(core.eval_trace)


# Two modules of ours are called like JAX's, but some of what users look for in them stands in other
# layers. `minijax` imports this module for the effect of adding those names.

IN_CORE = dict(
    AbstractValue=AbstractValue, ShapedArray=ShapedArray, get_aval=typeof, Effect=Effect,
    ensure_compile_time_eval=ensure_compile_time_eval, eval_context=eval_context, Var=Var,
    Literal=Literal, JaxprEqn=JaxprEqn, Jaxpr=Jaxpr, ClosedJaxpr=ClosedJaxpr, eval_jaxpr=eval_jaxpr,
    jaxpr_as_fun=jaxpr_as_fun, check_jaxpr=check_jaxpr, JaxprTypeError=JaxprTypeError,
    jaxprs_in_params=jaxprs_in_params)

IN_BATCHING = dict(
    primitive_batchers=primitive_batchers, fancy_primitive_batchers=fancy_primitive_batchers,
    bdim_at_front=bdim_at_front, moveaxis=moveaxis, not_mapped=not_mapped, broadcast=broadcast,
    defvectorized=defvectorized, defbroadcasting=defbroadcasting, defreducer=defreducer)

for name, value in IN_CORE.items():
    setattr(core, name, value)
make_boundaries(vars(core), IN_CORE)
for name, value in IN_BATCHING.items():
    setattr(batching, name, value)
