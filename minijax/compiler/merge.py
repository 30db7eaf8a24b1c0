# Exported from notebooks/13_fusion.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: 13_fusion. In JAX: XLA's CpuInstructionFusion, MultiOutputFusion.

A value that one loop uses is computed there; loops over the same elements become one loop, in which
values are scalars and never reach memory.
"""

from collections import Counter
from math import prod

from minijax.compiler.bodies import (
    Builder, MAX_NODES, cost, has_reduce, has_short_indices, indices_in, inlining, is_nested,
    is_simple, plain_load, rebuild, replace_axes, simple_producers,
)
from minijax.compiler.dead_steps import drop_dead, has_effect
from minijax.loop_ir import (
    Axis, Load, Nest, Program, Quotient, Reduce, Store, ZERO, all_nodes, axis_index, buffers_read,
    buffers_written, is_fusible, lanes_for, row_major, strides_of, substitute_index, unflatten,
)

__all__ = [
    "inline_single_uses", "values_to_inline", "values_that_wait", "MAX_WAITING_NESTS", "sources",
    "itemsizes", "is_worth_repeating", "reading_places", "add_places", "reads_in_step", "Group",
    "loop_cuts", "merge_loops", "joined_group", "absorb", "reads_all_in_step", "is_written_by",
    "merge_sole_consumers", "MAX_WAITING", "too_many_wait", "last_reads", "use_counts", "final",
    "rebuild_groups", "merged_nest", "coalesce", "coalesce_nest", "merge_axes", "is_one_loop",
    "coalesce_reduce", "LONG_COLUMN", "SIDE", "walk_in_squares", "in_squares", "spans",
    "square_nest", "crosses",
]


# --- Values that one loop uses --------------------------------------------------------------------

def inline_single_uses(program):
    """Compute a value inside the only loop that reads it, where that is at another index, or later.

    Loops that read it at the same index are merged by `merge_loops` instead, if no call stands
    between them. A cheap value, one operation on one load, is computed again in each loop that
    reads it.
    """
    chosen, inlined, steps = values_to_inline(program), {}, []
    for step in program.steps:
        new = step
        if isinstance(step, Nest) and any(b in inlined for b in buffers_read(step)):
            new = rebuild(step, inlining(inlined))
        steps.append(new)
        is_small = isinstance(new, Nest) and len(new.body) <= MAX_NODES // 2
        if is_small and new.body[-1].buffer in chosen and has_short_indices(new):
            inlined[new.body[-1].buffer] = new
    return drop_dead(Program(program.inputs, steps, program.outputs, program.eqns))


def values_to_inline(program):
    """The buffers whose values are better computed where they are read."""
    needed = set(program.outputs) | {b for s in program.steps if not is_fusible(s)
                                     for b in buffers_read(s)}
    places, runs, chosen = reading_places(program.steps), {}, set()
    waits = values_that_wait(program, places, needed)
    # Readers come first, since it matters whether a reader is itself computed elsewhere.
    for buffer, nest in reversed(simple_producers(program.steps).items()):
        found = list(places.get(buffer, {}).values())
        if buffer in needed or not found or has_reduce(nest):
            continue
        counts = [times * runs.get(reader, 1) for reader, _, times in found]
        moved = any(reader in runs or not reads_in_step(reader, load) for reader, load, _ in found)
        if (moved or buffer in waits) and is_worth_repeating(nest, found, counts):
            chosen.add(buffer)
            runs[nest] = max(1, -(-sum(counts) // buffer.size))
    return chosen


def values_that_wait(program, places, needed):
    """Values for one loop behind a call, made of others that are kept across that call anyway.

    So the factor 1 - y² of the derivative of y = tanh x is not kept beside y, the operand of the
    next product.
    """
    steps, producers, waits = program.steps, simple_producers(program.steps), set()
    number = {step: i for i, step in enumerate(steps)}
    calls = [i for i, step in enumerate(steps) if not is_fusible(step)]
    last = {b: i for i, step in enumerate(steps) for b in buffers_read(step)}
    last.update(dict.fromkeys(program.inputs, len(steps)))
    only = {b: next(iter(found.values()))[0] for b, found in places.items()
            if len(found) == 1 and b not in needed and b in producers
            and not has_reduce(producers[b])}
    for buffer, reader in only.items():
        call = next((i for i in calls if i > number[producers[buffer]]), len(steps))
        if call < number[reader]:
            found = sources(buffer, producers, only)
            longer = [b for b in found if last.get(b, -1) < number[reader]]
            if (all([last.get(b, -1) > call for b in found])
                    and itemsizes(found) <= 2 * itemsizes([buffer])
                    and itemsizes(longer) <= itemsizes([buffer])):
                waits.add(buffer)
    return waits


MAX_WAITING_NESTS = 8


def sources(buffer, producers, only):
    """What a value is made of, through values that have no other reader."""
    found, todo = set(), [buffer]
    for _ in range(MAX_WAITING_NESTS):
        todo = [b for b in todo if b in only or found.add(b)]
        if not todo:
            break
        todo.extend(buffers_read(producers[todo.pop()]))
    return found.union(todo)


def itemsizes(buffers):
    return sum([b.dtype.itemsize for b in buffers])


def is_worth_repeating(nest, found, counts):
    # padding reads a few places more than there are elements; repeating more often costs too much
    size = nest.body[-1].buffer.size
    if any(n > size * (1 + bool(load.guard)) for n, (_, load, _) in zip(counts, found)):
        return False
    loads = sum(isinstance(n, Load) for n in nest.body)
    return len(found) == 1 or cost(nest) <= 1 and loads <= 1


def reading_places(steps):
    """buffer -> {what tells them apart: (nest, load, evaluations)} of the loads that read it."""
    places = {}
    for step in steps:
        if isinstance(step, Nest):
            for node in step.body:
                add_places(places, step, node, step.count())
    return places


def add_places(places, nest, node, count):
    if isinstance(node, Load):
        key = (nest, node.index, node.guard)
        places.setdefault(node.buffer, {})[key] = nest, node, count
    elif isinstance(node, Reduce):
        inner = count * prod(a.size for a in node.axes)
        for n in node.body:
            add_places(places, nest, n, inner)


def reads_in_step(nest, load):
    """Whether a nest's loops visit the elements of a buffer one after the other."""
    return (load.index == nest.order() and not load.guard and load.buffer.size == nest.count()
            and is_simple(nest) and load in nest.body)


