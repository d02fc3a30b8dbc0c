"""Figures: every picture of a landscape or of drift, the report and the command line.

style, palette            sizes, fonts, one colour a method, files that are the same bytes every time
curves, surfaces, triangles, spectra, drifts, weights   functions that draw computed data on axes (matplotlib)
gallery/                  named figures, one file each: data(runs) computes, draw(ds) draws
explore, report           interactive figures (plotly), and one self-contained page of them
explorer, explorer_views  pickers for a notebook, and the pictures that follow them
cli, commands/            the command fedscape
"""

from landscape import plugins

_PUBLIC = {
    "curve": "figures.curves",
    "contour": "figures.surfaces",
    "common_levels": "figures.surfaces",
    "profile": "figures.surfaces",
    "eigenvalues": "figures.spectra",
    "ratio": "figures.spectra",
    "sharpest": "figures.spectra",
    "coherence": "figures.drifts",
    "variances": "figures.drifts",
    "gains": "figures.drifts",
    "averaged": "figures.drifts",
    "bubbles": "figures.drifts",
    "mixture": "figures.drifts",
    "shrink": "figures.weights",
    "shares": "figures.weights",
    "norms": "figures.weights",
    "balance": "figures.weights",
    "histogram": "figures.weights",
    "epochs": "figures.weights",
    "correlations": "figures.weights",
    "group_cosines": "figures.drifts",
    "evenness": "figures.drifts",
    "triangle": "figures.triangles",
    "optima": "figures.triangles",
    "surface3d": "figures.explore",
    "surface_rounds": "figures.explore",
    "surface_views": "figures.explore",
    "explore_contour": "figures.explore",
    "trajectory_play": "figures.explore",
    "drift_curves": "figures.explore",
    "curvature_rounds": "figures.explore",
    "gain_boxes": "figures.explore",
    "simplex_rounds": "figures.explore",
    "label_points": "figures.explore",
    "client_points": "figures.explore",
    "coherence_matrix": "figures.explore",
    "mark_notes": "figures.explore",
    "client_notes": "figures.explore",
    "explorer": "figures.explorer",
    "report": "figures.report",
    "context": "figures.style",
    "save": "figures.style",
}
__all__ = list(_PUBLIC)
plugins.lazy(__name__, _PUBLIC)
