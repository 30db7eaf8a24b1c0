"""What every notebook must be: run, clean, in the book's table of contents, and in shape."""

import json
import re
from fnmatch import fnmatchcase
from pathlib import Path

import nbformat
import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent
PATHS = sorted([*ROOT.glob("notebooks/*.ipynb"), *ROOT.glob("notebooks/solutions/*.ipynb")])
NOTEBOOKS = {str(p.relative_to(ROOT / "notebooks").with_suffix("")): p for p in PATHS}
CHAPTERS = [name for name in NOTEBOOKS if re.match(r"[01]\d_", name)]
MACHINE_PATH = re.compile(r"(?<![\w.])/(?:home|root|work|tmp|Users|usr|opt|private|var)/\w")
ADDRESS = re.compile(r"\bat 0x[0-9a-f]{6,}")
LIMIT = 1_000_000
BIG = {"book/_vendor/mathjax-tex-svg.js"}        # in one file, so that the site works offline

every_notebook = pytest.mark.parametrize("name", NOTEBOOKS)
every_chapter = pytest.mark.parametrize("name", CHAPTERS)


def read(name):
    return nbformat.read(NOTEBOOKS[name], as_version=4)


def code_cells(name):
    return [(k, c) for k, c in enumerate(read(name).cells, 1) if c.cell_type == "code"]


def outputs(name):
    return [(k, o) for k, c in code_cells(name) for o in c.outputs]


def headings(name):
    text = "\n".join(c.source for c in read(name).cells if c.cell_type == "markdown")
    text = re.sub(r"```.*?```", "", text, flags=re.S)
    return re.findall(r"^(#+) +(.*?)\s*$", text, re.M)


@every_notebook
def test_was_run(name):
    """nbval compares nothing in a cell without stored outputs: one that never ran would pass."""
    counts = [c.execution_count for _, c in code_cells(name)
              if c.source.strip() and "nbval-skip" not in c.metadata.get("tags", [])]
    assert counts == list(range(1, len(counts) + 1)), "re-execute it: make run NB=" + name


@every_notebook
def test_shows_no_traceback(name):
    bad = [k for k, o in outputs(name) if o.output_type == "error"]
    assert not bad, f"cells {bad} raise; show a failure's type and message instead"
    noisy = [k for k, o in outputs(name) if o.output_type == "stream" and o.name == "stderr"]
    assert not noisy, f"cells {noisy} write to stderr"


@every_notebook
def test_outputs_name_no_machine(name):
    for k, o in outputs(name):
        text = json.dumps({m: d for m, d in o.get("data", {}).items() if m != "image/png"}) \
            + o.get("text", "")
        assert not MACHINE_PATH.search(text), f"cell {k} shows a path of this machine"
        assert not ADDRESS.search(text), f"cell {k} shows an address in memory"


@every_notebook
def test_metadata_is_clean(name):
    """What differs between machines and editors is left out (tools/notebooks.py removes it)."""
    nb = read(name)
    assert nb.metadata.kernelspec.name == "python3"
    assert dict(nb.metadata.language_info) == {"name": "python"}
    for k, cell in enumerate(nb.cells, 1):
        assert set(cell.metadata) <= {"tags"}, f"cell {k} carries {set(cell.metadata)}"


@every_notebook
def test_opens_with_its_title(name):
    first = read(name).cells[0]
    assert first.cell_type == "markdown" and first.source.startswith("# ")
    assert [level for level, _ in headings(name)].count("#") == 1, "one title a notebook"


@every_chapter
def test_has_the_shape_of_a_chapter(name):
    titles = [title.lower() for level, title in headings(name) if level == "##"]
    for needed in ("exercises", "roads not taken", "in jax"):
        assert any(needed in title for title in titles), f"no section '{needed}'"
    assert any("layer_diagram(" in c.source for _, c in code_cells(name)[:2]), \
        "the layer diagram does not open the chapter"


@every_notebook
def test_pictures_are_described(name):
    for k, cell in enumerate(read(name).cells, 1):
        if cell.cell_type == "markdown":
            assert not re.search(r"!\[\s*\]\(", cell.source), f"cell {k}: no alt text"
            tags = re.findall(r"<img\b[^>]*>", cell.source)
            assert all(re.search(r"\balt=\"[^\"]+\"", t) for t in tags), f"cell {k}: no alt text"
    for k, o in outputs(name):
        for svg in re.findall(r"<svg\b.*?</svg>", o.get("data", {}).get("text/html", ""), re.S):
            assert "<title" in svg or "aria-label" in svg, f"cell {k}: no description"


@every_notebook
def test_is_in_the_table_of_contents(name):
    toc = yaml.safe_load((ROOT / "book" / "_toc.yml").read_text())
    entries = [e for part in toc["parts"] for e in part["chapters"]]
    patterns = [e.get("glob") or e["file"] for e in entries]
    places = [p for p in patterns if fnmatchcase(f"notebooks/{name}", p)
              and p.count("/") == name.count("/") + 1]
    assert len(places) == 1, f"in {len(places)} places of book/_toc.yml"


@every_notebook
def test_links_lead_somewhere(name):
    for cell in read(name).cells:
        if cell.cell_type == "markdown":
            for target in re.findall(r"\]\(([^)#:\s]+\.(?:ipynb|md|py))(?:#[^)]*)?\)", cell.source):
                assert (NOTEBOOKS[name].parent / target).exists(), f"a link to {target}"


def test_readme_lists_the_chapters():
    listed = re.findall(r"\(notebooks/(\d\d_\w+)\.ipynb\)", (ROOT / "README.md").read_text())
    assert sorted(listed) == sorted(n for n in NOTEBOOKS if re.match(r"\d\d_", n))


def test_solutions_belong_to_a_chapter():
    for name in NOTEBOOKS:
        if name.startswith("solutions/"):
            assert name.removeprefix("solutions/") in NOTEBOOKS


def test_no_file_is_big():
    folders = ("notebooks", "minijax", "tests", "book", "tools", "benchmarks", "examples")
    files = [p for f in folders for p in (ROOT / f).rglob("*") if p.is_file()]
    names = {str(p.relative_to(ROOT)) for p in files if p.stat().st_size > LIMIT}
    built = {n for n in names if n.startswith(("book/_build/", "book/notebooks/"))}
    assert names - built - BIG == set()
