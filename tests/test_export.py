"""The exporter, its way back, the text form of notebooks; and that minijax/ is what they say."""

import ast
import builtins
from pathlib import Path

import export
import nbformat
import notebooks
import pytest
import unexport
from export import ExportError

ROOT = Path(__file__).resolve().parent.parent
MODULES = sorted(p for p in (ROOT / "minijax").rglob("*.py") if "book" not in p.parts)

CORE = '''\
# %% [markdown]
# # 1. Tracing
# %%
#| default_exp core
#| export
"""core: who interprets an operation.

A second paragraph.
"""
# %%
#| export
import threading
from typing import Any, NamedTuple
import numpy as np
from minijax.errors import OneError, AnotherError
# %% [markdown]
# ## The `Trace` [class](x.ipynb)
# %%
#| export
from typing import Optional

LIMIT  =  3     # typed by hand
_state = threading.local()
# %%
#| export
class Trace:
    # a comment stays
    def process(self, x: "Any") -> Optional[int]:
        raise OneError(x)
# %% tags=["nbval-ignore-output"]
Trace()
# %% [markdown]
# ## Later
# %%
#| export
def later(x): return Trace().process(np.asarray(x))

def sooner(x): return AnotherError
'''

CORE_FILE = '''\
# Exported from notebooks/01_tracing.ipynb by tools/export.py: edit the notebook, not this file.
"""core: who interprets an operation.

A second paragraph.
"""

import threading
from typing import Any, Optional

import numpy as np

from minijax.errors import AnotherError, OneError

__all__ = ["LIMIT", "Trace", "later", "sooner"]


# --- The Trace class ------------------------------------------------------------------------------

LIMIT  =  3     # typed by hand
_state = threading.local()


class Trace:
    # a comment stays
    def process(self, x: "Any") -> Optional[int]:
        raise OneError(x)


# --- Later ----------------------------------------------------------------------------------------

def later(x): return Trace().process(np.asarray(x))

def sooner(x): return AnotherError
'''


@pytest.fixture
def book(tmp_path):
    """A function that writes a notebook from text into an empty project, and the project's root."""
    (tmp_path / "minijax").mkdir()

    def write(name, text):
        notebooks.write(notebooks.from_text(text), tmp_path / "notebooks" / f"{name}.ipynb")
        return tmp_path
    return write


def cells(*sources, doc=True):
    """Cells exported to a module `m`; the first of them is number 3, after a docstring."""
    sources = ['"""m."""', *sources] if doc else sources
    return "# %%\n#| default_exp m\n" + "".join(f"# %%\n#| export\n{s}\n" for s in sources)


def exported(root, module="m"):
    assert export.export(root) == []
    return (root / "minijax" / f"{module}.py").read_text()


# --- The package ----------------------------------------------------------------------------------


def test_package_is_what_the_notebooks_export():
    assert export.export(ROOT, check=True) == []


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_module_has_a_home(path):
    home = export.home_of(path)
    assert home, "written by hand; package code outside minijax/book belongs to a notebook"
    if home != "*":
        assert (ROOT / "notebooks" / f"{home}.ipynb").exists()
        assert f"Home: {home}." in ast.get_docstring(ast.parse(path.read_text())).splitlines()[0]


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_lines_are_short_and_definitions_stand_apart(path):
    lines = path.read_text().splitlines()[1:]      # the first is the exporter's
    assert [line for line in lines if len(line) > 100] == []
    assert list(lines_of_crowded(path.read_text())) == []


def lines_of_crowded(text):
    """Where a definition and what stands above it have no blank line between them."""
    lines, definitions = text.splitlines(), (ast.FunctionDef, ast.ClassDef)
    for parent in ast.walk(ast.parse(text)):
        if isinstance(parent, (ast.Module, ast.ClassDef)):
            for above, below in zip(parent.body, parent.body[1:]):
                first = min([d.lineno for d in getattr(below, "decorator_list", [])],
                            default=below.lineno)
                if isinstance(above, definitions) or isinstance(below, definitions):
                    if all(lines[above.end_lineno:first - 1]):
                        yield lines[first - 1]


def test_crowded_definitions_are_found():
    assert list(lines_of_crowded("x = 1\ndef f():\n    pass\ny = 2")) == ["def f():", "y = 2"]
    assert not list(lines_of_crowded("x = 1\n\n\n@d\ndef f():\n    pass\n\n\ny = 2"))


@pytest.mark.parametrize("path", MODULES, ids=lambda p: str(p.relative_to(ROOT)))
def test_every_name_is_defined_and_every_import_used(path):
    source = path.read_text()
    tree = ast.parse(source)
    imports = [(i, node) for node in tree.body if isinstance(node, (ast.Import, ast.ImportFrom))
               for i in export.imports_of(node)]
    assert export.free_names(source) <= set(dir(builtins)) | export.MODULE_NAMES
    used = export.global_names(source) | export.annotation_names(tree) | set(listed(tree))
    lines = source.splitlines()
    unused = [i.bound for i, node in imports
              if i.bound not in used and "#" not in lines[node.end_lineno - 1]]
    assert not unused
    defined = {n for node in tree.body for n in export.defined_names(node)}
    assert set(listed(tree)) <= defined | {i.bound for i, _ in imports}


