"""The benchmarks' programs give the same numbers in every library. Nothing here looks at a time."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("jax")

from benchmarks.measure import disagreement, start, steady_times  # noqa: E402
from benchmarks.programs import PROGRAMS, builders  # noqa: E402

ROOT = Path(__file__).resolve().parent.parent
BY_NAME = {row.name: row for row in PROGRAMS}


@pytest.mark.parametrize("name", BY_NAME)
def test_libraries_agree(name):
    row = BY_NAME[name]
    started = start(row, row.sizes[1])
    assert set(started) == set(builders(row)) >= {"minijax", "jax"}
    ours = started["minijax"].results
    assert ours and all(np.all(np.isfinite(x)) and np.any(x != 0) for x in ours)
    for library, running in started.items():
        assert disagreement(ours, running.results) < 1e-4, library


def test_results_are_float32():
    for name in ("selu", "MLP step, small", "Hessian", "call, scalar"):
        started = start(BY_NAME[name], BY_NAME[name].sizes[1])
        for library, running in started.items():
            assert {x.dtype for x in running.results} == {np.dtype(np.float32)}, (name, library)


def test_disagreement_is_noticed():
    a, b = np.array([1.0, 2.0]), np.array([1.0, 2.5])
    assert disagreement([a], [a]) == 0 and np.isclose(disagreement([a], [b]), 0.2)
    assert disagreement([a], [a, b]) == np.inf == disagreement([a], [a[:1]])
    assert disagreement([a * np.nan], [a]) == np.inf


def test_times_are_of_all_libraries():
    started = start(BY_NAME["sum"], 20)
    times = steady_times(started, turns=2, seconds=1e-4)
    assert set(times) == {"minijax", "jax", "numpy", "numba"} and all(t > 0 for t in times.values())


def test_command_prints_a_row_and_writes_json(tmp_path):
    target = tmp_path / "results" / "run.json"
    done = subprocess.run([sys.executable, "-m", "benchmarks", "--only", "sum", "--small", "--quick",
                           "--json", target], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    assert [line.split("  ")[0] for line in done.stdout.splitlines()[-2:]] == ["sum", "column sums"]
    rows = json.loads(target.read_text())["rows"]
    assert {row["name"] for row in rows} == {"sum", "column sums"}
    assert all(set(row["times"]) == {"minijax", "jax", "numpy", "numba"} for row in rows)


def test_unknown_row_lists_the_rows():
    done = subprocess.run([sys.executable, "-m", "benchmarks", "--only", "no such row"], cwd=ROOT,
                          capture_output=True, text=True, timeout=300)
    assert done.returncode == 1 and "softmax rows" in done.stdout
