"""Colour bars of maps: as long as the maps are drawn, with round ticks, and with what lies beyond the scale."""

from collections.abc import Callable, Iterable, Sequence
from typing import cast
from weakref import WeakKeyDictionary

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.axis import Axis
from matplotlib.backend_bases import RendererBase
from matplotlib.cm import ScalarMappable
from matplotlib.colorbar import Colorbar
from matplotlib.colors import Colormap, LogNorm, Normalize
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, LogLocator, MaxNLocator
from matplotlib.transforms import Bbox

from figures.axes.relief import COUNT, spaced_levels
from figures.looks import style
from figures.looks.look import current

SLENDER = 25
"""Height of a bar beside maps, as a multiple of its width."""

_VALUES: WeakKeyDictionary[Axes, list[np.ndarray]] = WeakKeyDictionary()
"""Values that maps show, by their axes."""


def remember(ax: Axes, values: np.ndarray) -> None:
    """Remember what a map shows, so that its bar can state how much of it lies beyond the scale."""
    _VALUES.setdefault(ax, []).append(np.ravel(values))


def clipped(axs: Iterable[Axes], top: float) -> float:
    """Part of the values of maps that lies above a level."""
    shown = [array for ax in axs for array in _VALUES.get(ax, [])]
    values = np.concatenate(shown) if shown else np.zeros(0)
    values = values[np.isfinite(values)]
    return float((values > top * (1 + 1e-9)).mean()) if len(values) else 0.0


def norm(levels: np.ndarray) -> Normalize:
    """Colour scale of contour levels: logarithmic where their spacing is."""
    even = np.allclose(np.diff(levels), levels[1] - levels[0])
    return Normalize(levels[0], levels[-1]) if even else LogNorm(levels[0], levels[-1])


def colorbar(
    figure: Figure,
    axs: Iterable[Axes],
    levels: np.ndarray,
    label: str,
    *,
    cmap: str | Colormap | None = None,
    below: Sequence[Axes] = (),
    inside: Axes | None = None,
    scale: str = "the scale",
) -> None:
    """One colour bar of common levels for several maps, with a few round ticks; as long as the maps are drawn.

    Where values lie above the highest level, the bar ends in an arrow, and its label states their part.

    Args:
        below: Those of the maps that the bar lies below; by default it stands beside all.
        inside: An empty cell of the grid that the bar lies in instead.
        scale: What the part lies above, in words; without any, another bar says it.
    """
    cells = list(axs)
    maps = [ax for ax in cells if ax.has_data()] or cells
    beyond = clipped(maps, float(levels[-1]))
    with style.context():
        colours = ScalarMappable(norm(levels), cmap or style.sequential())
        line = " " if len(below) > 1 else "\n"  # beside or below one map in its own
        text = f"{label}{line}({100 * beyond:.0f} % above {scale})" if beyond >= 0.005 and scale else label
        location = {"location": "bottom", "pad": 0.01, "aspect": 30} if below else {"pad": 0.02, "aspect": SLENDER}
        extend = "max" if beyond > 0 else "neither"
        if inside is not None:
            cell = inside.inset_axes((0.05, 0.55, 0.9, 0.08), label="<colorbar>")
            bar = figure.colorbar(colours, cax=cell, orientation="horizontal", label=text, extend=extend)
        else:
            bar = figure.colorbar(colours, ax=list(below) or maps, label=text, extend=extend, **location)
        upright = not below and inside is None
        if upright:
            match_height(bar.ax, maps)
        elif below:
            _set_thickness(bar.ax)
        round_ticks(bar, levels, tall=upright)


def round_ticks(bar: Colorbar, levels: np.ndarray, *, tall: bool) -> None:
    """A few round numbers within the levels; on a logarithmic scale 1, 2 and 5 by powers of ten, or finer."""
    ticks = round_numbers(float(levels[0]), float(levels[-1]), log=isinstance(bar.norm, LogNorm))
    bar.locator = _ThinnedTicks(ticks, tall=tall)
    bar.formatter = FuncFormatter(lambda value, _: _written(value))
    bar.update_ticks()
    bar.minorticks_off()


