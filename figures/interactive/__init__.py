"""Interactive figures (plotly), each a `go.Figure` for a notebook or the report; they need no network.

Files are named after their figures; `look`, `slider`, `words` and the two files of traces are their shared parts.
"""

from __future__ import annotations

from figures.interactive.clients import client_points, weights_rounds
from figures.interactive.curvature import curvature_rounds
from figures.interactive.curves import curves, drift_curves, line_fma_ima
from figures.interactive.gains import gain_boxes
from figures.interactive.labels import label_points
from figures.interactive.matrix import coherence_matrix
from figures.interactive.paths import trajectory_play
from figures.interactive.simplex import simplex_rounds
from figures.interactive.surfaces import explore_contour, surface3d, surface_rounds, surface_views
from figures.interactive.words import client_notes, mark_notes

__all__ = [
    "client_notes",
    "client_points",
    "coherence_matrix",
    "curvature_rounds",
    "curves",
    "drift_curves",
    "explore_contour",
    "gain_boxes",
    "label_points",
    "line_fma_ima",
    "mark_notes",
    "simplex_rounds",
    "surface3d",
    "surface_rounds",
    "surface_views",
    "trajectory_play",
    "weights_rounds",
]
