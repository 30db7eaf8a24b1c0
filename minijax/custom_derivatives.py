# Exported from notebooks/15_custom_rules.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: rules as users give them. Home: 15_custom_rules. In JAX: jax/custom_derivatives.py.

The decorators resolve arguments by the signature, flatten pytrees both ways and check what rules
return; the primitives behind them see flat functions only.
"""

import inspect
from functools import partial, reduce, update_wrapper
from typing import Any, NamedTuple

import numpy as np

from minijax import dtypes
from minijax.api import check_callable
from minijax.array import as_array
from minijax.avals import typeof
from minijax.core import Tracer, UnexpectedTracerError
from minijax.flatten import FlatFunction, fun_name
from minijax.higher_order.custom_jvp import custom_jvp_call_p
from minijax.higher_order.custom_vjp import custom_vjp_call_p
from minijax.higher_order.linear_call import linear_call_p
from minijax.higher_order.programs import closed_program, tracked
from minijax.interpreters.batching import BatchTracer
from minijax.interpreters.jvp import symbolic_if_float0
from minijax.interpreters.staging import trace_to_jaxpr
from minijax.jaxpr import ClosedJaxpr, Var, eval_jaxpr
from minijax.rules import Zero, add_tangents, bind, instantiate_zeros, is_zero
from minijax.tracebacks import api_boundary
from minijax.tree_util import (
    broadcast_prefix, keystr, register_pytree_node_class, tree_flatten, tree_flatten_with_path,
    tree_leaves, tree_map, tree_structure, tree_unflatten,
)

__all__ = [
    "SymbolicZero", "zero_from_primal", "shown_to_rule", "value_for_rule", "given_by_rule",
    "aval_of", "same_type", "CustomFunction", "positions_of", "resolve_kwargs", "FlatCall",
    "flat_call", "shown_types", "custom_jvp", "without_tangent", "flat_jvp_rule", "check_tangents",
    "custom_vjp", "CustomVJPPrimal", "is_custom_vjp_primal", "custom_vjp_primal_tree_values",
    "refuse_tracers", "flat_fwd_rule", "flat_bwd_rule", "leaves_like", "cotangent_of",
    "custom_gradient", "output_and_vjp", "Pullback", "closure_convert", "may_be_perturbed",
    "linear_call", "avals_of", "with_constants_of_both",
]


# --- Zeros that rules see -------------------------------------------------------------------------

class SymbolicZero:
    """A tangent or cotangent that is zero by construction, as rules with symbolic_zeros see it."""

    def __init__(self, aval):
        self.aval = aval

    shape = property(lambda self: self.aval.shape)
    dtype = property(lambda self: self.aval.dtype)
    ndim = property(lambda self: self.aval.ndim)
    size = property(lambda self: self.aval.size)

    @staticmethod
    def from_primal_value(val):
        return SymbolicZero(typeof(val).to_tangent_aval())

    def __repr__(self):
        return "SymbolicZero"


def zero_from_primal(val, symbolic_zeros=False):
    """The zero tangent of each leaf: an array, or a SymbolicZero."""
    make = SymbolicZero if symbolic_zeros else lambda aval: instantiate_zeros(Zero(aval))
    return tree_map(lambda x: make(typeof(x).to_tangent_aval()), val)


def shown_to_rule(t, symbolic_zeros):
    if not is_zero(t):
        return value_for_rule(t)
    return SymbolicZero(t.aval) if symbolic_zeros else instantiate_zeros(t)


def value_for_rule(x):
    """`x`; an Array where a program has the scalar itself in its text."""
    return as_array(x) if isinstance(x, np.generic) and x.dtype != dtypes.float0 else x


def given_by_rule(t):
    return Zero(t.aval) if isinstance(t, SymbolicZero) else symbolic_if_float0(t)


def aval_of(x):
    return x.aval if isinstance(x, (Zero, SymbolicZero)) else typeof(x)


def same_type(a, b):
    return (a.shape, a.dtype) == (b.shape, b.dtype)


# --- What the decorators share --------------------------------------------------------------------

class CustomFunction:
    """A function to which rules are attached; calling it resolves keywords and defaults."""

    kind = None                          # the name of the decorator

    def __init__(self, fun, nondiff_argnums=(), nondiff_argnames=()):
        update_wrapper(self, fun)
        self.fun = fun
        named = positions_of(fun, nondiff_argnames)
        self.nondiff_argnums = tuple(sorted({*nondiff_argnums, *named}))

    def __getattr__(self, name):
        if name.startswith("def"):       # def_vmap of a function that is decorated twice
            return getattr(self.fun, name)
        raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")

    def resolve(self, args, kwargs):
        """All arguments by position; TypeError if the signature doesn't allow it."""
        try:
            return resolve_kwargs(self.fun, args, kwargs)
        except TypeError as error:
            raise TypeError(f"The input arguments to the {self.kind}-decorated function "
                            f"{fun_name(self.fun)} could not be resolved to positional-only "
                            f"arguments: {error}") from error


