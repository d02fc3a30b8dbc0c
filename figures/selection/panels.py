"""The panels of a drawn figure, and why one shows nothing: one value throughout, equal series, lines of two points."""

import re
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import Collection, LineCollection, PathCollection, PolyCollection, QuadMesh
from matplotlib.container import BarContainer
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import StepPatch

from figures.looks import words
from figures.selection.groups import grouped

ONE_COLOUR = 0.02
"""Part of the colour scale within which a map looks like one colour."""


@dataclass(frozen=True)
class Panel:
    """One panel: what it is called, why it shows nothing (empty: it shows something), and what else limits it.

    Panels with equal content show the same.
    """

    name: str
    mute: str
    limits: list[str]
    content: bytes


def panels(figure: Figure) -> list[Panel]:
    """The panels of a figure that hold data; tables, which are text, are none."""
    shown, bars = [], _bars(figure)
    for ax in figure.axes:
        if ax.get_label() != "<colorbar>" and (why := _judged(ax)) is not None:
            limits = [*_coinciding(ax), *_joined(ax)] if not why else []
            if why.startswith(_PALE):  # a map of one colour still has its numbers
                why, limits = "", [why]
            shown.append(Panel(_cell(ax) or _name(ax, bars), why, limits, _content(ax)))
    return shown


def equal_panels(shown: list[Panel]) -> list[list[str]]:
    """Names of the panels that show something and the same, group by group."""
    equal = grouped((panel for panel in shown if not panel.mute), lambda panel: panel.content).values()
    return [[panel.name for panel in alike] for alike in equal if len(alike) > 1]


_PALE = "one colour"

LEAST = 4
"""Numbers below which equal panels are no surprise."""


def _content(ax: Axes) -> bytes:
    """What a panel shows, to nine digits; the place of each panel where it is little."""
    contents = [
        np.concatenate([np.ravel(np.asarray(path.vertices, float)) for path in contours.get_paths()])
        for contours in _maps(ax)
    ]
    contents = contents or [_cells(image) for image in _grids(ax)] or list(_heights(ax))
    content = np.concatenate(contents) if contents else np.zeros(0)
    alike = np.isfinite(content).sum() >= LEAST
    return np.char.mod("%.9g", content).tobytes() if alike else repr(ax.get_position()).encode()


def _maps(ax: Axes) -> list[ContourSet]:
    return [contours for contours in ax.collections if isinstance(contours, ContourSet) and contours.filled]


def _cells(image: QuadMesh | AxesImage) -> np.ndarray:
    """Values of a matrix, NaN where there is none, in one row."""
    return np.ravel(np.ma.filled(np.ma.asarray(image.get_array(), float), np.nan))


def _grids(ax: Axes) -> list[QuadMesh | AxesImage]:
    return [image for image in [*ax.collections, *ax.images] if isinstance(image, QuadMesh | AxesImage)]


def _bars(figure: Figure) -> dict[tuple[str, tuple[float, float]], str]:
    """What colour bars are called, by colour map and range of the maps that share them."""
    return {
        (collection.get_cmap().name, collection.get_clim()): collection.colorbar.ax.get_ylabel()
        for ax in figure.axes
        for collection in ax.collections
        if collection.colorbar is not None
    }


def _name(ax: Axes, bars: dict[tuple[str, tuple[float, float]], str]) -> str:
    """The label of its colour bar and the first words of its title, else the labels of its axes."""
    scales = [
        bars.get((mesh.get_cmap().name, mesh.get_clim()), "") for mesh in ax.collections if isinstance(mesh, QuadMesh)
    ]
    title = re.sub(r"(?<!,)\n.*", "", ax.get_title(), flags=re.DOTALL)  # a line that ends with a comma goes on
    written = (title, ax.get_title("left"), ax.get_ylabel(), ax.get_xlabel())
    texts = [" ".join(text.split()) for text in written]
    return ", ".join(filter(None, [*scales, *texts[:2]])) or next(filter(None, texts), "")


def _cell(ax: Axes) -> str:
    """Row and column of a panel in a grid whose rows are named beside it and whose columns above; else empty."""
    if (spec := ax.get_subplotspec()) is None:
        return ""
    others = [(other, at) for other in ax.figure.axes if (at := other.get_subplotspec()) is not None]
    grid = [(other, at) for other, at in others if at.get_gridspec() is spec.get_gridspec()]
    labels = [other.yaxis.label for other, at in grid if at.rowspan == spec.rowspan]
    rows = [label.get_text() for label in labels if label.get_text() and label.get_rotation() == 0]
    columns = [other.get_title() for other, at in grid if at.colspan == spec.colspan and other.get_title()]
    return f"{rows[0]}, {columns[0]}" if rows and columns else ""


def _judged(ax: Axes) -> str | None:
    """Why a panel shows nothing; empty where it shows something, None where it holds no data."""
    maps = [*map(_flat, _maps(ax)), *(why for grid in _grids(ax) if (why := _one_colour(grid)) is not None)]
    if maps:
        return maps[0] if all(maps) else ""
    if not ax.axison:
        return None
    values = [array[np.isfinite(array)] for array in _heights(ax)]
    values = [array for array in values if len(array)]
    if not values:
        return None
    joined = np.concatenate(values)
    if len(joined) > 1 and _same(joined, joined[0]):
        return f"{joined[0]:.3g} throughout"
    return _one_line(_series(ax))


