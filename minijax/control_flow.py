# Exported from notebooks/ref_control_flow.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: control flow as users call it. Home: ref_control_flow. In JAX: jax/_src/lax/control_flow/.

Each function traces the functions it is given to programs and applies the primitive that contains
them. Values they close over become operands of the primitive, whatever trace these belong to.
"""

from functools import partial
from typing import NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from minijax import dtypes
from minijax.api import vmap
from minijax.array import as_array
from minijax.avals import typeof
from minijax.config import config, disable_jit
from minijax.core import Tracer, concrete_or_error, get_axis_env, rules_epoch
from minijax.errors import ConcretizationTypeError, see
from minijax.flatten import FlatFunction, fun_name, positional_names
from minijax.higher_order.cond import bind_cond, share_consts
from minijax.higher_order.programs import (
    memo_by_jaxpr, memos, merge, split_list, tracked, untracked,
)
from minijax.higher_order.scan import bind_scan
from minijax.higher_order.while_loop import bind_while
from minijax.interpreters.staging import trace_to_jaxpr
from minijax.jaxpr import Jaxpr, Literal, convert_constvars_jaxpr, inputs_read
from minijax.primitives.elementwise import add, bitwise_or, clamp, convert_element_type, lt, ne
from minijax.primitives.structural import (
    canonicalize_axis, concatenate, index_in_dim, pad, reshape, rev, slice, slice_in_dim,
)
from minijax.rules import const
from minijax.tree_util import (
    PyTreeDef, equality_errors, keystr, tree_flatten, tree_flatten_with_path, tree_map,
    tree_structure, tree_unflatten, treedef_is_leaf,
)

__all__ = [
    "Traced", "trace_function", "trace_anew", "turn_of", "check_functions", "forwarded", "avals_of",
    "as_operand", "as_operands", "with_results", "same_type", "cond", "switch",
    "platform_dependent", "with_operand", "is_concrete", "as_predicate", "check_index",
    "typeof_or_error", "choose", "check_results_agree", "tree_differences", "type_differences",
    "promoted", "trace_body", "check_carry", "counts", "carry_name", "while_loop",
    "while_in_python", "check_condition", "run_while", "move_to_consts", "scan", "row_aval",
    "scan_length", "turns_at_once", "scan_in_python", "stack", "carry_of_pair", "run_scan",
    "fori_loop", "is_below", "add_one", "dtype_of_bounds", "map", "in_batches", "without_batches",
    "associative_scan", "partial_results", "interleave",
]


# --- From functions to programs -------------------------------------------------------------------

class Traced(NamedTuple):
    """A program whose first arguments are constants, their values, and the tree of its results."""
    jaxpr: Jaxpr
    consts: list
    tree: PyTreeDef

    @property
    def result(self):
        """Avals in the tree of the results."""
        return tree_unflatten(self.tree, self.jaxpr.out_avals)


_traced = WeakKeyDictionary()       # user's function -> {key: Traced}
memos.append(_traced)               # jax.clear_caches empties these


def trace_function(fun, avals, in_tree):
    """Trace `fun`, or remember: an eager loop must not be traced and compiled at every call."""
    function, use = getattr(fun, "turn_of", (fun, None))
    key = use, in_tree.nodes, tuple(avals), rules_epoch(), config.trace_key(), get_axis_env()
    try:
        found = _traced.setdefault(function, {})
        traced = found.get(key)
    except TypeError:               # a function, or an argument's tree, that can't be a key
        return trace_anew(fun, avals, in_tree)
    if traced is None:
        traced = trace_anew(fun, avals, in_tree)
        if not any(isinstance(c, Tracer) for c in traced.consts):
            found[key] = traced
    return traced


def trace_anew(fun, avals, in_tree):
    flat = FlatFunction(fun, in_tree)
    jaxpr, consts = trace_to_jaxpr(flat, avals, fun_name(fun))
    return Traced(convert_constvars_jaxpr(jaxpr), consts, flat.out_tree)


def turn_of(function, use, turn):
    """`turn`, a small function made of a user's function for one use, and traced as such."""
    turn.__name__, turn.turn_of = fun_name(function), (function, use)
    return turn


