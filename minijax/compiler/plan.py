# Exported from notebooks/ref_machine.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_machine. In JAX: XLA's thunks and buffer assignment.

How a program is cut into functions, and where each of its buffers lives. Steps that follow one
another become an Entry, a function that Python can call; it consists of Parts, functions of bare
addresses. Between entries stand calls of libraries. `main` is generated Python:

    def main(a0, a1):
        t0 = empty((8,), f32)
        run_0(a0, t0)
        t1 = as_buffer(sort_1(t0))
        return [t1]
"""

from math import prod

import numpy as np

from minijax.compiler.dead_steps import has_calls
from minijax.compiler.render_python import MainWriter, free_axes, index_text
from minijax.compiler.rows import is_local
from minijax.compiler.vector_math import BY_WAY_OF_FLOAT64
from minijax.loop_ir import (
    AxisValue, Buffer, Call, Const, InBounds, Load, Loop, Nest, Op, Product, Reduce, Store, While,
    all_nodes, buffer_of, buffers_read, buffers_written, dynamic_nodes, index_maps_of, programs_in,
)

__all__ = [
    "SHORT", "MAX_TURNS", "MAX_UNROLLED", "QUICK", "evaluations", "weight", "is_tiny",
    "is_short_reduction", "is_long", "is_worth_speed", "ONE_BY_ONE", "time_of", "work",
    "MAX_WEIGHT", "Part", "Entry", "used_buffers", "buffers_in_memory", "sequences_of",
    "count_entries", "calls_and_parts", "WORTH_SHARING", "PIECE", "MAX_PIECES", "BLAS_SHARES",
    "pieces_of", "outermost", "turns_are_apart", "stays_in_turn", "steps_inside", "SMALL",
    "MAX_STACK", "Plan", "arrays_of", "arrays_in", "bytes_of", "in_lines", "NativeMainWriter",
    "PartText", "program_text", "WORTH_RELEASING",
]


# --- How much work a step is ----------------------------------------------------------------------

# Below this many runs of the body, making a loop fast takes LLVM longer than it ever saves.
SHORT = 2048

# A nest of so few turns is written turn by turn, without a loop, if that is not too long.
MAX_TURNS, MAX_UNROLLED = 16, 256

# Operations that are one or two instructions.
QUICK = frozenset("neg abs sign not floor ceil trunc round_even add sub mul max min and or xor "
                  "eq ne lt le gt ge is_finite is_nan select convert bitcast clamp_index "
                  "shift_left shift_right_logical shift_right_arithmetic".split())


def evaluations(nest):
    """How often the innermost body of a nest runs."""
    inner = [prod([a.size for a in n.axes]) for n in nest.body if isinstance(n, Reduce)]
    return nest.count() * max(inner, default=1)


def weight(body):
    """About how many instructions the nodes of a body are."""
    return 1 + sum(1 if n.name in QUICK else 20 for n in all_nodes(body) if isinstance(n, Op))


def is_tiny(step):
    """Whether a step is a nest that is written without loops."""
    if not isinstance(step, Nest):
        return False
    turns = evaluations(step)
    if not all(is_short_reduction(n) for n in step.body if isinstance(n, Reduce)):
        return False
    return turns == 1 or turns <= MAX_TURNS and turns * weight(step.body) <= MAX_UNROLLED


def is_short_reduction(node):
    """Whether a reduction is written turn by turn."""
    turns = prod([a.size for a in node.axes])
    return node.lanes == 1 and turns <= MAX_TURNS and turns * weight(node.body) <= MAX_UNROLLED


def is_long(step):
    """Whether a step has loops that are worth making fast."""
    if isinstance(step, Product):
        return False              # its loops are in BLAS
    return not isinstance(step, Nest) or is_worth_speed(step)


def is_worth_speed(nest, around=1):
    """Whether LLVM should vectorise a nest, which loops around it run `around` times."""
    # for a large body both what it costs and what it saves are larger
    return evaluations(nest) * around >= SHORT


# Operations that are calls: there are no vectors of them.
ONE_BY_ONE = frozenset("lgamma nextafter rem".split())


def time_of(node):
    """About how many nanoseconds a node takes for one of the numbers of a vector."""
    if isinstance(node, (Load, Store)):
        return 1 if any(dynamic_nodes(node.index)) else 0.025
    if not isinstance(node, Op):
        return 0
    if node.name in ONE_BY_ONE or node.name in BY_WAY_OF_FLOAT64:
        return 2
    return 0.01 if node.name in QUICK or node.name in ("div", "sqrt") else 0.2


def work(step):
    """About how many nanoseconds a step takes; a `while` is thought to make a hundred turns."""
    if isinstance(step, Product):
        return 100 * step.axes[0].size + 0.02 * evaluations(step)
    if isinstance(step, Nest):
        # one number takes as long as a vector
        return max(16, evaluations(step)) * sum(map(time_of, all_nodes(step.body)))
    if isinstance(step, Call):
        return 1000.0
    turns = step.axis.size if isinstance(step, Loop) else 100 if isinstance(step, While) else 1
    return turns * sum(work(s) for p in programs_in(step) for s in p.steps)


# --- Parts and entries ----------------------------------------------------------------------------

# LLVM's time grows faster than a function's length, so long programs become several functions.
MAX_WEIGHT = 4000


class Part:
    """Steps that become one function of addresses; `pieces`: what pieces_of says, or None.

    `buffers` are those that the steps use, `in_memory` those among them that need an address;
    `turns`: for each loop that calls the function, the buffer with the number of its turn.
    """

    def __init__(self, steps, turns, pieces=None):
        self.steps, self.pieces = steps, pieces
        self.turns = {axis: turns[axis] for axis in free_axes(steps)}
        self.buffers = list(dict.fromkeys([*used_buffers(steps), *self.turns.values()]))
        self.in_memory = buffers_in_memory(steps) | set(self.turns.values())


class Entry:
    """Parts that become one function which Python can call, on `arrays` and the workspace."""

    def __init__(self, name, parts):
        self.name, self.parts = name, parts
        self.pieces = parts[0].pieces
        self.work = sum(work(s) for part in parts for s in part.steps)
        self.arrays, self.needs_workspace = [], False
        self.scratch = 0          # bytes that each thread needs


def used_buffers(steps):
    """The buffers of steps and of the programs in them, in order of first use."""
    found = {}
    for step in steps:
        found.update(dict.fromkeys([*buffers_read(step), *buffers_written(step)]))
        for program in programs_in(step):
            found.update(dict.fromkeys([*program.inputs, *used_buffers(program.steps),
                                        *program.outputs]))
    return list(found)


def buffers_in_memory(steps):
    """The buffers that other than tiny nests use, or tiny ones at places not known beforehand."""
    found = set()
    for step in steps:
        if not is_tiny(step):
            found.update(used_buffers([step]))
            continue
        found.update(node.buffer for node in all_nodes(step.body) if isinstance(node, (Load, Store))
                     and any(True for i in index_maps_of(node) for _ in dynamic_nodes(i)))
    return found


def sequences_of(program, turns, found):
    """Add to `found` what runs a program, and the programs in its steps with calls: lists.

    A list has Calls, Entries, and steps with calls inside. `turns`: axis -> buffer of loops around.
    """
    out = found[program] = []
    parts = []

    def close():
        if parts:
            out.append(Entry(f"run_{count_entries(found)}", parts[:]))
            parts.clear()

    for item in calls_and_parts(program.steps, turns):
        if not isinstance(item, Part) or item.pieces:
            close()
        if isinstance(item, Part):
            parts.append(item)
            if item.pieces:
                close()
            continue
        out.append(item)
        if isinstance(item, Loop):
            turns[item.axis] = Buffer((), np.dtype(np.int64))
        for inner in programs_in(item):
            sequences_of(inner, turns, found)
    close()
    return found


def count_entries(sequences):
    return sum(isinstance(item, Entry) for items in sequences.values() for item in items)


def calls_and_parts(steps, turns):
    """Steps with calls; long ones, each as a Part; short ones together, as many as fit into one."""
    short, size = [], 0
    for step in steps:
        pieces = None if has_calls(step) else pieces_of(step)
        alone = has_calls(step) or is_long(step) or pieces or isinstance(step, Product)
        added = 0 if alone else weight(step.body) * (evaluations(step) if is_tiny(step) else 1)
        if short and (alone or size + added > MAX_WEIGHT):
            yield Part(short, turns)
            short, size = [], 0
        if has_calls(step):
            yield step
        elif alone:
            yield Part([step], turns, pieces)
        else:
            short.append(step)
            size += added
    if short:
        yield Part(short, turns)


# --- Pieces for threads ---------------------------------------------------------------------------

# A step that takes longer than this many nanoseconds is cut into pieces of about PIECE nanoseconds:
# to wake another thread, and to wait for it, takes some ten thousand.
WORTH_SHARING, PIECE, MAX_PIECES = 80_000, 5_000, 64

# Matrices of more multiplications than this BLAS itself gives to its threads.
BLAS_SHARES = 2 ** 18


def pieces_of(step):
    """(turns of the outermost loop, turns of a piece); None if the loop had better stay whole.

    Pieces may run at the same time. They depend on the step alone, not on the number of threads;
    so do results.
    """
    if work(step) < WORTH_SHARING or not turns_are_apart(step):
        return None
    size = outermost(step).size
    length = -(-size // min(MAX_PIECES, size, int(work(step) / PIECE)))
    if isinstance(step, Nest) and len(step.axes) == 1:
        length += -length % 16    # whole vectors
    return size, length


def outermost(step):
    """The axis of the outermost loop, or None."""
    if isinstance(step, Product) and evaluations(step) > step.axes[0].size * BLAS_SHARES:
        return None
    axes = [step.axis] if isinstance(step, Loop) else step.axes if isinstance(step, Nest) else []
    return axes[0] if axes and axes[0].size > 1 else None


def turns_are_apart(step):
    """Whether no turn of the outermost loop changes what another reads or writes."""
    if outermost(step) is None:
        return False
    if isinstance(step, Nest):
        # an element that is stored once belongs to one turn; one that is combined, to many
        return all(not n.combine or stays_in_turn(n, step)
                   for n in step.body if isinstance(n, Store))
    inside = list(steps_inside(step))
    if not all(isinstance(s, Nest) for s in inside):
        return False
    outputs = set(step.body.outputs)
    return not step.carries and all(
        is_local(n.buffer, n.index, step.axis) for s in inside for n in all_nodes(s.body)
        if isinstance(n, (Load, Store)) and n.buffer in outputs)


def stays_in_turn(store, nest):
    """Whether a store puts a new element in the place of one that no other turn sees."""
    loads = [n for n in all_nodes(nest.body) if isinstance(n, Load) and n.buffer is store.buffer]
    return store.combine == "replace" and all(n.index == nest.order() for n in [store, *loads])


def steps_inside(step):
    """The steps of a loop without carries, and of such loops inside it."""
    for inner in step.body.steps:
        if isinstance(inner, Loop) and not inner.carries:
            yield from steps_inside(inner)
        else:
            yield inner


# --- Where buffers live ---------------------------------------------------------------------------

# Buffers of so many elements are kept on the stack, up to so many bytes an entry.
SMALL, MAX_STACK = 64, 32 * 1024


class Plan:
    """Entries and calls, and where each buffer lives.

    In an array of its own (`arrays`), in registers of one part, on the `stack`, or at one of
    `offsets` in the workspace, one array of `size` bytes that every entry gets.
    """

    def __init__(self, program):
        self.program, self.turns = program, {}
        self.sequences = sequences_of(program, self.turns, {})
        self.entries = [item for items in self.sequences.values() for item in items
                        if isinstance(item, Entry)]
        self.parts = [part for entry in self.entries for part in entry.parts]
        self.arrays = arrays_of(program) | set(self.turns.values())
        self.users = self.users_of_buffers()
        self.registers, self.stack, self.offsets, self.size = set(), set(), {}, 0
        self.scratch = {}
        self.place()
        for entry in self.entries:
            used = list(dict.fromkeys(b for part in entry.parts for b in part.buffers))
            entry.arrays = [b for b in used if b in self.arrays]
            entry.needs_workspace = any(b in self.offsets for b in used)
        self.dying = self.last_uses()

    def last_uses(self):
        """item of the program's sequence -> arrays, neither arguments nor results, it uses last."""
        last, kept = {}, {*self.program.inputs, *self.program.outputs}
        for item in self.sequences[self.program]:
            last.update((b, item) for b in arrays_in(item) if b in self.arrays - kept)
        dying = {}
        for b, item in last.items():
            dying.setdefault(item, []).append(b)
        return dying

    def users_of_buffers(self):
        """buffer -> the numbers of the parts that use it."""
        users = {}
        for number, part in enumerate(self.parts):
            for b in part.buffers:
                users.setdefault(b, []).append(number)
        return users

    def place(self):
        entry_of = [entry for entry in self.entries for _ in entry.parts]
        stack, large = dict.fromkeys(self.entries, 0), []
        for b, users in self.users.items():
            entry, last = entry_of[users[0]], entry_of[users[-1]]
            if b in self.arrays:
                continue
            if len(users) == 1 and b not in self.parts[users[0]].in_memory:
                self.registers.add(b)
            elif entry is last and b.size <= SMALL and stack[entry] < MAX_STACK:
                stack[entry] += bytes_of(b)
                self.stack.add(b)
            elif entry.pieces and len(users) == 1:
                self.scratch[b] = entry.scratch
                entry.scratch += in_lines(b)
            else:
                large.append(b)
        self.share_workspace(large)

    def share_workspace(self, buffers):
        """Put each buffer into the first gap that is free while it is in use.

        It is in use as long as a part runs that uses it: a part's addresses must not overlap.
        """
        placed = []               # (first user, last user, begin, end)
        for b in buffers:
            first, last = self.users[b][0], self.users[b][-1]
            begin, size = 0, in_lines(b)
            for _, _, other_begin, other_end in sorted(
                    (p for p in placed if p[0] <= last and first <= p[1]), key=lambda p: p[2]):
                if begin + size <= other_begin:
                    break
                begin = max(begin, other_end)
            placed.append((first, last, begin, begin + size))
            self.offsets[b] = begin
            self.size = max(self.size, begin + size)


