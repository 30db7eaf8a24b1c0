# Exported from notebooks/14_control_flow.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: loops as data. Home: 14_control_flow. In JAX: jax/_src/lax/control_flow/loops.py.

`scan_p` contains the program of one turn, (consts, carries, a row of each xs) -> (carries, a row of
each ys), and the number of turns. As that is known, a scan can be run backwards: by a scan.
"""

from typing import NamedTuple

import numpy as np

from minijax.array import Array, as_array
from minijax.avals import typeof
from minijax.core import Primitive, set_current_trace
from minijax.higher_order.evaluate import run_equation, run_program, runs_compiled
from minijax.higher_order.programs import (
    any_flag, batch_jaxpr, batch_jaxpr_to, closed_program, instantiated, jvp_jaxpr, memo_by_jaxpr,
    merge, save_less, split_list, tracked, transpose_jaxpr, untracked,
)
from minijax.interpreters.partial_eval import split_jaxpr, trace_unknown
from minijax.interpreters.staging import JaxprTrace
from minijax.interpreters.transpose import backward_pass
from minijax.jaxpr import (
    ClosedJaxpr, Jaxpr, convert_constvars_jaxpr, dce_jaxpr, eval_jaxpr, inner_effects, inputs_read,
)
from minijax.lower_loops import lower_scan
from minijax.rules import (
    Zero, add_tangents, instantiate_zeros, is_undefined_primal, is_zero, move_batch_axis,
    not_mapped,
)

__all__ = [
    "jvp_of_body", "padded", "paired", "batched_body", "SplitBody", "split_body", "parts_of_body",
    "hoist", "without_copies", "in_order", "transposed_body", "adding_up", "scan_p", "bind_scan",
    "turn_by_turn", "run_known", "transpose_linear_part", "body_used",
]


# --- A loop of known length -----------------------------------------------------------------------

# As in while_loop: carries that have a property are found by going round until no turn adds
# another.

@memo_by_jaxpr
def jvp_of_body(jaxpr, sizes, given):
    """The body on pairs, its constants, which carries move, and which results have tangents.

    Each group of arguments and results (consts, carries, rows) is followed by its tangents.
    """
    const_moves, moving, row_moves = split_list(given, sizes)
    while True:
        program, consts, produced = jvp_jaxpr(jaxpr, (*const_moves, *moving, *row_moves),
                                              padded(moving, len(jaxpr.outvars)))
        found, _ = split_list(produced, [len(moving)])
        if found == moving:
            break
        moving = found
    first, args, dots = split_list(program.invars, [len(consts), len(jaxpr.invars)])
    args = split_list(args, sizes)
    dots = split_list(dots, [sum(const_moves), sum(moving)])
    outs, out_dots = split_list(program.outvars, [len(jaxpr.outvars)])
    carries, ys = split_list(outs, [len(moving)])
    carry_dots, y_dots = split_list(out_dots, [sum(moving)])
    program = program.replace(invars=[*first, *paired(args, dots)],
                              outvars=[*carries, *carry_dots, *ys, *y_dots])
    return program, consts, moving, produced


def padded(flags, n, before=0):
    """The flags with False before and after, n in all."""
    return ((False,) * before + (*flags, *[False] * n))[:n]


def paired(groups, dots):
    return [x for pair in zip(groups, dots) for group in pair for x in group]


@memo_by_jaxpr
def batched_body(jaxpr, axis, sizes, batched):
    """The body on batches, its constants, which carries and which rows of ys have a batch axis.

    All batch axes are in front.
    """
    const_flags, carry_flags, row_flags = split_list(batched, sizes)
    while True:
        dims = tuple([0 if b else not_mapped for b in (*const_flags, *carry_flags, *row_flags)])
        out_dims = batch_jaxpr(jaxpr, axis, dims)[2]
        found = [d is not not_mapped for d in out_dims]
        more = any_flag(carry_flags, found)
        if more == carry_flags:
            break
        carry_flags = more
    out_flags = (*carry_flags, *found[len(carry_flags):])
    wanted = tuple([0 if b else not_mapped for b in out_flags])
    program, consts = batch_jaxpr_to(jaxpr, axis, dims, wanted)
    return program, consts, *split_list(out_flags, [len(carry_flags)])


# --- Splitting a loop -----------------------------------------------------------------------------

class SplitBody(NamedTuple):
    """The parts of a body of which some arguments are unknown.

    `once` computes, from `consts` and the known consts, what is the same in every turn: residuals,
    and then the consts of `known`, the body of the known scan. That returns known results, and then
    residuals that differ from turn to turn. The later body takes residuals that are the same in all
    turns, then unknown consts, carries and rows, then residuals with a row a turn. `same` and
    `rows` say where residuals come from: results of "once", "consts" or "xs" of the known scan, or
    what it "stacks".
    """
    once: Jaxpr
    consts: list
    known: Jaxpr
    later: Jaxpr
    same: list
    rows: list
    carry_unknown: tuple
    out_unknown: tuple


@memo_by_jaxpr
def split_body(jaxpr, sizes, unknown):
    const_unknown, carry_unknown, row_unknown = split_list(unknown, sizes)
    while True:
        known, consts, later, out_unknown, n_residuals = split_jaxpr(
            jaxpr, (*const_unknown, *carry_unknown, *row_unknown),
            padded(carry_unknown, len(jaxpr.outvars)))
        found = tuple(out_unknown[:sizes[1]])
        if found == carry_unknown:
            break
        carry_unknown = found
    flags = const_unknown, carry_unknown, row_unknown
    known, later, n_residuals = save_less(convert_constvars_jaxpr(known), later, n_residuals)
    return parts_of_body(known, consts, later, n_residuals, flags, tuple(out_unknown))


def parts_of_body(known, consts, later, n_residuals, unknown, out_unknown):
    """SplitBody of a body that is split like any program, its residuals sorted by place."""
    n_consts, n_carries, n_rows = [flags.count(False) for flags in unknown]
    once, more, known, varies = hoist(known, len(consts) + n_consts, n_residuals)
    known, places = without_copies(known, varies.count(True), n_carries, n_rows)
    numbers = iter(range(len(varies)))
    places = merge(varies, places, [("once", next(numbers)) for v in varies if not v])
    later, same, rows = in_order(later, places)
    return SplitBody(once, [*more, *consts], known, later, same, rows, unknown[1], out_unknown)


def hoist(known, n_consts, n_residuals):
    """Take what depends on constants only out of the body: the reader's own loop would do it, too.

    Returns a program that computes it once, further constants of that, the body (whose consts are
    the last results of that program), and which residuals are left in the body.
    """
    first = known.invars[:n_consts]
    if known.effects:                   # those must happen in every turn
        return Jaxpr([], first, first, []), [], known, [True] * n_residuals
    n_outs = len(known.outvars) - n_residuals
    varying = [i >= n_consts for i in range(len(known.invars))]
    once, more, body, out_varies, _ = split_jaxpr(
        known, varying, [i < n_outs for i in range(len(known.outvars))])
    return convert_constvars_jaxpr(once), more, body, out_varies[n_outs:]


def without_copies(known, n_residuals, n_carries, n_rows):
    """The body without residuals that are constants or rows of xs, and where all of them are."""
    n_consts = len(known.invars) - n_carries - n_rows
    outs, residuals = split_list(known.outvars, [len(known.outvars) - n_residuals])
    place = {v: ("consts", i) for i, v in enumerate(known.invars[:n_consts])}
    place |= {v: ("xs", i) for i, v in enumerate(known.invars[n_consts + n_carries:])}
    stacked = [v for v in residuals if v not in place]
    place |= {v: ("stacks", i) for i, v in enumerate(stacked)}
    return known.replace(outvars=[*outs, *stacked]), [place[v] for v in residuals]


def in_order(later, places):
    """The later body with its residuals in the order of consts and xs, and the places of both."""
    residuals, others = split_list(later.invars, [len(places)])
    per_turn = [kind in ("xs", "stacks") for kind, _ in places]
    later = later.replace(invars=[*untracked(per_turn, residuals), *others,
                                  *tracked(per_turn, residuals)])
    return later, untracked(per_turn, places), tracked(per_turn, places)


# --- Running backwards ----------------------------------------------------------------------------

@memo_by_jaxpr
def transposed_body(jaxpr, sizes, linear, given):
    """The body of the scan that runs backwards, its constants, and which cotangents come out.

    Its consts are residuals; its carries are sums of cotangents of the linear consts, and
    cotangents of the carries; its rows are cotangents of ys, and residuals; what it stacks are
    cotangents of the xs.
    """
    const_linear, _, row_linear = split_list(linear, sizes)
    carry_given, ys_given = split_list(given, [sizes[1]])
    n = sum(const_linear)
    while True:
        program, consts, produced = transpose_jaxpr(
            jaxpr, (*const_linear, *[True] * sizes[1], *row_linear), (*carry_given, *ys_given),
            padded(carry_given, n + sizes[1] + sum(row_linear), before=n))
        const_ct, found, row_ct = split_list(produced, [n, sizes[1]])
        if found == carry_given:
            break
        carry_given = found
    summed = tracked(const_ct, tracked(const_linear, jaxpr.in_avals))
    body, more = closed_program(
        *adding_up(program, len(consts), const_linear.count(False), row_linear.count(False),
                   sum(carry_given), summed), jaxpr.name)
    return body, [*more, *consts], const_ct, carry_given, row_ct


def adding_up(program, n_fixed, n_consts, n_rows, n_carries, summed):
    """The transposed turn as a function that adds up cotangents of consts, and its types."""
    fixed, consts, rows, carries, ys = split_list(
        program.in_avals, [n_fixed, n_consts, n_rows, n_carries])

    def turn(*args):
        consts_in, sums, carry_cts, y_cts, rows_in = split_list(
            args, [n_fixed + n_consts, len(summed), n_carries, len(ys)])
        outs = eval_jaxpr(program, [], *consts_in, *rows_in, *carry_cts, *y_cts)
        more, others = split_list(outs, [len(summed)])
        return [*map(add_tangents, sums, more), *others]
    return turn, [*fixed, *consts, *summed, *carries, *ys, *rows]


scan_p = Primitive("scan", multiple_results=True, higher_order=True)
scan_p.effects_of = inner_effects


def bind_scan(jaxpr, consts, carries, xs, length, reverse, unroll):
    """Run a body without constvars `length` times; `xs` have that length."""
    return scan_p.bind(*consts, *carries, *xs, jaxpr=ClosedJaxpr(jaxpr), length=length,
                       reverse=reverse, unroll=unroll, num_consts=len(consts),
                       num_carry=len(carries))


@scan_p.def_impl
def _scan_impl(*args, jaxpr, length, reverse, unroll, num_consts, num_carry):
    if runs_compiled([*map(typeof, args), *jaxpr.out_avals]):
        return run_equation(scan_p, args, dict(
            jaxpr=jaxpr, length=length, reverse=reverse, unroll=unroll, num_consts=num_consts,
            num_carry=num_carry))
    return turn_by_turn(jaxpr, length, reverse, *split_list(args, [num_consts, num_carry]))


def turn_by_turn(jaxpr, length, reverse, consts, carries, xs):
    """The scan as a Python loop over turns."""
    carry_avals, row_avals = split_list(jaxpr.out_avals, [len(carries)])
    ys = [np.empty((length, *a.shape), a.dtype) for a in row_avals]
    for i in reversed(range(length)) if reverse else range(length):
        rows = [Array(np.asarray(x._value[i]), x.weak_type) for x in xs]
        outs = run_program(jaxpr.jaxpr, [*consts, *carries, *rows])
        carries, new_rows = split_list(outs, [len(carries)])
        for y, row in zip(ys, new_rows):
            y[i] = as_array(row)._value
    values = [as_array(x)._value for x in carries]
    return [Array(x, a.weak_type) for x, a in zip([*values, *ys], [*carry_avals, *row_avals])]


@scan_p.def_abstract_eval
def _scan_abstract_eval(*avals, jaxpr, length, reverse, unroll, num_consts, num_carry):
    carries, rows = split_list(jaxpr.out_avals, [num_carry])
    return [*carries, *[a.update(shape=(length, *a.shape)) for a in rows]]


@scan_p.def_jvp
def _scan_jvp(primals, tangents, *, jaxpr, length, reverse, unroll, num_consts, num_carry):
    sizes = (num_consts, num_carry)
    given = tuple([not is_zero(t) for t in tangents])
    body, first, moving, produced = jvp_of_body(jaxpr.jaxpr, sizes, given)
    const_moves, _, row_moves = split_list(given, sizes)
    consts, carries, xs = split_list(primals, sizes)
    const_dots, carry_dots, x_dots = split_list(tangents, sizes)
    carry_dots = tracked(moving, instantiated(moving, carry_dots))
    outs = bind_scan(body, [*first, *consts, *tracked(const_moves, const_dots)],
                     [*carries, *carry_dots], [*xs, *tracked(row_moves, x_dots)],
                     length, reverse, unroll)
    n_ys = len(produced) - num_carry
    carries, carry_dots, ys, y_dots = split_list(outs, [num_carry, len(carry_dots), n_ys])
    outs = [*carries, *ys]
    return outs, merge(produced, [*carry_dots, *y_dots], map(Zero.like, untracked(produced, outs)))


@scan_p.def_batch
def _scan_batch(axis, vals, dims, *, jaxpr, length, reverse, unroll, num_consts, num_carry):
    sizes = (num_consts, num_carry)
    batched = tuple([d is not not_mapped for d in dims])
    body, first, carry_flags, y_flags = batched_body(jaxpr.jaxpr, axis, sizes, batched)

    def place(x, dim, flag, want):
        return move_batch_axis(axis, dim, want, x) if flag else x
    const_flags, _, x_flags = split_list(batched, sizes)
    groups = zip(split_list(vals, sizes), split_list(dims, sizes),
                 (const_flags, carry_flags, x_flags), (0, 0, 1))     # axis 0 of xs: the turns
    consts, carries, xs = [[place(x, d, flag, want) for x, d, flag in zip(values, ds, flags)]
                           for values, ds, flags, want in groups]
    outs = bind_scan(body, [*first, *consts], carries, xs, length, reverse, unroll)
    return outs, [*[0 if b else not_mapped for b in carry_flags],
                  *[1 if b else not_mapped for b in y_flags]]


@scan_p.def_partial_eval
def _scan_partial_eval(trace, *args, jaxpr, length, reverse, unroll, num_consts, num_carry):
    sizes = (num_consts, num_carry)
    unknown = tuple([trace.is_mine(x) for x in args])
    parts = split_body(jaxpr.jaxpr, sizes, unknown)
    flags = split_list(unknown, sizes)
    flags[1] = parts.carry_unknown
    groups = split_list(args, sizes)
    known = [untracked(*pair) for pair in zip(flags, groups)]
    later = [tracked(*pair) for pair in zip(flags, groups)]
    with set_current_trace(trace.parent):
        known_outs, same, rows = run_known(parts, known, length, reverse, unroll)
    params = dict(jaxpr=ClosedJaxpr(parts.later), length=length, reverse=reverse, unroll=unroll,
                  num_consts=len(same) + len(later[0]), num_carry=len(later[1]))
    operands = [*same, *later[0], *later[1], *later[2], *rows]
    outs = JaxprTrace.process_primitive(trace, scan_p, operands, params)
    return merge(parts.out_unknown, outs, known_outs)


def run_known(parts, known, length, reverse, unroll):
    """Known results, residuals that are the same in every turn, and those with a row a turn."""
    consts, carries, xs = known
    n_once = sum([kind == "once" for kind, _ in parts.same])
    once, consts = split_list(eval_jaxpr(parts.once, [], *parts.consts, *consts), [n_once])
    n_outs = parts.out_unknown.count(False)
    runs = parts.known.outvars or parts.known.effects
    outs = bind_scan(parts.known, consts, carries, xs, length, reverse, unroll) if runs else []
    outs, stacked = split_list(outs, [n_outs])
    found = {"once": once, "consts": consts, "xs": xs, "stacks": stacked}
    return outs, *[[found[kind][i] for kind, i in places] for places in (parts.same, parts.rows)]


@scan_p.def_transpose
def _scan_transpose(cts, *operands, jaxpr, length, reverse, unroll, num_consts, num_carry):
    params = dict(jaxpr=jaxpr, length=length, reverse=reverse, unroll=unroll,
                  num_consts=num_consts, num_carry=num_carry)
    sizes = (num_consts, num_carry)
    linear = tuple([is_undefined_primal(x) for x in operands])
    const_linear, carry_linear, row_linear = split_list(linear, sizes)
    if not all(carry_linear) and not all(split_body(jaxpr.jaxpr, sizes, linear).carry_unknown):
        return transpose_linear_part(cts, operands, params)
    given = tuple([not is_zero(ct) for ct in cts])
    body, first, const_ct, carry_ct, row_ct = transposed_body(jaxpr.jaxpr, sizes, linear, given)
    consts, _, xs = split_list(operands, sizes)
    carry_cts, y_cts = split_list(cts, [num_carry])
    sums = [instantiate_zeros(Zero(x.aval))
            for x in tracked(const_ct, tracked(const_linear, consts))]
    outs = bind_scan(body, [*first, *untracked(const_linear, consts)],
                     [*sums, *tracked(carry_ct, instantiated(carry_ct, carry_cts))],
                     [*tracked(given[num_carry:], y_cts), *untracked(row_linear, xs)],
                     length, not reverse, unroll)
    produced = iter(outs)
    in_cts = [next(produced) if flag else None for flag in (*const_ct, *carry_ct, *row_ct)]
    every = (*const_linear, *[True] * num_carry, *row_linear)
    found = merge(every, in_cts, [None] * every.count(False))
    return [ct if flag else None for ct, flag in zip(found, linear)]


def transpose_linear_part(cts, operands, params):
    """Some carries don't depend on the linear operands: run those forwards, the rest backwards."""
    flags = [is_undefined_primal(x) for x in operands]
    known, linear = untracked(flags, operands), tracked(flags, operands)
    jaxpr, consts = trace_unknown(lambda *args: scan_p.bind(*merge(flags, args, known), **params),
                                 [x.aval for x in linear])
    return merge(flags, backward_pass(jaxpr, consts, linear, cts), [None] * len(known))


