# Exported from notebooks/ref_machine.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_machine. In JAX: XLA's CPU compiler.

One LLVM module for a program. An entry has the C interface of Python's built-in functions: it reads
the addresses of the elements out of its arguments, NumPy arrays, and calls the functions that hold
the loops. So Python pays for a call what it pays for `abs`.
"""

from contextlib import contextmanager, nullcontext

from llvmlite import ir

from minijax.compiler import render_loops  # adds loops and branches to what StepWriter writes
from minijax.compiler import blas  # adds products
from minijax.compiler.llvm_ops import (
    BIT, INT64, NOT_CONTIGUOUS, WIDE, data_of, entry_alloca, int64, load, memory_type, minimum,
)
from minijax.compiler.plan import WORTH_RELEASING, outermost
from minijax.compiler.render_llvm import StepWriter

__all__ = ["POINTER", "ModuleWriter", "SAVE_THREAD", "RESTORE_THREAD", "EntryWriter"]


# --- The module -----------------------------------------------------------------------------------

POINTER = ir.IntType(8).as_pointer()


class ModuleWriter:
    """Writes the functions of a plan into an LLVM module; equal parts become one function."""

    def __init__(self, plan, part_texts):
        self.plan, self.module = plan, ir.Module("minijax")
        self.functions, texts = {}, iter(part_texts)
        self.is_left = False      # whether there are loops that LLVM should make fast
        for entry in plan.entries:
            parts = [self.part(part, next(texts)) for part in entry.parts]
            EntryWriter(plan, self.module, entry).write(parts)

    def part(self, part, text):
        """(the function of a part, the buffers whose addresses are its parameters)."""
        plan = self.plan
        own = {b for b in part.buffers if b in plan.stack and len(plan.users[b]) == 1}
        params = [b for b in part.buffers if b not in plan.registers and b not in own]
        if text not in self.functions:
            self.functions[text] = self.write_part(part, params, own)
        return self.functions[text], params

    def write_part(self, part, params, own):
        kinds = [memory_type(b.dtype).as_pointer() for b in params]
        kinds += [INT64, INT64] if part.pieces else []
        function = ir.Function(self.module, ir.FunctionType(ir.VoidType(), kinds),
                               f"part_{len(self.functions)}")
        function.linkage = "internal"
        function.attributes.add("noinline")
        function.attributes.add("nounwind")
        for arg, _ in zip(function.args, params):
            arg.add_attribute("noalias")
        builder = ir.IRBuilder(function.append_basic_block("entry"))
        memory = dict(zip(params, function.args))
        memory.update((b, entry_alloca(builder, memory_type(b.dtype), b.size)) for b in own)
        writer = StepWriter(builder, memory)
        if part.pieces:
            writer.ranges[outermost(part.steps[0])] = function.args[-2:]
        writer.axes.update((axis, load(builder, b.dtype, memory[b], int64(0)))
                           for axis, b in part.turns.items())
        writer.write(part.steps)
        self.is_left |= writer.is_left
        builder.ret_void()
        return function


# What is called of Python's C interface.
SAVE_THREAD, RESTORE_THREAD = "PyEval_SaveThread", "PyEval_RestoreThread"


class EntryWriter:
    """Writes PyObject *entry(PyObject *self, PyObject *const *args, Py_ssize_t count)."""

    def __init__(self, plan, module, entry):
        self.plan, self.entry, self.module = plan, entry, module
        kind = ir.FunctionType(POINTER, [POINTER, POINTER.as_pointer(), INT64])
        self.function = ir.Function(self.module, kind, entry.name)
        self.builder = ir.IRBuilder(self.function.append_basic_block("entry"))

    def write(self, parts):
        builder, entry = self.builder, self.entry
        addresses = self.addresses()
        self.check_order()
        release = entry.pieces or entry.work > WORTH_RELEASING
        if release:
            state = builder.call(self.python(SAVE_THREAD, POINTER), [])
        with self.pieces() if entry.pieces else nullcontext([]) as bounds:
            for function, params in parts:
                builder.call(function, [addresses[b] for b in params] + bounds)
        if release:
            builder.call(self.python(RESTORE_THREAD, ir.VoidType(), POINTER), [state])
        none = self.variable("_Py_NoneStruct", ir.IntType(8))
        builder.call(self.python("Py_IncRef", ir.VoidType(), POINTER), [none])
        builder.ret(none)

    def python(self, name, result, *operands):
        found = self.module.globals.get(name)
        return found or ir.Function(self.module, ir.FunctionType(result, operands), name)

    def variable(self, name, kind):
        return self.module.globals.get(name) or ir.GlobalVariable(self.module, kind, name)

    def argument(self, number):
        return self.builder.load(self.builder.gep(self.function.args[1], [int64(number)]))

    def addresses(self):
        """buffer -> address; notes in `wrong` whether an array is not in row-major order."""
        builder, plan, entry, found = self.builder, self.plan, self.entry, {}
        self.wrong = ir.Constant(BIT, 0)
        for number, b in enumerate(entry.arrays):
            found[b], wrong = data_of(builder, self.argument(number), memory_type(b.dtype))
            self.wrong = builder.or_(self.wrong, wrong)
        bases = self.bases()
        for b in dict.fromkeys(b for part in entry.parts for b in part.buffers):
            kind = memory_type(b.dtype)
            if b in plan.stack and len(plan.users[b]) > 1:
                found[b] = entry_alloca(builder, kind, b.size)
            for offsets, base in bases:
                if b in offsets:
                    place = builder.gep(base, [int64(offsets[b])])
                    found[b] = builder.bitcast(place, kind.as_pointer())
        return found

    def bases(self):
        """[(offsets, address)] of the workspace and of the thread's own memory."""
        given = [self.plan.offsets] * self.entry.needs_workspace
        given += [self.plan.scratch] * bool(self.entry.scratch)
        self.count = len(self.entry.arrays) + len(given)
        return [(offsets, data_of(self.builder, self.argument(number), ir.IntType(8))[0])
                for number, offsets in enumerate(given, len(self.entry.arrays))]

    @contextmanager
    def pieces(self):
        """A loop that takes piece after piece until threads together have taken all.

        Yields where a piece begins and where it ends. How many are taken says the last argument.
        """
        builder, (size, length) = self.builder, self.entry.pieces
        taken, _ = data_of(builder, self.argument(self.count), INT64)
        next_one, body, end = map(builder.append_basic_block, ("next", "piece", "end"))
        builder.branch(next_one)
        builder.position_at_end(next_one)
        begin = builder.mul(builder.atomic_rmw("add", taken, int64(1), "monotonic"), int64(length))
        builder.cbranch(builder.icmp_signed("<", begin, int64(size)), body, end)
        builder.position_at_end(body)
        yield [begin, minimum(builder, WIDE, builder.add(begin, int64(length)), int64(size))]
        builder.branch(next_one)
        builder.position_at_end(end)

    def check_order(self):
        """Return with an exception if an array is not in row-major order."""
        with self.builder.if_then(self.wrong, likely=False):
            error = self.builder.load(self.variable("PyExc_BufferError", POINTER))
            function = self.python("PyErr_SetString", ir.VoidType(), POINTER, POINTER)
            self.builder.call(function, [error, self.message()])
            self.builder.ret(ir.Constant(POINTER, None))

    def message(self):
        text = bytearray(NOT_CONTIGUOUS.encode() + b"\0")
        kind = ir.ArrayType(ir.IntType(8), len(text))
        found = self.variable("message", kind)
        found.global_constant, found.initializer = True, ir.Constant(kind, text)
        found.linkage = "internal"
        return self.builder.bitcast(found, POINTER)
