"""Write minijax/*.py from the `#| export` cells of notebooks/*.ipynb.

    python tools/export.py                 export everything
    python tools/export.py 03_jvp          export one notebook
    python tools/export.py --check         write nothing; exit 1 if a file is not up to date
    python tools/export.py --adopt         also replace files that were written by hand

Directives stand at the top of a code cell, spelled as in nbdev:

    #| default_exp core            from here on a bare `export` means minijax/core.py
    #| export                      this cell belongs to the default module
    #| export interpreters.jvp     this cell belongs to minijax/interpreters/jvp.py

A cell that is only a string is the docstring of its module.  Imports are hoisted, merged, sorted
and, where nothing uses them, left out; an import with a comment on its line is kept as it stands.
A name that another module of the same notebook defines or imports is imported from there.
Everything else is copied as it was typed.  A module has one home notebook, and a name in a module
has one definition.
"""

import argparse
import ast
import builtins
import re
import symtable
import sys
import textwrap
from dataclasses import dataclass, field
from pathlib import Path

import nbformat

PACKAGE = "minijax"
WIDTH = 100
HEADER = "# Exported from notebooks/{}.ipynb by tools/export.py: edit the notebook, not this file."
HEADER_PATTERN = re.compile(r"# Exported from notebooks/(.+)\.ipynb by tools/export\.py")
DIRECTIVE = re.compile(r"^#\|[ \t]*(\S+)[ \t]*(\S*)[ \t]*$")
MODULE_NAMES = {"__name__", "__file__", "__doc__", "__package__", "__spec__", "__path__"}


class ExportError(Exception):
    """What is wrong, and in which cell of which notebook."""


# --- Reading a notebook ---------------------------------------------------------------------------


@dataclass
class Cell:
    """One exported cell: where it stands, which module it feeds, its code without directives."""
    notebook: str
    number: int                 # 1, 2, … over all cells of the notebook, for error messages
    heading: str                # the nearest heading above; "" under the title
    module: str
    source: str
    offset: int = 0             # lines of directives (and blank lines) above `source` in the cell

    def error(self, message):
        place = f", under '{self.heading}'" if self.heading else ""
        return ExportError(f"notebooks/{self.notebook}.ipynb, cell {self.number}{place}: {message}")

    def parse(self):
        try:
            return ast.parse(self.source).body
        except SyntaxError as e:
            raise self.error(f"line {(e.lineno or 1) + self.offset}: {e.msg}") from None


def last_heading(markdown, above):
    """The last heading of a markdown cell as plain text; a title (level 1) counts as none."""
    for line in re.sub(r"```.*?```", "", markdown, flags=re.S).splitlines():
        if m := re.match(r"(#+)\s+(.*?)\s*#*$", line):
            text = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", m[2])
            above = "" if m[1] == "#" else re.sub(r"[`*$]", "", text)
    return above


def directives(source):
    """Split a cell into its directives and the number of lines they take."""
    found, lines = {}, source.splitlines()
    count = 0
    while count < len(lines) and (lines[count].startswith("#|") or not lines[count].strip()):
        if m := DIRECTIVE.match(lines[count]):
            found[m[1]] = m[2]
        elif lines[count].strip():
            raise ValueError(f"cannot read the directive {lines[count]!r}")
        count += 1
    if stray := next((line for line in lines[count:] if line.startswith("#|")), None):
        raise ValueError(f"the directive {stray!r} must stand at the top of its cell")
    if unknown := set(found) - {"default_exp", "export", "exercise", "check", "solution"}:
        raise ValueError(f"unknown directive '#| {unknown.pop()}'")
    return found, count


def read_cells(nb, name):
    """The exported cells of the notebook of this name, in order."""
    default, heading, cells = "", "", []
    for number, cell in enumerate(nb.cells, 1):
        if cell.cell_type == "markdown":
            heading = last_heading(cell.source, heading)
        if cell.cell_type != "code":
            continue
        here = Cell(name, number, heading, "", "")
        try:
            found, count = directives(cell.source)
        except ValueError as e:
            raise here.error(e) from None
        default = found.get("default_exp") or default
        if "export" not in found:
            continue
        here.module, here.offset = found["export"] or default, count
        if not re.fullmatch(r"\w+(\.\w+)*", here.module):
            raise here.error("'#| export' names no module, and no '#| default_exp' stands above it")
        here.source = "\n".join(cell.source.splitlines()[count:])
        cells.append(here)
    return cells


