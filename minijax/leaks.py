# Exported from notebooks/ref_debugging.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: core. Home: ref_debugging. In JAX: jax/_src/core.py (maybe_find_leaked_tracers).

What `checking_leaks` does: when a transformation has returned, nobody should have a tracer of it.
"""

import functools
import gc

from minijax.config import checking_leaks
from minijax.core import Tracer, UnexpectedTracerError, swap_ended_traces

__all__ = ["leak_checked", "refuse_leaks", "holder_of", "name_in"]


# --- Leaks ----------------------------------------------------------------------------------------

def leak_checked(transformation):
    """If `checking_leaks` is on, look after a transformation whether its traces are really gone.

    It is to return to here first: its own variables hold tracers, and rightly so. For the same
    reason a transformation inside it does not look for traces that ended before it began.
    """
    @functools.wraps(transformation)
    def checked(*args, **kwargs):
        if not checking_leaks.touched:
            return transformation(*args, **kwargs)
        ended = []
        outer = swap_ended_traces(ended)
        try:
            out = transformation(*args, **kwargs)
            if checking_leaks.value:
                refuse_leaks(ended)
            return out
        finally:
            swap_ended_traces(outer)
    return checked


def refuse_leaks(ended):
    """UnexpectedTracerError if a tracer of one of the traces that ended is still referred to."""
    if any([ref() for ref in ended]):
        gc.collect()                        # what only refers to itself has not leaked
    for trace in filter(None, [ref() for ref in ended]):
        tracers = [x for x in gc.get_referrers(trace)
                   if isinstance(x, Tracer) and x._trace is trace]
        if tracers:
            lines = [f"  {x!r}, {x._origin_msg()}; held by {holder_of(x, tracers)}"
                     for x in tracers]
            raise UnexpectedTracerError(
                f"Leaked trace {type(trace).__name__}: {trace.name} has returned, but values from "
                "inside it are still held. Leaked tracer(s):\n" + "\n".join(lines) +
                "\nReturn such a value instead of storing it.")


def holder_of(x, known, depth=2):
    """Where an object is held, as far as two steps tell: a global, an attribute, a list in one."""
    for holder in gc.get_referrers(x):
        if isinstance(holder, dict):
            return name_in(holder, x)
        if type(holder).__name__ == "cell":
            return "a function's closure"
        if isinstance(holder, (list, tuple, set)) and depth > 1 and holder is not known:
            return f"a {type(holder).__name__}, {holder_of(holder, known, depth - 1)}"
        if hasattr(holder, "__dict__"):
            return f"an object of type {type(holder).__name__}"
    return "a variable"


# A function of its own: as a variable of a comprehension above, x would be held by a cell of ours.

def name_in(namespace, x):
    name = next((k for k, v in namespace.items() if v is x), "?")
    return f"the global {name}" if "__builtins__" in namespace else f"{name!r} of a dict"
