# Exported from notebooks/ref_machine.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_machine. In JAX: XLA's LLVM IR emitters.

Writes steps of the loop IR as LLVM instructions. What they compute is what `render_python` prints.
"""

from collections import Counter
from contextlib import ExitStack, contextmanager, nullcontext
from itertools import product

import numpy as np
from llvmlite import ir

from minijax.compiler import llvm_ops
from minijax.compiler.llvm_math import call_function, number_of
from minijax.compiler.llvm_ops import (
    WIDE, constant, convert, counted_loop, emit_op, emitters, entry_alloca, fill_lanes, fold_lanes,
    int64, load_where, memory_type, typed_constant,
)
from minijax.compiler.plan import evaluations, is_short_reduction, is_tiny, is_worth_speed
from minijax.compiler.vector_math import FUNCTIONS
from minijax.compiler.vectors import (
    FEW_VECTORS, Lanes, first_lanes, fold_vector, is_in_vectors, is_vector, lanes_for_turns,
    matched, numbers_in, splat, stride_of, turns_of_lanes, vector_axis, vector_load, vector_of,
    vector_store,
)
from minijax.loop_ir import (
    Axis, AxisValue, COMPLEX, Const, Dynamic, InBounds, Load, Nest, Op, Reduce, Remainder, Store,
    all_nodes, buffers_written, dynamic_nodes, identity,
)

__all__ = [
    "StepWriter", "STEP_WRITERS", "NODE_WRITERS", "as_int64", "as_bit", "place_of", "atom_value",
    "lane_stride", "places_of", "places_one_by_one", "guard_holds", "load", "element", "load_lanes",
    "mask", "gather", "even_places", "uneven_places", "store", "store_lanes", "FEW_USES",
    "WITH_TABLES", "called_functions", "op", "axis_value", "loops", "span", "marked_loop",
    "plain_loop", "turn_by_turn", "in_vectors", "whole_vectors", "last_vector", "if_any", "reduce",
    "is_in_one_vector", "loops_of", "combined", "reduce_turn_by_turn", "reduce_in_vector",
    "reduce_on_stack", "laned_loops", "one_piece", "accumulate", "nest",
]


# --- What a writer knows --------------------------------------------------------------------------

class StepWriter:
    """Writes steps at the place where a builder stands, and remembers what is known there.

    `memory` has the address of each buffer. A buffer that only tiny nests use needs none: what is
    stored at a place that is known now is kept in `registers`, where loads find it.
    """

    def __init__(self, builder, memory):
        self.builder, self.memory = builder, memory
        self.registers = {}       # buffer -> {place: the number that is there}
        self.axes = {}            # axis -> its turn: a Python integer or an int64
        self.values = {}          # node -> what it is in this turn
        self.ranges = {}          # axis -> (begin, end): the turns to do, if not all
        self.lanes = None         # the loop whose turns vectors stand for
        self.lane = None          # one of them, while places are found one by one
        self.around = 1           # how often the loops around a step run it
        self.in_loop = False      # whether these instructions may run more than once
        self.is_short = False     # whether a nest is too short for LLVM to make it fast
        self.is_left = False      # whether there are loops that LLVM should make fast
        self.called = frozenset()   # functions of floats that a nest calls

    def write(self, steps):
        for step in steps:
            STEP_WRITERS[type(step)](self, step)

    def body(self, nodes):
        for node in nodes:
            self.values[node] = NODE_WRITERS[type(node)](self, node)

    @contextmanager
    def inside_loop(self, written):
        """A part of the program that runs more than once, or not at all, and writes buffers."""
        for buffer in written:
            self.registers.pop(buffer, None)
        known, was_in_loop = {b: dict(places) for b, places in self.registers.items()}, self.in_loop
        self.in_loop = True
        yield
        self.registers, self.in_loop = known, was_in_loop


STEP_WRITERS, NODE_WRITERS = {}, {}          # type -> the function that writes what is of it


def as_int64(index):
    return int64(index) if isinstance(index, int) else index


def as_bit(condition):
    return ir.Constant(ir.IntType(1), int(condition)) if isinstance(condition, bool) else condition


# --- Places ---------------------------------------------------------------------------------------

def place_of(writer, index):
    """What an index map is in this turn: a Python integer if that is known, else an int64."""
    offset, out, builder = index.offset, None, writer.builder
    for atom, c in index.terms.items():
        value = atom_value(writer, atom)
        if isinstance(value, int):
            offset += c * value
            continue
        term = value if c == 1 else builder.mul(value, int64(c), flags=("nsw",))
        out = term if out is None else builder.add(out, term, flags=("nsw",))
    if out is None:
        return offset
    return builder.add(out, int64(offset), flags=("nsw",)) if offset else out


def atom_value(writer, atom):
    if isinstance(atom, Axis):
        return writer.axes[atom]
    if isinstance(atom, Dynamic):
        value = writer.values[atom.node]
        return numbers_in(writer.builder, value)[writer.lane] if is_vector(value) else value
    inner, n, builder = place_of(writer, atom.index), atom.divisor, writer.builder
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


def lane_stride(writer, index):
    """By how much an index map grows from lane to lane; None if that differs."""
    if not writer.lanes:
        return 0
    if any(is_vector(writer.values[n]) for n in dynamic_nodes(index)):
        return None
    return stride_of(index, writer.lanes.axis)


def places_of(writer, index):
    """What an index map is: a number, or a vector if it differs from lane to lane."""
    stride = lane_stride(writer, index)
    if stride is None:
        return vector_of(writer.builder, list(places_one_by_one(writer, index)))
    first = place_of(writer, index)
    if stride == 0:
        return first
    return turns_of_lanes(writer.builder, as_int64(first), stride, writer.lanes.width)


def places_one_by_one(writer, index):
    """What an index map is in each lane."""
    axis, width = writer.lanes.axis, writer.lanes.width
    first = writer.axes[axis]
    for writer.lane in range(width):
        writer.axes[axis] = first + writer.lane if isinstance(first, int) else writer.builder.add(
            first, int64(writer.lane))
        yield as_int64(place_of(writer, index))
    writer.axes[axis] = first


def guard_holds(writer, guard):
    """Whether a guard holds: True or False if that is known, else bits."""
    out = True
    for index, size in guard:
        place = places_of(writer, index)
        if isinstance(place, int):
            if not 0 <= place < size:
                return False
            continue
        # as an unsigned number, one below 0 is large
        inside = writer.builder.icmp_unsigned("<", place, constant(place, size))
        out = inside if out is True else writer.builder.and_(
            *matched(writer.builder, [out, inside]))
    return out


# --- Loads and stores -----------------------------------------------------------------------------

def load(writer, node):
    condition, stride = guard_holds(writer, node.guard), lane_stride(writer, node.index)
    if condition is False:
        return typed_constant(node.dtype.type(0), node.dtype)
    if stride not in (0, 1) or stride == 0 and is_vector(condition):
        return gather(writer, node, condition)
    place = place_of(writer, node.index)
    if stride == 1:
        return load_lanes(writer, node.buffer, place, condition)
    if condition is True:
        return element(writer, node.buffer, place)
    return load_where(writer.builder, node.dtype, condition, writer.memory[node.buffer],
                      as_int64(place))


def element(writer, buffer, place):
    known = writer.registers.get(buffer, {}).get(place)
    if known is not None:
        return known
    return llvm_ops.load(writer.builder, buffer.dtype, writer.memory[buffer], as_int64(place))


def load_lanes(writer, buffer, place, condition=True):
    return vector_load(writer.builder, buffer.dtype, writer.memory[buffer], as_int64(place),
                       writer.lanes.width, mask(writer, condition))


def mask(writer, condition=True):
    """The mask of the lanes that there are and where a condition holds; None for all."""
    lanes = writer.lanes
    if condition is True:
        return lanes.mask
    condition = splat(writer.builder, condition, lanes.width)
    return condition if lanes.mask is None else writer.builder.and_(condition, lanes.mask)


def gather(writer, node, condition):
    """Elements that do not lie side by side, one by one; 0 where a condition does not hold."""
    builder, memory = writer.builder, writer.memory[node.buffer]
    places = even_places(writer, node, condition) or uneven_places(writer, node, condition)
    found = vector_of(builder, [llvm_ops.load(builder, node.dtype, memory, place)
                                for place in places])
    if condition is True:
        return found
    condition = splat(builder, condition, writer.lanes.width)
    return builder.select(condition, found, number_of(found.type, 0))


def even_places(writer, node, condition):
    """Places at equal distances, if they are, for lanes of which all or none are needed."""
    builder, stride, count = writer.builder, lane_stride(writer, node.index), writer.lanes.count
    if stride is None or count is None or is_vector(condition):
        return None
    first = as_int64(place_of(writer, node.index))
    if condition is not True:
        first = builder.select(condition, first, int64(0))
    return [builder.add(first, int64(min(k, count - 1) * stride))
            for k in range(writer.lanes.width)]


def uneven_places(writer, node, condition):
    """Any places; the first of the buffer for lanes that are not needed."""
    builder, needed = writer.builder, mask(writer, condition)
    places = splat(builder, as_int64(places_of(writer, node.index)), writer.lanes.width)
    if needed is not None:
        places = builder.select(needed, places, number_of(places.type, 0))
    return numbers_in(builder, places)


def store(writer, node):
    buffer, place, value = node.buffer, place_of(writer, node.index), writer.values[node.value]
    if writer.lanes:
        store_lanes(writer, node, place, value)
        return
    if node.combine not in (None, "replace"):
        old = element(writer, buffer, place)
        value = emit_op(writer.builder, node.combine, buffer.dtype, buffer.dtype, [old, value])
    if buffer in writer.memory:
        llvm_ops.store(writer.builder, buffer.dtype, writer.memory[buffer], as_int64(place), value)
    if isinstance(place, int) and not writer.in_loop:
        writer.registers.setdefault(buffer, {})[place] = value
    else:
        writer.registers.pop(buffer, None)


def store_lanes(writer, node, place, value):
    buffer, dtype = node.buffer, node.buffer.dtype
    value = splat(writer.builder, value, writer.lanes.width)
    if node.combine not in (None, "replace"):
        old = load_lanes(writer, buffer, place)
        value = emit_op(writer.builder, node.combine, dtype, dtype, [old, value])
    vector_store(writer.builder, dtype, writer.memory[buffer], as_int64(place), value, mask(writer))


# --- Other nodes ----------------------------------------------------------------------------------

# A function of floats is called where a nest uses it more often than this; else its instructions
# stand in place. To write and compile those of a vector's tanh takes a millisecond; a call of it
# takes half a nanosecond.
FEW_USES = 4

# In vectors these are always called: their branches to a table make LLVM slow.
WITH_TABLES = frozenset({"sin", "cos", "tan"})


def called_functions(body, copies=1):
    """The functions that a nest calls, when its body is written so many times."""
    uses = Counter(n.name for n in all_nodes(body) if isinstance(n, Op) and n.name in FUNCTIONS)
    return {name for name, count in uses.items() if count * copies > FEW_USES}


def op(writer, node):
    # a choice's first operand is the condition, an index's others are its bounds
    of = node.args[0 if node.name == "clamp_index" else -1]
    args = matched(writer.builder, [writer.values[a] for a in node.args])
    if node.name in writer.called or node.name in WITH_TABLES and is_vector(args[0]):
        return call_function(writer.builder, node.name, *args)
    return emit_op(writer.builder, node.name, of.dtype, node.dtype, args)


def axis_value(writer, node):
    place = places_of(writer, node.index)
    if isinstance(place, int):
        return typed_constant(np.asarray(place).astype(node.dtype), node.dtype)
    return convert(writer.builder, place, WIDE, node.dtype)


NODE_WRITERS.update({
    Op: op, AxisValue: axis_value, Load: load, Store: store,
    Const: lambda writer, node: typed_constant(node.value, node.dtype),
    InBounds: lambda writer, node: as_bit(guard_holds(writer, node.guard)),
})


# --- Loops of numbers -----------------------------------------------------------------------------

@contextmanager
def loops(writer, axes):
    """Loops over axes, one inside the other."""
    with ExitStack() as stack:
        for axis in axes:
            first, count = span(writer, axis)
            turn = 0 if axis.size == 1 else stack.enter_context(marked_loop(writer, count))
            writer.axes[axis] = writer.builder.add(first, turn) if first else turn
        yield


def span(writer, axis):
    """(the first turn of a loop, how many there are): Python integers if it does all its turns."""
    if axis not in writer.ranges:
        return 0, axis.size
    begin, end = writer.ranges[axis]
    return begin, writer.builder.sub(end, begin)


@contextmanager
def marked_loop(writer, count):
    with counted_loop(writer.builder, as_int64(count)) as (turn, marks):
        yield turn
        if writer.is_short or writer.lanes:
            marks.append(plain_loop(writer.builder.module))


def plain_loop(module):
    """The mark of a loop that LLVM should leave as it is."""
    hints = [[ir.MetaDataString(module, "llvm.loop.unroll.disable")],
             [ir.MetaDataString(module, "llvm.loop.vectorize.enable"),
              ir.Constant(ir.IntType(1), 0)]]
    operands = [module.add_metadata(hint) for hint in hints]
    mark = ir.values.MDValue(module, operands, name=str(len(module.metadata)))
    mark.operands = (mark, *operands)       # such a mark must begin with itself
    return mark


def turn_by_turn(writer, axes, write):
    """No loop: what `write` writes, once for each turn."""
    for turn in product(*(range(a.size) for a in axes)):
        writer.axes.update(zip(axes, turn))
        write()


# --- Loops of vectors -----------------------------------------------------------------------------

def in_vectors(writer, axis, width, write):
    """The turns of a loop, `width` at once; those that are left over are masked."""
    begin, count = span(writer, axis)
    writer.lanes = Lanes(axis, width, width)
    whole_vectors(writer, begin, count, write)
    # ranges begin and end at whole vectors, except at the end of the loop
    if axis.size % width:
        last_vector(writer, count, write)
    writer.lanes = None


def whole_vectors(writer, begin, count, write):
    axis, width, _, _ = writer.lanes
    if isinstance(count, int) and count // width <= FEW_VECTORS:
        for k in range(count // width):
            writer.axes[axis] = k * width
            write()
        return
    builder = writer.builder
    whole = count // width if isinstance(count, int) else builder.udiv(count, int64(width))
    with if_any(writer, whole), marked_loop(writer, whole) as piece:
        turn = builder.mul(piece, int64(width))
        writer.axes[axis] = builder.add(begin, turn) if begin else turn
        write()


def last_vector(writer, count, write):
    axis, width, _, _ = writer.lanes
    if isinstance(count, int):
        known = rest = count % width
    else:
        known, rest = None, writer.builder.urem(count, int64(width))
    with if_any(writer, rest):
        writer.lanes = Lanes(axis, width, known, first_lanes(writer.builder, rest, width))
        writer.axes[axis] = writer.builder.sub(writer.ranges[axis][1], rest) \
            if known is None else count - rest
        write()


def if_any(writer, count):
    """Around what is done if a number is not 0; one that is known is not."""
    if isinstance(count, int):
        return nullcontext()
    return writer.builder.if_then(writer.builder.icmp_unsigned("!=", count, int64(0)))


# --- Reductions -----------------------------------------------------------------------------------

def reduce(writer, node):
    start = typed_constant(identity(node.name, node.dtype).value, node.dtype)
    if is_short_reduction(node):
        return reduce_turn_by_turn(writer, node, start)
    if is_in_one_vector(node):
        return reduce_in_vector(writer, node, start)
    writer.is_left, writer.called = True, frozenset()
    return reduce_on_stack(writer, node, start)


NODE_WRITERS[Reduce] = reduce


def is_in_one_vector(node):
    """Whether a node is a reduction whose accumulators are the lanes of a vector."""
    if not isinstance(node, Reduce) or node.lanes == 1 or node.dtype in COMPLEX:
        return False
    return is_in_vectors(node.body, loops_of(node)[-1])


def loops_of(node):
    """The axes of a reduction that take more than one turn."""
    return [a for a in node.axes if a.size != 1]


def combined(writer, node, old):
    """What an accumulator is after the value of this turn."""
    return emit_op(writer.builder, node.name, node.dtype, node.dtype,
                   matched(writer.builder, [old, writer.values[node.value]]))


def reduce_turn_by_turn(writer, node, total):
    def accumulate():
        nonlocal total
        writer.body(node.body)
        total = combined(writer, node, total)
    turn_by_turn(writer, node.axes, accumulate)
    return total


def reduce_in_vector(writer, node, start):
    """All accumulators in one vector."""
    builder = writer.builder
    *outer, inner = loops_of(node)
    writer.axes.update((a, 0) for a in node.axes if a.size == 1)
    first = splat(builder, start, node.lanes)
    total = entry_alloca(builder, first.type, 1)
    builder.store(first, total)

    def accumulate():
        writer.body(node.body)
        old, lanes = builder.load(total), mask(writer)
        new = combined(writer, node, old)
        builder.store(new if lanes is None else builder.select(lanes, new, old), total)

    with loops(writer, outer):
        in_vectors(writer, inner, node.lanes, accumulate)
    return fold_vector(builder, node.name, node.dtype, builder.load(total))


def reduce_on_stack(writer, node, start):
    """Accumulators in an array on the stack; a loop's turns go to them one after the other."""
    builder, dtype = writer.builder, node.dtype
    lanes = entry_alloca(builder, memory_type(dtype), node.lanes)
    fill_lanes(builder, dtype, node.lanes, lanes, start)
    if node.lanes == 1:
        with loops(writer, node.axes):
            accumulate(writer, node, lanes, int64(0))
    else:
        laned_loops(writer, node, lanes)
    return fold_lanes(builder, dtype, node.lanes, lanes, emitters[node.name])


