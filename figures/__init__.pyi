# Public names: read by editors and type checkers, and at run time by landscape.plugins.public_names.

from figures.axes.class_labels import bubbles as bubbles
from figures.axes.class_labels import class_bars as class_bars
from figures.axes.curves import curve as curve
from figures.axes.drifts import averaged as averaged
from figures.axes.drifts import coherence as coherence
from figures.axes.drifts import evenness as evenness
from figures.axes.drifts import group_cosines as group_cosines
from figures.axes.drifts import kalman_gains as kalman_gains
from figures.axes.drifts import variances as variances
from figures.axes.spectra import eigenvalues as eigenvalues
from figures.axes.spectra import sharpest_slice as sharpest_slice
from figures.axes.surfaces import common_levels as common_levels
from figures.axes.surfaces import contour as contour
from figures.axes.surfaces import profile as profile
from figures.axes.triangles import optima as optima
from figures.axes.triangles import triangle as triangle
from figures.axes.weights import correlations as correlations
from figures.axes.weights import epochs as epochs
from figures.axes.weights import histogram as histogram
from figures.axes.weights import shares as shares
from figures.explore.widget import explorer as explorer
from figures.films.film import film as film
from figures.films.lit_surface import lit_surface as lit_surface
from figures.films.round_film import film_round as film_round
from figures.interactive.paths import trajectory_play as trajectory_play
from figures.interactive.surfaces import explore_contour as explore_contour
from figures.interactive.surfaces import surface3d as surface3d
from figures.interactive.surfaces import surface_rounds as surface_rounds
from figures.interactive.words import client_notes as client_notes
from figures.looks.style import context as context
from figures.looks.style import save as save
from figures.page.report import report as report
from figures.pictures.draw_files import draw as draw
from figures.pictures.draw_files import picture as picture
from figures.texts.table import table as table

__all__: list[str]
