# Exported from notebooks/ref_compiler.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: ref_compiler. In JAX: XLA's fusion and buffer elision passes.

Turns one nest an equation into few nests. What only rearranges elements becomes arithmetic on
indices; a result that one loop uses is computed there; loops over the same elements become one
loop, in which results are scalars and never reach memory.
"""

from math import prod

from minijax.compiler.dead_steps import body_program, drop_dead, has_calls, has_effect
from minijax.loop_ir import (
    Axis, AxisValue, Call, Const, InBounds, Load, Nest, Op, Program, Quotient, Reduce, Store, ZERO,
    all_nodes, axis_index, buffers_read, buffers_written, guard_of, index_maps_of, lanes_for,
    programs_in, row_major, strides_of, substitute_index, unflatten, with_programs,
)

__all__ = [
    "MAX_NODES", "fuse", "run_fusion_passes", "fuse_inside", "simple_producers", "is_simple",
    "is_view", "is_padding", "has_reduce", "CHEAP", "cost", "Builder", "merge_guards", "plain_load",
    "rebuild", "inlining", "inline_views", "split_axes", "collect_cuts", "divided_axis", "is_short",
    "has_short_indices", "MAX_ATOMS", "atoms_in", "strided_operands", "transposed",
    "permutation_of", "is_same_memory", "reshaper", "inline_single_uses", "values_to_inline",
    "is_worth_repeating", "reading_places", "add_places", "reads_in_step", "Group", "loop_cuts",
    "merge_loops", "joined_group", "absorb", "reads_all_in_step", "is_written_by", "is_nested",
    "merge_sole_consumers", "final", "rebuild_groups", "merged_nest", "coalesce", "coalesce_nest",
    "merge_axes", "is_one_loop", "indices_in", "replace_axes", "coalesce_reduce", "FUSION_PASSES",
]


# --- Fusing loops ---------------------------------------------------------------------------------

# A nest with more nodes than this is not made longer: registers run out, compilers slow down.
MAX_NODES = 250


def fuse(program):
    """Run the passes on loop IR one after the other, on the programs inside steps first."""
    return run_fusion_passes(drop_dead(program), FUSION_PASSES)


def run_fusion_passes(program, passes):
    steps = [fuse_inside(s) if programs_in(s) else s for s in program.steps]
    program = Program(program.inputs, steps, program.outputs, program.eqns)
    for step in passes:
        program = step(program)
    return program


def fuse_inside(step):
    """The step with fused programs. In machine code nothing may become a call."""
    passes = [p for p in FUSION_PASSES if has_calls(step) or p is not strided_operands]
    return with_programs(step, [body_program(run_fusion_passes(p, passes))
                                for p in programs_in(step)])


# --- Who writes and reads what --------------------------------------------------------------------

def simple_producers(steps):
    """buffer -> the nest that writes it: all of it, in order, with nothing else, in one place."""
    producers, writers = {}, {}
    for step in steps:
        for b in buffers_written(step):
            writers[b] = writers.get(b, 0) + 1
        if is_simple(step):
            producers[step.body[-1].buffer] = step
    return {b: nest for b, nest in producers.items() if writers[b] == 1}


def is_simple(step):
    if not isinstance(step, Nest):
        return False
    *before, last = step.body
    return (isinstance(last, Store) and not last.combine and last.index == step.order()
            and step.count() == last.buffer.size and not any(isinstance(n, Store) for n in before))


def is_view(nest):
    """Whether a nest computes nothing: it moves elements, or fills in constants and indices."""
    return all(isinstance(n, (Load, Const, AxisValue, InBounds, Store)) or is_padding(n)
               for n in nest.body)


def is_padding(node):
    return isinstance(node, Op) and (node.name == "clamp_index" or node.name == "select" and
                                     isinstance(node.args[0], InBounds))


def has_reduce(nest):
    return any(isinstance(n, Reduce) for n in nest.body)


# Operations that take no longer than reading their result back from memory would.
CHEAP = frozenset("neg abs add sub mul max min and or xor not eq ne lt le gt ge select convert "
                  "bitcast".split())


def cost(nest):
    """About how many cheap operations the nest's body is worth."""
    return sum(1 if n.name in CHEAP else 10 for n in all_nodes(nest.body)
               if isinstance(n, Op) and not is_padding(n))


# --- Building bodies ------------------------------------------------------------------------------

