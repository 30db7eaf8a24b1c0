# Exported from notebooks/ref_machine.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_machine. In JAX: XLA's LLVM IR emitters.

Writes steps of the loop IR as LLVM instructions. What they compute is what `render_python` prints.
"""

from contextlib import ExitStack, contextmanager, nullcontext
from itertools import product

import numpy as np
from llvmlite import ir

from minijax.compiler import llvm_ops
from minijax.compiler.llvm_math import number_of
from minijax.compiler.llvm_ops import (
    WIDE, constant, convert, counted_loop, emit_op, emitters, entry_alloca, fill_lanes, fold_lanes,
    int64, load_where, memory_type, typed_constant,
)
from minijax.compiler.plan import is_short_reduction, is_tiny, is_worth_speed
from minijax.compiler.vectors import (
    FEW_VECTORS, Lanes, VECTOR_LANES, first_lanes, fold_vector, is_in_vectors, is_vector, matched,
    numbers_in, splat, stride_of, turns_of_lanes, vector_axis, vector_load, vector_of, vector_store,
)
from minijax.loop_ir import (
    Axis, AxisValue, Const, Dynamic, InBounds, Nest, Op, Reduce, Remainder, Store, buffers_written,
    dynamic_nodes, identity,
)

__all__ = ["plain_loop", "StepWriter", "is_in_one_vector", "as_int64", "as_bit", "STEP_WRITERS"]


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
        self.lanes = None         # the loop whose turns vectors stand for
        self.is_left = False      # whether there are loops that LLVM should make fast
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
        axis = vector_axis(nest, not self.is_short)
        with self.inside_loop(buffers_written(nest)):
            if axis is None:
                self.is_left |= not self.is_short and not any(map(is_in_one_vector, nest.body))
                with self.loops(nest.axes):
                    self.body(nest.body)
            else:
                with self.loops(nest.axes[:-1]):
                    self.in_vectors(axis, VECTOR_LANES, lambda: self.body(nest.body))

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
            if self.is_short or self.lanes:
                marks.append(plain_loop(self.builder.module))

    def in_vectors(self, axis, width, write):
        """The turns of a loop, `width` at once; those that are left over are masked."""
        builder, is_cut = self.builder, axis in self.ranges
        begin, end = self.ranges.get(axis, (0, axis.size))
        count = builder.sub(end, begin) if is_cut else axis.size
        whole = builder.udiv(count, int64(width)) if is_cut else int64(count // width)
        # ranges begin and end at whole vectors, except at the end of the loop
        self.lanes = Lanes(axis, width, width)
        if not is_cut and count // width <= FEW_VECTORS:
            for self.axes[axis] in range(0, count - width + 1, width):
                write()
        else:
            with self.if_any(whole), self.loop(whole) as piece:
                turn = builder.mul(piece, int64(width))
                self.axes[axis] = builder.add(begin, turn) if is_cut else turn
                write()
        if axis.size % width:
            rest = builder.urem(count, int64(width)) if is_cut else count % width
            with self.if_any(as_int64(rest)):
                known = None if is_cut else rest
                self.lanes = Lanes(axis, width, known, first_lanes(builder, rest, width))
                self.axes[axis] = builder.sub(end, rest) if is_cut else count - rest
                write()
        self.lanes = None

    def if_any(self, count):
        """Around what is done if a number is not 0, which may be known."""
        if isinstance(count, ir.Constant) and count.constant:
            return nullcontext()
        return self.builder.if_then(self.builder.icmp_unsigned("!=", count, int64(0)))

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
            args = matched(self.builder, [self.values[a] for a in node.args])
            return emit_op(self.builder, node.name, of.dtype, node.dtype, args)
        if isinstance(node, Const):
            return typed_constant(node.value, node.dtype)
        if isinstance(node, AxisValue):
            return self.axis_value(node)
        if isinstance(node, InBounds):
            return as_bit(self.condition(node.guard))
        return self.reduce(node) if isinstance(node, Reduce) else self.load(node)

    def axis_value(self, node):
        index = self.in_lanes(node.index)
        if isinstance(index, int):
            return typed_constant(np.asarray(index).astype(node.dtype), node.dtype)
        return convert(self.builder, index, WIDE, node.dtype)

    # memory

    def load(self, node):
        condition, stride = self.condition(node.guard), self.stride(node.index)
        if condition is False:
            return typed_constant(node.dtype.type(0), node.dtype)
        if stride not in (0, 1) or stride == 0 and is_vector(condition):
            return self.gather(node, condition)
        index = self.index(node.index)
        if stride == 1:
            return self.vector(node.buffer, index, condition)
        if condition is True:
            return self.element(node.buffer, index)
        return load_where(self.builder, node.dtype, condition, self.memory[node.buffer],
                          as_int64(index))

    def vector(self, buffer, index, condition=True):
        return vector_load(self.builder, buffer.dtype, self.memory[buffer], as_int64(index),
                           self.lanes.width, self.mask(condition))

    def gather(self, node, condition):
        """Elements that do not lie side by side, one by one; 0 where a condition does not hold."""
        builder, memory = self.builder, self.memory[node.buffer]
        places = self.even_places(node, condition) or self.uneven_places(node, condition)
        found = vector_of(builder, [llvm_ops.load(builder, node.dtype, memory, place)
                                    for place in places])
        if condition is True:
            return found
        condition = splat(builder, condition, self.lanes.width)
        return builder.select(condition, found, number_of(found.type, 0))

    def even_places(self, node, condition):
        """Places at equal distances, if they are, for lanes of which all or none are needed."""
        builder, stride, count = self.builder, self.stride(node.index), self.lanes.count
        if stride is None or count is None or is_vector(condition):
            return None
        first = as_int64(self.index(node.index))
        if condition is not True:
            first = builder.select(condition, first, int64(0))
        return [builder.add(first, int64(min(k, count - 1) * stride))
                for k in range(self.lanes.width)]

    def uneven_places(self, node, condition):
        """Any places; the first of the buffer for lanes that are not needed."""
        builder, mask = self.builder, self.mask(condition)
        places = splat(builder, as_int64(self.in_lanes(node.index)), self.lanes.width)
        if mask is not None:
            places = builder.select(mask, places, number_of(places.type, 0))
        return numbers_in(builder, places)

    def mask(self, condition=True):
        """The mask of the lanes that there are and where a condition holds; None for all."""
        if condition is True:
            return self.lanes.mask
        condition = splat(self.builder, condition, self.lanes.width)
        both = self.lanes.mask is not None
        return self.builder.and_(condition, self.lanes.mask) if both else condition

    def element(self, buffer, index):
        known = self.registers.get(buffer, {}).get(index)
        if known is not None:
            return known
        return llvm_ops.load(self.builder, buffer.dtype, self.memory[buffer], as_int64(index))

    def store(self, node):
        buffer, index, value = node.buffer, self.index(node.index), self.values[node.value]
        if self.lanes:
            self.store_vector(node, index, value)
            return
        if node.combine not in (None, "replace"):
            old = self.element(buffer, index)
            value = emit_op(self.builder, node.combine, buffer.dtype, buffer.dtype, [old, value])
        if buffer in self.memory:
            llvm_ops.store(self.builder, buffer.dtype, self.memory[buffer], as_int64(index), value)
        if isinstance(index, int) and not self.in_loop:
            self.registers.setdefault(buffer, {})[index] = value
        else:
            self.registers.pop(buffer, None)

    def store_vector(self, node, index, value):
        buffer, dtype = node.buffer, node.buffer.dtype
        value = splat(self.builder, value, self.lanes.width)
        if node.combine not in (None, "replace"):
            value = emit_op(self.builder, node.combine, dtype, dtype,
                            [self.vector(buffer, index), value])
        vector_store(self.builder, dtype, self.memory[buffer], as_int64(index), value, self.mask())

    # index maps: Python integers as far as they are known now

    def stride(self, index):
        """By how much an index grows from lane to lane; None if that differs."""
        if not self.lanes:
            return 0
        if any(is_vector(self.values[n]) for n in dynamic_nodes(index)):
            return None
        return stride_of(index, self.lanes.axis)

    def in_lanes(self, index):
        """An index as a number, or as a vector if it differs from lane to lane."""
        stride = self.stride(index)
        if stride is None:
            return vector_of(self.builder, list(self.one_by_one(index)))
        first = self.index(index)
        if stride == 0:
            return first
        return turns_of_lanes(self.builder, as_int64(first), stride, self.lanes.width)

    def one_by_one(self, index):
        """What an index is in each lane."""
        axis, width = self.lanes.axis, self.lanes.width
        first = self.axes[axis]
        for self.lane in range(width):
            self.axes[axis] = first + self.lane if isinstance(first, int) else self.builder.add(
                first, int64(self.lane))
            yield as_int64(self.index(index))
        self.axes[axis] = first

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
            value = self.values[atom.node]
            return numbers_in(self.builder, value)[self.lane] if is_vector(value) else value
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
            place = self.in_lanes(index)
            if isinstance(place, int):
                if not 0 <= place < size:
                    return False
                continue
            # as an unsigned number, one below 0 is large
            inside = self.builder.icmp_unsigned("<", place, constant(place, size))
            out = inside if out is True else self.builder.and_(
                *matched(self.builder, [out, inside]))
        return out

    # reductions

    def reduce(self, node):
        start = typed_constant(identity(node.name, node.dtype).value, node.dtype)
        if is_short_reduction(node):
            return self.reduce_turn_by_turn(node, start)
        if is_in_one_vector(node):
            return self.reduce_vectors(node, start)
        self.is_left = True
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
                            matched(self.builder, [total, self.values[node.value]]))
        self.turn_by_turn(node.axes, add)
        return total

    def reduce_vectors(self, node, start):
        """All accumulators in one vector."""
        builder, dtype = self.builder, node.dtype
        *outer, inner = [a for a in node.axes if a.size != 1]
        self.axes.update((a, 0) for a in node.axes if a.size == 1)
        first = splat(builder, start, node.lanes)
        total = entry_alloca(builder, first.type, 1)
        builder.store(first, total)

        def accumulate():
            self.body(node.body)
            old, mask = builder.load(total), self.mask()
            new = emit_op(builder, node.name, dtype, dtype,
                          matched(builder, [old, self.values[node.value]]))
            builder.store(new if mask is None else builder.select(mask, new, old), total)

        with self.loops(outer):
            self.in_vectors(inner, node.lanes, accumulate)
        return fold_vector(builder, node.name, dtype, builder.load(total))

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


def is_in_one_vector(node):
    """Whether a node is a reduction whose accumulators are the lanes of a vector."""
    if not isinstance(node, Reduce) or node.lanes == 1:
        return False
    return is_in_vectors(node.body, [a for a in node.axes if a.size != 1][-1])


def as_int64(index):
    return int64(index) if isinstance(index, int) else index


def as_bit(condition):
    return ir.Constant(ir.IntType(1), int(condition)) if isinstance(condition, bool) else condition


# The method that writes each kind of step.
STEP_WRITERS = {Nest: StepWriter.nest}
