"""python -m benchmarks: the table of timings.  benchmarks/README.md says how it measures."""

import argparse
import json
import os
import platform
import statistics
import sys
from pathlib import Path

import minijax
from benchmarks import libraries
from benchmarks.measure import LIBRARIES, disagreement, start, steady_times, warm_up
from benchmarks.programs import KINDS, PROGRAMS
from minijax.book.timings import sweep_plot

TOLERANCE = 1e-3
OTHERS = [name for name in LIBRARIES if name != "minijax"]
SWEEP = [10 ** k for k in range(1, 8)]


def options(argv=None):
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument("--only", metavar="TEXT", action="append",
                        help="rows whose name contains TEXT (may be repeated)")
    parser.add_argument("--quick", action="store_true", help="fewer and shorter turns")
    parser.add_argument("--small", action="store_true", help="small sizes, to see that all runs")
    parser.add_argument("--sweep", action="store_true", help="measure sizes from 10 to 10⁷ too")
    parser.add_argument("--plot", metavar="FILE", type=Path, help="draw the sweep there, as SVG")
    parser.add_argument("--json", metavar="FILE", type=Path, help="write the numbers there too")
    parser.add_argument("--list", action="store_true", help="name the rows and stop")
    return parser.parse_args(argv)


def chosen(only):
    return [row for row in PROGRAMS if not only or any(t in row.name for t in only)]


def run_row(row, small, quick):
    """One row: (first call, steady time) by library, and which ones disagree with minijax."""
    return run_size(row, row.sizes[1 if small else 0], *((3, 0.02) if quick else (9, 0.1)))


def run_size(row, size, turns, seconds):
    started = start(row, size)
    ours = started["minijax"].results
    off = {name: disagreement(ours, running.results) for name, running in started.items()}
    steady = steady_times(started, turns, seconds)
    return {"name": row.name, "kind": row.kind, "size": size,
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


def report(rows, sweep):
    """All there is to know about a run, for --json."""
    return {"versions": libraries.versions(), "python": platform.python_version(),
            "processors": os.cpu_count(), "machine": platform.machine(), "rows": rows,
            "sweep": sweep}


# --- Rows taken together --------------------------------------------------------------------------

def summary(rows):
    """Lines (kind, geometric means of JAX's first-call and steady times over minijax's, rows)."""
    groups = [(k, [r for r in rows if r["kind"] == k]) for k in KINDS]
    return [(kind, mean_ratio(group, 0), mean_ratio(group, 1), len(group))
            for kind, group in [*groups, ("all", rows)] if group]


def mean_ratio(rows, which):
    return statistics.geometric_mean(
        r["times"]["jax"][which] / r["times"]["minijax"][which] for r in rows)


def print_summary(rows):
    print("\nJAX/minijax, geometric means   first call   steady   rows")
    for kind, first, steady, n in summary(rows):
        print(f"{kind:29}  {first:10.2f}  {steady:7.2f}  {n:5}")


# --- What is wanted -------------------------------------------------------------------------------

# Least geometric mean of JAX's steady times over minijax's, by kind; and least ratio of single rows:
# level with JAX, but for noise, and within 1.15 times what is written by hand with Numba.
BARS = {"elementwise": 2, "reductions": 2, "row-wise": 2, "loops": 2, "BLAS": 0.95, "calls": 1,
        "eager": 3}
ROW_BARS = {"jax": 0.9, "numba": 1 / 1.15}


def missed(rows):
    """A line for each bar that is missed: what, how much it is, how much it should be."""
    lines = [(kind, steady, BARS[kind]) for kind, _, steady, _ in summary(rows)
             if steady < BARS.get(kind, 0)]
    for row in rows:
        for name, bar in ROW_BARS.items():
            if name in row["times"]:
                got = row["times"][name][1] / row["times"]["minijax"][1]
                if got < bar:
                    lines.append((f"{row['name']}, {name}/minijax", got, bar))
    return lines


def print_missed(rows):
    lines = missed(rows)
    print("\nbars missed" if lines else "\nno bar is missed")
    for what, got, bar in lines:
        print(f"{what:29}  {got:10.2f}  of {bar:.2f}")


# --- Many sizes -----------------------------------------------------------------------------------

def run_sweep(rows, sizes):
    """A line for each program and size, its number of elements being about `n`."""
    lines = []
    for row in rows:
        for n in sizes if row.sweep else ():
            lines.append({"n": n, **run_size(row, row.sweep(n), 5, 0.02)})
        if row.sweep:
            print_line([row.name, *(ratio(x["times"], "jax", 1) for x in lines[-len(sizes):])])
    return lines


def print_sweep(rows, small):
    sizes = SWEEP[:3] if small else SWEEP
    print("\nJAX/minijax, steady, by number of elements")
    print_line(["program", *(f"{n:.0e}" for n in sizes)])
    return run_sweep(rows, sizes)


def main():
    args = options()
    rows = chosen(args.only)
    if args.list or not rows:
        print("\n".join(row.name for row in rows or PROGRAMS))
        return 0 if rows else 1
    # A first call is to be compiled, not found on disk. (JAX keeps nothing on disk unless told to.)
    minijax.config.update("jax_enable_compilation_cache", False)
    print("Times of minijax, and how many times longer the others take: above 1, minijax is "
          "faster.\n")
    print_line(HEAD)
    warm_up()
    done = []
    for row in rows:
        done.append(run_row(row, args.small, args.quick))
        print_line(line(done[-1]))
    print_summary(done)
    print_missed(done)
    sweep = print_sweep(rows, args.small) if args.sweep or args.plot else []
    if args.plot:
        sweep_plot(sweep).savefig(args.plot, format="svg")
    if args.json:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(report(done, sweep), ensure_ascii=False) + "\n")
    return int(any(row["disagrees"] for row in done))


if __name__ == "__main__":
    sys.exit(main())
