"""Legends beside titles and notes: nothing lies over anything else, wherever the legend is asked for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import xarray as xr
from kinds import one_of_each

from figures import gallery
from figures.axes.footnote import footnote

pytestmark = pytest.mark.seconds


@pytest.fixture(scope="module")
def curves():
    values = np.random.default_rng(0).uniform(0.2, 0.9, (2, 1, 12))
    names = ("accuracy", "loss", "local_loss")
    variables = {name: (("algorithm", "seed", "round"), values, {"long_name": name}) for name in names}
    return xr.Dataset(variables, coords={"algorithm": ["fedavg", "ima"], "seed": [0], "round": range(12)})


TITLES = ("", "FedAvg and IMA")
EACH = (("column", "above", TITLES[1]), ("column", "below", ""), ("page", "right", TITLES[1]), ("slide", "above", ""))
"""Each width, place and title."""


@pytest.mark.parametrize(
    ("width", "place", "title"),
    one_of_each(itertools.product(("column", "page", "slide"), ("above", "below", "right"), TITLES), EACH),
)
def test_legend_title_notes_and_panels_are_apart(curves, width, place, title):
    figure = gallery.load("accuracy-rounds").draw(
        curves, width=width, legend=place, **({"title": title} if title else {})
    )
    _require_apart(figure, bool(title))
    for number in range(2):
        footnote(figure, f"Note {number} below the panels, long enough for a column to break it into two lines.")
        _require_apart(figure, bool(title) + number + 1)


def test_a_long_title_is_wrapped_and_inside_the_picture(curves):
    title = "Accuracy of the global model over rounds of training on images of digits by forty clients"
    figure = gallery.load("accuracy-rounds").draw(curves, width="column", title=title)
    _require_apart(figure, True)
    (text,) = [text for text in figure.texts if text.get_text().startswith("Accuracy of")]
    assert " ".join(text.get_text().split()) == title
    box = text.get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.width and box.y1 <= figure.bbox.height


def _require_apart(figure, texts):
    figure.draw_without_rendering()
    parts = {f"panel {number}": ax.get_tightbbox() for number, ax in enumerate(figure.axes)}
    parts |= {text.get_text(): text.get_window_extent() for text in figure.texts}
    (legend,) = figure.legends
    parts["legend"] = legend.get_window_extent()
    assert len(parts) == len(figure.axes) + texts + 1
    over = [pair for pair in itertools.combinations(parts, 2) if parts[pair[0]].overlaps(parts[pair[1]])]
    assert over == []
    page = figure.bbox.padded(1)
    assert all(page.contains(*corner) for box in parts.values() for corner in (box.min, box.max))
