# Exported from notebooks/13_fusion.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: 13_fusion. In JAX: XLA's TreeReductionRewriter.

Long reductions are cut into blocks: one nest reduces each block, another one the blocks' results.
The cuts depend on sizes alone, so they are part of what a program means: on any number of threads
a sum is the same, and a float32 sum of a million terms keeps seven digits.
"""

from math import prod

from minijax.compiler.bodies import Builder, MAX_NODES, plain_load, rebuild
from minijax.compiler.merge import coalesce_nest
from minijax.loop_ir import (
    Axis, Buffer, IDENTITIES, Load, Nest, Program, Reduce, Store, axis_index, flat_index, identity,
    is_fusible, lanes_for, programs_in, row_major, with_programs,
)

__all__ = [
    "BLOCK", "cut_reductions", "cut_nest", "turns_of", "cut_reduce", "block_of", "fitting",
    "is_interleaved", "block_nest", "ROWS", "AT_ONCE", "summed_axis", "cut_columns",
    "block_of_rows", "sum_of_parts", "several_rows", "with_rows",
]


# --- Long reductions in blocks --------------------------------------------------------------------

# Elements of a block: 16 KB of float32, which is a part of the fastest cache.
BLOCK = 4096


def cut_reductions(program):
    """Long reductions become reductions of blocks, and then of the blocks' results."""
    steps = []
    for step in program.steps:
        if is_fusible(step):
            steps += cut_nest(step)
        elif programs_in(step):
            steps.append(with_programs(step, list(map(cut_reductions, programs_in(step)))))
        else:
            steps.append(step)
    return Program(program.inputs, steps, program.outputs, program.eqns)


def cut_nest(nest):
    """The nests that compute what this one does, in which no reduction is long."""
    if (axis := summed_axis(nest)) is not None:
        return cut_columns(nest, axis)
    long = [n for n in nest.body if isinstance(n, Reduce) and turns_of(n.axes) >= 2 * BLOCK]
    if not long:
        return [nest]
    cuts = {node: cut_reduce(node, nest) for node in long}
    steps = [step for _, nests in cuts.values() for step in nests]
    parts = {node: part for node, (part, _) in cuts.items()}
    return [*steps, *cut_nest(rebuild(nest, plain_load, _OfParts(parts, nest)))]


def turns_of(axes):
    return prod(a.size for a in axes)


