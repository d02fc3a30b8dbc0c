"""Interactive figures (plotly): surfaces, curves over rounds and clouds of clients; they need no network.

explore_surfaces   surface3d, explore_contour, surface_rounds
explore_curves     curves, accuracy_rounds, drift_curves, line_fma_ima
explore_clients    client_points, weights_rounds
explore_look       what they share
"""

from __future__ import annotations

from figures.explore_clients import client_points, weights_rounds
from figures.explore_curves import accuracy_rounds, curves, drift_curves, line_fma_ima
from figures.explore_surfaces import explore_contour, surface3d, surface_rounds

__all__ = [
    "accuracy_rounds",
    "client_points",
    "curves",
    "drift_curves",
    "explore_contour",
    "line_fma_ima",
    "surface3d",
    "surface_rounds",
    "weights_rounds",
]
