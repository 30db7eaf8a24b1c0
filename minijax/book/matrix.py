"""The primitives × rules matrix, drawn from the running package: what is there, what is missing."""

from html import escape

from minijax.book.svg import Drawing, path, text, text_width
from minijax.core import RULE_KINDS, primitives as known

__all__ = ["rule_matrix", "hole", "filled", "impossible", "state_of"]

# Few primitives have rules of the other two kinds.
KINDS = tuple(kind for kind in RULE_KINDS if kind not in ("partial_eval", "jet"))
filled, hole, impossible = "filled", "hole", "impossible"

CELL, ROW, SIDE = 14, 13, 10           # a column's and a row's pitch, the side of a square
HEAD, GAP, SIZE = 76, 12, 10
GREEN, RED = "#2a9d60", "#d6453d"
LEGEND = (("has the rule", filled), ("hole", hole), ("can't have one", impossible))
PAINT = {filled: f'fill="none" stroke="{GREEN}" stroke-opacity=".8" stroke-width="{SIDE}"',
         hole: f'fill="{RED}" fill-opacity=".12" stroke="{RED}" stroke-width="1.3"',
         impossible: 'stroke="currentColor" stroke-opacity=".5" stroke-width="1.5"'}


def state_of(primitive, kind):
    """Whether a rule is filled, a hole, or impossible."""
    if kind in primitive.rules:
        return filled
    return impossible if primitive.impossible.get(kind) else hole


def rule_matrix(primitives=None, kinds=KINDS, columns=None):
    """Draw which rules there are now: of all primitives, or of those given by name or as objects.

    The picture is of the moment: call again after `forget` to see the holes. Hovering over a mark
    says why a rule is impossible.
    """
    rows = [known[p] if isinstance(p, str) else p for p in primitives or known.values()]
    columns = columns or (3 if len(rows) > 24 else 1)
    states = {p: [state_of(p, kind) for kind in kinds] for p in rows}
    per_column = -(-len(rows) // columns)
    chunks = [rows[i:i + per_column] for i in range(0, len(rows), per_column)]
    label = round(max(text_width(p.name, SIZE) for p in rows)) + 8
    pitch = label + len(kinds) * CELL + GAP
    parts = [head_row(kinds, i * pitch + label) for i in range(len(chunks))]
    spots = {(p, k): (i * pitch + label + k * CELL, HEAD + j * ROW)
             for i, chunk in enumerate(chunks) for j, p in enumerate(chunk)
             for k in range(len(kinds))}
    parts += [row_names(chunk, i * pitch + label - 6) for i, chunk in enumerate(chunks)]
    parts += draw_marks(spots, states, kinds)
    low = HEAD + per_column * ROW + 18
    width = max(len(chunks) * pitch - GAP + 34, 330)
    return Drawing([*parts, *draw_legend(low)], width, low + 8, describe(states, kinds),
                   plain_table(states, kinds))


def head_row(kinds, left):
    """The kinds of rules, aslant above their columns."""
    marks = [f'<text transform="translate({left + i * CELL + 9} {HEAD - 6}) rotate(-50)">{kind}'
             "</text>" for i, kind in enumerate(kinds)]
    return f'<g font-size="{SIZE}" fill-opacity=".8">{"".join(marks)}</g>'


def row_names(chunk, right):
    names = [f'<tspan x="{right:g}" y="{HEAD + j * ROW + 9}">{escape(p.name)}</tspan>'
             for j, p in enumerate(chunk)]
    return f'<text font-size="{SIZE}" text-anchor="end">{"".join(names)}</text>'


# A mark is a piece of a path, as short as can be: there are hundreds. Filled squares are strokes.

MARKS = {filled: lambda x, y: f"M{x} {y + SIDE // 2}h{SIDE}",
         hole: lambda x, y: f"M{x} {y}h{SIDE}v{SIDE}h-{SIDE}z",
         impossible: lambda x, y: f"M{x + 2} {y + SIDE // 2}h{SIDE - 4}"}


def draw_marks(spots, states, kinds):
    """One path for each state, and for each reason why a rule is impossible."""
    shapes = {}
    for (p, k), spot in spots.items():
        state = states[p][k]
        reason = f"no {kinds[k]}: {p.impossible[kinds[k]]}" if state is impossible else ""
        shapes.setdefault((state, reason), []).append(MARKS[state](*spot))
    return [path("".join(marks), PAINT[state], reason) for (state, reason), marks in shapes.items()]


def draw_legend(y):
    x = 4
    for label, state in LEGEND:
        yield path(MARKS[state](x, y - 9), PAINT[state])
        yield text(x + 17, y, label, SIZE, 0.8, "start")
        x += 34 + text_width(label, SIZE)


def counts(states):
    marks = [state for row in states.values() for state in row]
    return ", ".join(f"{marks.count(state)} {word}" for word, state in
                     (("filled", filled), ("holes", hole), ("impossible", impossible)))


def describe(states, kinds):
    return f"Rule matrix of {len(states)} primitives by {', '.join(kinds)}: {counts(states)}."


def plain_table(states, kinds, at_most=16):
    """The matrix as text if it is small: ■ filled, □ hole, · impossible; counts if it is large."""
    if len(states) > at_most:
        return describe(states, kinds)
    width = max(len(p.name) for p in states)
    signs = {filled: "■", hole: "□", impossible: "·"}
    lines = [" " * width + "  " + " ".join(kinds)]
    for p, row in states.items():
        marks = " ".join(signs[state].center(len(kind)) for state, kind in zip(row, kinds))
        lines.append(f"{p.name:{width}}  {marks}".rstrip())
    return "\n".join(lines)
