"""The figures: mass accuracy by method and model, robustness against distance, robustness by change family.

Text of users is drawn as it stands: no formulas, no names that a legend leaves out, no control characters; a figure
whose font lacks letters says so. Figures are drawn with matplotlib's object interface on the Agg canvas (no pyplot, so
no global state), from the numbers of the tables alone. The same numbers give the same bytes, PNG and SVG: no dates,
fixed metadata, fixed hash salt.
"""

from __future__ import annotations

import html
import io
import re
import textwrap
import unicodedata
import warnings
from collections.abc import Callable, Sequence
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend
from matplotlib.text import Text
from matplotlib.ticker import FixedFormatter

from geco_ray.table import visible

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
    "svg.fonttype": "none",  # text as text: it can be searched, copied and read aloud
    "pdf.fonttype": 42,
    "svg.hashsalt": "geco_ray",
    "path.simplify": True,
    "text.usetex": False,
    "text.parse_math": False,  # a name with a dollar sign is no formula
}
_LACKS = r"Glyph \d+ .*missing from font"  # matplotlib's warning
WIDTH = 10.0  # inches
DPI = 150


@dataclass(frozen=True)
class Picture:
    """A rendered figure: file name without suffix, a sentence for people who can't see it, and its bytes.

    ``table`` names the CSV file (without suffix) that holds the numbers that are drawn.
    """

    name: str
    alt: str
    png: bytes
    svg: bytes
    pdf: bytes = b""
    table: str = ""


_notes: ContextVar[tuple[str, ...]] = ContextVar("notes", default=())  # sentences that a figure says about itself


class PlainFigure(Figure):
    """A figure whose legend shows every label; matplotlib's leaves out those that begin with an underscore."""

    def legend(self, *arguments: Any, handles: Sequence[Artist] = (), **options: Any) -> Legend:  # type: ignore[override]
        """As matplotlib's, with the handles' own labels."""
        legend = super().legend(*arguments, handles=handles, labels=["-"] * len(handles), **options)
        for text, handle in zip(legend.get_texts(), handles, strict=True):
            text.set_text(str(handle.get_label()))
        return legend


def render(name: str, alt: str, draw: Callable[[], Figure], table: str = "") -> Picture:
    """Draw and encode a figure under the house style, whatever style the caller's process has set.

    ``table``: the CSV file, without suffix, that its numbers are from.
    """
    with mpl.rc_context():
        mpl.rcdefaults()
        mpl.rcParams.update(_STYLE)
        png, notes, figure = _encode(draw)
        if notes:
            token = _notes.set(notes)
            png, _, figure = _encode(draw)
            _notes.reset(token)
        alt, svg, pdf = visible(" ".join([alt, *notes])), io.BytesIO(), io.BytesIO()
        figure.set_layout_engine("none")  # it is laid out: the other forms have the same places
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", message=_LACKS)
            figure.savefig(svg, format="svg", metadata={"Date": None, "Creator": "geco_ray", "Title": alt})
            figure.savefig(pdf, format="pdf", metadata={"CreationDate": None, "Creator": "geco_ray", "Producer": None})
    return Picture(name, alt, png, _described(svg.getvalue().decode(), name, alt), pdf.getvalue(), table)


def _described(svg: str, name: str, alt: str) -> bytes:
    """An SVG whose first elements are its title and description."""
    head, rest = svg[: svg.index("<svg")], svg[svg.index("<svg") :]
    opening, _, body = rest.partition(">")
    title = f"<title>{html.escape(name.replace('_', ' '))}</title><desc>{html.escape(alt)}</desc>"
    lines = f"{head}{opening}>\n {title}{body}".splitlines()
    return ("\n".join(line.rstrip() for line in lines) + "\n").encode()


def _encode(draw: Callable[[], Figure]) -> tuple[bytes, tuple[str, ...], Figure]:
    """The PNG of a figure, what is to be said about its letters, and the figure."""
    figure = draw()
    _show_control_characters(figure)
    FigureCanvasAgg(figure)  # attaches itself
    png = io.BytesIO()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        figure.savefig(png, format="png", metadata={"Software": None})
    texts = "".join(text.get_text() for text in figure.findobj(Text))
    notes = []
    if any(re.match(_LACKS, str(warning.message)) for warning in caught):
        notes.append("The font of this figure lacks some letters of the names and shows boxes; the tables have them.")
    if any(unicodedata.bidirectional(ch) in ("R", "AL") for ch in texts):
        notes.append("Right-to-left names are drawn from left to right; the tables have them as they are read.")
    return png.getvalue(), tuple(notes), figure


def _show_control_characters(figure: Figure) -> None:
    for text in figure.findobj(Text):
        text.set_text(visible(text.get_text()))
    for axes in figure.axes:
        for axis in (axes.xaxis, axes.yaxis):
            formatter = axis.get_major_formatter()
            if isinstance(formatter, FixedFormatter):
                formatter.seq = [visible(str(label)) for label in formatter.seq]


def grid_of_panels(
    count: int, height: float, extra: float, sharey: bool = True, most: int = 2
) -> tuple[Figure, list[Axes]]:
    """A figure of README width with ``count`` panels, ``most`` per row, and ``extra`` inches for heading and legend."""
    columns = min(max(count, 1), most)
    rows = max(1, -(-count // columns))
    figure = PlainFigure(figsize=(WIDTH, rows * height + extra), dpi=DPI)
    grid = figure.subplots(rows, columns, squeeze=False, sharex=False, sharey="row" if sharey else False)
    panels = [axes for line in grid for axes in line]
    for unused in panels[max(count, 1) :]:
        unused.set_axis_off()
    return figure, panels[: max(count, 1)]


def heading(figure: Figure, title: str, subtitle: str) -> None:
    """Title and explanation, left-aligned above the panels."""
    height = figure.get_figheight()
    parts = [*subtitle.splitlines(), *_notes.get()]
    wrapped = [piece for line in parts for piece in textwrap.wrap(line, 128)]
    lines = len(wrapped)
    top = 1 - (0.42 + 0.19 * lines) / height
    figure.set_layout_engine(ConstrainedLayoutEngine(rect=(0.0, 0.0, 1.0, top), w_pad=0.08, h_pad=0.06, wspace=0.03))
    figure.text(0.008, 1 - 0.10 / height, title, ha="left", va="top", fontsize=13, fontweight="bold")
    place = 1 - 0.40 / height
    figure.text(0.008, place, "\n".join(wrapped), ha="left", va="top", fontsize=9, color=GREY, linespacing=1.35)


def ink_on(colour: Sequence[float]) -> str:
    """Black or white, whichever has more contrast on an RGB colour (0 to 1); one of them has at least 4.5."""
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in colour[:3]]
    luminance = 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]
    return "#000000" if luminance > 0.179 else "#FFFFFF"


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
