"""The layout of every picture: matplotlib's constrained one in round numbers, as its last bits vary by process."""

from __future__ import annotations

import numpy as np
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.transforms import Bbox

DIGITS = 9
"""Decimals of a place as a fraction of the figure: far below what is seen, far above the error of the solver."""


class RoundLayout(ConstrainedLayoutEngine):
    """Constrained layout with rounded places: an SVG writes six decimals, of which the last depends on a last bit."""

    def execute(self, fig: Figure) -> None:
        super().execute(fig)
        for ax in fig.axes:
            free = ax.get_in_layout()
            ax.set_position(Bbox(np.round(ax.get_position(original=True).get_points(), DIGITS)))
            ax.set_in_layout(free)  # which setting a place by hand ends