# --- Loops over the same elements -----------------------------------------------------------------

class Group:
    """Steps that will be one nest, or one call. Its depth is greater than that of all it reads."""

    def __init__(self, step, depth, order):
        self.steps, self.depth, self.order = [step], depth, order
        self.merged_into = None
        self.is_simple = is_simple(step)
        self.nodes = len(list(all_nodes(step.body))) if isinstance(step, Nest) else 0
        self.cuts = loop_cuts(step) if self.is_simple else frozenset()


def loop_cuts(nest):
    """Numbers of elements inside each loop of a nest: they tell which nests can share loops."""
    sizes = [a.size for a in nest.axes]
    return frozenset([*strides_of(sizes), prod(sizes)])


def merge_loops(program):
    """Put nests into one nest if each element of one needs only the same element of the other.

    A nest joins the groups of its producers of greatest depth. They can't depend on one another,
    and everything else that it reads is done before, so no step ends up waiting for itself.
    """
    writers, groups, group_of, last_effect = {}, [], {}, None
    for order, step in enumerate(program.steps):
        before = [group_of[s] for b in buffers_read(step) for s in writers.get(b, ())]
        if has_effect(step, program):
            before += [last_effect] if last_effect else []
        group = joined_group(step, list(dict.fromkeys(before)), group_of, writers)
        if group is None:
            group = Group(step, max((g.depth + 1 for g in before), default=0), order)
            groups.append(group)
        group_of[step] = group
        last_effect = group if has_effect(step, program) else last_effect
        for b in buffers_written(step):
            writers.setdefault(b, []).append(step)
    live = merge_sole_consumers([g for g in groups if g.steps], group_of, writers, program)
    return rebuild_groups(live, program)


def joined_group(step, before, group_of, writers):
    """The group that a step joins, after merging its deepest producers; None if there is none."""
    if not is_simple(step) or not before:
        return None
    depth = max(g.depth for g in before)
    deepest = [g for g in before if g.depth == depth]
    if not all(g.is_simple for g in deepest):
        return None
    if not reads_all_in_step(step, deepest, group_of, writers):
        return None
    cuts = frozenset.union(loop_cuts(step), *(g.cuts for g in deepest))
    nodes = sum(g.nodes for g in deepest) + len(list(all_nodes(step.body)))
    if not is_nested(cuts) or nodes > MAX_NODES:
        return None
    first = deepest[0]
    for other in deepest[1:]:
        absorb(first, other, group_of)
    first.steps.append(step)
    first.cuts, first.nodes = cuts, nodes
    return first