def positions_of(fun, names):
    parameters = inspect.signature(fun).parameters if names else ()
    return [i for i, name in enumerate(parameters) if name in names]


def resolve_kwargs(fun, args, kwargs):
    """Positional arguments for a call of fun, by its signature and with its defaults."""
    if isinstance(fun, partial):         # its signature hides which arguments are there already
        def fun(*args, **kwargs):
            return None
    bound = inspect.signature(fun).bind(*args, **kwargs)
    bound.apply_defaults()
    if given := [name for name in bound.kwargs if name in kwargs]:
        raise TypeError(f"keyword arguments {', '.join(given)} have no position")
    return bound.args


class FlatCall:
    """One call of a custom function, as a flat function of its differentiable arguments.

    Programs keep it, so it holds none of them itself.
    """

    def __init__(self, custom, args, in_tree):
        self.custom, self.__name__ = custom, fun_name(custom.fun)
        self.num_args, self.in_tree = len(args), in_tree
        self.static = {i: args[i] for i in custom.nondiff_argnums}
        self.out_tree = self.out_avals = None        # known once the function or its rule has run

    def all_arguments(self, leaves):
        some = iter(tree_unflatten(self.in_tree, map(value_for_rule, leaves)))
        return [self.static[i] if i in self.static else next(some) for i in range(self.num_args)]

    def __call__(self, *leaves):
        out = self.custom.fun(*self.all_arguments(leaves))
        outs, self.out_tree = tree_flatten(out)
        self.out_avals = [typeof(x) for x in outs]
        return outs

    def outputs_of_rule(self, rule, outs, out_tree):
        """Learn the outputs' types from a rule; TypeError if the function has shown others."""
        avals = [typeof(x) for x in outs]
        if self.out_tree is None:
            self.out_tree, self.out_avals = out_tree, avals
        elif out_tree != self.out_tree or not all(map(same_type, avals, self.out_avals)):
            raise TypeError(
                f"Custom {rule} for function {self.__name__} must produce a pair whose first "
                f"element is the output of {self.__name__}, of the same structure and types:\n"
                f"    {shown_types(out_tree, avals)}\nis what the rule produced, while "
                f"{self.__name__} produced\n    {shown_types(self.out_tree, self.out_avals)}")

    def pair_of_rule(self, rule, pair, second):
        if not (isinstance(pair, (tuple, list)) and len(pair) == 2):
            raise TypeError(f"Custom {rule} for function {self.__name__} must produce a pair (list "
                            f"or tuple of length two): the output and {second}; got {pair}")
        return pair


def flat_call(custom, args):
    """(the call of custom(*args), the leaves of its differentiable arguments)"""
    some = tuple([x for i, x in enumerate(args) if i not in custom.nondiff_argnums])
    leaves, in_tree = tree_flatten(some)
    return FlatCall(custom, args, in_tree), leaves


def shown_types(tree, avals):
    return str(tree_unflatten(tree, [a.str_short() for a in avals])).replace("'", "")


# --- custom_jvp -----------------------------------------------------------------------------------

