# Exported from notebooks/ref_compiler.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_compiler. In JAX: no counterpart (compilers call it interchange).

A loop that runs until every example of a batch is done, as vmap of `while_loop` makes it, goes
through whole arrays in each turn. If examples have nothing to do with one another, some of them can
run to their end before others begin: then carries fit into registers, and a tile of examples that
are done does not wait for the slowest of all.
"""

from minijax.compiler.bodies import Builder
from minijax.compiler.dead_steps import body_program
from minijax.loop_ir import (
    Axis, AxisValue, Buffer, FEW_LANES, InBounds, Load, Loop, Nest, Program, Reduce, Store, While,
    ZERO, axis_index, buffers_read, buffers_written, programs_in, with_programs,
)

__all__ = ["TILE", "tile_loops", "examples_of", "is_for_each", "works_on_one", "tiles_of", "Tile"]


# --- Which loops, and their tiles -----------------------------------------------------------------

TILE = 32                         # examples that run together: some vectors of numbers


def tile_loops(program):
    """Put a loop over tiles of examples around each While that computes every example by itself."""
    steps = []
    for step in program.steps:
        if programs_in(step):
            step = with_programs(step, [body_program(tile_loops(p)) for p in programs_in(step)])
        count = examples_of(step) if isinstance(step, While) else 0
        steps += tiles_of(step, count, program.eqns) if count > TILE else [step]
    return Program(program.inputs, steps, program.outputs, program.eqns)


def examples_of(step):
    """How many examples a While runs until none of their conditions holds; 0 for other loops."""
    *steps, last = step.condition.steps or [None]
    reduction = last.body[0] if isinstance(last, Nest) else None
    if not isinstance(reduction, Reduce) or reduction.name != "or" or last.axes:
        return 0
    count = reduction.axes[0].size
    is_plain = len(reduction.axes) == 1 and isinstance(reduction.value, Load)
    if not is_plain or any(b.size != count for carry in step.carries for b in carry):
        return 0
    nests = [*steps, *step.body.steps]
    return count if all(is_for_each(s, count) or works_on_one(s) for s in nests) else 0


def is_for_each(step, count):
    """Whether a step is a nest in which each example has a turn that only sees that example."""
    if not isinstance(step, Nest) or step.count() != count:
        return False
    order = step.order()
    for node in step.body:
        if isinstance(node, (Reduce, AxisValue, InBounds)):
            return False
        if isinstance(node, Load) and (node.guard or node.index != ZERO or node.buffer.size != 1):
            if node.guard or node.index != order or node.buffer.size != count:
                return False
        if isinstance(node, Store) and (node.combine or node.index != order):
            return False
    return True


def works_on_one(step):
    """Whether a step is a nest that computes one number for all examples."""
    return isinstance(step, Nest) and step.count() == 1 and all(
        b.size == 1 for b in [*buffers_read(step), *buffers_written(step)])


def tiles_of(step, count, eqns):
    """A Loop over whole tiles, and the steps for the examples that are left."""
    axis, left = Axis(count // TILE), count % TILE
    tile = Tile(step, axis_index(axis) * TILE, TILE)
    nows = [now for _, now, _ in step.carries]
    body = body_program(Program([], tile.steps(), nows, eqns))
    rest = Tile(step, ZERO + (count - left), left).steps() if left else []
    return [Loop(axis, body, [], step.eqn), *rest]


class Tile:
    """The steps of a While for `size` examples, of which the first has the number `first`."""

    def __init__(self, step, first, size):
        self.step, self.first, self.size = step, first, size
        inside = {b for p in programs_in(step) for s in p.steps for b in buffers_written(s)}
        inside.update(now for _, now, _ in step.carries)
        self.own = {b: Buffer(b.shape if b.size == 1 else (size,), b.dtype) for b in inside}

    def steps(self):
        """Take parts of the carries, run the loop, and put the results in their places."""
        step, own = self.step, self.own
        starts = [Buffer((self.size,), start.dtype) for start, _, _ in step.carries]
        *steps, last = step.condition.steps
        condition = Program([], [*map(self.nest, steps), self.any(last)],
                            [own[step.condition.outputs[0]]], step.condition.eqns)
        body = Program([], [*map(self.nest, step.body.steps)],
                       [own[f] for _, _, f in step.carries], step.body.eqns)
        carries = [(start, own[now], own[following])
                   for start, (_, now, following) in zip(starts, step.carries)]
        loop = While(body_program(condition), body_program(body), carries, step.eqn)
        before = [self.copy(part, ZERO, start, self.first)
                  for part, (start, _, _) in zip(starts, step.carries)]
        return [*before, loop, *(self.copy(now, self.first, own[now], ZERO)
                                 for _, now, _ in step.carries)]

    def copy(self, target, to, source, begin):
        axis = Axis(self.size)
        load = Load(source, begin + axis_index(axis))
        return Nest([axis], [load, Store(target, to + axis_index(axis), load)])

    def any(self, nest):
        """Whether the condition of any of the tile's examples holds."""
        reduction, store = nest.body
        axis = Axis(self.size)
        load = Load(self.own[reduction.value.buffer], axis_index(axis))
        found = Reduce("or", [axis], [load], load, FEW_LANES, reduction.eqn)
        return Nest([], [found, Store(self.own[store.buffer], ZERO, found, None, store.eqn)])

    def nest(self, nest):
        """The turns of a nest that belong to the tile."""
        axis = Axis(self.size)
        place = axis_index(axis)

        def load(builder, buffer, index, guard, eqn):
            if buffer.size == 1:
                return builder.load(self.own.get(buffer, buffer), ZERO, (), eqn)
            if buffer in self.own:
                return builder.load(self.own[buffer], place, (), eqn)
            return builder.load(buffer, self.first + place, (), eqn)

        builder = Builder()
        new = builder.copy(nest.body, {}, load)
        for node in nest.body:
            if isinstance(node, Store):
                to = place if node.buffer.size != 1 else ZERO
                builder.body.append(
                    Store(self.own[node.buffer], to, new[node.value], None, node.eqn))
        return Nest([axis] if nest.count() != 1 else [], builder.body)