def absorb(group, other, group_of):
    group.steps += other.steps
    for step in other.steps:
        group_of[step] = group
    group.cuts, group.nodes = group.cuts | other.cuts, group.nodes + other.nodes
    group.depth = max(group.depth, other.depth)
    other.steps = []


def reads_all_in_step(step, groups, group_of, writers):
    """Whether a nest reads what these groups write element by element, as its loops go."""
    size, order = step.count(), step.order()
    for node in all_nodes(step.body):
        if isinstance(node, Load) and is_written_by(groups, node.buffer, group_of, writers):
            if node.index != order or node.guard or node.buffer.size != size:
                return False
    inside = [n for r in step.body if isinstance(r, Reduce) for n in r.body if isinstance(n, Load)]
    return not any(is_written_by(groups, n.buffer, group_of, writers) for n in inside)


def is_written_by(groups, buffer, group_of, writers):
    return any(group_of[s] in groups for s in writers.get(buffer, ()))


def merge_sole_consumers(groups, group_of, writers, program):
    """Move a group of nests into the only group that reads it, though that comes later."""
    outputs, uses = set(program.outputs), use_counts(program)
    readers = {}
    for g in groups:
        for step in g.steps:
            for b in buffers_read(step):
                for s in writers.get(b, ()):
                    readers.setdefault(id(group_of[s]), set()).add(g)
    for g in reversed(groups):
        others = {final(r) for r in readers.get(id(g), ())} - {g}
        if len(others) != 1 or not g.is_simple:
            continue
        other = others.pop()
        if other.depth > g.depth + 1 and too_many_wait(g.steps, other.steps, uses):
            continue
        written = {b for s in g.steps for b in buffers_written(s)}
        cuts = g.cuts | other.cuts
        if (other.is_simple and is_nested(cuts) and g.nodes + other.nodes <= MAX_NODES
                and written.isdisjoint(outputs)
                and all(reads_all_in_step(s, [g], group_of, writers) for s in other.steps)):
            other.steps, g.steps, g.merged_into = g.steps + other.steps, [], other
            for s in other.steps:
                group_of[s] = other
            other.cuts, other.nodes = cuts, g.nodes + other.nodes
    return [g for g in groups if g.steps]


# No more values than this may wait for steps that are done later than they could be.
MAX_WAITING = 4


def too_many_wait(early, late, uses):
    """Whether doing some steps only together with later ones keeps many values alive until then."""
    return len(last_reads(early, uses)) > 1 and len(last_reads([*early, *late], uses)) > MAX_WAITING


def last_reads(steps, uses):
    """The values from elsewhere that only these steps read."""
    own = Counter([b for s in steps for b in {*buffers_read(s)}])
    made = {b for s in steps for b in buffers_written(s)}
    return [b for b, n in own.items() if uses[b] == n and b not in made]


def use_counts(program):
    """How many steps read each value that the program makes for itself."""
    made = {b for s in program.steps for b in buffers_written(s)} - {*program.outputs}
    return Counter([b for s in program.steps for b in {*buffers_read(s)} & made])


def final(group):
    while group.merged_into:
        group = group.merged_into
    return group


def rebuild_groups(groups, program):
    """One nest for each group, in an order in which every buffer is written before it is read."""
    position = {step: k for k, step in enumerate(program.steps)}
    groups = sorted(groups, key=lambda g: (g.depth, g.order))
    read_by = {}
    for g in groups:
        for step in g.steps:
            for b in buffers_read(step):
                read_by.setdefault(b, set()).add(id(g))
    steps = []
    for g in groups:
        g.steps.sort(key=position.get)
        if len(g.steps) == 1:
            steps.append(g.steps[0])
        else:
            needed = {b for s in g.steps for b in buffers_written(s)
                      if b in set(program.outputs) or read_by.get(b, set()) - {id(g)}}
            steps.append(merged_nest(g, needed))
    return Program(program.inputs, steps, program.outputs, program.eqns)


