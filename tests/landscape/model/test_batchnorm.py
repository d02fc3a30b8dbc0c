"""Batch statistics off the trained models: recomputed from a fixed sample, and stated in every result."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
import torch
import xarray as xr
from torch import Tensor

from landscape.geometry.curves import Curve, along
from landscape.geometry.directions import slice_along
from landscape.geometry.planes import plane
from landscape.geometry.simplex import points as simplex_points
from landscape.geometry.trajectory import principal_plane
from landscape.measures.ensemble import subset_errors
from landscape.model.batchnorm import calibration_of, recalibrate, recompute_statistics, usual_statistics
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.models.resnet8 import build
from landscape.surfaces.barrier import barrier, pairwise_barriers, simplex_losses
from landscape.surfaces.interpolated_surface import interpolated_surface
from landscape.surfaces.surface import surface
from landscape.sweep.evaluate import evaluate
from tests.oracles import thetas

pytestmark = pytest.mark.seconds

WEIGHTS = torch.tensor([2.0, 7.0, 1.0])


def resnet(norm: str = "batch") -> Task:
    """ResNet8 on 8 x 8 images of 3 classes, 23 training and 11 test samples, in float64."""
    generator = torch.Generator().manual_seed(0)
    torch.manual_seed(0)
    held = {
        split: Samples(
            torch.randn(count, 1, 8, 8, generator=generator, dtype=torch.float64),
            torch.randint(3, (count,), generator=generator),
        )
        for split, count in {"train": 23, "test": 11}.items()
    }
    return Task(build((1, 8, 8), 3, norm=norm).double(), held)


@pytest.fixture(scope="module")
def task() -> Task:
    return resnet()


@pytest.fixture(scope="module")
def models(task: Task) -> Tensor:
    return thetas(task, 3, spread=0.1)


@pytest.fixture(scope="module")
def buffers(task: Task, models: Tensor) -> Tensor:
    """Statistics that each model brings from its own training data: one of three unequal parts."""
    train = task.split("train")
    parts = (train[:4], train[4:14], train[14:])
    return torch.stack([recalibrate(task, model, None, part) for model, part in zip(models, parts, strict=True)])


def by_hand(task: Task, theta: Tensor, held: Tensor | None = None) -> float:
    """Test loss of a model with given statistics, by default those of all training samples."""
    held = recalibrate(task, theta, None, task.split("train")) if held is None else held
    test = task.split("test")
    return float(task.loss(task.outputs(theta, test, buffers=held), test.targets).mean())


def own_losses(task: Task, models: Tensor, buffers: Tensor) -> np.ndarray:
    return evaluate(task, models, torch.eye(len(models)), metrics=("loss",), buffers=buffers)["loss"].numpy()


def test_calibrated_are_the_statistics_of_the_samples_and_the_task_stays(task, models):
    before = task.buffers
    found = recalibrate(task, models[0], None, task.split("train"))
    flat = task.flat(models[0])
    flat.load(models[0])
    torch.testing.assert_close(found, recompute_statistics(flat, task.split("train")), rtol=0, atol=0)
    assert not torch.allclose(found, before)
    torch.testing.assert_close(task.buffers, before, rtol=0, atol=0)


def test_only_models_with_batch_statistics_recompute_them(task):
    assert usual_statistics(task) == "recomputed"
    assert usual_statistics(resnet("group")) is None


def test_calibration_samples_are_always_the_same(task):
    first, again = (calibration_of(task, "test", 7) for _ in range(2))
    assert torch.equal(first.inputs, again.inputs)
    assert len(first) == 7
    assert len(calibration_of(task, "test")) == 23  # of train, all that are there
    with pytest.raises(ValueError, match="give two or more"):
        calibration_of(task, "test", 1)


def test_line_and_pairs_recompute_between_the_models(task, models, buffers):
    a, b = models[:2]
    ds, old = (barrier(task, a, b, points=3, buffers=buffers[:2], statistics=how) for how in (None, "averaged"))
    middle, own = by_hand(task, (a + b) / 2), own_losses(task, models[:2], buffers[:2])
    assert float(ds.loss[1]) == pytest.approx(middle, rel=1e-10)
    assert float(ds.mark_loss[2]) == pytest.approx(middle, rel=1e-10)
    assert float(old.loss[1]) == pytest.approx(by_hand(task, (a + b) / 2, buffers[:2].mean(0)), rel=1e-10)
    assert abs(float(old.loss[1]) - middle) > 1e-3
    for found in (ds, old):
        np.testing.assert_array_equal(found.loss[[0, -1]], own)
        np.testing.assert_array_equal(found.mark_loss[:2], own)
    pairs = pairwise_barriers(task, models, points=3, buffers=buffers)
    averaged = pairwise_barriers(task, models, points=3, buffers=buffers, statistics="averaged")
    np.testing.assert_array_equal(pairs.mark_loss, own_losses(task, models, buffers))
    np.testing.assert_array_equal(pairs.mark_loss, averaged.mark_loss)
    assert float(pairs.midpoint[0, 1]) == pytest.approx(middle - own.mean(), rel=1e-9)
    assert abs(float(pairs.midpoint[0, 1] - averaged.midpoint[0, 1])) > 1e-3


def test_plane_of_a_trajectory_recomputes_its_centre_too(task, models, buffers):
    sweep = principal_plane(models[:2], points=3, buffers=buffers[:2])
    np.testing.assert_array_equal(sweep.coefficients[4], np.eye(5)[0])  # the mean is a member of the basis
    ds = surface(task, sweep)
    assert (ds.attrs["statistics"], ds.attrs["calibration"]) == ("recomputed", 23)
    known = [by_hand(task, row @ sweep.basis) for row in torch.from_numpy(sweep.coefficients)]
    np.testing.assert_allclose(ds.loss.values.ravel(), known, rtol=1e-9)
    own = [by_hand(task, model, held) for model, held in zip(models[:2], buffers, strict=False)]
    np.testing.assert_allclose(ds.mark_loss, own, rtol=1e-12)


def test_slices_around_one_model_keep_its_statistics(task, models, buffers):
    ds = surface(task, slice_along(models[0], models[1], points=3, buffers=buffers[0]))
    assert ds.attrs["statistics"] == "own"
    held = by_hand(task, models[0], buffers[0])
    assert float(ds.loss[1]) == pytest.approx(held, rel=1e-12)


def test_random_averages_recompute(task, models, buffers):
    ds = simplex_losses(task, models, count=3, seed=4, buffers=buffers)
    known = [by_hand(task, row @ models) for row in simplex_points(models, 3, 4)]
    np.testing.assert_allclose(ds.loss, known, rtol=1e-10)


@pytest.mark.parametrize("kind", ["bezier", "polygon"])  # the polygon meets its inner point at t = 0.5
def test_curves_recompute_everywhere_but_at_their_ends(task, models, buffers, kind):
    curve, ends = Curve(kind, models), buffers[[0, 2]]
    ds = along(task, curve, points=5, buffers=ends)
    rows = torch.from_numpy(curve.coefficients(ds.t.values)[1:-1])
    np.testing.assert_allclose(ds.loss[1:-1], [by_hand(task, row @ models) for row in rows], rtol=1e-10)
    assert float(ds.straight_loss[2]) == pytest.approx(by_hand(task, (models[0] + models[2]) / 2), rel=1e-10)
    own = [by_hand(task, models[0], ends[0]), by_hand(task, models[2], ends[1])]
    averaged = along(task, curve, points=5, buffers=ends, statistics="averaged")
    for found in (ds, averaged):
        np.testing.assert_allclose(found.loss[[0, -1]], own, rtol=1e-12)
        np.testing.assert_array_equal(found.loss[[0, -1]], found.straight_loss[[0, -1]])
    np.testing.assert_array_equal(averaged.loss[[0, -1]], ds.loss[[0, -1]])
    assert np.abs(averaged.loss - ds.loss)[1:-1].min() > 1e-4


def test_means_of_models_recompute_and_single_models_do_not(task, models, buffers):
    share = WEIGHTS.double() / WEIGHTS.sum()
    subsets = subset_errors(task, models, WEIGHTS, buffers=buffers)
    np.testing.assert_array_equal(subsets.loss.sel(models=1), own_losses(task, models, buffers))
    middle = by_hand(task, share @ models)
    assert float(subsets.loss.sel(models=3, draw=0)) == pytest.approx(middle, rel=1e-10)
    averaged = subset_errors(task, models, WEIGHTS, buffers=buffers, statistics="averaged")
    assert abs(float(averaged.loss.sel(models=3, draw=0)) - middle) > 1e-3


def test_models_without_statistics_of_their_own_get_recomputed_ones_too(task, models):
    models = models.theta
    pairs = pairwise_barriers(task, models[:2], points=3, statistics="recomputed")
    np.testing.assert_allclose(pairs.mark_loss, [by_hand(task, model) for model in models[:2]], rtol=1e-10)


def test_interpolated_surface_takes_what_surface_takes(task, models, buffers):
    sweep = plane(*models, points=(5, 7), buffers=buffers)
    asked = {
        "metrics": ("loss",),
        "groups": torch.tensor([0, 2, 2, 0, 2, 2, 2, 2, 0, 2, 2]),  # nobody is in group 1
        "statistics": "task",
    }
    whole, ds = surface(task, sweep, **asked), interpolated_surface(task, sweep, tolerance=1e-9, workers=2, **asked)
    assert not ds.interpolated.any()
    np.testing.assert_array_equal(ds.loss, whole.loss)
    assert ds.loss.dims == ("alpha", "beta", "group")
    assert (ds.attrs["statistics"], "calibration" in ds.attrs) == ("task", False)
    few = interpolated_surface(task, sweep, tolerance=1e-9, metrics=("loss",), calibration=7)
    assert (few.attrs["statistics"], few.attrs["calibration"]) == ("recomputed", 7)
    with pytest.raises(ValueError, match="infinite or NaN"):  # averaged variances are negative outside the triangle
        interpolated_surface(task, sweep, statistics="averaged")


ANALYSES: dict[str, Callable[..., xr.Dataset]] = {
    "barrier": lambda task, models, buffers, **asked: barrier(
        task, *models[:2], points=3, buffers=None if buffers is None else buffers[:2], **asked
    ),
    "pairwise": lambda task, models, buffers, **asked: pairwise_barriers(
        task, models[:2], points=3, buffers=None if buffers is None else buffers[:2], **asked
    ),
    "simplex": lambda task, models, buffers, **asked: simplex_losses(task, models, count=2, buffers=buffers, **asked),
    "along": lambda task, models, buffers, **asked: along(
        task, Curve("bezier", models), points=3, buffers=None if buffers is None else buffers[[0, 2]], **asked
    ),
    "subsets": lambda task, models, buffers, **asked: subset_errors(task, models, WEIGHTS, buffers=buffers, **asked),
}


@pytest.mark.parametrize("analysis", ANALYSES.values(), ids=ANALYSES)
def test_results_say_which_statistics_they_used(task, models, buffers, analysis):
    ds = analysis(task, models, buffers)
    assert (ds.attrs["statistics"], ds.attrs["calibration"]) == ("recomputed", 23)
    fewer = analysis(task, models, buffers, calibration=task.split("train")[:5])
    assert (fewer.attrs["statistics"], fewer.attrs["calibration"]) == ("recomputed", 5)
    assert not fewer.drop_attrs().equals(ds.drop_attrs())
    averaged = analysis(task, models, buffers, statistics="averaged")
    assert (averaged.attrs["statistics"], "calibration" in averaged.attrs) == ("averaged", False)
    own = analysis(task, models.theta, None, statistics="task")
    assert own.attrs["statistics"] == "task"
    with pytest.raises(ValueError, match="needs the buffers"):
        analysis(task, models.theta, None, statistics="averaged")
    with pytest.raises(ValueError, match="'mean'; accepted: recomputed, averaged, task"):
        analysis(task, models, buffers, statistics="mean")


@pytest.mark.parametrize("analysis", ANALYSES.values(), ids=ANALYSES)
def test_results_of_models_without_any_do_not(analysis):
    task = resnet("group")
    models = thetas(task, 3, spread=0.1)
    ds = analysis(task, models, None)
    assert not {"statistics", "calibration"} & set(ds.attrs)
    assert ds.identical(analysis(task, models, torch.zeros(3, 0), statistics="recomputed"))
