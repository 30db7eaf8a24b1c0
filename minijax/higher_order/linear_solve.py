# Exported from notebooks/15_custom_rules.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: solutions of linear equations. Home: 15_custom_rules. In JAX: lax/control_flow/solves.py.

`linear_solve_p` is x with A x = b, found by any program; its rules follow from the equation alone.
Four programs describe it. All take the same constants, then a vector.
"""

from minijax.core import Primitive
from minijax.higher_order.programs import batched_aval, split_list
from minijax.interpreters.batching import batch_to_dims
from minijax.interpreters.jvp import jvp_flat
from minijax.interpreters.staging import trace_to_closed_jaxpr
from minijax.jaxpr import jaxpr_as_fun
from minijax.primitives.elementwise import neg
from minijax.rules import Zero, add_tangents, batch_axis_first, instantiate_zeros, is_zero

__all__ = ["linear_solve_p", "batched_program"]


# --- Solutions of equations -----------------------------------------------------------------------

linear_solve_p = Primitive("custom_linear_solve", multiple_results=True, higher_order=True)
linear_solve_p.def_impossible("lowering", "the compiler puts the program `solve` in its place")
linear_solve_p.def_impossible("partial_eval", "it is recorded whole: it is linear in b only")


@linear_solve_p.def_impl
def _linear_solve_impl(*args, matvec, vecmat, solve, transpose_solve, num_consts):
    return jaxpr_as_fun(solve)(*args)


@linear_solve_p.def_abstract_eval
def _linear_solve_abstract_eval(*avals, matvec, vecmat, solve, transpose_solve, num_consts):
    return solve.out_avals


# A x = b   gives   A dx = db - dA x

@linear_solve_p.def_jvp
def _linear_solve_jvp(primals, tangents, **params):
    outs = linear_solve_p.bind(*primals, **params)
    consts, b = split_list(primals, [params["num_consts"]])
    const_tangents, rhs = split_list(tangents, [params["num_consts"]])
    x, aux = split_list(outs, [len(b)])
    if not all(is_zero(t) for t in const_tangents):
        matvec = jaxpr_as_fun(params["matvec"])
        _, moved = jvp_flat(matvec, [*consts, *x], [*const_tangents, *map(Zero.like, x)])
        rhs = [add_tangents(t, m if is_zero(m) else neg(m)) for t, m in zip(rhs, moved)]
    if all(is_zero(t) for t in rhs):
        return outs, [Zero.like(y) for y in outs]
    solved = linear_solve_p.bind(*consts, *map(instantiate_zeros, rhs), **params)
    return outs, [*solved[:len(b)], *map(Zero.like, aux)]


# The transpose solves with the transposed matrix.

@linear_solve_p.def_transpose
def _linear_solve_transpose(cts, *operands, matvec, vecmat, solve, transpose_solve, num_consts):
    if transpose_solve is None:
        raise TypeError("transpose_solve required for backwards mode automatic differentiation of "
                        "custom_linear_solve; or say symmetric=True if the matrix is")
    consts, b = split_list(operands, [num_consts])
    in_cts = linear_solve_p.bind(
        *consts, *map(instantiate_zeros, cts[:len(b)]), matvec=vecmat, vecmat=matvec,
        solve=transpose_solve, transpose_solve=solve, num_consts=num_consts)
    return [None] * num_consts + in_cts[:len(b)]


@linear_solve_p.def_batch
def _linear_solve_batch(axis, vals, dims, *, num_consts, **programs):
    # A solution differs between examples if anything does, so vectors have batch axes throughout.
    consts, b = split_list(vals, [num_consts])
    const_dims, b_dims = split_list(dims, [num_consts])
    b = [batch_axis_first(axis, x, d) for x, d in zip(b, b_dims)]
    batched = {name: program and batched_program(program, axis, [*const_dims, *[0] * len(b)])
               for name, program in programs.items()}
    outs = linear_solve_p.bind(*consts, *b, num_consts=num_consts, **batched)
    return outs, [0] * len(outs)


def batched_program(closed, axis, dims):
    """The program on batches with axes at `dims`; those of results are first."""
    def f_batched(*vals):
        return batch_to_dims(jaxpr_as_fun(closed), axis, vals, dims, [0] * len(closed.out_avals))
    avals = [batched_aval(a, axis, d) for a, d in zip(closed.in_avals, dims)]
    return trace_to_closed_jaxpr(f_batched, avals, closed.jaxpr.name)