def arrays_of(program):
    """The buffers that Python sees: also all that is inside a loop that runs in Python."""
    found = {*program.inputs, *program.outputs}
    for step in program.steps:
        if isinstance(step, Call):
            found.update([*map(buffer_of, step.inputs), *step.outputs])
        elif has_calls(step):
            found.update(used_buffers([step]))
    return found


def arrays_in(item):
    """The buffers that Python hands to what stands in a sequence."""
    if isinstance(item, Entry):
        return item.arrays
    if isinstance(item, Call):
        return [*map(buffer_of, item.inputs), *item.outputs]
    return used_buffers([item])


def bytes_of(buffer):
    return buffer.size * buffer.dtype.itemsize


def in_lines(buffer):
    """The bytes of the cache lines that a buffer takes."""
    return -(-bytes_of(buffer) // 64) * 64


# --- The source of main ---------------------------------------------------------------------------

class NativeMainWriter(MainWriter):
    """Writes `main` for a plan, whose entries are functions in machine code."""

    def __init__(self, plan):
        super().__init__(plan.program)
        self.plan, self.turns, self.names = plan, plan.turns, {}
        for b in plan.program.inputs:
            self.names.setdefault(b, f"a{len(self.names)}")
        if plan.size:
            self.write(f"workspace = empty({plan.size}, u8)")

    def name(self, buffer):
        return self.names.setdefault(buffer, f"t{len(self.names)}")

    def steps(self, program):
        for item in self.plan.sequences[program]:
            self.entry(item) if isinstance(item, Entry) else self.step(item)
            if program is self.program:
                self.let_go(self.plan.dying.get(item, ()))

    def let_go(self, buffers):
        """Give memory back as soon as nothing needs it any more."""
        names = [self.name(b) for b in buffers if b in self.allocated]
        if names:
            self.write(f"del {', '.join(names)}")

    def entry(self, entry):
        self.allocate(entry.arrays)
        args = [*map(self.name, entry.arrays), *["workspace"] * entry.needs_workspace]
        call = f"{entry.name}({', '.join(args)})"
        if entry.pieces:
            size, length = entry.pieces
            count = -(-size // length)
            call = f"share({', '.join([entry.name, str(count), str(entry.scratch), *args])})"
        self.write(call)


# --- What makes two parts, or two programs, equal -------------------------------------------------

class PartText:
    """The structure of a part as text: all that its machine code depends on.

    Buffers, loops and nodes are numbers in order of first use, so equal parts have equal texts.
    """

    def __init__(self, plan, part):
        self.plan, self.numbers, self.lines = plan, {}, []
        self.part = part

    def text(self):
        for number, b in enumerate(self.part.buffers):
            self.numbers[b] = number
            self.lines.append(f"{b.dtype.name} {b.size} {self.home(b)}")
        for axis, b in self.part.turns.items():
            self.lines.append(f"turn {self.number(axis)} {self.number(b)}")
        self.lines.append(str(self.part.pieces is not None))
        self.steps(self.part.steps)
        return "\n".join(self.lines)

    def home(self, buffer):
        if buffer in self.plan.registers:
            return "register"
        alone = len(self.plan.users[buffer]) == 1
        return "stack" if buffer in self.plan.stack and alone else "address"

    def number(self, thing):
        return self.numbers.setdefault(thing, len(self.numbers))

    def steps(self, steps):
        for step in steps:
            if isinstance(step, Nest):
                self.nest(step)
            else:
                self.container(step)

    def nest(self, nest):
        self.lines.append(f"{type(nest).__name__} {self.axes(nest.axes)}")
        self.body(nest.body)

    def container(self, step):
        carries = [tuple(map(self.number, carry)) for carry in getattr(step, "carries", ())]
        axis = self.axes([step.axis]) if isinstance(step, Loop) else ""
        index = self.number(step.index) if hasattr(step, "index") else ""
        self.lines.append(f"{type(step).__name__} {axis} {index} {carries}")
        for program in programs_in(step):
            self.lines.append(f"program {[self.number(b) for b in program.inputs]}")
            self.steps(program.steps)
            self.lines.append(f"end {[self.number(b) for b in program.outputs]}")

    def axes(self, axes):
        return " ".join(f"{self.number(a)}:{a.size}" for a in axes)

    def body(self, body):
        for node in body:
            if isinstance(node, Reduce):
                self.lines.append(f"reduce {node.name} {node.lanes} {self.axes(node.axes)}")
                self.body(node.body)
            self.lines.append(f"{self.number(node)} {self.node(node)}")

    def node(self, node):
        if isinstance(node, Op):
            return f"{node.name} {node.dtype.name} {[self.numbers[a] for a in node.args]}"
        if isinstance(node, Const):
            return f"const {node.dtype.name} {node.value.tobytes().hex()}"
        if isinstance(node, Load):
            return (f"load {self.number(node.buffer)} {self.index(node.index)} "
                    f"{self.guard(node.guard)}")
        if isinstance(node, Store):
            return (f"store {self.number(node.buffer)} {self.index(node.index)} "
                    f"{self.numbers[node.value]} {node.combine}")
        if isinstance(node, AxisValue):
            return f"index {node.dtype.name} {self.index(node.index)}"
        if isinstance(node, InBounds):
            return f"within {self.guard(node.guard)}"
        return f"reduced {self.numbers[node.value]}"

    def guard(self, guard):
        return " ".join(f"{self.index(i)}<{n}" for i, n in guard)

    def index(self, index):
        return index_text(index, lambda a: f"i{self.number(a)}", lambda n: f"v{self.numbers[n]}")


def program_text(plan, part_texts):
    """The structure of all native code of a program: entries, their parts, and their buffers."""
    numbers, lines = {}, list(part_texts)
    for entry in plan.entries:
        lines.append(f"{entry.name} {entry.pieces} {entry.needs_workspace} "
                     f"{entry.work > WORTH_RELEASING} {len(entry.parts)}")
        for group in (entry.arrays, *(part.buffers for part in entry.parts)):
            lines.append(" ".join(
                f"{numbers.setdefault(b, len(numbers))}:{plan.offsets.get(b)}:{plan.scratch.get(b)}"
                for b in group))
    return "\n".join(lines)


# Functions that take longer than this many nanoseconds let other threads of Python run.
WORTH_RELEASING = 20_000
