"""Panels, legends and widths of figures: one layout for a column, a page, a slide, and a part of another figure."""

import io
import math
from collections.abc import Iterable, Sequence
from typing import Any, cast

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.transforms import Bbox

from figures.looks import look
from figures.looks.look_values import WIDTHS
from figures.looks.matplotlib_style import context, small
from figures.looks.words import even_lines

NARROW, WIDE = WIDTHS["column"], WIDTHS["page"]
"""Widths of a figure in one and in two columns, inches."""

CLOSE = 4.6
"""Width in inches below which panels that stand side by side on a page are stacked."""

TEXT_BLOCK, PAGE, LOWEST = 9.0, 8.4, 0.8
"""Height of a page's text, which no figure exceeds; of a figure without its footnote; of a panel with its labels."""

KEY = 0.55
"""Height of a legend above the panels, inches."""


class RoundLayout(ConstrainedLayoutEngine):
    """Constrained layout in round numbers: the last bits of the solver vary by process, and an SVG shows them."""

    DIGITS = 9
    """Decimals of a place as a fraction of the figure: finer than a pixel, coarser than errors of the solver."""

    def execute(self, fig: Figure) -> None:
        super().execute(fig)
        for ax in fig.axes:
            in_layout = ax.get_in_layout()
            ax.set_position(Bbox(np.round(ax.get_position(original=True).get_points(), self.DIGITS)))
            ax.set_in_layout(in_layout)  # set_position takes axes out of the layout


class CanvasFigure(Figure):
    """A figure that a notebook shows as the last value of a cell, also without pyplot."""

    def _repr_png_(self) -> bytes:
        written = io.BytesIO()
        with context():
            self.savefig(written, format="png", dpi=self.dpi, bbox_inches="tight")
        return written.getvalue()


def width(usual: float = WIDE) -> float:
    """Width that the figure will have, inches: that of the look, of the part of a figure, else the usual one."""
    drawing = look.current()
    if drawing.subfigure is not None:
        return float(drawing.subfigure.bbox.width / drawing.subfigure.figure.dpi)
    if drawing.ax is not None:
        return float(drawing.ax.get_window_extent().width / drawing.ax.get_figure(root=True).dpi)  # type: ignore[union-attr]
    return drawing.inches(usual)


def is_narrow(usual: float = WIDE) -> bool:
    """Whether panels that stand side by side on a page are stacked."""
    return width(usual) < CLOSE