class custom_jvp(CustomFunction):
    """Decorate a function that will bring its own rule for tangents; see `defjvp`.

    Arguments in `nondiff_argnums` or `nondiff_argnames` are not differentiated and come first in
    the rule. Calling the function before it has a rule raises AttributeError.
    """

    kind = "custom_jvp"

    def __init__(self, fun, nondiff_argnums=(), nondiff_argnames=()):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.jvp, self.symbolic_zeros = None, False

    def defjvp(self, jvp, symbolic_zeros=False):
        """Set the rule: jvp(*nondiff, primals, tangents) -> (output, output tangent).

        With symbolic_zeros, tangents that are zero by construction come as `SymbolicZero`s.
        """
        self.jvp, self.symbolic_zeros = jvp, symbolic_zeros
        return jvp

    def defjvps(self, *jvps):
        """Set the rule by one function an argument: jvps[i](tangent, output, *primals); or None."""
        if self.nondiff_argnums:
            raise TypeError("Can't use defjvps with nondiff_argnums: use defjvp")

        def jvp(primals, tangents):
            if len(jvps) != len(primals):
                raise ValueError(f"defjvps of {fun_name(self.fun)} got {len(jvps)} rules for "
                                 f"{len(primals)} arguments: give one an argument, None for none")
            out = self(*primals)
            shares = [zero_from_primal(out) if rule is None else rule(t, out, *primals)
                      for rule, t in zip(jvps, tangents)]
            return out, tree_map(lambda _, *ts: reduce(add_tangents, ts), out, *shares)
        self.defjvp(jvp)

    @api_boundary
    def __call__(self, *args, **kwargs):
        if self.jvp is None:
            raise AttributeError("No JVP defined for custom_jvp function "
                                 f"{fun_name(self.fun)} using defjvp")
        args = self.resolve(args, kwargs)
        args = [tree_map(without_tangent, x) if i in self.nondiff_argnums else x
                for i, x in enumerate(args)]
        call, leaves = flat_call(self, args)
        outs = custom_jvp_call_p.bind(*leaves, call_jaxpr=call, jvp=flat_jvp_rule(call),
                                      num_consts=0, symbolic_zeros=self.symbolic_zeros)
        return tree_unflatten(call.out_tree, outs)


def without_tangent(x):
    is_variable = isinstance(x, Tracer) and dtypes.issubdtype(x.dtype, np.inexact)
    return bind("stop_gradient", x) if is_variable else x


def flat_jvp_rule(call):
    """The rule of a call: ([a], [T a or Zero]) -> ([b], [T b or Zero])."""
    custom = call.custom
    name = f"JVP rule {fun_name(custom.jvp)}"

    def rule(primals, tangents):
        shown = [shown_to_rule(t, custom.symbolic_zeros) for t in tangents]
        values = tree_unflatten(call.in_tree, map(value_for_rule, primals))
        pair = custom.jvp(*call.static.values(), values, tree_unflatten(call.in_tree, shown))
        out, out_tangent = call.pair_of_rule(name, pair, "its tangent")
        (outs, out_tree), (ts, tangent_tree) = tree_flatten(out), tree_flatten(out_tangent)
        if out_tree != tangent_tree:
            raise TypeError(f"Custom {name} for function {call.__name__} must produce primal and "
                            "tangent outputs with equal container (pytree) structures, but got "
                            f"{out_tree} and {tangent_tree}")
        call.outputs_of_rule(name, outs, out_tree)
        check_tangents(name, call, outs, ts)
        return outs, [given_by_rule(t) for t in ts]
    rule.__name__ = fun_name(custom.jvp)
    return rule


def check_tangents(name, call, outs, tangents):
    wrong = [(typeof(x), aval_of(t)) for x, t in zip(outs, tangents)
             if not same_type(typeof(x).to_tangent_aval(), aval_of(t))]
    if wrong:
        raise TypeError(f"Custom {name} for function {call.__name__} must produce primal and "
                        "tangent outputs with corresponding shapes and dtypes:" + "".join(
                            f"\n  primal {x.str_short()} wants tangent "
                            f"{x.to_tangent_aval().str_short()}, got {t.str_short()}"
                            for x, t in wrong))


