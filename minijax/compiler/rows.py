# Exported from notebooks/13_fusion.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: 13_fusion. In JAX: XLA's softmax fusion, on GPUs.

Nests that go through the same rows become one loop over rows: what one of them leaves for the next
is then a row, which stays in the processor's cache, and not a matrix, which does not.
"""

from collections import Counter
from math import prod

from minijax.compiler.bodies import Builder, replace_axes
from minijax.compiler.merge import coalesce, coalesce_nest, merge_loops, too_many_wait, use_counts
from minijax.loop_ir import (
    Axis, Buffer, Load, Loop, Nest, Program, Quotient, Reduce, Store, all_nodes, axes_in,
    axis_index, buffers_read, buffers_written, is_fusible, row_major, substitute_index,
)

__all__ = [
    "MIN_ROW", "MAX_ROW_BYTES", "MIN_BYTES", "MAX_NESTS", "fuse_rows", "in_rows", "accesses",
    "is_local", "uses_axis", "row_count", "work", "common_rows", "RowGroup", "elements_touched",
    "needs_others", "row_groups", "earliest", "must_follow", "moved_to_readers", "row_loop",
    "is_change", "row_of", "copy_of_row", "row_nest",
]


# --- Row by row -----------------------------------------------------------------------------------

# A row should be worth a loop, and what is kept of it should fit into the second cache; loops over
# rows pay where whole arrays would not stay in the first one.
MIN_ROW, MAX_ROW_BYTES, MIN_BYTES = 256, 2 ** 18, 2 ** 15
MAX_NESTS = 24


def fuse_rows(program):
    """Put nests that hand rows to each other under one loop over rows."""
    steps, groups = [], moved_to_readers(row_groups(program.steps), use_counts(program))
    for group in groups:
        outside = set(program.outputs)
        outside.update(b for g in groups if g is not group for b in g.read)
        steps += [row_loop(group, outside, program.eqns)] if group.pays() else group.steps
    return Program(program.inputs, steps, program.outputs, program.eqns)


def in_rows(nest, count):
    """The nest with an outermost loop of `count` turns, if its outermost loop can be cut so."""
    first, *others = nest.axes
    if first.size == count:
        return nest
    parts = [Axis(count), Axis(first.size // count)]
    return Nest([*parts, *others], replace_axes(nest.body, {first: row_major(parts)}))


def accesses(nest):
    """(buffer, index) of each load and store."""
    return [(n.buffer, n.index) for n in all_nodes(nest.body) if isinstance(n, (Load, Store))]


def is_local(buffer, index, axis):
    """Whether the turns of a loop touch one part of a buffer each, the first the first, … ."""
    stride, rest = divmod(buffer.size, axis.size)
    if rest or index.terms.get(axis, 0) != stride:
        return False
    inside = index - axis_index(axis) * stride
    low, high = inside.bounds()
    return not uses_axis(inside, axis) and low >= 0 and high < stride


def uses_axis(index, axis):
    return any(atom is axis or isinstance(atom, Quotient) and uses_axis(atom.index, axis)
               for atom in index.terms)


def row_count(nests):
    """The number of rows that all nests could go through; None if there is none."""
    sizes = [n.axes[0].size if n.axes else 1 for n in nests]
    most = min(sizes)
    row = max(map(work, nests)) // most
    count = next((most // k for k in range(1, most) if most % k == 0 and k * row >= MIN_ROW), 1)
    return count if count > 1 and all(s % count == 0 for s in sizes) else None


def work(nest):
    """How often the innermost body of a nest runs."""
    inner = [prod(a.size for a in n.axes) for n in nest.body if isinstance(n, Reduce)]
    return nest.count() * max(inner, default=1)


def common_rows(nests):
    """The nests with a loop over rows outside, if each turn reads what the same turn wrote."""
    count = row_count(nests)
    if count is None or len(nests) > MAX_NESTS:
        return None
    nests = [in_rows(n, count) for n in nests]
    written = {b for n in nests for b in buffers_written(n)}
    for nest in nests:
        if not all(is_local(b, i, nest.axes[0]) for b, i in accesses(nest) if b in written):
            return None
    size = sum(b.size * b.dtype.itemsize for b in written)
    return nests if size // count <= MAX_ROW_BYTES else None


class RowGroup:
    """Steps that follow one another; `rows` has them with one loop outside, if there is one."""

    def __init__(self, steps, rows=None):
        self.steps, self.rows = steps, rows
        self.read = {b for s in steps for b in buffers_read(s)}
        self.written = {b for s in steps for b in buffers_written(s)}

    def joined(self, other):
        """The group of both groups' steps if they go through the same rows, else None."""
        steps = [*self.steps, *other.steps]
        if (not all(is_fusible(s) for s in steps)
                or other.read.isdisjoint(self.read | self.written) or needs_others(steps)):
            return None
        rows = common_rows(steps)
        return RowGroup(steps, rows) if rows else None

    def pays(self):
        """Whether enough of what several nests touch will stay in cache between them."""
        if self.rows is None:
            return False
        touched = {}
        for step in self.steps:
            for b, count in elements_touched(step).items():
                touched.setdefault(b, []).append(count)
        saved = sum((sum(counts) - max(counts)) * b.dtype.itemsize for b, counts in touched.items())
        return saved >= MIN_BYTES


