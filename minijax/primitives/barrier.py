# Exported from notebooks/16_checkpoint.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: primitives. Home: 16_checkpoint. In JAX: optimization_barrier in jax/_src/lax/lax.py.

A barrier returns its operands. The compiler may not look through it: what is computed from its
results counts as different from the same thing computed from its operands, and is done after them.
"""

from minijax.core import Primitive
from minijax.loop_ir import library_step
from minijax.rules import is_undefined_primal, is_zero
from minijax.tree_util import tree_flatten, tree_unflatten

__all__ = ["optimization_barrier_p", "optimization_barrier", "pass_barrier"]


# --- A barrier ------------------------------------------------------------------------------------

optimization_barrier_p = Primitive("optimization_barrier", multiple_results=True)

def optimization_barrier(operand, /):
    """`operand`, a pytree of arrays, which the compiler must compute in full before it goes on."""
    leaves, tree = tree_flatten(operand)
    return tree_unflatten(tree, optimization_barrier_p.bind(*leaves) if leaves else [])

def pass_barrier(values):
    """One barrier for those of the tangents or cotangents that are not zero by construction."""
    passed = iter(optimization_barrier_p.bind(*[v for v in values if not is_zero(v)]))
    return [v if is_zero(v) else next(passed) for v in values]

@optimization_barrier_p.def_jvp
def _barrier_jvp(primals, tangents):
    return optimization_barrier_p.bind(*primals), pass_barrier(tangents)

@optimization_barrier_p.def_transpose
def _barrier_transpose(cts, *operands):
    linear = [is_undefined_primal(x) for x in operands]
    passed = iter(pass_barrier([ct for ct, l in zip(cts, linear) if l]))
    return [next(passed) if l else None for l in linear]

optimization_barrier_p.def_impl(lambda *xs: list(xs))
optimization_barrier_p.def_abstract_eval(lambda *avals: list(avals))
optimization_barrier_p.def_batch(
    lambda axis, vals, dims: (optimization_barrier_p.bind(*vals), list(dims)))

@optimization_barrier_p.def_lowering
def _barrier_lowering(ctx, *values):
    # Between kernels, a step on the same memory. In the body of a loop, nothing: the passes that
    # look for what is computed twice are done by then, and a step would take each turn to Python.
    return library_step(ctx, *values) if ctx.outer is None else list(values)