def check_functions(name, **functions):
    for argument, f in functions.items():
        if not callable(f):
            raise TypeError(f"lax.{name}: {argument} should be a callable, got {f!r:.80} of type "
                            f"{type(f).__name__}")


def forwarded(jaxpr):
    """For each result the number of the argument that it is, or None."""
    position = {v: i for i, v in enumerate(jaxpr.invars)}
    return [None if type(v) is Literal else position.get(v) for v in jaxpr.outvars]


def avals_of(values):
    return [typeof(x) for x in values]


def as_operand(x):
    return x if isinstance(x, Tracer) else as_array(x)


def as_operands(values):
    return [as_operand(x) for x in values]


@memo_by_jaxpr
def with_results(jaxpr, kept):
    return jaxpr.replace(outvars=tracked(kept, jaxpr.outvars))


def same_type(a, b):
    """Equal up to weak types."""
    return a.shape == b.shape and a.dtype == b.dtype


# --- Choices --------------------------------------------------------------------------------------

_NOTHING = object()


def cond(pred, true_fun, false_fun, *operands, operand=_NOTHING):
    """`true_fun(*operands)` if the scalar `pred` holds, else `false_fun(*operands)`.

    Both are traced, whatever `pred` is, and must return values of equal trees, shapes and dtypes;
    TypeError otherwise. Only one of them is run, except if vmap gives each example a `pred` of its
    own.
    """
    if [callable(x) for x in (true_fun, false_fun, *operands)] == [False, True, False, True]:
        # The older form: cond(pred, true_operand, true_fun, false_operand, false_fun).
        x_true, f_true, x_false, f_false = true_fun, false_fun, *operands
        return cond(pred, lambda x, _: f_true(x), lambda _, x: f_false(x), x_true, x_false)
    check_functions("cond", true_fun=true_fun, false_fun=false_fun)
    operands = with_operand("cond", operands, operand)
    pred = as_predicate(pred)
    if disable_jit.value and is_concrete(pred):
        return true_fun(*operands) if pred else false_fun(*operands)
    index = convert_element_type(pred, np.int32)
    # Traced in the order of arguments, numbered the other way round: 0 is false.
    return choose("cond", index, (true_fun, false_fun), ("true_fun", "false_fun"), operands, -1)


def switch(index, branches, *operands, operand=_NOTHING):
    """`branches[index](*operands)`, the index moved into range; as `cond` for many branches.

    Raises TypeError for an index that is not an integer scalar, ValueError for no branches.
    """
    branches = tuple(branches)
    check_functions("switch", **{f"branches[{i}]": f for i, f in enumerate(branches)})
    operands = with_operand("switch", operands, operand)
    check_index(index)
    if not branches:
        raise ValueError("lax.switch: the sequence of branches is empty")
    if len(branches) == 1:
        return branches[0](*operands)
    last = len(branches) - 1
    if isinstance(index, int):
        index = np.int32(min(max(index, 0), last))
    index = clamp(np.int32(0), convert_element_type(index, np.int32), np.int32(last))
    if disable_jit.value and is_concrete(index):
        return branches[int(index)](*operands)
    names = tuple([f"branch {i}" for i in range(len(branches))])
    return choose("switch", index, branches, names, operands)


def platform_dependent(*args, default=None, **per_platform):
    """`per_platform["cpu"](*args)`, or else `default(*args)`: there is one platform, the CPU.

    Functions for others are not traced. NotImplementedError if there is none for this one.
    """
    if "gpu" in per_platform:
        raise ValueError("lax.platform_dependent: say 'cuda' or 'rocm' for 'gpu'")
    check_functions("platform_dependent", **per_platform)
    branch = per_platform.get("cpu", default)
    if branch is None:
        raise NotImplementedError("lax.platform_dependent: neither a function for 'cpu' nor a "
                                  "default")
    return branch(*args)


def with_operand(name, operands, operand):
    if operand is _NOTHING:
        return operands
    if operands:
        raise TypeError(f"lax.{name}: give operands by position, or the one by keyword `operand`, "
                        f"not both; got {operand=!r} and {operands!r}")
    return (operand,)


def is_concrete(x):
    return not isinstance(x, Tracer) or x.to_concrete_value() is not None


