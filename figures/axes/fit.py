"""Texts that fit: labels and titles are wrapped to their panels; numbers without room in a cell leave their minus."""

import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.collections import PathCollection
from matplotlib.figure import Figure, FigureBase
from matplotlib.gridspec import SubplotSpec
from matplotlib.text import Annotation, Text

from figures.looks.words import even_lines, length

CELL = "cell"
"""Label (`set_gid`) of numbers in the cells of a matrix, which stay inside of them, and of the minus in their place."""

NAME = "name"
"""Label of names beside their marks on a map, which stay inside of it."""


def fit(figure: FigureBase, axs: Sequence[Axes]) -> None:
    """Wrap titles and axis labels that are longer than their panel, thin ticks and hide numbers that overlap.

    Args:
        axs: The panels; those of a colour bar too.
    """
    root = figure.get_figure(root=True)
    _share_labels(axs)
    for _ in range(2):  # wrapped labels change the sizes of the panels
        lay_out(root)
        changes = [_fit_panel(ax, axs) for ax in axs]
        if not any(changes):
            return


def lay_out(figure: Figure) -> None:
    """Place the panels of a figure as drawing it would, without drawing what they show."""
    engine = figure.get_layout_engine()
    if engine is None:
        figure.draw_without_rendering()
        return
    engine.execute(figure)
    for ax in figure.axes:
        if ax.get_axes_locator() is None:
            ax.apply_aspect()


def _share_labels(axs: Sequence[Axes]) -> None:
    """One label for a column of panels over the same axis, and for a row of panels with the same scale."""
    cells = {(spec.rowspan.start, spec.colspan.start, id(spec.get_gridspec())): ax for ax, spec in _cells(axs)}
    for (_, column, grid), _ax in list(cells.items()):
        below = sorted(
            ((row, ax) for (row, other, same), ax in cells.items() if (other, same) == (column, grid)),
            key=lambda cell: cell[0],
        )
        texts = {ax.get_xlabel() for _, ax in below}
        if len(below) > 1 and len(texts) == 1:
            for _, ax in below[:-1]:
                ax.set_xlabel("")
    for (row, column, grid), ax in sorted(cells.items(), key=lambda cell: -cell[0][1]):
        left = cells.get((row, column - 1, grid))
        if left is not None and left.get_ylabel() == ax.get_ylabel() and left.get_ylim() == ax.get_ylim():
            ax.set_ylabel("")


def _cells(axs: Sequence[Axes]) -> list[tuple[Axes, SubplotSpec]]:
    """Panels with their places in a grid."""
    specs = [(ax, ax.get_subplotspec()) for ax in axs if ax.axison]
    return [(ax, spec) for ax, spec in specs if spec is not None]


def _fit_panel(ax: Axes, axs: Sequence[Axes]) -> bool:
    """Fit the texts of a panel; whether one was changed."""
    box = ax.get_window_extent()
    wide, changes = _cell_width(ax, axs, box.width), list[bool]()
    if ax.axison:
        up = ax.yaxis.label.get_rotation() > 0
        changes += [_wrap(ax.yaxis.label, box.height * 1.08 if up else wide, tall=up), _wrap(ax.xaxis.label, wide)]
        changes += [_thin(ax.xaxis, 0), _thin(ax.yaxis, 1)]
    for title in (child for child in ax.get_children() if isinstance(child, Text) and child not in ax.texts):
        changes.append(_wrap(title, wide))
    for note in (text for text in ax.texts if isinstance(text, Annotation) and text.get_gid() == NAME):
        _move_name(note, ax)
    numbers = [text for text in ax.texts if text.get_gid() == CELL]
    if numbers:
        room = abs(np.diff(ax.transData.transform([(0.0, 0.0), (1.0, 1.0)]), axis=0)[0])
        boxes = [text.get_window_extent() for text in numbers]
        if any(extent.width > room[0] or extent.height > room[1] for extent in boxes):
            for text in numbers:
                text.remove()
            for line in (line for line in ax.lines if line.get_gid() == CELL):
                line.set_visible(True)
            changes.append(True)
    return any(changes)


def marks(ax: Axes) -> np.ndarray:
    """Places (n, 2) of the models on a map, and of points on the lines that join them."""
    lines = [np.asarray(line.get_xydata()) for line in ax.lines if line.get_marker() not in ("None", "")]
    lines += [line[:-1] + share * np.diff(line, axis=0) for line in lines for share in (0.25, 0.5, 0.75)]
    return np.concatenate([np.empty((0, 2)), *lines, *(dots.get_offsets() for dots in ax.findobj(PathCollection))])


