# Exported from notebooks/19_taylor.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: Taylor mode of programs. Home: 19_taylor. In JAX: jax/experimental/jet.py.

The jet rules of primitives that contain programs. Such a rule gets everything at once:
rule(primals, series, **params) -> (results, their series). The program that it applies in place of
its own works on series: each argument that moves is followed by its coefficients.
"""

from minijax.higher_order.checkpoint import checkpoint_p, with_program
from minijax.higher_order.cond import bind_cond, cond_p, programs_of, transformed_alike
from minijax.higher_order.custom_vmap import custom_vmap_call_p
from minijax.higher_order.jit import bind_jit, jit_p
from minijax.higher_order.programs import (
    as_flat, closed_program, memo_by_jaxpr, none_of, split_list,
)
from minijax.higher_order.scan import bind_scan, padded, scan_p
from minijax.higher_order.while_loop import bind_while, while_p
from minijax.interpreters.jet import jet_flat
from minijax.jaxpr import Var
from minijax.rules import Zero, instantiate_zeros, is_zero

__all__ = [
    "flatten_pairs", "unflatten_pairs", "moving", "jet_jaxpr", "jet_branches", "jet_body",
    "on_series",
]


# --- Programs on series ---------------------------------------------------------------------------

# Values and their series are flat lists of arguments: x, x_1, …, x_n, y, y_1, …, y_n, and so on;
# a value that does not move stands alone.

def flatten_pairs(values, series, moves):
    """One list of values, each followed by its coefficients if it moves."""
    return [x for value, terms, flag in zip(values, series, moves)
            for x in (value, *(map(instantiate_zeros, terms) if flag else ()))]


def unflatten_pairs(flat, moves, order):
    """Values and their series again; symbolic zeros for those that do not move."""
    flat = iter(flat)
    values, series = [], []
    for flag in moves:
        values.append(next(flat))
        series.append([next(flat) if flag else Zero.like(values[-1]) for _ in range(order)])
    return values, series


def moving(series):
    return tuple([not all([is_zero(t) for t in terms]) for terms in series])


# jet_jaxpr : (a -> b) -> order -> which arguments move, which results must come out as if they did
#             -> (pairs of a -> pairs of b), constants, which results move

@memo_by_jaxpr
def jet_jaxpr(jaxpr, order, moves, wanted=None):
    produced = []

    def f_jet(*flat):
        outs, series = jet_flat(as_flat(jaxpr), *unflatten_pairs(flat, moves, order), order)
        produced[:] = [a or b for a, b in zip(moving(series), wanted or none_of(outs))]
        return flatten_pairs(outs, series, produced)

    avals = [a for v, flag in zip(jaxpr.invars, moves)
             for a in (v.aval, *[v.aval.to_tangent_aval()] * (order if flag else 0))]
    program, consts = closed_program(f_jet, avals, jaxpr.name)
    return program, consts, tuple(produced)


# --- Calls ----------------------------------------------------------------------------------------

@jit_p.def_jet
def _jit_jet(primals, series, *, jaxpr, name, inline, donated_invars):
    moves, order = moving(series), len(series[0])
    program, consts, produced = jet_jaxpr(jaxpr.jaxpr, order, moves)
    outs = bind_jit(program, consts, flatten_pairs(primals, series, moves), name, inline)
    return unflatten_pairs(outs, produced, order)


@checkpoint_p.def_jet
def _checkpoint_jet(primals, series, **params):
    moves, order = moving(series), len(series[0])
    program, consts, produced = jet_jaxpr(params["jaxpr"], order, moves)
    params = with_program(params, program, lambda cse: (
        [True] * len(consts) + flatten_pairs(cse, [[True] * order for _ in cse], moves)))
    outs = checkpoint_p.bind(*consts, *flatten_pairs(primals, series, moves), **params)
    return unflatten_pairs(outs, produced, order)


@custom_vmap_call_p.def_jet
def _custom_vmap_jet(primals, series, *, call, rule):
    return jet_flat(as_flat(call.jaxpr), primals, series, len(series[0]))


# --- Branches -------------------------------------------------------------------------------------

@cond_p.def_jet
def _cond_jet(primals, series, *, branches):
    order, moves = len(series[0]), moving(series[1:])
    programs, consts, produced = jet_branches(*programs_of(branches), order, moves)
    operands = flatten_pairs(primals[1:], series[1:], moves)
    outs = bind_cond(primals[0], programs, [*consts, *operands])
    return unflatten_pairs(outs, produced, order)


@memo_by_jaxpr
def jet_branches(first, others, order, moves):
    """The branches on series, their constants, and which results move: those that do in any."""
    return transformed_alike(jet_jaxpr, (first, *others), order, moves)


# --- Loops ----------------------------------------------------------------------------------------

@memo_by_jaxpr
def jet_body(jaxpr, order, moves, first, count):
    """The body of a loop on series, its constants, which arguments move, and which results do.

    The arguments from number `first` on are its `count` carries, which are its first results. A
    carry moves if its start does, or the body moves it in some turn.
    """
    while True:
        program, consts, produced = jet_jaxpr(
            jaxpr, order, moves, padded(moves[first:first + count], len(jaxpr.outvars)))
        carries = produced[:count]
        if carries == moves[first:first + count]:
            return program, consts, moves, produced
        moves = (*moves[:first], *carries, *moves[first + count:])


@scan_p.def_jet
def _scan_jet(primals, series, *, jaxpr, length, reverse, unroll, num_consts, num_carry):
    order, sizes = len(series[0]), [num_consts, num_carry]
    body, first, moves, produced = jet_body(jaxpr.jaxpr, order, moving(series), *sizes)
    consts, carries, xs = [
        flatten_pairs(*group) for group in zip(*[split_list(x, sizes) for x in (
            primals, series, moves)])]
    outs = bind_scan(body, [*first, *consts], carries, xs, length, reverse, unroll)
    return unflatten_pairs(outs, produced, order)


@while_p.def_jet
def _while_jet(primals, series, *, cond_jaxpr, cond_nconsts, body_jaxpr, body_nconsts):
    order = len(series[0])
    cond_consts, primals = split_list(primals, [cond_nconsts])
    series = series[cond_nconsts:]
    body, first, moves, produced = jet_body(
        body_jaxpr.jaxpr, order, moving(series), body_nconsts, len(primals) - body_nconsts)
    consts, carries = [flatten_pairs(*group) for group in zip(*[
        split_list(x, [body_nconsts]) for x in (primals, series, moves)])]
    condition = on_series(cond_jaxpr.jaxpr, order, (*[False] * cond_nconsts, *produced))
    outs = bind_while(condition, cond_consts, body, [*first, *consts], carries)
    return unflatten_pairs(outs, produced, order)


@memo_by_jaxpr
def on_series(condition, order, moves):
    """The condition on carries and their coefficients, which it does not read."""
    invars = [v for var, flag in zip(condition.invars, moves)
              for v in (var, *[Var(var.aval) for _ in range(order if flag else 0)])]
    return condition.replace(invars=invars)
