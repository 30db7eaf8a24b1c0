# Exported from notebooks/13_fusion.ipynb by tools/export.py: edit the notebook, not this file.
"""Layer: compiler. Home: 13_fusion. In JAX: HloFusionAnalysis, IndexingMap.

What the passes on loops share: questions about nests, and a builder of new bodies out of old ones.
"""

from minijax.loop_ir import (
    Axis, AxisValue, Const, InBounds, Load, Nest, Op, Quotient, Reduce, Store, all_nodes,
    axis_index, buffers_written, guard_of, index_maps_of, is_fusible, substitute_index, unflatten,
)

__all__ = [
    "simple_producers", "is_simple", "is_view", "is_padding", "has_reduce", "CHEAP", "cost",
    "Builder", "merge_guards", "plain_load", "rebuild", "inlining", "MAX_NODES",
    "has_short_indices", "MAX_ATOMS", "atoms_in", "is_nested", "indices_in", "replace_axes",
]


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
    if not is_fusible(step):
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
        values = {**axis_values, **dict(zip(node.axes, map(axis_index, axes)))}
        return self.reduce_over(axes, node, values, load)

    def reduce_over(self, axes, node, values, load):
        """Add a reduction's copy with loops over these axes, in which `values` has the old ones."""
        inner = Builder()
        value = inner.copy(node.body, values, load)[node.value]
        inner.body.remove(value)       # it must stand last; nothing in the body reads it
        inner.body.append(value)
        made = Reduce(node.name, axes, inner.body, value, node.lanes, node.eqn)
        return self.add(made, made)


def merge_guards(outer, own):
    return outer + tuple(g for g in own if g not in outer)


def plain_load(builder, buffer, index, guard, eqn):
    return builder.load(buffer, index, guard, eqn)


def rebuild(nest, load, builder=None):
    """A nest with the same loops whose loads are made by `load`."""
    builder = builder or Builder()
    new = builder.copy(nest.body, {}, load)
    for node in nest.body:
        if isinstance(node, Store):
            index = substitute_index(node.index, {}, new)
            builder.body.append(Store(node.buffer, index, new[node.value], node.combine, node.eqn))
    return type(nest)(nest.axes, builder.body)


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


# A nest with more nodes than this is not made longer: registers run out, compilers slow down.
MAX_NODES = 250


def has_short_indices(nest):
    return all(atoms_in(i) <= MAX_ATOMS for node in nest.body for i in index_maps_of(node))


# Quotients of remainders of quotients … double with each reshape between transposes.
MAX_ATOMS = 12


def atoms_in(index):
    return sum(1 + (atoms_in(a.index) if isinstance(a, Quotient) else 0) for a in index.terms)


def is_nested(cuts):
    """Whether loops can be cut at all these numbers of elements: each divides the next."""
    ordered = sorted(cuts)
    return all(b % a == 0 for a, b in zip(ordered, ordered[1:]))


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
