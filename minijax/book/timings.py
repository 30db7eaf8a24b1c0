"""Drawings of what `python -m benchmarks --json` measured."""

import json
from pathlib import Path

import matplotlib.pyplot as plt
from matplotlib.ticker import FuncFormatter, NullFormatter

from minijax.book.plots import INK, setup_plots
from minijax.book.svg import PALETTE

__all__ = ["load_timings", "sweep_curves", "draw_sweep", "sweep_plot", "draw_ratios"]


def load_timings(path):
    """The dict that a run of the benchmarks wrote: versions, rows, sweep."""
    return json.loads(Path(path).read_text())


# --- Time against size ----------------------------------------------------------------------------

def sweep_curves(lines):
    """{program: {library: (numbers of elements, steady seconds)}} in the order of the run."""
    curves = {}
    for line in lines:
        for library, (_, steady) in line["times"].items():
            sizes, times = curves.setdefault(line["name"], {}).setdefault(library, ([], []))
            sizes.append(line["n"])
            times.append(steady)
    return curves


def draw_sweep(lines, axes):
    """One panel for each program: microseconds a call against elements, both logarithmic."""
    for ax, (name, libraries) in zip(axes, sweep_curves(lines).items()):
        for library, (sizes, times) in libraries.items():
            ax.loglog(sizes, [1e6 * t for t in times], label=library, marker=".",
                      linewidth=2.2 if library == "minijax" else 1.2)
        ax.set_title(name, fontsize=9)
        ax.tick_params(which="both", labelsize=7)
    axes[0].legend(fontsize=7)
    axes[0].set_ylabel("µs a call", fontsize=8)


def sweep_plot(lines):
    """A figure of its own with `draw_sweep` in it."""
    setup_plots()
    n = max(1, len(sweep_curves(lines)))
    fig, axes = plt.subplots(-(-n // 3), 3, figsize=(8, 2.3 * -(-n // 3)), layout="constrained")
    draw_sweep(lines, axes.flat)
    for ax in axes.flat[n:]:
        ax.set_visible(False)
    return fig


# --- Ratios ---------------------------------------------------------------------------------------

def draw_ratios(rows, ax, other="jax"):
    """A bar for each program: how many times longer the other library takes, logarithmic."""
    rows = [row for row in rows if other in row["times"]][::-1]
    ratios = [row["times"][other][1] / row["times"]["minijax"][1] for row in rows]
    colours = [PALETTE[0] if r >= 1 else PALETTE[1] for r in ratios]
    ax.barh([row["name"] for row in rows], [r - 1 for r in ratios], left=1, color=colours)
    ax.set_xscale("log")
    ax.axvline(1, color=INK, linewidth=1)
    ax.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}×"))
    ax.xaxis.set_minor_formatter(NullFormatter())
    ax.tick_params(labelsize=8)
    for y, r in enumerate(ratios):
        ax.text(max(r, 1) * 1.05, y, f"{r:.1f}", va="center", fontsize=7)
