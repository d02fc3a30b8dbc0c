"""Rows of maps as tall as their maps: panels of equal aspect fill their cells, and the figure has no gaps."""

from collections.abc import Collection, Mapping, Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.gridspec import GridSpec, GridSpecBase
from matplotlib.layout_engine import ConstrainedLayoutEngine

from figures.axes.fit import lay_out
from figures.looks.layout import PAGE

LOWEST, HIGHEST = 0.5, 2.6
"""Heights of a row of maps, inches."""

SIDES = 1.8
"""Least height of a row of maps that has curves too, inches."""

ROUNDS = 3
"""Layouts: heights of maps follow from their widths, which follow from the labels, which follow from the heights.

One less before labels are fitted, as these change them again.
"""

ENOUGH = 0.02
"""Change of height, inches, that needs no further layout."""


def fit_heights(figure: Figure, axs: Sequence[Axes], *, again: bool = False) -> None:
    """Give each row of a grid with maps of equal aspect the height at which its maps are as wide as their cells.

    Args:
        figure: A whole figure in constrained layout; others stay as they are.
        axs: Its panels, in one grid.
        again: Whether the heights are nearly right, because labels alone have changed since.
    """
    panels = [ax for ax in axs if ax.get_label() != "<colorbar>" and ax.has_data()]
    grids = [spec.get_gridspec() for ax in panels if (spec := ax.get_subplotspec()) is not None]
    maps = [ax for ax in panels if ax.axison and ax.get_aspect() != "auto"]
    single = maps and len(grids) == len(panels) and all(grid is grids[0] for grid in grids)
    if not single or not isinstance(figure.get_layout_engine(), ConstrainedLayoutEngine):
        return
    grid = grids[0]
    others = {_row(ax) for ax in panels} - {_row(ax) for ax in maps}
    fixed = _heights(figure, panels, others) if others else {}
    if not again:  # no layout fits maps into too little height
        figure.set_figheight(figure.get_figheight() + HIGHEST * grid.nrows)
    shapes = {ax: float(ax.get_data_ratio()) * float(ax.get_aspect()) for ax in maps}
    aspects = {ax: ax.get_aspect() for ax in maps}
    for ax in maps:
        ax.set_aspect("auto")  # a map fills its cell, whose margins are then those of its labels
    _set_heights(figure, grid, panels, shapes, fixed, ROUNDS if again else ROUNDS - 1)
    for ax, aspect in aspects.items():
        ax.set_aspect(aspect)


def _heights(figure: Figure, panels: Sequence[Axes], rows: Collection[int]) -> dict[int, float]:
    """Heights of some rows as they are, inches."""
    lay_out(figure)
    tall = float(figure.get_figheight())
    return {row: ax.get_position(original=True).height * tall for ax in panels if (row := _row(ax)) in rows}


def _set_heights(
    figure: Figure,
    grid: GridSpecBase,
    panels: Sequence[Axes],
    shapes: Mapping[Axes, float],
    fixed: Mapping[int, float],
    rounds: int,
) -> None:
    """Set the heights of rows, and that of the figure.

    Args:
        shapes: Heights over widths of the maps.
        fixed: Heights of rows without maps, inches.
        rounds: Most layouts.
    """
    for _ in range(rounds):
        lay_out(figure)
        wide, tall = (float(size) for size in figure.get_size_inches())
        boxes = {ax: ax.get_position(original=True) for ax in panels}
        now, wanted = np.zeros(grid.nrows), np.zeros(grid.nrows)
        for ax, box in boxes.items():
            row = _row(ax)
            now[row] = box.height * tall
            needed = min(max(shapes[ax] * box.width * wide, LOWEST), HIGHEST) if ax in shapes else SIDES
            wanted[row] = max(wanted[row], needed)
        for row, height in fixed.items():
            wanted[row] = height
        room = PAGE - (tall - now.sum())
        if wanted.sum() > room > 0:
            wanted *= room / wanted.sum()
        if abs(wanted - now).max() < ENOUGH:
            return
        if isinstance(grid, GridSpec):
            grid.set_height_ratios([max(height, 1e-3) for height in wanted.tolist()])
        figure.set_size_inches(wide, tall + float((wanted - now).sum()))


def _row(ax: Axes) -> int:
    spec = ax.get_subplotspec()
    return 0 if spec is None else spec.rowspan.start
