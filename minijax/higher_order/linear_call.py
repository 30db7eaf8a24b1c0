# Exported from notebooks/15_custom_rules.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: functions with a transpose. Home: 15_custom_rules. In JAX: custom_derivatives.py.

`linear_call_p` applies a program that is linear in its last operands and comes with its transpose.
"""

from minijax.core import Primitive
from minijax.higher_order.linear_solve import batched_program
from minijax.higher_order.programs import split_list
from minijax.interpreters.jvp import jvp_flat
from minijax.jaxpr import jaxpr_as_fun
from minijax.rules import Zero, add_tangents, batch_axis_first, instantiate_zeros, is_zero

__all__ = ["linear_call_p"]


# --- A linear function with a transpose of its own ------------------------------------------------

# callee : (r, a) -o b    transpose : (r, b) -o a    `num_res` operands are residuals r

linear_call_p = Primitive("linear_call", multiple_results=True, higher_order=True)
linear_call_p.def_impossible("lowering", "the compiler puts the program `callee` in its place")
linear_call_p.def_impossible("partial_eval", "it is recorded whole, with its transpose")


@linear_call_p.def_impl
def _linear_call_impl(*args, callee, transpose, num_res):
    return jaxpr_as_fun(callee)(*args)


@linear_call_p.def_abstract_eval
def _linear_call_abstract_eval(*avals, callee, transpose, num_res):
    return callee.out_avals


# (L(r) x)' = L(r) x' + L'(r) x

@linear_call_p.def_jvp
def _linear_call_jvp(primals, tangents, **params):
    outs = linear_call_p.bind(*primals, **params)
    residuals, x = split_list(primals, [params["num_res"]])
    residual_tangents, x_dot = split_list(tangents, [params["num_res"]])
    out_tangents = [Zero.like(y) for y in outs]
    if not all(is_zero(t) for t in x_dot):
        out_tangents = linear_call_p.bind(*residuals, *map(instantiate_zeros, x_dot), **params)
    if not all(is_zero(t) for t in residual_tangents):
        _, moved = jvp_flat(jaxpr_as_fun(params["callee"]), primals,
                            [*residual_tangents, *map(Zero.like, x)])
        out_tangents = list(map(add_tangents, out_tangents, moved))
    return outs, out_tangents


@linear_call_p.def_transpose
def _linear_call_transpose(cts, *operands, callee, transpose, num_res):
    in_cts = linear_call_p.bind(*operands[:num_res], *map(instantiate_zeros, cts), callee=transpose,
                                transpose=callee, num_res=num_res)
    return [None] * num_res + in_cts


@linear_call_p.def_batch
def _linear_call_batch(axis, vals, dims, *, callee, transpose, num_res):
    residuals, x = split_list(vals, [num_res])
    residual_dims, x_dims = split_list(dims, [num_res])
    x = [batch_axis_first(axis, y, d) for y, d in zip(x, x_dims)]
    outs = linear_call_p.bind(
        *residuals, *x, callee=batched_program(callee, axis, [*residual_dims, *[0] * len(x)]),
        transpose=batched_program(transpose, axis, [*residual_dims, *[0] * len(callee.out_avals)]),
        num_res=num_res)
    return outs, [0] * len(outs)
