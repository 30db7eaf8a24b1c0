"""Every exercise: the stub is "not yet", the solution passes, and wrong answers are told why.

Chapters mark cells by `#| exercise NAME` and `#| check NAME`, their solutions notebooks by
`#| solution NAME` and `#| check NAME`; wrong answers stand in tests/exercises/chNN.py. Each chapter
runs once, in a process of its own.
"""
import functools
import json
import os
import re
import runpy
import subprocess
import symtable
import sys
from pathlib import Path

import nbformat
import pytest

ROOT = Path(__file__).parent.parent
RUNNER = Path(__file__).parent / "exercise_runner.py"
MARK = re.compile(r"^#\| (exercise|check|solution) (\w+)$", re.M)


# --- Reading chapters -----------------------------------------------------------------------------

def cells_of(path):
    if not path.exists():
        return []
    return [c for c in nbformat.read(path, as_version=4).cells
            if "nbval-skip" not in c.metadata.get("tags", [])]


def marked(cells):
    """{(mark, name): source} of the cells that are marked."""
    found = {}
    for cell in cells:
        for mark in MARK.findall(cell.source) if cell.cell_type == "code" else ():
            assert mark not in found, f"two cells are marked {' '.join(mark)}"
            found[mark] = cell.source
    return found


class Chapter:
    """A chapter's exercises, their solutions and wrong answers."""

    def __init__(self, notebook, solutions, wrong):
        self.cells = cells_of(notebook)
        self.marks, self.solved = marked(self.cells), marked(cells_of(solutions))
        self.names = [name for kind, name in self.marks if kind == "exercise"]
        self.wrong = runpy.run_path(str(wrong))["wrong"] if wrong.exists() else {}

    def solution(self, name):
        assert ("solution", name) in self.solved, f"the solutions notebook lacks {name!r}"
        return self.solved["solution", name]

    def wrong_answers(self, name):
        """(source, regex of the message) of each planted wrong answer."""
        return [planted(self.solution(name), entry) for entry in self.wrong.get(name, [])]

    def answers(self, name):
        wrong = {f"wrong {i}": source for i, (source, _) in enumerate(self.wrong_answers(name))}
        return {"solution": self.solution(name), **wrong}

    @functools.cached_property
    def outcome(self):
        sources = [c.source for c in self.cells if c.cell_type == "code"]
        job = {"cells": sources, "answers": {name: self.answers(name) for name in self.names
                                             if ("solution", name) in self.solved}}
        return run_job(job)

    def verdict(self, name, label):
        if name not in self.outcome["verdicts"]:
            pytest.fail(f"the chapter stops before the check of {name!r}: {self.outcome['broken']}")
        verdicts = self.outcome["verdicts"][name]
        assert label in verdicts, f"the {label} of {name!r} was not tried: is it there?"
        return verdicts[label]


def planted(solution, entry):
    """A wrong answer is (source, regex), or an edit of the solution: (old, new, regex)."""
    if len(entry) == 2:
        return entry
    old, new, regex = entry
    assert solution.count(old) == 1, f"{old!r} should occur once in the solution:\n{solution}"
    return solution.replace(old, new), regex


def run_job(job):
    environment = os.environ | {"MPLBACKEND": "agg", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, str(RUNNER)], input=json.dumps(job), text=True,
                          capture_output=True, cwd=ROOT / "notebooks", env=environment)
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout.splitlines()[-1])


@functools.cache
def chapter(stem):
    notebooks = ROOT / "notebooks"
    return Chapter(notebooks / f"{stem}.ipynb", notebooks / "solutions" / f"{stem}.ipynb",
                   ROOT / "tests/exercises" / f"ch{stem[:2]}.py")


def exercises():
    stems = sorted(path.stem for path in (ROOT / "notebooks").glob("[0-9][0-9]_*.ipynb"))
    return [(stem, name) for stem in stems for name in chapter(stem).names]


every_exercise = pytest.mark.parametrize("stem, name", exercises())


# --- The proofs -----------------------------------------------------------------------------------

def prove_stub(chapter, name):
    verdict = chapter.verdict(name, "stub")
    assert verdict["error"] is None, f"the unsolved exercise stops the chapter: {verdict['error']}"
    assert verdict["printed"].startswith(f"not yet: {name}"), verdict["printed"]


def prove_solution(chapter, name):
    verdict = chapter.verdict(name, "solution")
    assert verdict["error"] is None, f"the solution fails: {verdict['error']}"
    assert f"✓ {name}" in verdict["printed"].splitlines()[-1], verdict["printed"]


def prove_wrong_answers(chapter, name):
    wrong = chapter.wrong_answers(name)
    assert wrong, f"no wrong answer to {name!r} is planted in tests/exercises"
    for i, (_, regex) in enumerate(wrong):
        verdict = chapter.verdict(name, f"wrong {i}")
        error = verdict["error"]
        assert error, f"wrong answer {i} is not caught; it printed {verdict['printed']!r}"
        assert re.search(regex, error), f"wrong answer {i} should say {regex!r}: {error}"


@every_exercise
def test_stub_is_not_yet(stem, name):
    prove_stub(chapter(stem), name)


@every_exercise
def test_solution_passes(stem, name):
    prove_solution(chapter(stem), name)


@every_exercise
def test_wrong_answers_are_told_why(stem, name):
    prove_wrong_answers(chapter(stem), name)


