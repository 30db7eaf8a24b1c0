"""What a loop IR means, said by a program that runs it: the oracle of the tests of passes.

Slow and plain: each node is computed for all turns of its loops before the next one; a reduction
goes through its elements one by one, in the order and into the accumulators that the IR names.
"""
from math import prod

import numpy as np

from minijax.compiler import runtime
from minijax.compiler.render_python import op_text
from minijax.loop_ir import (
    Axis, AxisValue, Branch, Call, Const, Dynamic, InBounds, Load, Loop, Op, Reduce, Remainder, Store,
    While, buffers_written, identity,
)


def run(program, arrays):
    """The results of a program whose inputs have these values."""
    memory = {b: np.array(a, b.dtype).reshape(-1) for b, a in zip(program.inputs, arrays, strict=True)}
    with np.errstate(all="ignore"):
        run_steps(program.steps, memory, {})
    return [memory[b].reshape(b.shape) for b in program.outputs]


def run_steps(steps, memory, turn):
    for step in steps:
        if isinstance(step, Call):
            run_call(step, memory)
        elif isinstance(step, (Loop, While)):
            run_loop(step, memory, turn)
        elif isinstance(step, Branch):
            last = len(step.branches) - 1
            chosen = step.branches[min(max(int(memory[step.index][0]), 0), last)]
            run_steps(chosen.steps, memory, turn)
        else:
            run_nest(step, memory, turn)


def run_call(step, memory):
    def given(b):
        buffer, permutation = b if isinstance(b, tuple) else (b, range(len(b.shape)))
        return memory[buffer].reshape(buffer.shape).transpose(*permutation)
    outs = step.function(*map(given, step.inputs))
    for buffer, out in zip(step.outputs, outs if step.many else [outs], strict=True):
        memory[buffer] = np.array(out).reshape(-1)


def run_loop(step, memory, turn):
    memory.update({now: memory[start].copy() for start, now, _ in step.carries})
    own = {b for s in step.body.steps for b in buffers_written(s)} - set(step.body.outputs)
    for inside in turns_of_loop(step, memory, turn):
        for b in own:
            memory.pop(b, None)               # what a turn keeps to itself is gone in the next
        run_steps(step.body.steps, memory, inside)
        memory.update({now: memory[following].copy() for _, now, following in step.carries})


def turns_of_loop(step, memory, turn):
    """The values of axes in each turn."""
    if isinstance(step, Loop):
        for t in range(step.axis.size):
            yield {**turn, step.axis: t}
        return
    flag, = step.condition.outputs
    run_steps(step.condition.steps, memory, turn)
    while memory[flag][0]:
        yield turn
        run_steps(step.condition.steps, memory, turn)


def run_nest(nest, memory, turn):
    turns = all_turns(nest.axes)
    run_body(nest.body, memory, {**{a: np.array(t) for a, t in turn.items()}, **turns},
             prod(a.size for a in nest.axes))


def all_turns(axes):
    """axis -> its value in each turn of loops over all of them."""
    sizes = [a.size for a in axes]
    grid = np.indices(sizes).reshape(len(axes), prod(sizes))
    return dict(zip(axes, grid))


def run_body(body, memory, axes, count):
    values = {}

    def index(i):
        return sum((c * atom(a) for a, c in i.terms.items()), np.full(count, i.offset))

    def atom(a):
        if isinstance(a, Axis):
            return axes.get(a, 0)             # a loop of one turn may go without
        if isinstance(a, Dynamic):
            return values[a.node]
        inner = index(a.index)
        return inner % a.divisor if isinstance(a, Remainder) else inner // a.divisor

    def holds(guard):
        return np.logical_and.reduce([np.full(count, True), *((0 <= index(i)) & (index(i) < n)
                                                              for i, n in guard)])

    for node in body:
        if isinstance(node, Store):
            store(node, memory, index(node.index), values[node.value])
        elif isinstance(node, Reduce):
            values[node] = reduce(node, memory, axes, count)
        elif isinstance(node, Load):
            data, places = memory[node.buffer], index(node.index)
            inside = holds(node.guard)
            assert np.all((0 <= places[inside]) & (places[inside] < node.buffer.size)), "outside"
            values[node] = np.where(inside, data[np.where(inside, places, 0)], data.dtype.type(0))
        else:
            values[node] = value(node, values, index, holds, count)
    return values


def value(node, values, index, holds, count):
    if isinstance(node, Const):
        return np.full(count, node.value, node.dtype)
    if isinstance(node, AxisValue):
        return index(node.index).astype(node.dtype)
    if isinstance(node, InBounds):
        return holds(node.guard)
    return apply(node, [values[a] for a in node.args])


def apply(node, operands):
    names = "abc"[:len(operands)]
    text = op_text(node, list(names)) if isinstance(node, Op) else node
    scalar = eval(f"lambda {', '.join(names)}: {text}", vars(runtime))
    dtype = node.dtype if isinstance(node, Op) else operands[0].dtype
    return np.array([scalar(*xs) for xs in zip(*operands)], dtype)


def store(node, memory, places, value):
    data = memory.setdefault(node.buffer, np.zeros(node.buffer.size, node.buffer.dtype))
    for place, v in zip(places, value):
        if node.combine in (None, "replace"):
            data[place] = v
        else:
            data[place] = combined(node.combine, data[place:place + 1], np.array([v]))[0]


def combined(name, x, y):
    return apply(Op(name, (Const(0, x.dtype),) * 2, x.dtype), [x, y])


def reduce(node, memory, axes, count):
    inner = all_turns(node.axes)
    size = prod(a.size for a in node.axes)
    turns = {a: np.repeat(np.broadcast_to(t, count), size) for a, t in axes.items()}
    turns |= {a: np.tile(t, count) for a, t in inner.items()}
    elements = run_body(node.body, memory, turns, count * size)[node.value].reshape(count, size)
    innermost = next((a for a in reversed(node.axes) if a.size != 1), None)
    lanes = [np.full(count, identity(node.name, node.dtype).value) for _ in range(node.lanes)]
    for k in range(size):
        lane = 0 if innermost is None else inner[innermost][k] % node.lanes
        lanes[lane] = combined(node.name, lanes[lane], elements[:, k])
    while len(lanes) > 1:
        half = len(lanes) // 2
        lanes = [combined(node.name, x, y) for x, y in zip(lanes[:half], lanes[half:])]
    return lanes[0]
