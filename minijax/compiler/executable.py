# Exported from notebooks/11_jit.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: 11_jit. In JAX: jax/_src/interpreters/pxla.py (UnloadedMeshExecutable).

Runs the passes, and turns their result into a function of NumPy arrays.
"""

import gc
import itertools
import linecache
import os
import threading
import weakref
from functools import cached_property

import numpy as np

from minijax.array import Array
from minijax.compiler import runtime
from minijax.compiler.donation import reuse_memory
from minijax.compiler.fuse import fuse
from minijax.compiler.hoist import hoist_invariants
from minijax.compiler.in_place import add_in_place, update_in_place
from minijax.compiler.ir_text import program_text
from minijax.compiler.native import assembly_text, llvm_text, native_functions
from minijax.compiler.passes import (
    common_subexpressions, dead_code, inline_calls, lower, transposed_products,
)
from minijax.compiler.plan import NativeMainWriter, Plan
from minijax.compiler.pool import share
from minijax.compiler.render_python import render
from minijax.compiler.simplify import exact_identities, fold_constants
from minijax.compiler.tiles import tile_loops
from minijax.jaxpr import ClosedJaxpr

__all__ = [
    "PASSES", "run_passes", "RENDERERS", "kernel_compiler", "with_globals", "load_source",
    "load_rendered", "load_native", "jit_is_disabled", "Executable", "TEXTS", "CollectorPause",
    "collector_pause", "constant_buffer", "compile_jaxpr",
]


# --- The list of passes ---------------------------------------------------------------------------

# jaxpr -> jaxpr seven times, then loop IR five times; the last is what is compiled.
PASSES = (inline_calls, dead_code, fold_constants, exact_identities, transposed_products,
          hoist_invariants, common_subexpressions, lower, tile_loops, add_in_place, fuse,
          update_in_place)


def run_passes(closed):
    """The result of each pass by its name."""
    results, program = {}, closed
    for step in PASSES:
        program = results[step.__name__] = step(program)
    return results


# --- Kernels --------------------------------------------------------------------------------------

RENDERERS = ("llvm", "python", "plain")   # LLVM, Numba on the Python source, that source as it is


def kernel_compiler(rendered):
    """The decorator `kernel` of a generated module: compile by Numba, equal functions once."""
    # Numba takes most of a second to import, and is only here to be compared with.
    from minijax.compiler import numba_runtime
    compiled = {}

    def kernel(dtypes):
        def decorate(function):
            key = rendered.keys[function.__name__]
            if key not in compiled:
                compiled[key] = numba_runtime.compile_kernel(
                    with_globals(function, numba_runtime.names), dtypes.split())
            return compiled[key]
        return decorate
    return kernel


def with_globals(function, names):
    return type(function)(function.__code__, dict(names), function.__name__)


# --- Generated modules ----------------------------------------------------------------------------

_module_numbers = itertools.count()


def load_source(source, name, names):
    """The `main` of a generated module; tracebacks and debuggers can show its lines."""
    filename = f"<minijax {name} {next(_module_numbers)}>"
    linecache.cache[filename] = (len(source), None, source.splitlines(keepends=True), filename)
    namespace = {**vars(runtime), **names, "__name__": "minijax_generated"}
    exec(compile(source, filename, "exec"), namespace)
    weakref.finalize(namespace["main"], linecache.cache.pop, filename, None)
    return namespace["main"]


def load_rendered(rendered, name, renderer):
    """The `main` of source with kernels in it, compiled by Numba or not at all."""
    kernel = runtime.kernel if renderer == "plain" else kernel_compiler(rendered)
    # the names that the first line would import are given in the namespace
    first, _, rest = rendered.source.partition("\n")
    source = f"\n{rest}" if first.startswith("from ") else rendered.source
    return load_source(source, name, {**rendered.functions, "kernel": kernel})


def load_native(plan, name):
    """(main, the library functions that it calls) of machine code."""
    writer = NativeMainWriter(plan)
    source = writer.main()
    functions = {**writer.functions, **native_functions(plan, source), "share": share}
    return load_source(source, name, functions), writer.functions


def jit_is_disabled():
    """Whether NUMBA_DISABLE_JIT asks to run generated source as plain Python."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


# --- Executables ----------------------------------------------------------------------------------

