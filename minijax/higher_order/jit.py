# Exported from notebooks/12_jit_inside.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: a program inside a program. Home: 12_jit_inside. In JAX: jax/_src/pjit.py.

`jit_p` applies a program. Evaluated, it runs the program compiled; transformed, it applies the
transformed program; so jit nests in every transformation and every transformation in it.
"""

from minijax.array import Array
from minijax.compiler import compile_jaxpr
from minijax.config import debug_infs, debug_nans, disable_jit
from minijax.core import Primitive, set_current_trace
from minijax.higher_order.programs import (
    batch_jaxpr, jvp_jaxpr, memo_by_jaxpr, partial_eval_jaxpr, program_used, tracked,
    transpose_jaxpr,
)
from minijax.interpreters.staging import JaxprTrace
from minijax.jaxpr import ClosedJaxpr, eval_jaxpr, inner_effects
from minijax.rules import Zero, is_undefined_primal, is_zero
from minijax.wrong_numbers import refuse_wrong_numbers, wrong_number

__all__ = ["jit_p", "bind_jit", "executable_of", "find_wrong_number", "run"]


# --- The primitive --------------------------------------------------------------------------------

jit_p = Primitive("jit", multiple_results=True, higher_order=True)
jit_p.def_impossible("lowering", "the compiler puts the inner program in its place")
jit_p.usual_params = {"inline": False, "donated_invars": ()}
jit_p.effects_of = inner_effects


def bind_jit(jaxpr, consts, args, name, inline=False, donated_invars=()):
    """Apply a program without constvars, `consts` being its leading arguments."""
    return jit_p.bind(*consts, *args, jaxpr=ClosedJaxpr(jaxpr), name=name, inline=inline,
                      donated_invars=donated_invars)


@memo_by_jaxpr
def executable_of(jaxpr, donated=()):
    return compile_jaxpr(jaxpr, donated=donated)


@jit_p.def_impl
def _jit_impl(*args, jaxpr, name, inline, donated_invars):
    if disable_jit.value:
        return eval_jaxpr(jaxpr.jaxpr, [], *args)
    outs = run(jaxpr.jaxpr, args)
    if debug_nans.touched or debug_infs.touched:
        find_wrong_number(jaxpr.jaxpr, args, outs)
    return outs


def find_wrong_number(jaxpr, args, outs):
    """If a compiled program returned an unwanted NaN: run it again, operation by operation.

    The operation that makes it raises FloatingPointError; if none does, so does this.
    """
    arrays = [x._value for x in outs]
    if wrong_number(arrays):
        eval_jaxpr(jaxpr, [], *args)
        refuse_wrong_numbers(f"jit({jaxpr.name}), though no single operation returns it", arrays)


def run(jaxpr, arrays):
    """Results of the compiled program on Arrays."""
    outs = executable_of(jaxpr)(*[a._value for a in arrays])
    return [Array(out, v.aval.weak_type) for out, v in zip(outs, jaxpr.outvars)]


@jit_p.def_abstract_eval
def _jit_abstract_eval(*avals, jaxpr, name, inline, donated_invars):
    return jaxpr.out_avals


@jit_p.def_jvp
def _jit_jvp(primals, tangents, *, jaxpr, name, inline, donated_invars):
    given = tuple(not is_zero(t) for t in tangents)
    program, consts, produced = jvp_jaxpr(jaxpr.jaxpr, given)
    outs = bind_jit(program, consts, [*primals, *tracked(given, tangents)], name, inline)
    n = len(produced)
    rest = iter(outs[n:])
    return outs[:n], [next(rest) if flag else Zero.like(x) for flag, x in zip(produced, outs)]


@jit_p.def_batch
def _jit_batch(axis, vals, dims, *, jaxpr, name, inline, donated_invars):
    program, consts, out_dims = batch_jaxpr(jaxpr.jaxpr, axis, tuple(dims))
    return bind_jit(program, consts, vals, name, inline), list(out_dims)


@jit_p.def_partial_eval
def _jit_partial_eval(trace, *args, jaxpr, name, inline, donated_invars):
    unknown = tuple(trace.is_mine(a) for a in args)
    known_jaxpr, consts, later_jaxpr, out_unknown, sources = partial_eval_jaxpr(
        jaxpr.jaxpr, unknown)
    known_args = tracked([not u for u in unknown], args)
    with set_current_trace(trace.parent):
        outs = bind_jit(known_jaxpr, consts, known_args, name, inline)
    n_known = len(out_unknown) - sum(out_unknown)
    known, computed = outs[:n_known], iter(outs[n_known:])
    residuals = [next(computed) if s is None else [*consts, *known_args][s] for s in sources]
    params = dict(jaxpr=ClosedJaxpr(later_jaxpr), name=name, inline=inline, donated_invars=())
    # JaxprTrace's own method: the later part is recorded, not split again.
    operands = [*residuals, *tracked(unknown, args)]
    later = JaxprTrace.process_primitive(trace, jit_p, operands, params)
    known, later = iter(known), iter(later)
    return [next(later if u else known) for u in out_unknown]


@jit_p.def_transpose
def _jit_transpose(cts, *operands, jaxpr, name, inline, donated_invars):
    linear = tuple(is_undefined_primal(x) for x in operands)
    given = tuple(not is_zero(ct) for ct in cts)
    program, consts, produced = transpose_jaxpr(jaxpr.jaxpr, linear, given)
    residuals = tracked([not l for l in linear], operands)
    outs = iter(bind_jit(program, consts, [*residuals, *tracked(given, cts)], name, inline))
    in_cts = iter([next(outs) if flag else None for flag in produced])
    return [next(in_cts) if l else None for l in linear]


@jit_p.def_dce
def _jit_dce(eqn, used):
    program, read = program_used(eqn.params["jaxpr"].jaxpr, used)
    donated = tuple(tracked(read, eqn.params["donated_invars"]))
    return eqn.replace(params=eqn.params | dict(jaxpr=ClosedJaxpr(program), donated_invars=donated),
                       invars=tracked(read, eqn.invars), outvars=tracked(used, eqn.outvars))
