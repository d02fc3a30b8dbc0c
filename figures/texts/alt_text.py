"""The text for readers who cannot see a picture: its panels with their axes, and what they contain."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.collections import QuadMesh
from matplotlib.container import BarContainer
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure

from figures.looks.literal import plain
from figures.texts.finding import named_lines

SERIES = 8
"""Lines of a panel whose first and last value are stated."""


def alt_text(headline: str, figure: Figure) -> str:
    """The headline, then a sentence per panel: its kind, axes with their range, and first and last value of each line.

    Args:
        headline: What the figure shows, in a sentence.
        figure: Drawn.
    """
    axs = [ax for ax in figure.get_axes() if ax.get_label() != "<colorbar>" and ax.has_data() and ax.axison]
    panels = [_panel(ax, f"Panel {index}: " if len(axs) > 1 else "Panel: ") for index, ax in enumerate(axs, 1)]
    return " ".join([headline.rstrip(".") + ".", *map(plain, panels)])


def _panel(ax: Axes, start: str) -> str:
    title = " ".join((ax.get_title() or ax.get_title(loc="left")).split())
    named = f"{title}, " if title else ""
    axes = " and ".join(
        f"{' '.join(name.split()) or which} from {_number(low)} to {_number(high)}"
        for which, name, (low, high) in (
            ("horizontal axis", ax.get_xlabel(), _shown(ax.dataLim.intervalx, ax.get_xlim())),
            ("vertical axis", ax.get_ylabel(), _shown(ax.dataLim.intervaly, ax.get_ylim())),
        )
    )
    return f"{start}{named}{_kind(ax)} over {axes}{_series(ax)}."


def _shown(data: Sequence[float], limits: Sequence[float]) -> tuple[float, float]:
    """Ends of what is drawn along an axis: of the data, and not beyond the limits of the axis."""
    low, high = max(min(data), min(limits)), min(max(data), max(limits))
    return (low, high) if low < high else (min(limits), max(limits))


def _kind(ax: Axes) -> str:
    """What the panel contains, in a word."""
    if ax.name == "3d":
        return "surface"
    if any(isinstance(artist, ContourSet) for artist in ax.collections):
        return "contour map"
    if ax.images or any(isinstance(artist, QuadMesh) for artist in ax.collections):
        return "matrix of colours"
    if any(isinstance(container, BarContainer) for container in ax.containers) and not named_lines(ax):
        return "bars"
    return "lines" if named_lines(ax) else "points"


def _series(ax: Axes) -> str:
    if ax.name == "3d":
        return ""
    lines = list(named_lines(ax).items())
    texts = [f"{name} from {_number(at[0, 1])} to {_number(at[-1, 1])}" for name, at in lines[:SERIES]]
    texts += [f"and {len(lines) - SERIES} more"] if len(lines) > SERIES else []
    return f"; {', '.join(texts)}" if texts else ""


def _number(value: float) -> str:
    return f"{float(value):.3g}"
