"""Planes and lines through any models of a run, by name."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch

import drift
import landscape
from drift.analyses.landscapes.named_models import model_names, named_models
from drift.analyses.selected_samples import selected_samples


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("runs")
    return tiny.trained(folder), tiny.trained(folder, "seed=6")


def test_names_mean_the_recorded_models(runs):
    run, other = runs
    record = run.round(1)
    client = int(record.ids[1])
    names = ["start", "end", "aggregate", f"client {client}", "round 0", f"{other.name}: round 2"]
    named = named_models(run, 1, names)
    mean = run.experiment.cohort_weights(record.sizes).to(record.clients) @ record.clients
    expected = [record.start, record.end, mean, record.clients[1], run.round(0).end, other.round(2).end]
    assert torch.equal(named.models, torch.stack(expected))
    assert model_names(run, 1) == ["start", "end", "aggregate", *[f"client {k}" for k in sorted(record.ids.tolist())]]


def test_a_plane_and_a_line_through_the_aggregate_of_the_cohort(runs):
    run, _ = runs
    record = run.round(1)
    first, second = (f"client {client}" for client in record.ids.tolist()[:2])
    weights = run.experiment.cohort_weights(record.sizes)
    found = drift.models_plane(run, round=1, models=["aggregate", first, second], points=5)
    assert found.mark.values.tolist() == ["aggregate", first, second, "mean"]
    shares = [weights, torch.eye(3)[0], torch.eye(3)[1]]
    rows = torch.stack([*shares, sum(shares) / 3]).double()
    expected = landscape.evaluate(run.task, record.clients, rows)["loss"]
    np.testing.assert_allclose(found.mark_loss, expected, rtol=1e-5)
    line = drift.models_line(run, round=1, models=[first, "aggregate"], points=5)
    np.testing.assert_allclose(line.mark_loss[1], expected[0], rtol=1e-5)
    with pytest.raises(ValueError, match=r"no model named 'mean'.*aggregate"):
        drift.models_plane(run, round=1, models=["mean", first, second], points=5)


def test_the_plane_of_three_clients_is_that_of_the_round(runs):
    run, _ = runs
    expected = drift.round_plane(run, round=1, points=5)
    found = drift.models_plane(run, round=1, models=expected.mark.values[:3].tolist(), points=5)
    for name in ("loss", "error", "mark_loss", "alpha", "beta"):
        np.testing.assert_array_equal(found[name], expected[name])


def test_the_line_is_that_of_the_globals(runs):
    run, _ = runs
    expected = drift.global_line(run, rounds=(0, 2), points=5)
    found = drift.models_line(run, round=2, models=["round 0", "end"], points=5)
    np.testing.assert_array_equal(found.loss, expected.loss)


def test_a_box_shows_a_part_of_the_same_plane(runs):
    run, _ = runs
    whole = drift.models_plane(run, round=1, points=5)
    box = [float(value) for value in (*whole.alpha[[1, 3]], *whole.beta[[0, 4]])]
    part = drift.models_plane(run, round=1, points=5, box=box)
    np.testing.assert_allclose(part.loss.values[[0, 2, 4]], whole.loss.values[1:4], rtol=1e-12)
    np.testing.assert_array_equal(part.mark_loss, whole.mark_loss)


def test_samples_of_a_client_and_a_selection(runs):
    run, _ = runs
    client = int(run.round(1).ids[0])
    own = selected_samples(run, 1, f"client {client}")
    assert torch.equal(own.targets, run.client_samples(client, 1).targets)
    few = selected_samples(run, 1, "test", 5)
    assert len(few) == 5 and torch.equal(few.targets, selected_samples(run, 2, "test", 5).targets)
    found = drift.models_plane(run, round=1, points=3, split=f"client {client}")
    overlay = drift.overlay_plane(run, round=1, points=3)
    np.testing.assert_allclose(found.loss, overlay.client_loss.sel(client=client), rtol=1e-12)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"models": ["end", "start", "client 99"]}, "no client 99"),
        ({"models": ["end", "start"]}, "three models"),
        ({"models": ["end", "start", "clientele"]}, "no model named 'clientele'"),
        ({"models": ["end", "start", "elsewhere: round 1"]}, "no run elsewhere"),
        ({"models": ["end", "start", "../x: round 1"]}, "no run"),
        ({"models": ["end", "round 2", "start"]}, "end and round 2 are the same model"),
        ({"split": "client 99"}, "no client 99"),
        ({"samples": 0}, "samples is 0"),
        ({"box": [0.0, 1.0]}, "lowest and highest alpha"),
    ],
)
def test_what_is_not_there_is_refused(runs, options, message):
    with pytest.raises((ValueError, LookupError), match=message):
        drift.models_plane(runs[0], points=3, **options)


def test_a_model_of_another_size_is_refused(runs, tmp_path_factory):
    run, _ = runs
    other = tiny.trained(run.folder.parent, "task.dataset_options.classes=5")
    with pytest.raises(ValueError, match="another model"):
        drift.models_plane(run, points=3, models=["end", "start", f"{other.name}: round 1"])
