"""Measuring one row: the first call with nothing cached, agreement, and steady times in turn."""

import gc
import statistics
import time

import jax
import numpy as np

from benchmarks import libraries
from benchmarks.programs import builders

__all__ = ["measure", "results", "disagreement"]

LIBRARIES = {lib.name: lib for lib in (libraries.MINIJAX, libraries.JAX, libraries.NUMPY,
                                       libraries.NUMBA)}


def inputs_for(row, lib, size):
    """The same arguments for each library, as its own arrays."""
    args = row.inputs(np.random.default_rng(0), size)
    return args if lib.np is np else jax.tree.map(lib.np.asarray, args)


def call(f, args, lib):
    return lib.block(f(*args))


# --- Agreement ------------------------------------------------------------------------------------

def results(row, name, size):
    """The leaves of a row's result through one library, as NumPy arrays."""
    lib = LIBRARIES[name]
    out = call(builders(row)[name](lib), inputs_for(row, lib, size), lib)
    return [np.asarray(leaf) for leaf in as_leaves(out)]


def as_leaves(out):
    if isinstance(out, dict):
        out = [out[k] for k in sorted(out)]
    return [leaf for part in out for leaf in as_leaves(part)] if isinstance(out, (list, tuple)) \
        else [out]


def disagreement(ours, theirs):
    """The largest difference, as a share of the largest value; infinite if shapes differ."""
    if [a.shape for a in ours] != [a.shape for a in theirs]:
        return np.inf
    off = [np.max(np.abs(a.astype(float) - b)) / max(np.max(np.abs(b)), 1e-6) if b.size else 0.0
           for a, b in zip(ours, theirs)]
    worst = float(np.max(off))
    return np.inf if np.isnan(worst) else worst


# --- Times ----------------------------------------------------------------------------------------

def first_call(row, lib, args):
    """Seconds of the first call of a program made anew, and the program."""
    lib.forget()
    gc.collect()
    f = builders(row)[lib.name](lib)
    start = time.perf_counter()
    call(f, args, lib)
    return time.perf_counter() - start, f


def time_calls(f, args, lib, n, block_each):
    """Seconds a call, over n calls."""
    wait = lib.block if block_each else lambda out: out
    start = time.perf_counter()
    for _ in range(n):
        out = wait(f(*args))
    lib.block(out)
    return (time.perf_counter() - start) / n


def calls_a_turn(f, args, lib, seconds, block_each):
    """How many calls fill a turn."""
    once = min(time_calls(f, args, lib, 1, block_each) for _ in range(3))
    return max(1, min(20_000, int(seconds / max(once, 1e-7))))


def measure(row, size, turns, seconds, names=tuple(LIBRARIES)):
    """{library: (first call, steady time a call)} in seconds; libraries take turns.

    A turn is as many calls as fit in `seconds`; the steady time is the median over the turns.
    """
    running, first = {}, {}
    for name in names:
        if name in builders(row):
            lib = LIBRARIES[name]
            args = inputs_for(row, lib, size)
            first[name], f = first_call(row, lib, args)
            running[name] = f, args, lib, calls_a_turn(f, args, lib, seconds, row.block_each)
    times = {name: [] for name in running}
    for _ in range(turns):
        for name, what in running.items():
            times[name].append(time_calls(*what, row.block_each))
    return {name: (first[name], statistics.median(times[name])) for name in running}