def listed(tree):
    """The names in `__all__`."""
    for node in tree.body:
        if isinstance(node, ast.Assign) and getattr(node.targets[0], "id", "") == "__all__":
            return ast.literal_eval(node.value)
    return []


# --- What the exporter writes ---------------------------------------------------------------------


def test_a_module(book):
    root = book("01_tracing", CORE)
    assert exported(root, "core") == CORE_FILE


def test_exporting_again_changes_nothing(book, capsys):
    root = book("01_tracing", CORE)
    export.export(root)
    assert "wrote" in capsys.readouterr().out
    assert export.export(root) == [] and export.export(root, check=True) == []
    assert capsys.readouterr().out == ""


def test_check_sees_a_difference_and_writes_nothing(book):
    root = book("01_tracing", CORE)
    assert export.export(root, check=True) == [
        "minijax/core.py is not what notebooks/01_tracing.ipynb exports"]
    assert not (root / "minijax" / "core.py").exists()
    assert export.main(["--check", "--root", str(root)]) == 1
    assert export.main(["--root", str(root)]) == 0
    assert export.main(["--check", "--root", str(root)]) == 0


def test_check_sees_a_file_without_a_notebook(book):
    root = book("01_tracing", CORE)
    export.export(root)
    (root / "minijax" / "old.py").write_text(CORE_FILE)
    assert export.export(root, check=True) == [
        "minijax/old.py is exported by no notebook any more; delete it"]


def test_a_file_written_by_hand_is_kept(book):
    root = book("m", cells("x = 1"))
    (root / "minijax" / "m.py").write_text("y = 2\n")
    assert export.export(root) == ["minijax/m.py was written by hand; --adopt replaces it"]
    assert export.export(root, adopt=True) == []


def test_an_import_with_a_comment_is_kept(book):
    root = book("m", cells("import minijax.lax  # installs the operators\nimport os", "x = 1"))
    assert "import minijax.lax  # installs the operators\n" in exported(root)
    assert "import os" not in exported(root)


def test_two_modules_in_one_notebook(book):
    """A name of the other module is imported; in the notebook both live in one namespace."""
    text = cells("import math", "def f(x):\n    return math.sin(x)") + \
        '# %%\n#| export sub.n\n"""n."""\n' \
        "# %%\n#| export sub.n\ndef g(x):\n    return math.cos(f(x))\n"
    root = book("m", text)
    assert "import math\n\nfrom minijax.m import f\n" in exported(root, "sub/n")
    assert (root / "minijax" / "sub" / "__init__.py").read_text().endswith('"""The modules n."""\n')


def test_a_front_lists_what_it_imports(book):
    text = '# %%\n#| export __init__\n"""minijax."""\n# %%\n#| export __init__\n' \
           "import os\nfrom minijax.api import jit, grad\nfrom minijax import lax\nROOT = os.sep\n"
    assert '__all__ = ["lax", "grad", "jit", "ROOT"]' in exported(book("m", text), "__init__")


def test_an_import_of_the_own_module_is_dropped(book):
    root = book("m", cells("x = 1", "from minijax.m import x\ny = x"))
    assert "from minijax" not in exported(root)


def test_long_imports_are_wrapped(book):
    names = [f"a_rather_long_name_{k}" for k in range(9)]
    listing = ", ".join(names)
    root = book("m", cells(f"from minijax.other import {listing}", f"x = [{listing}]"))
    assert "from minijax.other import (\n    a_rather_long_name_0, " in exported(root)
    assert max(map(len, exported(root).splitlines()[:8])) <= export.WIDTH


# --- What it refuses ------------------------------------------------------------------------------

REFUSED = {
    "a name defined twice": (cells("x = 1", "x = 2"), "cell 4: 'x' is defined a second time"),
    "a name imported and defined": (cells("from os import sep", "sep = 1"), "both imported and"),
    "a name from two places": (cells("from os import sep", "from re import sep"), "from os.sep"),
    "a missing name": (cells("def f():\n    return nowhere"), "cell 3: module 'm' uses 'nowhere'"),
    "a relative import": (cells("from . import x"), "cell 3: relative imports"),
    "a star import": (cells("from os import *"), "cell 3: star imports"),
    "a syntax error": (cells("x = 1\ny = ("), "cell 3: line 3: "),
    "a magic": (cells("%matplotlib inline"), "cell 3: line 2: "),
    "an unknown directive": ("# %%\n#| exprot\nx = 1\n", "cell 1: unknown directive '#| exprot'"),
    "a directive in the middle": ("# %%\nx = 1\n#| export m\n", "must stand at the top"),
    "no module": ("# %%\n#| export\nx = 1\n", "cell 1: '#| export' names no module"),
    "no docstring": (cells("x = 1", doc=False), "module 'm' has no docstring"),
    "two docstrings": (cells('"""again"""'), "cell 3: module 'm' has a docstring already"),
    "a comment above imports": (cells("# why\nimport os"), "cell 3: a comment above imports"),
}