class _OfParts(Builder):
    """Copies a nest's body, reducing the results of blocks instead of elements."""

    def __init__(self, parts, nest):
        super().__init__()
        self.parts, self.nest = parts, nest

    def reduce(self, node, axis_values, load):
        part = self.parts.get(node)
        if part is None:
            return super().reduce(node, axis_values, load)
        axis = Axis(part.size // self.nest.count())
        element = Load(part, self.nest.order() * axis.size + axis_index(axis), (), node.eqn)
        made = Reduce(node.name, [axis], [element], element, lanes_for([axis]), node.eqn)
        return self.add(made, made)


def cut_reduce(node, nest):
    """(a buffer for the results of blocks, the nests that fill it)."""
    outer, axis, inner, turns = block_of(node.axes)
    blocks, rest = divmod(axis.size, turns)
    loops = [*nest.axes, *outer]
    part = Buffer((*(a.size for a in loops), blocks + bool(rest)), node.dtype)
    steps = [block_nest(node, loops, axis, inner, part, range(blocks), turns, 0)]
    if rest:
        steps.append(block_nest(node, loops, axis, inner, part, [blocks], rest, blocks * turns))
    return part, steps


def block_of(axes):
    """Which loop to cut, the loops outside and inside of it, and its turns in a block."""
    inside, k = 1, len(axes) - 1
    while inside * axes[k].size < 2 * BLOCK:
        inside *= axes[k].size
        k -= 1
    turns = fitting(axes[k].size, max(1, BLOCK // inside))
    return axes[:k], axes[k], axes[k + 1:], turns


def fitting(size, most):
    """A number of turns near `most` that divides `size`, if there is one; else `most`."""
    return next((n for n in range(most, most // 2, -1) if size % n == 0), most)


def is_interleaved(node):
    """Whether neighbours of a reduction lie apart in memory, with others between."""
    return any(n.index.terms.get(node.axes[-1], 0) > 1 for n in node.body if isinstance(n, Load))


def block_nest(node, loops, axis, inner, part, blocks, turns, first):
    """The nest that reduces blocks of as many turns of a loop, beginning with the turn `first`."""
    block, here = Axis(len(blocks)), Axis(turns)
    fresh = [Axis(a.size) for a in loops]
    values = dict(zip(loops, map(axis_index, fresh)))
    values[axis] = axis_index(block) * turns + axis_index(here) + first
    made = Builder().reduce_over([here, *inner], node, values, plain_load)
    place = flat_index([*map(axis_index, fresh), axis_index(block) + blocks[0]], part.shape)
    # loops that share what they read of a block should be inside
    axes = [block, *fresh] if is_interleaved(made) and turns_of(fresh) <= 8 else [*fresh, block]
    return coalesce_nest(Nest(axes, [made, Store(part, place, made, None, node.eqn)]))


# Rows of a block of columns, and rows that are combined before they go to memory.
ROWS, AT_ONCE = 64, 4


def summed_axis(nest):
    """The loop over rows if a nest adds up the rows of a large matrix in memory; else None."""
    *before, store = nest.body
    if (not isinstance(store, Store) or store.combine not in IDENTITIES or nest.count() < 2 * BLOCK
            or any(isinstance(n, (Reduce, Store)) for n in before)):
        return None
    kept = [a for a in nest.axes if a in store.index.terms]
    summed = [a for a in nest.axes if a not in store.index.terms]
    covers = (kept and store.index == row_major(kept) and turns_of(kept) == store.buffer.size)
    return summed[0] if covers and summed and summed[0].size >= AT_ONCE else None


def cut_columns(nest, axis):
    """The nests that add up rows block by block, and then the blocks."""
    if axis.size < 2 * ROWS:
        return several_rows(nest, axis)
    store, turns = nest.body[-1], fitting(axis.size, ROWS)
    blocks, rest = divmod(axis.size, turns)
    part = Buffer((blocks + bool(rest), store.buffer.size), store.buffer.dtype)
    start, place = identity(store.combine, part.dtype), Axis(part.size)
    steps = [Nest([place], [start, Store(part, axis_index(place), start, None, store.eqn)])]
    steps += block_of_rows(nest, axis, part, range(blocks), turns, 0)
    if rest:
        steps += block_of_rows(nest, axis, part, [blocks], rest, blocks * turns)
    return [*steps, *cut_nest(sum_of_parts(part, store))]


def block_of_rows(nest, axis, part, blocks, turns, first):
    """The nests that add up the rows of each block in the block's row of `part`."""
    block, here, store = Axis(len(blocks)), Axis(turns), nest.body[-1]
    row = axis_index(block) * turns + axis_index(here) + first
    builder = Builder()
    value = builder.copy(nest.body, {axis: row}, plain_load)[store.value]
    place = store.index + (axis_index(block) + blocks[0]) * store.buffer.size
    body = [*builder.body, Store(part, place, value, store.combine, store.eqn)]
    return several_rows(Nest([block, *(here if a is axis else a for a in nest.axes)], body), here)


def sum_of_parts(part, store):
    row, column = map(Axis, part.shape)
    load = Load(part, row_major([row, column]), (), store.eqn)
    place = axis_index(column)
    return Nest([row, column], [load, Store(store.buffer, place, load, store.combine, store.eqn)])


def several_rows(nest, axis):
    """Combine a few rows in registers, then go to memory with the result."""
    at_once = AT_ONCE
    while at_once * len(nest.body) > MAX_NODES and at_once > 1:
        at_once //= 2
    groups, rest = divmod(axis.size, at_once)
    turn, last = Axis(groups), Axis(rest)
    places = [axis_index(turn) * at_once + k for k in range(at_once)]
    steps = [with_rows(nest, axis, turn, places)] if groups else []
    if rest:
        steps.append(with_rows(nest, axis, last, [axis_index(last) + groups * at_once]))
    return steps


def with_rows(nest, axis, turn, places):
    """The nest with a loop over `turn` in place of `axis`, at several places of it in each turn."""
    store, builder = nest.body[-1], Builder()
    values = [builder.copy(nest.body, {axis: p}, plain_load)[store.value] for p in places]
    while len(values) > 1:
        values = [builder.op(store.combine, pair, store.buffer.dtype, store.eqn)
                  for pair in zip(values[::2], values[1::2])]
    body = [*builder.body, Store(store.buffer, store.index, *values, store.combine, store.eqn)]
    return coalesce_nest(Nest([turn if a is axis else a for a in nest.axes], body))
