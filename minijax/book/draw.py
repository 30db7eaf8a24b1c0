"""Pictures of programs, of traces, of arrays and of timings.

`draw_jaxpr` lays a program out in layers by itself: every equation below what it reads, and close
to the middle of what it is joined to.
"""

from typing import NamedTuple

import numpy as np

from minijax.book.svg import ACCENT, PALETTE, Drawing, path, rect, text, text_width
from minijax.core import Tracer
from minijax.jaxpr import Literal, Names, Var, jaxprs_in_params, open_jaxpr

__all__ = ["draw_jaxpr", "draw_trace_tower", "draw_boxes", "bars"]


# --- The graph of a program -----------------------------------------------------------------------

class Node:
    """An equation, an input or a result; or, without a label, a place that a long edge passes."""

    def __init__(self, label, layer, title="", group=None, is_io=False):
        self.label, self.layer, self.title = label, layer, title
        self.group, self.is_io = group, is_io
        self.above, self.below = [], []
        self.x = 0.0

    @property
    def width(self):
        return 6 if self.label is None else max(text_width(self.label) + 16, 30)


class Edge(NamedTuple):
    """A variable on its way from the node that binds it to one that reads it."""
    path: tuple
    label: str
    title: str


def draw_jaxpr(jaxpr, group_of=None, title=""):
    """Draw a program: equations are boxes, variables are the lines between them.

    `group_of(eqn)` names the group of an equation, such as "known" or "linear", or is None; groups
    are told apart by colour, and named below the picture.
    """
    jaxpr = open_jaxpr(jaxpr)
    nodes, edges = graph_of(jaxpr, group_of or (lambda eqn: None))
    layers = layers_of(nodes)
    arrange(layers)
    groups = list(dict.fromkeys(n.group for n in nodes if n.group is not None))
    return draw_graph(nodes, edges, groups, title or f"The graph of {summary(jaxpr)}")


def summary(jaxpr):
    names = ", ".join(eqn.primitive.name for eqn in jaxpr.eqns[:12])
    more = ", …" if len(jaxpr.eqns) > 12 else ""
    count = len(jaxpr.eqns)
    return f"a program of {count} equation{'s' * (count != 1)}: {names}{more}"


def graph_of(jaxpr, group_of):
    names, nodes, maker = Names(), [], {}
    for var in [*jaxpr.constvars, *jaxpr.invars]:
        maker[var] = add(nodes, Node(names(var), 0, names.typed(var), is_io=True))
    edges = []
    for eqn in jaxpr.eqns:
        read = [maker[a] for a in eqn.invars if isinstance(a, Var)]
        title = " ".join(map(names.typed, eqn.outvars)) + f" = {eqn.primitive.name}"
        layer = 1 + max((n.layer for n in read), default=0)
        node = Node(label_of(eqn), layer, title, group_of(eqn))
        maker.update(dict.fromkeys(eqn.outvars, add(nodes, node)))
        join(eqn.invars, node, maker, names, nodes, edges)
    last = 1 + max(n.layer for n in nodes) if nodes else 0
    for atom in jaxpr.outvars:
        label = "result" if isinstance(atom, Var) else literal_text(atom)
        node = add(nodes, Node(label, last, is_io=True))
        join([atom], node, maker, names, nodes, edges)
    return nodes, edges


def add(nodes, node):
    nodes.append(node)
    return node


def label_of(eqn):
    """The primitive, a program's name, and the constants that stand in the equation."""
    inner = next((j for _, j in jaxprs_in_params(eqn.params)), None)
    name = eqn.params.get("name") if inner is not None else None
    literals = [literal_text(a) for a in eqn.invars if isinstance(a, Literal)]
    return " ".join([eqn.primitive.name + f"[{name}]" * bool(name), *literals])


def literal_text(atom):
    return f"{np.asarray(atom.val).item():.4g}"


def join(atoms, node, maker, names, nodes, edges):
    """Edges from the makers of some variables to a node, by a place in each layer between."""
    for atom in dict.fromkeys(a for a in atoms if isinstance(a, Var)):
        start = maker[atom]
        stops = [add(nodes, Node(None, layer)) for layer in range(start.layer + 1, node.layer)]
        chain = (start, *stops, node)
        for upper, lower in zip(chain, chain[1:]):
            upper.below.append(lower)
            lower.above.append(upper)
        edges.append(Edge(chain, names(atom), names.typed(atom)))


# --- Layout ---------------------------------------------------------------------------------------

BOX, LEVEL, SPACE = 24, 54, 16


