"""Legends of a figure that becomes taller by a title or a note: clear of it, and panels clear of them."""

import textwrap
from collections.abc import Callable
from typing import Any

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend

from figures.looks import look, style


def side_legends(figure: Figure, axs: np.ndarray, *, title: str, columns: int, always: bool = False) -> Figure:
    """The figure with `style.key`, or, where panels are stacked, with a legend at the right of each, its label above.

    Entries are in the order in which the lines end, so that each stands close to its line; one line has none.

    Args:
        title, columns: As those of `style.key`.
        always: Also on a page.
    """
    if look.current().look.legend or not (always or style.is_narrow()):
        return style.key(figure, axs.flat, title=title, columns=columns)
    text = textwrap.fill(title, int((style.width() - 0.4) / (0.57 * style.small() / 72)))
    axs.flat[0].annotate(text, (0, 1), (0, 15), "axes fraction", "offset points", va="bottom", size=style.small())
    for ax in axs.flat:
        ax.yaxis.label.set(rotation=0, ha="left", va="bottom")
        ax.yaxis.set_label_coords(0, 1.03)
        lines = {str(line.get_label()): line for line in reversed(ax.get_legend_handles_labels()[0])}
        ordered = sorted(lines, key=lambda name: -float(np.asarray(lines[name].get_ydata(), float)[-1]))
        if len(ordered) > 1:
            ax.legend([lines[name] for name in ordered], [textwrap.fill(name, 19) for name in ordered], **_SIDE)
    return figure


_SIDE: dict[str, Any] = {"loc": "center left", "bbox_to_anchor": (1, 0.5), "borderaxespad": 0.3, "borderpad": 0.2}
_SIDE |= {"handlelength": 2.4, "handletextpad": 0.5, "labelspacing": 0.2}


def move_legends(figure: Figure, moved: Callable[[float], float], *, beside: str) -> None:
    """Move the legends of a figure whose other contents have moved.

    A constrained layout leaves room for legends at the edges of the figure alone; once moved, they get theirs here.

    Args:
        moved: New height of a place, as a part of the new height of the figure, from the earlier one.
        beside: The place of legends ("below", or "above" and "right") that are at the edge which has moved; others stay
            unless they were moved before.
    """
    engine = figure.get_layout_engine()
    for legend in figure.legends:
        box = legend.get_bbox_to_anchor().transformed(figure.transFigure.inverted())
        if np.allclose(box.bounds, (0, 0, 1, 1)):
            side = str(legend.get_label())
            if isinstance(engine, ConstrainedLayoutEngine):
                if (side == "below") != (beside == "below"):
                    continue
                _leave_room(figure, engine, legend, side)
        low, high = moved(box.y0), moved(box.y1)
        legend.set_bbox_to_anchor((box.x0, low, box.width, high - low), transform=figure.transFigure)


def _leave_room(figure: Figure, engine: ConstrainedLayoutEngine, legend: Legend, side: str) -> None:
    """Take the room of a legend, and the pads around it, from that of the panels."""
    asked, box = engine.get(), legend.get_window_extent()
    wide = (box.width / figure.dpi + 2 * asked["w_pad"]) / figure.get_figwidth()
    tall = (box.height / figure.dpi + 2 * asked["h_pad"]) / figure.get_figheight()
    left, low, width, height = asked["rect"]
    rects = {"right": (left, low, width - wide, height), "below": (left, low + tall, width, height - tall)}
    engine.set(rect=rects.get(side, (left, low, width, height - tall)))