def panels(
    rows: int = 1,
    columns: int = 1,
    *,
    width: float = WIDE,
    height: float | None = None,
    stacked: int | None = None,
    turned: bool = False,
    cell: float | None = None,
    **options: Any,
) -> tuple[Figure, np.ndarray]:
    """A figure in this style and its axes, shape (rows, columns) wherever they stand.

    In a narrow figure, panels that stand side by side are stacked: `axs[0, 1]` then stands below `axs[0, 0]`.

    Args:
        width, height: Usual size in inches; a look may ask for another width. By default the height follows from the
            columns' width.
        stacked: Panels side by side in a narrow figure; by default two of four or more.
        turned: Rows and columns change places in a narrow figure.
        cell: Height of a panel, as a part of its width, in a narrow figure; by default 0.38 of a whole column, or
            0.9 of panels side by side. They are lower where they would be taller than a page together, and more stand
            side by side.
        options: Passed to `Figure.subplots`.
    """
    drawing, inches = look.current(), _width(width)
    close, count = inches < CLOSE and columns > 1, rows * columns
    usual = rows * (width / columns * 0.6 + 0.5) + 0.5 if height is None else height
    across, down = columns, rows
    if close:
        least = 1 + (count > 3 and cell is None) if stacked is None else stacked
        across = rows if turned else max(least, math.ceil(count / ((PAGE - KEY) // LOWEST)))
        down = math.ceil(count / across)
        tall = 0.38 * NARROW if cell is None and across == 1 else (cell or 0.9) * inches / across
        usual = down * (tall + 0.3) + KEY
        options = {name: value for name, value in options.items() if value is True}
    elif columns == 1 and inches > 1.2 * width:
        usual *= 1.15
    if "height_ratios" not in options:  # those of tables, whose rows have their height
        usual = min(usual, PAGE)
    with context():
        if drawing.ax is not None and count == 1:
            return cast(Figure, drawing.ax.get_figure()), np.array([[drawing.ax]])
        figure = _container(drawing, inches, usual)
        axs = figure.subplots(down, across, squeeze=False, **options)
    for ax in axs.flat[count:]:
        ax.set_axis_off()
    if close and turned:
        return figure, axs.T
    return figure, axs.ravel()[:count].reshape(rows, columns)


_width = width  # a name that `panels` does not have as well


def _container(drawing: look.Drawing, inches: float, height: float) -> Figure:
    """A new figure, or the part of the user's figure that is drawn into."""
    if drawing.subfigure is not None:
        return cast(Figure, drawing.subfigure)
    if drawing.ax is not None:
        cell = drawing.ax.get_subplotspec()
        if cell is None:
            raise ValueError("this figure has several panels; give an ax of a grid (subplots), or a subfigure.")
        root = drawing.ax.get_figure()
        drawing.ax.remove()
        drawing.subfigure, drawing.ax = cast(Figure, root).add_subfigure(cell), None
        return cast(Figure, drawing.subfigure)
    figure = CanvasFigure(figsize=(inches, height))
    FigureCanvasAgg(figure)  # keeps its renderer, which measures texts, from one layout to the next
    figure.set_layout_engine(RoundLayout())
    return figure


def name_edges(axs: np.ndarray, count: int | None = None) -> None:
    """Keep the labels of the first panel of every row and of the lowest of every column; blank those beyond `count`."""
    shown = list(axs.flat[:count])
    for ax in axs.flat[len(shown) :]:
        ax.set_axis_off()
    cells = {ax: _cell(ax) for ax in shown}
    lowest = {column: max(row for row, other in cells.values() if other == column) for _, column in cells.values()}
    for ax, (row, column) in cells.items():
        if column > 0:
            ax.set_ylabel("")
        if row < lowest[column]:
            ax.set_xlabel("")


def is_first(ax: Axes) -> bool:
    """Whether a panel is the first of its row, as it is laid out."""
    return _cell(ax)[1] == 0


def is_lowest(ax: Axes) -> bool:
    """Whether a panel is in the last row, as it is laid out."""
    spec = ax.get_subplotspec()
    return spec is None or spec.is_last_row()


def is_beside(ax: Axes, other: Axes) -> bool:
    """Whether two panels are in one row, as they are laid out."""
    return _cell(ax)[0] == _cell(other)[0]


def _cell(ax: Axes) -> tuple[int, int]:
    """Row and column of a panel in the grid that it is laid out in."""
    spec = ax.get_subplotspec()
    return (0, 0) if spec is None else (spec.rowspan.start, spec.colspan.start)


def key(
    figure: Figure,
    axs: Iterable[Axes],
    *,
    title: str | None = None,
    columns: int = 6,
    handles: Sequence[Artist] | None = None,
) -> Figure:
    """The figure with one legend above all panels, with each label once, or where the look asks for it.

    Args:
        title: A line above it, such as what the bands are.
        columns: Most entries side by side; fewer where the figure is narrow.
        handles: Entries in place of those of the panels.
    """
    cells, entries = list(axs), dict[str, Artist]()
    for ax in cells if handles is None else ():
        for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
            entries.setdefault(name, handle)
    entries |= {str(handle.get_label()): handle for handle in handles or ()}
    if not entries:
        return figure
    drawing = look.current()
    side = drawing.take("legend") or ("inside" if drawing.ax is not None and len(cells) == 1 else "above")
    if side == "none":
        return figure
    with context():
        inches = float(figure.bbox.width / figure.get_figure(root=True).dpi)
        names = ["\n".join(even_lines(name, max(20, int((inches - 0.5) / _letter())))) for name in entries]
        at_side = side == "right"
        wrapped = title and "\n".join(even_lines(title, 24 if at_side else max(20, int(inches / _letter()))))
        options: dict[str, Any] = {"title": wrapped, "columnspacing": 1.2, "alignment": "center"}
        if side == "inside":
            cells[0].legend(list(entries.values()), names, **options)
            return figure
        options |= {"ncols": 1 if at_side else fitting(names, inches, columns)}
        rows = -(-len(names) // options["ncols"])
        lines = max(
            sum(name.count("\n") + 1 for name in names[first : first + rows]) for first in range(0, len(names), rows)
        )
        down = lines + (wrapped or "").count("\n")
        if isinstance(figure, CanvasFigure) and not at_side and down > 2:  # the panels keep their size
            wide, tall = figure.get_size_inches()
            figure.set_size_inches(wide, tall + 1.5 * small() / 72 * (down - 2))
        where = {"above": "outside upper center", "below": "outside lower center", "right": "outside right upper"}
        options["loc"] = where[side]
        figure.legend(list(entries.values()), names, **options).set_label(side)
    return figure


def fitting(names: Sequence[str], inches: float, most: int) -> int:
    """Columns of a legend with these names that fit a width, in inches."""
    room = [(5.2 * small() / 72) + _letter() * max(map(len, name.split("\n"))) for name in names]
    for count in range(min(most, len(names)), 1, -1):
        columns = np.array_split(room, count)  # as a legend fills its columns
        if sum(float(column.max()) for column in columns) <= inches:
            return count
    return 1


def _letter() -> float:
    """Mean width of a letter of small text, inches."""
    return 0.57 * small() / 72
