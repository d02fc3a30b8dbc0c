"""The plane through three models."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from landscape.geometry.planes import plane, project
from landscape.surfaces.surface import surface
from tests.oracles import cnn_task, mlp_task, quadratic, thetas


def _at(sweep, *place: float) -> torch.Tensor:
    return torch.from_numpy(sweep.origin + np.array(place) @ sweep.axes) @ sweep.basis.double()


def test_coordinates_of_the_models_reproduce_them():
    models = thetas(mlp_task(), 3)
    sweep = plane(*models)
    for mark, model in zip(sweep.marks, [*models, models.mean(0)], strict=True):
        torch.testing.assert_close(_at(sweep, *mark.at), model, rtol=0, atol=1e-14)
    assert sweep.marks[3].at == pytest.approx(np.mean([mark.at for mark in sweep.marks[:3]], axis=0))


def test_distances_on_the_plane_are_distances_between_models():
    models = thetas(mlp_task(), 3)
    marks = plane(*models).marks
    for i, j in itertools.combinations(range(3), 2):
        assert np.hypot(*np.subtract(marks[i].at, marks[j].at)) == pytest.approx((models[i] - models[j]).norm().item())


def test_first_model_is_the_origin_and_second_lies_on_the_first_axis():
    models = thetas(mlp_task(), 3)
    marks = plane(*models).marks
    assert marks[0].at == (0, 0)
    assert marks[1].at == pytest.approx(((models[1] - models[0]).norm().item(), 0))
    assert marks[2].at[1] > 0


def test_axes_are_orthonormal():
    sweep = plane(*thetas(mlp_task(), 3))
    axes = torch.from_numpy(sweep.axes) @ sweep.basis
    torch.testing.assert_close(axes @ axes.T, torch.eye(2, dtype=torch.float64), rtol=0, atol=1e-13)


def test_surface_of_a_quadratic_equals_the_closed_form_on_an_unequal_grid():
    oracle = quadratic(5)
    sweep = plane(*thetas(oracle.task, 3, spread=1.0), points=(3, 5))
    ds = surface(oracle.task, sweep, metrics=("loss",))
    assert dict(ds.sizes) == {"alpha": 3, "beta": 5, "mark": 4}
    for alpha, beta in itertools.product(ds.alpha.values, ds.beta.values):
        value = float(ds.loss.sel(alpha=alpha, beta=beta))
        assert value == pytest.approx(oracle.loss(_at(sweep, alpha, beta)).item(), rel=1e-11)


def test_margin_goes_past_the_box_on_each_side():
    sweep = plane(*thetas(mlp_task(), 3), margin=0.25, points=(4, 7))
    for index, values in enumerate(sweep.coords.values()):
        places = [mark.at[index] for mark in sweep.marks]
        width = max(places) - min(places)
        assert values[0] == pytest.approx(min(places) - 0.25 * width)
        assert values[-1] == pytest.approx(max(places) + 0.25 * width)


def test_a_symmetric_box_is_the_least_square_around_the_mean():
    models = thetas(mlp_task(), 3)
    sweep = plane(*models, margin=0.25, points=5, box="symmetric")
    alpha, beta = sweep.coords.values()
    places = np.array([mark.at for mark in sweep.marks])
    reach = np.abs(places - places[3]).max()
    assert alpha[-1] - alpha[0] == pytest.approx(beta[-1] - beta[0])
    assert (alpha[2], beta[2]) == pytest.approx(tuple(places[3]))
    assert alpha[-1] - alpha[2] == pytest.approx(1.5 * reach)
    with pytest.raises(ValueError, match="box is 'round'"):
        plane(*models, box="round")


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_marks_equal_the_models_losses(dtype):
    task = cnn_task(dtype=dtype)
    models = thetas(task, 3)
    ds = surface(task, plane(*models, points=2, labels=("x", "y", "z")))
    targets = task.split("test").targets
    for index, model in enumerate([*models, models.mean(0)]):
        expected = torch.nn.functional.cross_entropy(task.outputs(model, "test"), targets).item()
        assert float(ds.mark_loss[index]) == pytest.approx(expected, rel=1e-5 if dtype == torch.float32 else 1e-12)
    assert ds.mark.values.tolist() == ["x", "y", "z", "mean"]


def test_collinear_models_get_an_orthogonal_random_direction():
    task = mlp_task()
    a, b = thetas(task, 2)
    models = [a, b, 0.25 * a + 0.75 * b]
    sweep = plane(*models, points=(3, 5), buffers=torch.zeros(3, 0, dtype=torch.float64))
    axes = torch.from_numpy(sweep.axes) @ sweep.basis
    torch.testing.assert_close(axes @ axes.T, torch.eye(2, dtype=torch.float64), rtol=0, atol=1e-13)
    assert sweep.attrs["collinear"] == 1
    assert sweep.marks[2].at == pytest.approx((0.75 * (b - a).norm().item(), 0), abs=1e-12)
    assert torch.equal(plane(*models).basis, sweep.basis)
    assert not torch.equal(plane(*models, seed=1).basis, sweep.basis)
    assert np.isfinite(surface(task, sweep).loss.values).all()


def test_equal_first_models_are_refused():
    a = torch.ones(4)
    with pytest.raises(ValueError, match="w1 and w2 are equal"):
        plane(a, a, torch.zeros(4))


def test_project_finds_the_models_and_the_distance_of_others():
    task = mlp_task()
    models = thetas(task, 3)
    sweep = plane(*models)
    away = torch.randn(43, generator=torch.Generator().manual_seed(1), dtype=torch.float64)
    for direction in torch.from_numpy(sweep.axes) @ sweep.basis:
        away -= away @ direction * direction
    outside = _at(sweep, 0.5, -0.2) + 3 * away / away.norm()
    found = project([*models, outside], sweep, labels=["1", "2", "3", "other"])
    places = np.stack([found.mark_alpha.values, found.mark_beta.values], 1)
    np.testing.assert_allclose(places[:3], [mark.at for mark in sweep.marks[:3]], atol=1e-12)
    np.testing.assert_allclose(places[3], (0.5, -0.2), atol=1e-12)
    np.testing.assert_allclose(found.distance.values, [0, 0, 0, 3], atol=1e-12)
    with pytest.raises(ValueError, match="models have 42 entries, the sweep has 43"):
        project([models[0][1:]], sweep)


@pytest.mark.parametrize("box", ["marks", "symmetric"])
@pytest.mark.parametrize("share", [0.5, 0.3, 1.7])
def test_models_collinear_up_to_rounding_have_a_plane_that_they_can_be_computed_in(share, box):
    a = torch.randn(900, generator=torch.Generator().manual_seed(0))
    b = a + 0.3 * torch.randn(900, generator=torch.Generator().manual_seed(1))
    sweep = plane(a, b, a + share * (b - a), points=(3, 5), box=box)
    assert sweep.attrs["collinear"] == 1
    points = torch.from_numpy(sweep.coefficients).float() @ sweep.basis  # as a sweep computes them
    along = (b.double() - a.double()) / (b.double() - a.double()).norm()
    away = points.double() - a.double()
    off = (away - (away @ along)[:, None] * along).norm(dim=1)
    alpha, beta = np.meshgrid(sweep.coords["alpha"], sweep.coords["beta"], indexing="ij")
    width = np.ptp(sweep.coords["beta"])
    assert width > 1
    np.testing.assert_allclose(off.numpy(), np.abs(beta).ravel(), atol=1e-3 * width)
    np.testing.assert_allclose((away @ along).numpy(), alpha.ravel(), atol=1e-3 * width)
