"""Landscapes of a run: what is evaluated is what was recorded."""

import numpy as np
import pytest
import torch
from torch import nn

from drift.analyses import per_round
from drift.analyses.curvature import eigenvalues
from drift.analyses.landscapes import planes
from drift.config.load import read, validated
from drift.runs.run import Run
from drift.simulation.simulate import simulate
from landscape.sweep.evaluate import evaluate

TINY = {
    "rounds": 6,
    "seed": 3,
    "task": {"dataset": "digits", "model": "mlp", "model_options": {"hidden": [5]}, "train_samples": 150},
    "clients": {"number": 6, "per_round": 4, "partition": "dirichlet", "concentration": 0.5, "variant": "plain"},
    "local": {"lr": 0.1, "epochs": 2, "batch": 8},
}


def normalised(shape, classes):
    """A model with batch statistics."""
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), 5), nn.BatchNorm1d(5), nn.Linear(5, classes))


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    return simulate(validated(TINY), runs=tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def statistical(tmp_path_factory) -> Run:
    """A run whose model has batch statistics."""
    task = {"dataset": "digits", "model": f"{__name__}:normalised", "train_samples": 150}
    return simulate(validated({**TINY, "task": task}), runs=tmp_path_factory.mktemp("statistical"))


def losses(run: Run, models: torch.Tensor, buffers: torch.Tensor, split: str = "test") -> np.ndarray:
    held = buffers if buffers.shape[1] else None
    return evaluate(run.task, models, torch.eye(len(models)), split=split, buffers=held)["loss"].numpy()


@pytest.mark.parametrize("which", ["run", "statistical"])
def test_marks_of_a_round_plane_are_the_recorded_clients(which, request):
    run = request.getfixturevalue(which)
    record = run.round(2)
    chosen = record.ids.tolist()[1:4]
    ds = run.cached(planes.round_plane, round=2, clients=chosen, points=3)
    rows = [record.ids.tolist().index(client) for client in chosen]
    expected = losses(run, record.clients[rows], record.client_buffers[rows])
    np.testing.assert_allclose(ds.mark_loss[:3], expected, rtol=1e-5)
    assert [str(name) for name in ds.mark.values[:3]] == [f"client {client}" for client in chosen]
    assert ds.attrs["round"] == 2
    assert bool(np.isfinite(ds.loss).all())


def test_the_last_round_is_meant_by_default_and_unknown_clients_are_refused(run):
    assert planes.round_plane(run, points=2).attrs["round"] == 5
    with pytest.raises(ValueError, match="name three of them"):
        planes.round_plane(run, clients=[0, 1, 99])
    with pytest.raises(LookupError, match=r"has no round 17; it has 0 to 5"):
        planes.round_plane(run, round=17)


@pytest.mark.parametrize("which", ["run", "statistical"])
def test_global_planes_and_lines_pass_through_the_global_models(which, request):
    run = request.getfixturevalue(which)
    models = run.models([3, 4, 5])
    buffers = torch.stack([run.round(index).end_buffers for index in (3, 4, 5)])
    expected = losses(run, models, buffers)
    plane = run.cached(planes.global_plane, points=3)
    np.testing.assert_allclose(plane.mark_loss[:3], expected, rtol=1e-5)
    line = run.cached(planes.global_line, rounds=(3, 5), points=5)
    np.testing.assert_allclose(line.mark_loss[:2], expected[[0, 2]], rtol=1e-5)
    assert (line.attrs["first"], line.attrs["second"]) == (3, 5)
    np.testing.assert_allclose(plane.mark_loss[2], run.round(5).metrics["loss"], rtol=1e-5)


def test_the_average_line_ends_at_the_mean_of_the_last_models(run):
    line = run.cached(planes.average_line, window=3, points=5)
    mean = run.models([3, 4, 5]).mean(0)
    np.testing.assert_allclose(line.mark_loss[1], losses(run, mean[None], torch.zeros(1, 0))[0], rtol=1e-5)


def test_the_average_line_of_ima_starts_at_the_aggregate(tmp_path):
    experiment = read(validated(TINY), "method.name=ima", "method.window=2", "method.start=0.5")
    run = simulate(experiment, runs=tmp_path)
    record = run.round(-1)
    line = planes.average_line(run, window=2, points=3)
    both = torch.stack([record.extras["aggregate"], record.end])
    np.testing.assert_allclose(line.mark_loss[:2], losses(run, both, torch.zeros(2, 0)), rtol=1e-5)


def test_only_successive_models_are_averaged(tmp_path):
    keep = {"globals": "at 0 2 4 5", "clients": "none"}
    run = simulate(validated({**TINY, "keep": keep}), runs=tmp_path)
    assert planes.average_line(run, points=3).attrs["window"] == 2
    sparse = simulate(validated({**TINY, "keep": {**keep, "globals": "every 2"}}), runs=tmp_path)
    with pytest.raises(ValueError, match="two successive ones"):
        planes.average_line(sparse)


@pytest.mark.parametrize("which", ["run", "statistical"])
def test_the_slice_along_the_sharpest_direction_bends_as_the_eigenvalue_says(which, request):
    run = request.getfixturevalue(which)
    ds = run.cached(eigenvalues.eigen_slice, radius=0.02, points=5, split="test")
    record = run.round(-1)
    level = losses(run, record.end[None], record.end_buffers[None])[0]
    np.testing.assert_allclose(ds.loss.sel(t=0, method="nearest"), level, rtol=1e-5)
    step = float(ds.t[1] - ds.t[0])
    left, middle, right = ds.loss.values[1:4]
    if which == "statistical":  # no ReLU: the second difference is not disturbed by kinks
        np.testing.assert_allclose((left - 2 * middle + right) / step**2, float(ds.eigenvalue), rtol=0.05)


def test_eigenvalues_over_rounds_and_their_ratio(run):
    ds = run.cached(eigenvalues.eigen_rounds, rounds=[0, 5], k=3, split="test")
    assert ds.eigenvalue.dims == ("round", "rank")
    np.testing.assert_allclose(ds.ratio, ds.eigenvalue.isel(rank=0) / ds.eigenvalue.isel(rank=2))


def test_spread_keeps_both_ends():
    assert per_round.evenly_spaced(list(range(10, 20)), 4) == [10, 13, 16, 19]
    assert per_round.evenly_spaced([7], 3) == [7]
    assert per_round.evenly_spaced([], 3) == []
