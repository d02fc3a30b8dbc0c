"""Figures on a dark ground, where all that fedscape draws is seen, and in a format without transparency."""

from __future__ import annotations

import matplotlib as mpl
import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import to_rgb, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.legend import Legend
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle
from matplotlib.text import Text

import figures
from figures import gallery
from figures.axes.method_looks import line_look
from figures.axes.spectra import layers
from figures.looks import look, style
from figures.pictures.result_picture import plot

DARK = "dark_background"


def _contrast(colour: np.ndarray) -> float:
    """With black, by the Web Content Accessibility Guidelines."""
    parts = np.where(colour > 0.04045, ((colour + 0.055) / 1.055) ** 2.4, colour / 12.92)
    return float((parts @ [0.2126, 0.7152, 0.0722] + 0.05) / 0.05)


def _unseen(root) -> list[str]:
    """What of a panel or legend cannot be told from black."""
    faults = []
    for artist in root.findobj(Line2D) + root.findobj(Text) + root.findobj(Rectangle):
        if artist is getattr(root, "patch", None) or (artist.axes is None and not isinstance(root, Legend)):
            continue
        names = ("facecolor",) if isinstance(artist, Rectangle) else ("color",)
        if isinstance(artist, Line2D) and artist.get_linestyle() == "None":
            names = ("markerfacecolor", "markeredgecolor")
        shown = [row[:3] for name in names for row in to_rgba_array(getattr(artist, f"get_{name}")()) if row[3]]
        if shown and max(map(_contrast, shown)) < 2.99:
            faults.append(str(artist))
    return faults


@pytest.mark.parametrize(
    "name", ["accuracy-rounds", "settings-rounds", "variance-rounds", "accuracy-table", "clients-round", "gain-alpha"]
)
def test_all_that_a_figure_draws_is_seen_on_a_dark_ground(name, numbers):
    figure = gallery.load(name).draw(numbers(name), style=DARK)
    panels = [ax for ax in figure.axes if not ax.images]
    assert to_rgb(figure.get_facecolor()) == (0, 0, 0)
    for root in (*panels, *figure.legends, *figure.texts):
        assert _unseen(root) == []


def test_colours_stay_on_light_ground_and_keep_their_hue_and_opacity_on_a_dark_one(numbers):
    drawn = {}
    for asked in ("", DARK):
        figure = gallery.load("accuracy-rounds").draw(numbers("accuracy-rounds"), style=asked)
        line = figure.axes[0].lines[0]
        drawn[asked] = np.array(to_rgb(line.get_color())), figure.axes[0].lines[1].get_alpha()
    assert np.array_equal(drawn[""][0], to_rgb(style.colour("fedavg"))) and drawn[""][1] == drawn[DARK][1]
    assert (drawn[DARK][0] > drawn[""][0]).all() and drawn[DARK][0].argmax() == drawn[""][0].argmax()


def test_marks_on_a_map_stay_and_names_on_it_have_an_outline_of_the_ground(numbers):
    figures = [gallery.load("plane-round").draw(numbers("plane-round"), style=asked) for asked in ("", DARK)]
    marks = [[line for line in figure.axes[0].lines if line.get_marker() in "^X"] for figure in figures]
    light, dark = ([(line.get_markerfacecolor(), line.get_markeredgecolor()) for line in some] for some in marks)
    assert light == dark and len(light) == 4
    for figure, ground in zip(figures, ("white", "black"), strict=True):
        named = [text for text in figure.axes[0].texts if text.get_path_effects()]
        assert named and all(text.get_path_effects()[0]._gc["foreground"] == ground for text in named)


def test_the_usual_picture_of_a_result_is_seen_in_a_dark_style_of_the_user(runs):
    with mpl.style.context(DARK), style.context():
        ax = Figure().add_subplot()
        plot(runs[0].metrics(), ax=ax, variable="accuracy")
    assert ax.lines and _unseen(ax) == []


@pytest.mark.parametrize(
    ("name", "draw"),
    [
        ("accuracy-rounds", figures.curve),
        ("coherence-rounds", figures.coherence),
        ("variance-rounds", figures.variances),
        ("eigen-slice", figures.sharpest_slice),
    ],
)
def test_what_is_drawn_on_axes_of_the_user_is_seen_in_a_dark_style_of_the_user(name, draw, numbers):
    with mpl.style.context(DARK):
        ax = draw(numbers(name), ax=Figure().add_subplot())
        ax.legend()
    assert ax.lines and _unseen(ax) == []


def test_hollow_markers_stay_hollow_on_a_dark_ground():
    eigenvalues = [[3.0, -2.0, 1.0]]
    ds = xr.Dataset({"eigenvalue": (("algorithm", "layer"), eigenvalues)}, {"algorithm": ["fedavg"], "layer": [*"abc"]})
    with mpl.style.context(DARK):
        filled, hollow = layers(ds, ax=Figure().add_subplot()).lines[-2:]
    assert to_rgb(hollow.get_markerfacecolor()) == (0, 0, 0) != to_rgb(filled.get_markerfacecolor())
    assert _contrast(np.array(to_rgb(hollow.get_markeredgecolor()))) >= 2.99
    with mpl.style.context(DARK):
        assert to_rgb(line_look("fedavg+ima")["markerfacecolor"]) == (0, 0, 0)


def test_eps_has_the_colours_of_a_transparent_picture_without_a_message_of_matplotlib(numbers, tmp_path, caplog):
    with look.drawing(look.Look()):
        figure = gallery.load("accuracy-rounds").draw(numbers("accuracy-rounds"))
    first = style.save(figure, tmp_path / "first", ("png",))[0].read_bytes()
    (path,) = style.save(figure, tmp_path / "other", ("eps",))
    assert not caplog.records
    blue = np.array(to_rgb(style.colour("fedavg")))
    pale = " ".join(f"{part:.3f}".rstrip("0") for part in 1 + 0.45 * (blue - 1))
    assert f"{pale} setrgbcolor" in path.read_text() and "Date" not in path.read_text()
    assert style.save(figure, tmp_path / "again", ("png",))[0].read_bytes() == first


def test_eps_is_said_to_have_no_transparency(runs, fedscape):
    told = fedscape("figures", "draw", "accuracy-rounds", *(run.folder for run in runs), "--format", "eps")[2]
    assert told.count("transparency") == 1 and "mixed with the ground" in told