# --- Imports --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Import:
    """One imported name: `from module import name as bound`, or `import module as bound`."""
    module: str
    name: str                   # "" for `import module`
    alias: str
    comment: str = ""           # an import with a comment is never merged or left out

    @property
    def bound(self):
        return self.alias or self.name or self.module.split(".")[0]

    @property
    def internal(self):
        return self.module.split(".")[0] == PACKAGE

    @property
    def target(self):
        """The dotted path of what is imported, to see whether two imports say the same."""
        return f"{self.module}.{self.name}" if self.name else self.module

    def sort_key(self):
        return (import_group(self.module), bool(self.name), self.module)


def import_group(module):
    root = module.split(".")[0]
    groups = [root == "__future__", root in sys.stdlib_module_names, root != PACKAGE, True]
    return groups.index(True)


def imports_of(node, comment=""):
    """The imports of one statement."""
    if isinstance(node, ast.Import):
        return [Import(a.name, "", a.asname or "", comment) for a in node.names]
    if node.level:
        raise ValueError("relative imports do not work in a notebook; name the package")
    if any(a.name == "*" for a in node.names):
        raise ValueError("star imports hide where a name comes from; list the names")
    return [Import(node.module, a.name, a.asname or "", comment) for a in node.names]


def commented_imports(node, lines):
    """The imports of one statement of a cell, with the comment behind it."""
    comment = re.search(r"#.*$", lines[node.end_lineno - 1][node.end_col_offset:])
    return imports_of(node, comment[0] if comment else "")


def module_path(module):
    """`minijax.core` for the module `core`, `minijax.numpy` for `numpy.__init__`."""
    return ".".join([PACKAGE, *module.split(".")]).removesuffix(".__init__")


def own(imported, module):
    """Does a cell import from the very module it is exported to?  Only the notebook needs that."""
    here = module_path(module)
    front = module.endswith("__init__")          # here `from package import x` means a submodule
    return imported.target == here or (imported.module == here and imported.name and not front)


def format_imports(imports):
    """Import statements, grouped, merged and sorted."""
    merged, lines, group = {}, [], None
    for i in imports:
        unique = i if i.comment or not i.name else None
        merged.setdefault((i.sort_key(), i.module, unique, i.comment), []).append(i)
    for key in sorted(merged, key=lambda k: (k[0], k[3])):
        same, comment = merged[key], key[3]
        if group not in (None, key[0][0]):
            lines.append("")
        group = key[0][0]
        lines.extend(import_lines(same, f"  {comment}" if comment else ""))
    return "\n".join(lines)


def import_lines(same, comment):
    names = sorted({(i.name, i.alias) for i in same})
    words = [f"{name} as {alias}" if alias else name for name, alias in names]
    module = same[0].module
    if not same[0].name:
        return [f"import {module}{w}{comment}" for w in sorted(set(words))]
    line = f"from {module} import {', '.join(words)}"
    if len(line) <= WIDTH:
        return [line + comment]
    return [f"from {module} import ({comment}", *fill_names(words), ")"]


def fill_names(words):
    text = ", ".join(w.replace(" ", "\0") for w in words) + ","
    filled = textwrap.fill(text, WIDTH, initial_indent="    ", subsequent_indent="    ",
                           break_long_words=False, break_on_hyphens=False)
    return filled.replace("\0", " ").splitlines()


# --- Names ----------------------------------------------------------------------------------------


def stored_names(target):
    return [n.id for n in ast.walk(target)
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]