def laned_loops(writer, node, lanes):
    """The innermost loop in pieces of as many elements as there are lanes."""
    *outer, inner = loops_of(node)
    writer.axes.update((a, 0) for a in node.axes if a.size == 1)
    pieces, rest = divmod(inner.size, node.lanes)
    with loops(writer, outer):
        if pieces:
            with marked_loop(writer, pieces) as piece:
                first = writer.builder.mul(piece, int64(node.lanes))
                one_piece(writer, node, lanes, first, node.lanes)
        if rest:
            one_piece(writer, node, lanes, int64(pieces * node.lanes), rest)


def one_piece(writer, node, lanes, first, count):
    # a loop of a known number of turns disappears: then accumulators are vector registers
    with marked_loop(writer, count) as lane:
        writer.axes[loops_of(node)[-1]] = writer.builder.add(first, lane)
        accumulate(writer, node, lanes, lane)


def accumulate(writer, node, lanes, lane):
    writer.body(node.body)
    old = llvm_ops.load(writer.builder, node.dtype, lanes, lane)
    llvm_ops.store(writer.builder, node.dtype, lanes, lane, combined(writer, node, old))


# --- Nests ----------------------------------------------------------------------------------------

def nest(writer, step):
    """Write a nest: turn by turn, in vectors, or as loops of numbers."""
    if is_tiny(step):
        writer.called = called_functions(step.body, evaluations(step))
        turn_by_turn(writer, step.axes, lambda: writer.body(step.body))
        return
    writer.is_short = not is_worth_speed(step, writer.around)
    axis = vector_axis(step, not writer.is_short)
    is_left = axis is None and not writer.is_short and not any(map(is_in_one_vector, step.body))
    writer.is_left |= is_left
    # LLVM makes vectors of functions that stand in place
    writer.called = frozenset() if is_left else called_functions(step.body)
    with writer.inside_loop(buffers_written(step)):
        if axis is None:
            with loops(writer, step.axes):
                writer.body(step.body)
        else:
            with loops(writer, step.axes[:-1]):
                in_vectors(writer, axis, lanes_for_turns(axis), lambda: writer.body(step.body))


STEP_WRITERS[Nest] = nest
