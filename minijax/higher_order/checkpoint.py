# Exported from notebooks/16_checkpoint.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: programs that are run again. Home: 16_checkpoint. In JAX: jax/_src/ad_checkpoint.py.

`checkpoint_p` applies a program, too. Split in two for a derivative, its known part keeps only what a
policy lets it save; the later part computes the rest once more from there.
"""

from typing import NamedTuple

from minijax.avals import typeof
from minijax.compiler.passes import CALLS
from minijax.core import Primitive, rule_for, set_current_trace
from minijax.higher_order.jit import jit_p
from minijax.higher_order.programs import (
    batch_jaxpr, closed_program, jvp_jaxpr, memo_by_jaxpr, partial_eval_jaxpr, residual_sources,
    tracked,
)
from minijax.interpreters.partial_eval import PartialEvalTrace
from minijax.interpreters.staging import JaxprTrace, JaxprTracer, trace_to_closed_jaxpr
from minijax.interpreters.transpose import backward_pass
from minijax.jaxpr import (
    ClosedJaxpr, Var, convert_constvars_jaxpr, dce_jaxpr, eval_jaxpr, inner_effects, open_jaxpr,
)
from minijax.loop_ir import lower_moving
from minijax.primitives.barrier import optimization_barrier_p
from minijax.rules import UndefinedPrimal, Zero, defvectorized, is_undefined_primal, is_zero

__all__ = [
    "name_p", "name_jvp", "Answer", "Saveable", "Recompute", "nothing_saveable", "is_saved",
    "RematTracer", "RematTrace", "Split", "split_by_policy", "used_constants", "record_later",
    "with_program", "checkpoint_p", "SPLIT_CALLS", "transpose_again", "inlined_checkpoint",
    "behind_barrier",
]


# --- Names ----------------------------------------------------------------------------------------

name_p = Primitive("name")

def name_jvp(primals, tangents, *, name):
    return name_p.bind(*primals, name=name), tangents[0]      # the tangent has no name

name_p.def_impl(lambda x, *, name: x)
name_p.def_abstract_eval(lambda x, *, name: x)
name_p.def_jvp(name_jvp)
name_p.def_impossible("transpose", "it stands on primal values only")
defvectorized(name_p)
lower_moving(name_p, lambda x, *, name: x)


# --- What a policy may answer ---------------------------------------------------------------------

class Answer(NamedTuple):
    """What a policy may say of a result in place of True or False."""
    text: str

    def __repr__(self):
        return self.text


Saveable, Recompute = Answer("Saveable"), Answer("Recompute")


def nothing_saveable(primitive, *avals, **params):
    """Compute everything again: what `checkpoint` does if no policy is given."""
    return False


def is_saved(answer):
    if isinstance(answer, (bool, Answer)):
        return answer is True or answer is Saveable
    raise TypeError("a checkpoint policy must return True (or Saveable) for a result that may be "
                    f"saved, and False (or Recompute) for others; got {answer!r}")


# --- A trace that writes the known part down twice ------------------------------------------------

class RematTracer(JaxprTracer):
    """A value that is known now and computed again later: `known`, and a variable."""

    __slots__ = ("known",)

    def __init__(self, later, known):
        super().__init__(later._trace, later.variable, later._source)
        self.known = known


class RematTrace(PartialEvalTrace):
    """As PartialEvalTrace, but what the policy does not save is written down for later as well."""

    __slots__ = ("policy",)

    def __init__(self, parent, policy, name):
        super().__init__(parent, name)
        self.policy = policy

    def is_unknown(self, x):
        return self.is_mine(x) and type(x) is not RematTracer

    def known_value(self, x):
        return x.known if self.is_mine(x) else x

    def process_primitive(self, primitive, args, params):
        if primitive in SPLIT_CALLS:
            return self.split_call(primitive, args, params)
        if any(self.is_unknown(a) for a in args):
            if "partial_eval" not in primitive.rules:
                return JaxprTrace.process_primitive(self, primitive, args, params)
            return self.write_again(primitive, args, params, self.known_part(primitive, args, params))
        with set_current_trace(self.parent):
            known = primitive.bind(*[self.known_value(a) for a in args], **params)
        if self.saves(primitive, args, params):
            return known
        return self.write_again(primitive, args, params, known)

    def split_call(self, primitive, args, params):
        unknown = tuple(map(self.is_unknown, args))
        known = [not u for u in unknown]
        split = split_by_policy(open_jaxpr(params["jaxpr"]), unknown, self.policy, True)
        with set_current_trace(self.parent):
            outs = primitive.bind(
                *split.consts, *map(self.known_value, tracked(known, args)),
                **with_program(params, split.known,
                               lambda cse: [True] * len(split.consts) + tracked(known, cse)))
        return record_later(self, split, outs, primitive, args, unknown, params)

    def saves(self, primitive, args, params):
        # Whatever has an effect happens once.
        return bool(primitive.effects_of(params)) or is_saved(
            self.policy(primitive, *[typeof(a) for a in args], **params))

    def write_again(self, primitive, args, params, known):
        later = JaxprTrace.process_primitive(self, primitive, args, params)
        if not primitive.multiple_results:
            return RematTracer(later, known)
        return [y if x is None else RematTracer(y, x) for y, x in zip(later, known)]

    def known_part(self, primitive, args, params):
        """The results of a loop or branch that its known operands decide; None for the others."""
        trace = PartialEvalTrace(self.parent, self.name)
        try:
            operands = [trace.new_arg(typeof(a)) if self.is_unknown(a) else self.known_value(a)
                        for a in args]
            with set_current_trace(trace):
                outs = rule_for(primitive, "partial_eval")(trace, *operands, **params)
            return [None if trace.is_mine(out) else out for out in outs]
        finally:
            trace.end()


# --- Splitting a program by a policy --------------------------------------------------------------

class Split(NamedTuple):
    """A program in two parts.

    `known` takes the values of `consts` and the known inputs; it returns the known results, then
    residuals. `later` takes residuals, which come from argument `sources[i]` of the known part or,
    if that is None, from its results; then the unknown inputs. It returns the results that are
    unknown, and those computed again, in the order of the program.
    """
    known: object
    consts: list
    later: object
    sources: list
    out_unknown: list
    out_again: list


@memo_by_jaxpr
def split_by_policy(jaxpr, unknown, policy, again):
    """The Split of a program without constvars; with `again`, known results are computed later, too."""
    known = JaxprTrace(jaxpr.name)
    later = RematTrace(known, policy, jaxpr.name)
    try:
        args = [(later if u else known).new_arg(v.aval) for v, u in zip(jaxpr.invars, unknown)]
        with set_current_trace(later):
            outs = eval_jaxpr(jaxpr, [], *args)
        out_unknown = [later.is_unknown(out) for out in outs]
        out_again = [again and type(out) is RematTracer for out in outs]
        wanted = [out for out, u, r in zip(outs, out_unknown, out_again) if u or r]
        later_jaxpr, residuals = used_constants(*later.to_jaxpr(wanted))
        known_outs = [later.known_value(out) for out, u in zip(outs, out_unknown) if not u]
        known_jaxpr, consts = known.to_jaxpr([*known_outs, *residuals])
    finally:
        known.end(), later.end()
    known_jaxpr = dce_jaxpr(convert_constvars_jaxpr(known_jaxpr))
    known_jaxpr, sources = residual_sources(known_jaxpr, len(residuals))
    return Split(known_jaxpr, consts, convert_constvars_jaxpr(later_jaxpr), sources, out_unknown,
                 out_again)


def used_constants(jaxpr, consts):
    """The program without dead code, and without the constants that only dead code reads."""
    jaxpr = dce_jaxpr(jaxpr)
    used = {v for eqn in jaxpr.eqns for v in eqn.invars if isinstance(v, Var)}
    used.update(v for v in jaxpr.outvars if isinstance(v, Var))
    flags = [v in used for v in jaxpr.constvars]
    return jaxpr.replace(constvars=tracked(flags, jaxpr.constvars)), tracked(flags, consts)


def record_later(trace, split, outs, primitive, args, unknown, params):
    """Write the later part down, as an application of `primitive`; all results in their order."""
    n_known = len(split.out_unknown) - sum(split.out_unknown)
    known, computed = iter(outs[:n_known]), iter(outs[n_known:])
    known_args = [*split.consts, *tracked([not u for u in unknown], args)]
    residuals = [next(computed) if s is None else known_args[s] for s in split.sources]

    def cse_of_later(cse):
        of_known = [True] * len(split.consts) + tracked([not u for u in unknown], cse)
        return [s is None or of_known[s] for s in split.sources] + tracked(unknown, cse)

    later_params = with_program(params, split.later, cse_of_later)
    if primitive is checkpoint_p:
        later_params["differentiated"] = True
    # JaxprTrace's own method: the later part is recorded, not split again.
    later = iter(JaxprTrace.process_primitive(
        trace, primitive, [*residuals, *tracked(unknown, args)], later_params))
    return [next(later) if u else RematTracer(next(later), next(known)) if r else next(known)
            for u, r in zip(split.out_unknown, split.out_again)]


def with_program(params, jaxpr, new_cse):
    """Parameters for another program; new_cse(prevent_cse) is the tuple for its arguments."""
    changes = {"jaxpr": ClosedJaxpr(jaxpr) if isinstance(params["jaxpr"], ClosedJaxpr) else jaxpr}
    if "donated_invars" in params:
        changes["donated_invars"] = ()
    if isinstance(params.get("prevent_cse"), tuple):
        changes["prevent_cse"] = tuple(new_cse(params["prevent_cse"]))
    return params | changes


# --- The primitive --------------------------------------------------------------------------------

checkpoint_p = Primitive("remat2", multiple_results=True, higher_order=True)     # JAX's name
checkpoint_p.def_impossible("lowering", "the compiler puts the inner program in its place")
checkpoint_p.effects_of = inner_effects


@checkpoint_p.def_impl
def _checkpoint_impl(*args, jaxpr, prevent_cse, differentiated, policy):
    return eval_jaxpr(jaxpr, [], *args)


@checkpoint_p.def_abstract_eval
def _checkpoint_abstract_eval(*avals, jaxpr, prevent_cse, differentiated, policy):
    return jaxpr.out_avals


@checkpoint_p.def_jvp
def _checkpoint_jvp(primals, tangents, **params):
    given = tuple(not is_zero(t) for t in tangents)
    program, consts, produced = jvp_jaxpr(params["jaxpr"], given)
    params = with_program(params, program, lambda cse: (
        (True,) * len(consts) + cse + (True,) * sum(given)))
    outs = checkpoint_p.bind(*consts, *primals, *tracked(given, tangents), **params)
    n = len(produced)
    rest = iter(outs[n:])
    return outs[:n], [next(rest) if flag else Zero.like(x) for flag, x in zip(produced, outs)]


@checkpoint_p.def_transpose
def _checkpoint_transpose(cts, *operands, **params):
    linear = tuple(is_undefined_primal(x) for x in operands)
    given = tuple(not is_zero(ct) for ct in cts)
    program, consts, produced = transpose_again(params["jaxpr"], linear, given)
    known = [not l for l in linear]
    params = with_program(params, program, lambda cse: (
        [True] * len(consts) + tracked(known, cse) + [True] * sum(given)))
    outs = iter(checkpoint_p.bind(*consts, *tracked(known, operands), *tracked(given, cts), **params))
    in_cts = iter([next(outs) if flag else None for flag in produced])
    return [next(in_cts) if l else None for l in linear]


@checkpoint_p.def_batch
def _checkpoint_batch(axis, vals, dims, **params):
    program, consts, out_dims = batch_jaxpr(params["jaxpr"], axis, tuple(dims))
    params = with_program(params, program, lambda cse: (True,) * len(consts) + cse)
    return checkpoint_p.bind(*consts, *vals, **params), list(out_dims)


@checkpoint_p.def_partial_eval
def _checkpoint_partial_eval(trace, *args, **params):
    unknown = tuple(trace.is_mine(a) for a in args)
    policy = params["policy"] or nothing_saveable
    split = split_by_policy(params["jaxpr"], unknown, policy, False)
    with set_current_trace(trace.parent):
        outs = eval_jaxpr(split.known, [], *split.consts, *tracked([not u for u in unknown], args))
    return record_later(trace, split, outs, checkpoint_p, args, unknown, params)


SPLIT_CALLS = {jit_p, checkpoint_p}     # programs that a policy is asked about equation by equation


# --- Backwards ------------------------------------------------------------------------------------

@memo_by_jaxpr
def transpose_again(jaxpr, linear, given):
    """As `transpose_jaxpr`, of a program that must first compute again what it is linear with."""
    known, consts, later, out_unknown, sources = partial_eval_jaxpr(jaxpr, linear)
    residual_avals = tracked([not l for l in linear], jaxpr.in_avals)
    ct_avals = tracked(given, jaxpr.out_avals)
    undefined = [UndefinedPrimal(a) for a in tracked(linear, jaxpr.in_avals)]
    produced = []

    def f_transposed(*args):
        inputs = [*consts, *args[:len(residual_avals)]]
        cts = iter(args[len(residual_avals):])
        outs = eval_jaxpr(known, [], *inputs)
        computed = iter(outs[len(out_unknown) - sum(out_unknown):])
        residuals = [next(computed) if s is None else inputs[s] for s in sources]
        out_cts = [next(cts) if flag else Zero(v.aval) for flag, v in zip(given, jaxpr.outvars)]
        in_cts = backward_pass(later, [], [*residuals, *undefined], tracked(out_unknown, out_cts))
        in_cts = in_cts[len(residuals):]
        produced[:] = [not is_zero(ct) for ct in in_cts]
        return tracked(produced, in_cts)

    program, consts_of_program = closed_program(f_transposed, [*residual_avals, *ct_avals],
                                                jaxpr.name)
    return program, consts_of_program, tuple(produced)


# --- Compiled -------------------------------------------------------------------------------------

def inlined_checkpoint(params):
    """The program that the compiler inlines: behind a barrier, if it computes something again."""
    jaxpr, prevent_cse = params["jaxpr"], params["prevent_cse"]
    guarded = prevent_cse if type(prevent_cse) is tuple else (prevent_cse,) * len(jaxpr.invars)
    if not (params["differentiated"] and any(guarded)):
        return jaxpr
    return behind_barrier(jaxpr, guarded)


@memo_by_jaxpr
def behind_barrier(jaxpr, guarded):
    def f(*args):
        passed = iter(optimization_barrier_p.bind(*tracked(guarded, args)))
        return eval_jaxpr(jaxpr, [], *[next(passed) if g else x for g, x in zip(guarded, args)])
    return trace_to_closed_jaxpr(f, jaxpr.in_avals, jaxpr.name)


CALLS["remat2"] = inlined_checkpoint