def as_predicate(pred):
    """`pred` as a bool scalar: a number counts as true unless it is zero."""
    if pred is None or isinstance(pred, (list, tuple, str)):
        raise TypeError(f"lax.cond: pred must be a scalar, got {pred!r:.80} of type "
                        f"{type(pred).__name__}")
    aval = typeof_or_error(pred, "lax.cond: pred must be a boolean or a number")
    if aval.shape:
        raise TypeError(f"lax.cond: pred must be a scalar, got shape {aval.shape}; for a choice "
                        "per element use jnp.where, for one per example vmap")
    if aval.dtype == np.bool_:
        return pred
    if aval.dtype.kind not in "iuf":
        raise TypeError(f"lax.cond: pred must be a boolean or a number, got {aval.dtype.name}")
    return ne(pred, const(pred, 0))


def check_index(index):
    aval = typeof_or_error(index, "lax.switch: the index must be an integer")
    if aval.shape:
        raise TypeError(f"lax.switch: the index must be a scalar, got shape {aval.shape}")
    if not dtypes.issubdtype(aval.dtype, np.integer):
        raise TypeError(f"lax.switch: the index must be an integer, got {aval.dtype.name}")


def typeof_or_error(x, wanted):
    try:
        return typeof(x)
    except TypeError as error:
        raise TypeError(f"{wanted}: {error}") from None


def choose(name, index, branches, names, operands, step=1):
    """Trace the branches, check that they agree, and apply cond_p to them, or to them reversed."""
    leaves, in_tree = tree_flatten(operands)
    avals = avals_of(leaves)
    traced = [trace_function(f, avals, in_tree) for f in branches]
    for other, label in list(zip(traced, names))[1:]:
        check_results_agree(name, names[0], traced[0], label, other)
    programs, consts = share_consts([t.jaxpr for t in traced], [t.consts for t in traced])
    values = [*consts, *leaves]
    # A result that is the same argument in every branch need not go through the primitive.
    same = [numbers[0] if len(set(numbers)) == 1 else None
            for numbers in zip(*[forwarded(p) for p in programs])]
    kept = tuple([i is None for i in same])
    programs = [with_results(p, kept) for p in programs[::step]]
    runs = any(kept) or any(p.effects for p in programs)
    outs = bind_cond(index, programs, values) if runs else []
    passed = as_operands([values[i] for i in same if i is not None])
    return tree_unflatten(traced[0].tree, merge(kept, outs, passed))


def check_results_agree(name, label, traced, other_label, other):
    """Raise TypeError unless two branches return values of equal trees, shapes and dtypes."""
    if traced.tree != other.tree:
        lines = tree_differences(f"the result of {label}", traced.result,
                                 f"that of {other_label}", other.result)
        raise TypeError(f"lax.{name}: the branches must return values of the same tree structure, "
                        f"but {label} returns {traced.tree} and {other_label} {other.tree}:{lines}"
                        f"\n{see('types-of-carries-and-branches')}")
    lines = type_differences(f"the result of {label}", traced.result,
                             f"that of {other_label}", other.jaxpr.out_avals)
    if lines:
        raise TypeError(f"lax.{name}: the branches must return values of the same types, but "
                        f"they differ:{lines}\n{see('types-of-carries-and-branches')}")


def tree_differences(what, tree, other_what, other_tree):
    return "".join([f"\n  * {what}{keystr(path)} is a {one}, {other_what} is a {another}; {why}"
                    for path, one, another, why in equality_errors(tree, other_tree)])


def type_differences(what, tree, other_what, other_avals):
    pairs = zip(tree_flatten_with_path(tree)[0], other_avals)
    return "".join([f"\n  * {what}{keystr(path)} is {aval.str_short()}, {other_what} is "
                    f"{other.str_short()}" for (path, aval), other in pairs
                    if not same_type(aval, other)])


# --- Carries --------------------------------------------------------------------------------------

def promoted(leaves, avals_out):
    """Starts of carries: weakly typed ones get the dtype that the body gives them."""
    return [convert_element_type(x, dtypes.result_type(x, out)) if typeof(x).weak_type
            and not same_type(typeof(x), out) else x for x, out in zip(leaves, avals_out)]


