"""Legends beside titles and notes: nothing lies over anything else, wherever the legend is asked for."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import xarray as xr
from kinds import one_of_each

from figures import gallery
from figures.axes import legends
from figures.axes.footnote import footnote
from figures.looks import look, style

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


def _two_panels(width, **words):
    with look.drawing(look.read(width=width, **words)):
        figure, axs = style.panels(1, 2, cell=0.2, sharex=True)
        for name, ends in {"low": 1, "high": 5, "middle of all lines that are drawn": 3}.items():
            axs[0, 0].plot([0, 1], [2, ends], label=name)
        axs[0, 0].plot([0, 1], [0, 0], label="low")
        axs[0, 1].plot([0, 1], [0, 1], label="alone")
        style.name_axes(axs[0, 0], "round", "a quantity [nats]")
        return legends.side_legends(figure, axs, title="Of both", columns=3), axs.flat


def test_stacked_panels_have_legends_beside_them_in_the_order_of_their_lines():
    figure, (ax, other) = _two_panels("column")
    assert [text.get_text() for text in ax.get_legend().get_texts()] == [
        "high",
        "middle of all lines\nthat are drawn",
        "low",
    ]
    assert other.get_legend() is None and not figure.legends, "a panel of one line is named by its label"
    figure.draw_without_rendering()
    legend, label, (title,) = ax.get_legend().get_window_extent(), ax.yaxis.label.get_window_extent(), ax.texts
    assert legend.x0 >= ax.get_window_extent().x1 and legend.x1 <= figure.bbox.width
    assert title.get_window_extent().y0 >= label.y1 and label.y0 >= ax.get_window_extent().y1
    assert title.get_text() == "Of both"


def test_panels_side_by_side_and_a_place_that_is_asked_for_have_one_legend():
    for figure, axs in (_two_panels("page"), _two_panels("column", legend="below")):
        assert len(figure.legends) == 1 and not any(ax.get_legend() for ax in axs)
