# Exported from notebooks/ref_debugging.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: api. Home: ref_debugging. In JAX: jax/_src/dispatch.py, jax/_src/pjit.py.

What `log_compiles` and `explain_cache_misses` write to the logger `minijax`: how long a jitted
function took to trace and to compile, and why it had to be traced.
"""

import logging
import time
from contextlib import contextmanager
from weakref import WeakSet

from minijax.avals import ShapedArray
from minijax.config import config, log_compiles
from minijax.core import user_source
from minijax.flatten import fun_name
from minijax.tree_util import PyTreeDef, keystr, tree_flatten_with_path, tree_unflatten

__all__ = [
    "logger", "log_step", "timed", "explain_miss", "differences", "option_lines", "as_tree",
    "leaf_names", "type_text", "static_text",
]


# --- Traced again ---------------------------------------------------------------------------------

logger = logging.getLogger("minijax")


def log_step(message, *args):
    """Write to the log: as a warning if `log_compiles` is on, as a debugging message otherwise."""
    logger.log(logging.WARNING if log_compiles.value else logging.DEBUG, message, *args)


@contextmanager
def timed(what):
    """Write to the log how long the block took, unless it raised."""
    start = time.perf_counter()
    yield
    log_step("Finished %s in %.6f sec", what, time.perf_counter() - start)


# A key is (tree, types of the leaves, static values, epoch of the rules, options).

_seen_codes = WeakSet()           # code of functions that were traced while misses were explained


def explain_miss(fun, known_keys, key, in_tree, argument_names):
    """Write to the log in what a key differs from the nearest of those that are known."""
    code = getattr(fun, "__code__", None)
    where = f"{code.co_filename}:{code.co_firstlineno}" if code else "an unknown place"
    lines = [f"TRACING CACHE MISS at {user_source()}:", f"  for {fun_name(fun)} defined at {where}"]
    if known_keys:
        nearest = min(reversed(list(known_keys)),
                      key=lambda k: (k[0] != key[0], len(differences(k, key, in_tree))))
        lines += ["  all keys seen so far differ. Compared with the nearest:",
                  *differences(nearest, key, in_tree, argument_names)]
    else:
        lines += ["  a function not seen before"]
        if code in _seen_codes:
            lines += ["  but another one made by the same line was: if it is defined anew in each "
                      "turn of a loop,",
                      "  no program can be found again. Define and jit it once, outside."]
    if code is not None:
        _seen_codes.add(code)
    logger.warning("\n".join(lines))


def differences(old, new, in_tree, argument_names=()):
    """A line for each thing in which two keys differ."""
    (tree_1, types_1, static_1, *rest_1), (tree_2, types_2, static_2, *rest_2) = old, new
    if tree_1 != tree_2:
        return [f"  * different input pytree: now {as_tree(tree_2)} and before {as_tree(tree_1)}"]
    names = leaf_names(in_tree, argument_names)
    lines = [f"  * at {name}, now {type_text(b)} and before {type_text(a)}"
             for name, a, b in zip(names, types_1, types_2) if a != b]
    if static_1 != static_2:
        lines += [f"  * different static values: now {static_text(static_2)} and before "
                  f"{static_text(static_1)}"]
    return lines + option_lines(rest_1, rest_2)


def option_lines(old, new):
    (old_epoch, old_options), (epoch, options) = old, new
    lines = ["  * rules of primitives have changed"] if old_epoch != epoch else []
    return lines + [f"  * different option {name}: now {b} and before {a}"
                    for name, a, b in zip(config.trace_key_names(), old_options, options) if a != b]


def as_tree(nodes):
    return nodes if isinstance(nodes, PyTreeDef) else PyTreeDef(nodes)


def leaf_names(in_tree, argument_names):
    """What to call each leaf of (args, kwargs): `x`, `params['w']`, `args[2]`."""
    paths, _ = tree_flatten_with_path(tree_unflatten(in_tree, range(in_tree.num_leaves)))
    for (part, argument, *rest), _ in paths:
        if part.idx == 1:
            name = argument.key
        else:
            known = argument.idx < len(argument_names)
            name = argument_names[argument.idx] if known else f"args[{argument.idx}]"
        yield f"{name}{keystr(tuple(rest))}"


def type_text(leaf_type):
    return ShapedArray(*leaf_type).str_short() + ("{weak_type=True}" if leaf_type[2] else "")


def static_text(static):
    positional, named = static
    return ", ".join([f"argument {i} = {value!r:.60}" for i, (_, value) in positional] +
                     [f"{name} = {value!r:.60}" for name, (_, value) in named]) or "none"
