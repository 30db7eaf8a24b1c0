"""The benchmarks' programs give the same numbers in every library. Nothing here looks at a time."""

import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from benchmarks.__main__ import missed, summary
from benchmarks.measure import disagreement, start, steady_times
from benchmarks.programs import KINDS, PROGRAMS, builders, lorenz
from minijax.book.timings import sweep_curves, sweep_plot

ROOT = Path(__file__).resolve().parent.parent
BY_NAME = {row.name: row for row in PROGRAMS}
LORENZ = "Lorenz, 50 steps"
SHORT_LORENZ = BY_NAME[LORENZ]._replace(build=partial(lorenz, steps=3), in_numba=None,
                                        in_numpy=partial(lorenz, steps=3))


@pytest.mark.parametrize("name", BY_NAME)
def test_libraries_agree(name):
    # fifty steps take seconds to compile, three are the same program
    row = SHORT_LORENZ if name == LORENZ else BY_NAME[name]
    started = start(row, row.sizes[1])
    assert set(started) == set(builders(row)) >= {"minijax", "jax"}
    ours = started["minijax"].results
    assert ours and all(np.all(np.isfinite(x)) and np.any(x != 0) for x in ours)
    for library, running in started.items():
        assert disagreement(ours, running.results) < 1e-4, library


def test_the_kernel_written_by_hand_takes_fifty_steps():
    started = start(BY_NAME[LORENZ], 3, names=("numpy", "numba"))
    assert disagreement(started["numpy"].results, started["numba"].results) < 1e-4


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


def run(*options):
    return subprocess.run([sys.executable, "-m", "benchmarks", *map(str, options)], cwd=ROOT,
                          capture_output=True, text=True, timeout=300)


def test_command_prints_a_row_and_writes_json(tmp_path):
    target = tmp_path / "results" / "run.json"
    done = run("--only", "column", "--only", "x + x.T", "--small", "--quick", "--json", target)
    assert done.returncode == 0, done.stderr
    names = [line.split("  ")[0] for line in done.stdout.splitlines()[3:5]]
    assert names == ["x + x.T", "column sums"]
    rows = json.loads(target.read_text())["rows"]
    assert {row["name"] for row in rows} == set(names)
    assert all(set(row["times"]) == {"minijax", "jax", "numpy", "numba"} for row in rows)


def test_sweep_is_measured_and_drawn(tmp_path):
    target = tmp_path / "run.json"
    done = run("--only", "column", "--small", "--quick", "--sweep", "--json", target)
    assert done.returncode == 0, done.stderr
    lines = json.loads(target.read_text())["sweep"]
    sizes, times = sweep_curves(lines)["column sums"]["jax"]
    assert sizes == [10, 100, 1000] and all(t > 0 for t in times)
    sweep_plot(lines).savefig(tmp_path / "sweep.svg")
    assert "column sums" in (tmp_path / "sweep.svg").read_text()


def test_every_row_has_a_kind_and_a_kind_its_mean():
    assert {row.kind for row in PROGRAMS} == set(KINDS)
    rows = [{"kind": "BLAS", "times": {"jax": (1, t), "minijax": (2, 1)}} for t in (2, 8)]
    assert summary(rows) == [("BLAS", 0.5, pytest.approx(4), 2), ("all", 0.5, pytest.approx(4), 2)]


def test_unknown_row_lists_the_rows():
    done = run("--only", "no such row")
    assert done.returncode == 1 and "softmax rows" in done.stdout


def test_missed_bars_are_named():
    def row(kind, jax, numba):
        return {"name": "a row", "kind": kind,
                "times": {"minijax": (1.0, 1.0), "jax": (1.0, jax), "numba": (1.0, numba)}}
    assert missed([row("elementwise", 3.0, 1.0), row("elementwise", 2.0, 0.9)]) == []
    lines = missed([row("elementwise", 0.5, 1.0), row("eager", 4.0, 0.5)])
    assert [what for what, _, _ in lines] == ["elementwise", "a row, jax/minijax", "a row, numba/minijax"]