def trace_body(name, body, leaves, carry_tree, trace_with, carry_of):
    """(traced body, starts of carries) where the carry comes out as it goes in; else TypeError.

    trace_with(carry avals) -> Traced; carry_of(Traced) -> (tree of the carry that comes out,
    avals). A start that is weakly typed, such as a Python number, adapts: then the body is traced
    again.
    """
    traced = trace_with(avals_of(leaves))
    tree, avals = carry_of(traced)
    if len(avals) == len(leaves):
        started = promoted(leaves, avals)
        if any(x is not y for x, y in zip(started, leaves)):
            leaves, traced = started, trace_with(avals_of(started))
            tree, avals = carry_of(traced)
    check_carry(name, body, carry_tree, avals_of(leaves), tree, avals)
    return traced, leaves


def check_carry(name, body, tree_in, avals_in, tree_out, avals_out):
    """Raise TypeError, naming leaves, unless the carry comes out as it goes in."""
    carry, carry_out = tree_unflatten(tree_in, avals_in), tree_unflatten(tree_out, avals_out)
    if counts(body):
        name, carry, carry_out = "fori_loop", carry[-1], carry_out[-1]
    tree_in, tree_out = tree_structure(carry), tree_structure(carry_out)
    what, other = carry_name(body), "what comes out"
    if tree_in != tree_out:
        lines = tree_differences(what, carry, other, carry_out)
        raise TypeError(f"lax.{name}: the body must return a carry of the tree structure that it "
                        f"gets, but it gets {tree_in} and returns {tree_out}:{lines}\n"
                        + see("types-of-carries-and-branches"))
    if lines := type_differences(what, carry, other, tree_flatten(carry_out)[0]):
        raise TypeError(f"lax.{name}: the body must return a carry of the types that it gets, but "
                        f"they differ:{lines}\nGive the initial value the type that the body "
                        "returns, or convert in the body with .astype\n"
                        + see("types-of-carries-and-branches"))


def counts(body):
    """Whether this is a turn of fori_loop, where a counter goes round with the user's value."""
    return getattr(body, "turn_of", (None, ""))[1].startswith("fori")


def carry_name(body):
    names = positional_names(body.turn_of[0])[1:] if counts(body) else positional_names(body)
    return f"the carry {names[0]}" if names else "the carry"


# --- while_loop -----------------------------------------------------------------------------------

def while_loop(cond_fun, body_fun, init_val):
    """The value after `val = body_fun(val)` as long as `cond_fun(val)` holds, from `init_val`.

    Values are pytrees whose structure, shapes and dtypes body_fun keeps (TypeError otherwise);
    cond_fun returns a bool scalar. Forward mode and vmap work; reverse mode can't.
    """
    check_functions("while_loop", cond_fun=cond_fun, body_fun=body_fun)
    if disable_jit.value:
        try:
            return while_in_python(cond_fun, body_fun, init_val)
        except ConcretizationTypeError:
            pass                            # traced: only the primitive can say what this means
    leaves, tree = tree_flatten(init_val)
    in_tree = tree_structure((init_val,))
    body, leaves = trace_body(
        "while_loop", body_fun, leaves, tree,
        lambda avals: trace_function(body_fun, avals, in_tree),
        lambda traced: (traced.tree, traced.jaxpr.out_avals))
    test = trace_function(cond_fun, avals_of(leaves), in_tree)
    check_condition(test)
    return tree_unflatten(body.tree, run_while(test, body, leaves))


def while_in_python(cond_fun, body_fun, value):
    value = tree_map(as_operand, value)
    while cond_fun(value):
        value = tree_map(as_operand, body_fun(value))
    return value


def check_condition(test):
    avals = test.jaxpr.out_avals
    if not treedef_is_leaf(test.tree) or len(avals) != 1:
        raise TypeError(f"lax.while_loop: cond_fun must return a bool scalar, got {test.tree}")
    if avals[0].shape or avals[0].dtype != np.bool_:
        raise TypeError("lax.while_loop: cond_fun must return a bool scalar, got "
                        f"{avals[0].str_short()}")