# --- custom_vjp -----------------------------------------------------------------------------------

class custom_vjp(CustomFunction):
    """Decorate a function that will bring its own rule for cotangents; see `defvjp`.

    It has no forward mode: jvp, jacfwd and hessian of it raise TypeError. Arguments in
    `nondiff_argnums` or `nondiff_argnames` may not be tracers, and come first in `bwd`.
    """

    kind = "custom_vjp"

    def __init__(self, fun, nondiff_argnums=(), nondiff_argnames=()):
        super().__init__(fun, nondiff_argnums, nondiff_argnames)
        self.fwd = self.bwd = None
        self.symbolic_zeros = self.optimize_remat = False

    def defvjp(self, fwd, bwd, symbolic_zeros=False, optimize_remat=False):
        """Set the rule: fwd(*args) -> (output, residuals), bwd(*nondiff, residuals, ct) -> cts.

        `cts` is a tuple with a cotangent for each argument, or None for zero. With symbolic_zeros,
        leaves of fwd's arguments come as `CustomVJPPrimal`s and zero cotangents as `SymbolicZero`s.
        """
        if symbolic_zeros and optimize_remat:
            raise NotImplementedError("optimize_remat does not support symbolic_zeros")
        self.fwd, self.bwd = fwd, bwd
        self.symbolic_zeros, self.optimize_remat = symbolic_zeros, optimize_remat

    @api_boundary
    def __call__(self, *args, **kwargs):
        if self.fwd is None or self.bwd is None:
            raise AttributeError("No VJP defined for custom_vjp function "
                                 f"{fun_name(self.fun)} using defvjp")
        args = self.resolve(args, kwargs)
        for i in self.nondiff_argnums:
            refuse_tracers(self, i, args[i])
        call, leaves = flat_call(self, args)
        in_avals = [typeof(x).to_tangent_aval() for x in leaves]
        outs = custom_vjp_call_p.bind(*leaves, call_jaxpr=call, fwd=flat_fwd_rule(call),
                                      bwd=flat_bwd_rule(call, in_avals), num_consts=0,
                                      symbolic_zeros=self.symbolic_zeros)
        return tree_unflatten(call.out_tree, outs)


class CustomVJPPrimal(NamedTuple):
    """A leaf of fwd's arguments when symbolic_zeros is set: the value, and whether it is moved."""
    value: Any
    perturbed: bool


def is_custom_vjp_primal(x):
    return isinstance(x, CustomVJPPrimal)


def custom_vjp_primal_tree_values(tree):
    """The tree with the value of each CustomVJPPrimal in its place; TypeError for another leaf."""
    def value(leaf):
        if not is_custom_vjp_primal(leaf):
            raise TypeError(f"expected CustomVJPPrimal leaves, got {type(leaf).__name__}")
        return leaf.value
    return tree_map(value, tree, is_leaf=is_custom_vjp_primal)


def refuse_tracers(custom, i, x):
    if any(isinstance(leaf, Tracer) for leaf in tree_leaves(x)):
        raise UnexpectedTracerError(
            f"argument {i} of the custom_vjp function {fun_name(custom.fun)} is one of its "
            "nondiff_argnums, but contains a tracer. Those are for what is no array, such as "
            "functions: take it out and let bwd return None for it")


def flat_fwd_rule(call):
    """The forward half: (perturbed, *[a]) -> ([b], [residual], (output tree, residual tree))."""
    custom = call.custom
    name = f"VJP fwd rule {fun_name(custom.fwd)}"

    def rule(perturbed, *leaves):
        if custom.symbolic_zeros:
            leaves = list(map(CustomVJPPrimal, map(value_for_rule, leaves), perturbed))
        pair = custom.fwd(*call.all_arguments(leaves))
        out, residuals = call.pair_of_rule(name, pair, "residuals for the bwd rule")
        (outs, out_tree), (res, res_tree) = tree_flatten(out), tree_flatten(residuals)
        call.outputs_of_rule(name, outs, out_tree)
        return outs, res, (out_tree, res_tree)
    rule.__name__ = fun_name(custom.fwd)
    return rule


