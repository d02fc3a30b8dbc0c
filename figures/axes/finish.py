"""What a look asks of a drawn figure as a whole: limits, logarithmic axes, names of axes, and a title."""

import re
import textwrap
from collections.abc import Mapping, Sequence

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine

from figures.axes.curves import mark_level
from figures.axes.legends import move_legends
from figures.looks import style
from figures.looks.look import Drawing
from figures.looks.look_values import Range


def finish(figure: Figure, axs: Sequence[Axes], drawing: Drawing) -> None:
    """Apply the words of a look that concern whole panels; each is taken only where a panel can honour it."""
    panels = [ax for ax in axs if ax.get_label() != "<colorbar>" and ax.axison and ax.has_data()]
    curves = [ax for ax in panels if any(line.get_transform() == ax.transData for line in ax.lines) and not ax.images]
    if drawing.look.paired_to:
        _paired(curves, drawing)
    if drawing.look.log:
        for ax in curves:
            if ax.yaxis.get_scale() == "log" or _positive(ax):
                drawing.take("log")
                style.logarithmic(ax)
    _limit(panels, "x", drawing.look.xlim, drawing)
    _limit(panels, "y", drawing.look.ylim, drawing)
    for name in ("x", "y"):
        if name in drawing.look.labels:
            for ax in panels:
                if ax.get_xlabel() if name == "x" else ax.get_ylabel():
                    drawing.take("labels")
                    ax.set(**{f"{name}label": drawing.look.labels[name]})
    if drawing.look.title and not drawing.composed:
        _title(figure, str(drawing.take("title")))
    style.keep_fonts(figure)


def _positive(ax: Axes) -> bool:
    """Whether all lines through data are above 0."""
    heights = [np.asarray(line.get_ydata(), float) for line in ax.lines if line.get_transform() == ax.transData]
    values = np.concatenate([column[np.isfinite(column)] for column in heights])
    return len(values) > 0 and bool((values > 0).all())


def _paired(axs: Sequence[Axes], drawing: Drawing) -> None:
    """Limits of differences, a line at 0, and in the labels what they are differences to."""
    other = style.label(drawing.look.paired_to)
    for ax in axs:
        ax.autoscale(axis="y")
        mark_level(ax)
        text = ax.get_ylabel()
        if text:
            ax.set_ylabel(f"{text}, minus that of {other}")


def _limit(axs: Sequence[Axes], name: str, limits: Mapping[str, Range], drawing: Drawing) -> None:
    """Limits of the axes whose label begins so; without one, of all, where they show one quantity."""
    labels = {(ax.get_xlabel() if name == "x" else ax.get_ylabel()) for ax in axs} - {""}
    honoured = 0
    for begin, (low, high) in limits.items():
        if not begin and name == "y" and len(labels) > 1:
            continue
        for ax in axs:
            text = ax.get_xlabel() if name == "x" else ax.get_ylabel()
            shared = not begin or text.startswith(begin)
            if shared and (name == "y" or ax.xaxis.get_scale() == "log" or not _names(ax)):
                ax.set(**{f"{name}lim": (low, high)})
                honoured += 1
    if limits and honoured >= len(limits):
        drawing.take(f"{name}lim")


def _names(ax: Axes) -> bool:
    """Whether the horizontal axis has names in place of numbers."""
    texts = [label.get_text() for label in ax.get_xticklabels() if label.get_text()]
    return any(not re.fullmatch(r"[\u2212-]?\d+\.?\d*", text) for text in texts)


def _title(figure: Figure, text: str) -> None:
    """A title above everything, by which the figure becomes taller."""
    width, height = (float(size) for size in figure.get_size_inches())
    size = float(mpl.rcParams["font.size"])
    lines = textwrap.wrap(text, max(12, int(width * 72 / (0.62 * size))))
    more = 0.07 + 0.17 * len(lines)
    share = height / (height + more)
    figure.set_size_inches(width, height + more)
    engine = figure.get_layout_engine()
    if isinstance(engine, ConstrainedLayoutEngine):
        left, low, wide, high = engine.get()["rect"]
        engine.set(rect=(left, low * share, wide, high * share))
    move_legends(figure, lambda y: y * share, beside="above")
    look = {"ha": "center", "va": "top", "fontsize": mpl.rcParams["axes.titlesize"], "fontweight": "bold"}
    figure.text(0.5, 1 - 0.04 / (height + more), "\n".join(lines), in_layout=False, **look)