def layers_of(nodes):
    layers = [[] for _ in range(1 + max((n.layer for n in nodes), default=-1))]
    for node in nodes:
        layers[node.layer].append(node)
    return layers


def arrange(layers):
    """Choose x for every node: sweep down and up, moving nodes near the middle of neighbours."""
    for layer in layers:
        place(layer, [i * 60.0 for i in range(len(layer))])
    for _ in range(6):
        for layer in layers:
            settle(layer, lambda n: n.above)
        for layer in reversed(layers):
            settle(layer, lambda n: n.below)
    for layer in layers[1:]:
        settle(layer, lambda n: n.above + n.below)
    left = min((n.x - n.width / 2 for layer in layers for n in layer), default=0)
    for layer in layers:
        for node in layer:
            node.x += 8 - left


def settle(layer, neighbours):
    wanted = {n: float(np.mean([m.x for m in neighbours(n) or [n]])) for n in layer}
    layer.sort(key=wanted.get)
    place(layer, [wanted[n] for n in layer])


def place(layer, wanted):
    """Positions as near to the wanted ones as boxes that may not overlap allow."""
    ahead, behind = [], []
    for node, x in zip(layer, wanted):
        limit = ahead[-1] + distance(previous, node) if ahead else x
        ahead.append(max(x, limit))
        previous = node
    for node, x in zip(reversed(layer), reversed(wanted)):
        limit = behind[-1] - distance(node, following) if behind else x
        behind.append(min(x, limit))
        following = node
    for node, right, left in zip(layer, ahead, reversed(behind)):
        node.x = (left + right) / 2


def distance(left, right):
    return (left.width + right.width) / 2 + SPACE


# --- Drawing a graph ------------------------------------------------------------------------------

def y_of(node):
    return 18 + node.layer * LEVEL


def draw_graph(nodes, edges, groups, alt):
    colours = {None: None} | {g: PALETTE[i % len(PALETTE)] for i, g in enumerate(groups)}
    low = max(map(y_of, nodes), default=0) + BOX
    parts = [draw_edge(e) for e in edges] + edge_names(edges)
    parts += [draw_node(n, colours[n.group]) for n in nodes if n.label is not None]
    width = max([n.x + n.width / 2 + 8 for n in nodes] + [60])
    x = 8
    for group in groups:
        parts += [rect(x, low, 12, 12, colours[group]),
                  text(x + 18, low + 10, group, 11.5, 0.85, "start")]
        x += 38 + text_width(group, 11.5)
    if groups:
        alt += f"; coloured by {', '.join(map(str, groups))}"
    return Drawing(parts, max(width, x), low + (20 if groups else 0), alt)


def draw_node(node, colour):
    x, y = node.x - node.width / 2, y_of(node) - BOX / 2
    if node.is_io:
        return text(node.x, y + 16, node.label, 12, 0.75)
    return rect(x, y, node.width, BOX, colour, node.title) + text(node.x, y + 16, node.label,
                                                                  extra=' pointer-events="none"')


def draw_edge(edge):
    """A curve through the places that the edge passes."""
    start, *rest = edge.path
    x, y = start.x, y_of(start) + BOX / 2
    d = f"M{x:.0f} {y:.0f}"
    for node in rest:
        end = y_of(node) - (0 if node.label is None else BOX / 2)
        bend = (end - y) / 2
        d += f"C{x:.0f} {y + bend:.0f} {node.x:.0f} {end - bend:.0f} {node.x:.0f} {end:.0f}"
        x, y = node.x, end
    return path(d, title=edge.title)


def edge_names(edges):
    """The name of each variable, once, beside where its line begins."""
    named = {}
    for edge in edges:
        if not edge.path[0].is_io:
            named.setdefault(edge.label, edge.path[0])
    return [text(n.x + 5, y_of(n) + BOX / 2 + 11, label, 10, 0.7, "start")
            for label, n in named.items()]


# --- The tower of traces --------------------------------------------------------------------------

def draw_trace_tower(*levels, title=""):
    """Draw which trace stands on which, the innermost on top; an operation is asked of the topmost.

    `levels` go from bottom to top and are names, or (name, note) pairs. A single tracer or trace
    stands for itself and its parents.
    """
    if len(levels) == 1 and not isinstance(levels[0], (str, tuple)):
        levels = tower_of(levels[0])
    pairs = [(level, "") if isinstance(level, str) else level for level in levels]
    width = 24 + max(max(text_width(name, 13), text_width(note, 11)) for name, note in pairs)
    parts = [part for i, pair in enumerate(reversed(pairs))
             for part in draw_level(*pair, 6 + 64 * i, width, i == 0, i == len(pairs) - 1)]
    alt = title or f"Traces from bottom to top: {', '.join(name for name, _ in pairs)}."
    return Drawing(parts, width + 130, 64 * len(pairs) - 12, alt)


