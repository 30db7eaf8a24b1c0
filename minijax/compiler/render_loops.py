# Exported from notebooks/ref_compiler.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_compiler. In JAX: XLA's while and conditional thunks.

Writes loops and branches of the loop IR as LLVM instructions. A whole loop, with all that is
inside, is part of one function. Small carries lie on the stack, from where LLVM moves them into
registers; the memory of large ones changes places after each turn.
"""

from contextlib import contextmanager

from minijax.compiler.llvm_ops import (
    WIDE, convert, copy_bytes, counted_loop, entry_alloca, int64, memory_type,
)
from minijax.compiler.plan import MAX_TURNS, SMALL, used_buffers
from minijax.compiler.render_llvm import STEP_WRITERS, as_int64, element, span
from minijax.loop_ir import Branch, Loop, While, buffers_read, buffers_written, programs_in

__all__ = [
    "loop", "UNKNOWN_TURNS", "while_loop", "branch", "changed_inside", "carries", "carry_of",
    "Carry", "SmallCarry", "InPlaceCarry", "LargeCarry",
]


# --- Loops ----------------------------------------------------------------------------------------

def loop(writer, step):
    with changed_inside(writer, step), carries(writer, step) as turn_of_carries:
        first, count = span(writer, step.axis)
        with counted_loop(writer.builder, as_int64(count)) as (turn, _):
            number = writer.builder.add(first, turn) if first else turn
            writer.axes[step.axis] = 0 if step.axis.size == 1 else number
            writer.around *= step.axis.size
            with turn_of_carries():
                writer.write(step.body.steps)
            writer.around //= step.axis.size


UNKNOWN_TURNS = 100               # what a while is thought to take


def while_loop(writer, step):
    builder = writer.builder
    with changed_inside(writer, step), carries(writer, step) as turn_of_carries:
        test, body, end = (builder.append_basic_block(name) for name in ("test", "turn", "end"))
        builder.branch(test)
        builder.position_at_end(test)
        writer.around *= UNKNOWN_TURNS
        with turn_of_carries():
            writer.write(step.condition.steps)
            holds = element(writer, step.condition.outputs[0], 0)
            builder.cbranch(holds, body, end)
            builder.position_at_end(body)
            writer.write(step.body.steps)
        writer.around //= UNKNOWN_TURNS
        builder.branch(test)
        builder.position_at_end(end)


def branch(writer, step):
    """A chain of tests; too small a number means the first program, too large a one the last."""
    builder = writer.builder
    number = convert(builder, element(writer, step.index, 0), step.index.dtype, WIDE)
    end = builder.append_basic_block("end")
    with changed_inside(writer, step):
        *others, last = step.branches
        for k, program in enumerate(others):
            case, following = (builder.append_basic_block(name) for name in ("case", "other"))
            builder.cbranch(builder.icmp_signed("<", number, int64(k + 1)), case, following)
            builder.position_at_end(case)
            writer.write(program.steps)
            builder.branch(end)
            builder.position_at_end(following)
        writer.write(last.steps)
        builder.branch(end)
        builder.position_at_end(end)


def changed_inside(writer, step):
    """What the writer knows of buffers that change in a step holds no longer, inside and after."""
    inside = [b for p in programs_in(step) for b in [*used_buffers(p.steps), *p.outputs]]
    read_only = set(buffers_read(step)) - set(buffers_written(step))
    return writer.inside_loop([b for b in inside if b not in read_only])


# --- Where carries live ---------------------------------------------------------------------------

@contextmanager
def carries(writer, step):
    """Around a loop: give carries their first values, and write the last ones where they belong.

    Yields a context manager to put around a turn.
    """
    memory = dict(writer.memory)
    made = [carry_of(writer, *carry) for carry in step.carries]

    @contextmanager
    def one_turn():
        for carry in made:
            carry.begin_turn()
        yield
        for carry in made:
            carry.end_turn()

    yield one_turn
    writer.memory = memory
    for carry in made:
        carry.finish()


def carry_of(writer, start, now, following):
    kind = SmallCarry if now.size <= SMALL else InPlaceCarry if following is now else LargeCarry
    return kind(writer, start, now, following)


class Carry:
    """What is done for a carry before a turn, after it, and after the loop: nothing as yet."""

    def __init__(self, writer, now):
        self.writer, self.now = writer, now

    def begin_turn(self):
        pass

    def end_turn(self):
        pass

    def finish(self):
        pass

    def copy(self, target, source):
        size = int64(self.now.size * self.now.dtype.itemsize)
        copy_bytes(self.writer.builder, target, source, size)


class SmallCarry(Carry):
    """A carry in memory that LLVM can see all uses of, and so moves into registers."""

    def __init__(self, writer, start, now, following):
        super().__init__(writer, now)
        self.following, self.result = following, writer.memory[now]
        self.own = entry_alloca(writer.builder, memory_type(now.dtype), now.size)
        self.copy(self.own, writer.memory[start])
        writer.memory[now] = self.own

    def copy(self, target, source):
        """Element by element if these are few."""
        if self.now.size > MAX_TURNS:
            super().copy(target, source)
            return
        builder = self.writer.builder
        for k in range(self.now.size):
            value = builder.load(builder.gep(source, [int64(k)], inbounds=True))
            builder.store(value, builder.gep(target, [int64(k)], inbounds=True))

    def end_turn(self):
        if self.following is not self.now:
            self.copy(self.own, self.writer.memory[self.following])

    def finish(self):
        self.copy(self.result, self.own)


class InPlaceCarry(Carry):
    """A carry that turns update where it is."""

    def __init__(self, writer, start, now, following):
        super().__init__(writer, now)
        if start is not now:
            self.copy(writer.memory[now], writer.memory[start])


class LargeCarry(InPlaceCarry):
    """Two places for one carry: what a turn reads and what it fills. Then they change roles."""

    def __init__(self, writer, start, now, following):
        super().__init__(writer, start, now, following)
        self.buffers = now, following
        self.places = [writer.memory[b] for b in self.buffers]
        self.slots = [entry_alloca(writer.builder, p.type, 1) for p in self.places]
        for place, slot in zip(self.places, self.slots):
            writer.builder.store(place, slot)

    def begin_turn(self):
        self.roles = [self.writer.builder.load(slot) for slot in self.slots]
        self.writer.memory.update(zip(self.buffers, self.roles))

    def end_turn(self):
        for role, slot in zip(reversed(self.roles), self.slots):
            self.writer.builder.store(role, slot)

    def finish(self):
        builder = self.writer.builder
        result = builder.load(self.slots[0])
        with builder.if_then(builder.icmp_unsigned("!=", result, self.places[0])):
            self.copy(self.places[0], result)


STEP_WRITERS.update({Loop: loop, While: while_loop, Branch: branch})
