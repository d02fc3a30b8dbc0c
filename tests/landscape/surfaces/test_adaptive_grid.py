"""Surfaces that are evaluated where they bend and interpolated where they do not."""

from __future__ import annotations

import sys
from dataclasses import replace

import numpy as np
import pytest
import torch

from landscape.geometry.lines import line
from landscape.geometry.planes import plane
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.results import zarr_files
from landscape.surfaces.adaptive_grid import adaptive_surface
from landscape.surfaces.surface import surface
from tests.oracles import mlp_task, quadratic, thetas


@pytest.fixture(scope="module")
def bowl():
    oracle = quadratic(5)
    sweep = plane(*thetas(oracle.task, 3, spread=1.0), points=(33, 17))
    return oracle.task, sweep, surface(oracle.task, sweep, metrics=("loss",))


def test_a_quadratic_is_met_within_the_stated_error_from_fewer_points(bowl):
    task, sweep, full = bowl
    ds = adaptive_surface(task, sweep, metrics=("loss",), tolerance=0.03)
    evaluated = ~ds.interpolated.values
    assert ds.attrs["evaluated"] == evaluated.sum() < 0.6 * evaluated.size
    np.testing.assert_array_equal(ds.loss.values[evaluated], full.loss.values[evaluated])
    away = np.abs(ds.loss.values - full.loss.values)[~evaluated]
    assert away.max() <= 2 * float(ds.loss_interpolation_worst)
    assert np.sqrt((away**2).mean()) == pytest.approx(float(ds.loss_interpolation_error), rel=0.5)
    assert ds.loss_interpolation_error.attrs["units"] == full.loss.attrs["units"]
    assert ds.attrs["unresolved"] == 0
    np.testing.assert_array_equal(ds.mark_loss, full.mark_loss)


def test_the_estimate_with_every_point_held_out_is_the_error_itself(bowl):
    task, sweep, full = bowl
    ds = adaptive_surface(task, sweep, metrics=("loss",), held_out=0)
    free = ds.interpolated.values
    assert np.isnan(ds.loss_interpolation_error)
    away = (ds.loss.values - full.loss.values)[free]
    judged = adaptive_surface(task, sweep, metrics=("loss",), held_out=free.sum())
    assert float(judged.loss_interpolation_error) == pytest.approx(np.sqrt((away**2).mean()), rel=1e-12)
    assert float(judged.loss_interpolation_worst) == pytest.approx(np.abs(away).max(), rel=1e-12)
    np.testing.assert_array_equal(judged.loss, full.loss)
    assert not judged.interpolated.any()


def test_bilinear_losses_need_no_more_than_the_first_test_of_each_cell():
    def product(outputs, targets):
        return 5 + outputs[:, 0] * outputs[:, 1]

    model = torch.nn.Linear(1, 2, bias=False, dtype=torch.float64)
    task = Task(model, {"test": Samples(torch.ones(3, 1).double(), torch.zeros(3))}, loss=product, metrics={})
    corners = torch.tensor([[0.0, 0], [1, 0], [0, 1]], dtype=torch.float64)
    sweep = plane(*corners, points=(17, 33))
    ds = adaptive_surface(task, sweep, metrics=("loss",), tolerance=1e-9, held_out=7)
    assert ds.attrs["evaluated"] == 9 * 17 + 7
    np.testing.assert_allclose(ds.loss, surface(task, sweep, metrics=("loss",)).loss, rtol=1e-12)
    assert float(ds.loss_interpolation_worst) < 1e-12


def test_points_gather_where_the_loss_bends():
    def ridge(outputs, targets):
        return 1 + 10 * torch.exp(-((outputs[:, 0] - 0.8) ** 2) * 400)

    model = torch.nn.Linear(1, 2, bias=False, dtype=torch.float64)
    task = Task(model, {"test": Samples(torch.ones(2, 1).double(), torch.zeros(2))}, loss=ridge, metrics={})
    corners = torch.tensor([[0.0, 0], [1, 0], [0, 1]], dtype=torch.float64)
    ds = adaptive_surface(task, plane(*corners, points=33), metrics=("loss",), held_out=0)
    counts = (~ds.interpolated).sum("beta")
    near = np.abs(ds.alpha - 0.8) < 0.1
    assert float(counts[near].mean()) > 2 * float(counts[~near].mean())


