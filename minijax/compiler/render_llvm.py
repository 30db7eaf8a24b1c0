# Exported from notebooks/ref_compiler.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_compiler. In JAX: XLA's LLVM IR emitters.

Writes a loop IR as LLVM instructions. What it computes is what `render_python` prints; but Numba's
front end, which spends some milliseconds on each line of Python, has nothing left to do.
"""

from contextlib import ExitStack, contextmanager
from math import prod

import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.np.numpy_support import from_dtype

from minijax.compiler import numba_runtime
from minijax.compiler.numba_runtime import (
    Memory, clamp, compare, emitters, float_to_integer, fold_lanes, is_float, is_signed, load_where,
)
from minijax.compiler.render_python import FUNCTION_NAMES
from minijax.loop_ir import (
    Axis, AxisValue, Const, Dynamic, InBounds, Op, Reduce, Remainder, Store, identity,
)

__all__ = [
    "INT64", "int64", "llvm_constant", "ARITHMETIC", "COMPARISONS", "emit_op", "emit_conversion",
    "SHORT", "evaluations", "plain_loop", "NestWriter", "emit_combination", "write_nests",
]


# --- Values ---------------------------------------------------------------------------------------

INT64 = ir.IntType(64)


def int64(number):
    return ir.Constant(INT64, number)


def llvm_constant(context, value, dtype):
    """A typed constant; floats by their bits, so that none is rounded twice."""
    kind = context.get_value_type(from_dtype(dtype))
    if dtype.kind == "f":
        return ir.Constant(kind, float(value))
    return ir.Constant(kind, int(value))


# --- Operations -----------------------------------------------------------------------------------

ARITHMETIC = {"add": ("fadd", "add"), "sub": ("fsub", "sub"), "mul": ("fmul", "mul"),
              "div": ("fdiv", None), "and": (None, "and_"), "or": (None, "or_"),
              "xor": (None, "xor")}
COMPARISONS = {"eq": "==", "ne": "!=", "lt": "<", "le": "<=", "gt": ">", "ge": ">="}


def emit_op(builder, name, t, dtype, args):
    """The instructions for an operation on operands of Numba type `t` with a result of `dtype`."""
    if name in ARITHMETIC and ARITHMETIC[name][0 if is_float(t) else 1]:
        return getattr(builder, ARITHMETIC[name][0 if is_float(t) else 1])(*args)
    if name in COMPARISONS:
        if name == "ne" and is_float(t):
            return builder.fcmp_unordered("!=", *args)
        return compare(builder, t, COMPARISONS[name], *args)
    if name == "neg":
        return (builder.fneg if is_float(t) else builder.neg)(*args)
    if name == "not":
        return builder.not_(*args)
    if name == "select":
        return builder.select(*args)
    if name == "convert":
        return emit_conversion(builder, args[0], t, from_dtype(dtype))
    if name == "bitcast":
        return builder.bitcast(args[0], numba_runtime.llvm_type(dtype))
    if name == "clamp_index":
        wide = emit_conversion(builder, args[0], t, types.int64)
        return clamp(builder, t, args[0], wide, *args[1:])
    function = "divide_int" if name == "div" else FUNCTION_NAMES.get(name, name)
    return emitters[function](builder, t, *args)


def emit_conversion(builder, value, source, target):
    if source == target:
        return value
    if target == types.boolean:
        return emitters["to_bool"](builder, source, value)
    if is_float(source) and not is_float(target):
        return float_to_integer(builder, value, target)
    kind = numba_runtime.llvm_type(np.dtype(str(target)))
    if is_float(source):
        is_wider = target.bitwidth > source.bitwidth
        return (builder.fpext if is_wider else builder.fptrunc)(value, kind)
    if is_float(target):
        return (builder.sitofp if is_signed(source) else builder.uitofp)(value, kind)
    if kind.width <= value.type.width:
        return builder.trunc(value, kind) if kind.width < value.type.width else value
    return (builder.sext if is_signed(source) else builder.zext)(value, kind)


# --- Nests ----------------------------------------------------------------------------------------

# Below this many runs of the body, making a loop fast takes LLVM longer than it ever saves.
SHORT = 2048


def evaluations(nest):
    """How often the innermost body of a nest runs."""
    inner = [prod([a.size for a in n.axes]) for n in nest.body if isinstance(n, Reduce)]
    return nest.count() * max(inner, default=1)


def plain_loop(module):
    """The mark of a loop that LLVM should leave as it is."""
    hints = [[ir.MetaDataString(module, "llvm.loop.unroll.disable")],
             [ir.MetaDataString(module, "llvm.loop.vectorize.enable"),
              ir.Constant(ir.IntType(1), 0)]]
    operands = [module.add_metadata(hint) for hint in hints]
    mark = ir.values.MDValue(module, operands, name=str(len(module.metadata)))
    mark.operands = (mark, *operands)       # such a mark must begin with itself
    return mark


class NestWriter:
    """Writes nests at the place where a builder stands."""

    def __init__(self, context, builder, memory):
        self.context, self.builder = context, builder
        self.memory = memory      # buffer -> its address
        self.axes, self.values = {}, {}

    def write(self, nest):
        self.is_short = evaluations(nest) < SHORT
        with self.loops(nest.axes):
            self.body(nest.body)

    @contextmanager
    def loops(self, axes):
        with ExitStack() as stack:
            for axis in axes:
                self.axes[axis] = int64(0) if axis.size == 1 else stack.enter_context(
                    self.loop(int64(axis.size)))
            yield

    @contextmanager
    def loop(self, count):
        """A loop of at least one turn, with its test at the end, as LLVM likes loops best."""
        builder = self.builder
        before, body = builder.block, builder.append_basic_block("loop")
        builder.branch(body)
        builder.position_at_end(body)
        turn = builder.phi(INT64)
        turn.add_incoming(int64(0), before)
        yield turn
        following = builder.add(turn, int64(1), flags=("nuw", "nsw"))
        turn.add_incoming(following, builder.block)
        end = builder.append_basic_block("end")
        branch = builder.cbranch(builder.icmp_signed("<", following, count), body, end)
        if self.is_short:
            branch.set_metadata("llvm.loop", plain_loop(builder.module))
        builder.position_at_end(end)

    def body(self, body):
        for node in body:
            if isinstance(node, Store):
                self.store(node)
            elif isinstance(node, Reduce):
                self.values[node] = self.reduce(node)
            else:
                self.values[node] = self.value(node)

    def value(self, node):
        if isinstance(node, Op):
            # a choice's first operand is the condition, an index's others are its bounds
            of = node.args[0 if node.name == "clamp_index" else -1]
            args = [self.values[a] for a in node.args]
            return emit_op(self.builder, node.name, from_dtype(of.dtype), node.dtype, args)
        if isinstance(node, Const):
            return llvm_constant(self.context, node.value, node.dtype)
        if isinstance(node, AxisValue):
            return emit_conversion(self.builder, self.index(node.index), types.int64,
                                   from_dtype(node.dtype))
        if isinstance(node, InBounds):
            return self.condition(node.guard)
        return self.load(node)

    def load(self, node):
        t = Memory(from_dtype(node.dtype))
        place = self.memory[node.buffer], self.index(node.index)
        if node.guard:
            return load_where(self.context, self.builder, t, self.condition(node.guard), *place)
        return numba_runtime.load(self.context, self.builder, t, *place)

    def store(self, node):
        t = from_dtype(node.buffer.dtype)
        memory, index = self.memory[node.buffer], self.index(node.index)
        value = self.values[node.value]
        if node.combine not in (None, "replace"):
            old = numba_runtime.load(self.context, self.builder, Memory(t), memory, index)
            value = emit_op(self.builder, node.combine, t, node.buffer.dtype, [old, value])
        numba_runtime.store(self.context, self.builder, t, memory, index, value)

    # index maps

    def index(self, index):
        out = int64(index.offset)
        for atom, c in index.terms.items():
            out = self.builder.add(out, self.builder.mul(self.atom(atom), int64(c)))
        return out

    def atom(self, atom):
        if isinstance(atom, Axis):
            return self.axes[atom]
        if isinstance(atom, Dynamic):
            return self.values[atom.node]
        # rounded down, also for numbers below 0: move them up by a multiple of the divisor
        low = atom.index.bounds()[0]
        lift = 0 if low >= 0 else -(low // atom.divisor)
        moved = self.builder.add(self.index(atom.index), int64(lift * atom.divisor))
        if isinstance(atom, Remainder):
            return self.builder.urem(moved, int64(atom.divisor))
        return self.builder.sub(self.builder.udiv(moved, int64(atom.divisor)), int64(lift))

    def condition(self, guard):
        out = ir.Constant(ir.IntType(1), 1)
        for index, size in guard:
            # as an unsigned number, one below 0 is large
            inside = self.builder.icmp_unsigned("<", self.index(index), int64(size))
            out = self.builder.and_(out, inside)
        return out

    # reductions

    def reduce(self, node):
        t = from_dtype(node.dtype)
        start = llvm_constant(self.context, identity(node.name, node.dtype).value, node.dtype)
        data_type = self.context.get_data_type(t)
        lanes = cgutils.alloca_once(self.builder, data_type, size=node.lanes)
        with self.loop(int64(node.lanes)) as lane:
            numba_runtime.store(self.context, self.builder, t, lanes, lane, start)
        if node.lanes == 1:
            with self.loops(node.axes):
                self.accumulate(node, t, lanes, int64(0))
        else:
            self.laned_loops(node, t, lanes)
        combine = emit_combination(node.name, t, node.dtype)
        return fold_lanes(self.context, self.builder, t, node.lanes, lanes, combine)

    def laned_loops(self, node, t, lanes):
        """The innermost loop in pieces of as many elements as there are lanes."""
        *outer, inner = [a for a in node.axes if a.size != 1]
        self.axes.update((a, int64(0)) for a in node.axes if a.size == 1)
        builder, count = self.builder, node.lanes
        with self.loops(outer), self.loop(int64(-(-inner.size // count))) as piece:
            first = builder.mul(piece, int64(count))
            left = builder.sub(int64(inner.size), first)
            is_last = builder.icmp_signed("<", left, int64(count))
            with self.loop(builder.select(is_last, left, int64(count))) as lane:
                self.axes[inner] = builder.add(first, lane)
                self.accumulate(node, t, lanes, lane)

    def accumulate(self, node, t, lanes, lane):
        self.body(node.body)
        old = numba_runtime.load(self.context, self.builder, Memory(t), lanes, lane)
        new = emit_op(self.builder, node.name, t, node.dtype, [old, self.values[node.value]])
        numba_runtime.store(self.context, self.builder, t, lanes, lane, new)


def emit_combination(name, t, dtype):
    return lambda builder, _, x, y: emit_op(builder, name, t, dtype, [x, y])


def write_nests(context, builder, nests, memory):
    """Write nests one after the other; `memory` has the address of each buffer."""
    writer = NestWriter(context, builder, memory)
    for nest in nests:
        writer.write(nest)