def _flat(contours: ContourSet) -> str:
    """Why a contour map is one colour; empty where two levels or more cross it."""
    low, high = (float(getattr(contours, name)) for name in ("zmin", "zmax"))  # stubs know neither
    inside = (low < np.asarray(contours.levels)) & (np.asarray(contours.levels) < high)
    return "" if inside.sum() >= 2 else _span(low, high)


def _one_colour(image: QuadMesh | AxesImage) -> str | None:
    """Why a matrix is one colour; empty where it is not, None for less than two cells."""
    cells = _cells(image)
    finite = cells[np.isfinite(cells)]
    if len(finite) < 2:
        return None
    (least, most), low, high = image.get_clim(), float(finite.min()), float(finite.max())
    return "" if high - low > ONE_COLOUR * (most - least) and not _same(finite, low) else _span(low, high)


def _span(low: float, high: float) -> str:
    return f"{low:.3g} throughout" if _same(np.array([low]), high) else f"{_PALE}, {low:.3g} to {high:.3g}"


def _heights(ax: Axes) -> Iterator[np.ndarray]:
    """Vertical positions of everything drawn, and sizes of dots where these differ."""
    for line in _lines(ax):
        x, y = _points(line)
        yield y
        yield from [x] * (line.get_linestyle() == "None" and not ax.get_ylabel())  # dots in rows: heights are names
    for group in ax.containers:
        if isinstance(group, BarContainer):
            yield _lengths(group)
    for patch in ax.patches:
        if isinstance(patch, StepPatch):
            yield np.asarray(patch.get_data()[0], float)
    for collection in ax.collections:
        yield from _of_collection(collection)


def _lengths(group: BarContainer) -> np.ndarray:
    """Lengths of a group of bars, upright or lying."""
    lying = group.orientation == "horizontal"
    return np.array([bar.get_width() if lying else bar.get_height() for bar in group], float)


def _of_collection(collection: Collection) -> Iterator[np.ndarray]:
    if isinstance(collection, PathCollection):
        yield np.ma.getdata(collection.get_offsets())[:, 1].astype(float)
        if len(np.unique(collection.get_sizes())) > 1:
            yield np.asarray(collection.get_sizes(), float)
    elif isinstance(collection, LineCollection | PolyCollection):
        for path in collection.get_paths():
            yield np.asarray(path.vertices, float)[:, 1]


def _lines(ax: Axes) -> list[Line2D]:
    """Lines through data: not those across the whole panel."""
    return [line for line in ax.lines if line.get_transform() == ax.transData]


def _points(line: Line2D) -> tuple[np.ndarray, np.ndarray]:
    """Finite points of a line."""
    x, y = (np.asarray(values, float) for values in (line.get_xdata(), line.get_ydata()))
    finite = np.isfinite(x) & np.isfinite(y)
    return x[finite], y[finite]


def _series(ax: Axes) -> dict[str, np.ndarray]:
    """Points of what a legend names, lines and groups of bars."""
    series: dict[str, np.ndarray] = {}
    for line in _lines(ax):
        x, y = _points(line)
        if not str(line.get_label()).startswith("_") and len(x):
            dots = line.get_linestyle() == "None"  # side by side at the place of their category
            series[str(line.get_label())] = np.stack([np.rint(x) if dots else x, y])
    for group in ax.containers:
        if isinstance(group, BarContainer) and not str(group.get_label()).startswith("_"):
            series[str(group.get_label())] = _lengths(group)
    return series


def _coinciding(ax: Axes) -> list[str]:
    """Groups of series that are one, where there are others too."""
    left, groups = dict(_series(ax)), []
    while left:
        name, values = left.popitem()
        equal = [other for other, points in left.items() if points.shape == values.shape and _same(points, values)]
        if equal:
            groups.append(f"{words.listed([*equal, name])} coincide")
            left = {other: points for other, points in left.items() if other not in equal}
    return groups


def _one_line(series: dict[str, np.ndarray]) -> str:
    """That all series are one; empty where there is one alone or they differ."""
    if len(series) < 2:
        return ""
    first, *others = series.values()
    same = all(other.shape == first.shape and _same(other, first) for other in others)
    return f"{words.listed(list(series))} coincide" if same else ""


def _joined(ax: Axes) -> list[str]:
    """That lines over rounds join two far ones."""
    if "round" not in ax.get_xlabel():
        return []
    ends = {(x.min(), x.max()) for x, _ in map(_points, _lines(ax)) if len(x) == 2 and x.max() - x.min() > 1}
    return [f"lines join two rounds, {first:g} and {last:g}, and nothing between" for first, last in sorted(ends)]


def _same(values: np.ndarray, other: np.ndarray | float) -> bool:
    """Equal but for rounding."""
    return bool(np.allclose(values, other, rtol=1e-9, atol=1e-12, equal_nan=True))
