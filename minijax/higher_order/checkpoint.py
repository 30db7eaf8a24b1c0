# Exported from notebooks/16_checkpoint.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: programs that are run again. Home: 16_checkpoint. In JAX: jax/_src/ad_checkpoint.py.

`checkpoint_p` applies a program, too. Split in two for a derivative, its known part keeps only what
a policy lets it save; the later part computes the rest once more from there.
"""

from typing import NamedTuple

from minijax.avals import typeof
from minijax.compiler.passes import CALLS
from minijax.core import Primitive, rule_for, set_current_trace
from minijax.higher_order.cond import any_of, bind_cond, cond_p, join_splits, programs_of
from minijax.higher_order.jit import jit_p
from minijax.higher_order.programs import (
    any_flag, batch_jaxpr, closed_program, jvp_jaxpr, memo_by_jaxpr, merge, none_of,
    partial_eval_jaxpr, program_used, split_list, tracked, untracked,
)
from minijax.higher_order.scan import padded, parts_of_body, run_known, scan_p
from minijax.higher_order.while_loop import while_p
from minijax.interpreters.partial_eval import PartialEvalTrace
from minijax.interpreters.staging import JaxprTrace, JaxprTracer, trace_to_closed_jaxpr
from minijax.interpreters.transpose import backward_pass
from minijax.jaxpr import (
    ClosedJaxpr, Jaxpr, Var, convert_constvars_jaxpr, dce_jaxpr, eval_jaxpr, inner_effects,
    open_jaxpr,
)
from minijax.loop_ir import lower_moving
from minijax.primitives.barrier import optimization_barrier_p
from minijax.rules import (
    UndefinedPrimal, Zero, defjet_linear, defvectorized, is_undefined_primal, is_zero,
)

__all__ = [
    "name_p", "name_jvp", "Answer", "Saveable", "Recompute", "Offloadable", "nothing_saveable",
    "is_saved", "RematTracer", "RematTrace", "Split", "split_by_policy", "used_constants",
    "split_call", "later_params", "with_program", "split_loop", "split_turn", "split_choice",
    "split_each_branch", "checkpoint_p", "without_unread", "SPLITS", "transpose_again",
    "inlined_checkpoint", "behind_barrier",
]


# --- Names ----------------------------------------------------------------------------------------

name_p = Primitive("name")

def name_jvp(primals, tangents, *, name):
    return name_p.bind(*primals, name=name), tangents[0]      # the tangent has no name

name_p.def_impl(lambda x, *, name: x)
name_p.def_abstract_eval(lambda x, *, name: x)
name_p.def_jvp(name_jvp)
name_p.def_impossible("transpose", "it stands on primal values only")
defjet_linear(name_p)
defvectorized(name_p)
lower_moving(name_p, lambda x, *, name: x)


# --- What a policy may answer ---------------------------------------------------------------------

class Answer(NamedTuple):
    """What a policy may say of a result in place of True or False."""
    text: str

    def __repr__(self):
        return self.text


Saveable, Recompute = Answer("Saveable"), Answer("Recompute")


class Offloadable(NamedTuple):
    """A policy's answer for a result to be kept in another memory: here is one, so it stays."""
    src: str
    dst: str


def nothing_saveable(primitive, *avals, **params):
    """Compute everything again: what `checkpoint` does if no policy is given."""
    return False


def is_saved(answer):
    if isinstance(answer, (bool, Answer, Offloadable)):
        return answer is not False and answer is not Recompute
    raise TypeError("a checkpoint policy must return True (or Saveable, or Offloadable(…)) for a "
                    "result that may be saved, and False (or Recompute) for others; got "
                    f"{answer!r}")


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
        unknown = tuple(map(self.is_unknown, args))
        if primitive in SPLITS and not (primitive is cond_p and unknown[0]):
            return SPLITS[primitive](self, primitive, args, unknown, params)
        if any(unknown):
            if primitive is not while_p:
                return JaxprTrace.process_primitive(self, primitive, args, params)
            known = self.known_part(primitive, args, params)
            return self.write_again(primitive, args, params, known)
        with set_current_trace(self.parent):
            known = primitive.bind(*map(self.known_value, args), **params)
        if self.saves(primitive, args, params):
            return known
        return self.write_again(primitive, args, params, known)

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
        """The results of a loop that its known operands decide; None for the others."""
        trace = PartialEvalTrace(self.parent, self.name)
        try:
            operands = [trace.new_arg(typeof(a)) if self.is_unknown(a) else self.known_value(a)
                        for a in args]
            with set_current_trace(trace):
                outs = rule_for(primitive, "partial_eval")(trace, *operands, **params)
            return [None if trace.is_mine(out) else out for out in outs]
        finally:
            trace.end()

    def record_split(self, primitive, operands, params, known, out_unknown, out_again):
        """Write the later part of a split down; all results in the order of the whole."""
        outs = iter(JaxprTrace.process_primitive(self, primitive, operands, params))
        self.eqns[-1] = primitive.dce_rule(self.eqns[-1], (True,) * len(self.eqns[-1].outvars))
        known = iter(known)
        return [next(outs) if u else RematTracer(next(outs), next(known)) if r else next(known)
                for u, r in zip(out_unknown, out_again)]