class Builder:
    """Collects the nodes of a new body. A node that is there already is used again."""

    def __init__(self):
        self.body, self.seen = [], {}

    def add(self, node, key):
        if key not in self.seen:
            self.seen[key] = node
            self.body.append(node)
        return self.seen[key]

    def copy(self, body, axis_values, load, guard=()):
        """Add the nodes of `body` with new indices; load(buffer, index, guard, eqn) makes loads."""
        new = {}
        for node in body:
            if not isinstance(node, Store):
                new[node] = self.copy_node(node, new, axis_values, load, guard)
        return new

    def copy_node(self, node, new, axis_values, load, guard):
        def index(old):
            return substitute_index(old, axis_values, new)

        if isinstance(node, Load):
            own = tuple((index(i), n) for i, n in node.guard)
            return load(self, node.buffer, index(node.index), guard_of(merge_guards(guard, own)),
                        node.eqn)
        if isinstance(node, Op):
            return self.op(node.name, [new[a] for a in node.args], node.dtype, node.eqn)
        if isinstance(node, Const):
            return self.add(node, ("const", node.dtype, node.value.tobytes()))
        if isinstance(node, AxisValue):
            made = AxisValue(index(node.index), node.dtype, node.eqn)
            return self.add(made, ("axis", made.index, made.dtype))
        if isinstance(node, InBounds):
            made = InBounds(guard_of((index(i), n) for i, n in node.guard), node.eqn)
            return self.add(made, ("within", made.guard))
        return self.reduce(node, axis_values, load)

    def load(self, buffer, index, guard=(), eqn=None):
        return self.add(Load(buffer, index, guard, eqn), (buffer, index, guard))

    def op(self, name, args, dtype, eqn):
        key = (name, dtype, tuple(map(id, args)))
        return self.add(Op(name, tuple(args), dtype, eqn), key)

    def reduce(self, node, axis_values, load):
        axes = [Axis(a.size) for a in node.axes]
        inner = Builder()
        values = {**axis_values, **dict(zip(node.axes, map(axis_index, axes)))}
        value = inner.copy(node.body, values, load)[node.value]
        inner.body.remove(value)       # it must stand last; nothing in the body reads it
        inner.body.append(value)
        made = Reduce(node.name, axes, inner.body, value, node.lanes, node.eqn)
        return self.add(made, made)


def merge_guards(outer, own):
    return outer + tuple(g for g in own if g not in outer)


def plain_load(builder, buffer, index, guard, eqn):
    return builder.load(buffer, index, guard, eqn)


def rebuild(nest, load):
    """A nest with the same loops whose loads are made by `load`."""
    builder = Builder()
    new = builder.copy(nest.body, {}, load)
    for node in nest.body:
        if isinstance(node, Store):
            index = substitute_index(node.index, {}, new)
            builder.body.append(Store(node.buffer, index, new[node.value], node.combine, node.eqn))
    return Nest(nest.axes, builder.body)


def inlining(producers):
    """A load that computes the element in place if its buffer is among `producers`."""
    def load(builder, buffer, index, guard, eqn):
        nest = producers.get(buffer)
        if nest is None:
            return builder.load(buffer, index, guard, eqn)
        values = dict(zip(nest.axes, unflatten(index, [a.size for a in nest.axes])))
        new = builder.copy(nest.body, values, plain_load, guard)
        return new[nest.body[-1].value]
    return load


# --- Views are index maps -------------------------------------------------------------------------

def inline_views(program):
    """Read through transposes, slices, broadcasts, constants … to where elements are stored."""
    views = {}
    producers = simple_producers(program.steps)
    load = inlining(views)
    steps = []
    for step in program.steps:
        new = step
        if isinstance(step, Nest) and any(b in views for b in buffers_read(step)):
            new = rebuild(step, load)
        steps.append(new)
        if isinstance(new, Nest) and is_view(new) and is_short(new):
            store = new.body[-1]
            if producers.get(store.buffer) is step:
                views[store.buffer] = new
    steps = [split_axes(s) if isinstance(s, Nest) else s for s in steps]
    return drop_dead(Program(program.inputs, steps, program.outputs, program.eqns))


