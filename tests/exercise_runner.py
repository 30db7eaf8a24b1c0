"""Run a chapter once and, at each check cell, try every answer: python exercise_runner.py < job.

The job is JSON: {"cells": [...], "answers": {exercise: {label: source}}}, the cells being the
sources of the chapter. Prints one JSON line: {"verdicts": {exercise: {label: verdict}}, "broken":
message or null}; a verdict has what the check printed and the error it raised, and "stub" is the
chapter's own.
"""
import contextlib
import io
import json
import re
import sys

from IPython.core.interactiveshell import InteractiveShell

from minijax.core import bump_rules_epoch, primitives

CHECK = re.compile(r"^#\| check (\w+)$", re.M)


def try_answers(job):
    shell, verdicts = InteractiveShell.instance(), {}
    for number, source in enumerate(job["cells"], 1):
        name = CHECK.search(source)
        for label, answer in job["answers"].get(name[1], {}).items() if name else ():
            with as_before(shell):
                verdicts.setdefault(name[1], {})[label] = run(shell, answer, source)
        verdict = run(shell, source)
        if name:
            verdicts.setdefault(name[1], {})["stub"] = verdict
        if verdict["error"]:
            return {"verdicts": verdicts, "broken": f"cell {number}: {verdict['error']}"}
    return {"verdicts": verdicts, "broken": None}


def run(shell, *sources):
    """What some cells print, and the error that stops them, if one does."""
    printed, error = io.StringIO(), None
    for source in sources:
        with contextlib.redirect_stdout(printed):
            result = shell.run_cell(source, store_history=False)
        error = result.error_before_exec or result.error_in_exec
        if error:
            break
    notes = getattr(error, "__notes__", [])
    text = error and "\n".join([f"{type(error).__name__}: {error}", *notes])
    return {"printed": "" if error else printed.getvalue(), "error": text}


@contextlib.contextmanager
def as_before(shell):
    """Undo on leaving what an answer does to names of the chapter and to rules of primitives."""
    names, known = dict(shell.user_ns), dict(primitives)
    rules = {p: dict(p.rules) for p in known.values()}
    yield
    shell.user_ns.clear(), primitives.clear()
    shell.user_ns.update(names), primitives.update(known)
    for primitive, kept in rules.items():
        primitive.rules.clear()
        primitive.rules.update(kept)
    bump_rules_epoch()


if __name__ == "__main__":
    outcome = try_answers(json.load(sys.stdin))
    print("\n" + json.dumps(outcome))