# --- Splitting a program by a policy --------------------------------------------------------------

class Split(NamedTuple):
    """A program in two parts.

    `known` takes the values of `consts` and the known inputs; it returns the known results, then
    residuals. `later` takes the residuals, then all inputs. It returns the results that are
    unknown, and those computed again, in the order of the program.
    """
    known: Jaxpr
    consts: list
    later: Jaxpr
    n_residuals: int
    out_unknown: tuple
    out_again: tuple


@memo_by_jaxpr
def split_by_policy(jaxpr, unknown, policy, wanted=None, again=None):
    """The Split of a program without constvars.

    Results flagged in `wanted` count as unknown. Known results flagged in `again` are computed
    later, too; if that is None, those which the policy does not save.
    """
    known = JaxprTrace(jaxpr.name)
    later = RematTrace(known, policy, jaxpr.name)
    try:
        args = [later.new_arg(aval) for aval in jaxpr.in_avals]
        args = [x if u else RematTracer(x, known.new_arg(x.aval)) for x, u in zip(args, unknown)]
        with set_current_trace(later):
            outs = eval_jaxpr(jaxpr, [], *args)
        out_unknown = any_flag(map(later.is_unknown, outs), wanted or none_of(outs))
        again = again or [type(out) is RematTracer for out in outs]
        out_again = tuple([r and not u for r, u in zip(again, out_unknown)])
        later_jaxpr, residuals = used_constants(
            *later.to_jaxpr(tracked(any_flag(out_unknown, out_again), outs)))
        known_outs = map(later.known_value, untracked(out_unknown, outs))
        known_jaxpr, consts = known.to_jaxpr([*known_outs, *residuals])
    finally:
        known.end(), later.end()
    return Split(dce_jaxpr(convert_constvars_jaxpr(known_jaxpr)), consts,
                 convert_constvars_jaxpr(later_jaxpr), len(residuals), out_unknown, out_again)


def used_constants(jaxpr, consts):
    """The program without dead code, and without the constants that only dead code reads."""
    jaxpr = dce_jaxpr(jaxpr)
    used = {v for eqn in jaxpr.eqns for v in eqn.invars if isinstance(v, Var)}
    used.update(v for v in jaxpr.outvars if isinstance(v, Var))
    flags = [v in used for v in jaxpr.constvars]
    return jaxpr.replace(constvars=tracked(flags, jaxpr.constvars)), tracked(flags, consts)


# --- Programs in programs -------------------------------------------------------------------------

def split_call(trace, primitive, args, unknown, params):
    """A call: its program is split, and both parts are called."""
    split = split_by_policy(open_jaxpr(params["jaxpr"]), unknown, trace.policy)
    known_args = map(trace.known_value, untracked(unknown, args))
    with set_current_trace(trace.parent):
        outs = primitive.bind(*split.consts, *known_args, **with_program(
            params, split.known, lambda cse: [True] * len(split.consts) + untracked(unknown, cse)))
    known, residuals = split_list(outs, [split.out_unknown.count(False)])
    return trace.record_split(primitive, [*residuals, *args], later_params(params, split), known,
                              split.out_unknown, split.out_again)


def later_params(params, split):
    """Parameters of the call of the later part."""
    params = with_program(params, split.later, lambda cse: [True] * split.n_residuals + [*cse])
    return params | ({"differentiated": True} if "differentiated" in params else {})


def with_program(params, jaxpr, new_cse):
    """Parameters for another program; new_cse(prevent_cse) is the tuple for its arguments."""
    changes = {"jaxpr": ClosedJaxpr(jaxpr) if isinstance(params["jaxpr"], ClosedJaxpr) else jaxpr}
    if "donated_invars" in params:
        changes["donated_invars"] = ()
    if isinstance(params.get("prevent_cse"), tuple):
        changes["prevent_cse"] = tuple(new_cse(params["prevent_cse"]))
    return params | changes


def split_loop(trace, primitive, args, unknown, params):
    """A scan: residuals of its turns are stacked; the later scan has the known carries again."""
    sizes = params["num_consts"], params["num_carry"]
    how = params["length"], params["reverse"], params["unroll"]
    parts, out_again = split_turn(params["jaxpr"].jaxpr, sizes, unknown, trace.policy)
    flags = split_list(unknown, sizes)
    flags[1] = parts.carry_unknown
    groups = split_list(args, sizes)
    known = [[*map(trace.known_value, untracked(*pair))] for pair in zip(flags, groups)]
    with set_current_trace(trace.parent):
        known_outs, same, rows = run_known(parts, known, *how)
    params = params | dict(jaxpr=ClosedJaxpr(parts.later), num_consts=len(same) + sizes[0])
    return trace.record_split(primitive, [*same, *args, *rows], params, known_outs,
                              parts.out_unknown, out_again)


