"""Copy notebooks/ next to the sources of the book before Sphinx looks for documents.

On the way an `#| export` line becomes a badge with the name of the module that the cell is exported
to, and links that leave notebooks/ are made to fit the copy.  The notebooks themselves stay as they
are.
"""

import re
import runpy
import shutil
from pathlib import Path

import nbformat

DIRECTIVES = re.compile(r"\A(?:[ \t]*#\|[^\n]*\n?|[ \t]*\n)*")
DEFAULT = re.compile(r"^#\|[ \t]*default_exp[ \t]+(\S+)", re.M)
EXPORT = re.compile(r"^#\|[ \t]*export\b[ \t]*(\S*)", re.M)
HIDDEN = {"remove-cell", "remove-input"}
FOLDERS = "minijax|tests|tools|benchmarks|examples"
OUTSIDE = re.compile(rf"\[([^\]\[]*)\]\((?:\.\./)+((?:{FOLDERS})/[^)]*)\)")
BADGE = '<div class="export-badge" title="exported to {0}"><span>{0}</span></div>'


def stage(app, config):
    root, target = Path(app.srcdir).parent / "notebooks", Path(app.srcdir) / "notebooks"
    shutil.rmtree(target, ignore_errors=True)
    for path in sorted([*root.glob("*.ipynb"), *root.glob("solutions/*.ipynb")]):
        copy = target / path.relative_to(root)
        copy.parent.mkdir(parents=True, exist_ok=True)
        nbformat.write(for_the_site(nbformat.read(path, as_version=4)), copy)
    draw_layers(root.parent, target / "layers.html")


def draw_layers(root, path):
    """The diagram for the landing page, drawn by the same code as in the chapters."""
    drawing = runpy.run_path(str(root / "minijax" / "book" / "layers.py"))["layer_diagram"]()
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(drawing._repr_html_())


def for_the_site(nb):
    default, cells = "", []
    for cell in nb.cells:
        if cell.cell_type == "markdown":
            cell.source = map_links(cell.source)
        if cell.cell_type == "code":
            head = DIRECTIVES.match(cell.source)[0]
            default = (DEFAULT.search(head) or [0, default])[1]
            cell.source = cell.source[len(head):]
            if not cell.source and not cell.outputs:
                continue
            if EXPORT.search(head) and cell.source.startswith(('"""', "'")):
                cell.outputs = []                # the docstring of a module, not a value to look at
            if (m := EXPORT.search(head)) and not HIDDEN & set(cell.metadata.get("tags", [])):
                cells.append(badge(m[1] or default, cell.id))
        cells.append(cell)
    nb.cells = cells
    return nb


def badge(module, cell_id):
    name = f"minijax.{module}".removesuffix(".__init__")
    return nbformat.v4.new_markdown_cell(BADGE.format(name), id=f"{cell_id}-badge")


def map_links(text):
    """The copy lies in book/, so `../book/x.md` is `../x.md` there; no source files on the site."""
    return OUTSIDE.sub(r"\1 (`\2`)", text).replace("../book/", "../")


def ship_mathjax(app):
    """Jupyter Book loads every script below _static on every page, so MathJax lies elsewhere."""
    app.config.html_static_path.append(str(Path(app.srcdir) / "_vendor"))


def drop_thebe(app, config):
    """Jupyter Book always adds thebe, whose script points at another machine; keep its styles."""
    for listeners in app.events.listeners.values():
        listeners[:] = [x for x in listeners if not x.handler.__module__.startswith("sphinx_thebe")
                        or x.handler.__name__ == "st_static_path"]


def setup(app):
    app.connect("config-inited", stage, priority=1)
    app.connect("config-inited", drop_thebe, priority=2)
    app.connect("builder-inited", ship_mathjax)
    return {"parallel_read_safe": True}
