# Exported from notebooks/15_custom_rules.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: functions with a vjp rule. Home: 15_custom_rules. In JAX: custom_derivatives.py.

`custom_vjp_call_p` applies a function that comes with `fwd`, to be run in its place under
differentiation, and `bwd`, which `custom_lin_p` keeps until the linear program runs backwards.
"""

from minijax.core import Primitive, name_of
from minijax.dtypes import float0
from minijax.higher_order.custom_jvp import (
    CustomCall, agree, batched, moved, no_closed_over_tangents, transpose_call,
)
from minijax.higher_order.programs import tracked
from minijax.interpreters.batching import batch_flat, to_dim
from minijax.jaxpr import as_function
from minijax.rules import Zero, bind, drop, is_undefined_primal, is_zero, not_mapped

__all__ = [
    "custom_vjp_call_p", "batched_fwd", "batched_bwd", "unbatched_aval", "summed_to_dim",
    "CustomLinear", "custom_lin_p",
]


# --- custom_vjp_call ------------------------------------------------------------------------------

# fwd : (which arguments are perturbed, *[a]) -> ([b], [residual], memo)
# bwd : (memo, [residual], [CT b or Zero]) -> [CT a or Zero]
# `memo` carries from a run of fwd to its bwd what is no array: trees, batch dimensions.

custom_vjp_call_p = CustomCall("custom_vjp_call")
custom_vjp_call_p.def_transpose(transpose_call)


@custom_vjp_call_p.def_impl
def _custom_vjp_impl(*args, call_jaxpr, fwd, bwd, num_consts, symbolic_zeros):
    return as_function(call_jaxpr)(*args)


@custom_vjp_call_p.def_abstract_eval
def _custom_vjp_abstract_eval(*avals, call_jaxpr, fwd, bwd, num_consts, symbolic_zeros):
    return call_jaxpr.out_avals


@custom_vjp_call_p.def_jvp
def _custom_vjp_jvp(primals, tangents, *, call_jaxpr, fwd, bwd, num_consts, symbolic_zeros):
    no_closed_over_tangents("custom_vjp", tangents[:num_consts])
    primals, tangents = primals[num_consts:], tangents[num_consts:]
    perturbed = tuple(not is_zero(t) for t in tangents)
    outs, residuals, memo = fwd(perturbed, *primals)
    zeros = [Zero.like(x) for x in outs]
    out_tangents = custom_lin_p.bind(
        *residuals, *tracked(perturbed, tangents), bwd=bwd, memo=memo, num_res=len(residuals),
        perturbed=perturbed, out_avals=tuple(z.aval for z in zeros))
    return outs, [z if z.aval.dtype == float0 else t for z, t in zip(zeros, out_tangents)]


@custom_vjp_call_p.def_batch
def _custom_vjp_batch(axis, vals, dims, *, call_jaxpr, fwd, bwd, num_consts, symbolic_zeros):
    arg_dims, out_dims = dims[num_consts:], []
    avals = [Zero.like(x).aval for x in vals[num_consts:]]
    outs = custom_vjp_call_p.bind(
        *vals, call_jaxpr=batched(as_function(call_jaxpr), axis, dims, out_dims),
        fwd=batched_fwd(fwd, axis, arg_dims, out_dims),
        bwd=batched_bwd(bwd, axis, arg_dims, out_dims, avals),
        num_consts=num_consts, symbolic_zeros=symbolic_zeros)
    return outs, out_dims


def batched_fwd(fwd, axis, dims, out_dims):
    """`fwd` on batches; the memo tells `bwd` where the residuals have their batch axes."""
    def fwd_batched(perturbed, *vals):
        others = []

        def flat(*args):
            outs, residuals, memo = fwd(perturbed, *args)
            others[:] = len(outs), memo
            return [*outs, *residuals]

        found, found_dims = batch_flat(flat, axis, vals, dims)
        n, memo = others
        agree(out_dims, [d is not not_mapped for d in found_dims[:n]])
        outs = moved(axis, found[:n], found_dims, out_dims)
        return outs, found[n:], (memo, found_dims[n:])
    fwd_batched.__name__ = name_of(fwd)
    return fwd_batched


def batched_bwd(bwd, axis, dims, out_dims, in_avals):
    """`bwd` on batches; an argument without a batch axis gets the sum over the batch."""
    def bwd_batched(memo, residuals, cts):
        inner_memo, residual_dims = memo
        given, produced = [not is_zero(ct) for ct in cts], []

        def flat(*args):
            rest = iter(args[len(residuals):])
            inner = [next(rest) if flag else Zero(unbatched_aval(ct.aval, d))
                     for flag, ct, d in zip(given, cts, out_dims)]
            in_cts = bwd(inner_memo, args[:len(residuals)], inner)
            produced[:] = [not is_zero(ct) for ct in in_cts]
            return tracked(produced, in_cts)

        found = zip(*batch_flat(flat, axis, [*residuals, *tracked(given, cts)],
                                [*residual_dims, *tracked(given, out_dims)]))
        return [summed_to_dim(axis, *next(found), d) if flag else Zero(aval)
                for flag, d, aval in zip(produced, dims, in_avals)]
    bwd_batched.__name__ = name_of(bwd)
    return bwd_batched


def unbatched_aval(aval, dim):
    return aval if dim is not_mapped else aval.update(shape=drop(aval.shape, dim))


def summed_to_dim(axis, ct, dim, want):
    if want is not_mapped and dim is not not_mapped:
        return bind("reduce_sum", ct, axes=(dim,))
    return to_dim(axis, ct, dim, want)


# --- custom_lin: a linear function known by its transpose -----------------------------------------

class CustomLinear(Primitive):
    """Residuals and tangents in, tangents out, by a function known by its transpose."""

    def __init__(self, name):
        super().__init__(name, multiple_results=True, higher_order=True)
        for kind in ("impl", "jvp", "batch", "lowering", "partial_eval"):
            self.def_impossible(kind, "only the transpose of this linear function is known")

    def missing_rule(self, kind):
        return TypeError(
            "can't apply forward-mode differentiation (jvp, jacfwd, hessian, linearize's function) "
            "to a custom_vjp function: its rule is for reverse mode only. Use that, or give a "
            "custom_jvp rule, which serves both")


custom_lin_p = CustomLinear("custom_lin")


@custom_lin_p.def_abstract_eval
def _custom_lin_abstract_eval(*avals, bwd, memo, num_res, perturbed, out_avals):
    return list(out_avals)


@custom_lin_p.def_transpose
def _custom_lin_transpose(cts, *operands, bwd, memo, num_res, perturbed, out_avals):
    in_cts = tracked(perturbed, bwd(memo, operands[:num_res], cts))
    return [None] * num_res + [ct if is_undefined_primal(x) else None
                               for ct, x in zip(in_cts, operands[num_res:])]
