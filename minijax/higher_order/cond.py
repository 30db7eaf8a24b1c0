# Exported from notebooks/14_control_flow.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: choices as data. Home: 14_control_flow. In JAX: jax/_src/lax/control_flow/conditionals.py.

`cond_p` contains one program a branch, and runs one of them. A transformation of it transforms all
branches in the same way, so that they still have the same arguments and results.
"""

from collections import Counter
from functools import partial
from typing import NamedTuple

import numpy as np

from minijax.array import Array, as_array
from minijax.avals import typeof
from minijax.core import Primitive, set_current_trace
from minijax.higher_order.evaluate import run_program
from minijax.higher_order.programs import (
    batch_jaxpr, batch_jaxpr_to, jvp_jaxpr, memo_by_jaxpr, merge, partial_eval_jaxpr, split_list,
    tracked, transpose_jaxpr, untracked,
)
from minijax.interpreters.staging import JaxprTrace, trace_to_jaxpr
from minijax.jaxpr import ClosedJaxpr, Var, dce_jaxpr, eval_jaxpr, inner_effects, inputs_read
from minijax.lower_loops import lower_cond
from minijax.primitives.elementwise import eq, select_n
from minijax.rules import (
    Zero, batch_axis_first, bind, broadcast, full_like_aval, is_undefined_primal, is_zero,
    not_mapped,
)

__all__ = [
    "share_consts", "take_all", "any_of", "transformed_alike", "jvp_branches", "batch_branches",
    "transpose_branches", "SplitBranches", "split_branches", "join_splits", "Residuals", "numbered",
    "cond_p", "bind_cond", "programs_of", "select_branches", "refuse_exact_effects", "along_rows",
    "branches_used",
]


# --- A choice is data -----------------------------------------------------------------------------

# share_consts : [(a_i, b) -> c], [values of a_i] -> ([(all a, b) -> c], values of all a)

def share_consts(programs, consts_of_each):
    """Programs whose first arguments are constants of their own, made to take those of all."""
    merged = {id(c): c for consts in consts_of_each for c in consts}
    number = {key: i for i, key in enumerate(merged)}
    avals = tuple([typeof(c) for c in merged.values()])
    shared = [take_all(p, tuple([number[id(c)] for c in consts]), avals)
              for p, consts in zip(programs, consts_of_each)]
    return tuple(shared), list(merged.values())


@memo_by_jaxpr
def take_all(program, numbers, avals):
    """The program with first arguments of those types, of which its own have the given numbers."""
    own = dict(zip(numbers, program.invars))
    first = [own[i] if i in own else Var(aval) for i, aval in enumerate(avals)]
    return program.replace(invars=[*first, *program.invars[len(numbers):]])


def any_of(flags_of_each):
    """For each result, whether its flag is set in any branch."""
    return tuple([any(flags) for flags in zip(*flags_of_each)])


def transformed_alike(transform, branches, *args):
    """The transformed branches, their common constants, and which results come out in any of them.

    A result that comes out in one branch comes out in all, as zeros where it is one.
    """
    produced = any_of([transform(b, *args)[2] for b in branches])
    programs, consts, _ = zip(*[transform(b, *args, produced) for b in branches])
    return *share_consts(programs, consts), produced


# Each function is memoised by the first branch. It returns programs and their common constants.

@memo_by_jaxpr
def jvp_branches(first, others, given):
    """The branches on pairs, and which results have a tangent: those with one in any branch."""
    return transformed_alike(jvp_jaxpr, (first, *others), given)


@memo_by_jaxpr
def batch_branches(first, others, axis, dims):
    """The branches on batches, and where the batch axis of each result is: in front, or nowhere."""
    branches = (first, *others)
    found = any_of([[d is not not_mapped for d in batch_jaxpr(b, axis, dims)[2]] for b in branches])
    out_dims = tuple([0 if flag else not_mapped for flag in found])
    programs, consts = zip(*[batch_jaxpr_to(b, axis, dims, out_dims) for b in branches])
    return *share_consts(programs, consts), out_dims


@memo_by_jaxpr
def transpose_branches(first, others, linear, given):
    """The branches backwards, and which cotangents come out: those that do in any branch."""
    return transformed_alike(transpose_jaxpr, (first, *others), linear, given)


class SplitBranches(NamedTuple):
    """The two parts of all branches.

    A known program takes `consts` and the known operands; it returns the known results, then a
    value for every slot. A later program takes those of the former's arguments whose numbers are in
    `used`, the values of the slots, and the unknown operands.
    """
    known: tuple
    consts: list
    later: tuple
    used: list
    out_unknown: tuple


@memo_by_jaxpr
def split_branches(first, others, unknown):
    """The SplitBranches of branches of which some operands are unknown."""
    branches = (first, *others)
    out_unknown = any_of([partial_eval_jaxpr(b, unknown)[3] for b in branches])
    splits = [partial_eval_jaxpr(b, unknown, out_unknown) for b in branches]
    return join_splits(*zip(*[(s[0], s[1], s[2], s[4]) for s in splits]), out_unknown)


def join_splits(known, consts, later, sources, out_unknown):
    """The SplitBranches of branches that are split. Residuals differ, and share slots.

    A branch fills the slots of the types that it has residuals of, and puts zeros into the others.
    """
    programs, consts = share_consts(known, consts)
    parts = [Residuals(*part) for part in zip(known, programs, later, sources)]
    used = sorted({i for part in parts for i in part.forwarded})
    slots = list({key: None for part in parts for key in part.computed})
    return SplitBranches(tuple([part.fill(slots) for part in parts]), consts,
                         tuple([part.take(used, slots) for part in parts]), used, out_unknown)


class Residuals:
    """What the known program of one branch hands on: some arguments, and values of its own."""

    def __init__(self, known, program, later, sources):
        """`program` is `known` with the constants of all branches as its first arguments."""
        self.program, self.later = program, later
        pairs = list(zip(later.invars, sources))
        self.forwarded = {program.invars.index(known.invars[s]): var
                          for var, s in pairs if s is not None}
        self.computed = dict(numbered([var for var, s in pairs if s is None]))
        self.unknown = later.invars[len(pairs):]

    def fill(self, slots):
        """The known program with a result for every slot."""
        n = len(self.program.outvars) - len(self.computed)

        def run(*args):
            outs = eval_jaxpr(self.program, [], *args)
            own = dict(zip(self.computed, outs[n:]))
            return [*outs[:n], *[own[key] if key in own else full_like_aval(key[0], 0)
                                 for key in slots]]
        return trace_to_jaxpr(run, self.program.in_avals, self.program.name)[0]

    def take(self, used, slots):
        """The later program with an argument for every argument handed on and every slot."""
        forwarded = [self.forwarded.get(i) or Var(self.program.in_avals[i]) for i in used]
        values = [self.computed.get(key) or Var(key[0]) for key in slots]
        return self.later.replace(invars=[*forwarded, *values, *self.unknown])


def numbered(variables):
    """((type, number among those of this type), variable) for each variable."""
    counts = Counter()
    for var in variables:
        yield (var.aval, counts[var.aval]), var
        counts[var.aval] += 1


cond_p = Primitive("cond", multiple_results=True, higher_order=True)
cond_p.effects_of = inner_effects


def bind_cond(index, programs, operands):
    """Run the program numbered `index`, an int32; they have no constvars."""
    return cond_p.bind(index, *operands, branches=tuple(map(ClosedJaxpr, programs)))


def programs_of(branches):
    """The first program, and the others."""
    first, *others = [b.jaxpr for b in branches]
    return first, tuple(others)


@cond_p.def_impl
def _cond_impl(index, *operands, branches):
    # As in select_n, an index that is too small or too large means the first or last branch.
    branch = branches[min(max(int(index._value), 0), len(branches) - 1)].jaxpr
    outs = run_program(branch, operands)
    return [Array(as_array(x)._value, a.weak_type) for x, a in zip(outs, branches[0].out_avals)]


@cond_p.def_abstract_eval
def _cond_abstract_eval(index, *operands, branches):
    return branches[0].out_avals


@cond_p.def_jvp
def _cond_jvp(primals, tangents, *, branches):
    index, *primals = primals
    given = tuple([not is_zero(t) for t in tangents[1:]])
    programs, consts, produced = jvp_branches(*programs_of(branches), given)
    outs = bind_cond(index, programs, [*consts, *primals, *tracked(given, tangents[1:])])
    outs, out_tangents = split_list(outs, [len(produced)])
    return outs, merge(produced, out_tangents, map(Zero.like, untracked(produced, outs)))


# --- One choice for each example ------------------------------------------------------------------

@cond_p.def_batch
def _cond_batch(axis, vals, dims, *, branches):
    if dims[0] is not not_mapped:
        return select_branches(axis, vals, dims, branches)
    index, *operands = vals
    programs, consts, out_dims = batch_branches(*programs_of(branches), axis, tuple(dims[1:]))
    return bind_cond(index, programs, [*consts, *operands]), list(out_dims)


def select_branches(axis, vals, dims, branches):
    """Each example has a branch of its own: run all branches on all examples, then select."""
    refuse_exact_effects("cond or switch", *branches)
    index, *operands = [batch_axis_first(axis, x, d) for x, d in zip(vals, dims)]
    n_outs, outs = len(branches[0].out_avals), []
    for number, branch in enumerate(branches):
        # Derivatives of a branch may be NaN at operands that are not meant for it, and 0 · NaN =
        # NaN. Past this select, cotangents of those operands do not come back.
        mine = eq(index, np.int32(number))
        chosen = [select_n(along_rows(mine, x), bind("stop_gradient", x), x) for x in operands]
        program, consts = batch_jaxpr_to(branch.jaxpr, axis, (0,) * len(operands), (0,) * n_outs)
        outs.append(eval_jaxpr(program, [], *consts, *chosen))
    return [select_n(along_rows(index, cases[0]), *cases) for cases in zip(*outs)], [0] * n_outs


def refuse_exact_effects(what, *programs):
    """NotImplementedError where a batch would act on the world for examples that must not."""
    if any(getattr(e, "exact", False) for program in programs for e in program.effects):
        raise NotImplementedError(
            f"vmap of a {what} that each example decides for itself runs all examples through all "
            "of it, and so an io_callback in there for examples that it is not meant for. Use "
            "lax.map in place of vmap, or call back outside with what was chosen")


def along_rows(which, x):
    """One choice a row of x, in the shape of x."""
    shape = typeof(x).shape
    return which if len(shape) == 1 else broadcast(which, shape, (0,))


@cond_p.def_partial_eval
def _cond_partial_eval(trace, index, *operands, branches):
    record = partial(JaxprTrace.process_primitive, trace, cond_p)
    if trace.is_mine(index):
        return record([index, *operands], dict(branches=branches))
    unknown = tuple([trace.is_mine(x) for x in operands])
    parts = split_branches(*programs_of(branches), unknown)
    known_operands = [*parts.consts, *untracked(unknown, operands)]
    with set_current_trace(trace.parent):
        outs = bind_cond(index, parts.known, known_operands)
    n_known = len(parts.out_unknown) - sum(parts.out_unknown)
    known, slots = split_list(outs, [n_known])
    residuals = [known_operands[i] for i in parts.used] + slots
    later = record([index, *residuals, *tracked(unknown, operands)],
                   dict(branches=tuple(map(ClosedJaxpr, parts.later))))
    return merge(parts.out_unknown, later, known)


@cond_p.def_transpose
def _cond_transpose(cts, index, *operands, branches):
    linear = tuple([is_undefined_primal(x) for x in operands])
    given = tuple([not is_zero(ct) for ct in cts])
    programs, consts, produced = transpose_branches(*programs_of(branches), linear, given)
    known = untracked(linear, operands)
    outs = bind_cond(index, programs, [*consts, *known, *tracked(given, cts)])
    in_cts = merge(produced, outs, [None] * (len(produced) - sum(produced)))
    return [None, *merge(linear, in_cts, [None] * len(known))]


cond_p.def_lowering(lower_cond)


@cond_p.def_dce
def _cond_dce(eqn, used):
    branches, read = branches_used(*programs_of(eqn.params["branches"]), used)
    index, *operands = eqn.invars
    return eqn.replace(invars=[index, *tracked(read, operands)], outvars=tracked(used, eqn.outvars),
                       params=dict(branches=tuple(map(ClosedJaxpr, branches))))


@memo_by_jaxpr
def branches_used(first, others, used):
    """The branches without unused results, and which operands any of them reads."""
    branches = [dce_jaxpr(b, used) for b in (first, *others)]
    read = any_of([inputs_read(b) for b in branches])
    return [b.replace(invars=tracked(read, b.invars)) for b in branches], read
