# Exported from notebooks/16_checkpoint.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: checkpoint as users call it. Home: 16_checkpoint. In JAX: jax/_src/ad_checkpoint.py.

`checkpoint` marks a function whose intermediate values are computed again in the backward pass; a
policy says which of them are saved all the same; `print_saved_residuals` shows what is.
"""

import inspect
from dataclasses import dataclass
from functools import wraps
from types import SimpleNamespace

from minijax.api import check_callable
from minijax.avals import typeof
from minijax.config import config
from minijax.core import Tracer, rules_epoch
from minijax.dispatch import chosen_positions, programs_of
from minijax.errors import ConcretizationTypeError
from minijax.flatten import FlatFunction, as_index_tuple, fun_name, normalise_argnums
from minijax.higher_order.checkpoint import (
    Offloadable, Recompute, Saveable, checkpoint_p, name_p, nothing_saveable, used_constants,
)
from minijax.interpreters.partial_eval import linearize_flat
from minijax.interpreters.staging import trace_to_jaxpr
from minijax.jaxpr import Literal, convert_constvars_jaxpr
from minijax.primitives.dot import dot_general_p
from minijax.tracebacks import api_boundary
from minijax.tree_util import (
    broadcast_prefix, keystr, tree_flatten, tree_flatten_with_path, tree_map, tree_unflatten,
)

__all__ = [
    "everything_saveable", "DotsSaveable", "dots_saveable", "dots_with_no_batch_dims_saveable",
    "SaveOnlyTheseNames", "SaveAnyNamesButThese", "save_only_these_names",
    "save_any_names_but_these", "save_anything_except_these_names", "save_from_both_policies",
    "offload_dot_with_no_batch_dims", "save_and_offload_only_these_names", "checkpoint_policies",
    "NOT_GIVEN", "checkpoint", "remat", "cse_flags", "traced_once", "trace_function",
    "checkpoint_name", "saved_residuals", "sources_of", "place", "origin", "argument_names",
    "print_saved_residuals",
]


# --- Policies -------------------------------------------------------------------------------------

def everything_saveable(primitive, *avals, **params):
    """Save what the backward pass needs, as without `checkpoint`."""
    return True


@dataclass(frozen=True)
class DotsSaveable:
    """Save results of `dot_general`, dear to compute: all, or those without batch axes."""
    only_if_no_batch_dims: bool

    def __call__(self, primitive, *avals, **params):
        if primitive is not dot_general_p:
            return False
        _, (lhs_batch, rhs_batch) = params["dimension_numbers"]
        return not (self.only_if_no_batch_dims and (lhs_batch or rhs_batch))


dots_saveable = DotsSaveable(False)
dots_with_no_batch_dims_saveable = DotsSaveable(True)


@dataclass(frozen=True)
class SaveOnlyTheseNames:
    """Save values that `checkpoint_name` gave one of these names."""
    saveable_names: frozenset

    def __call__(self, primitive, *avals, **params):
        return primitive is name_p and params["name"] in self.saveable_names


@dataclass(frozen=True)
class SaveAnyNamesButThese:
    """Save values that have any other name."""
    names: frozenset

    def __call__(self, primitive, *avals, **params):
        return primitive is name_p and params["name"] not in self.names


def save_only_these_names(*names_which_can_be_saved):
    """Save named values only, and only those of these names."""
    return SaveOnlyTheseNames(frozenset(names_which_can_be_saved))


def save_any_names_but_these(*names_not_to_save):
    """Save named values only, except those of these names."""
    return SaveAnyNamesButThese(frozenset(names_not_to_save))


def save_anything_except_these_names(*names_not_to_save):
    """Save everything. As in JAX, a value is there before its name, so the names hide nothing."""
    return lambda primitive, *avals, **params: True


def save_from_both_policies(policy_1, policy_2):
    """Save what either policy saves. ValueError if one of them answers anything but a bool."""
    def policy(primitive, *avals, **params):
        answers = [p(primitive, *avals, **params) for p in (policy_1, policy_2)]
        if not all(isinstance(answer, bool) for answer in answers):
            raise ValueError("save_from_both_policies needs policies that return True or False; "
                             f"got {answers[0]!r} and {answers[1]!r}")
        return any(answers)
    return policy


def offload_dot_with_no_batch_dims(offload_src, offload_dst):
    """Keep what `dots_with_no_batch_dims_saveable` saves in another memory: here, where it is."""
    def policy(primitive, *avals, **params):
        dear = dots_with_no_batch_dims_saveable(primitive, *avals, **params)
        return Offloadable(offload_src, offload_dst) if dear else Recompute
    return policy


def save_and_offload_only_these_names(*, names_which_can_be_saved, names_which_can_be_offloaded,
                                      offload_src, offload_dst):
    """Save named values, some in another memory: here, where they are.

    ValueError for a name in both lists.
    """
    saved, offloaded = set(names_which_can_be_saved), set(names_which_can_be_offloaded)
    if both := saved & offloaded:
        raise ValueError("names_which_can_be_saved and names_which_can_be_offloaded must not have "
                         f"names in common, got {sorted(both)} in both")

    def policy(primitive, *avals, **params):
        name = params["name"] if primitive is name_p else None
        if name in offloaded:
            return Offloadable(offload_src, offload_dst)
        return Saveable if name in saved else Recompute
    return policy


checkpoint_policies = SimpleNamespace(
    everything_saveable=everything_saveable,
    nothing_saveable=nothing_saveable,
    dots_saveable=dots_saveable,
    checkpoint_dots=dots_saveable,
    dots_with_no_batch_dims_saveable=dots_with_no_batch_dims_saveable,
    checkpoint_dots_with_no_batch_dims=dots_with_no_batch_dims_saveable,
    save_anything_except_these_names=save_anything_except_these_names,
    save_any_names_but_these=save_any_names_but_these,
    save_only_these_names=save_only_these_names,
    save_from_both_policies=save_from_both_policies,
    offload_dot_with_no_batch_dims=offload_dot_with_no_batch_dims,
    save_and_offload_only_these_names=save_and_offload_only_these_names)


# --- checkpoint -----------------------------------------------------------------------------------

NOT_GIVEN = object()


def checkpoint(fun, *, prevent_cse=True, policy=None, static_argnums=(), static_argnames=(),
               concrete=NOT_GIVEN):
    """`fun`, whose intermediate values are computed again when it is differentiated.

    Of its arguments and results nothing changes. `policy(primitive, *avals, **params)` says which
    results may be saved (see `checkpoint_policies`; none, by default). Arguments in
    `static_argnums` or `static_argnames` are Python values. With `prevent_cse` (a bool, or a tuple
    that is a prefix of the arguments) the compiler is kept from reusing what the forward pass
    computed; inside a loop that is not needed. TypeError for another `prevent_cse`, and when the
    function is differentiated for a policy that answers something else than whether to save.
    """
    if concrete is not NOT_GIVEN:
        raise NotImplementedError("the option `concrete` of checkpoint is no more, as in JAX: name "
                                  "the arguments that Python code branches on in static_argnums")
    check_callable(fun)
    prevent_cse = tuple(prevent_cse) if isinstance(prevent_cse, list) else prevent_cse
    if not isinstance(prevent_cse, (tuple, bool)):
        raise TypeError("prevent_cse must be a bool or tuple of bools, got "
                        f"{prevent_cse!r} of type {type(prevent_cse).__name__}")
    nums = as_index_tuple("static_argnums of checkpoint", static_argnums)
    by_name, names = chosen_positions("static", fun, (), static_argnames)
    programs = programs_of(fun, ("checkpoint",))

    @api_boundary
    @wraps(fun, updated=())
    def checkpointed(*args, **kwargs):
        chosen = normalise_argnums("static_argnums of checkpoint", nums, len(args))
        static = {i: x for i, x in enumerate(args) if i in chosen or i in by_name}
        static |= {k: x for k, x in kwargs.items() if k in names}
        dynamic = tuple([x for i, x in enumerate(args) if i not in static])
        kwargs = {k: x for k, x in kwargs.items() if k not in static}
        leaves, in_tree = tree_flatten((dynamic, kwargs))
        jaxpr, consts, out_tree = traced_once(programs, fun, static, len(args), leaves, in_tree)
        cse = prevent_cse
        if isinstance(cse, tuple):
            cse = (False,) * len(consts) + cse_flags(cse, dynamic, kwargs)
        outs = checkpoint_p.bind(*consts, *leaves, jaxpr=jaxpr, prevent_cse=cse,
                                 differentiated=False, policy=policy)
        return tree_unflatten(out_tree, outs)
    return checkpointed


def remat(fun, *, prevent_cse=True, policy=None, static_argnums=(), concrete=NOT_GIVEN):
    """Another name of `checkpoint`."""
    return checkpoint(fun, prevent_cse=prevent_cse, policy=policy, static_argnums=static_argnums,
                      concrete=concrete)


def cse_flags(prevent_cse, args, kwargs):
    tree = (args, kwargs) if kwargs else args
    try:
        return tuple(broadcast_prefix(prevent_cse, tree))
    except ValueError as error:
        raise ValueError(f"prevent_cse must be a bool or a prefix of the arguments, got "
                         f"{prevent_cse!r}: {error}") from None


def traced_once(programs, fun, static, n_args, leaves, in_tree):
    """The program of fun, its constants and output tree; kept unless it closes over tracers."""
    avals = [typeof(x) for x in leaves]
    try:
        key = (in_tree, tuple(avals), tuple((i, type(x), x) for i, x in static.items()),
               rules_epoch(), config.trace_key())
        if key in programs:
            return programs[key]
    except TypeError:                # a static value that can't be hashed: traced each time
        key = None
    jaxpr, consts, out_tree = program = trace_function(fun, static, n_args, avals, in_tree)
    if key is not None and not any(isinstance(c, Tracer) for c in consts):
        programs[key] = program
    return program


def trace_function(fun, static, n_args, avals, in_tree):
    named = {k: x for k, x in static.items() if isinstance(k, str)}

    def call(*dynamic, **kwargs):
        rest = iter(dynamic)
        args = [static[i] if i in static else next(rest) for i in range(n_args)]
        return fun(*args, **kwargs, **named)

    flat = FlatFunction(call, in_tree, with_kwargs=True)
    try:
        jaxpr, consts = trace_to_jaxpr(flat, avals, fun_name(fun))
    except ConcretizationTypeError as error:
        error.add_note(f"{fun_name(fun)} was traced by checkpoint: checkpoint(…, static_argnums=…) "
                       "or static_argnames=… makes arguments Python values")
        raise
    return convert_constvars_jaxpr(jaxpr), consts, flat.out_tree


def checkpoint_name(x, name):
    """x, known by this name to checkpoint policies; x may be a pytree."""
    return tree_map(lambda leaf: name_p.bind(leaf, name=name), x)


# --- What is saved --------------------------------------------------------------------------------

def saved_residuals(f, *args, **kwargs):
    """[(aval, where from)] of what linearizing f at these arguments keeps for the derivative."""
    leaves, in_tree = tree_flatten((args, kwargs))
    literals = []

    def residuals(*leaves):
        flat = FlatFunction(f, in_tree, with_kwargs=True)
        _, linear, consts, _ = linearize_flat(flat, leaves, fun_name(f))
        linear, consts = used_constants(linear, consts)
        literals.extend(a for eqn in linear.eqns for a in eqn.invars if isinstance(a, Literal))
        return consts

    jaxpr, _ = trace_to_jaxpr(residuals, [typeof(x) for x in leaves], fun_name(f))
    return [(a.aval, "from a literal") for a in literals] + sources_of(
        jaxpr, argument_names(f, args, kwargs))


def sources_of(jaxpr, names):
    """Where the results of a program come from, in its order."""
    wanted = set(jaxpr.outvars)
    found = [(v.aval, "from a constant") for v in jaxpr.constvars if v in wanted]
    found += [(v.aval, f"from the argument {name}")
              for v, name in zip(jaxpr.invars, names) if v in wanted]
    return found + [(v.aval, f"{origin(eqn)} from {place(eqn.source_info)}")
                    for eqn in jaxpr.eqns for v in eqn.outvars if v in wanted]


def place(source):
    """file:line:column (function)"""
    if source is None:
        return "unknown"
    line, column = source.position
    return f"{source.code.co_filename}:{line}:{column} ({source.code.co_qualname})"


def origin(eqn):
    if eqn.primitive is name_p:
        return f"named '{eqn.params['name']}'"
    if eqn.primitive.name == "jit":
        return f"output of jitted function '{eqn.params['name']}'"
    return f"output of {eqn.primitive.name}"


def argument_names(f, args, kwargs):
    """A name a leaf of the arguments: x, params['w'], rest[0]."""
    try:
        given = inspect.signature(f).bind(*args, **kwargs).arguments
    except (TypeError, ValueError):
        given = {"args": args, "kwargs": kwargs}
    return [name + keystr(path) for name, tree in given.items()
            for path, _ in tree_flatten_with_path(tree)[0]]


def print_saved_residuals(f, *args, **kwargs):
    """Print the type and origin of each residual that the derivative of f keeps."""
    for aval, source in saved_residuals(f, *args, **kwargs):
        print(aval.str_short(), source)
