"""python -m benchmarks: the table of timings.  benchmarks/README.md says how it measures."""

import argparse
import json
import os
import platform
import sys
from pathlib import Path

from benchmarks import libraries
from benchmarks.measure import LIBRARIES, disagreement, start, steady_times, warm_up
from benchmarks.programs import PROGRAMS

TOLERANCE = 1e-3
OTHERS = [name for name in LIBRARIES if name != "minijax"]


def options(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", metavar="TEXT", action="append",
                        help="rows whose name contains TEXT (may be repeated)")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter turns")
    parser.add_argument("--small", action="store_true", help="small sizes, to see that all runs")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the numbers there too")
    parser.add_argument("--list", action="store_true", help="name the rows and stop")
    return parser.parse_args(argv)


def chosen(only):
    return [row for row in PROGRAMS if not only or any(t in row.name for t in only)]


def run_row(row, small, quick):
    """One row: (first call, steady time) by library, and which ones disagree with minijax."""
    started = start(row, row.sizes[1 if small else 0])
    ours = started["minijax"].results
    off = {name: disagreement(ours, running.results) for name, running in started.items()}
    steady = steady_times(started, *((3, 0.02) if quick else (9, 0.1)))
    return {"name": row.name, "size": row.sizes[1 if small else 0],
            "times": {name: (running.first, steady[name]) for name, running in started.items()},
            "disagrees": {name: d for name, d in off.items() if not d <= TOLERANCE}}


# --- The table ------------------------------------------------------------------------------------

def seconds(t):
    for unit, factor in (("s ", 1), ("ms", 1e3), ("µs", 1e6)):
        if t * factor >= 1:
            break
    number = t * factor
    return f"{number:.0f} {unit}" if number >= 100 else f"{number:.3g} {unit}"


def ratio(times, name, which):
    return f"{times[name][which] / times['minijax'][which]:.2f}" if name in times else "–"


def line(row):
    """The cells of a row: times of minijax, and how many times longer the others take."""
    times = row["times"]
    cells = [row["name"]]
    for which in (0, 1):
        cells += [seconds(times["minijax"][which])]
        cells += [ratio(times, name, which) for name in (OTHERS if which else ("jax", "numba"))]
    return cells + [", ".join(f"≠ {name}" for name in row["disagrees"])]


HEAD = ["program", "first call", "JAX/", "Numba/", "steady", "JAX/", "NumPy/", "Numba/", ""]
WIDTHS = [20, 10, 6, 7, 9, 7, 7, 7, 0]


def print_line(cells):
    padded = [cells[0].ljust(WIDTHS[0])] + [c.rjust(w) for c, w in zip(cells[1:], WIDTHS[1:])]
    print("  ".join(padded).rstrip(), flush=True)


def report(rows):
    """All there is to know about a run, for --json."""
    return {"versions": libraries.versions(), "python": platform.python_version(),
            "processors": os.cpu_count(), "machine": platform.machine(), "rows": rows}


def main():
    args = options()
    rows = chosen(args.only)
    if args.list or not rows:
        print("\n".join(row.name for row in rows or PROGRAMS))
        return 0 if rows else 1
    print("Times of minijax, and how many times longer the others take: above 1, minijax is "
          "faster.\n")
    print_line(HEAD)
    warm_up()
    done = []
    for row in rows:
        done.append(run_row(row, args.small, args.quick))
        print_line(line(done[-1]))
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(report(done), indent=1, ensure_ascii=False) + "\n")
    return int(any(row["disagrees"] for row in done))


if __name__ == "__main__":
    sys.exit(main())