def test_the_budget_is_kept_and_what_it_left_is_counted(bowl):
    task, sweep, _ = bowl
    ds = adaptive_surface(task, sweep, metrics=("loss",), tolerance=1e-6, budget=150, held_out=10)
    assert 120 < ds.attrs["evaluated"] <= 150
    assert ds.attrs["held_out"] == 10
    assert ds.attrs["unresolved"] > 0
    assert ds.loss.notnull().all()
    with pytest.raises(ValueError, match="raise the budget to 55 or more"):
        adaptive_surface(task, sweep, budget=54, held_out=10)


def test_stopped_at_any_checkpoint_it_resumes_to_the_same_bits(monkeypatch, tmp_path):
    monkeypatch.setattr(sys.modules["landscape.surfaces.surface"], "CHECKPOINT_SECONDS", -1.0)
    monkeypatch.setattr("landscape.surfaces.adaptive_grid.BATCH", 3)
    task, kept = mlp_task(dtype=torch.float32), []
    sweep = plane(*thetas(task, 3), points=(17, 9))
    whole = adaptive_surface(task, sweep, tolerance=1e-3, held_out=4, checkpoint=kept.append)
    assert len(kept) > 4
    for stopped in (kept[0], kept[len(kept) // 2], kept[-1]):
        zarr_files.save(stopped, tmp_path / "partial.zarr")
        known = zarr_files.load(tmp_path / "partial.zarr")
        assert adaptive_surface(task, sweep, tolerance=1e-3, held_out=4, known=known).identical(whole)
    zarr_files.save(whole, tmp_path / "whole.zarr")
    asked = []
    monkeypatch.setattr(
        sys.modules["landscape.surfaces.surface"], "evaluate", lambda *args, **options: asked.append(args)
    )
    known = zarr_files.load(tmp_path / "whole.zarr")
    assert adaptive_surface(task, sweep, tolerance=1e-3, held_out=4, known=known).identical(whole)
    assert not asked


def test_losses_beyond_numbers_do_not_swallow_the_budget():
    def wall(outputs, targets):
        return torch.where(outputs[:, 0] > 0.5, torch.inf, 1.0).to(outputs)

    model = torch.nn.Linear(1, 2, bias=False, dtype=torch.float64)
    task = Task(model, {"test": Samples(torch.ones(2, 1).double(), torch.zeros(2))}, loss=wall, metrics={})
    corners = torch.tensor([[0.0, 0], [1, 0], [0, 1]], dtype=torch.float64)
    ds = adaptive_surface(task, plane(*corners, points=33), metrics=("loss",), held_out=0)
    assert ds.attrs["evaluated"] < 0.7 * ds.loss.size
    assert bool(np.isinf(ds.loss.sel(alpha=slice(0.6, None))).all())
    assert bool((ds.loss.sel(alpha=slice(None, 0.4)) == 1).all())


def test_sweeps_that_cannot_be_halved_are_refused():
    task = mlp_task()
    models = thetas(task, 3)
    with pytest.raises(ValueError, match=r"grid has 22 x 21 points; .* such as 33 or 41"):
        adaptive_surface(task, plane(*models, points=(22, 21)))
    with pytest.raises(ValueError, match="interpolation is for full grids of two"):
        adaptive_surface(task, line(*models[:2]))
    sweep = plane(*models, points=5)
    with pytest.raises(ValueError, match="interpolation is for full grids of two"):
        adaptive_surface(task, replace(sweep, inside=np.ones((5, 5), dtype=bool)))
    with pytest.raises(ValueError, match="tolerance is 0"):
        adaptive_surface(task, sweep, tolerance=0)
    with pytest.raises(ValueError, match="no metric named 'height' to refine by; evaluated: loss, error"):
        adaptive_surface(task, sweep, by="height")