def tower_of(x):
    """The traces from the bottom up to that of a tracer, or to a trace."""
    trace, levels = (x._trace if isinstance(x, Tracer) else x), []
    while trace is not None:
        levels.append(type(trace).__name__)
        trace = getattr(trace, "parent", None)
    return levels[::-1]


def draw_level(name, note, y, width, is_top, is_bottom):
    yield rect(6, y, width, 40, ACCENT if is_top else None)
    yield text(6 + width / 2, y + (18 if note else 25), name, 13)
    if note:
        yield text(6 + width / 2, y + 33, note, 11, 0.75)
    if not is_bottom:
        x = 6 + width / 2
        yield path(f"M{x:g} {y + 40}v20m-4 -6l4 6l4 -6")
        yield text(x + 10, y + 56, "asks its parent", 11, 0.7, "start")


# --- Arrays ---------------------------------------------------------------------------------------

def draw_boxes(*arrays, labels=(), lit=(), title=""):
    """Draw arrays of up to two axes side by side, an element a box.

    `labels` are written above them. `lit` holds one mask an array (or None): boolean, or of
    integers that number groups from 1, each of which has its colour.
    """
    arrays = [np.asarray(a) for a in arrays]
    x, low, parts = 6.0, 0, []
    for i, array in enumerate(arrays):
        label = labels[i] if i < len(labels) else ""
        mask = lit[i] if i < len(lit) and lit[i] is not None else np.zeros(array.shape, int)
        drawn, width, height = draw_array(array, np.asarray(mask).astype(int), x, label)
        parts += drawn
        x, low = x + width + 26, max(low, height)
    shapes = ", ".join(f"{label} of shape {array.shape}".strip() for label, array in
                       zip([*labels, *[""] * len(arrays)], arrays))
    return Drawing(parts, x - 20, low + 6, title or f"Arrays: {shapes}.")


def draw_array(array, mask, x, label):
    """(parts, width, height) of one array whose left edge is at x."""
    if array.ndim > 2:
        raise ValueError(f"draw_boxes draws arrays of up to two axes, got shape {array.shape}")
    rows = np.atleast_2d(array)
    marks = mask.reshape(rows.shape)
    strings = [[element_text(v) for v in row] for row in rows]
    cell = max([24.0, *(text_width(s) + 10 for row in strings for s in row)])
    top = 20 if label else 4
    parts = [text(x, 13, label, 12, 0.8, "start")] if label else []
    for i, row in enumerate(strings):
        for j, string in enumerate(row):
            colour = PALETTE[(marks[i, j] - 1) % len(PALETTE)] if marks[i, j] else None
            left, y = x + j * cell, top + i * BOX
            parts.append(rect(left, y, cell, BOX, colour, radius=0)
                         + text(left + cell / 2, y + 16, string))
    return parts, max(cell * rows.shape[1], text_width(label)), top + BOX * len(rows)


def element_text(value):
    if isinstance(value, (bool, np.bool_)):
        return "T" if value else "F"
    return f"{value:.3g}" if isinstance(value, (float, np.floating)) else str(value)


# --- Timings --------------------------------------------------------------------------------------

def bars(values, unit="", title="", lit=()):
    """Horizontal bars of named numbers, as {name: number}; those named in `lit` are in colour."""
    lit = (lit,) if isinstance(lit, str) else lit
    left = max(text_width(name) for name in values) + 14
    longest, room = max(values.values()) or 1, 300
    parts, y = [], 6
    if title:
        parts, y = [text(4, 16, title, 13, 0.9, "start")], 28
    for name, value in values.items():
        length = max(room * value / longest, 1)
        parts += [text(left - 8, y + 14, name, 12, 0.9, "end"),
                  rect(left, y, length, 20, ACCENT if name in lit else None, radius=2),
                  text(left + length + 6, y + 14, measured(value, unit), 12, 0.9, "start")]
        y += 27
    told = ", ".join(f"{name} {measured(value, unit)}" for name, value in values.items())
    return Drawing(parts, left + room + 110, y + 2, f"{title or 'Bars'}: {told}.")


def measured(value, unit):
    """A number with three digits that count, and its unit."""
    digits = f"{value:,.0f}" if value >= 100 else f"{value:.3g}"
    return f"{digits} {unit}".strip()
