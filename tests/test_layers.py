"""Imports point one way: the order is `LAYERS` in minijax/book/layers.py."""

import ast
import subprocess
import sys
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

from minijax.book.layers import LAYERS, layer_diagram, place_of

ROOT = Path(__file__).resolve().parent.parent
FILES = {".".join(p.relative_to(ROOT / "minijax").with_suffix("").parts): p
         for p in sorted((ROOT / "minijax").rglob("*.py"))}
SLOW = {"numba", "llvmlite", "scipy"}


def module_named(dotted):
    """The module of ours that a dotted path means, or None."""
    if dotted.split(".")[0] != "minijax":
        return None
    name = dotted.removeprefix("minijax").removeprefix(".")
    front = f"{name}.__init__".removeprefix(".")
    return name if name in FILES else front if front in FILES else None


def imported_modules(node):
    """The modules of ours that one import statement needs."""
    if isinstance(node, ast.Import):
        return {module_named(a.name) for a in node.names} - {None}
    return {module_named(f"{node.module}.{a.name}") or module_named(node.module)
            for a in node.names} - {None}


def imports_of(tree):
    return [n for n in ast.walk(tree) if isinstance(n, (ast.Import, ast.ImportFrom))]


GRAPH = {name: set().union(*map(imported_modules, imports_of(ast.parse(path.read_text()))))
         for name, path in FILES.items()}


@pytest.mark.parametrize("module", FILES)
def test_imports_point_down(module):
    assert place_of(module), f"minijax.{module} stands in no layer of minijax/book/layers.py"
    above = [m for m in GRAPH[module] if place_of(m) > place_of(module)]
    assert not above, f"minijax.{module} imports from above itself: {', '.join(above)}"


def test_no_cycles():
    try:
        TopologicalSorter({m: needs - {m} for m, needs in GRAPH.items()}).prepare()
    except CycleError as e:
        pytest.fail(f"modules import each other: {' -> '.join(e.args[1])}")


@pytest.mark.parametrize("module", FILES)
def test_no_imports_inside_functions(module):
    functions = [n for n in ast.walk(ast.parse(FILES[module].read_text()))
                 if isinstance(n, (ast.FunctionDef, ast.AsyncFunctionDef))]
    late = [n for f in functions for n in imports_of(f)]
    if module.startswith("compiler."):       # programs that never jit don't wait for Numba
        late = [n for n in late if not roots(n) <= SLOW and not is_compiler(n)]
    assert not late, f"minijax.{module}, line {late[0].lineno}: an import inside a function"


def is_compiler(node):
    return all(m.startswith("compiler.") for m in imported_modules(node) or ["none"])


def roots(node):
    names = [a.name for a in node.names] if isinstance(node, ast.Import) else [node.module or "."]
    return {name.split(".")[0] for name in names}


def test_import_is_quick():
    """`import minijax` loads neither Numba nor SciPy, which are slow to load, and never JAX."""
    code = "import sys, minijax, minijax.numpy; print(*sys.modules)"
    out = subprocess.run([sys.executable, "-c", code], cwd=ROOT, stdout=subprocess.PIPE, check=True)
    assert not (SLOW | {"jax"}) & set(out.stdout.decode().split())


def test_jax_is_for_tests_only():
    users = [m for m, path in FILES.items() for n in imports_of(ast.parse(path.read_text()))
             if roots(n) & {"jax", "jaxlib"}]
    assert not users


def test_this_test_can_fail():
    assert module_named("minijax.core") == "core"
    assert imported_modules(ast.parse("from minijax import core").body[0]) == {"core"}
    assert imported_modules(ast.parse("from minijax.core import Trace").body[0]) == {"core"}
    assert place_of("api") > place_of("interpreters.jvp") > place_of("core")
    assert place_of("nowhere") is None


def test_every_layer_has_modules():
    for layer in LAYERS:
        assert any(LAYERS[place_of(m)[0]] is layer for m in FILES if place_of(m)), layer.name


def test_diagram():
    svg = layer_diagram(lit="interpreters.jvp")._repr_svg_()
    assert 'role="img"' in svg and "Lit: interpreters." in svg and "here: interpreters.jvp" in svg
    assert svg.count("<rect") == len(LAYERS)
    assert svg == layer_diagram(lit="interpreters.jvp")._repr_svg_()
    with pytest.raises(ValueError, match="no layer or module named 'kernel'"):
        layer_diagram(lit="kernel")