def run_while(test, body, leaves):
    """Apply while_p; a carry that the body hands on and the condition ignores is a constant."""
    n = len(body.consts)
    _, tested = split_list(inputs_read(test.jaxpr), [len(test.consts)])
    fixed = tuple([source == n + i and not tested[i]
                   for i, source in enumerate(forwarded(body.jaxpr))])
    moving = tuple([not flag for flag in fixed])
    condition = move_to_consts(test.jaxpr, len(test.consts), fixed, (True,), False)
    program = move_to_consts(body.jaxpr, n, fixed, moving)
    constants = tracked(fixed, leaves)
    outs = bind_while(condition, test.consts, program, [*constants, *body.consts],
                      tracked(moving, leaves))
    return merge(fixed, as_operands(constants), outs)


@memo_by_jaxpr
def move_to_consts(jaxpr, n_consts, fixed, kept, keep=True):
    """The program with the carries flagged in `fixed` in front of its constants, or left out.

    Of its results, those flagged in `kept` are left.
    """
    consts, args = split_list(jaxpr.invars, [n_consts])
    carries, rows = split_list(args, [len(fixed)])
    first = tracked(fixed, carries) if keep else []
    return jaxpr.replace(invars=[*first, *consts, *untracked(fixed, carries), *rows],
                         outvars=tracked(kept, jaxpr.outvars))


# --- scan -----------------------------------------------------------------------------------------

def scan(f, init, xs=None, length=None, reverse=False, unroll=1, _split_transpose=False):
    """Carry a value through calls `carry, y = f(carry, x)`, x being the rows of `xs`, in order.

    Returns (carry, ys), the ys stacked along a new first axis. `init`, `xs` and the ys are pytrees;
    the carry keeps its structure, shapes and dtypes (TypeError otherwise). `length` is needed if
    `xs` is None; ValueError if it and the first axes in `xs` differ. With `reverse` the last row
    comes first. `unroll` turns stand in one turn of the loop.
    """
    check_functions("scan", f=f)
    leaves, tree = tree_flatten(init)
    rows, rows_tree = tree_flatten(xs)
    length = scan_length(rows, length)
    if disable_jit.value:
        return scan_in_python(f, init, rows, rows_tree, length, reverse)
    unroll = turns_at_once(unroll, length)
    row_avals = [row_aval(typeof(x)) for x in rows]
    in_tree = tree_structure((init, xs))
    body, leaves = trace_body(
        "scan", f, leaves, tree,
        lambda avals: trace_function(f, [*avals, *row_avals], in_tree), carry_of_pair)
    outs = run_scan(body, leaves, rows, length, bool(reverse), unroll)
    return tree_unflatten(body.tree, outs)


def row_aval(aval):
    return aval.update(shape=aval.shape[1:])


def scan_length(rows, length):
    """The number of turns; ValueError if rows and `length` don't agree on it."""
    for x in rows:
        if not typeof(x).shape:
            raise ValueError(f"lax.scan: xs must have a leading axis to scan over, got {x!r:.80}")
    sizes = [typeof(x).shape[0] for x in rows]
    if length is not None:
        length = concrete_or_error(int, length, "The length of a scan must be known while tracing; "
                                   "use lax.while_loop or lax.fori_loop if it is not.")
        if any(n != length for n in sizes):
            raise ValueError(f"lax.scan: length is {length}, but the leading axes of xs have sizes "
                             f"{sizes}")
        return length
    if not sizes:
        raise ValueError("lax.scan: there is nothing to scan over: give xs or a length")
    if len(set(sizes)) > 1:
        raise ValueError(f"lax.scan: the leading axes of xs have different sizes, {sizes}")
    return sizes[0]


def turns_at_once(unroll, length):
    if isinstance(unroll, bool):
        return max(length, 1) if unroll else 1
    unroll = concrete_or_error(lambda n: n, unroll, "unroll must be a Python int or bool")
    is_integer = isinstance(unroll, (int, np.integer))
    if not is_integer or unroll < 0:
        raise (ValueError if is_integer else TypeError)(
            f"lax.scan: unroll must be a bool or an int not below 0, got {unroll!r}")
    return int(unroll)


def scan_in_python(f, carry, rows, rows_tree, length, reverse):
    if length == 0:
        raise ValueError("lax.scan: with disable_jit the types of no turns are not known")
    ys = []
    for i in reversed(range(length)) if reverse else range(length):
        row = tree_unflatten(rows_tree, [index_in_dim(x, i, keepdims=False) for x in rows])
        carry, y = f(carry, row)
        ys.append(y)
    return carry, tree_map(lambda *parts: stack(parts), *(ys[::-1] if reverse else ys))