def flat_bwd_rule(call, in_avals):
    """The backward half: (memo, [residual], [CT b or Zero]) -> [CT a or Zero]."""
    custom = call.custom

    def rule(memo, residuals, cts):
        out_tree, res_tree = memo
        shown = [shown_to_rule(ct, custom.symbolic_zeros) for ct in cts]
        known = tree_unflatten(res_tree, map(value_for_rule, residuals))
        in_cts = custom.bwd(*call.static.values(), known, tree_unflatten(out_tree, shown))
        leaves = leaves_like(call.in_tree, in_cts)
        return [cotangent_of(call.in_tree, i, aval, ct)
                for i, (aval, ct) in enumerate(zip(in_avals, leaves))]
    rule.__name__ = fun_name(custom.bwd)
    return rule


def leaves_like(in_tree, in_cts):
    """A leaf of bwd's output for each leaf of the arguments; None stands for a whole subtree."""
    like = tree_unflatten(in_tree, [0] * in_tree.num_leaves)
    given = tuple(in_cts) if isinstance(in_cts, list) and len(in_cts) == len(like) else in_cts
    try:
        if isinstance(given, tuple):
            return broadcast_prefix(given, like, is_leaf=lambda x: x is None)
    except ValueError:
        pass
    raise TypeError("Custom VJP bwd rule must produce a tuple with one entry for each argument of "
                    "the primal function, of its container (pytree) structure or None; "
                    f"got {tree_structure(in_cts)} for arguments {in_tree}")


def cotangent_of(in_tree, i, aval, ct):
    """The cotangent of leaf i of the arguments, as bwd gave it."""
    if ct is None or aval.dtype == dtypes.float0:
        return Zero(aval)
    got = aval_of(ct)
    if got.shape != aval.shape:
        paths = tree_flatten_with_path(tree_unflatten(in_tree, [0] * in_tree.num_leaves))[0]
        raise ValueError("Custom VJP bwd rule must produce cotangents of the arguments' types, "
                         f"but at output{keystr(paths[i][0])} it produced {got.str_short()} for an "
                         f"argument of type {aval.str_short()}: the shapes differ")
    if is_zero(given_by_rule(ct)):
        return Zero(aval)
    if got.dtype == aval.dtype:
        return ct
    return bind("convert_element_type", ct, new_dtype=aval.dtype, weak_type=False)


# --- Functions that return their pullback ---------------------------------------------------------

def custom_gradient(fun):
    """Decorate fun(*args) -> (output, vjp), where vjp(ct) returns the arguments' cotangents.

    `vjp` may close over what fun computed. For one argument it may return the bare cotangent.
    """
    @custom_vjp
    def wrapped(*args, **kwargs):
        return output_and_vjp(fun, args, kwargs)[0]

    def fwd(*args, **kwargs):
        out, vjp = output_and_vjp(fun, args, kwargs)
        outs, out_tree = tree_flatten((out,))
        flat = FlatFunction(vjp, out_tree)
        avals = [typeof(x).to_tangent_aval() for x in outs]
        jaxpr, consts = trace_to_jaxpr(flat, avals, fun_name(vjp))
        return out, Pullback(consts, jaxpr, flat.out_tree)

    def bwd(pullback, ct):
        cts = tree_unflatten(pullback.out_tree, pullback(*tree_leaves(ct)))
        return cts if isinstance(cts, (tuple, list)) else (cts,)

    update_wrapper(wrapped, fun)
    wrapped.defvjp(fwd, bwd)
    return wrapped


def output_and_vjp(fun, args, kwargs):
    pair = fun(*args, **kwargs)
    if not (isinstance(pair, (tuple, list)) and len(pair) == 2 and callable(pair[1])):
        raise TypeError(f"{fun_name(fun)}, of which custom_gradient makes a function, must return "
                        f"a pair (output, function from its cotangent), got {pair!r:.80}")
    return pair


