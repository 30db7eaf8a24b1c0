# Exported from notebooks/17_effects.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: primitives that call Python. Home: 17_effects. In JAX: jax/_src/{callback,debugging}.py.

A traced program can't run Python, but it can hold an equation that says: here, call this function.
If the call matters by what it does and not by what it returns, the equation has an effect, and
stays.
"""

import logging
import sys

import numpy as np

from minijax import dtypes
from minijax.array import Array, as_array
from minijax.avals import ShapedArray
from minijax.core import Primitive, eval_trace, set_current_trace
from minijax.errors import JaxRuntimeError
from minijax.rules import batch_axis_first, broadcast, not_mapped
from minijax.tree_util import tree_leaves, tree_unflatten

__all__ = [
    "Effect", "debug_effect", "ordered_debug_effect", "io_effect", "ordered_io_effect",
    "FlatCallback", "EachElement", "part", "bring_forward", "NO_PARTS", "lower_python_call",
    "debug_callback_p", "debug_print_p", "print_callback", "VMAP_METHODS", "pure_callback_p",
    "returned_arrays", "fitting", "batched_avals", "widened_operand", "io_callback_p",
]


# --- Python functions as parameters ---------------------------------------------------------------

class Effect:
    """Something that a program does besides computing its results.

    An equation with effects is never dropped, never merged with an equal one, and never overtakes
    another. `ordered` effects must also keep their order where a program runs in parallel; `exact`
    ones must not happen for examples of a batch that take another branch, or have left the loop.
    """

    def __init__(self, name, ordered=False, exact=False):
        self.name, self.ordered, self.exact = name, ordered, exact

    def __repr__(self):
        return self.name


debug_effect = Effect("Debug")
ordered_debug_effect = Effect("OrderedDebug", ordered=True)
io_effect = Effect("IO", exact=True)
ordered_io_effect = Effect("OrderedIO", ordered=True, exact=True)


class FlatCallback:
    """function(*args, **kwargs) as a function of flat arrays, which returns a list of leaves.

    Equal for equal functions and trees, so that equal pure calls are one. `static` has the leaves
    that are no arrays, by their place.
    """

    __slots__ = ("function", "in_tree", "static")

    def __init__(self, function, in_tree, static=()):
        self.function, self.in_tree, self.static = function, in_tree, tuple(static)

    def __call__(self, *arrays):
        known, rest = dict(self.static), iter(arrays)
        leaves = [known[i] if i in known else next(rest) for i in range(self.in_tree.num_leaves)]
        args, kwargs = tree_unflatten(self.in_tree, leaves)
        # Whatever Python does with arrays it does now, even if something is being traced.
        with set_current_trace(eval_trace):
            return tree_leaves(self.function(*args, **kwargs))

    def __eq__(self, other):
        return type(other) is FlatCallback and self.key() == other.key()

    def __hash__(self):
        return hash((self.function, self.in_tree))

    def key(self):
        return self.function, self.in_tree, self.static

    @property
    def __name__(self):
        return getattr(self.function, "__name__", repr(self.function))


class EachElement:
    """`callback` called for each element of a batch, in order; its results are stacked.

    `mapped` says which operands have the batch axis, in front; the others are the same each time.
    """

    __slots__ = ("callback", "mapped")

    def __init__(self, callback, mapped):
        self.callback, self.mapped = callback, tuple(mapped)

    def __call__(self, *arrays):
        size = next(x.shape[0] for x, mapped in zip(arrays, self.mapped) if mapped)
        calls = [self.callback(*[part(x, i) if mapped else x
                                 for x, mapped in zip(arrays, self.mapped)]) for i in range(size)]
        return [np.stack(outs) for outs in zip(*calls)]

    def __eq__(self, other):
        return type(other) is EachElement and self.key() == other.key()

    def __hash__(self):
        return hash(self.key())

    def key(self):
        return self.callback, self.mapped

    @property
    def __name__(self):
        return f"{self.callback.__name__} for each element"


def part(x, i):
    return Array(x._value[i, ...], x.weak_type)


def bring_forward(axis, vals, dims):
    """Operands with the batch axis in front, if they have one, and which of them have one."""
    mapped = tuple(d is not not_mapped for d in dims)
    return [batch_axis_first(axis, x, d) if m else x for x, d, m in zip(vals, dims, mapped)], mapped


NO_PARTS = "Python's functions can't be split: with known operands they run, with others they wait"


def lower_python_call(primitive):
    """A step between loops, on copies: Python may keep its arguments, buffers are used again."""
    def lowering(ctx, *values, **params):
        impl = primitive.rules["impl"]

        def call(*buffers):
            return [out._value for out in impl(*[Array(np.array(b)) for b in buffers], **params)]
        return ctx.call(primitive.name, call, values, many=True)
    primitive.def_lowering(lowering)


# --- To look at values ----------------------------------------------------------------------------

debug_callback_p = Primitive("debug_callback", multiple_results=True, higher_order=True)
debug_callback_p.effects_of = lambda params: frozenset([params["effect"]])
debug_callback_p.usual_params = {"partitioned": False}
debug_callback_p.def_impossible("transpose", "it has no results, so nothing comes back through it")
debug_callback_p.def_impossible("partial_eval", NO_PARTS)


@debug_callback_p.def_impl
def _debug_callback_impl(*args, callback, effect, partitioned):
    callback(*args)
    return []


@debug_callback_p.def_abstract_eval
def _debug_callback_abstract_eval(*avals, callback, effect, partitioned):
    return []


@debug_callback_p.def_jvp
def _debug_callback_jvp(primals, tangents, **params):
    return debug_callback_p.bind(*primals, **params), []


@debug_callback_p.def_batch
def _debug_callback_batch(axis, vals, dims, *, callback, **params):
    vals, mapped = bring_forward(axis, vals, dims)
    return debug_callback_p.bind(*vals, callback=EachElement(callback, mapped), **params), []


lower_python_call(debug_callback_p)


# As JAX does, printing is a primitive of its own, so that a jaxpr shows what it prints.
# `mapped` says for each vmap around it which operands have that batch axis.

debug_print_p = Primitive("debug_print", multiple_results=True, higher_order=True)
debug_print_p.effects_of = lambda params: frozenset(
    [ordered_debug_effect if params["ordered"] else debug_effect])
debug_print_p.usual_params = {"partitioned": False, "static_args": (), "mapped": (),
                              "logged": False,
                              "np_printoptions": tuple(np.get_printoptions().items())}
debug_print_p.def_impossible("transpose", "it has no results, so nothing comes back through it")
debug_print_p.def_impossible("partial_eval", NO_PARTS)


@debug_print_p.def_impl
def _debug_print_impl(*args, fmt, in_tree, static_args, np_printoptions, mapped, logged, **how):
    callback = FlatCallback(print_callback(fmt, np_printoptions, logged), in_tree, static_args)
    for flags in mapped:
        callback = EachElement(callback, flags)
    callback(*args)
    return []


def print_callback(fmt, np_printoptions, logged):
    def print_formatted(*args, **kwargs):
        with np.printoptions(**dict(np_printoptions)):
            text = fmt.format(*args, **kwargs)
        if logged:
            logging.getLogger("minijax").info(text)
        else:
            sys.stdout.write(text + "\n")
    return print_formatted


@debug_print_p.def_abstract_eval
def _debug_print_abstract_eval(*avals, **params):
    return []


@debug_print_p.def_jvp
def _debug_print_jvp(primals, tangents, **params):
    return debug_print_p.bind(*primals, **params), []


@debug_print_p.def_batch
def _debug_print_batch(axis, vals, dims, *, mapped, **params):
    vals, flags = bring_forward(axis, vals, dims)
    return debug_print_p.bind(*vals, mapped=(*mapped, flags), **params), []


lower_python_call(debug_print_p)


# --- To get results -------------------------------------------------------------------------------

VMAP_METHODS = ("sequential", "sequential_unrolled", "expand_dims", "broadcast_all",
                "legacy_vectorized", None)

pure_callback_p = Primitive("pure_callback", multiple_results=True, higher_order=True)
pure_callback_p.usual_params = {"sharding": None}
pure_callback_p.def_impossible("transpose", "nobody knows the transpose of a Python function: "
                                            "give it one with custom_vjp")
pure_callback_p.def_impossible("partial_eval", NO_PARTS)


@pure_callback_p.def_impl
def _pure_callback_impl(*args, callback, result_avals, sharding, vmap_method):
    return returned_arrays(callback, args, result_avals)


def returned_arrays(callback, args, result_avals):
    """What a callback returns, as Arrays of the promised types; else a JaxRuntimeError."""
    outs = callback(*[Array(x._value) for x in args])       # as in compiled code: not weakly typed
    if len(outs) != len(result_avals):
        raise JaxRuntimeError(f"the callback {callback.__name__} returned {len(outs)} arrays, but "
                              f"result_shape_dtypes has {len(result_avals)}")
    pairs = enumerate(zip(outs, result_avals))
    return [fitting(callback, i, out, aval) for i, (out, aval) in pairs]


def fitting(callback, i, out, aval):
    found = np.asarray(out)
    dtype = dtypes.canonicalize_dtype(found.dtype)
    if (found.shape, dtype) != (aval.shape, aval.dtype):
        got = ShapedArray(found.shape, dtype).str_short(short_dtypes=False)
        raise JaxRuntimeError(f"result {i} of the callback {callback.__name__} is {got}, but "
                              f"result_shape_dtypes says {aval.str_short(short_dtypes=False)}")
    return as_array(found.astype(dtype))     # a copy: the caller may go on writing into it


@pure_callback_p.def_abstract_eval
def _pure_callback_abstract_eval(*avals, result_avals, **params):
    return list(result_avals)


@pure_callback_p.def_jvp
def _pure_callback_jvp(primals, tangents, **params):
    raise ValueError("a pure_callback has no derivative: nobody knows that of a Python function. "
                     "Give it one with jax.custom_jvp or jax.custom_vjp")


@pure_callback_p.def_batch
def _pure_callback_batch(axis, vals, dims, *, callback, result_avals, vmap_method, sharding):
    if vmap_method is None:
        raise NotImplementedError(
            "vmap of a pure_callback must be told what to do with the function: say so by "
            f"vmap_method, one of {', '.join(map(repr, VMAP_METHODS[:-1]))}; it is None")
    vals, mapped = bring_forward(axis, vals, dims)
    if vmap_method.startswith("sequential"):
        callback = EachElement(callback, mapped)
    else:
        vals = [x if m else widened_operand(x, axis.size, vmap_method)
                for x, m in zip(vals, mapped)]
    outs = pure_callback_p.bind(*vals, callback=callback, vmap_method=vmap_method,
                                result_avals=batched_avals(axis, result_avals), sharding=sharding)
    return outs, [0] * len(outs)


def batched_avals(axis, avals):
    return tuple(a.update(shape=(axis.size, *a.shape)) for a in avals)


def widened_operand(x, size, vmap_method):
    """An operand without the batch axis as the callback wants it beside others that have one."""
    if vmap_method == "legacy_vectorized":
        return x
    length = 1 if vmap_method == "expand_dims" else size
    return broadcast(x, (length, *np.shape(x)), range(1, np.ndim(x) + 1))


lower_python_call(pure_callback_p)


io_callback_p = Primitive("io_callback", multiple_results=True, higher_order=True)
io_callback_p.effects_of = lambda params: frozenset(
    [ordered_io_effect if params["ordered"] else io_effect])
io_callback_p.usual_params = {"sharding": None}
io_callback_p.def_impossible("transpose", "a call that acts on the world can't be run backwards")
io_callback_p.def_impossible("partial_eval", NO_PARTS)


@io_callback_p.def_impl
def _io_callback_impl(*args, callback, result_avals, ordered, sharding):
    return returned_arrays(callback, args, result_avals)


@io_callback_p.def_abstract_eval
def _io_callback_abstract_eval(*avals, result_avals, **params):
    return list(result_avals)


@io_callback_p.def_jvp
def _io_callback_jvp(primals, tangents, **params):
    raise ValueError("an io_callback has no derivative: what acts on the world has none. Apply "
                     "lax.stop_gradient to its operands if its results are constants")


@io_callback_p.def_batch
def _io_callback_batch(axis, vals, dims, *, callback, result_avals, ordered, sharding):
    if ordered:
        raise ValueError("vmap can't have an ordered io_callback: a batch has no order of its own. "
                         "Use ordered=False, or a loop such as lax.map")
    vals, mapped = bring_forward(axis, vals, dims)
    outs = io_callback_p.bind(*vals, callback=EachElement(callback, mapped), ordered=False,
                              result_avals=batched_avals(axis, result_avals), sharding=sharding)
    return outs, [0] * len(outs)


lower_python_call(io_callback_p)