def stack(parts):
    return concatenate([reshape(x, (1, *typeof(x).shape)) for x in parts], 0)


def carry_of_pair(traced):
    """Tree and avals of the carry in the pair that the body of a scan returns."""
    pair = traced.result
    if type(pair) is not tuple and type(pair) is not list or len(pair) != 2:
        raise TypeError(f"lax.scan: f must return a pair (carry, y), got {traced.tree}")
    avals, tree = tree_flatten(pair[0])
    return tree, avals


def run_scan(body, leaves, rows, length, reverse, unroll):
    """Apply scan_p; carries that the body hands on become constants, rows that it hands on ys."""
    n, n_carries = len(body.consts), len(leaves)
    carry_from, y_from = split_list(forwarded(body.jaxpr), [n_carries])
    fixed = tuple([source == n + i for i, source in enumerate(carry_from)])
    first_row = n + n_carries
    row_of = [None if s is None or s < first_row else s - first_row for s in y_from]
    moving, made = [not flag for flag in fixed], [i is None for i in row_of]
    program = move_to_consts(body.jaxpr, n, fixed, (*moving, *made))
    constants = tracked(fixed, leaves)
    outs = bind_scan(program, [*constants, *body.consts], tracked(moving, leaves), rows, length,
                     reverse, unroll)
    carries, ys = split_list(outs, [sum(moving)])
    handed_on = as_operands([rows[i] for i in row_of if i is not None])
    return [*merge(fixed, as_operands(constants), carries), *merge(made, ys, handed_on)]


# --- fori_loop ------------------------------------------------------------------------------------

def fori_loop(lower, upper, body_fun, init_val, *, unroll=None):
    """The value after `val = body_fun(i, val)` for i = lower … upper - 1, from `init_val`.

    With bounds that are known while tracing this is a scan, and reverse mode works; otherwise a
    while_loop. Bounds have one integer type. `unroll` as in scan, for known bounds only.
    TypeError for other bounds, ValueError for an `unroll` that can't be.
    """
    check_functions("fori_loop", body_fun=body_fun)
    dtype = dtype_of_bounds(lower, upper)
    if is_concrete(lower) and is_concrete(upper):
        first, length = int(lower), max(int(upper) - int(lower), 0)
        if disable_jit.value and length == 0:
            return init_val
        turn = turn_of(body_fun, "fori, scan",
                       lambda carry, _: ((add_one(carry[0]), body_fun(*carry)), None))
        (_, value), _ = scan(turn, (first, init_val), None, length, unroll=unroll or False)
        return value
    if unroll not in (None, False, 1):
        raise ValueError("lax.fori_loop: unroll is for bounds that are known while tracing")
    bounds = [x if typeof(x).dtype == dtype else convert_element_type(x, dtype)
              for x in (lower, upper)]
    turn = turn_of(body_fun, "fori, while", lambda carry: (
        add_one(carry[0]), carry[1], body_fun(carry[0], carry[2])))
    return while_loop(is_below, turn, (*bounds, init_val))[2]


def is_below(carry):
    return lt(carry[0], carry[1])


def add_one(i):
    return add(i, const(i, 1))


def dtype_of_bounds(lower, upper):
    """The one dtype of both bounds; a Python number takes that of the other."""
    low, high = typeof(lower), typeof(upper)
    if low.dtype == high.dtype:
        return low.dtype
    signed = all([dtypes.issubdtype(a.dtype, np.signedinteger) for a in (low, high)])
    if signed and low.weak_type != high.weak_type:
        return high.dtype if low.weak_type else low.dtype
    raise TypeError("lax.fori_loop: lower and upper must have equal types, got "
                    f"{low.dtype.name} and {high.dtype.name}")


# --- map and associative_scan ---------------------------------------------------------------------