@memo_by_jaxpr
def split_turn(jaxpr, sizes, unknown, policy):
    """SplitBody whose later body takes all arguments, and which results it computes again."""
    const_unknown, carry_unknown, row_unknown = split_list(unknown, sizes)
    while True:
        flags = const_unknown, carry_unknown, row_unknown
        wanted = padded(carry_unknown, len(jaxpr.outvars))
        split = split_by_policy(jaxpr, sum(flags, ()), policy, wanted)
        found = split.out_unknown[:sizes[1]]
        if found == carry_unknown:
            break
        carry_unknown = found
    # The later loop goes through all carries, also if the policy saves what comes out of a turn.
    again = tuple([True] * sizes[1] + [*split.out_again[sizes[1]:]])
    split = split_by_policy(jaxpr, sum(flags, ()), policy, wanted, again)
    parts = parts_of_body(split.known, split.consts, split.later, split.n_residuals, flags,
                          split.out_unknown)
    return parts, split.out_again


def split_choice(trace, primitive, args, unknown, params):
    """A cond whose index is known: each branch is split."""
    index, *operands = args
    parts, out_again = split_each_branch(*programs_of(params["branches"]), unknown[1:],
                                         trace.policy)
    known_args = map(trace.known_value, untracked(unknown[1:], operands))
    with set_current_trace(trace.parent):
        outs = bind_cond(trace.known_value(index), parts.known, [*parts.consts, *known_args])
    known, residuals = split_list(outs, [parts.out_unknown.count(False)])
    return trace.record_split(primitive, [index, *residuals, *operands],
                              dict(branches=tuple(map(ClosedJaxpr, parts.later))), known,
                              parts.out_unknown, out_again)


@memo_by_jaxpr
def split_each_branch(first, others, unknown, policy):
    """SplitBranches whose later programs take all operands; which results these compute again."""
    branches = (first, *others)
    splits = [split_by_policy(b, unknown, policy) for b in branches]
    out_unknown = any_of([s.out_unknown for s in splits])
    again = any_of([s.out_again for s in splits])
    splits = [split_by_policy(b, unknown, policy, out_unknown, again) for b in branches]
    sources = [[None] * s.n_residuals for s in splits]
    parts = join_splits([s.known for s in splits], [s.consts for s in splits],
                        [s.later for s in splits], sources, out_unknown)
    return parts, splits[0].out_again


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
    operands = [*consts, *tracked(known, operands), *tracked(given, cts)]
    outs = iter(checkpoint_p.bind(*operands, **params))
    in_cts = iter([next(outs) if flag else None for flag in produced])
    return [next(in_cts) if l else None for l in linear]


@checkpoint_p.def_batch
def _checkpoint_batch(axis, vals, dims, **params):
    program, consts, out_dims = batch_jaxpr(params["jaxpr"], axis, tuple(dims))
    params = with_program(params, program, lambda cse: (True,) * len(consts) + cse)
    return checkpoint_p.bind(*consts, *vals, **params), list(out_dims)


@checkpoint_p.def_partial_eval
def _checkpoint_partial_eval(trace, *args, **params):
    unknown = tuple([trace.is_mine(a) for a in args])
    policy = params["policy"] or nothing_saveable
    jaxpr = params["jaxpr"]
    split = split_by_policy(jaxpr, unknown, policy, None, none_of(jaxpr.outvars))
    with set_current_trace(trace.parent):
        outs = eval_jaxpr(split.known, [], *split.consts, *untracked(unknown, args))
    known, residuals = split_list(outs, [split.out_unknown.count(False)])
    operands, params = without_unread([*residuals, *args], later_params(params, split))
    # JaxprTrace's own method: the later part is recorded, not split again.
    later = JaxprTrace.process_primitive(trace, checkpoint_p, operands, params)
    return merge(split.out_unknown, later, known)


def without_unread(operands, params, used=None):
    """Operands that the program reads for its used results, and parameters for these alone."""
    program, read = program_used(params["jaxpr"], used)
    return tracked(read, operands), with_program(params, program, lambda cse: tracked(read, cse))


@checkpoint_p.def_dce
def _checkpoint_dce(eqn, used):
    invars, params = without_unread(eqn.invars, eqn.params, used)
    return eqn.replace(invars=invars, params=params, outvars=tracked(used, eqn.outvars))


# Of a while loop nothing can be stacked: its known results are computed now, and all of it again.
SPLITS = {jit_p: split_call, checkpoint_p: split_call, scan_p: split_loop, cond_p: split_choice}


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
