# Exported from notebooks/ref_errors.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: what a user imports. Home: ref_errors. In JAX: nothing; jax.checking_leaks comes closest.

A traced function should be pure: its result depends on its arguments alone, and it changes nothing
else. `check_pure` traces it twice and says what betrays the contrary.
"""

import builtins
import contextlib
import functools
import inspect
import io
import random
import reprlib
from types import FunctionType, MethodType

import numpy as np

from minijax.api import make_jaxpr
from minijax.array import Array
from minijax.config import checking_leaks, object_state
from minijax.core import Tracer
from minijax.errors import UnexpectedTracerError, see
from minijax.flatten import fun_name

__all__ = [
    "retrace", "check_pure", "impurities", "trace_afresh", "program_text", "first_difference",
    "Watched", "contents", "functions_of", "names_in", "fingerprint", "restored_random_states",
]


# --- The judgement --------------------------------------------------------------------------------

# Functions that are jitted inside would be found, not run: a new value makes them be traced anew.
retrace = object_state("minijax_retrace", None, in_trace_key=True,
                       doc="Read by nothing. It is part of every key: a new value misses caches.")


def check_pure(f, *args, **kwargs):
    """Raise AssertionError, with a line for each impurity, unless `f` traces as pure functions do.

    `f` is traced twice with these arguments and not run. What it does only at other arguments, or
    with files and clocks that do not show in the program, is not found.
    """
    found = impurities(f, *args, **kwargs)
    if found:
        raise AssertionError("\n".join([f"{fun_name(f)} is not pure:", *(f"- {x}" for x in found),
                                        see("side-effects")]))


def impurities(f, *args, **kwargs):
    """The sentences of `check_pure`, as a list."""
    f = inspect.unwrap(f)
    with restored_random_states() as random_changed:
        watched = Watched(f)
        before = watched.look()
        first, leak, printed = trace_afresh(f, args, kwargs)
        changes = watched.changes(before)
        found = changes + ([random_changed()] if random_changed() else [])
        second, _, _ = trace_afresh(f, args, kwargs)
    if leak:
        found.append(leak)
    if printed:
        found.append(f"it prints while it is traced, and only then: {printed!r:.60}")
    if first != second and not leak:
        found.append(f"tracing it twice gives two programs; {first_difference(first, second)}")
    return found


def trace_afresh(f, args, kwargs):
    """(program and constants as text, what it leaks or None, what it printed)."""
    printed = io.StringIO()
    try:
        with retrace(object()), checking_leaks(True), contextlib.redirect_stdout(printed):
            program = make_jaxpr(f)(*args, **kwargs)
    except UnexpectedTracerError as error:
        _, _, held = str(error).partition("Leaked tracer(s):\n")
        return "", f"a traced value gets away: {(held or str(error)).strip().splitlines()[0]}", \
            printed.getvalue()
    return program_text(program), None, printed.getvalue()


def program_text(closed):
    """A program and the values of its constants: what two traces of a pure function agree on."""
    consts = [f"constant {k}: {fingerprint(c)}" for k, c in enumerate(closed.consts)]
    return "\n".join([str(closed), *consts])


def first_difference(first, second):
    """The first lines that differ."""
    pairs = zip(first.splitlines(), second.splitlines())
    a, b = next((pair for pair in pairs if pair[0] != pair[1]), ("a shorter one", "a longer one"))
    return f"first {a.strip():.80}, then {b.strip():.80}"


# --- What a function could change -----------------------------------------------------------------

class Watched:
    """The places outside a function that its code names: globals, closures, defaults and others."""

    def __init__(self, f):
        self.getters = {}
        for function in functions_of(f):
            self.add(function)
        if isinstance(f, MethodType):
            self.getters["the object that its method belongs to"] = lambda: vars(f.__self__)
        elif not isinstance(f, (FunctionType, functools.partial)) and hasattr(f, "__dict__"):
            self.getters["its own attributes"] = lambda: vars(f)

    def add(self, function):
        name = function.__name__
        for key in names_in(function.__code__):
            if key in function.__globals__ or not hasattr(builtins, key):
                self.getters[f"the global {key}"] = functools.partial(
                    function.__globals__.get, key)
        for key, cell in zip(function.__code__.co_freevars, function.__closure__ or ()):
            self.getters[f"the variable {key} around {name}"] = functools.partial(contents, cell)
        self.getters[f"a default argument of {name}"] = lambda: (
            function.__defaults__, function.__kwdefaults__)

    def look(self):
        """For each place, what it holds and how that prints."""
        return {place: (fingerprint(get()), reprlib.repr(get()))
                for place, get in self.getters.items()}

    def changes(self, before):
        """A sentence for each place that holds something else than it did."""
        after = self.look()
        return [f"it changes {place}: {before[place][1]} becomes {after[place][1]}"
                for place in before if before[place][0] != after[place][0]]


def contents(cell):
    try:
        return cell.cell_contents
    except ValueError:                # not assigned yet
        return None


def functions_of(f):
    """The Python function behind a callable, and those of the user's that it names, and theirs."""
    found, stack = [], [f]
    while stack:
        f = inspect.unwrap(stack.pop())
        f = getattr(f, "func", f)                             # of a partial
        f = getattr(f, "__func__", f if isinstance(f, FunctionType) else type(f).__call__)
        if not isinstance(f, FunctionType) or f in found or f.__module__.startswith("minijax."):
            continue
        found.append(f)
        named = [f.__globals__.get(key) for key in names_in(f.__code__)]
        named += [contents(cell) for cell in f.__closure__ or ()]
        stack += [g for g in named if isinstance(inspect.unwrap(g), FunctionType)]
    return found


def names_in(code):
    """Names that code and the functions defined in it look up outside: globals and attributes."""
    inner = [names_in(c) for c in code.co_consts if isinstance(c, type(code))]
    return dict.fromkeys([*code.co_names, *(name for names in inner for name in names)])


def fingerprint(x, depth=4):
    """Something that changes when x is assigned anew or changed, also deep inside containers."""
    if isinstance(x, (Array, np.ndarray)) and not isinstance(x, Tracer):
        return "array", x.shape, str(x.dtype), np.asarray(x).tobytes()
    if isinstance(x, (bool, int, float, complex, str, bytes, type(None))):
        return type(x).__name__, repr(x)
    if depth and isinstance(x, (list, tuple)):
        return type(x).__name__, [fingerprint(y, depth - 1) for y in x]
    if depth and isinstance(x, dict):
        return "dict", [(fingerprint(k, 1), fingerprint(v, depth - 1)) for k, v in x.items()]
    if isinstance(x, (set, frozenset)):
        return "set", sorted(map(repr, x))
    if depth and hasattr(x, "__dict__") and not callable(x) and not inspect.ismodule(x):
        return "object", id(x), fingerprint(vars(x), depth - 1)
    return "object", id(x)


@contextlib.contextmanager
def restored_random_states():
    """Put back the states of `random` and `numpy.random`; yields a function that tells changes."""
    python, numpy = random.getstate(), np.random.get_state()

    def changed():
        if random.getstate() != python:
            return "it draws from Python's random, whose state is outside: pass the numbers in"
        if fingerprint(np.random.get_state()) != fingerprint(numpy):
            return "it draws from numpy.random, whose state is outside: pass the numbers in"
        return None
    try:
        yield changed
    finally:
        random.setstate(python)
        np.random.set_state(numpy)
