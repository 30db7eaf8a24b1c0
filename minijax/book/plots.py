"""Matplotlib as the chapters use it: small SVG, the same on every run, on light and dark pages."""

import io
import re
from contextlib import contextmanager

import matplotlib
import matplotlib.pyplot as plt
from IPython import get_ipython
from IPython.display import display
from matplotlib_inline.backend_inline import set_matplotlib_formats

from minijax.book.svg import PALETTE

__all__ = ["setup_plots", "figure", "INK"]

INK = "#808890"                      # a grey that can be read on white and on black


def setup_plots(width=6.0, height=2.8):
    """Set matplotlib up for a chapter; call it once, in a cell near the top."""
    matplotlib.rcParams.update({
        "figure.figsize": (width, height), "figure.facecolor": "none", "axes.facecolor": "none",
        "savefig.facecolor": "none", "savefig.transparent": True, "savefig.bbox": "tight",
        "svg.hashsalt": "minijax", "svg.fonttype": "none", "font.size": 10,
        "font.family": "sans-serif", "text.color": INK, "axes.labelcolor": INK,
        "axes.edgecolor": INK, "axes.titlecolor": INK, "xtick.color": INK, "ytick.color": INK,
        "grid.color": INK,
        "grid.alpha": 0.3, "axes.grid": True, "axes.spines.top": False, "axes.spines.right": False,
        "legend.framealpha": 0.0, "legend.edgecolor": "none", "lines.linewidth": 2,
        "axes.prop_cycle": plt.cycler(color=PALETTE), "path.simplify_threshold": 0.5})
    if get_ipython() is not None:
        set_matplotlib_formats("svg", metadata={"Date": None, "Creator": None})


class Plot:
    """A finished plot: its SVG, and the sentence that stands for it."""

    def __init__(self, fig, alt):
        self.svg, self.alt = svg_of(fig, alt), alt

    def __repr__(self):
        return f"Plot({self.alt})"

    def _repr_html_(self):
        return self.svg


def svg_of(fig, alt):
    """The figure as an SVG element for a page, with `alt` as its accessible name."""
    buffer = io.StringIO()
    with matplotlib.rc_context({"svg.hashsalt": alt}):     # ids must differ from other plots' ids
        fig.savefig(buffer, format="svg", metadata={"Date": None, "Creator": None})
    svg = buffer.getvalue()
    svg = re.sub(r"<metadata>.*?</metadata>\s*", "", svg[svg.index("<svg"):], flags=re.S)
    alt = alt.replace("&", "&amp;").replace('"', "&quot;").replace("<", "&lt;")
    head = f'<svg role="img" aria-label="{alt}" style="max-width:100%;height:auto"'
    return svg.replace("<svg", head, 1)


@contextmanager
def figure(alt, width=6.0, height=2.8, **subplots):
    """`with figure("what it shows") as ax:` draws on `ax` (or several) and shows the plot."""
    setup_plots(width, height)
    fig, ax = plt.subplots(figsize=(width, height), **subplots)
    try:
        yield ax
        display(Plot(fig, alt))
    finally:
        plt.close(fig)
