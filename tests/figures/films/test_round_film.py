"""A round that is relived: where its models are, what its bars show, and what is refused."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
from matplotlib.colors import to_rgb
from PIL import Image

import figures
from drift.analyses.counterfactual.counterfactual import counterfactual
from figures.films import relived_round, round_film, stage
from figures.films.relived_round import relived_rounds


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("round"), "rounds=3", "keep.clients=all", "keep.globals=all")


@pytest.fixture(scope="module")
def relived(run):
    return relived_rounds([run], 1, 4, 100)[0]


def coordinates(run, relived, model):
    """Coordinates of a model by least squares in the directions of the plane, written out."""
    record = run.round(1)
    start, end = record.kept("start").double().numpy(), record.kept("end").double().numpy()
    models = [one.double().numpy() for one in record.kept("clients")]
    u = (end - start) / np.linalg.norm(end - start)
    aside = [one - start - ((one - start) @ u) * u for one in models]
    v = max(aside, key=np.linalg.norm)
    return np.linalg.lstsq(np.stack([u, v / np.linalg.norm(v)], axis=1), model - start, rcond=None)[0]


def test_models_are_at_the_feet_of_their_projections(run, relived):
    record = run.round(1)
    np.testing.assert_allclose(relived.start, [0, 0], atol=1e-9)
    np.testing.assert_allclose(relived.end, coordinates(run, relived, record.kept("end").double().numpy()), atol=1e-6)
    feet = [coordinates(run, relived, one.double().numpy()) for one in record.kept("clients")]
    np.testing.assert_allclose(relived.places(1.0, 0.0), feet, atol=1e-6)
    np.testing.assert_allclose(relived.places(0.0, 0.0), np.zeros((len(feet), 2)), atol=1e-6)
    np.testing.assert_allclose(relived.places(1.0, 1.0), np.tile(relived.end, (len(feet), 1)), atol=1e-9)


def test_ways_are_the_steps_of_the_recorded_training(run, relived):
    for client, path in zip(relived.clients, relived.paths, strict=True):
        trained = run.method.local(run.client(1, client))
        assert len(path) == trained.steps + 1
        np.testing.assert_allclose(path[-1], coordinates(run, relived, trained.theta.double().numpy()), atol=1e-5)
    assert any("trained again" in note for note in relived.notes)


def test_ways_are_straight_and_the_caption_says_so_where_training_gives_another_model(run, monkeypatch):
    monkeypatch.setattr(relived_round, "SAME", -1.0)
    straight = relived_rounds([run], 1, 4, 100)[0]
    assert all(len(path) == 2 for path in straight.paths)
    assert "lines: straight from start to client" in straight.notes


def test_frames_show_the_models_at_their_places_and_bars_end_at_the_costs(run, relived, tmp_path, monkeypatch):
    frames, bars, texts = [], [], []

    def note(path, draw, total, **_):
        from matplotlib.figure import Figure

        for frame in range(total):
            ax = Figure(stage.SIZE, dpi=50).add_axes((0, 0, 1, 1))
            ax.set(xlim=(0, 480), ylim=(0, 270))
            picture = draw(frame, ax)
            frames.append((picture, {line.get_color(): line.get_xydata()[-1] for line in ax.lines}))
            bars.append([patch.get_width() for patch in ax.patches])
            texts.append([text.get_text() for text in ax.texts])
        return path

    panels = []
    monkeypatch.setattr(round_film, "write_frames", note)
    monkeypatch.setattr(round_film._Panel, "__init__", _remember(round_film._Panel.__init__, panels))
    figures.film_round([run], tmp_path / "r.gif", round=1, points=4, rate=2, dpi=50)
    at_end = frames[8][1]  # after the clients have trained, before the mean
    shown = panels[0].relived
    want = panels[0]._at(np.asarray(shown.places(1.0, 0.0)))
    for colour, point in zip(round_film.COLOURS, want, strict=False):
        np.testing.assert_allclose(at_end[colour], point, atol=1e-6)
    costs = run.cached(counterfactual, rounds=[1]).loss_cost.sel(round=1, part=["sampling", "local"]).values
    assert list(shown.costs.values()) == costs.tolist()
    low, high = min(0, *costs), max(0, *costs)
    np.testing.assert_allclose(bars[-1], costs / (high - low) * 0.5 * 480, rtol=1e-9)
    assert bars[0] == [0, 0]
    for widths, told in zip(bars, texts, strict=True):  # a number is shown where its bar is full, and is the cost
        numbers = [text for text in told if text.endswith(" nats")]
        assert numbers == ([f"{cost:+.3f} nats" for cost in costs] if widths == bars[-1] else [])
    ground = np.round(255 * np.array(to_rgb("#0e1116")))
    picture = frames[0][0]
    assert picture.shape == (270, 480, 3) and (abs(picture[0, -1] - ground) <= 1).all()
    assert 0.1 < (abs(picture.astype(float) - ground).max(2) > 40).mean() < 0.9


def _remember(method, made):
    def wrapped(self, *arguments):
        made.append(self)
        method(self, *arguments)

    return wrapped


def test_two_runs_of_one_cohort_stand_side_by_side_and_the_film_takes_eight_seconds(run, tmp_path):
    path = figures.film_round([run, run], tmp_path / "two.gif", round=1, points=4, rate=1, dpi=40)
    with Image.open(path) as picture:
        assert picture.size == (384, 216) and picture.n_frames == 8
        first = np.asarray(picture.convert("L"), dtype=float)
    assert [label for label, _ in relived_round.COSTS.values()] == ["sampling drift", "local steps"]
    halves = first[30:150, :192], first[30:150, 192:]
    assert np.abs(halves[0] - halves[1]).mean() < 12 and halves[0].std() > 10


def test_a_gif_at_the_usual_rate_takes_eight_seconds(run, tmp_path, monkeypatch):
    monkeypatch.setattr(round_film._Panel, "draw", lambda self, ax, share: ax.plot([0, 400 * share], [9, 9]))
    path = figures.film_round([run], tmp_path / "usual.gif", round=1, points=4, dpi=20)
    with Image.open(path) as picture:
        shown = [picture.seek(frame) or picture.info["duration"] for frame in range(picture.n_frames)]
    assert abs(sum(shown) - 8000) <= 20


def test_a_film_without_costs_says_why(run, monkeypatch):
    def refuse(*_, **__):
        raise LookupError("no data here")

    monkeypatch.setattr(relived_round, "counterfactual", refuse)
    monkeypatch.setattr(type(run), "cached", _uncached(type(run).cached))
    relived = relived_rounds([run], 2, 4, 100)[0]
    assert relived.costs == {} and relived.notes[-1] == "no costs: no data here"


def _uncached(method):
    def cached(self, function, **options):
        if function.__name__ == "refuse":
            return function(self, **options)
        return method(self, function, **options)

    return cached


def test_other_cohorts_and_other_numbers_are_refused_in_one_line(run, tmp_path, tmp_path_factory):
    other = tiny.trained(tmp_path_factory.mktemp("other"), "rounds=3", "seed=11", "clients.per_round=2")
    with pytest.raises(ValueError, match=r"has clients .* and .*; both films need one cohort"):
        figures.film_round([run, other], tmp_path / "f.gif", round=1)
    with pytest.raises(ValueError, match="3 runs are given"):
        figures.film_round([run] * 3, tmp_path / "f.gif")
    with pytest.raises(ValueError, match="points is 2"):
        figures.film_round([run], tmp_path / "f.gif", points=2)
    with pytest.raises(ValueError, match="rate is 0; give a number above 0"):
        figures.film_round([run], tmp_path / "f.gif", rate=0)
    with pytest.raises(ValueError, match="ground is 'grey'"):
        figures.film_round([run], tmp_path / "f.gif", ground="grey")


def test_clients_of_the_same_numbers_with_other_data_are_refused(tmp_path):
    """All clients take part, so that the cohorts have the same numbers."""
    whole = ("rounds=2", "clients.per_round=5", "clients.number=5")
    first, other = tiny.trained(tmp_path, *whole), tiny.trained(tmp_path, *whole, "seed=11")
    with pytest.raises(ValueError, match="hold other data"):
        figures.film_round([first, other], tmp_path / "f.gif", round=1)


def test_words_of_the_other_film_are_refused(run, fedscape):
    code, _, err = fedscape("film", run.folder, "-o", "r.gif", "--round", 1, "--frames", 3)
    assert (code, err.count("--rounds and --frames belong to a film over rounds")) == (2, 1)


def test_the_command_films_one_round(run, fedscape):
    code, out, err = fedscape("film", run.folder, "-o", "r.gif", "--round", 1, "--points", 3, "--rate", 0.25)
    assert (code, out) == (0, "r.gif\n"), err
    code, _, err = fedscape("film", run.folder, run.folder.parent, "-o", "f.gif", "--round", 99)
    assert code == 2