@pytest.mark.parametrize("text, message", REFUSED.values(), ids=REFUSED)
def test_refuses(book, text, message):
    root = book("05_name", text)
    with pytest.raises(ExportError) as e:
        export.export(root)
    assert "notebooks/05_name.ipynb" in str(e.value) and message in str(e.value)
    assert not list((root / "minijax").iterdir()), "nothing is written when something is wrong"


def test_refuses_a_second_home(book):
    book("01_a", cells("x = 1"))
    root = book("02_b", cells("y = 1"))
    with pytest.raises(ExportError, match="02_b.*: module 'm' already has a home, notebooks/01_a"):
        export.export(root)
    export.export(root, only=["01_a"])
    assert "has a home, notebooks/01_a.ipynb" in export.export(root, only=["02_b"])[0]


# --- The way back ---------------------------------------------------------------------------------


def edit(root, *pairs):
    """Export, edit the module in place, carry the edit back."""
    export.export(root)
    path = root / "minijax" / "core.py"
    text = path.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    path.write_text(text)
    changed = unexport.unexport(root, path)
    assert export.export(root) == []
    return changed, path.read_text()


def test_an_edit_goes_back_to_its_cell(book):
    root = book("01_tracing", CORE)
    changed, text = edit(root, ("raise OneError(x)", "raise OneError(x, 1)"),
                         ("LIMIT  =  3", "LIMIT = 4"))
    assert changed == [5, 6]
    assert "raise OneError(x, 1)" in text and "LIMIT = 4     # typed by hand" in text


def test_new_definitions_and_imports_go_back(book):
    root = book("01_tracing", CORE)
    changed, text = edit(
        root, ("import threading\n", "import math\nimport threading\n"),
        ("def sooner(x): return AnotherError\n",
         "def sooner(x): return AnotherError\n\n\ndef new(x):\n    return math.sin(x)\n"))
    assert changed == [3, 9]
    assert '"sooner", "new"]' in text and "import math\n" in text


def test_new_imports_are_sorted_among_the_others(book):
    root = book("01_tracing", CORE)
    edit(root, ("import threading\n", "import math\nimport threading\nfrom typing import Final\n"),
         ("def sooner(x): return AnotherError\n",
          "def sooner(x): return AnotherError\n\n\ndef new(x: Final):\n    return math.sin(x)\n"))
    cells = nbformat.read(root / "notebooks" / "01_tracing.ipynb", as_version=4).cells
    assert cells[2].source.splitlines()[:4] == [
        "#| export", "import math", "import threading", "from typing import Any, Final, NamedTuple"]


def test_a_change_over_two_cells_is_refused(book):
    root = book("01_tracing", CORE)
    with pytest.raises(ExportError, match="spans two cells|cannot carry back"):
        edit(root, ("_state = threading.local()\n\n\nclass Trace:", "class Other:"))


def test_nothing_to_carry_back(book):
    assert edit(book("01_tracing", CORE))[0] == []


# --- The text form --------------------------------------------------------------------------------


def test_text_and_back():
    nb = notebooks.normalise(notebooks.from_text(CORE))
    assert notebooks.normalise(notebooks.from_text(notebooks.to_text(nb))) == nb
    assert nb.cells[6].metadata.tags == ["nbval-ignore-output"]
    assert nb.cells[0].source == "# 1. Tracing"


def test_unchanged_cells_keep_their_outputs():
    old = notebooks.normalise(notebooks.from_text("# %%\n1 + 1\n# %%\n2 + 2\n"))
    for count, cell in enumerate(old.cells, 1):
        cell.execution_count = count
        cell.outputs = [nbformat.v4.new_output("stream", text=str(2 * count))]
    new = notebooks.normalise(notebooks.from_text("# %%\n0\n# %%\n1 + 1\n# %%\n2 + 3\n"))
    kept = notebooks.keep_outputs(new, old).cells
    assert [c.execution_count for c in kept] == [None, 1, None]
    assert kept[1].outputs[0].text == "2" and not kept[2].outputs


def test_ids_depend_on_the_content_alone():
    def ids(text):
        return [c.id for c in notebooks.normalise(notebooks.from_text(text)).cells]
    one, same, two = ids("# %%\n1\n# %%\n1\n# %%\n2\n")
    assert len({one, same, two}) == 3
    assert ids("# %%\n2\n# %%\n1\n") == [two, one]


def test_a_module_becomes_cells(tmp_path, monkeypatch):
    """A module written by hand, cut into cells and exported, is the same module."""
    (tmp_path / "minijax").mkdir()
    (tmp_path / "minijax" / "core.py").write_text(CORE_FILE.split("\n", 1)[1])
    monkeypatch.setattr(notebooks, "ROOT", tmp_path)
    script = notebooks.module_script("core")
    script = script.replace('__all__ = ["LIMIT", "Trace", "later", "sooner"]\n', "")
    notebooks.write(notebooks.from_text(script), tmp_path / "notebooks" / "01_tracing.ipynb")
    export.export(tmp_path, adopt=True)
    assert (tmp_path / "minijax" / "core.py").read_text() == CORE_FILE