def split_axes(nest):
    """Two loops for one where index maps take quotients of it: then they need none.

    A loop over all elements of a matrix that reads a row becomes loops over rows and over columns.
    """
    cuts = {axis: {1, axis.size} for axis in nest.axes}
    for index in indices_in(nest.body):
        collect_cuts(index, cuts)
    values, axes = {}, []
    for axis in nest.axes:
        parts = [axis]
        if len(cuts[axis]) > 2 and is_nested(cuts[axis]):
            ordered = sorted(cuts[axis], reverse=True)
            parts = [Axis(a // b) for a, b in zip(ordered, ordered[1:])]
            values[axis] = row_major(parts)
        axes += parts
    return Nest(axes, replace_axes(nest.body, values)) if values else nest


def collect_cuts(index, cuts):
    """Add the numbers of turns at which quotients of a loop variable change."""
    for atom in index.terms:
        if isinstance(atom, Quotient):
            axis, divisor = divided_axis(atom)
            if axis in cuts:
                cuts[axis].add(divisor)
            collect_cuts(atom.index, cuts)


def divided_axis(atom):
    """(axis, n) if an atom is axis // n, or (axis // (n / m)) % m; else (None, 0)."""
    if list(atom.index.terms.values()) != [1] or atom.index.offset:
        return None, 0
    inner, = atom.index.terms
    if isinstance(inner, Axis):
        return inner, atom.divisor
    axis, divisor = divided_axis(inner) if isinstance(inner, Quotient) else (None, 0)
    return axis, divisor * atom.divisor


def is_short(nest):
    """Whether reading through a view is cheap: few nodes, and index maps that are quick."""
    return len(nest.body) <= MAX_NODES // 8 and has_short_indices(nest)


def has_short_indices(nest):
    return all(atoms_in(i) <= MAX_ATOMS for node in nest.body for i in index_maps_of(node))


# Quotients of remainders of quotients … double with each reshape between transposes.
MAX_ATOMS = 12


def atoms_in(index):
    return sum(1 + (atoms_in(a.index) if isinstance(a, Quotient) else 0) for a in index.terms)


# --- What memory already holds --------------------------------------------------------------------

def strided_operands(program):
    """Give calls transposed operands as strided views, and reshapes as the same memory."""
    producers = simple_producers(program.steps)
    steps = []
    for step in program.steps:
        if isinstance(step, Call):
            step.inputs = [transposed(b, producers) for b in step.inputs]
        elif is_same_memory(step, producers):
            load, store = step.body
            step = Call("reshape", reshaper(store.buffer.shape), [load.buffer], [store.buffer],
                        store.eqn)
        steps.append(step)
    return drop_dead(Program(program.inputs, steps, program.outputs, program.eqns))


def transposed(given, producers):
    nest = producers.get(given) if not isinstance(given, tuple) else None
    if nest is None or len(nest.body) != 2 or not isinstance(nest.body[0], Load):
        return given
    load, shape = nest.body[0], nest.body[1].buffer.shape
    permutation = permutation_of(load, nest.axes)
    if permutation is None or [a.size for a in nest.axes] != list(shape):
        return given
    return load.buffer, permutation


def permutation_of(load, axes):
    """The order in which loops go through the axes of the buffer, if they do just that."""
    source = load.buffer
    if (load.guard or load.index.offset or len(axes) != len(source.shape) or 1 in source.shape
            or set(load.index.terms) != set(axes)):
        return None
    strides = strides_of(source.shape)
    places = [strides.index(c) if (c := load.index.terms[a]) in strides else -1 for a in axes]
    sizes_agree = all(k >= 0 and source.shape[k] == a.size for k, a in zip(places, axes))
    return tuple(places) if sizes_agree and len(set(places)) == len(axes) else None


def is_same_memory(step, producers):
    if not isinstance(step, Nest) or len(step.body) != 2 or not isinstance(step.body[0], Load):
        return False
    load, store = step.body
    return (producers.get(store.buffer) is step and load.index == step.order()
            and load.buffer.size == store.buffer.size and not load.guard)


def reshaper(shape):
    return lambda x: x.reshape(shape)


# --- Values that one loop uses --------------------------------------------------------------------

def inline_single_uses(program):
    """Compute a value inside the only loop that reads it, where that is at another index.

    Loops that read it at the same index are merged by `merge_loops` instead. A cheap value, one
    operation on one load, is computed again in each loop that reads it.
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
    needed = set(program.outputs) | {b for s in program.steps if not isinstance(s, Nest)
                                     for b in buffers_read(s)}
    places, runs, chosen = reading_places(program.steps), {}, set()
    # Readers come first, since it matters whether a reader is itself computed elsewhere.
    for buffer, nest in reversed(simple_producers(program.steps).items()):
        found = list(places.get(buffer, {}).values())
        if buffer in needed or not found or has_reduce(nest):
            continue
        counts = [times * runs.get(reader, 1) for reader, _, times in found]
        moved = any(reader in runs or not reads_in_step(reader, load) for reader, load, _ in found)
        if moved and is_worth_repeating(nest, found, counts):
            chosen.add(buffer)
            runs[nest] = max(1, -(-sum(counts) // buffer.size))
    return chosen


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


def is_nested(cuts):
    """Whether loops can be cut at all these numbers of elements: each divides the next."""
    ordered = sorted(cuts)
    return all(b % a == 0 for a, b in zip(ordered, ordered[1:]))


def merge_sole_consumers(groups, group_of, writers, program):
    """Move a group of nests into the only group that reads it, though that comes later."""
    outputs = set(program.outputs)
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
    steps = [coalesce_nest(s) if isinstance(s, Nest) else s for s in program.steps]
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


def indices_in(body):
    return list({i.key(): i for node in all_nodes(body) for i in index_maps_of(node)}.values())


def replace_axes(body, values):
    if not values:
        return body
    nest = Nest([], body)
    builder = Builder()
    new = builder.copy(body, values, plain_load)
    for node in nest.body:
        if isinstance(node, Store):
            index = substitute_index(node.index, values, new)
            builder.body.append(Store(node.buffer, index, new[node.value], node.combine, node.eqn))
    return builder.body


def coalesce_reduce(node):
    axes, values = merge_axes(node.axes, indices_in(node.body))
    if values:
        builder = Builder()
        node.value = builder.copy(node.body, values, plain_load)[node.value]
        node.body = builder.body
    node.axes, node.lanes = axes, lanes_for(axes)
    return node


FUSION_PASSES = (inline_views, strided_operands, inline_single_uses, merge_loops, coalesce)
