# Exported from notebooks/ref_machine.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_machine. In JAX: XLA's LLVM IR emitters.

Writes steps of the loop IR as LLVM instructions. What they compute is what `render_python` prints.
"""

from contextlib import ExitStack, contextmanager
from itertools import product
from math import prod

import numpy as np
from llvmlite import ir

from minijax.compiler import llvm_ops
from minijax.compiler.llvm_ops import (
    WIDE, convert, counted_loop, emit_op, emitters, entry_alloca, fill_lanes, fold_lanes, int64,
    load_where, memory_type, typed_constant,
)
from minijax.compiler.plan import MAX_TURNS, MAX_UNROLLED, is_tiny, is_worth_speed, weight
from minijax.loop_ir import (
    Axis, AxisValue, Const, Dynamic, InBounds, Nest, Op, Reduce, Remainder, Store, buffers_written,
    identity,
)

__all__ = ["plain_loop", "StepWriter", "is_short_reduction", "as_int64", "as_bit", "STEP_WRITERS"]


# --- Steps ----------------------------------------------------------------------------------------

def plain_loop(module):
    """The mark of a loop that LLVM should leave as it is."""
    hints = [[ir.MetaDataString(module, "llvm.loop.unroll.disable")],
             [ir.MetaDataString(module, "llvm.loop.vectorize.enable"),
              ir.Constant(ir.IntType(1), 0)]]
    operands = [module.add_metadata(hint) for hint in hints]
    mark = ir.values.MDValue(module, operands, name=str(len(module.metadata)))
    mark.operands = (mark, *operands)       # such a mark must begin with itself
    return mark


class StepWriter:
    """Writes steps at the place where a builder stands.

    `memory` has the address of each buffer. A buffer that only tiny nests use needs none: what is
    stored at a place that is known now is kept in `registers`, where loads find it.
    """

    def __init__(self, builder, memory):
        self.builder, self.memory = builder, memory
        self.registers = {}       # buffer -> {place: the number that is there}
        self.axes, self.values = {}, {}
        self.in_loop = self.is_short = False
        self.around = 1           # how often the loops around a step run it
        self.ranges = {}          # axis -> (begin, end): the turns to do, if not all

    def write(self, steps):
        for step in steps:
            STEP_WRITERS[type(step)](self, step)

    @contextmanager
    def inside_loop(self, written):
        """A part of the program that runs more than once, or not at all, and writes buffers."""
        for buffer in written:
            self.registers.pop(buffer, None)
        known, was_in_loop = {b: dict(places) for b, places in self.registers.items()}, self.in_loop
        self.in_loop = True
        yield
        self.registers, self.in_loop = known, was_in_loop

    def nest(self, nest):
        if is_tiny(nest):
            self.turn_by_turn(nest.axes, lambda: self.body(nest.body))
            return
        self.is_short = not is_worth_speed(nest, self.around)
        with self.inside_loop(buffers_written(nest)), self.loops(nest.axes):
            self.body(nest.body)

    def turn_by_turn(self, axes, write):
        for turn in product(*(range(a.size) for a in axes)):
            self.axes.update(zip(axes, turn))
            write()

    @contextmanager
    def loops(self, axes):
        with ExitStack() as stack:
            for axis in axes:
                first, count = self.span(axis)
                turn = 0 if axis.size == 1 else stack.enter_context(self.loop(count))
                self.axes[axis] = self.builder.add(first, turn) if first else turn
            yield

    def span(self, axis):
        """(the first turn of a loop, None for 0; how many there are)."""
        if axis not in self.ranges:
            return None, int64(axis.size)
        begin, end = self.ranges[axis]
        return begin, self.builder.sub(end, begin)

    @contextmanager
    def loop(self, count):
        with counted_loop(self.builder, count) as (turn, marks):
            yield turn
            if self.is_short:
                marks.append(plain_loop(self.builder.module))

    # nodes

    def body(self, body):
        for node in body:
            if isinstance(node, Store):
                self.store(node)
            else:
                self.values[node] = self.value(node)

    def value(self, node):
        if isinstance(node, Op):
            # a choice's first operand is the condition, an index's others are its bounds
            of = node.args[0 if node.name == "clamp_index" else -1]
            args = [self.values[a] for a in node.args]
            return emit_op(self.builder, node.name, of.dtype, node.dtype, args)
        if isinstance(node, Const):
            return typed_constant(node.value, node.dtype)
        if isinstance(node, AxisValue):
            return self.axis_value(node)
        if isinstance(node, InBounds):
            return as_bit(self.condition(node.guard))
        return self.reduce(node) if isinstance(node, Reduce) else self.load(node)

    def axis_value(self, node):
        index = self.index(node.index)
        if isinstance(index, int):
            return typed_constant(np.asarray(index).astype(node.dtype), node.dtype)
        return convert(self.builder, index, WIDE, node.dtype)

    # memory

    def load(self, node):
        condition, index = self.condition(node.guard), self.index(node.index)
        if condition is False:
            return typed_constant(node.dtype.type(0), node.dtype)
        if condition is True:
            return self.element(node.buffer, index)
        return load_where(self.builder, node.dtype, condition, self.memory[node.buffer],
                          as_int64(index))

    def element(self, buffer, index):
        known = self.registers.get(buffer, {}).get(index)
        if known is not None:
            return known
        return llvm_ops.load(self.builder, buffer.dtype, self.memory[buffer], as_int64(index))

    def store(self, node):
        buffer, index, value = node.buffer, self.index(node.index), self.values[node.value]
        if node.combine not in (None, "replace"):
            old = self.element(buffer, index)
            value = emit_op(self.builder, node.combine, buffer.dtype, buffer.dtype, [old, value])
        if buffer in self.memory:
            llvm_ops.store(self.builder, buffer.dtype, self.memory[buffer], as_int64(index), value)
        if isinstance(index, int) and not self.in_loop:
            self.registers.setdefault(buffer, {})[index] = value
        else:
            self.registers.pop(buffer, None)

    # index maps: Python integers as far as they are known now

    def index(self, index):
        offset, out, builder = index.offset, None, self.builder
        for atom, c in index.terms.items():
            value = self.atom(atom)
            if isinstance(value, int):
                offset += c * value
                continue
            term = value if c == 1 else builder.mul(value, int64(c), flags=("nsw",))
            out = term if out is None else builder.add(out, term, flags=("nsw",))
        if out is None:
            return offset
        return builder.add(out, int64(offset), flags=("nsw",)) if offset else out

    def atom(self, atom):
        if isinstance(atom, Axis):
            return self.axes[atom]
        if isinstance(atom, Dynamic):
            return self.values[atom.node]
        inner, n, builder = self.index(atom.index), atom.divisor, self.builder
        is_remainder = isinstance(atom, Remainder)
        if isinstance(inner, int):
            return inner % n if is_remainder else inner // n
        # rounded down, also for numbers below 0: move them up by a multiple of the divisor
        low = atom.index.bounds()[0]
        lift = 0 if low >= 0 else -(low // n)
        moved = builder.add(inner, int64(lift * n)) if lift else inner
        if is_remainder:
            return builder.urem(moved, int64(n))
        quotient = builder.udiv(moved, int64(n))
        return builder.sub(quotient, int64(lift)) if lift else quotient

    def condition(self, guard):
        """Whether a guard holds: True or False if that is known, else a value of one bit."""
        out = True
        for index, size in guard:
            place = self.index(index)
            if isinstance(place, int):
                if not 0 <= place < size:
                    return False
                continue
            # as an unsigned number, one below 0 is large
            inside = self.builder.icmp_unsigned("<", place, int64(size))
            out = inside if out is True else self.builder.and_(out, inside)
        return out

    # reductions

    def reduce(self, node):
        start = typed_constant(identity(node.name, node.dtype).value, node.dtype)
        if node.lanes == 1 and is_short_reduction(node):
            return self.reduce_turn_by_turn(node, start)
        builder, dtype = self.builder, node.dtype
        lanes = entry_alloca(builder, memory_type(dtype), node.lanes)
        fill_lanes(builder, dtype, node.lanes, lanes, start)
        if node.lanes == 1:
            with self.loops(node.axes):
                self.accumulate(node, lanes, int64(0))
        else:
            self.laned_loops(node, lanes)
        return fold_lanes(builder, dtype, node.lanes, lanes, emitters[node.name])

    def reduce_turn_by_turn(self, node, total):
        def add():
            nonlocal total
            self.body(node.body)
            total = emit_op(self.builder, node.name, node.dtype, node.dtype,
                            [total, self.values[node.value]])
        self.turn_by_turn(node.axes, add)
        return total

    def laned_loops(self, node, lanes):
        """The innermost loop in pieces of as many elements as there are lanes."""
        *outer, inner = [a for a in node.axes if a.size != 1]
        self.axes.update((a, 0) for a in node.axes if a.size == 1)
        pieces, rest = divmod(inner.size, node.lanes)
        with self.loops(outer):
            if pieces:
                with self.loop(int64(pieces)) as piece:
                    first = self.builder.mul(piece, int64(node.lanes))
                    self.piece(node, inner, lanes, first, node.lanes)
            if rest:
                self.piece(node, inner, lanes, int64(pieces * node.lanes), rest)

    def piece(self, node, inner, lanes, first, count):
        # a loop of a known number of turns disappears: then accumulators are vector registers
        with self.loop(int64(count)) as lane:
            self.axes[inner] = self.builder.add(first, lane)
            self.accumulate(node, lanes, lane)

    def accumulate(self, node, lanes, lane):
        self.body(node.body)
        old = llvm_ops.load(self.builder, node.dtype, lanes, lane)
        new = emit_op(self.builder, node.name, node.dtype, node.dtype,
                      [old, self.values[node.value]])
        llvm_ops.store(self.builder, node.dtype, lanes, lane, new)


def is_short_reduction(node):
    turns = prod([a.size for a in node.axes])
    return turns <= MAX_TURNS and turns * weight(node.body) <= MAX_UNROLLED


def as_int64(index):
    return int64(index) if isinstance(index, int) else index


def as_bit(condition):
    return ir.Constant(ir.IntType(1), int(condition)) if isinstance(condition, bool) else condition


# The method that writes each kind of step.
STEP_WRITERS = {Nest: StepWriter.nest}
