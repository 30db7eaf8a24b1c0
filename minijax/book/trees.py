"""A pytree drawn: the tree, the list of its leaves below it, and its recipe in postfix order."""

from html import escape
from typing import NamedTuple

__all__ = ["TreeDrawing", "draw_tree"]

ACCENT = "#e8930c"
COLUMN, LEVEL, BOX = 76, 62, 24
LEFT = 76                            # room for the names of the rows


class Spot(NamedTuple):
    """One node of the drawing: its text, its column, and its children as (key, Spot)."""
    text: str
    column: float
    children: tuple
    is_leaf: bool = False


class TreeDrawing:
    """The picture of some leaves and a treedef.  Colours follow the page."""

    def __init__(self, leaves, treedef):
        self.leaves, self.treedef = [short(x) for x in leaves], treedef
        self.root, self.columns = place(treedef.nodes, self.leaves)

    def __repr__(self):
        return f"TreeDrawing({self.treedef})"

    def _repr_svg_(self):
        return draw_svg(self)

    def _repr_html_(self):
        return f'<div class="tree-drawing">{self._repr_svg_()}</div>'


def draw_tree(leaves, treedef):
    """Draw a tree from what `tree_flatten` returns: leaves, and a treedef with `.nodes`."""
    return TreeDrawing(leaves, treedef)


def short(leaf):
    """A leaf in a few characters: the shape of an array, or the value itself."""
    shape = getattr(leaf, "shape", ())
    return "×".join(map(str, shape)) if shape else str(leaf)


# --- Layout ---------------------------------------------------------------------------------------


def place(nodes, texts):
    """Run the recipe on a stack of Spots: a node stands above the middle of its children."""
    stack, texts, columns = [], iter(texts), 0
    for kind, arity, aux in nodes:
        if arity:
            children, stack[-arity:] = stack[-arity:], []
            middle = (children[0].column + children[-1].column) / 2
            keyed = tuple(zip(keys_of(kind, arity, aux), children))
            stack.append(Spot(name_of(kind), middle, keyed))
        else:
            text = name_of(kind) if kind else next(texts)
            stack.append(Spot(text, columns, (), kind is None))
            columns += 1
    return stack[0], columns


def name_of(kind):
    return "None" if kind.type is type(None) else kind.type.__name__


def keys_of(kind, arity, aux):
    """What to write on the edges: the keys of a dict, the positions in anything else."""
    return [repr(k) for k in aux] if kind.type is dict else [str(i) for i in range(arity)]


def depth(spot):
    return 1 + max((depth(child) for _, child in spot.children), default=-1)


# --- Drawing --------------------------------------------------------------------------------------


def draw_svg(drawing):
    nodes = drawing.treedef.nodes
    leaf_y = 20 + (depth(drawing.root) + 1) * LEVEL
    tokens = ["✱" if kind is None else f"{name_of(kind)} {arity}" for kind, arity, _ in nodes]
    recipe = sum(map(token_width, tokens)) + 4 * len(tokens) + 16
    width = LEFT + max(drawing.columns * COLUMN, recipe)
    text = f"A tree, the list of its leaves {', '.join(drawing.leaves)}, and its recipe: " \
        + " ".join(tokens).replace("✱", "leaf")
    parts = [*draw_spot(drawing.root, 20), *draw_leaf_row(drawing, leaf_y),
             *draw_recipe(tokens, leaf_y + 44)]
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {leaf_y + 76}" '
            f'role="img" aria-label="{escape(text)}" fill="currentColor" text-anchor="middle" '
            f'style="width:100%;max-width:{width}px;height:auto" '
            f'font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" '
            f'font-size="12.5"><title>{escape(text)}</title>\n' + "\n".join(parts) + "\n</svg>")


def x_of(spot):
    return LEFT + (spot.column + 0.5) * COLUMN


def draw_spot(spot, y):
    """A node with the edges to its children, and the children below."""
    x = x_of(spot)
    for key, child in spot.children:
        low = y + LEVEL
        yield (f'<line x1="{x}" y1="{y + BOX / 2}" x2="{x_of(child)}" y2="{low - BOX / 2}" '
               f'stroke="currentColor" stroke-opacity="0.4"/>')
        yield edge_label(x, x_of(child), y, low, key)
        yield from draw_spot(child, low)
    yield box(x, y, spot.text, spot.is_leaf, 58)


def edge_label(x, child_x, y, low, key):
    """The key, on the outer side of its edge."""
    at_x, at_y = x + 0.62 * (child_x - x), y + 0.62 * (low - y)
    side, anchor = (-5, "end") if child_x < x else (5, "start")
    return label(at_x + side, at_y - 2, key, 11, 0.75, anchor)


def draw_leaf_row(drawing, y):
    """The flat list: one box per leaf, in the order of the columns."""
    yield label(LEFT - 8, y + 4, "leaves", 12, 0.75, "end")
    for x, text in zip(leaf_columns(drawing.root), drawing.leaves):
        yield box(x, y, text, True, 58)


def leaf_columns(spot):
    return [x_of(spot)] if spot.is_leaf else [x for _, c in spot.children for x in leaf_columns(c)]


def token_width(token):
    return 14 + 8 * len(token)


def draw_recipe(tokens, y):
    """The postfix recipe: a star for `take the next leaf`, a name and a number for a node."""
    yield label(LEFT - 8, y + 4, "recipe", 12, 0.75, "end")
    x = LEFT + 8
    for token in tokens:
        width = token_width(token)
        yield box(x + width / 2, y, token, token == "✱", width)
        x += width + 4


def box(x, y, text, is_leaf, width):
    paint = f'fill="{ACCENT}" fill-opacity="0.28" stroke="{ACCENT}"' if is_leaf \
        else 'fill="currentColor" fill-opacity="0.07" stroke="currentColor" stroke-opacity="0.4"'
    return (f'<rect x="{x - width / 2}" y="{y - BOX / 2}" width="{width}" height="{BOX}" rx="5" '
            f'{paint}/>' + label(x, y + 4, text, 12.5, 1))


def label(x, y, text, size, opacity, anchor="middle"):
    return (f'<text x="{x:g}" y="{y:g}" font-size="{size}" fill-opacity="{opacity}" '
            f'text-anchor="{anchor}">{escape(text)}</text>')
