"""Figures of a recorded run whose rounds have four clients to none: drawn, or refused in words."""

from __future__ import annotations

import matplotlib.pyplot as plt
import pytest
import recordings
from gallery_runs import QUICK

import drift
from figures import gallery
from figures.page.summary import summary
from figures.selection.identity import caption

BY_ROUND = ("error-averaged", "planes-settings", "topology-distances", "topology-rounds")
"""Figures that compare rounds by models of several clients."""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return recordings.unequal(tmp_path_factory.mktemp("unequal") / "run")


@pytest.mark.parametrize("name", BY_ROUND)
def test_a_figure_takes_the_rounds_with_enough_clients(run, name):
    figure = gallery.load(name)
    ds = figure.data([run], **QUICK[name])
    if "round" in ds.dims:
        assert ds["round"].values.tolist() == [0, 5]
    else:
        assert (
            ds.sizes["panel"] == 4 if "panel" in ds.dims else [str(mark)[-1] for mark in ds.mark.values] == ["0", "5"]
        )
    plt.close(figure.draw(ds))


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(set(gallery.names()) - set(BY_ROUND)))
def test_a_figure_is_drawn_or_refused_in_words(run, name):
    figure = gallery.load(name)
    try:
        plt.close(figure.draw(figure.data([run], **QUICK.get(name, {}))))
    except (LookupError, ValueError) as reason:
        recordings.require_stated(reason)


def test_a_caption_names_what_nobody_said(run, tmp_path):
    text = caption(gallery.load("norms-rounds").data([run]))
    assert "method not said · data not said · partition not said, 0 to 4 of 5 clients per round · seed not said" in text
    described = recordings.unequal(tmp_path / "told", method="Mine", data="digits", partition="Dir(1)", seed=3)
    words = caption(gallery.load("norms-rounds").data([described]))
    assert "Mine · digits · Dir(1), 0 to 4 of 5 clients per round · seed 3" in words


def test_a_summary_takes_the_last_plane_of_three_clients(run):
    assert len(run.round(-1).ids) == 0
    inside = str(run.cached(drift.round_minimum, round=5).minimum_state.values) == "inside"
    assert summary([run]).centre_offset_seeds.item() == inside  # NaN where no round kept three clients
