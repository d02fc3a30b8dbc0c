"""Legends of a figure that becomes taller by a title or a note: clear of it, and panels clear of them."""

from collections.abc import Callable

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.legend import Legend


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