class Executable:
    """A compiled program: executable(*numpy_arrays) -> list of NumPy arrays.

    `passes` has the result of each pass; `as_text()` is the generated source.
    """

    def __init__(self, closed, renderer, donated=()):
        if renderer not in RENDERERS:
            raise ValueError(f"renderer must be one of {', '.join(RENDERERS)}, got {renderer!r}")
        self.jaxpr, self.passes = closed, run_passes(closed)
        self.optimised = self.passes["common_subexpressions"]
        self.program = self.passes["reuse_memory"] = reuse_memory(
            self.passes["update_in_place"], donated)
        self.consts = [constant_buffer(c) for c in self.optimised.consts]
        self.renderer = "plain" if jit_is_disabled() else renderer
        name = self.optimised.jaxpr.name or "program"
        if self.renderer == "llvm":
            self.main, functions = load_native(Plan(self.program), name)
        else:
            self.main, functions = load_rendered(self.rendered, name, self.renderer), \
                self.rendered.functions
        self.call = self.quick_call(bool(functions) or self.renderer == "plain")

    @cached_property
    def rendered(self):
        """The program as Python source, for reading and for Numba."""
        return render(self.program, self.optimised.jaxpr)

    def quick_call(self, calls_numpy):
        """The call path: as little Python as the program allows."""
        main, consts = self.main, self.consts

        def call(*arrays):
            try:
                return main(*consts, *arrays)
            except BufferError:
                return main(*consts, *map(runtime.as_buffer, arrays))

        def quiet_call(*arrays):
            # NumPy warns of overflow and division by zero; machine code never does.
            with np.errstate(all="ignore"):
                return main(*consts, *map(runtime.as_buffer, arrays))
        return quiet_call if calls_numpy else call

    def __call__(self, *arrays):
        return self.call(*arrays)

    def as_text(self, dialect="python"):
        """The program as text: one of TEXTS."""
        if dialect not in TEXTS:
            raise ValueError(f"no dialect {dialect!r}: expected one of "
                             f"{', '.join(map(repr, TEXTS))}")
        return TEXTS[dialect](self)

    def ir_text(self):
        """The loop IR before rendering."""
        return program_text(self.program, self.optimised.jaxpr)


# dialect -> the text of an executable: what each stage of the way to machine code made.
TEXTS = {
    "jaxpr": lambda exe: str(exe.jaxpr),
    "ir": Executable.ir_text,
    "python": lambda exe: exe.rendered.source,
    "main": lambda exe: NativeMainWriter(Plan(exe.program)).main(),
    "llvm": lambda exe: llvm_text(Plan(exe.program)),
    "asm": lambda exe: assembly_text(Plan(exe.program)),
}
TEXTS["assembly"] = TEXTS["asm"]


class CollectorPause:
    """While programs are compiled, Python does not look for garbage: almost all is still in use.

    Looking takes a third of the time of a long program. Several threads may be compiling. A Ctrl-C
    in the middle of `end` leaves the collector off until this thread's next program at the latest.
    """

    def __init__(self):
        self.compiling, self.is_on = set(), False

    def begin(self):
        self.compiling.add(threading.get_ident())
        if gc.isenabled():
            self.is_on = True
            gc.disable()

    def end(self):
        self.compiling.discard(threading.get_ident())
        if self.is_on and not self.compiling:
            gc.enable()
            self.is_on = False

    def end_in_child(self):
        """After a fork: the other threads, which may have been compiling, are not there."""
        self.compiling.clear()
        self.end()


collector_pause = CollectorPause()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=collector_pause.end_in_child)


def constant_buffer(x):
    return runtime.as_buffer(x._value if type(x) is Array else np.asarray(x))


def compile_jaxpr(jaxpr, consts=(), compiled=True, renderer="llvm", donated=()):
    """An Executable of a program: closed, or open with the values of its constvars.

    Renderer "llvm" makes machine code by LLVM; "python" gives Numba the generated source: the same
    results, slower to compile. With `compiled` false, or NUMBA_DISABLE_JIT=1 in
    the environment, that source runs as plain Python. Results may be written over the inputs that
    `donated` has the numbers of, which then have to be writable.
    """
    closed = jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, consts)
    try:
        collector_pause.begin()
        return Executable(closed, renderer if compiled else "plain", donated)
    finally:
        collector_pause.end()
