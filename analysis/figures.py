"""The figures: mass accuracy by method and model, robustness against distance, robustness by change family.

They are drawn with matplotlib's object interface on the Agg canvas (no pyplot, so no global state), from the numbers
of the tables alone. The same numbers give the same bytes, PNG and SVG: no dates, fixed metadata, fixed hash salt.
"""

from __future__ import annotations

import io
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

INK, GREY, FAINT, BAND = "#222222", "#5F5F5F", "#D9D9D9", "#F5F5F5"
_STYLE: Any = {
    "font.family": "DejaVu Sans",
    "font.size": 9.0,
    "text.color": INK,
    "axes.labelcolor": INK,
    "axes.edgecolor": "#B0B0B0",
    "axes.linewidth": 0.8,
    "axes.titlesize": 10.0,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.unicode_minus": False,
    "xtick.color": "#B0B0B0",
    "ytick.color": "#B0B0B0",
    "xtick.labelcolor": INK,
    "ytick.labelcolor": INK,
    "svg.fonttype": "path",
    "svg.hashsalt": "geco_ray",
    "path.simplify": True,
    "text.usetex": False,
}
WIDTH = 10.0
DPI = 150


@dataclass(frozen=True)
class Picture:
    """A rendered figure: file name without suffix, a sentence for people who can't see it, and its bytes."""

    name: str
    alt: str
    png: bytes
    svg: bytes


def render(name: str, alt: str, draw: Callable[[], Figure]) -> Picture:
    """Draw and encode a figure under the house style, whatever style the caller's process has set."""
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        figure = draw()
        png, svg = io.BytesIO(), io.BytesIO()
        FigureCanvasAgg(figure)  # attaches itself
        figure.savefig(png, format="png", metadata={"Software": None})
        figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": "geco_ray", "Title": alt})
    text = "\n".join(line.rstrip() for line in svg.getvalue().decode().splitlines()) + "\n"
    return Picture(name, alt, png.getvalue(), text.encode())


def grid_of_panels(count: int, height: float, extra: float, sharey: bool = True) -> tuple[Figure, list[Axes]]:
    """A figure of README width with ``count`` panels, two per row, and ``extra`` inches for heading and legend."""
    columns = 1 if count <= 1 else 2
    rows = max(1, -(-count // columns))
    figure = Figure(figsize=(WIDTH, rows * height + extra), dpi=DPI)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=False, sharey="row" if sharey else False)
    panels = [axes for line in grid for axes in line]
    for unused in panels[max(count, 1) :]:
        unused.set_axis_off()
    return figure, panels[: max(count, 1)]


def heading(figure: Figure, title: str, subtitle: str) -> None:
    """Title and explanation, left-aligned above the panels."""
    height = figure.get_figheight()
    wrapped = [piece for line in subtitle.splitlines() for piece in textwrap.wrap(line, 128)]
    lines = len(wrapped)
    top = 1 - (0.42 + 0.19 * lines) / height
    figure.set_layout_engine(ConstrainedLayoutEngine(rect=(0.0, 0.0, 1.0, top), w_pad=0.08, h_pad=0.06, wspace=0.03))
    figure.text(0.008, 1 - 0.10 / height, title, ha="left", va="top", fontsize=13, fontweight="bold")
    place = 1 - 0.40 / height
    figure.text(0.008, place, "\n".join(wrapped), ha="left", va="top", fontsize=9, color=GREY, linespacing=1.35)


def legend_columns(labels: Sequence[str], most: int) -> int:
    """How many columns a legend needs: as few rows as fit into the figure's width, and no row left with a rest."""
    room = max(1, min(most, int(150 / (max(map(len, labels)) + 7))))
    rows = -(-len(labels) // room)
    return -(-len(labels) // rows)


def empty(name: str, message: str) -> Picture:
    """A figure that says why there is nothing to see."""

    def draw() -> Figure:
        figure = Figure(figsize=(WIDTH, 1.2), dpi=DPI)
        figure.text(0.5, 0.5, message, ha="center", va="center", color=GREY)
        return figure

    return render(name, message, draw)