scan_p.def_lowering(lower_scan)


@scan_p.def_dce
def _scan_dce(eqn, used):
    sizes = eqn.params["num_consts"], eqn.params["num_carry"]
    body, read, made = body_used(eqn.params["jaxpr"].jaxpr, sizes, used)
    const_read, needed, _ = split_list(read, sizes)
    params = eqn.params | dict(jaxpr=ClosedJaxpr(body), num_consts=sum(const_read),
                               num_carry=sum(needed))
    return eqn.replace(params=params, invars=tracked(read, eqn.invars),
                       outvars=tracked(made, eqn.outvars))


@memo_by_jaxpr
def body_used(jaxpr, sizes, used):
    """The body with needed carries only, which arguments it reads, and which results it makes.

    A carry is needed if its result is used, or another needed result depends on it.
    """
    needed, ys_used = split_list(used, [sizes[1]])
    while True:
        smaller = dce_jaxpr(jaxpr, (*needed, *ys_used))
        const_read, carry_read, row_read = split_list(inputs_read(smaller), sizes)
        if any_flag(needed, carry_read) == needed:
            break
        needed = any_flag(needed, carry_read)
    read = (*const_read, *needed, *row_read)
    return smaller.replace(invars=tracked(read, jaxpr.invars)), read, (*needed, *ys_used)
