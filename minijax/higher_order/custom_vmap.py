# Exported from notebooks/15_custom_rules.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: functions with a batch rule. Home: 15_custom_rules. In JAX: custom_batching.py.

`custom_vmap_call_p` applies a program; vmap asks the user's rule instead of batching the program.
"""

from minijax.core import Primitive
from minijax.higher_order.programs import jvp_jaxpr, tracked
from minijax.interpreters.jvp import jvp_instantiated
from minijax.interpreters.transpose import backward_pass
from minijax.jaxpr import ClosedJaxpr, dce_jaxpr, eval_jaxpr, inner_effects
from minijax.rules import Zero, batch_axis_first, is_zero, not_mapped

__all__ = ["custom_vmap_call_p", "rule_for_tangents"]


# --- A rule for batches ---------------------------------------------------------------------------

# rule : (axis, batches, their dims) -> (results, their dims)

custom_vmap_call_p = Primitive("custom_vmap_call", multiple_results=True, higher_order=True)
custom_vmap_call_p.effects_of = inner_effects
custom_vmap_call_p.def_impossible("lowering", "the compiler puts the inner program in its place")
custom_vmap_call_p.def_impossible("partial_eval", "it is recorded whole: a part would have no rule")


@custom_vmap_call_p.def_impl
def _custom_vmap_impl(*args, call, rule):
    return eval_jaxpr(call.jaxpr, [], *args)


@custom_vmap_call_p.def_abstract_eval
def _custom_vmap_abstract_eval(*avals, call, rule):
    return call.out_avals


@custom_vmap_call_p.def_jvp
def _custom_vmap_jvp(primals, tangents, *, call, rule):
    outs = custom_vmap_call_p.bind(*primals, call=call, rule=rule)
    given = tuple(not is_zero(t) for t in tangents)
    program, consts, produced = jvp_jaxpr(call.jaxpr, given)
    # Results and tangents come from two calls, so that the first is known when tangents are not.
    tangents_only = dce_jaxpr(program, [False] * len(outs) + [True] * sum(produced))
    rest = iter(custom_vmap_call_p.bind(
        *consts, *primals, *tracked(given, tangents), call=ClosedJaxpr(tangents_only),
        rule=rule_for_tangents(rule, len(consts), given, produced)))
    return outs, [next(rest) if flag else Zero.like(x) for flag, x in zip(produced, outs)]


@custom_vmap_call_p.def_transpose
def _custom_vmap_transpose(cts, *operands, call, rule):
    return backward_pass(call.jaxpr, [], operands, cts)


@custom_vmap_call_p.def_batch
def _custom_vmap_batch(axis, vals, dims, *, call, rule):
    return rule(axis, vals, dims)


def rule_for_tangents(rule, num_consts, given, produced):
    """The batched tangents of a function are the tangents of its batched form."""
    def tangent_rule(axis, vals, dims):
        vals, dims = vals[num_consts:], dims[num_consts:]
        n, where = len(given), tracked(given, range(len(given)))
        where = [*range(n), *where]
        mapped = {i for i, d in zip(where, dims) if d is not not_mapped}
        fronted = [batch_axis_first(axis, x, d) if i in mapped else x
                   for i, x, d in zip(where, vals, dims)]
        rest, out_dims = iter(fronted[n:]), []

        def batched_function(*primals):
            outs, out_dims[:] = rule(axis, primals, [0 if i in mapped else None for i in range(n)])
            return outs

        primals = fronted[:n]
        tangents = [next(rest) if flag else Zero.like(x) for flag, x in zip(given, primals)]
        _, out_tangents = jvp_instantiated(batched_function, primals, tangents)
        return tracked(produced, out_tangents), tracked(produced, out_dims)
    return tangent_rule