def elements_touched(nest):
    """How many elements of each buffer a nest reads or writes."""
    found = {}
    for buffer, index in accesses(nest):
        count = min(buffer.size, prod(a.size for a in {*axes_in(index)}))
        found[buffer] = max(count, found.get(buffer, 0))
    return found


def needs_others(steps):
    """Whether a step reads or changes a buffer that some of the steps fill, but none before it."""
    ours = {b for s in steps for b in buffers_written(s)}
    filled = Counter()
    for step in steps:
        stores = [n for n in step.body if isinstance(n, Store)]
        used = {*buffers_read(step), *(n.buffer for n in stores if n.combine)}
        if any(filled[b] < b.size for b in used & ours):
            return True
        for n in stores:
            filled[n.buffer] += 0 if n.combine else step.count()
    return False


def row_groups(steps):
    """The steps in groups; in the order of groups, every buffer is written before it is read."""
    groups = []
    for step in steps:
        alone = RowGroup([step])
        for k in range(earliest(alone, groups), len(groups)):
            if (both := groups[k].joined(alone)) is not None:
                groups[k] = both
                break
        else:
            groups.append(alone)
    return groups


def earliest(group, groups):
    """The number of the last group that a group depends on; 0 if there is none."""
    return next((k for k in reversed(range(len(groups))) if must_follow(group, groups[k])), 0)


def must_follow(group, other):
    return not (group.read.isdisjoint(other.written)
                and group.written.isdisjoint(other.read | other.written))


def moved_to_readers(groups, uses):
    """Join each group to a later one that reads it, where no group in between has to come after."""
    k = len(groups) - 1
    while k > 0:
        for j in reversed(range(k)):
            if must_follow(groups[k], groups[j]):
                both = groups[j].joined(groups[k])
                if both is None or any(must_follow(g, groups[j]) for g in groups[j + 1:k]):
                    continue
                if k > j + 1 and too_many_wait(groups[j].steps, groups[k].steps, uses):
                    continue
                groups[k] = both
                del groups[j]
                k -= 1
        k -= 1
    return groups


def row_loop(group, outside, eqns):
    """One Loop over rows. What a later nest of the group reads is in memory for one row."""
    axis = Axis(group.rows[0].axes[0].size)
    written = dict.fromkeys(b for nest in group.rows for b in buffers_written(nest))
    outputs = [b for b in written if b in outside]
    local = {b: row_of(b, axis.size) for b in written if b in group.read or b not in outside}
    changed = {n.buffer for nest in group.rows for n in nest.body if is_change(n)}
    at_once = [b for b in outputs if b not in changed]
    steps = [row_nest(nest, axis, local, at_once) for nest in group.rows]
    steps += [copy_of_row(local[b], b, axis) for b in outputs if b in changed]
    inputs = [b for s in steps for b in buffers_read(s) if b not in local.values()]
    body = Program(list(dict.fromkeys(inputs)), steps, outputs, eqns)
    return Loop(axis, coalesce(merge_loops(body)))


def is_change(node):
    return isinstance(node, Store) and node.combine is not None


def row_of(buffer, count):
    has_rows = buffer.shape[:1] == (count,)
    shape = buffer.shape[1:] if has_rows else (buffer.size // count,)
    return Buffer(shape, buffer.dtype, buffer.var)


def copy_of_row(row, buffer, axis):
    place = Axis(row.size)
    load = Load(row, axis_index(place))
    store = Store(buffer, axis_index(axis) * row.size + axis_index(place), load)
    return Nest([place], [load, store])


def row_nest(nest, axis, local, outputs):
    """The nest inside of a loop over its outermost axis; it stores into rows and into outputs."""
    row, *axes = nest.axes
    values, builder = {row: axis_index(axis)}, Builder()

    def in_row(buffer, index):
        return index - axis_index(axis) * local[buffer].size

    def load(builder, buffer, index, guard, eqn):
        if buffer in local:
            buffer, index = local[buffer], in_row(buffer, index)
        return builder.load(buffer, index, guard, eqn)

    new = builder.copy(nest.body, values, load)
    for n in nest.body:
        if isinstance(n, Store):
            index, value = substitute_index(n.index, values, new), new[n.value]
            if n.buffer in local:
                row_store = Store(local[n.buffer], in_row(n.buffer, index), value, n.combine, n.eqn)
                builder.body.append(row_store)
            if n.buffer in outputs:
                builder.body.append(Store(n.buffer, index, value, None, n.eqn))
    return coalesce_nest(Nest(axes, builder.body))
