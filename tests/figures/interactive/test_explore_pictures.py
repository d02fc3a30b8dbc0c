"""Interactive pictures of one run: paths, weights."""

import json

import numpy as np
import plotly.graph_objects as go
import pytest

import figures
from drift.analyses.landscapes.projected_plane import trajectory_plane
from figures.interactive.words import label_words


@pytest.fixture(scope="module")
def run(runs):
    return runs[0]


@pytest.fixture(scope="module")
def path(run):
    return run.cached(trajectory_plane, clients=True, points=4)


def test_a_path_reaches_to_the_round_and_ends_in_its_largest_point(run, path):
    notes = {index: figures.client_notes(run, index) for index in run.rounds()}
    figure = figures.trajectory_play(path, notes=notes)
    assert isinstance(figure, go.Figure) and [frame.name for frame in figure.frames] == ["0", "1", "2"]
    for count, frame in enumerate(figure.frames, 1):
        way, clients = frame.data
        np.testing.assert_allclose(way.x, path.mark_alpha.values[:count], rtol=1e-5)
        assert (len(way.marker.size) == count and int(np.argmax(way.marker.size)) == count - 1) or count == 1
        there = path.client_beta.sel(round=count - 1).dropna("client")
        np.testing.assert_allclose(clients.y, there, rtol=1e-5)
        first = int(there.client[0])
        assert clients.text[0].startswith(f"client {first}, round {count - 1}<br>{len(run.parts[first])} samples")
        assert list(frame.traces) == [2, 3]
    np.testing.assert_array_equal(figure.data[2].x, figure.frames[-1].data[0].x)


def test_a_path_is_played_at_once_and_only_when_asked(path):
    figure = figures.trajectory_play(path)
    play, pause = figure.layout.updatemenus[0].buttons
    assert (play.label, pause.label) == ("Play", "Pause")
    for options in (play.args[1], *(step.args[1] for step in figure.layout.sliders[0].steps)):
        assert options["transition"]["duration"] == 0 and options["mode"] == "immediate"
    assert "Plotly.animate" not in figure.to_html(auto_play=False, include_plotlyjs=False)


def test_a_path_without_clients_has_none(run):
    figure = figures.trajectory_play(run.cached(trajectory_plane, points=4))
    assert all(len(frame.data[1].x) == 0 for frame in figure.frames)


def test_labels_are_named_from_the_most_held_on():
    assert label_words(np.array([0.25, 0, 0.75]), ["a", "b", "<i>"]) == "labels &lt;i&gt;: 75 %, a: 25 %"
    assert label_words(np.full(6, 1 / 6), list("abcdef")) == "labels a: 17 %, b: 17 %, c: 17 %, d: 17 %, ..."


def test_a_path_can_be_saved(path):
    assert json.loads(figures.trajectory_play(path).to_json())["data"]
