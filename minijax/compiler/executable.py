# Exported from notebooks/11_jit.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: 11_jit. In JAX: jax/_src/interpreters/pxla.py (UnloadedMeshExecutable).

Runs the passes, and turns their result into a function of NumPy arrays.
"""

import itertools
import linecache
import os
import threading

import numpy as np

from minijax.array import Array
from minijax.compiler import runtime
from minijax.compiler.fuse import fuse
from minijax.compiler.in_place import update_in_place
from minijax.compiler.ir_text import program_text
from minijax.compiler.passes import common_subexpressions, dead_code, inline_calls, lower
from minijax.compiler.render_python import render
from minijax.jaxpr import ClosedJaxpr
from minijax.loop_ir import Nest

__all__ = [
    "PASSES", "run_passes", "RENDERERS", "forget_kernels", "kernel_compiler", "compile_function",
    "with_globals", "load_module", "jit_is_disabled", "Executable", "constant_buffer",
    "compile_jaxpr",
]


# --- The list of passes ---------------------------------------------------------------------------

# jaxpr -> jaxpr three times, then loop IR three times; `render` makes source of the last.
PASSES = (inline_calls, dead_code, common_subexpressions, lower, fuse, update_in_place)


def run_passes(closed):
    """The result of each pass by its name."""
    results, program = {}, closed
    for step in PASSES:
        program = results[step.__name__] = step(program)
    return results


# --- Kernels --------------------------------------------------------------------------------------

RENDERERS = ("llvm", "python", "plain")      # Numba by intrinsics, Numba on the source, no Numba

_kernels = {}                     # (renderer, structural text) -> compiled function
_kernels_lock = threading.RLock()


def forget_kernels():
    """Drop every compiled kernel; executables that are in use keep theirs."""
    with _kernels_lock:
        _kernels.clear()


def kernel_compiler(rendered, renderer):
    """The decorator `kernel` of a generated module: compile, unless an equal function was."""
    def kernel(dtypes):
        def decorate(function):
            key = renderer, rendered.keys[function.__name__]
            with _kernels_lock:
                if key not in _kernels:
                    made_of = rendered.kernels[function.__name__]
                    _kernels[key] = compile_function(renderer, function, made_of, dtypes.split())
                return _kernels[key]
        return decorate
    return kernel


def compile_function(renderer, function, made_of, dtypes):
    # Numba takes most of a second to import, and programs that never jit don't need it.
    from minijax.compiler import numba_runtime, render_llvm
    steps, buffers, turns = made_of
    if renderer == "python" or turns or not all(isinstance(s, Nest) for s in steps):
        return numba_runtime.compile_kernel(with_globals(function, numba_runtime.names), dtypes)
    return numba_runtime.compile_emitted(
        lambda context, builder, addresses: render_llvm.write_nests(
            context, builder, steps, dict(zip(buffers, addresses))), dtypes)


def with_globals(function, names):
    return type(function)(function.__code__, dict(names), function.__name__)


# --- Generated modules ----------------------------------------------------------------------------

_module_numbers = itertools.count()


def load_module(rendered, name, renderer):
    """Execute generated source; tracebacks and debuggers can show its lines."""
    filename = f"<minijax {name} {next(_module_numbers)}>"
    lines = rendered.source.splitlines(keepends=True)
    linecache.cache[filename] = (len(rendered.source), None, lines, filename)
    namespace = {**vars(runtime), **rendered.functions, "__name__": "minijax_generated"}
    plain = renderer == "plain"
    kernel = runtime.kernel if plain else kernel_compiler(rendered, renderer)
    body = rendered.source.split("\n\n\n", 1)[1] if rendered.source.startswith("from ") else \
        rendered.source
    offset = rendered.source[:len(rendered.source) - len(body)].count("\n")
    namespace["kernel"] = kernel
    exec(compile("\n" * offset + body, filename, "exec"), namespace)
    return namespace["main"]


def jit_is_disabled():
    """Whether NUMBA_DISABLE_JIT asks to run generated source as plain Python."""
    return os.environ.get("NUMBA_DISABLE_JIT", "0") not in ("", "0")


# --- Executables ----------------------------------------------------------------------------------

class Executable:
    """A compiled program: executable(*numpy_arrays) -> list of NumPy arrays.

    `passes` has the result of each pass; `as_text()` is the generated source.
    """

    def __init__(self, closed, renderer):
        self.jaxpr = closed
        self.passes = run_passes(closed)
        optimised = self.passes["common_subexpressions"]
        self.rendered = render(self.passes["update_in_place"], optimised.jaxpr)
        self.consts = [constant_buffer(c) for c in optimised.consts]
        if renderer not in RENDERERS:
            raise ValueError(f"renderer must be one of {', '.join(RENDERERS)}, got {renderer!r}")
        self.renderer = "plain" if jit_is_disabled() else renderer
        self.main = load_module(self.rendered, optimised.jaxpr.name or "program", self.renderer)
        self.call = self.quick_call()

    def quick_call(self):
        """The call path: as little Python as the program allows."""
        main, consts = self.main, self.consts
        # NumPy warns of overflow and division by zero; kernels in machine code never do.
        quiet = bool(self.rendered.functions) or self.renderer == "plain"

        def call(*arrays):
            try:
                return main(*consts, *arrays)
            except BufferError:
                return main(*consts, *map(runtime.as_buffer, arrays))

        def quiet_call(*arrays):
            with np.errstate(all="ignore"):
                return main(*consts, *map(runtime.as_buffer, arrays))
        return quiet_call if quiet else call

    def __call__(self, *arrays):
        return self.call(*arrays)

    def as_text(self):
        """The generated Python source."""
        return self.rendered.source

    def ir_text(self):
        """The loop IR before rendering."""
        return program_text(self.passes["update_in_place"], self.passes["common_subexpressions"].jaxpr)


def constant_buffer(x):
    return runtime.as_buffer(x._value if type(x) is Array else np.asarray(x))


def compile_jaxpr(jaxpr, consts=(), compiled=True, renderer="llvm"):
    """An Executable of a program: closed, or open with the values of its constvars.

    Renderer "llvm" writes machine instructions through Numba; "python" gives Numba the generated
    source: the same results, slower to compile. With `compiled` false, or NUMBA_DISABLE_JIT=1 in
    the environment, that source runs as plain Python.
    """
    closed = jaxpr if isinstance(jaxpr, ClosedJaxpr) else ClosedJaxpr(jaxpr, consts)
    return Executable(closed, renderer if compiled else "plain")
