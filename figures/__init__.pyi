# Public names: read by editors and type checkers, and at run time by landscape.plugins.lazy.

from figures.curves import curve as curve
from figures.drifts import averaged as averaged
from figures.drifts import bubbles as bubbles
from figures.drifts import coherence as coherence
from figures.drifts import evenness as evenness
from figures.drifts import gains as gains
from figures.drifts import group_cosines as group_cosines
from figures.drifts import mixture as mixture
from figures.drifts import variances as variances
from figures.explore import client_notes as client_notes
from figures.explore import client_points as client_points
from figures.explore import coherence_matrix as coherence_matrix
from figures.explore import curvature_rounds as curvature_rounds
from figures.explore import drift_curves as drift_curves
from figures.explore import explore_contour as explore_contour
from figures.explore import gain_boxes as gain_boxes
from figures.explore import label_points as label_points
from figures.explore import mark_notes as mark_notes
from figures.explore import simplex_rounds as simplex_rounds
from figures.explore import surface3d as surface3d
from figures.explore import surface_rounds as surface_rounds
from figures.explore import surface_views as surface_views
from figures.explore import trajectory_play as trajectory_play
from figures.explorer import explorer as explorer
from figures.report import report as report
from figures.spectra import eigenvalues as eigenvalues
from figures.spectra import ratio as ratio
from figures.spectra import sharpest as sharpest
from figures.style import context as context
from figures.style import save as save
from figures.surfaces import common_levels as common_levels
from figures.surfaces import contour as contour
from figures.surfaces import profile as profile
from figures.triangles import optima as optima
from figures.triangles import triangle as triangle
from figures.weights import balance as balance
from figures.weights import correlations as correlations
from figures.weights import epochs as epochs
from figures.weights import histogram as histogram
from figures.weights import norms as norms
from figures.weights import shares as shares
from figures.weights import shrink as shrink

__all__: list[str]
