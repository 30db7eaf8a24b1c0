"""The layers of minijax as data, and the diagram of them that opens every chapter.

`LAYERS` lists them from bottom to top.  A module may import modules that stand before it in this
list, and modules that match the same pattern; tests/test_layers.py holds the package to that.
"""

from fnmatch import fnmatchcase
from html import escape
from textwrap import wrap
from typing import NamedTuple

__all__ = ["Layer", "LAYERS", "place_of", "LayerDiagram", "layer_diagram"]


class Layer(NamedTuple):
    """One layer: name, modules from bottom to top, one line about it, and JAX's counterpart."""
    name: str
    modules: tuple
    summary: str
    jax: str


LAYERS = (
    Layer("foundations",
          ("config", "errors", "tracebacks", "dtypes", "wrong_numbers", "avals", "array"),
          "options, error types, dtypes and promotion, the Array",
          "jax/_src/config.py, dtypes.py, array.py"),
    Layer("trees", ("tree_util", "tree_code", "tree"),
          "nested data as a flat list and a recipe",
          "jax/_src/tree_util.py"),
    Layer("core", ("core", "leaks"),
          "Primitive, Trace, Tracer: who interprets an operation",
          "jax/_src/core.py"),
    Layer("programs", ("pretty_printer", "jaxpr", "loop_ir", "complex_pairs", "lower_loops",
                       "lower_sorting", "lower_products"),
          "programs as data: the jaxpr, and loops for the compiler",
          "jax/_src/core.py, MLIR"),
    Layer("primitives", ("rules", "rule_tables", "primitives.*"),
          "the operations, each one block of rules",
          "jax/_src/lax/*.py"),
    Layer("interpreters", ("interpreters.jvp", "interpreters.batching", "interpreters.staging",
                           "interpreters.partial_eval", "interpreters.transpose",
                           "interpreters.jet"),
          "jvp, vmap, staging, partial evaluation, transposition",
          "jax/_src/interpreters/*.py"),
    Layer("compiler", ("compiler.*",),
          "from a jaxpr to loops, to source, to machine code",
          "jax/_src/interpreters/mlir.py, XLA"),
    Layer("higher_order", ("higher_order.*",),
          "programs inside programs: jit, cond, while, scan",
          "jax/_src/pjit.py, lax/control_flow/"),
    Layer("api", ("flatten", "api", "debugging", "compile_logs", "dispatch", "control_flow",
                  "custom_derivatives", "custom_batching", "solves", "ad_checkpoint"),
          "jit, grad, vmap, … with argnums, axes and pytrees",
          "jax/_src/api.py"),
    Layer("front", ("lax", "numpy.*", "nn", "ops", "purity", "checkers", "debugger", "debug",
                    "test_util", "experimental.*", "extending", "stages", "interpreters.*",
                    "extend.*", "flatten_util", "typing", "__init__", "book.*"),
          "what a user imports: numpy, lax, nn, debug, …; and the rule checkers",
          "jax/numpy, jax/lax, jax/nn"),
)


def place_of(module):
    """(layer, index in the layer) of a module such as 'interpreters.jvp'; None if unlisted."""
    for i, layer in enumerate(LAYERS):
        for j, pattern in enumerate(layer.modules):
            if fnmatchcase(module, pattern) or fnmatchcase(f"{module}.__init__", pattern):
                return i, j
    return None


# --- The diagram ----------------------------------------------------------------------------------

WIDTH, ROW, GAP = 640, 28, 4
LINE, NOTE_CHARS = 18, 78           # the lit layer has a note of one line or more
NAME_X, TEXT_X = 14, 138
ACCENT = "#e8930c"


class LayerDiagram:
    """The layers drawn, some of them lit.  Colours follow the page, light or dark."""

    def __init__(self, lit=()):
        self.lit = (lit,) if isinstance(lit, str) else tuple(lit)
        self.rows = {layer_index(name) for name in self.lit}

    def __repr__(self):
        return f"LayerDiagram(lit={', '.join(self.lit) or 'nothing'})"

    def _repr_svg_(self):
        return draw_svg(self.rows, self.lit, describe(self.rows))

    def _repr_html_(self):
        return f'<div class="layer-diagram">{self._repr_svg_()}</div>'


def layer_diagram(lit=()):
    """Draw the layers; `lit` names layers or modules, one or several.

    For example `"core"` or `("primitives.dot", "primitives.structural")`.  Raises ValueError for a
    name that is neither.
    """
    return LayerDiagram(lit)


def layer_index(name):
    names = [layer.name for layer in LAYERS]
    if name in names:
        return names.index(name)
    if place := place_of(name):
        return place[0]
    raise ValueError(f"no layer or module named {name!r}; the layers are {', '.join(names)}")


def describe(rows):
    """The text that stands for the picture where it can't be seen."""
    stack = ", ".join(layer.name for layer in LAYERS)
    lit = ", ".join(LAYERS[i].name for i in sorted(rows))
    return f"The layers of minijax from bottom to top: {stack}." + (f" Lit: {lit}." if lit else "")


def draw_svg(rows, lit, text):
    y, boxes = 2, []
    for i in reversed(range(len(LAYERS))):
        note = note_lines(LAYERS[i], lit) if i in rows else []
        boxes.append(draw_row(LAYERS[i], y, note))
        y += ROW + LINE * len(note) + GAP
    return (f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {y}" role="img" '
            f'aria-label="{escape(text)}" style="width:100%;max-width:{WIDTH}px;height:auto" '
            f'font-family="ui-monospace,SFMono-Regular,Menlo,Consolas,monospace" font-size="13" '
            f'fill="currentColor"><title>{escape(text)}</title>\n' + "\n".join(boxes) + "\n</svg>")


def note_lines(layer, lit):
    """What is lit in a layer and where JAX has it, in lines that fit into the box."""
    here = [m for m in lit if m != layer.name and LAYERS[layer_index(m)] is layer]
    note = (f"here: {', '.join(here)} · " if here else "") + f"in JAX: {layer.jax}"
    return wrap(note, NOTE_CHARS, break_long_words=False)


def draw_row(layer, y, note):
    """A layer's box; the layer is lit if it has a note."""
    style = f'fill="{ACCENT}" fill-opacity="0.28" stroke="{ACCENT}" stroke-width="1.5"' if note \
        else 'fill="currentColor" fill-opacity="0.05" stroke="currentColor" stroke-opacity="0.25"'
    strong = ' font-weight="bold"' if note else ' fill-opacity="0.75"'
    parts = [f'<rect x="1" y="{y}" width="{WIDTH - 2}" height="{ROW + LINE * len(note)}" rx="5" '
             f'{style}/>',
             f'<text x="{NAME_X}" y="{y + 19}"{strong}>{escape(layer.name)}</text>',
             svg_text(TEXT_X, y + 19, layer.summary, 12.5, 0.9 if note else 0.6)]
    parts += [svg_text(TEXT_X, y + 19 + LINE * k, line, 11.5, 0.75)
              for k, line in enumerate(note, 1)]
    return "".join(parts)


def svg_text(x, y, text, size, opacity):
    return (f'<text x="{x}" y="{y}" font-family="system-ui,sans-serif" font-size="{size}" '
            f'fill-opacity="{opacity}">{escape(text)}</text>')
