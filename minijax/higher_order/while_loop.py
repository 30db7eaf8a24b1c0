# Exported from notebooks/14_control_flow.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: loops as data. Home: 14_control_flow. In JAX: jax/_src/lax/control_flow/loops.py.

`while_p` contains two programs: the condition and the body. Their number of turns is not known
before they run; so there is nothing to keep for a way back, and no transpose rule.
"""

import numpy as np

from minijax.array import Array, as_array
from minijax.avals import typeof
from minijax.core import Primitive, set_current_trace
from minijax.errors import see
from minijax.higher_order.cond import refuse_exact_effects
from minijax.higher_order.evaluate import run_equation, run_program, runs_compiled
from minijax.higher_order.programs import (
    any_flag, batch_jaxpr, batch_jaxpr_to, instantiated, jvp_jaxpr, memo_by_jaxpr, merge,
    partial_eval_jaxpr, split_list, tracked, untracked,
)
from minijax.interpreters.staging import JaxprTrace
from minijax.jaxpr import ClosedJaxpr, Var, dce_jaxpr, inner_effects, inputs_read
from minijax.lower_loops import lower_while
from minijax.rules import Zero, is_zero, move_batch_axis, not_mapped

__all__ = [
    "jvp_body", "batched_carries", "known_loop", "while_p", "bind_while", "advance", "ignoring",
    "dims_of_carries", "loop_used",
]


# --- A loop that ends when it ends ----------------------------------------------------------------

# A property of carries, such as "has a tangent", spreads from turn to turn: a carry has it if its
# start has it or the body gives it to the next turn. Add carries until no turn adds another.

@memo_by_jaxpr
def jvp_body(body, num_consts, given):
    """The body on (consts, their tangents, carries, theirs), its constants, which carries move."""
    const_moves, moving = split_list(given, [num_consts])
    while True:
        program, consts, produced = jvp_jaxpr(body, (*const_moves, *moving), moving)
        if produced == moving:
            break
        moving = produced
    first, const, carry, const_dots, carry_dots = split_list(
        program.invars, [len(consts), num_consts, len(moving), sum(const_moves)])
    return (program.replace(invars=[*first, *const, *const_dots, *carry, *carry_dots]), consts,
            moving)


@memo_by_jaxpr
def batched_carries(body, axis, const_dims, batched):
    """Which carries have a batch axis, given those that start with one."""
    while True:
        dims = (*const_dims, *[0 if flag else not_mapped for flag in batched])
        out_dims = batch_jaxpr(body, axis, dims)[2]
        found = tuple([flag or d is not not_mapped for flag, d in zip(batched, out_dims)])
        if found == batched:
            return batched
        batched = found


@memo_by_jaxpr
def known_loop(body, condition, const_unknown, cond_const_unknown, unknown):
    """The loop of known carries only, and which carries those are not; None if it can't run.

    It can run if the condition depends on known carries only. Returns ((body, consts), (condition,
    consts), unknown carries).
    """
    while True:
        known, consts, _, out_unknown, _ = partial_eval_jaxpr(
            body, (*const_unknown, *unknown), unknown)
        if tuple(out_unknown) == unknown:
            break
        unknown = tuple(out_unknown)
    test, test_consts, _, (test_unknown,), _ = partial_eval_jaxpr(
        condition, (*cond_const_unknown, *unknown))
    if test_unknown or all(unknown):
        return None
    keep = [i < len(unknown) - sum(unknown) for i in range(len(known.outvars))]
    return (dce_jaxpr(known, keep), consts), (test, test_consts), unknown


# --- No way back ----------------------------------------------------------------------------------

while_p = Primitive("while", multiple_results=True, higher_order=True)
while_p.effects_of = inner_effects
while_p.def_impossible("transpose", (
    "reverse mode needs the values of every turn, and how many turns a while loop takes is not "
    "known before it runs. Use lax.scan, or lax.fori_loop with bounds that are Python numbers; for "
    "a loop that runs until it converges, give the derivative of its result with custom_vjp\n"
    + see("gradients-of-loops")))


def bind_while(condition, cond_consts, body, body_consts, carries):
    """Run the body while the condition holds; both are programs without constvars."""
    return while_p.bind(*cond_consts, *body_consts, *carries, cond_jaxpr=ClosedJaxpr(condition),
                        cond_nconsts=len(cond_consts), body_jaxpr=ClosedJaxpr(body),
                        body_nconsts=len(body_consts))


@while_p.def_impl
def _while_impl(*args, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    if runs_compiled([*map(typeof, args), *body_jaxpr.out_avals]):
        return run_equation(while_p, args, dict(
            cond_jaxpr=cond_jaxpr, cond_nconsts=cond_nconsts, body_jaxpr=body_jaxpr,
            body_nconsts=body_nconsts))
    cond_consts, body_consts, carries = split_list(args, [cond_nconsts, body_nconsts])
    while True:
        holds = np.asarray(run_program(cond_jaxpr.jaxpr, [*cond_consts, *carries])[0])
        if not holds.any():
            break
        following = run_program(body_jaxpr.jaxpr, [*body_consts, *carries])
        carries = [advance(holds, old, new) for old, new in zip(carries, following)]
    return [Array(as_array(x)._value, a.weak_type) for x, a in zip(carries, body_jaxpr.out_avals)]


def advance(holds, old, new):
    """The new carry for examples whose condition holds: its axes are the first of the carry."""
    if not holds.ndim:
        return new
    old, new = as_array(old)._value, as_array(new)._value
    return Array(np.where(holds.reshape(holds.shape + (1,) * (new.ndim - holds.ndim)), new, old))


@while_p.def_abstract_eval
def _while_abstract_eval(*avals, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    return body_jaxpr.out_avals


@while_p.def_jvp
def _while_jvp(primals, tangents, *, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    cond_consts, consts, carries = split_list(primals, [cond_nconsts, body_nconsts])
    _, const_dots, carry_dots = split_list(tangents, [cond_nconsts, body_nconsts])
    given = tuple([not is_zero(t) for t in [*const_dots, *carry_dots]])
    body, hoisted, moving = jvp_body(body_jaxpr.jaxpr, body_nconsts, given)
    const_dots = [t for t in const_dots if not is_zero(t)]
    carry_dots = tracked(moving, instantiated(moving, carry_dots))
    condition = ignoring(cond_jaxpr.jaxpr, tuple(map(typeof, carry_dots)))
    outs = bind_while(condition, cond_consts, body, [*hoisted, *consts, *const_dots],
                      [*carries, *carry_dots])
    outs, out_dots = split_list(outs, [len(carries)])
    return outs, merge(moving, out_dots, map(Zero.like, untracked(moving, outs)))


@memo_by_jaxpr
def ignoring(condition, avals):
    """The condition with more arguments, which it does not read."""
    return condition.replace(invars=[*condition.invars, *map(Var, avals)])


# --- Examples that end at different times ---------------------------------------------------------

@while_p.def_batch
def _while_batch(axis, vals, dims, *, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    cond_consts, consts, carries = split_list(vals, [cond_nconsts, body_nconsts])
    cond_dims, const_dims, start_dims = map(tuple, split_list(dims, [cond_nconsts, body_nconsts]))
    batched = batched_carries(body_jaxpr.jaxpr, axis, const_dims,
                              tuple([d is not not_mapped for d in start_dims]))
    carry_dims, test_dim = dims_of_carries(cond_jaxpr.jaxpr, axis, cond_dims, batched)
    if test_dim is not not_mapped:
        refuse_exact_effects("while_loop", cond_jaxpr, body_jaxpr)
    condition, more = batch_jaxpr_to(cond_jaxpr.jaxpr, axis, (*cond_dims, *carry_dims), (test_dim,))
    body, hoisted = batch_jaxpr_to(body_jaxpr.jaxpr, axis, (*const_dims, *carry_dims), carry_dims)
    carries = [x if want is not_mapped else move_batch_axis(axis, d, want, x)
               for x, d, want in zip(carries, start_dims, carry_dims)]
    outs = bind_while(condition, [*more, *cond_consts], body, [*hoisted, *consts], carries)
    return outs, list(carry_dims)


def dims_of_carries(condition, axis, cond_dims, batched):
    """Where carries have their batch axes, and where the condition has its.

    With a condition for each example, a turn is a turn for those examples whose condition still
    holds: axes of the condition are the first axes of every carry. So the new axis comes first if
    the condition has it, otherwise after those that the condition has from an earlier vmap.
    """
    in_front = [0 if b else not_mapped for b in batched]
    (found,) = batch_jaxpr(condition, axis, (*cond_dims, *in_front))[2]
    if found is not not_mapped:
        return (0,) * len(batched), 0
    rank = condition.out_avals[0].ndim
    return tuple([rank if b else not_mapped for b in batched]), not_mapped


@while_p.def_partial_eval
def _while_partial_eval(trace, *args, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    params = dict(cond_jaxpr=cond_jaxpr, cond_nconsts=cond_nconsts, body_jaxpr=body_jaxpr,
                  body_nconsts=body_nconsts)
    groups = split_list(args, [cond_nconsts, body_nconsts])
    flags = [tuple([trace.is_mine(x) for x in group]) for group in groups]
    # Nothing of a turn can be kept for later, so the later loop computes known carries once more.
    later = JaxprTrace.process_primitive(trace, while_p, args, params)
    loop = known_loop(body_jaxpr.jaxpr, cond_jaxpr.jaxpr, flags[1], flags[0], flags[2])
    if loop is None:
        return later
    (body, consts), (test, test_consts), unknown = loop
    with set_current_trace(trace.parent):
        known = bind_while(test, [*test_consts, *untracked(flags[0], groups[0])],
                           body, [*consts, *untracked(flags[1], groups[1])],
                           untracked(unknown, groups[2]))
    return merge(unknown, tracked(unknown, later), known)


while_p.def_lowering(lower_while)


@while_p.def_dce
def _while_dce(eqn, used):
    cond_jaxpr, body_jaxpr = eqn.params["cond_jaxpr"].jaxpr, eqn.params["body_jaxpr"].jaxpr
    sizes = [eqn.params["cond_nconsts"], eqn.params["body_nconsts"]]
    body, condition, const_read, needed = loop_used(body_jaxpr, cond_jaxpr, *sizes, used)
    cond_consts, consts, carries = split_list(eqn.invars, sizes)
    params = dict(cond_jaxpr=ClosedJaxpr(condition), cond_nconsts=sizes[0],
                  body_jaxpr=ClosedJaxpr(body), body_nconsts=sum(const_read))
    return eqn.replace(params=params, outvars=tracked(needed, eqn.outvars), invars=[
        *cond_consts, *tracked(const_read, consts), *tracked(needed, carries)])


@memo_by_jaxpr
def loop_used(body, condition, cond_nconsts, body_nconsts, used):
    """Both programs with needed carries only, which consts the body reads, and those carries.

    A carry is needed if its result is used, or the condition or another needed carry reads it.
    """
    _, tested = split_list(inputs_read(condition), [cond_nconsts])
    needed = any_flag(used, tested)
    while True:
        smaller = dce_jaxpr(body, needed)
        const_read, read = split_list(inputs_read(smaller), [body_nconsts])
        if any_flag(needed, read) == needed:
            break
        needed = any_flag(needed, read)
    test_consts, test_carries = split_list(condition.invars, [cond_nconsts])
    consts, carries = split_list(body.invars, [body_nconsts])
    return (smaller.replace(invars=[*tracked(const_read, consts), *tracked(needed, carries)]),
            condition.replace(invars=[*test_consts, *tracked(needed, test_carries)]),
            const_read, needed)
