"""Smooth interpolants of planes: what is evaluated, what is stated, and how far it is from the full grid."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

from landscape.geometry.lines import line
from landscape.geometry.planes import plane
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.results import zarr_files
from landscape.surfaces.interpolated_surface import interpolated_surface, lattices
from landscape.surfaces.surface import surface
from tests.oracles import quadratic, thetas


def _classifier(seed):
    """Three noisy copies of a small classifier, and its task of two hundred samples."""
    torch.manual_seed(seed)
    model = nn.Sequential(nn.Linear(6, 24), nn.ReLU(), nn.Linear(24, 4))
    task = Task(model, {"test": Samples(torch.randn(200, 6), torch.randint(4, (200,)))})
    three = task.theta + (0.3 + 0.1 * seed) * torch.randn(3, task.layout.size)
    return task, plane(*three, points=(41, 33), margin=0.3)


def _away(ds, full):
    """Largest difference of the log losses, as a share of the range of the full surface."""
    here, there = np.log(ds.loss.values), np.log(full.loss.values)
    return np.abs(here - there).max() / np.ptp(there)


@pytest.mark.parametrize("shape", [(41, 41), (33, 17), (21, 9), (5, 5), (7, 40)])
def test_lattices_are_nested_begin_with_25_points_and_end_with_all(shape):
    masks = list(lattices(shape))
    assert masks[0].sum() == 25 and masks[-1].all()
    assert all(mask[0, 0] and mask[-1, -1] and mask[0, -1] for mask in masks)
    for coarse, fine in pairwise(masks):
        assert (coarse & fine == coarse).all() and fine.sum() > coarse.sum()


def test_the_error_is_below_the_stated_one_and_the_tolerance_on_many_planes():
    for seed in range(6):
        task, sweep = _classifier(seed)
        full = surface(task, sweep)
        ds = interpolated_surface(task, sweep, known=full)
        evaluated = ~ds.interpolated.values
        assert ds.attrs["evaluated"] == evaluated.sum() <= 0.22 * evaluated.size
        assert ds.attrs["converged"] == 1
        assert _away(ds, full) <= float(ds.loss_interpolation_share) <= 0.01
        np.testing.assert_array_equal(ds.loss.values[evaluated], full.loss.values[evaluated])
        np.testing.assert_array_equal(ds.mark_loss, full.mark_loss)
        assert np.abs(ds.loss - full.loss).max() <= ds.loss_interpolation_worst
        assert ds.attrs["error_interpolated_in"] in ("log", "linear")


def test_the_stated_error_is_that_of_points_that_were_not_used():
    task, sweep = _classifier(1)
    full = surface(task, sweep)
    coarse, fine = list(lattices((41, 33)))[:2]
    before = interpolated_surface(task, sweep, budget=int(coarse.sum()))
    after = interpolated_surface(task, sweep, budget=int(fine.sum()))
    fresh = fine & ~coarse
    away = (before.loss - full.loss).values[fresh]
    assert float(after.loss_interpolation_worst) == pytest.approx(np.abs(away).max(), rel=1e-9)
    assert float(after.loss_interpolation_error) == pytest.approx(np.sqrt(np.square(away).mean()), rel=1e-9)
    assert np.isnan(before.loss_interpolation_share) and before.attrs["converged"] == 0
    assert before.attrs["evaluated"] == 25


def test_quadratics_are_met_exactly_where_the_loss_is_not_positive_everywhere():
    oracle = quadratic(5)
    shifted = Task(
        oracle.task.model, oracle.task.samples, loss=lambda *given: oracle.task.loss(*given) - 50, metrics={}
    )
    sweep = plane(*thetas(oracle.task, 3, spread=1.0), points=(17, 33))
    ds = interpolated_surface(shifted, sweep)
    assert ds.attrs["loss_interpolated_in"] == "linear" and ds.loss.min() < 0
    assert ds.attrs["evaluated"] == 81  # a polynomial of degree two is in the interpolant
    np.testing.assert_allclose(ds.loss, surface(shifted, sweep).loss, atol=1e-8)


def test_previews_begin_after_25_points_and_cover_the_plane():
    task, sweep = _classifier(2)
    seen = []
    ds = interpolated_surface(task, sweep, preview=seen.append, tolerance=0.002)
    assert [one.attrs["evaluated"] for one in seen] == [25, 41, 81, 145, 289][: len(seen)] and len(seen) > 1
    assert all(np.isfinite(one.loss).all() and one.attrs["converged"] == 0 for one in seen)
    full = surface(task, sweep)
    assert _away(ds, full) < _away(seen[0], full) < 0.2


def test_a_stopped_computation_goes_on_with_the_same_bits_and_survives_storage(tmp_path):
    task, sweep = _classifier(3)
    seen = []
    whole = interpolated_surface(task, sweep, preview=seen.append)
    zarr_files.save(seen[0], tmp_path / "a.zarr")
    again = interpolated_surface(task, sweep, known=zarr_files.load(tmp_path / "a.zarr"))
    assert again.identical(whole)


def test_groups_without_samples_stay_missing():
    task, sweep = _classifier(0)
    groups = torch.arange(200) % 2 * 2
    ds = interpolated_surface(task, sweep, metrics=("loss",), groups=groups, budget=81)
    assert np.isnan(ds.loss.sel(group=1)).all()
    assert np.isfinite(ds.loss.sel(group=[0, 2])).all()


def test_what_cannot_be_interpolated_is_refused():
    oracle = quadratic(5)
    a, b, c = thetas(oracle.task, 3, spread=1.0)
    with pytest.raises(ValueError, match="full grids of two"):
        interpolated_surface(oracle.task, line(a, b, points=9))
    with pytest.raises(ValueError, match="needs 5 per axis"):
        interpolated_surface(oracle.task, plane(a, b, c, points=(4, 9)))
    with pytest.raises(ValueError, match="the first lattice takes 25"):
        interpolated_surface(oracle.task, plane(a, b, c, points=9), budget=20)
    with pytest.raises(ValueError, match="share of the range"):
        interpolated_surface(oracle.task, plane(a, b, c, points=9), tolerance=0)
    infinite = lambda *pair: oracle.task.loss(*pair) / 0  # noqa: E731
    endless = Task(oracle.task.model, oracle.task.samples, loss=infinite, metrics={})
    with pytest.raises(ValueError, match="is infinite"):
        interpolated_surface(endless, plane(a, b, c, points=9))
