# Exported from notebooks/15_custom_rules.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: functions with a jvp rule. Home: 15_custom_rules. In JAX: custom_derivatives.py.

`custom_jvp_call_p` applies a function. Differentiated, it asks the rule that the user gave with it;
batched, it applies the batched function with the batched rule, so the rule survives.
"""

from minijax.avals import typeof
from minijax.core import Primitive, UnexpectedTracerError, name_of
from minijax.higher_order.programs import closed_program, tracked
from minijax.interpreters.batching import batch_flat, to_dim
from minijax.interpreters.transpose import backward_pass
from minijax.jaxpr import ClosedJaxpr, as_function, inner_effects
from minijax.rules import Zero, is_zero, not_mapped

__all__ = [
    "CustomCall", "transpose_call", "no_closed_over_tangents", "batched", "agree", "moved",
    "custom_jvp_call_p", "batched_jvp", "with_symbolic_zeros",
]


# --- A function and its rule ----------------------------------------------------------------------

class CustomCall(Primitive):
    """A primitive that applies `call_jaxpr` and has a rule about it from elsewhere.

    `call_jaxpr` is a flat Python function, until a trace writes the call down: then it is a
    program, and the first `num_consts` operands are the values that the function had closed over.
    """

    applies_functions = True

    def __init__(self, name):
        super().__init__(name, multiple_results=True, higher_order=True)
        self.usual_params = {"num_consts": 0}
        self.effects_of = inner_effects
        self.def_impossible("lowering", "the compiler puts the inner program in its place")
        self.def_impossible("partial_eval", "it is recorded whole: a part of it would have no rule")

    def to_record(self, args, params):
        fun = params["call_jaxpr"]
        if isinstance(fun, ClosedJaxpr):
            return args, params
        program, consts = closed_program(fun, [typeof(x) for x in args], name_of(fun))
        num_consts = len(consts) + params["num_consts"]
        return [*consts, *args], {**params, "call_jaxpr": ClosedJaxpr(program),
                                  "num_consts": num_consts}


def transpose_call(cts, *operands, call_jaxpr, **params):
    """A linear call runs backwards like its program."""
    return backward_pass(call_jaxpr.jaxpr, [], operands, cts)


def no_closed_over_tangents(what, tangents):
    if not all(is_zero(t) for t in tangents):
        raise UnexpectedTracerError(
            f"Detected differentiation of a {what} function with respect to a closed-over value. "
            "Its rule is about arguments only: pass the value as an "
            "argument and let the rule handle it; minijax.closure_convert finds such values")


# --- Batched functions ----------------------------------------------------------------------------

# A function and its rule must agree about where results have their batch axes, and either may be
# the first to run: it fills in the list `out_dims` that they share.

def batched(f, axis, dims, out_dims):
    """The flat f on batches whose axes are at `dims`, with those of the results at `out_dims`."""
    def f_batched(*vals):
        outs, found = batch_flat(f, axis, vals, dims)
        agree(out_dims, [d is not not_mapped for d in found])
        return moved(axis, outs, found, out_dims)
    f_batched.__name__ = name_of(f)
    return f_batched


def agree(out_dims, has_axis):
    if not out_dims:
        out_dims[:] = [0 if flag else not_mapped for flag in has_axis]


def moved(axis, vals, dims, wanted):
    return [to_dim(axis, x, d, want) for x, d, want in zip(vals, dims, wanted)]


# --- custom_jvp_call ------------------------------------------------------------------------------

custom_jvp_call_p = CustomCall("custom_jvp_call")
custom_jvp_call_p.def_transpose(transpose_call)


@custom_jvp_call_p.def_impl
def _custom_jvp_impl(*args, call_jaxpr, jvp, num_consts, symbolic_zeros):
    return as_function(call_jaxpr)(*args)


@custom_jvp_call_p.def_abstract_eval
def _custom_jvp_abstract_eval(*avals, call_jaxpr, jvp, num_consts, symbolic_zeros):
    return call_jaxpr.out_avals


# jvp : ([a], [T a or Zero]) -> ([b], [T b or Zero])

@custom_jvp_call_p.def_jvp
def _custom_jvp_jvp(primals, tangents, *, call_jaxpr, jvp, num_consts, symbolic_zeros):
    no_closed_over_tangents("custom_jvp", tangents[:num_consts])
    return jvp(primals[num_consts:], tangents[num_consts:])


@custom_jvp_call_p.def_batch
def _custom_jvp_batch(axis, vals, dims, *, call_jaxpr, jvp, num_consts, symbolic_zeros):
    out_dims = []
    outs = custom_jvp_call_p.bind(
        *vals, call_jaxpr=batched(as_function(call_jaxpr), axis, dims, out_dims),
        jvp=batched_jvp(jvp, axis, dims[num_consts:], out_dims), num_consts=num_consts,
        symbolic_zeros=symbolic_zeros)
    return outs, out_dims


def batched_jvp(jvp, axis, dims, out_dims):
    """The rule on batches: a tangent has its batch axis where its primal has it."""
    def jvp_batched(primals, tangents):
        given = [not is_zero(t) for t in tangents]
        flat, produced = with_symbolic_zeros(jvp, given)
        found, found_dims = batch_flat(flat, axis, [*primals, *tracked(given, tangents)],
                                       [*dims, *tracked(given, dims)])
        n, rest = len(produced), iter(found_dims[len(produced):])
        tangent_dims = [next(rest) if flag else not_mapped for flag in produced]
        agree(out_dims, [(d, t) != (not_mapped, not_mapped)
                         for d, t in zip(found_dims, tangent_dims)])
        outs = moved(axis, found[:n], found_dims, out_dims)
        ts = iter(moved(axis, found[n:], found_dims[n:], tracked(produced, out_dims)))
        return outs, [next(ts) if flag else Zero.like(x) for flag, x in zip(produced, outs)]
    jvp_batched.__name__ = name_of(jvp)
    return jvp_batched


def with_symbolic_zeros(jvp, given):
    """A flat function of primals and the given tangents only, and a list of flags.

    Once the function has run, a flag tells of each result whether it has a tangent, which follows
    after the results.
    """
    produced = []

    def flat(*args):
        primals, rest = args[:len(given)], iter(args[len(given):])
        tangents = [next(rest) if flag else Zero.like(x) for flag, x in zip(given, primals)]
        outs, out_tangents = jvp(primals, tangents)
        produced[:] = [not is_zero(t) for t in out_tangents]
        return [*outs, *tracked(produced, out_tangents)]
    return flat, produced
