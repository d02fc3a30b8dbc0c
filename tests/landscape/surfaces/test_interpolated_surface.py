"""Smooth interpolants of planes: what is evaluated, what is stated, and how far it is from the full grid."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import nn

import drift
from drift.analyses.landscapes.sweeps import client_sweep
from landscape.geometry.lines import line
from landscape.geometry.planes import plane
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.results import netcdf_files
from landscape.surfaces.interpolated_surface import interpolated_surface
from landscape.surfaces.refinement import lattices
from landscape.surfaces.sampled_surface import sampled_surface
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


@pytest.mark.seconds
def test_the_error_is_below_the_stated_one_and_the_tolerance_on_many_planes():
    for seed in range(3):
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


@pytest.mark.slow
def test_a_fifth_of_the_points_is_enough_on_ten_planes_through_clients(tmp_path):
    run = drift.simulate("digits-shards2", "rounds=10", runs=tmp_path)
    for index in run.kept("clients"):
        _, _, sweep = client_sweep(run, index, None, points=41, margin=0.3)
        full = surface(run.task, sweep, metrics=("loss",))
        ds = interpolated_surface(run.task, sweep, known=full, metrics=("loss",))
        assert ds.attrs["evaluated"] <= 0.2 * full.loss.size and _away(ds, full) < 0.01


@pytest.mark.seconds
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


def test_a_met_tolerance_names_the_metric_that_it_is_about():
    task, sweep = _classifier(1)
    by_loss, by_error = (interpolated_surface(task, sweep, by=name, tolerance=0.5) for name in ("loss", "error"))
    for name, ds in (("loss", by_loss), ("error", by_error)):
        assert (ds.attrs["tolerance_of"], ds.attrs["converged"]) == (name, 1)
        assert float(ds[f"{name}_interpolation_share"]) <= 0.5


def _noise(x, y):
    return torch.frac(torch.sin(127.1 * x + 311.7 * y) * 43758.5453)


def _bowl(x, y):
    return 1 + x**2 + 0.5 * y**2


HOSTILE = {
    "a bowl": _bowl,
    "a narrow ridge between the lattice columns": lambda x, y: _bowl(x, y) + 5 * torch.exp(-(((x - 0.13) / 0.04) ** 2)),
    "a narrow diagonal ridge": lambda x, y: _bowl(x, y) + 5 * torch.exp(-(((x - 0.7 * y - 0.13) / 0.04) ** 2)),
    "a spike on a few points": lambda x, y: _bowl(x, y) + 5 * torch.exp(-((x - 0.13) ** 2 + (y - 0.28) ** 2) / 4e-4),
    "a kink": lambda x, y: 1 + (x - 0.13 + 0.4 * y).abs(),
    "a step": lambda x, y: 1 + 9 * (x - 0.131 + 0.4 * y > 0).double(),
    "noise": lambda x, y: _bowl(x, y) + 0.3 * _noise(x, y),
    "waves that vanish on the lattice": lambda x, y: 2 + torch.sin(4 * torch.pi * x) * torch.sin(4 * torch.pi * y),
    "values of both signs": lambda x, y: torch.sin(5 * x) * y,
    "tiny values": lambda x, y: 1e-6 * _bowl(x, y),
    "huge values": lambda x, y: 1e6 * (1 + (x - 0.13).abs()),
}


class _Point(nn.Module):
    """A model whose parameters are a place on the plane."""

    def __init__(self):
        super().__init__()
        self.place = nn.Parameter(torch.zeros(2, dtype=torch.float64))

    def forward(self, inputs):
        return self.place.expand(len(inputs), 2)


def _on_the_square(height):
    """A task whose loss at (x, y) is height(x, y), and the square from -1 to 1."""
    one = {"test": Samples(torch.zeros(1, 1), torch.zeros(1))}
    task = Task(_Point(), one, loss=lambda outputs, _: height(outputs[:, 0], outputs[:, 1]), metrics={})
    corners = torch.tensor([[-1, -1], [1, -1], [-1, 1]], dtype=torch.float64)
    return task, plane(*corners, points=33, margin=0.0)


@pytest.mark.seconds
@pytest.mark.parametrize("tolerance", [0.01, pytest.param(0.1, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", HOSTILE)
def test_of_any_surface_at_most_a_tenth_is_further_off_than_stated(name, tolerance):
    task, sweep = _on_the_square(HOSTILE[name])
    side = np.linspace(-1, 1, 33)
    x, y = (torch.from_numpy(part).ravel() for part in np.meshgrid(side, side, indexing="ij"))
    exact = HOSTILE[name](x, y).reshape(33, 33).numpy()
    ds = interpolated_surface(task, sweep, tolerance=tolerance)
    evaluated = ~ds.interpolated.values
    np.testing.assert_allclose(ds.loss.values[evaluated], exact[evaluated], rtol=1e-9, atol=1e-12)
    if evaluated.all():
        assert np.isnan(ds.loss_interpolation_share) and ds.attrs["converged"] == 1
        return
    scale = np.log if ds.attrs["loss_interpolated_in"] == "log" else np.asarray
    away, logs = np.abs(ds.loss.values - exact)[~evaluated], np.abs(scale(ds.loss.values) - scale(exact))[~evaluated]
    share = float(ds.loss_interpolation_share)
    assert share <= tolerance and ds.attrs["converged"] == 1 and ds.attrs["random_points"] == 32
    assert np.mean(logs / np.ptp(scale(exact)) > 1.05 * share) <= 0.09
    assert np.mean(away > 1.05 * float(ds.loss_interpolation_worst)) <= 0.09
    if name != "a spike on a few points":
        assert np.sqrt(np.square(away).mean()) <= 3 * float(ds.loss_interpolation_error)


@pytest.mark.seconds
def test_fractions_stay_fractions_and_classes_have_their_own_errors():
    task, sweep = _on_the_square(_bowl)

    def steps(outputs, targets):
        x = outputs[:, :1]
        return torch.cat([(x > 0.131).double(), (x > -0.4).double() / 2, 0 * x + 0.25], dim=1)

    task = replace(task, metrics={"class_error": steps})
    ds = interpolated_surface(task, sweep, budget=145)
    full = surface(task, sweep)
    assert ds.interpolated.any() and ds.class_error.min() >= 0 and ds.class_error.max() <= 1
    assert ds.class_error_interpolation_share.dims == ds.class_error_interpolation_worst.dims == ("class",)
    assert ds.class_error_interpolation_share.values[2] == 0 < ds.class_error_interpolation_share.values[:2].min()
    away = np.abs(ds.class_error - full.class_error).values[ds.interpolated.values]
    np.testing.assert_allclose(away[:, 2], 0, atol=1e-12)


def test_a_surface_with_values_that_are_not_finite_is_refused():
    for height in (
        lambda x, y: torch.where(x > 0.4, torch.nan, _bowl(x, y)),
        lambda x, y: torch.where(x > 0.4, torch.inf, _bowl(x, y)),
        lambda x, _: torch.full_like(x, torch.nan),
    ):
        with pytest.raises(ValueError, match=r"infinite or NaN, .*; evaluate every point"):
            interpolated_surface(*_on_the_square(height))


@pytest.mark.seconds
def test_subsets_of_samples_see_a_ridge_between_the_lattice_columns_too():
    torch.manual_seed(0)
    ridge, samples = HOSTILE["a narrow ridge between the lattice columns"], torch.rand(400, 1, dtype=torch.float64)

    def loss(outputs, targets):
        return ridge(outputs[:, 0], outputs[:, 1]) * (1 + 0.1 * targets)

    task = Task(_Point(), {"test": Samples(samples, samples[:, 0])}, loss=loss, metrics={})
    sweep = _on_the_square(ridge)[1]
    ds = sampled_surface(task, sweep, samples=40)
    exact = surface(task, sweep).loss.values
    away = np.abs(np.log(ds.loss.values) - np.log(exact)) / np.ptp(np.log(exact))
    assert np.mean(away > 0.02) < 0.09


def test_quadratics_are_met_exactly_where_the_loss_is_not_positive_everywhere():
    oracle = quadratic(5)
    shifted = Task(
        oracle.task.model, oracle.task.samples, loss=lambda *given: oracle.task.loss(*given) - 50, metrics={}
    )
    sweep = plane(*thetas(oracle.task, 3, spread=1.0), points=(17, 33))
    ds = interpolated_surface(shifted, sweep)
    assert ds.attrs["loss_interpolated_in"] == "linear" and ds.loss.min() < 0
    assert ds.attrs["evaluated"] == 41 + 32  # a polynomial of degree two is in the interpolant
    np.testing.assert_allclose(ds.loss, surface(shifted, sweep).loss, atol=1e-8)


@pytest.mark.seconds
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
    netcdf_files.save(seen[0], tmp_path / "a.nc")
    again = interpolated_surface(task, sweep, known=netcdf_files.load(tmp_path / "a.nc"))
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
    with pytest.raises(ValueError, match="is infinite or NaN"):
        interpolated_surface(endless, plane(a, b, c, points=9))
