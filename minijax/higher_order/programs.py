# Exported from notebooks/12_jit_inside.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: transformed programs. Home: 12_jit_inside. In JAX: ad.jvp_jaxpr, batching.batch_jaxpr, ….

Rules of primitives that contain programs transform those programs. Each transformation here takes a
jaxpr without constvars and is memoised: without that, nesting costs 2^depth.
"""

from functools import wraps
from weakref import WeakSet

from minijax.config import config
from minijax.core import rules_epoch
from minijax.interpreters.batching import batch_flat, batch_to_dims
from minijax.interpreters.jvp import jvp_flat
from minijax.interpreters.partial_eval import split_jaxpr
from minijax.interpreters.staging import trace_to_jaxpr
from minijax.interpreters.transpose import backward_pass
from minijax.jaxpr import Var, convert_constvars_jaxpr, dce_jaxpr, eval_jaxpr, inputs_read
from minijax.rules import UndefinedPrimal, Zero, instantiate_zeros, is_zero

__all__ = [
    "memos", "Memo", "memo_by_jaxpr", "closed_program", "as_flat", "tracked", "untracked", "merge",
    "split_list", "any_flag", "none_of", "instantiated", "jvp_jaxpr", "batch_jaxpr",
    "batch_jaxpr_to", "batched_aval", "partial_eval_jaxpr", "residual_sources", "CHEAP",
    "MAX_REDONE", "save_less", "what_to_save", "n_bytes", "program_used", "transpose_jaxpr",
]


# --- Memoisation ----------------------------------------------------------------------------------

memos = []


class Memo:
    """Results kept in the jaxprs that they were made from: a table here would keep both alive."""

    def __init__(self):
        self.jaxprs = WeakSet()
        memos.append(self)

    def of(self, jaxpr):
        if self not in jaxpr.memos:
            self.jaxprs.add(jaxpr)
        return jaxpr.memos.setdefault(self, {})

    def clear(self):
        for jaxpr in list(self.jaxprs):
            jaxpr.memos.pop(self, None)


def memo_by_jaxpr(f):
    """Memoise f(jaxpr, *key): as long as the jaxpr lives, no rule changes and no configuration."""
    memo = Memo()

    @wraps(f)
    def memoised(jaxpr, *key):
        entries = memo.of(jaxpr)
        full_key = key, rules_epoch(), config.trace_key()
        if full_key not in entries:
            entries[full_key] = f(jaxpr, *key)
        return entries[full_key]
    return memoised


def closed_program(f, avals, name):
    """The program of a flat function, its constants made leading arguments, and their values."""
    jaxpr, consts = trace_to_jaxpr(f, avals, name)
    return convert_constvars_jaxpr(jaxpr), consts


def as_flat(jaxpr):
    return lambda *args: eval_jaxpr(jaxpr, [], *args)


def tracked(mask, values):
    """The values whose flag is set."""
    return [v for v, flag in zip(values, mask) if flag]


def untracked(mask, values):
    """The values whose flag is not set."""
    return [v for v, flag in zip(values, mask) if not flag]


def merge(mask, flagged, others):
    """One list again, of the values whose flag is set and the others."""
    flagged, others = iter(flagged), iter(others)
    return [next(flagged if flag else others) for flag in mask]


def split_list(values, sizes):
    """Parts of these lengths, and the rest."""
    parts = []
    for n in sizes:
        parts.append(values[:n])
        values = values[n:]
    return [*parts, values]


def any_flag(flags, others):
    return tuple([a or b for a, b in zip(flags, others)])


def none_of(values):
    return (False,) * len(values)


def instantiated(wanted, values):
    """The values, arrays in place of symbolic zeros where the flag `wanted` is set."""
    return [instantiate_zeros(x) if flag else x for x, flag in zip(values, wanted)]


# --- jvp ------------------------------------------------------------------------------------------

# jvp_jaxpr : (a -> b) -> which tangents are given, which must come out even if they are zero
#             -> ((a, T a) -> (b, T b)), constants, which tangents come out

@memo_by_jaxpr
def jvp_jaxpr(jaxpr, given, wanted=None):
    avals = [v.aval for v in jaxpr.invars]
    produced = []
    jaxpr = dce_jaxpr(jaxpr)        # what nobody reads has no derivative

    def f_jvp(*args):
        primals, rest = args[:len(avals)], iter(args[len(avals):])
        tangents = [next(rest) if flag else Zero(a.to_tangent_aval())
                    for flag, a in zip(given, avals)]
        outs, out_tangents = jvp_flat(as_flat(jaxpr), primals, tangents)
        out_tangents = instantiated(wanted or none_of(outs), out_tangents)
        produced[:] = [not is_zero(t) for t in out_tangents]
        return [*outs, *tracked(produced, out_tangents)]

    tangent_avals = [a.to_tangent_aval() for a in tracked(given, avals)]
    program, consts = closed_program(f_jvp, [*avals, *tangent_avals], jaxpr.name)
    return program, consts, tuple(produced)


# --- Batching -------------------------------------------------------------------------------------

# batch_jaxpr : (a -> b) -> axis -> dims -> (batch a -> batch b), constants, out dims

@memo_by_jaxpr
def batch_jaxpr(jaxpr, axis, dims):
    out_dims = []

    def f_batched(*vals):
        outs, out_dims[:] = batch_flat(as_flat(jaxpr), axis, vals, dims)
        return outs

    avals = [batched_aval(v.aval, axis, d) for v, d in zip(jaxpr.invars, dims)]
    program, consts = closed_program(f_batched, avals, jaxpr.name)
    return program, consts, tuple(out_dims)


@memo_by_jaxpr
def batch_jaxpr_to(jaxpr, axis, dims, out_dims):
    """The batched program whose results have their batch axes at `out_dims`, and its constants."""
    def f_batched(*vals):
        return batch_to_dims(as_flat(jaxpr), axis, vals, dims, out_dims)

    avals = [batched_aval(v.aval, axis, d) for v, d in zip(jaxpr.invars, dims)]
    return closed_program(f_batched, avals, jaxpr.name)


def batched_aval(aval, axis, dim):
    if dim is None:
        return aval
    return aval.update(shape=(*aval.shape[:dim], axis.size, *aval.shape[dim:]))


# --- Partial evaluation ---------------------------------------------------------------------------

@memo_by_jaxpr
def partial_eval_jaxpr(jaxpr, unknown, wanted=()):
    """As `split_jaxpr`, memoised; constants of the known part have become its first arguments.

    A residual that is an argument of the known part need not be returned from there: in place of a
    number of residuals comes `sources`, for each residual its argument's number or None.
    """
    known, consts, later, out_unknown, n_residuals = split_jaxpr(jaxpr, unknown, wanted)
    known, later, n_residuals = save_less(convert_constvars_jaxpr(known), later, n_residuals)
    known, sources = residual_sources(known, n_residuals)
    return known, consts, later, out_unknown, sources


def residual_sources(known, n_residuals):
    """The known program without its residuals, the last results, that are arguments; sources."""
    first = len(known.outvars) - n_residuals
    position = {v: i for i, v in enumerate(known.invars)}
    sources = [position.get(v) if isinstance(v, Var) else None for v in known.outvars[first:]]
    kept = [v for v, s in zip(known.outvars[first:], sources) if s is None]
    return known.replace(outvars=[*known.outvars[:first], *kept]), sources


# Operations that take no longer than writing their result to memory and reading it back.
CHEAP = frozenset("neg abs sign add add_any sub mul div square integer_pow max min not and or xor "
                  "eq ne lt le gt ge select_n convert_element_type broadcast_in_dim reshape "
                  "squeeze iota".split())
MAX_REDONE = 6         # how many of them deep


def save_less(known, later, n_residuals):
    """The two parts of a split with fewer residuals: the later one makes cheap values again itself.

    A value is made again if it can be from other residuals, or from one smaller value.
    """
    outs, residuals = split_list(known.outvars, [len(known.outvars) - n_residuals])
    later = dce_jaxpr(later)
    inside, inputs = split_list(later.invars, [n_residuals])
    name = {r: v for r, v, read in zip(residuals, inside, inputs_read(later)) if read}
    kept, redone = what_to_save(known, list(name))

    def named(atom):
        return name.setdefault(atom, Var(atom.aval)) if isinstance(atom, Var) else atom
    eqns = [eqn.replace(invars=list(map(named, eqn.invars)), outvars=list(map(named, eqn.outvars)))
            for eqn in redone]
    later = later.replace(invars=[*map(named, kept), *inputs], eqns=[*eqns, *later.eqns])
    return known.replace(outvars=[*outs, *kept]), later, len(kept)


def what_to_save(known, residuals):
    """Values of a program from which cheap equations make the residuals, and those equations."""
    maker = {eqn.outvars[0]: eqn for eqn in known.eqns if eqn.primitive.name in CHEAP}
    number = {v: i for i, eqn in enumerate(known.eqns) for v in eqn.outvars}
    kept, redone = {}, set()

    def operands(v):
        return [a for a in maker[v].invars if isinstance(a, Var)]

    def is_there(v, depth=MAX_REDONE):
        return v in kept or depth and v in maker and all(
            [is_there(a, depth - 1) for a in operands(v)])

    def save(v):
        if v in maker and len(operands(v)) == 1 and n_bytes(operands(v)[0]) < n_bytes(v):
            save(operands(v)[0])
        elif not is_there(v):
            kept[v] = True

    def redo(v):
        if v not in kept and number[v] not in redone:
            redone.add(number[v])
            for a in operands(v):
                redo(a)

    for v in sorted(residuals, key=lambda v: number.get(v, -1)):
        save(v)
    for v in residuals:
        redo(v)
    kept = [v for v in dict.fromkeys([*residuals, *kept]) if v in kept]
    return kept, [known.eqns[i] for i in sorted(redone)]


def n_bytes(var):
    return var.aval.size * var.aval.dtype.itemsize


# --- Dead code ------------------------------------------------------------------------------------

@memo_by_jaxpr
def program_used(jaxpr, used):
    """The program of used results, without arguments that it does not read; which it reads."""
    smaller = dce_jaxpr(jaxpr, used)
    read = inputs_read(smaller)
    return smaller.replace(invars=tracked(read, jaxpr.invars)), read


# --- Transposition --------------------------------------------------------------------------------

# transpose_jaxpr : ((r, a) -> b, linear in a) -> which are linear, which cotangents come, and
#                   which must go on even if they are zero
#                   -> ((r, CT b) -> CT a), constants, which cotangents come out

@memo_by_jaxpr
def transpose_jaxpr(jaxpr, linear, given, wanted=None):
    in_avals = [v.aval for v in jaxpr.invars]
    residual_avals = tracked([not l for l in linear], in_avals)
    ct_avals = tracked(given, [v.aval for v in jaxpr.outvars])
    produced = []

    def f_transposed(*args):
        residuals, cts = iter(args[:len(residual_avals)]), iter(args[len(residual_avals):])
        operands = [UndefinedPrimal(a) if l else next(residuals) for a, l in zip(in_avals, linear)]
        out_cts = [next(cts) if flag else Zero(v.aval) for flag, v in zip(given, jaxpr.outvars)]
        in_cts = tracked(linear, backward_pass(jaxpr, [], operands, out_cts))
        in_cts = instantiated(wanted or none_of(in_cts), in_cts)
        produced[:] = [not is_zero(ct) for ct in in_cts]
        return tracked(produced, in_cts)

    program, consts = closed_program(f_transposed, [*residual_avals, *ct_avals], jaxpr.name)
    return program, consts, tuple(produced)
