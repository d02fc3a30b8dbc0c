"""Faults of a drawn figure that a reader would see: at its final width, in print, in grey."""

from __future__ import annotations

from itertools import combinations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from figures.axes.colour_bars import clipped
from figures.looks.layout import TEXT_BLOCK

SMALLEST, LARGEST = 6.95, 8.05
"""Sizes of text, points."""

NEAR = 7.0
"""Difference in CIE lightness within which two colours look the same in grey."""

CLIPPED = 0.15
"""Part of a map that may lie above its scale."""

Seen = list[tuple[Text, np.ndarray]]
"""Texts with their boxes (x0, y0, x1, y1) in points."""


def lint(figure: Figure) -> list[str]:
    """What is wrong with a figure, in sentences; it is laid out for this."""
    figure.draw_without_rendering()
    shown = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    seen = texts(figure)
    faults = [*_sizes(seen), *_outside(figure, seen), *_overlaps(seen), *_empty(figure), *_beyond(figure)]
    for ax in shown:
        faults += [*_hidden(ax), *_alike_in_grey(ax)]
    if figure.get_figheight() > TEXT_BLOCK:
        faults.append(f"{figure.get_figheight():.1f} inches tall")
    return faults


def texts(figure: Figure) -> Seen:
    """Texts that are seen, with their boxes."""
    renderer = figure._get_renderer()
    hidden = {
        id(part) for ax in figure.axes if not ax.axison for part in (ax.xaxis, ax.yaxis) for part in part.findobj(Text)
    }
    hidden |= {
        id(label)
        for ax in figure.axes
        for axis in (ax.xaxis, ax.yaxis)
        for tick in axis.get_major_ticks() + axis.get_minor_ticks()
        for label in (tick.label1, tick.label2)
        if not _inside(tick.get_loc(), axis.get_view_interval())
    }
    seen = []
    for text in figure.findobj(Text):
        visible = text.get_visible() and text.get_text().strip() and id(text) not in hidden
        if not visible or (text.axes is not None and not text.axes.get_visible()):
            continue
        box = Text.get_window_extent(text, renderer).extents * 72 / figure.dpi  # without the line of an annotation
        if np.isfinite(box).all() and box[2] > box[0]:
            seen.append((text, box))
    return seen


def _inside(place: float, ends: np.ndarray) -> bool:
    low, high = sorted(ends)
    room = 1e-9 * (high - low)
    return bool(low - room <= place <= high + room)


def _sizes(seen: Seen) -> list[str]:
    wrong = {
        (round(float(text.get_fontsize()), 1), _short(text))
        for text, _ in seen
        if not SMALLEST <= text.get_fontsize() <= LARGEST
    }
    return [f"text of {size} points: {sample}" for size, sample in sorted(wrong)][:5]


def _outside(figure: Figure, seen: Seen) -> list[str]:
    wide, tall = figure.get_size_inches() * 72
    return [
        f"outside of the figure: {_short(text)}"
        for text, (x0, y0, x1, y1) in seen
        if x0 < -1 or y0 < -1 or x1 > wide + 1 or y1 > tall + 1
    ]


def _overlaps(seen: Seen) -> list[str]:
    """Pairs of texts that cover each other: by more than a point across and 2.5 points in height."""
    boxes = np.array([box for _, box in seen]).reshape(-1, 4)
    shared = np.minimum(boxes[:, None, 2:], boxes[None, :, 2:]) - np.maximum(boxes[:, None, :2], boxes[None, :, :2])
    pairs = np.argwhere(np.triu((shared[..., 0] > 1.0) & (shared[..., 1] > 2.5), k=1))
    return [f"overlap: {_short(seen[first][0])} and {_short(seen[second][0])}" for first, second in pairs.tolist()]


def _empty(figure: Figure) -> list[str]:
    """Panels with axes and nothing in them; what a panel shows is judged by figures.selection.substance."""
    shown = [ax for ax in figure.axes if ax.axison and ax.get_visible() and ax.get_label() != "<colorbar>"]
    return [f"empty panel {ax.get_title() or ax.get_ylabel()}".strip() for ax in shown if not ax.has_data()]


def _named(ax: Axes) -> list[Line2D]:
    """Lines of the legend that run through data."""
    return [
        line
        for line in ax.lines
        if line.get_transform() == ax.transData
        and not str(line.get_label()).startswith("_")
        and len(line.get_xdata()) > 1
        and line.get_linestyle() not in ("None", "")
    ]


def _hidden(ax: Axes) -> list[str]:
    """Lines that lie below another one which has no gaps: nothing of them is seen."""
    faults = []
    for below, above in combinations(_named(ax), 2):
        if above.get_zorder() < below.get_zorder():
            below, above = above, below
        first, second = (ax.transData.transform(line.get_xydata()) for line in (below, above))
        if first.shape == second.shape and np.nanmax(abs(first - second)) < 0.5 and _pattern(above) == _pattern(below):
            faults.append(f"{below.get_label()} is hidden by {above.get_label()}")
    return faults


def _alike_in_grey(ax: Axes) -> list[str]:
    """Pairs of lines, or of bars, that differ in their hue alone."""
    faults = []
    for first, second in combinations(_named(ax), 2):
        same_look = _pattern(first) == _pattern(second) and first.get_marker() == second.get_marker()
        if same_look and abs(_lightness(first.get_color()) - _lightness(second.get_color())) < NEAR:
            faults.append(f"{first.get_label()} and {second.get_label()} look alike in grey")
    return faults


def _pattern(line: Line2D) -> object:
    return line._unscaled_dash_pattern


def _lightness(colour: object) -> float:
    """CIE lightness, 0 to 100."""
    rgb = np.array(to_rgb(colour))
    linear = np.where(rgb <= 0.04045, rgb / 12.92, ((rgb + 0.055) / 1.055) ** 2.4)
    return float(116 * np.cbrt(linear @ [0.2126, 0.7152, 0.0722]) - 16)


def _beyond(figure: Figure) -> list[str]:
    """Scales that much of their maps lies above, or some of it without a word at a colour bar."""
    scales: dict[tuple[float, ...], list[Axes]] = {}
    for ax in figure.axes:
        for part in ax.collections:
            if isinstance(part, ContourSet) and part.filled and len(part.levels) > 2:
                scales.setdefault(tuple(part.levels), []).append(ax)
    bars = [ax.get_ylabel() + ax.get_xlabel() for ax in figure.axes if ax.get_label() == "<colorbar>"]
    faults = []
    for levels, axs in scales.items():
        share = clipped(axs, levels[-1])
        if share > CLIPPED or (share >= 0.005 and not any(f"{100 * share:.0f} % above" in text for text in bars)):
            faults.append(f"{share:.0%} of the maps of a scale are above it")
    return faults


def _short(text: Text) -> str:
    return repr(" ".join(text.get_text().split())[:32])