def defined_names(node):
    """The names that one top-level statement defines."""
    if isinstance(node, (ast.FunctionDef, ast.ClassDef, ast.AsyncFunctionDef)):
        return [node.name]
    if isinstance(node, ast.Assign):
        return [name for target in node.targets for name in stored_names(target)]
    if isinstance(node, ast.AnnAssign):
        return stored_names(node.target)
    if isinstance(node, (ast.If, ast.Try, ast.With)):
        return list(dict.fromkeys(n for child in node.body for n in defined_names(child)))
    return []


def global_names(source):
    """The global names that some scope of a program reads."""
    found, scopes = set(), [symtable.symtable(source, "module", "exec")]
    while scopes:
        scope = scopes.pop()
        top = scope.get_type() == "module"
        found |= {s.get_name() for s in scope.get_symbols()
                  if s.is_referenced() and (top or s.is_global())}
        scopes += scope.get_children()
    return found


def free_names(source):
    """The global names that a program reads and nowhere binds."""
    top = symtable.symtable(source, "module", "exec")
    bound = {s.get_name() for s in top.get_symbols() if s.is_assigned() or s.is_imported()}
    return global_names(source) - bound


def annotation_names(tree):
    """The names in annotations, which may be strings and then no symbol table knows them."""
    notes = [getattr(n, a) for n in ast.walk(tree) for a in ("annotation", "returns")
             if getattr(n, a, None) is not None]
    names = set()
    for node in (n for note in notes for n in ast.walk(note)):
        if isinstance(node, ast.Name):
            names.add(node.id)
        elif isinstance(node, ast.Constant) and isinstance(node.value, str):
            names |= set(re.findall(r"[A-Za-z_]\w*", node.value))
    return names


# --- One module -----------------------------------------------------------------------------------


@dataclass
class Module:
    """What the cells of one module come to, before it is printed."""
    name: str
    notebook: str
    docstring: tuple = ()                                # (cell, first line, last line)
    imports: dict = field(default_factory=dict)          # Import -> Cell
    bodies: list = field(default_factory=list)           # (cell, kept line numbers)
    defined: dict = field(default_factory=dict)          # name -> Cell

    def source(self):
        return "\n".join(c.source.splitlines()[k] for c, kept in self.bodies for k in kept) + "\n"

    def read(self, cell):
        """Sort one cell's statements into docstring, imports and body."""
        lines, taken, nodes = cell.source.splitlines(), set(), cell.parse()
        if len(nodes) == 1 and is_string(nodes[0]):
            if self.docstring:
                raise cell.error(f"module '{self.name}' has a docstring already")
            self.docstring = (cell, nodes[0].lineno - 1, nodes[0].end_lineno)
            return
        for node in nodes:
            if isinstance(node, (ast.Import, ast.ImportFrom)):
                self.add_import(cell, node, lines)
                taken |= set(range(node.lineno - 1, node.end_lineno))
            for name in defined_names(node):
                self.define(name, cell)
        kept = strip_blank([k for k in range(len(lines)) if k not in taken], lines)
        if kept and nodes and len(taken) and not has_body(nodes):
            raise cell.error("a comment above imports loses its place when they are sorted; "
                             "put it on the import's own line, or in the prose")
        if kept:
            self.bodies.append((cell, kept))

    def add_import(self, cell, node, lines):
        try:
            for i in commented_imports(node, lines):
                if not own(i, self.name):
                    self.imports.setdefault(i, cell)
        except ValueError as e:
            raise cell.error(e) from None

    def define(self, name, cell):
        if name in self.defined and name != "_":
            first = self.defined[name].number
            raise cell.error(f"'{name}' is defined a second time in module '{self.name}' "
                             f"(first in cell {first})")
        self.defined[name] = cell

    def resolve(self, pool):
        """Keep the imports that are used; take the names still missing from the notebook's pool."""
        self.check_bindings()
        tree = ast.parse(self.source())
        needed = free_names(self.source())
        wanted = needed | annotation_names(tree)
        kept = {i: c for i, c in self.imports.items()
                if i.comment or i.bound in wanted or self.reexports(i) or i.module == "__future__"}
        self.imports = kept
        missing = needed - {i.bound for i in kept} - set(dir(builtins)) - MODULE_NAMES
        for name in sorted(missing):
            if name not in pool:
                raise self.user_of(name).error(
                    f"module '{self.name}' uses '{name}', "
                    f"which no exported cell defines or imports")
            self.imports[pool[name]] = self.user_of(name)

    def reexports(self, i):
        """`import a as a` says so; the front of a package and a module of imports always do."""
        front = self.name.endswith("__init__") or not self.bodies
        return i.internal and front or (i.alias != "" and i.alias == i.name)

    def user_of(self, name):
        pattern = re.compile(rf"\b{re.escape(name)}\b")
        return next(c for c, _ in self.bodies if pattern.search(c.source))

    def check_bindings(self):
        bound = {}
        for i, cell in self.imports.items():
            if i.bound in self.defined:
                raise cell.error(
                    f"'{i.bound}' is both imported and defined in module '{self.name}'")
            other = bound.setdefault(i.bound, i)
            if other.target != i.target and (other.name or other.alias or i.name or i.alias):
                raise cell.error(f"'{i.bound}' is imported from {other.target} and {i.target}")

    def public(self):
        names = [i.bound for i in sorted(self.imports, key=lambda i: (i.sort_key(), i.bound))
                 if self.reexports(i)] + list(self.defined)
        return [n for n in dict.fromkeys(names) if not n.startswith("_")]