@register_pytree_node_class
class Pullback:
    """A traced function with its constants, which are its leaves: so it can be a residual."""

    def __init__(self, consts, jaxpr, out_tree):
        self.consts, self.jaxpr, self.out_tree = consts, jaxpr, out_tree

    def __call__(self, *cts):
        return eval_jaxpr(self.jaxpr, self.consts, *cts)

    def tree_flatten(self):
        return self.consts, (self.jaxpr, self.out_tree)

    @classmethod
    def tree_unflatten(cls, aux, consts):
        return cls(consts, *aux)


# --- Closures -------------------------------------------------------------------------------------

def closure_convert(fun, *example_args):
    """(converted, hoisted): fun with the values it closed over as further arguments, and those.

    Only what may be differentiated is hoisted: floating-point tracers. `converted` takes arguments
    of the shapes and dtypes of `example_args`, then `hoisted`; TypeError for another structure.
    """
    check_callable(fun)
    leaves, in_tree = tree_flatten(example_args)
    flat = FlatFunction(fun, in_tree)
    jaxpr, consts = trace_to_jaxpr(flat, [typeof(x) for x in leaves], fun_name(fun))
    is_hoisted = [may_be_perturbed(c) for c in consts]
    hoisted = tracked(is_hoisted, consts)

    def converted(*args):
        n = len(args) - len(hoisted)
        args_flat, tree = tree_flatten(args[:n])
        if tree != in_tree:
            raise TypeError(f"a function from closure_convert takes arguments like the examples, "
                            f"{in_tree}, and then the hoisted values; got {tree}")
        given = iter(args[n:])
        values = [next(given) if flag else c for flag, c in zip(is_hoisted, consts)]
        return tree_unflatten(flat.out_tree, eval_jaxpr(jaxpr, values, *args_flat))
    return converted, hoisted


def may_be_perturbed(x):
    """Whether a tangent may hang on a value, now or once a recorded program is differentiated."""
    if isinstance(x, BatchTracer):
        return may_be_perturbed(x.val)
    return isinstance(x, Tracer) and dtypes.issubdtype(x.dtype, np.inexact)


# --- Linear functions with their transpose --------------------------------------------------------

def linear_call(fun, fun_transpose, residual_args, linear_args):
    """fun(residual_args, linear_args), linear in the latter, transposed by `fun_transpose`.

    `fun_transpose(residual_args, ct)` returns a tree like linear_args, else TypeError.
    """
    residuals, linear = tree_leaves(residual_args), tree_leaves(linear_args)
    forward = FlatFunction(fun, tree_structure((residual_args, linear_args)))
    callee, consts = closed_program(forward, avals_of([*residuals, *linear]), fun_name(fun))
    example = tree_unflatten(forward.out_tree, [0] * len(callee.outvars))
    backward = FlatFunction(fun_transpose, tree_structure((residual_args, example)))
    transpose, more_consts = closed_program(
        backward, [*avals_of(residuals), *callee.out_avals], fun_name(fun_transpose))
    if backward.out_tree != tree_structure(linear_args):
        raise TypeError("transpose output pytree structure must match that of linear inputs, got "
                        f"{backward.out_tree} and {tree_structure(linear_args)}")
    callee, transpose = with_constants_of_both(callee, len(consts), transpose, len(more_consts))
    operands = [*consts, *more_consts, *residuals]
    outs = linear_call_p.bind(*operands, *linear, callee=callee, transpose=transpose,
                              num_res=len(operands))
    return tree_unflatten(forward.out_tree, outs)


def avals_of(values):
    return [typeof(x) for x in values]


def with_constants_of_both(first, n_first, second, n_second):
    """The two programs, each with the constants of both as its leading arguments."""
    own, others = first.invars[:n_first], [Var(v.aval) for v in second.invars[:n_second]]
    first = first.replace(invars=[*own, *others, *first.invars[n_first:]])
    second = second.replace(invars=[*[Var(v.aval) for v in own], *second.invars])
    return ClosedJaxpr(first), ClosedJaxpr(second)