@every_exercise
def test_unsolved_chapter_runs_to_the_end(stem, name):
    assert chapter(stem).outcome["broken"] is None


# --- Form -----------------------------------------------------------------------------------------

def bound_names(source):
    """Names that a cell binds at its top level."""
    try:
        table = symtable.symtable(source, "<cell>", "exec")
    except SyntaxError:        # a cell with IPython magics
        return set()
    return {s.get_name() for s in table.get_symbols()
            if s.is_assigned() or s.is_imported() or s.is_namespace()}


def overwriting_cells(chapter, name):
    """Sources of other cells that bind what the stub binds: running them would lose the answer."""
    stub = chapter.marks["exercise", name]
    answer = bound_names(stub)
    return [c.source for c in chapter.cells
            if c.cell_type == "code" and c.source != stub and answer & bound_names(c.source)]


@every_exercise
def test_nothing_overwrites_the_answer(stem, name):
    assert overwriting_cells(chapter(stem), name) == []


@every_exercise
def test_statement_check_and_stars(stem, name):
    cells, marks = chapter(stem).cells, chapter(stem).marks
    assert ("check", name) in marks, f"no cell is marked `#| check {name}`"
    stub = next(i for i, c in enumerate(cells) if c.source == marks["exercise", name])
    before = [c.source for c in cells[:stub] if c.cell_type == "markdown"]
    assert before and "★" in before[-1], "a statement with its difficulty (★) stands above the stub"


@every_exercise
def test_solutions_notebook_checks_the_same(stem, name):
    assert chapter(stem).solution(name)
    assert chapter(stem).solved.get(("check", name)) == chapter(stem).marks["check", name]


def test_wrong_answers_belong_to_exercises():
    planted = {path.name for path in (ROOT / "tests/exercises").glob("*.py")}
    chapters = {f"ch{stem[:2]}.py" for stem, _ in exercises()}
    assert planted <= chapters
    for stem in {stem for stem, _ in exercises()}:
        assert set(chapter(stem).wrong) <= set(chapter(stem).names)


# --- The proofs can fail --------------------------------------------------------------------------

STUB = "#| exercise double\ndef double(x):\n    raise NotYet('add x to itself')"
JUDGE = ("#| check double\nwith check('double'):\n"
         "    assert double(3) == 6, f'double(3) should be 6, got {double(3)}'")
IMPORTS = "from minijax.book.exercises import NotYet, check, not_yet"
RIGHT = "#| solution double\ndef double(x):\n    return 2 * x"


def small_chapter(tmp_path, wrong, stub=STUB, judge=JUDGE, right=RIGHT, last=""):
    notebooks = dict(chapter=[IMPORTS, stub, judge, last], solved=[IMPORTS, right, judge])
    for name, cells in notebooks.items():
        nb = nbformat.v4.new_notebook(cells=[nbformat.v4.new_code_cell(c) for c in cells])
        nbformat.write(nb, tmp_path / f"{name}.ipynb")
    (tmp_path / "wrong.py").write_text(f"wrong = {{'double': {wrong!r}}}")
    return Chapter(tmp_path / "chapter.ipynb", tmp_path / "solved.ipynb", tmp_path / "wrong.py")


def prove_all(small):
    prove_stub(small, "double")
    prove_solution(small, "double")
    prove_wrong_answers(small, "double")


def test_a_good_exercise_is_proved(tmp_path):
    broken = "def double(x):\n    return x.y"
    small = small_chapter(tmp_path, [("2 * x", "3 * x", "should be 6, got 9"),
                                     (broken, "AttributeError(.|\n)*double")])
    prove_all(small)
    assert small.outcome["broken"] is None and not overwriting_cells(small, "double")


def test_a_lenient_check_is_found(tmp_path):
    small = small_chapter(tmp_path, [("2 * x", "6", "should")])
    with pytest.raises(AssertionError, match="not caught"):
        prove_wrong_answers(small, "double")


def test_a_message_that_points_nowhere_is_found(tmp_path):
    small = small_chapter(tmp_path, [("2 * x", "3 * x", "should be")],
                          judge=JUDGE.partition(", f'")[0])
    with pytest.raises(AssertionError, match="should say"):
        prove_wrong_answers(small, "double")


def test_a_stub_that_stops_the_chapter_is_found(tmp_path):
    small = small_chapter(tmp_path, [], stub=STUB.replace("NotYet(", "ValueError("))
    with pytest.raises(AssertionError, match="stops the chapter"):
        prove_stub(small, "double")
    assert small.outcome["broken"]


def test_a_wrong_solution_is_found(tmp_path):
    small = small_chapter(tmp_path, [], right=RIGHT.replace("2 *", "3 *"))
    with pytest.raises(AssertionError, match="the solution fails"):
        prove_solution(small, "double")


def test_a_cell_that_overwrites_the_answer_is_found(tmp_path):
    small = small_chapter(tmp_path, [], last="double = 3")
    assert overwriting_cells(small, "double") == ["double = 3"]


def test_a_value_that_is_not_yet(tmp_path):
    small = small_chapter(tmp_path, [("double = 5", "should be 6")],
                          stub="#| exercise double\ndouble = not_yet('three and three')",
                          right="#| solution double\ndouble = 6",
                          judge=JUDGE.replace("double(3)", "double"))
    prove_all(small)
