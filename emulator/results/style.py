"""How figures look: one size, one colour and line style per variant, safe for colour-blind readers and for print."""

from __future__ import annotations

import base64
import io
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Iterator

    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Okabe and Ito's palette (jfly.uni-koeln.de/color), without yellow and black; lines differ in style as well
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00")
LINES = ("-", "--", "-.", ":", (0, (5, 1, 1, 1, 1, 1)), (0, (1, 1)))
HATCHES = ("", "///", "...", "xxx", "\\\\\\", "+++")
INK, GRID = "#2b2f36", "#d9dce1"

_SETTINGS: dict[Any, Any] = {
    "font.family": "sans-serif",
    "font.size": 9,
    "axes.titlesize": 9.5,
    "axes.titleweight": "bold",
    "axes.titlelocation": "left",
    "axes.edgecolor": INK,
    "axes.labelcolor": INK,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "xtick.color": INK,
    "ytick.color": INK,
    "legend.frameon": False,
    "hatch.linewidth": 0.5,
    # The same run gives the same bytes.
    "svg.hashsalt": "emu",
    "svg.fonttype": "path",
}


def colour(number: int) -> str:
    """The colour of the variant with this place in the experiment."""
    return COLOURS[number % len(COLOURS)]


def line(number: int) -> Any:
    """The line style of the variant with this place in the experiment."""
    return LINES[number % len(LINES)]


def hatch(number: int) -> str:
    """The hatching of the variant with this place in the experiment."""
    return HATCHES[number % len(HATCHES)]


@contextmanager
def settings() -> Iterator[None]:
    """Everything that is drawn or saved inside looks like ours."""
    import matplotlib

    with matplotlib.rc_context(_SETTINGS):
        yield


def panels(width: float = 4.6, height: float = 3.0, rows: int = 1) -> tuple[Figure, list[Axes]]:
    """An empty figure, in inches, of panels above each other; without pyplot and its global state."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure, [figure.add_subplot(rows, 1, row + 1) for row in range(rows)]


def data_uri(figure: Figure) -> str:
    """The figure as an SVG in a data URI, so that a page needs no other file."""
    with io.BytesIO() as buffer:
        figure.savefig(buffer, format="svg", metadata={"Date": None, "Creator": "emu"})
        return "data:image/svg+xml;base64," + base64.b64encode(buffer.getvalue()).decode("ascii")
