"""The text for readers who cannot see a picture: its panels with their axes, and what they contain."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.container import BarContainer
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.image import AxesImage

from figures.looks.literal import plain
from figures.texts.finding import across_label, named_lines, number, panel_title

SERIES, LONGEST = 8, 390
"""Lines of a panel whose first and last value are stated, and letters of a text."""


def alt_text(headline: str, figure: Figure) -> str:
    """The headline, then a sentence per panel: its kind, axes with their range, and first and last value of each line.

    All numbers are those that are drawn. In a long text the lines are left out, then panels, which are counted.

    Args:
        headline: What the figure shows, in a sentence.
        figure: Drawn.
    """
    axs = [ax for ax in figure.get_axes() if ax.get_label() != "<colorbar>" and ax.has_data() and ax.axison]
    starts = [f"Panel {index}: " if len(axs) > 1 else "Panel: " for index in range(1, len(axs) + 1)]
    panels = [_panel(ax, start) for ax, start in zip(axs, starts, strict=True)]
    kinds = f" ({', '.join(dict.fromkeys(_kind(ax).partition(' with')[0] for ax in axs))})"
    for texts in ([about + series for about, series in panels], [about for about, _ in panels]):
        text = shorten(f"{headline.rstrip('.')}.", list(map(plain, texts)), "panel", kinds)
        if not text.endswith(f"{kinds}."):
            break
    return text


def shorten(text: str, parts: Sequence[str], what: str, about: str = "") -> str:
    """A text and as many further parts as keep it short; the others are counted."""
    for count in range(len(parts), -1, -1):
        left = len(parts) - count
        rest = f"{left} {'more ' * bool(count)}{what}{'s' * (left > 1)}{about}" if left else ""
        shown = "; ".join(filter(None, [*parts[:count], rest]))
        stated = f"{text} {shown[:1].upper()}{shown[1:]}." if shown else text
        if len(stated) <= LONGEST:
            break
    return stated


def _panel(ax: Axes, start: str) -> tuple[str, str]:
    """What a panel is, and its lines."""
    title, kind = panel_title(ax), _kind(ax)
    names = [
        plain(" ".join(name.split()))
        for name in (across_label(ax), ax.get_ylabel() * bool(ax.yaxis.label.get_rotation()))
    ]
    spans = [_shown(ax.dataLim.intervalx, ax.get_xlim()), _shown(ax.dataLim.intervaly, ax.get_ylim())]
    places = kind.startswith(("matrix", "bars")), kind.startswith("matrix")  # of names, not of numbers
    axes = [
        name if names_only else f"{name} from {number(low)} to {number(high)}"
        for name, (low, high), names_only in zip(names, spans, places, strict=True)
        if name and (all(names) or "map" not in kind)
    ]
    over = f" over {' and '.join(axes)}" if axes else ""
    return f"{start}{f'{title}, ' if title else ''}{kind}{over}", _series(ax)


def _shown(data: Sequence[float], limits: Sequence[float]) -> tuple[float, float]:
    """Ends of what is drawn along an axis: of the data, and not beyond the limits of the axis."""
    low, high = max(min(data), min(limits)), min(max(data), max(limits))
    return (low, high) if low < high else (min(limits), max(limits))


def _kind(ax: Axes) -> str:
    """What the panel contains, in a word, and the values of a matrix."""
    if ax.name == "3d":
        return "surface"
    coloured = [
        shown for shown in (*ax.collections, *ax.images) if isinstance(shown, ContourSet | QuadMesh | AxesImage)
    ]
    if coloured:
        values: Any = np.ma.masked_invalid(np.ma.asarray(coloured[0].get_array(), float)).compressed()
        contours = isinstance(coloured[0], ContourSet)
        ends = f" with values from {number(values.min())} to {number(values.max())}" if values.size else ""
        return f"{'contour map' if contours else 'matrix of colours'}{ends * (not contours)}"
    if any(isinstance(container, BarContainer) for container in ax.containers) and not named_lines(ax):
        return "bars"
    return "lines" if named_lines(ax) else "points"


def _series(ax: Axes) -> str:
    if ax.name == "3d":
        return ""
    low, high = sorted(ax.get_xlim())
    seen = {name: at[(low <= at[:, 0]) & (at[:, 0] <= high)] for name, at in named_lines(ax).items()}
    lines = [(name, at) for name, at in seen.items() if len(at)]
    texts = [f"{name} from {number(at[0, 1])} to {number(at[-1, 1])}" for name, at in lines[:SERIES]]
    texts += [f"and {len(lines) - SERIES} more"] if len(lines) > SERIES else []
    return f"; {', '.join(texts)}" if texts else ""
