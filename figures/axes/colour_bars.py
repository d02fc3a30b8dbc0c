"""Colour bars of maps: as tall as the maps are drawn, with ticks whose labels differ."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import cast

import numpy as np
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backend_bases import RendererBase
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Colormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter
from matplotlib.transforms import Bbox

from figures import style


def norm(levels: np.ndarray) -> Normalize:
    """Colour scale of contour levels: logarithmic where their spacing is."""
    even = np.allclose(np.diff(levels), levels[1] - levels[0])
    return Normalize(levels[0], levels[-1]) if even else LogNorm(levels[0], levels[-1])


def colorbar(
    figure: Figure, axs: Iterable[Axes], levels: np.ndarray, label: str, *, cmap: str | Colormap = style.SEQUENTIAL
) -> None:
    """One colour bar of common levels for several maps, with a few round ticks; as tall as the maps are drawn."""
    cells = list(axs)
    maps = [ax for ax in cells if ax.has_data()] or cells
    with style.context():
        scale = ScalarMappable(norm(levels), cmap)
        bar = figure.colorbar(scale, ax=maps, label=label, pad=0.02, aspect=25, extend="max")
        _match_height(bar.ax, maps)
        ticks = levels[:: max(1, len(levels) // 5)].tolist()
        texts = dict(zip(ticks, _distinct_labels(ticks), strict=True))
        bar.locator, bar.formatter = (
            _ThinnedTicks(ticks),
            FuncFormatter(lambda value, _: texts.get(value, f"{value:.2g}")),
        )
        bar.update_ticks()
        bar.minorticks_off()


def _match_height(bar: Axes, maps: Sequence[Axes]) -> None:
    """Make a vertical colour bar as tall as its maps are drawn, at their edge.

    A layout makes it as tall as their cells, which maps of equal aspect do not fill.
    """
    inside = cast("Callable[[Axes, RendererBase], Bbox]", bar.get_axes_locator())

    def place(ax: Axes, renderer: RendererBase) -> Bbox:
        box, whole = inside(ax, renderer), ax.get_position(original=True)
        cells = Bbox.union([panel.get_position(original=True) for panel in maps])
        visible = Bbox.union([panel.get_position() for panel in maps])
        scale = visible.height / cells.height
        ax.set_box_aspect((ax.get_box_aspect() or 1.0) * scale)  # as wide as before
        left, low = box.x0 + visible.x1 - cells.x1, visible.y0 + (box.y0 - whole.y0) * scale
        return Bbox.from_bounds(left, low, box.width, box.height * scale)

    bar.set_axes_locator(place)  # type: ignore[arg-type]  # matplotlib gives it the axes


class _ThinnedTicks(FixedLocator):
    """Fixed ticks, without every second one and so on where a bar is too short for their labels."""

    ROOM = 8.5
    """Points that a label takes."""

    def __call__(self) -> Sequence[float]:
        ticks = self.tick_values(0.0, 1.0)  # those that are fixed, whatever the limits
        ax = cast(Axis, self.axis).axes
        tall = ax.get_window_extent().height / cast(Figure, ax.figure).dpi * 72
        return ticks[:: max(1, int(np.ceil(self.ROOM * (len(ticks) - 1) / tall)))]


def _distinct_labels(numbers: Sequence[float]) -> list[str]:
    """Numbers in the fewest digits, two or more, in which they differ."""
    written = ([f"{value:.{digits}g}" for value in numbers] for digits in range(2, 17))
    return next((texts for texts in written if len(set(texts)) == len(texts)), [str(value) for value in numbers])
