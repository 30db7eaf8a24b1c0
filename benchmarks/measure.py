"""Measuring one row: the first call with nothing cached, agreement, and steady times in turn."""

import gc
import statistics
import time
from typing import Any, Callable, NamedTuple

import jax
import numpy as np

from benchmarks import libraries
from benchmarks.programs import builders

__all__ = ["LIBRARIES", "Running", "start", "warm_up", "disagreement", "steady_times"]

LIBRARIES = {lib.name: lib for lib in (libraries.MINIJAX, libraries.JAX, libraries.NUMPY,
                                       libraries.NUMBA)}


# --- The first call -------------------------------------------------------------------------------

class Running(NamedTuple):
    """A program in one library, called once: how long that took, and the leaves of its result."""
    f: Callable
    args: tuple
    lib: Any
    block_each: bool
    first: float
    results: list


def start(row, size, names=tuple(LIBRARIES)):
    """{library's name: Running} of the libraries that the row has."""
    makers = builders(row)
    return {name: first_call(row, LIBRARIES[name], makers[name], size)
            for name in names if name in makers}


def first_call(row, lib, build, size):
    """Make a program anew, with the library's caches emptied, and call it."""
    args = inputs_for(row, lib, size)
    lib.forget()
    gc.collect()
    f = build(lib)
    begin = time.perf_counter()
    out = lib.block(f(*args))
    first = time.perf_counter() - begin
    return Running(f, args, lib, row.block_each, first, [np.asarray(x) for x in as_leaves(out)])


def inputs_for(row, lib, size):
    """The same arguments for each library, as its own arrays."""
    args = row.inputs(np.random.default_rng(0), size)
    return args if lib.np is np else jax.tree.map(lib.np.asarray, args)


def warm_up():
    """Let each library import and start whatever it starts only once."""
    for lib in (libraries.MINIJAX, libraries.JAX):
        x = lib.np.ones((8, 8))
        lib.block(lib.jit(lib.grad(lambda x: lib.np.sum(lib.np.exp(x) @ x)))(x))


# --- Agreement ------------------------------------------------------------------------------------

def as_leaves(out):
    if isinstance(out, dict):
        out = [out[k] for k in sorted(out)]
    return [leaf for part in out for leaf in as_leaves(part)] if isinstance(out, (list, tuple)) \
        else [out]


def disagreement(ours, theirs):
    """The largest difference, as a share of an array's largest value; infinite if shapes differ."""
    if [a.shape for a in ours] != [a.shape for a in theirs]:
        return np.inf
    worst = np.max([np.max(np.abs(a.astype(float) - b)) / max(np.max(np.abs(b)), 1e-6)
                    for a, b in zip(ours, theirs)])
    return np.inf if np.isnan(worst) else float(worst)


# --- Steady times ---------------------------------------------------------------------------------

def time_calls(running, n):
    """Seconds a call, over n calls."""
    f, args, block = running.f, running.args, running.lib.block
    begin = time.perf_counter()
    if running.block_each:
        for _ in range(n):
            out = block(f(*args))
    else:
        for _ in range(n):
            out = f(*args)
    block(out)
    return (time.perf_counter() - begin) / n


def calls_a_turn(running, seconds):
    """How many calls fill a turn."""
    once = min(time_calls(running, 1) for _ in range(3))
    return max(1, min(20_000, int(seconds / max(once, 1e-7))))


def steady_times(started, turns, seconds):
    """{library's name: seconds a call}: libraries take turns, and the median turn counts.

    A turn is as many calls as fit in `seconds`.
    """
    calls = {name: calls_a_turn(running, seconds) for name, running in started.items()}
    times = {name: [] for name in started}
    for _ in range(turns):
        for name, running in started.items():
            times[name].append(time_calls(running, calls[name]))
    return {name: statistics.median(t) for name, t in times.items()}
