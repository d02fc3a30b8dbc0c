"""The plane of largest variance of a trajectory."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from landscape.geometry.planes import project
from landscape.geometry.trajectory import principal_plane
from landscape.surfaces.surface import surface
from tests.oracles import cnn_task, mlp_task, quadratic, thetas


def _axes(sweep) -> torch.Tensor:
    return torch.from_numpy(sweep.axes) @ sweep.basis.double()


def _walk(count: int, d: int = 9, seed: int = 0) -> torch.Tensor:
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(count, d, generator=generator, dtype=torch.float64).cumsum(0)


def test_plane_is_that_of_a_dense_decomposition():
    models = _walk(7)
    sweep = principal_plane(models)
    away = models - models.mean(0)
    _, values, vectors = torch.linalg.svd(away, full_matrices=False)
    torch.testing.assert_close((_axes(sweep) @ vectors[:2].T).abs(), torch.eye(2, dtype=torch.float64))
    share = values.square() / values.square().sum()
    explained = [sweep.attrs["explained_alpha"], sweep.attrs["explained_beta"]]
    assert explained == pytest.approx(share[:2].tolist())
    left = project(models, sweep).distance.values
    assert (left**2).sum() == pytest.approx(float(values[2:].square().sum()))


def test_marks_stand_where_the_models_project_and_are_the_models():
    models = _walk(5)
    sweep = principal_plane(models, labels=list("abcde"))
    seen = project(models, sweep)
    np.testing.assert_allclose([mark.at for mark in sweep.marks], np.stack([seen.mark_alpha, seen.mark_beta], 1))
    torch.testing.assert_close(torch.from_numpy(sweep.mark_coefficients) @ sweep.basis, models)
    assert sweep.marks[0].at[0] < sweep.marks[-1].at[0]
    assert [mark.name for mark in sweep.marks] == list("abcde")


def test_planar_trajectory_lies_in_the_plane():
    frame = torch.linalg.qr(_walk(2, 30).T).Q.T
    places = torch.tensor([[0.0, 0], [4, 1], [5, -2], [9, 0.5], [1, 1]], dtype=torch.float64)
    models = 3 + places @ frame
    sweep = principal_plane(models)
    np.testing.assert_allclose(project(models, sweep).distance, 0, atol=1e-12)
    assert sweep.attrs["explained_alpha"] + sweep.attrs["explained_beta"] == pytest.approx(1)
    for i, j in itertools.combinations(range(5), 2):
        apart = np.hypot(*np.subtract(sweep.marks[i].at, sweep.marks[j].at))
        assert apart == pytest.approx(float((places[i] - places[j]).norm()))


def test_collinear_trajectory_is_one_axis_of_an_orthonormal_plane():
    a, b = _walk(2, 30)
    models = torch.stack([a + t * (b - a) for t in (0.0, 0.2, 1.5)])
    sweep = principal_plane(models)
    assert sweep.attrs["explained_alpha"] == pytest.approx(1)
    assert (sweep.attrs["explained_beta"], sweep.attrs["collinear"]) == (0, 1)
    torch.testing.assert_close(_axes(sweep) @ _axes(sweep).T, torch.eye(2, dtype=torch.float64), rtol=0, atol=1e-12)
    assert [mark.at[1] for mark in sweep.marks] == [0, 0, 0]
    length = float((b - a).norm())
    assert np.diff([mark.at[0] for mark in sweep.marks]) == pytest.approx([0.2 * length, 1.3 * length])
    assert np.ptp(sweep.coords["beta"]) == pytest.approx(np.ptp(sweep.coords["alpha"]))


def test_surface_of_a_quadratic_is_the_closed_form_on_an_unequal_grid():
    oracle = quadratic(5)
    models = thetas(oracle.task, 4, spread=1.0)
    sweep = principal_plane(models, points=(3, 5))
    ds = surface(oracle.task, sweep, metrics=("loss",))
    assert dict(ds.sizes) == {"alpha": 3, "beta": 5, "mark": 4}
    for alpha, beta in itertools.product(ds.alpha.values, ds.beta.values):
        theta = models.mean(0) + torch.tensor([alpha, beta]) @ _axes(sweep)
        assert float(ds.loss.sel(alpha=alpha, beta=beta)) == pytest.approx(float(oracle.loss(theta)), rel=1e-10)
    np.testing.assert_allclose(ds.mark_loss, [float(oracle.loss(model)) for model in models], rtol=1e-12)


def test_buffers_move_as_the_models_do():
    task = cnn_task(norm=True)
    models, size = thetas(task, 3), task.layout.buffer_size
    buffers = torch.rand(3, size, generator=torch.Generator().manual_seed(2), dtype=torch.float64) + 0.5
    sweep = principal_plane(models, buffers=buffers)  # three models: their plane holds them
    places = torch.tensor([[1, *mark.at] for mark in sweep.marks], dtype=torch.float64)
    torch.testing.assert_close(places @ sweep.basis[:3], models)
    torch.testing.assert_close(places @ sweep.buffers[:3], buffers)
    torch.testing.assert_close(sweep.buffers[3:], buffers)


def test_single_precision_stays_and_equal_models_are_refused():
    task = mlp_task(dtype=torch.float32)
    sweep = principal_plane(thetas(task, 4))
    assert sweep.basis.dtype == torch.float32
    torch.testing.assert_close(_axes(sweep) @ _axes(sweep).T, torch.eye(2, dtype=torch.float64), rtol=0, atol=1e-6)
    with pytest.raises(ValueError, match="3 models that are all equal"):
        principal_plane([task.theta] * 3)