def _move_name(note: Annotation, ax: Axes) -> None:
    """Put a name on the side of its mark where it is inside of the map and covers the fewest marks and other names."""
    box, places, away = ax.get_window_extent(), ax.transData.transform(marks(ax)), max(map(abs, note.xyann))
    names = [Text.get_window_extent(other) for other in ax.texts if other is not note and other.get_gid() == NAME]

    def faults(side: tuple[str, str, tuple[float, float]]) -> tuple[int, int]:
        note.set(ha=side[0], va=side[1], position=side[2])
        note.get_window_extent()  # moves it
        extent = Text.get_window_extent(note)  # without its line
        covered = extent.padded(2).count_contains(places) + extent.count_overlaps(names)
        return -box.count_contains(extent.get_points()), covered

    here = (note.get_horizontalalignment(), note.get_verticalalignment(), note.xyann)
    sides = [here, ("center", "top", (0, -away)), ("center", "bottom", (0, away))]
    sides += [("left", "center", (away, 0)), ("right", "center", (-away, 0))]
    faults(min([*sides, *(("left", "center", (away, up)) for up in (note.xyann[1], -note.xyann[1]))], key=faults))


def _cell_width(ax: Axes, axs: Sequence[Axes], width: float) -> float:
    """Room for a text centred on a panel, pixels: to the edges of the figure and to the middles of its neighbours."""
    spec, root = ax.get_subplotspec(), ax.get_figure(root=True)
    here = (ax.get_position().x0 + ax.get_position().x1) / 2
    if not isinstance(root, Figure):
        return width
    if spec is None:  # a bar of colours
        return min(1.05 * width, 2 * min(here, 1 - here) * root.bbox.width)
    middle = [
        (other.get_position().x0 + other.get_position().x1) / 2
        for other in axs
        if (other_spec := other.get_subplotspec()) is not None
        and other_spec.get_gridspec() is spec.get_gridspec()
        and other_spec.rowspan.start == spec.rowspan.start
        and other is not ax
    ]
    sides = [bar.get_position() for bar in axs if bar.get_label() == "<colorbar>"]  # those that stand beside the text
    bars = [2 * (bar.x0 - here) for bar in sides if bar.x0 > here and bar.y1 > ax.get_position().y1 + 0.02]
    reach = [2 * here, 2 * (1 - here), *bars, *(abs(here - other) for other in middle)]
    return max(width, 0.97 * min(reach) * root.bbox.width)


def _wrap(text: Text, room: float, *, tall: bool = False) -> bool:
    """Break a text at spaces, not within a formula, where it is longer than the room, in pixels; whether it changed."""
    words = text.get_text()
    if not words.strip() or not text.get_visible():
        return False
    extent = text.get_window_extent()
    size = extent.height if tall else extent.width
    if size <= room:
        return False
    longest = max(map(length, words.split("\n")))
    most = max(6, int(longest * room / size))
    lines = [line for paragraph in words.split("\n") for line in even_lines(paragraph, most)]
    text.set_text("\n".join(lines))
    return text.get_text() != words


_NUMBER, _POWER = r"[\u2212-]?[\d.]+", r"\$\\mathdefault\{10\^\{.*"
"""Ticks that may be left out; numbers in between on a logarithmic axis are few as they are."""


def _thin(axis: Axis, way: int) -> bool:
    """Fewer ticks of numbers, or of names of a matrix, where labels overlap or touch; whether there are fewer."""
    labels = [label for label in axis.get_ticklabels() if label.get_visible() and label.get_text()]
    boxes = [label.get_window_extent() for label in labels]
    ends = sorted((box.intervalx if way == 0 else box.intervaly).tolist() for box in boxes)
    if all(first[1] + 1 <= second[0] for first, second in pairwise(ends)):
        return False
    ticks, texts = axis.get_majorticklocs(), [label.get_text() for label in axis.get_ticklabels()]
    is_matrix = bool(axis.axes.images) and all(label.get_rotation() % 90 == 0 for label in labels)
    kind = _POWER if axis.get_scale() == "log" else _NUMBER
    if is_matrix or all(re.fullmatch(kind, text) for text in texts if text):
        low, high = sorted(axis.get_view_interval())
        inside = [(tick, text) for tick, text in zip(ticks, texts, strict=False) if low <= tick <= high]
        if len(inside) > 1:
            shown = inside[::-2][::-1] if is_matrix else inside[::2]  # the last one of a matrix is the global model
            axis.set_ticks([tick for tick, _ in shown], [text for _, text in shown])
            return True
    return False
