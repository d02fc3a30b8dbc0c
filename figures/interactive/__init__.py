"""Interactive figures (plotly), each a `go.Figure` for a notebook or the report; they need no network.

explore_surfaces   surface3d, explore_contour, surface_rounds, surface_views: planes, over rounds with a slider
explore_paths      trajectory_play: the way of a run, with a slider and a button that plays it
explore_simplex    simplex_rounds: the loss over the weights of three clients
explore_matrix     coherence_matrix: cosines between the updates of a round's clients
explore_curves     curves, accuracy_rounds, drift_curves, line_fma_ima
explore_curvature  curvature_rounds: largest eigenvalues
explore_gains      gain_boxes: the Kalman gain
explore_clients    client_points, weights_rounds: clouds of clients
explore_labels     label_points: who trains on which labels
explore_words      mark_notes, client_notes: what hovering tells of a client
explore_slider, explore_deep, explore_flat, explore_look   what they share
"""

from __future__ import annotations

from figures.interactive.clients import client_points, weights_rounds
from figures.interactive.curvature import curvature_rounds
from figures.interactive.curves import accuracy_rounds, curves, drift_curves, line_fma_ima
from figures.interactive.gains import gain_boxes
from figures.interactive.labels import label_points
from figures.interactive.matrix import coherence_matrix
from figures.interactive.paths import trajectory_play
from figures.interactive.simplex import simplex_rounds
from figures.interactive.surfaces import explore_contour, surface3d, surface_rounds, surface_views
from figures.interactive.words import client_notes, mark_notes

__all__ = [
    "accuracy_rounds",
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