def round_numbers(low: float, high: float, *, log: bool) -> list[float]:
    """Some four to eight round numbers between two ends, in few digits."""
    room = 1e-9 * abs(high - low)
    finer = ((1.0,), (1.0, 3.0), (1.0, 2.0, 5.0), (1.0, 1.5, 2.0, 3.0, 5.0, 7.0)) if log else ()
    candidates = [LogLocator(subs=subs, numticks=50).tick_values(low, high) for subs in finer]
    candidates += [MaxNLocator(count).tick_values(low, high) for count in (5, 7, 10)]
    inside = [[float(tick) for tick in ticks if low - room <= tick <= high + room] for ticks in candidates]
    fit = [ticks for ticks in inside if 4 <= len(ticks) <= 8]
    return fit[0] if fit else min(inside, key=lambda ticks: abs(len(ticks) - 5))


def _written(value: float) -> str:
    return f"{value:.10g}" if 1e-4 <= abs(value) < 1e5 or value == 0 else f"{value:.3g}"


def match_height(bar: Axes, maps: Sequence[Axes]) -> None:
    """Make a vertical colour bar as tall as its maps are drawn, at their edge.

    A layout makes it as tall as their cells, which maps of equal aspect do not fill.
    """
    inside = cast("Callable[[Axes, RendererBase], Bbox]", bar.get_axes_locator())
    wide = cast(Figure, bar.get_figure(root=True)).get_figwidth()

    def located(ax: Axes, renderer: RendererBase) -> Bbox:
        ax.set_box_aspect(SLENDER)  # a bar without an end keeps what an earlier drawing left
        box, original = inside(ax, renderer), ax.get_position(original=True)
        cells = Bbox.union([panel.get_position(original=True) for panel in maps])
        visible = Bbox.union([panel.get_position() for panel in maps])
        scale = visible.height / cells.height
        ax.set_box_aspect((ax.get_box_aspect() or 1.0) * scale)  # as wide as before
        left, low = box.x0 + visible.x1 - cells.x1, visible.y0 + (box.y0 - original.y0) * scale
        left = min(left, visible.x1 + 0.12 / wide)  # legends below move no bar
        return Bbox.from_bounds(left, low, box.width, box.height * scale)

    bar.set_axes_locator(located)  # type: ignore[arg-type]  # matplotlib gives it the axes


def _set_thickness(bar: Axes) -> None:
    """Make a horizontal colour bar as thick as small text is high, however long it is."""
    inside = cast("Callable[[Axes, RendererBase], Bbox]", bar.get_axes_locator())
    figure, thick = cast(Figure, bar.get_figure(root=True)), style.small() / 72  # every drawing asks for the place

    def located(ax: Axes, renderer: RendererBase) -> Bbox:
        box = inside(ax, renderer)
        ax.set_box_aspect(thick / (box.width * figure.get_figwidth()))
        return box

    bar.set_axes_locator(located)  # type: ignore[arg-type]  # matplotlib gives it the axes


class _ThinnedTicks(FixedLocator):
    """Fixed ticks, without every second one and so on where a bar is too short for their labels."""

    def __init__(self, ticks: Sequence[float], *, tall: bool) -> None:
        super().__init__(list(ticks))
        self.tall = tall

    def __call__(self) -> Sequence[float]:
        ticks = self.tick_values(0.0, 1.0)  # those that are fixed, whatever the limits
        ax = cast(Axis, self.axis).axes
        box, dots = ax.get_window_extent(), cast(Figure, ax.get_figure(root=True)).dpi
        long = (box.height if self.tall else box.width) / dots * 72
        room = 8.5 if self.tall else 26.0  # points that a label takes
        return ticks[:: max(1, int(np.ceil(room * (len(ticks) - 1) / max(long, 1.0))))]


def common_levels(*values: xr.DataArray, count: int = COUNT, log: bool = True, top: float = 0.9) -> np.ndarray:
    """Contour levels common to several maps, evenly spaced in log (or not, for fractions such as the error).

    Args:
        values: Arrays that share the levels.
        log: Space the levels logarithmically.
        count: How many.
        top: Quantile of the values at the highest level; the few beyond it share one colour.

    Raises:
        LookupError: If no value is finite.
    """
    return spaced_levels(values, count=current().take("levels") or count, log=log, top=top)