def has_body(nodes):
    return any(not isinstance(n, (ast.Import, ast.ImportFrom)) for n in nodes)


def is_string(node):
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) \
        and isinstance(node.value.value, str)


def strip_blank(kept, lines):
    """Drop blank lines at both ends, and those that hoisting an import leaves behind."""
    out = []
    for k in kept:
        blank = not lines[k].strip()
        if blank and (not out or out[-1] != k - 1):
            continue
        out.append(k)
    while out and not lines[out[-1]].strip():
        out.pop()
    return out


# --- Printing -------------------------------------------------------------------------------------


def render(module):
    """The lines of a module's file, each with the (cell number, line in the cell) it came from."""
    if not module.docstring:
        raise ExportError(f"notebooks/{module.notebook}.ipynb: module '{module.name}' "
                          f"has no docstring (an exported cell that is only a string)")
    out = [(HEADER.format(module.notebook), None)]
    cell, first, last = module.docstring
    out += [origin(cell, k) for k in range(first, last)]
    if module.imports:
        out += plain("", *format_imports(module.imports).splitlines())
    if names := [f'"{n}"' for n in module.public()]:
        out += plain("", *list_lines(names))
    return out + render_bodies(module.bodies)


def list_lines(names):
    line = f"__all__ = [{', '.join(names)}]"
    return [line] if len(line) <= WIDTH else ["__all__ = [", *fill_names(names), "]"]


SIMPLE = (ast.Assign, ast.AnnAssign, ast.Expr, ast.Import, ast.ImportFrom)


def render_bodies(bodies):
    out, heading, tight = [], "", False
    for cell, kept in bodies:
        starts_new = cell.heading not in ("", heading)
        heading = cell.heading or heading
        simple = all(isinstance(n, SIMPLE) for n in cell.parse())
        if starts_new:
            out += plain("", "", banner(heading), "")
        else:
            out += plain("") if simple and tight else plain("", "")
        tight = simple
        out += [origin(cell, k) for k in kept]
    return out


def banner(heading):
    return f"# --- {heading} ".ljust(WIDTH, "-")[:WIDTH]


def plain(*lines):
    return [(line, None) for line in lines]


def origin(cell, k):
    return cell.source.splitlines()[k].rstrip(), (cell.number, k + cell.offset)


# --- The package ----------------------------------------------------------------------------------


def build_notebook(nb, notebook):
    """The modules whose home is one notebook: {module name: rendered lines}."""
    modules = {}
    for cell in read_cells(nb, notebook):
        modules.setdefault(cell.module, Module(cell.module, notebook)).read(cell)
    pools = {name: exported_pool(m) for name, m in modules.items()}
    for name, module in modules.items():
        pool = {}
        for other in pools:
            if other != name:
                pool = {**pools[other], **pool}
        module.resolve(pool)
    return {name: render(m) for name, m in modules.items()}