def map(f, xs, *, batch_size=None):
    """The results of f for each row of the pytree `xs`, stacked: a loop, where vmap is a batch.

    With `batch_size`, that many rows at once by vmap, in a loop; 0 means all rows, ValueError if
    it is negative.
    """
    check_functions("map", f=f)
    leaves, tree = tree_flatten(xs)
    n = scan_length(leaves, None) if leaves else 0
    if batch_size is None:
        return scan(turn_of(f, "map", lambda _, x: ((), f(x))), (), xs)[1]
    if batch_size < 0:
        raise ValueError(f"lax.map: batch_size must not be negative, got {batch_size}")
    whole = n // batch_size * batch_size if batch_size else 0
    if not whole:
        return vmap(f)(xs)
    parts = [in_batches(x, whole, batch_size) for x in leaves]
    batches, rest = [tree_unflatten(tree, part) for part in zip(*parts)]
    turn = turn_of(f, "vmap", lambda _, x: ((), vmap(f)(x)))
    ys = scan(turn, (), batches)[1]
    if whole == n:
        return tree_map(without_batches, ys)
    return tree_map(lambda y, z: concatenate([without_batches(y), z], 0), ys, vmap(f)(rest))


def in_batches(x, whole, size):
    """The first `whole` rows of x as batches, and the rows that are left, None for none."""
    n, *shape = typeof(x).shape
    rows = lambda start, stop: slice(x, (start, *[0] * len(shape)), (stop, *shape))
    batches = reshape(rows(0, whole) if whole < n else x, (whole // size, size, *shape))
    return batches, rows(whole, n) if whole < n else None


def without_batches(y):
    n, size, *shape = typeof(y).shape
    return reshape(y, (n * size, *shape))


def associative_scan(fn, elems, reverse=False, axis=0):
    """All partial results of an associative `fn` along an axis: x₀, fn(x₀, x₁), fn(fn(x₀, x₁), x₂).

    `elems` is a pytree of arrays of one length along `axis`; fn combines two such pytrees
    elementwise along it. Takes a number of steps that grows with the logarithm of the length. With
    `reverse`, partial results start from the end. ValueError if lengths differ. Source:
    G. Blelloch, "Prefix sums and their applications" (1990).
    """
    check_functions("associative_scan", fn=fn)
    leaves, tree = tree_flatten(elems)
    if not leaves:
        return elems
    leaves = as_operands(leaves)
    axis = canonicalize_axis(axis, typeof(leaves[0]).ndim)
    sizes = [typeof(x).shape[axis] for x in leaves]
    if len(set(sizes)) > 1:
        raise ValueError("lax.associative_scan: all arrays must have one size along axis "
                         f"{axis}, got {sizes}")

    def combine(xs, ys):
        return tree_flatten(fn(tree_unflatten(tree, xs), tree_unflatten(tree, ys)))[0]
    if reverse:
        leaves = [rev(x, (axis,)) for x in leaves]
    partials = partial_results(combine, leaves, axis)
    if reverse:
        partials = [rev(x, (axis,)) for x in partials]
    return tree_unflatten(tree, partials)


def partial_results(combine, xs, axis):
    """Combine neighbours; their partial results are every other one; the rest is a step more."""
    n = typeof(xs[0]).shape[axis]
    if n < 2:
        return xs
    part = partial(slice_in_dim, axis=axis)
    pairs = combine([part(x, 0, n - 1, 2) for x in xs], [part(x, 1, n, 2) for x in xs])
    odd = partial_results(combine, pairs, axis)
    before = [part(x, 0, -1) for x in odd] if n % 2 == 0 else odd
    even = combine(before, [part(x, 2, n, 2) for x in xs])
    even = [concatenate([part(x, 0, 1), y], axis) for x, y in zip(xs, even)]
    return [interleave(x, y, axis) for x, y in zip(even, odd)]


def interleave(xs, ys, axis):
    """x₀, y₀, x₁, y₁, …: as many of both, or one x more."""
    n, m = typeof(xs).shape[axis], typeof(ys).shape[axis]
    zero = const(xs, 0)
    spread = [pad(x, zero, [(first, last, 1) if i == axis else (0, 0, 0)
                            for i in range(typeof(x).ndim)])
              for x, first, last in ((xs, 0, int(n == m)), (ys, 1, int(n != m)))]
    return (bitwise_or if typeof(xs).dtype == np.bool_ else add)(*spread)