def merged_nest(group, needed):
    """The loops of all nests of a group in one; only buffers that are needed outside are stored."""
    cuts = sorted(group.cuts)
    sizes = [b // a for a, b in zip(cuts, cuts[1:])]
    axes = [Axis(n) for n in reversed(sizes)]
    linear, values, builder, stores = row_major(axes), {}, Builder(), []

    def load(builder, buffer, index, guard, eqn):
        return values[buffer] if buffer in values else builder.load(buffer, index, guard, eqn)

    for nest in group.steps:
        index = dict(zip(nest.axes, unflatten(linear, [a.size for a in nest.axes])))
        store = nest.body[-1]
        values[store.buffer] = builder.copy(nest.body, index, load)[store.value]
        if store.buffer in needed:
            stores.append(Store(store.buffer, linear, values[store.buffer], None, store.eqn))
    return Nest(axes, builder.body + stores)


# --- Fewer, longer loops --------------------------------------------------------------------------

def coalesce(program):
    """Make one loop of two that go through memory like one; drop loops of one turn."""
    steps = [coalesce_nest(s) if is_fusible(s) else s for s in program.steps]
    return Program(program.inputs, steps, program.outputs, program.eqns)


def coalesce_nest(nest):
    axes, values = merge_axes(nest.axes, indices_in(nest.body))
    body = replace_axes(nest.body, values)
    return Nest(axes, [coalesce_reduce(n) if isinstance(n, Reduce) else n for n in body])


def merge_axes(axes, indices):
    """(fewer axes, {old axis: its index map}) such that all index maps stay affine in them."""
    axes, values = [a for a in axes if a.size != 1], {}
    k = len(axes) - 2
    while k >= 0:
        outer, inner = axes[k:k + 2]
        if all(is_one_loop(i, outer, inner) for i in indices):
            both = Axis(outer.size * inner.size)
            step = {outer: ZERO, inner: axis_index(both)}
            indices = [substitute_index(i, step) for i in indices]
            values = {a: substitute_index(v, step) for a, v in values.items()} | step
            axes[k:k + 2] = [both]
            k = min(k, len(axes) - 2)
        else:
            k -= 1
    return axes, values


def is_one_loop(index, outer, inner):
    """Whether an index map can't tell two loops from one of outer.size * inner.size turns."""
    if index.terms.get(outer, 0) != index.terms.get(inner, 0) * inner.size:
        return False
    return all(is_one_loop(atom.index, outer, inner) for atom in index.terms
               if isinstance(atom, Quotient))


def coalesce_reduce(node):
    axes, values = merge_axes(node.axes, indices_in(node.body))
    if values:
        builder = Builder()
        node.value = builder.copy(node.body, values, plain_load)[node.value]
        node.body = builder.body
    node.axes, node.lanes = axes, lanes_for(axes)
    return node


# --- Rows and columns at once ---------------------------------------------------------------------

# A loop over columns this long leaves nothing in the cache for the next one; the side of a square:
# some cache lines.
LONG_COLUMN, SIDE = 256, 64


def walk_in_squares(program):
    """Let nests that go along rows and columns at once finish one square before the next."""
    steps = [s for step in program.steps
             for s in (in_squares(step) if is_fusible(step) else [step])]
    return Program(program.inputs, steps, program.outputs, program.eqns)


def in_squares(nest):
    """The nest with its last two loops cut, if some load's rows are the columns of the loops.

    What no square is left for, at the ends of rows and columns, has nests of its own.
    """
    *outer, down, along = nest.axes if len(nest.axes) > 1 else (None, None)
    if down is None or has_reduce(nest) or not any(crosses(n, down, along) for n in nest.body):
        return [nest]
    return [square_nest(nest, outer, {down: above, along: before})
            for above in spans(down.size) for before in spans(along.size)]


def spans(size):
    """(begin, count, length) of an axis' sides of whole squares, and of a last, shorter side."""
    count, rest = divmod(size, SIDE)
    return [(0, count, SIDE)] * (count > 0) + [(size - rest, 1, rest)] * (rest > 0)


def square_nest(nest, outer, spans):
    """A part of the nest: in each of its last two loops, pieces of a span."""
    squares = [Axis(count) for _, count, _ in spans.values()]
    inside = [Axis(length) for _, _, length in spans.values()]
    values = {a: row_major(parts) + begin
              for (a, (begin, _, _)), *parts in zip(spans.items(), squares, inside)}
    return Nest([*outer, *squares, *inside], replace_axes(nest.body, values))


def crosses(node, down, along):
    return (isinstance(node, Load) and along.size >= LONG_COLUMN
            and node.index.terms.get(down) == 1 and node.index.terms.get(along, 0) > 1)