def exported_pool(module):
    """What a module offers to the other modules of its notebook."""
    pool = {i.bound: i for i in module.imports if not i.comment}
    here = module_path(module.name)
    return pool | {name: Import(here, name, "") for name in module.defined}


def build(paths):
    """Every module of the notebooks as text: {module name: (home notebook, text)}."""
    built = {}
    for path in paths:
        for name, lines in build_notebook(nbformat.read(path, as_version=4), path.stem).items():
            if name in built:
                raise ExportError(f"notebooks/{path.stem}.ipynb: module '{name}' already has "
                                  f"a home, notebooks/{built[name][0]}.ipynb")
            built[name] = path.stem, "\n".join(line for line, _ in lines) + "\n"
    return built


def package_fronts(built):
    """An `__init__` for every package that no notebook writes one for."""
    packages = {".".join(parts[:k]) for parts in (name.split(".") for name in built)
                for k in range(1, len(parts))}
    fronts = {}
    for package in sorted(packages):
        if f"{package}.__init__" not in built:
            inside = sorted(n.removeprefix(package + ".").split(".")[0] for n in built
                            if n.startswith(package + "."))
            doc = textwrap.fill(f'"""The modules {", ".join(dict.fromkeys(inside))}."""', WIDTH)
            fronts[f"{package}.__init__"] = "*", f'{HEADER.format("*")}\n{doc}\n'
    return fronts


def target_of(root, module):
    return root / PACKAGE / (module.replace(".", "/") + ".py")


def home_of(path):
    """The notebook that a file says it comes from, or None for a file written by hand."""
    m = HEADER_PATTERN.match(path.read_text())
    return m and m[1]


def orphans(root, built):
    """Exported files that no notebook exports any more."""
    known = {target_of(root, name) for name in built}
    return [f for f in sorted((root / PACKAGE).rglob("*.py")) if home_of(f) and f not in known]


def obstacle(root, path, home):
    """Why a file may not be overwritten without --adopt, or None."""
    if not path.exists():
        return None
    old = home_of(path)
    if old is None:
        return f"{path.relative_to(root)} was written by hand; --adopt replaces it"
    if old != home and (root / "notebooks" / f"{old}.ipynb").exists():
        return f"{path.relative_to(root)} has a home, notebooks/{old}.ipynb; --adopt moves it"
    return None


def export(root, only=(), check=False, adopt=False):
    """Export (or check) and return the list of complaints; prints what it writes."""
    paths = sorted((root / "notebooks").glob("*.ipynb"))
    if unknown := set(only) - {p.stem for p in paths}:
        raise ExportError(f"no notebook named {', '.join(sorted(unknown))}")
    built = build([p for p in paths if not only or p.stem in only])
    if not only:
        built |= package_fronts(built)
    complaints = []
    for module, (home, text) in built.items():
        path = target_of(root, module)
        if path.exists() and path.read_text() == text:
            continue
        if check:
            name = path.relative_to(root)
            complaints.append(f"{name} is not what notebooks/{home}.ipynb exports")
        elif not adopt and (reason := obstacle(root, path, home)):
            complaints.append(reason)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            print("wrote", path.relative_to(root))
    if not only:
        complaints += [f"{p.relative_to(root)} is exported by no notebook any more; delete it"
                       for p in orphans(root, built)]
    return complaints


def main(argv=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("notebooks", nargs="*", help="names such as 03_jvp; all when left out")
    parser.add_argument("--check", action="store_true", help="write nothing, compare")
    parser.add_argument("--adopt", action="store_true", help="replace files written by hand")
    parser.add_argument("--root", type=Path, default=Path(__file__).resolve().parent.parent)
    args = parser.parse_args(argv)
    try:
        only = [Path(n).stem for n in args.notebooks]
        complaints = export(args.root, only, args.check, args.adopt)
    except ExportError as e:
        complaints = [str(e)]
    for line in complaints:
        print("export:", line, file=sys.stderr)
    return int(bool(complaints))


if __name__ == "__main__":
    sys.exit(main())
