# Exported from notebooks/ref_errors.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: foundations. Home: ref_errors. In JAX: jax/_src/traceback_util.py.

An error of a user's program should show the user's program. Functions that users call are boundaries:
what passes one on its way out loses the frames of this package.
"""

import builtins
import os
import sys
from functools import wraps
from types import FunctionType, ModuleType, TracebackType

from minijax import errors
from minijax.config import traceback_filtering

__all__ = [
    "PACKAGE", "BELOW", "NOTE", "is_inside", "filtering_mode", "hide_frames", "chain_of",
    "without_frames", "mark_hidden", "api_boundary", "make_boundaries", "make_fronts",
]


# --- Which frames are shown -----------------------------------------------------------------------

PACKAGE = os.path.dirname(errors.__file__) + os.sep
BELOW = tuple(os.sep + name + os.sep for name in ("numpy", "numba", "scipy", "llvmlite"))
NOTE = ("(frames inside minijax are left out of this traceback; to see them: "
        "MINIJAX_TRACEBACK_FILTERING=off, or config.update('jax_traceback_filtering', 'off'))")


def is_inside(file):
    return file.startswith(PACKAGE)


def filtering_mode():
    """"off", "tracebackhide" or "remove_frames"; what "auto" means here."""
    mode = traceback_filtering.value
    if mode == "auto":
        return "tracebackhide" if hasattr(builtins, "__IPYTHON__") else "remove_frames"
    return mode.removeprefix("quiet_")


def hide_frames(error):
    """Take the frames of this package out of an error's traceback, and out of those it came from."""
    mode = filtering_mode()
    if mode == "off":
        return
    for e in chain_of(error):
        if mode == "tracebackhide":
            mark_hidden(e.__traceback__)
        elif e.__traceback__ is not None:
            e.__traceback__ = without_frames(e.__traceback__)
    if mode == "remove_frames" and NOTE not in getattr(error, "__notes__", ()):
        error.add_note(NOTE)


def chain_of(error):
    """The error, its causes and contexts; each once."""
    found, stack = {}, [error]
    while stack:
        e = stack.pop()
        if e is not None and id(e) not in found:
            found[id(e)] = e
            stack += [e.__cause__, e.__context__]
    return found.values()


def without_frames(traceback):
    """The traceback without this package's frames, and without those that NumPy and Numba add below."""
    kept, inside = [], False
    while traceback is not None:
        file = traceback.tb_frame.f_code.co_filename
        inside = is_inside(file) or inside and any(name in file for name in BELOW)
        if not inside:
            kept.append(traceback)
        traceback = traceback.tb_next
    shown = None
    for tb in reversed(kept):
        shown = TracebackType(shown, tb.tb_frame, tb.tb_lasti, tb.tb_lineno)
    return shown


def mark_hidden(traceback):
    """Leave a mark in this package's frames that IPython and pytest know: they fold them."""
    while traceback is not None:
        if is_inside(traceback.tb_frame.f_code.co_filename):
            traceback.tb_frame.f_locals["__tracebackhide__"] = True
        traceback = traceback.tb_next


# --- Boundaries -----------------------------------------------------------------------------------

def api_boundary(function):
    """`function`, whose errors show no frame of this package, not even this one's."""
    @wraps(function, updated=())
    def bounded(*args, **kwargs):
        try:
            return function(*args, **kwargs)
        except Exception as error:
            hide_frames(error)
            raise            # bare: Python adds no frame for it, and the traceback stays as it is
    return bounded


_boundaries = {}                 # function -> its boundary: one, whatever names it has


def make_boundaries(namespace, names):
    """Put a boundary in place of each plain function of this package among these names."""
    for name in names:
        function = namespace[name]
        if type(function) is FunctionType and is_inside(function.__code__.co_filename):
            if function not in _boundaries:
                _boundaries[function] = bounded = api_boundary(function)
                bounded.__module__, bounded.__qualname__ = namespace["__name__"], name  # for pickle
            namespace[name] = _boundaries[function]


def make_fronts(namespace, names):
    """Put in place of these modules what users see of them: the same, with boundaries.

    Modules of this package that imported one before go on with its functions as they are, so that
    nothing is spent on boundaries inside.
    """
    for name in names:
        module = namespace[name]
        if hasattr(module, "behind"):
            continue                                            # done already
        namespace[name] = front = ModuleType(module.__name__, module.__doc__)
        vars(front).update(vars(module), behind=module)
        make_boundaries(vars(front), module.__all__)
        sys.modules[module.__name__] = front
