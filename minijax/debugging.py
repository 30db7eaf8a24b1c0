# Exported from notebooks/17_effects.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: calls into Python as users make them. Home: 17_effects. In JAX: jax/_src/debugging.py.

The functions behind `jax.debug.print`, `jax.debug.callback`, `jax.pure_callback` and
`jax.experimental.io_callback`: they flatten arguments, check what can be checked at once, and bind.
"""

import string
from contextlib import contextmanager
from functools import partial, wraps

import numpy as np

from minijax import dtypes
from minijax.avals import ShapedArray, typeof
from minijax.core import (
    Trace, Tracer, eval_trace, extend_scopes, get_current_trace, set_current_trace,
)
from minijax.errors import see
from minijax.flatten import fun_name
from minijax.primitives.callbacks import (
    FlatCallback, VMAP_METHODS, debug_callback_p, debug_effect, debug_print_p, io_callback_p,
    ordered_debug_effect, pure_callback_p,
)
from minijax.tree_util import tree_flatten, tree_unflatten

__all__ = [
    "split_static", "is_array_like", "debug_print", "debug_log", "in_one_or_two_calls",
    "FormatChecker", "debug_callback", "pure_callback", "io_callback", "check_result_types",
    "effects_barrier", "named_scope", "entered_scope", "named_call", "KnownAtOnceTrace",
    "ensure_compile_time_eval",
]


# --- As users call them ---------------------------------------------------------------------------

def split_static(args, kwargs):
    """(arrays, tree, static): the leaves that programs can hold, and (place, value) of the rest."""
    leaves, tree = tree_flatten((args, kwargs))
    static = tuple((i, x) for i, x in enumerate(leaves) if not is_array_like(x))
    places = {i for i, _ in static}
    return [x for i, x in enumerate(leaves) if i not in places], tree, static


def is_array_like(x):
    try:
        typeof(x)
    except TypeError:
        return False
    return True


def debug_print(fmt=None, *args, ordered=False, partitioned=False, skip_format_check=False,
                _use_logging=False, **kwargs):
    """Print `fmt.format(*args, **kwargs)` whenever the program gets there, also in compiled code.

    Arguments are pytrees of arrays, or anything else. Under vmap it prints once an element. A
    format that does not fit its arguments is refused at once: IndexError, KeyError or ValueError.
    `debug_print(ordered=True)` returns a function that takes the rest.
    """
    def print_later(fmt, *args, **kwargs):
        if not skip_format_check:
            FormatChecker().format(fmt, *args, **kwargs)
        arrays, tree, static = split_static(args, kwargs)
        debug_print_p.bind(*arrays, fmt=fmt, ordered=ordered, partitioned=partitioned, in_tree=tree,
                           static_args=static, mapped=(), logged=_use_logging,
                           np_printoptions=tuple(np.get_printoptions().items()))
    return in_one_or_two_calls("debug.print", print_later, fmt, args, kwargs)


debug_log = partial(debug_print, _use_logging=True)     # writes to the logger "minijax" instead


def in_one_or_two_calls(name, function, first, args, kwargs):
    if first is not None:
        return function(first, *args, **kwargs)
    if args or kwargs:
        raise TypeError(f"{name} got options and arguments in one call, but no first argument: "
                        f"args={args}, kwargs={kwargs}")
    return function


class FormatChecker(string.Formatter):
    """Finds arguments that a format lacks or does not use, and formats nothing."""

    def format_field(self, value, format_spec):
        return ""

    def check_unused_args(self, used, args, kwargs):
        unused = [x for i, x in enumerate(args) if i not in used]
        if unused:
            raise ValueError(f"the format of debug.print has no place for {unused}")
        unused = [k for k in kwargs if k not in used]
        if unused:
            raise ValueError(f"the format of debug.print has no place for {', '.join(unused)}. Is "
                             'it an f-string, f"{x}"? It must be a plain string, "{x}": it is '
                             "filled in when the program runs")


def debug_callback(callback=None, *args, ordered=False, partitioned=False, **kwargs):
    """Call `callback(*args, **kwargs)` whenever the program gets there; what it returns is dropped.

    Array arguments arrive as Arrays. Under vmap it is called once an element, under grad in the
    forward pass only. `debug_callback(ordered=True)` returns a function that takes the rest.
    """
    def call_later(callback, *args, **kwargs):
        if not callable(callback):
            raise TypeError("the first argument of jax.debug.callback must be callable, got "
                            f"{callback!r:.80} of type {type(callback).__name__}")
        arrays, tree, static = split_static(args, kwargs)
        debug_callback_p.bind(*arrays, callback=FlatCallback(callback, tree, static),
                              effect=ordered_debug_effect if ordered else debug_effect,
                              partitioned=partitioned)
    return in_one_or_two_calls("debug.callback", call_later, callback, args, kwargs)


def pure_callback(callback, result_shape_dtypes, *args, sharding=None, vmap_method=None, **kwargs):
    """The results of `callback(*args, **kwargs)`, a function of arrays without side effects.

    `result_shape_dtypes` is a pytree like its result whose leaves have `shape` and `dtype`; other
    results are a JaxRuntimeError. `vmap_method` says what vmap does: "sequential" calls it for each
    element, "expand_dims" and "broadcast_all" call it once on the batch, with an axis of size 1
    or of the batch's size in front of operands that are not mapped; None is an error. The call may
    be dropped if nobody needs its results. It has no derivative: see custom_jvp.
    """
    if vmap_method not in VMAP_METHODS:
        raise ValueError(f"vmap_method must be one of {', '.join(map(repr, VMAP_METHODS))}, got "
                         f"{vmap_method!r}")
    leaves, in_tree = tree_flatten((args, kwargs))
    avals, out_tree = tree_flatten(result_shape_dtypes)
    outs = pure_callback_p.bind(*leaves, callback=FlatCallback(callback, in_tree),
                                result_avals=check_result_types(avals), sharding=sharding,
                                vmap_method=vmap_method)
    return tree_unflatten(out_tree, outs)


def io_callback(callback, result_shape_dtypes, *args, sharding=None, ordered=False, **kwargs):
    """As `pure_callback`, for a function that also does something: it is called when reached.

    Under vmap it is called once an element; ValueError if it is `ordered`.
    """
    leaves, in_tree = tree_flatten((args, kwargs))
    avals, out_tree = tree_flatten(result_shape_dtypes)
    outs = io_callback_p.bind(*leaves, callback=FlatCallback(callback, in_tree), ordered=ordered,
                              result_avals=check_result_types(avals), sharding=sharding)
    return tree_unflatten(out_tree, outs)


def check_result_types(structs):
    for x in structs:
        if not hasattr(x, "dtype"):
            raise AttributeError("result_shape_dtypes must be a pytree of jax.ShapeDtypeStruct, or "
                                 f"of arrays, which says what the callback returns; got {x!r}")
        if dtypes.canonicalize_dtype(x.dtype) != np.dtype(x.dtype):
            raise ValueError(f"result_shape_dtypes has {np.dtype(x.dtype).name}, a 64-bit type, "
                             "which exists only if jax_enable_x64 is on\n"
                             + see("thirty-two-bits"))
    return tuple(ShapedArray(x.shape, x.dtype) for x in structs)


def effects_barrier():
    """Wait until every effect has happened. Here they have: a call returns when all is done."""


def named_scope(name):
    """`with named_scope("layer"):`, or a decorator: equations traced inside belong to that scope.

    It shows in `eqn.source_info.name_stack` and in messages about tracers. TypeError if it is no
    string.
    """
    if not isinstance(name, str):
        raise TypeError(f"the name of a scope must be a string, got {name!r}")
    return entered_scope(name)


@contextmanager
def entered_scope(name):
    with extend_scopes(name):
        yield


def named_call(fun, *, name=None):
    """`fun` in a scope of its own, named `name` or as the function."""
    return wraps(fun)(named_scope(fun_name(fun) if name is None else name)(fun))


class KnownAtOnceTrace(Trace):
    """Evaluates what only needs known values, and leaves all else to the parent."""

    __slots__ = ("parent",)

    def __init__(self, parent):
        super().__init__(parent.name)
        self.parent = parent

    def process_primitive(self, primitive, args, params):
        known = not any(isinstance(x, Tracer) for x in args)
        with set_current_trace(eval_trace if known else self.parent) as trace:
            return trace.process_primitive(primitive, args, params)


def ensure_compile_time_eval():
    """`with ensure_compile_time_eval():` known values are computed with at once, even under jit."""
    return set_current_trace(KnownAtOnceTrace(get_current_trace()))
