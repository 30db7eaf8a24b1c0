# Exported from notebooks/ref_compiler.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_compiler. In JAX: the MLIR verifier.

What a legal loop IR is, as a program that checks it. Tests run it after every pass.
"""

from math import prod

import numpy as np

from minijax.loop_ir import (
    AxisValue, BOOL, Branch, COMPLEX, Call, Const, IDENTITIES, InBounds, Index, Load, Loop, MOVES,
    NARROW, Nest, OF_COMPLEX, OPS, Op, Quotient, Reduce, SAME, Store, While, buffer_of,
    index_maps_of, nodes_read,
)

__all__ = [
    "LoopIRError", "check", "check_program", "check_steps", "check_is_full", "check_call",
    "check_loop", "check_carries", "check_condition", "check_inner", "check_branch", "check_nest",
    "check_store", "check_body", "check_node", "check_reduce", "check_op", "check_index",
    "check_in_memory",
]


# --- The checker ----------------------------------------------------------------------------------

class LoopIRError(TypeError):
    """A loop IR breaks one of its own rules."""


def check(condition, message):
    if not condition:
        raise LoopIRError(message)


def check_program(program):
    """Raise LoopIRError unless buffers are written before they are read, and steps are legal."""
    written = {b: b.size for b in program.inputs}
    check_steps(program, (), written, "")
    for b in program.outputs:
        check_is_full(b, written, "the results")
    return program


def check_steps(program, axes, written, where):
    """Check steps inside the loops `axes`; count in `written` how many elements buffers have."""
    for number, step in enumerate(program.steps):
        place = f"{where}step {number}"
        if isinstance(step, Call):
            check_call(step, written, place)
        elif isinstance(step, Branch):
            check_branch(step, axes, written, place)
        elif isinstance(step, (Loop, While)):
            check_loop(step, axes, written, place)
        else:
            check_nest(step, axes, written, place)


def check_is_full(buffer, written, where):
    done = written.get(buffer, 0)
    check(done >= buffer.size,
          f"{where}: {done} of {buffer.size} elements were written before a read")


def check_call(step, written, where):
    for b in map(buffer_of, step.inputs):
        check_is_full(b, written, where)
    for given in step.inputs:
        if isinstance(given, tuple):
            check(sorted(given[1]) == list(range(len(given[0].shape))),
                  f"{where}: not a permutation")
    for b in step.outputs:
        check(b not in written, f"{where}: writes a buffer a second time")
        written[b] = b.size


# --- Steps that contain programs ------------------------------------------------------------------

def check_loop(step, axes, written, where):
    check_carries(step, written, where)
    turns = 1
    if isinstance(step, Loop):
        turns = step.axis.size
        check(turns > 0, f"{where}: a loop without turns")
        check(step.axis not in axes, f"{where}: one axis in two loops")
        axes = (*axes, step.axis)
    else:
        check_condition(step, axes, written, where)
    following = [f for _, _, f in step.carries]
    others = [b for b in step.body.outputs if b not in following]
    check(isinstance(step, Loop) or not others, f"{where}: fills parts of {len(others)} buffers, "
          "but nobody knows how many turns there are")
    inside = check_inner(step.body, step.carries, axes, written, where)
    for b in following:
        check_is_full(b, inside, f"{where}: the end of a turn")
    for b in others:
        done = inside.get(b, 0)
        written[b] = written.get(b, 0) + done * turns
        check(written[b] <= b.size, f"{where}: writes a buffer a second time")
    written.update((now, now.size) for _, now, _ in step.carries)


def check_carries(step, written, where):
    nows = [now for _, now, _ in step.carries]
    check(len(set(nows)) == len(nows), f"{where}: one buffer for two carries")
    for start, now, following in step.carries:
        check(len({(b.size, b.dtype) for b in (start, now, following)}) == 1,
              f"{where}: the buffers of a carry differ")
        check_is_full(start, written, where)
        check(now is start or now not in written, f"{where}: writes a buffer a second time")
        check(following is now or following not in nows,
              f"{where}: a carry made of another's memory")
        check(following in step.body.outputs, f"{where}: the body does not make the next carry")


def check_condition(step, axes, written, where):
    flag, = step.condition.outputs
    check(flag.dtype == bool and flag.size == 1, f"{where}: a condition that is no single bool")
    inside = check_inner(step.condition, step.carries, axes, written, f"{where}, condition")
    check_is_full(flag, inside, f"{where}, condition")


def check_inner(program, carries, axes, written, where):
    """Check a program inside a step; return what is written when it has run."""
    known = {now for _, now, _ in carries}
    for b in program.inputs:
        if b not in known:
            check_is_full(b, written, where)
    inside = {b: b.size for b in program.inputs}
    check_steps(program, axes, inside, f"{where}, ")
    return inside


def check_branch(step, axes, written, where):
    check(step.branches and step.index.size == 1, f"{where}: a branch on no single number")
    check_is_full(step.index, written, where)
    for k, program in enumerate(step.branches):
        inside = check_inner(program, (), axes, written, f"{where}, branch {k}")
        check(list(program.outputs) == list(step.outputs), f"{where}: other outputs in branch {k}")
        for b in program.outputs:
            check_is_full(b, inside, f"{where}, branch {k}")
    for b in step.outputs:
        check(b not in written, f"{where}: writes a buffer a second time")
        written[b] = b.size


# --- Nests ----------------------------------------------------------------------------------------

def check_nest(nest, around, written, where):
    check(isinstance(nest, Nest), f"{where}: no step")
    check(all(a.size > 0 for a in nest.axes), f"{where}: an empty loop")
    check(len(set(nest.axes)) == len(nest.axes), f"{where}: one axis in two loops")
    check(set(around).isdisjoint(nest.axes), f"{where}: one axis in two loops")
    check_body(nest.body, {*around, *nest.axes}, written, where)
    count = prod(a.size for a in nest.axes)
    for node in nest.body:
        if isinstance(node, Store):
            check_store(node, nest, written, where)
            if not node.combine:
                written[node.buffer] = written.get(node.buffer, 0) + count


def check_store(node, nest, written, where):
    check(node.value.dtype == node.buffer.dtype, f"{where}: stores {node.value.dtype} into "
          f"{node.buffer.dtype}")
    if node.combine:
        check(node.combine == "replace" or node.combine in IDENTITIES,
              f"{where}: no reduction {node.combine}")
        check_is_full(node.buffer, written, where)
    else:
        check(written.get(node.buffer, 0) < node.buffer.size,
              f"{where}: writes a buffer a second time")


def check_body(body, axes, written, where):
    before = set()
    for node in body:
        for read in nodes_read(node):
            check(read in before,
                  f"{where}: {type(node).__name__} reads a node that does not stand before it")
        for index in index_maps_of(node):
            check_index(index, axes, where)
        check_node(node, axes, written, where)
        before.add(node)


def check_node(node, axes, written, where):
    if isinstance(node, Load):
        check_is_full(node.buffer, written, where)
        check_in_memory(node, where)
    elif isinstance(node, Store):
        check_in_memory(node, where)
    elif isinstance(node, Op):
        check_op(node, where)
    elif isinstance(node, Const):
        check(np.asarray(node.value).dtype == node.dtype, f"{where}: constant of the wrong dtype")
    elif isinstance(node, Reduce):
        check_reduce(node, axes, written, where)
    else:
        check(isinstance(node, (AxisValue, InBounds)), f"{where}: unknown node {node!r}")


def check_reduce(node, axes, written, where):
    check(node.name in IDENTITIES, f"{where}: no reduction {node.name}")
    check(node.lanes & (node.lanes - 1) == 0, f"{where}: {node.lanes} lanes, not a power of two")
    check(axes.isdisjoint(node.axes), f"{where}: one axis in two loops")
    check(node.body[-1] is node.value, f"{where}: a reduction's value must be its body's last node")
    check(not any(isinstance(n, (Reduce, Store)) for n in node.body),
          f"{where}: a loop in a reduction")
    check_body(node.body, axes | set(node.axes), written, where)


def check_op(node, where):
    check(node.name in OPS, f"{where}: no operation {node.name}")
    arity, result = OPS[node.name]
    check(len(node.args) == arity, f"{where}: {node.name} takes {arity} operands")
    operands = node.args[1:] if node.name == "select" else node.args
    dtype = next((a.dtype for a in operands if a.dtype in NARROW or a.dtype in COMPLEX), None)
    allowed = OF_COMPLEX if dtype in COMPLEX else MOVES
    check(dtype is None or node.name in allowed, f"{where}: {node.name} of {dtype}")
    if result in (SAME, BOOL):
        check(len({a.dtype for a in operands}) == 1, f"{where}: {node.name} of "
              f"{', '.join(a.dtype.name for a in operands)}")
    if result is SAME:
        check(node.dtype == operands[0].dtype, f"{where}: {node.name} gives {node.dtype}")
    if result is BOOL:
        check(node.dtype == bool, f"{where}: {node.name} gives {node.dtype}")


# --- Index maps -----------------------------------------------------------------------------------

def check_index(index, axes, where):
    check(isinstance(index, Index), f"{where}: {index!r} is no index map")
    for atom in index.terms:
        if isinstance(atom, Quotient):
            check_index(atom.index, axes, where)
        elif hasattr(atom, "size"):
            check(atom in axes, f"{where}: an index map uses a loop that is not around it")


def check_in_memory(node, where):
    # A guarded load may point outside: it is not carried out there.
    if isinstance(node, Load) and node.guard:
        return
    low, high = node.index.bounds()
    check(0 <= low and high < node.buffer.size,
          f"{where}: index {low} … {high} outside of a buffer of {node.buffer.size} elements")
