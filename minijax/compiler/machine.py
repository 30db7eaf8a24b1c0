# Exported from notebooks/ref_machine.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_machine. In JAX: XLA's compiler and JIT for the CPU.

From the text of an LLVM module to functions that Python can call: LLVM optimises the module and
makes an object file of it, in memory; a linker puts the object where it can run. Numba does the
same, with a compiler of Python in front of it.
"""

import ctypes
import itertools
import os
import struct
import threading
from functools import cache

import llvmlite
import llvmlite.binding as llvm
import numpy as np

__all__ = [
    "lock", "target_machine", "cpu_features", "identity", "optimised", "quick_passes",
    "compile_text", "assembly", "BLAS_FUNCTIONS", "SPELLINGS", "blas_address", "numpy_address",
    "scipy_address", "C_FUNCTIONS", "linker", "METHOD_DEF", "METH_FASTCALL", "new_function",
    "MachineCode", "function_at", "place_of",
]


# --- Optimisation ---------------------------------------------------------------------------------

lock = threading.RLock()
if hasattr(os, "register_at_fork"):
    os.register_at_fork(before=lock.acquire, after_in_parent=lock.release,
                        after_in_child=lock.release)


@cache
def target_machine(effort):
    """The compiler's back end for this CPU; effort: 1 … 3, as in `clang -O3`."""
    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    return llvm.Target.from_default_triple().create_target_machine(
        cpu=llvm.get_host_cpu_name(), features=cpu_features(), opt=effort, reloc="pic",
        codemodel="default")


@cache
def cpu_features():
    return llvm.get_host_cpu_features().flatten()


def identity():
    """What machine code depends on besides the program."""
    return f"llvmlite {llvmlite.__version__} {llvm.get_host_cpu_name()} {cpu_features()}"


def optimised(text, effort):
    """The module of a text, optimised; LLVM looks for vectors from effort 2 on."""
    module = llvm.parse_assembly(text)
    options = llvm.create_pipeline_tuning_options(speed_level=effort)
    options.slp_vectorization = False
    builder = llvm.create_pass_builder(target_machine(effort), options)
    manager = builder.getModulePassManager() if effort > 1 else quick_passes()
    manager.run(module, builder)
    return module


def quick_passes():
    """What instructions that are written well still need: memory of one call becomes registers."""
    manager = llvm.create_new_module_pass_manager()
    manager.add_sroa_pass()
    manager.add_instruction_combine_pass()
    manager.add_simplify_cfg_pass()
    return manager


def compile_text(text, effort):
    """The object file of a module."""
    with lock:
        return target_machine(effort).emit_object(optimised(text, effort))


def assembly(text, effort):
    """The instructions of the CPU, as text."""
    with lock:
        return target_machine(effort).emit_assembly(optimised(text, effort))


# --- Where BLAS is --------------------------------------------------------------------------------

# Products of matrices are calls of the library that NumPy has loaded already, so one pool of
# threads serves both. Where it can't be found by name, SciPy has addresses of its own.
BLAS_FUNCTIONS = [letter + name for letter in "sdcz" for name in ("gemm", "gemv")]

# How they are spelled in NumPy's wheels, and in libraries of distributions: 64-bit and 32-bit ones.
SPELLINGS = "scipy_{}_64_", "{}_64_", "{}_"


@cache
def blas_address(name):
    return numpy_address(name) or scipy_address(name)


def numpy_address(name):
    """The address of a function in the library that NumPy is linked to; None if it is not found."""
    try:
        library = ctypes.CDLL(np._core._multiarray_umath.__file__)
    except (AttributeError, OSError):
        return None
    found = (getattr(library, spelling.format(name), None) for spelling in SPELLINGS)
    return next((ctypes.cast(f, ctypes.c_void_p).value for f in found if f is not None), None)


def scipy_address(name):
    """The address that SciPy publishes for Cython, in a library of its own."""
    from scipy.linalg import cython_blas       # takes longer to import than minijax
    capsule, api = cython_blas.__pyx_capi__[name], ctypes.pythonapi
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)(
        ("PyCapsule_GetName", api))
    address_in = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)(
        ("PyCapsule_GetPointer", api))
    return address_in(capsule, name_of(capsule))


# --- Linking --------------------------------------------------------------------------------------

C_FUNCTIONS = "PyErr_SetString", "PyEval_SaveThread", "PyEval_RestoreThread", "Py_IncRef"


@cache
def linker():
    """The linker, which knows the functions and variables of Python that entries use.

    It is LLVM's JITLink: a program's code and constants lie in one piece of memory. The older
    linker asks for each apart, and aborts the process where they come to lie too far apart.
    """
    api = ctypes.pythonapi
    for name in C_FUNCTIONS:
        llvm.add_symbol(name, ctypes.cast(getattr(api, name), ctypes.c_void_p).value)
    llvm.add_symbol("_Py_NoneStruct", id(None))
    error = ctypes.c_void_p.in_dll(api, "PyExc_BufferError")
    llvm.add_symbol("PyExc_BufferError", ctypes.addressof(error))
    return llvm.create_lljit_compiler(target_machine(2), use_jit_link=True)


METHOD_DEF = "PPiP"                 # a PyMethodDef: name, address, flags, documentation
METH_FASTCALL = 0x80              # called with a C array of arguments
new_function = ctypes.pythonapi.PyCFunction_NewEx
new_function.argtypes = [ctypes.c_void_p, ctypes.py_object, ctypes.py_object]
new_function.restype = ctypes.py_object

_numbers = itertools.count()


class MachineCode:
    """A linked object: `functions()` are its entries. Freed when no function is left."""

    def __init__(self, image, names):
        with lock:
            library = llvm.JITLibraryBuilder().add_object_img(image).add_current_process()
            for name in names:
                library.export_symbol(name)
            for name in BLAS_FUNCTIONS:
                if f"minijax_{name}".encode() in image:
                    library.import_symbol(f"minijax_{name}", blas_address(name))
            self.linker = linker()            # must live longer than what it has linked
            self.linked = library.link(self.linker, f"program_{next(_numbers)}")
        self.addresses = {name: self.linked[name] for name in names}

    def functions(self):
        """{name: function}; each holds on to this object, as methods do to theirs."""
        return {name: function_at(name, address, self) for name, address in self.addresses.items()}


def function_at(name, address, owner):
    """A function of Python that runs the code at an address, and holds on to its owner.

    It also holds on to its description, in bytes in a tuple. A cycle of objects that nobody refers
    to is taken apart by emptying objects and dicts, but not those, and the function still looks at
    its description when it goes.
    """
    name = name.encode()
    definition = struct.pack(METHOD_DEF, place_of(name), address, METH_FASTCALL, 0)
    return new_function(place_of(definition), (owner, name, definition), None)


def place_of(data):
    """Where bytes lie in memory."""
    return ctypes.cast(data, ctypes.c_void_p).value
