"""Carry edits made in minijax/*.py back into the notebooks they are exported from.

    python tools/unexport.py interpreters.jvp     one module
    python tools/unexport.py                      every module that differs

Fix a bug in your editor, run the tests, then run this.  The changed lines are found by comparing
the file with what its notebook exports; each change goes into the cell that its lines came from, new
lines into the cell of the line above them, and new imports into the module's cell of imports.
Banners and `__all__` are derived from the notebook and not carried back.  If the notebook would
then not export what the file says, nothing is written.  Re-run the notebook afterwards: a changed
cell keeps its old outputs.
"""

import argparse
import ast
import difflib
import sys
from pathlib import Path

import export
import nbformat
from export import ExportError


def unexport(root, path):
    """Update the home notebook of one file; returns the numbers of the cells that changed."""
    home = export.home_of(path)
    notebook = root / "notebooks" / f"{home}.ipynb"
    module = str(path.relative_to(root / export.PACKAGE).with_suffix("")).replace("/", ".")
    nb = nbformat.read(notebook, as_version=4)
    rendered = export.build_notebook(nb, home)[module]
    wanted = path.read_text().splitlines()
    if wanted == [line for line, _ in rendered]:
        return []
    before = [cell.source for cell in nb.cells]
    for number, edits in edited_cells(rendered, wanted, path).items():
        nb.cells[number - 1].source = apply(nb.cells[number - 1].source, edits)
    add_imports(nb, notebook, module, wanted)
    return finish(nb, notebook, module, wanted, before)


def edited_cells(rendered, wanted, path):
    """The edits that turn exported lines into the wanted ones: {cell: [(first, last, lines)]}."""
    old = [line for line, _ in rendered]
    derived = derived_lines(old)
    edits = {}
    matcher = difflib.SequenceMatcher(None, old, wanted, autojunk=False)
    for tag, i1, i2, j1, j2 in matcher.get_opcodes():
        new = wanted[j1:j2]
        if tag == "equal" or all(k in derived for k in range(i1, i2)) and i1 < i2:
            continue
        if tag == "insert" and (i1 in derived or not any(line.strip() for line in new)):
            continue
        cell, first, last = cell_lines(rendered, i1, i2, path, j1)
        edits.setdefault(cell, []).append((first, last, new))
    return edits


def derived_lines(lines):
    """Numbers of the lines that the exporter makes itself: header, imports, `__all__`, banners."""
    found = {0} | {k for k, line in enumerate(lines) if line.startswith("# --- ")}
    for node in ast.parse("\n".join(lines)).body:
        listing = isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__"
        if listing or isinstance(node, (ast.Import, ast.ImportFrom)):
            found |= set(range(node.lineno - 1, node.end_lineno + 1))
    return found


def cell_lines(rendered, i1, i2, path, j1):
    """The cell, and the range of its lines, that exported lines i1 to i2 came from."""
    origins = [origin for _, origin in rendered[i1:i2] if origin]
    if len({cell for cell, _ in origins}) > 1:
        raise ExportError(f"{path}:{j1 + 1}: the change spans two cells; make it in the notebook")
    if origins:
        return origins[0][0], origins[0][1], origins[-1][1] + 1
    above = next((o for _, o in reversed(rendered[:i1]) if o), None)
    if above is None:
        raise ExportError(f"{path}:{j1 + 1}: no cell stands above the change")
    return above[0], above[1] + 1, above[1] + 1


def apply(source, edits):
    lines = source.splitlines()
    for first, last, new in sorted(edits, key=lambda e: e[0], reverse=True):
        lines[first:last] = new
    return "\n".join(lines).rstrip()


# --- Imports --------------------------------------------------------------------------------------


def add_imports(nb, notebook, module, wanted):
    """Add what the file imports, and no cell does, to the module's first cell with imports."""
    known, target = set(), None
    for cell in export.read_cells(nb, notebook.stem):
        if cell.module == module:
            here = imports_in(cell.parse())
            known |= {i.target for i in here}
            target = target or (cell if here else None)
    missing = [i for i in imports_in(ast.parse("\n".join(wanted)).body)
               if i.target not in known and not export.own(i, module)]
    missing = [i for i in missing if i.bound not in names_of_siblings(nb, notebook, module)]
    if missing and target is None:
        raise ExportError(f"notebooks/{notebook.name}: module '{module}' has no cell with imports")
    if missing:
        cell = nb.cells[target.number - 1]
        head = cell.source.splitlines()[:target.offset]
        cell.source = "\n".join([*head, *with_imports(target, missing)])


def with_imports(cell, missing):
    """The lines of a cell with further imports: sorted among its own if it has nothing else."""
    lines, nodes = cell.source.splitlines(), cell.parse()
    if not all(isinstance(node, (ast.Import, ast.ImportFrom)) for node in nodes):
        return [*export.format_imports(missing).splitlines(), *lines]
    own = [i for node in nodes for i in export.commented_imports(node, lines)]
    return export.format_imports([*own, *missing]).splitlines()


def imports_in(nodes):
    return [i for n in nodes if isinstance(n, (ast.Import, ast.ImportFrom))
            for i in export.imports_of(n)]


def names_of_siblings(nb, notebook, module):
    """Names that the notebook's other modules define: imported without being asked for."""
    return {name for cell in export.read_cells(nb, notebook.stem) if cell.module != module
            for node in cell.parse() for name in export.defined_names(node)}


# --- The proof ------------------------------------------------------------------------------------


def finish(nb, notebook, module, wanted, before):
    """Write the notebook if it now exports what the file says, and say which cells changed."""
    modules = export.build_notebook(nb, notebook.stem)
    got = [line for line, _ in modules[module]]
    if essence(got) != essence(wanted):
        pairs = zip(essence(got)[0], essence(wanted)[0])
        near = next((there for here, there in pairs if here != there), "the imports or the end")
        raise ExportError(f"notebooks/{notebook.name}: cannot carry back the change near "
                          f"{near!r}; make it in the notebook")
    changed = [k for k, (cell, old) in enumerate(zip(nb.cells, before), 1) if cell.source != old]
    if changed:
        nbformat.write(nb, notebook)
    return changed


def essence(lines):
    """A file without what the exporter derives and without blank lines; and its set of imports."""
    derived = derived_lines(lines)
    kept = [line.rstrip() for k, line in enumerate(lines) if k not in derived and line.strip()]
    tree = ast.parse("\n".join(lines))
    used = export.global_names("\n".join(lines)) | export.annotation_names(tree)
    return kept, {i.target for i in imports_in(tree.body) if i.bound in used}


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("modules", nargs="*", help="such as interpreters.jvp; all when left out")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    args = parser.parse_args(argv)
    paths = [export.target_of(args.root, m) for m in args.modules] \
        or sorted((args.root / export.PACKAGE).rglob("*.py"))
    failed = 0
    for path in paths:
        try:
            home = export.home_of(path)
            if home in (None, "*") and args.modules:
                raise ExportError(f"{path} has no home notebook")
            if home not in (None, "*") and (changed := unexport(args.root, path)):
                print(f"notebooks/{home}.ipynb: cells {', '.join(map(str, changed))}")
        except ExportError as e:
            failed += 1
            print("unexport:", e, file=sys.stderr)
    return int(failed > 0)


if __name__ == "__main__":
    sys.exit(main())
