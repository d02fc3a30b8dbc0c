from __future__ import annotations

import sys
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from oracles import cnn_task, mlp_task, quadratic, thetas

from landscape.curvature.density import density
from landscape.curvature.hessian import top_eigenvalues
from landscape.curvature.layer_blocks import layer_eigenvalues
from landscape.curvature.minibatch_sharpness import minibatch_sharpness
from landscape.curvature.trace import signs, trace
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.models import build_model


def dense(task, theta, samples=None):
    flat, samples = task.flat(theta), task.split("train") if samples is None else samples
    return torch.autograd.functional.hessian(lambda point: flat.functional_loss(point, samples), theta)


def largest(matrix) -> float:
    values = torch.linalg.eigvalsh(matrix)
    return values[values.abs().argmax()].item()


def test_exact_trace_and_norm_are_those_of_the_dense_hessian():
    task = mlp_task()
    theta = thetas(task, 1)[0]
    ds, expected = trace(task, theta), dense(task, theta)
    assert ds.trace.item() == pytest.approx(expected.trace().item())
    assert ds.frobenius.item() == pytest.approx(expected.norm().item())
    assert (ds.standard_error.item(), ds.attrs["exact"], ds.attrs["products"]) == (0, 1, 43)


def test_estimated_trace_lies_within_its_error():
    task = cnn_task()
    expected = dense(task, task.theta).trace().item()
    found = [trace(task, task.theta, products=60, seed=seed) for seed in range(6)]
    assert all(ds.attrs["products"] == 60 for ds in found)
    off = [abs(ds.trace.item() - expected) / ds.standard_error.item() for ds in found]
    assert max(off) < 5
    assert np.mean([ds.trace.item() for ds in found]) == pytest.approx(expected, rel=0.05)
    assert np.mean([ds.frobenius.item() for ds in found]) == pytest.approx(
        dense(task, task.theta).norm().item(), rel=0.1
    )


def test_trace_of_low_rank_is_exact_with_few_products():
    problem = quadratic(40, eigenvalues=[9.0, 4, 1] + [0.0] * 37)
    ds = trace(problem.task, problem.task.theta, products=15)
    assert ds.trace.item() == pytest.approx(14)
    assert ds.standard_error.item() == pytest.approx(0, abs=1e-10)


def test_density_integrates_to_one_and_has_the_moments_of_the_spectrum():
    task = mlp_task()
    theta = thetas(task, 1)[0]
    ds, matrix = density(task, theta, steps=6, probes=300, seed=2), dense(task, theta)
    assert np.trapezoid(ds.density, ds.value) == pytest.approx(1, abs=1e-9)
    random = signs(300, theta, 2)
    assert ds["mean"].item() == pytest.approx(((random @ matrix) * random).sum(1).mean().item() / 43)
    assert ds.mean_square.item() == pytest.approx((random @ matrix).square().sum(1).mean().item() / 43)
    exact = trace(task, theta)
    assert ds["mean"].item() == pytest.approx(exact.trace.item() / 43, rel=0.2)
    assert ds.mean_square.item() == pytest.approx(exact.frobenius.item() ** 2 / 43, rel=0.2)
    smooth, square = (np.trapezoid(ds.density * ds.value**power, ds.value) for power in (1, 2))
    assert smooth == pytest.approx(ds["mean"].item(), abs=1e-6)
    assert square == pytest.approx(ds.mean_square.item() + ds.attrs["sigma"] ** 2, rel=1e-4)


@pytest.mark.parametrize("options", [{"points": 51}, {"width": 1e-4}, {"points": 3}])
def test_a_grid_that_does_not_resolve_the_gaussian_is_refused(options):
    task = mlp_task()
    with pytest.raises(ValueError, match=r"points >= 1 \+ \(12 \+ 1 / width\) / 1.25"):
        density(task, task.theta, **options)


def test_the_coarsest_grid_has_the_mean_of_the_spectrum():
    task = mlp_task()
    ds = density(task, task.theta, steps=6, probes=3, width=0.05, points=27)
    assert np.trapezoid(ds.density * ds.value, ds.value) == pytest.approx(float(ds["mean"]), rel=1e-4)


def test_density_of_equal_eigenvalues_is_one_peak():
    problem = quadratic(4, eigenvalues=[5.0, 5, 5, 5])
    ds = density(problem.task, problem.task.theta, steps=3, probes=2)
    assert ds["mean"].item() == pytest.approx(5)
    assert ds.mean_square.item() == pytest.approx(25)
    assert ds.value.values[ds.density.values.argmax()] == pytest.approx(5)


def test_eigenvalues_outside_the_bulk_are_those_of_the_matrix_and_the_bulk_is_the_rest():
    bulk = np.linspace(-0.05, 0.05, 37).tolist()
    problem = quadratic(40, eigenvalues=[1.0 + value for value in bulk] + [6.0, 8.0, 8.1])
    ds = density(problem.task, problem.task.theta, steps=9, probes=3, seed=1)
    assert ds.outlier.values[:1] == pytest.approx([6.0])  # 8.0 and 8.1 stand within 2 sigma of each other
    assert np.isnan(ds.outlier.values[1:]).all()
    sigma, grid = ds.attrs["sigma"], ds.value.values
    peak = ds.outlier_density.values[0] * np.exp(-0.5 * ((grid - ds.outlier.values[0]) / sigma) ** 2)
    np.testing.assert_allclose(ds.bulk + peak, ds.density, rtol=1e-6, atol=1e-12)
    near = abs(grid - 6) < 5 * sigma
    assert ds.bulk.values[near].max() < 1e-6 * ds.density.values[near].max()
    assert ds.bulk_error.values[near].max() < 1e-6 * ds.density_error.values[near].max()


def test_batch_eigenvalues_are_those_of_their_dense_hessians():
    task = cnn_task()
    theta, samples = task.theta, task.split("train")
    ds = minibatch_sharpness(task, theta, batch=5, full=True, tolerance=1e-6, seed=3)
    pieces = torch.randperm(23, generator=torch.Generator().manual_seed(3)).split(5)
    expected = [largest(dense(task, theta, samples[piece])) for piece in pieces]
    assert [len(piece) for piece in pieces] == [5, 5, 5, 5, 3]
    np.testing.assert_allclose(ds.eigenvalue, expected, rtol=1e-8)
    assert ds["median"].item() == np.median(ds.eigenvalue)
    assert ds.full.item() == pytest.approx(largest(dense(task, theta)))
    assert bool(ds.converged.all())


def test_fewer_batches_are_the_first_ones():
    task = mlp_task()
    ds = minibatch_sharpness(task, task.theta, batch=4)
    two = minibatch_sharpness(task, task.theta, batch=4, batches=2)
    np.testing.assert_array_equal(two.eigenvalue, ds.eigenvalue[:2])
    assert np.isnan(two.full)


def test_a_batch_does_not_depend_on_the_others():
    task = cnn_task()
    samples = task.split("train")
    ds = minibatch_sharpness(task, task.theta, batch=5, seed=1)
    third = torch.randperm(23, generator=torch.Generator().manual_seed(1)).split(5)[2]
    own = minibatch_sharpness(task, task.theta, split=samples[third], batch=5, seed=1)
    assert own.eigenvalue.item() == pytest.approx(ds.eigenvalue[2].item(), rel=1e-12)


def test_layer_eigenvalues_are_those_of_diagonal_blocks():
    task = cnn_task()
    ds, expected = layer_eigenvalues(task, task.theta, tolerance=1e-7), dense(task, task.theta)
    places = task.layout.slices()
    assert ds.layer.values.tolist() == list(places)
    for name, place in places.items():
        assert ds.eigenvalue.sel(layer=name).item() == pytest.approx(largest(expected[place, place]))
    assert ds["size"].values.tolist() == [72, 4, 108, 3]


def test_gauss_newton_has_no_negative_eigenvalues_and_differs():
    task = mlp_task()
    theta = thetas(task, 1, spread=1.0)[0]
    plain = top_eigenvalues(task, theta, 12, tolerance=1e-8)
    gauss = top_eigenvalues(task, theta, 12, tolerance=1e-8, curvature="gauss_newton")
    assert plain.eigenvalue.min() < 0
    assert gauss.eigenvalue.min() >= 0
    assert gauss.attrs["curvature"] == "gauss_newton"
    named = {
        density(task, theta, steps=3, curvature=name).value.attrs["long_name"] for name in ("hessian", "gauss_newton")
    }
    assert named == {"Hessian eigenvalue", "Gauss-Newton eigenvalue"}
    assert trace(task, theta, curvature="gauss_newton").trace.item() >= gauss.eigenvalue.sum().item()


def test_bad_values_are_named():
    task = mlp_task()
    with pytest.raises(ValueError, match="Did you mean 'gauss_newton'"):
        trace(task, task.theta, curvature="gaussnewton")
    with pytest.raises(ValueError, match="at least 6"):
        trace(task, task.theta, products=3)
    with pytest.raises(ValueError, match="steps 0"):
        density(task, task.theta, steps=0)
    with pytest.raises(ValueError, match="batch is 0"):
        minibatch_sharpness(task, task.theta, batch=0)
    with pytest.raises(ValueError, match="does not have gauss_newton"):
        top_eigenvalues(task, task.theta, backend="pyhessian", curvature="gauss_newton")


def test_absent_curvlinops_names_the_command(monkeypatch):
    monkeypatch.setitem(sys.modules, "curvlinops", None)
    with pytest.raises(LookupError, match=r"pip install 'fedscape\[curvlinops\]'"):
        top_eigenvalues(cnn_task(), cnn_task().theta, backend="curvlinops")


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")  # what curvlinops imports still calls it
@pytest.mark.parametrize("curvature", ["hessian", "gauss_newton"])
def test_curvlinops_agrees(curvature):
    pytest.importorskip("curvlinops")
    task = cnn_task()
    options = {"curvature": curvature, "tolerance": 1e-7, "block": 9}
    mine = top_eigenvalues(task, task.theta, 3, **options)
    theirs = top_eigenvalues(task, task.theta, 3, backend="curvlinops", **options)
    np.testing.assert_allclose(theirs.eigenvalue, mine.eigenvalue, rtol=1e-8)
    assert set(mine.attrs) == set(theirs.attrs)


class ByName:
    """Stands for the next curvlinops, whose operators take parameters by name alone."""

    def __init__(self, model_func, loss_func, params: dict[str, torch.Tensor], data, *, check_deterministic=True):
        self.loss = lambda: sum(loss_func(model_func(x), y) * len(y) for x, y in data) / sum(len(y) for _, y in data)
        self.parameters = list(params.values())

    def __matmul__(self, vector):
        slopes = torch.cat([g.flatten() for g in torch.autograd.grad(self.loss(), self.parameters, create_graph=True)])
        return torch.cat([g.flatten() for g in torch.autograd.grad(slopes @ vector, self.parameters)])


def test_a_curvlinops_that_takes_parameters_by_name_agrees(monkeypatch):
    monkeypatch.setitem(sys.modules, "curvlinops", SimpleNamespace(HessianLinearOperator=ByName))
    task = cnn_task()
    mine = top_eigenvalues(task, task.theta, 3, tolerance=1e-7, block=9)
    theirs = top_eigenvalues(task, task.theta, 3, tolerance=1e-7, block=9, backend="curvlinops")
    np.testing.assert_allclose(theirs.eigenvalue, mine.eigenvalue, rtol=1e-8)


@pytest.mark.filterwarnings("ignore:.torch.jit:DeprecationWarning")
def test_curvlinops_says_which_models_it_cannot_take():
    pytest.importorskip("curvlinops")
    model = build_model("resnet8", (3, 32, 32), 3, seed=0, norm="group")
    samples = Samples(torch.randn(4, 3, 32, 32), torch.tensor([0, 1, 2, 0]))
    task = Task(model, {"train": samples})
    with pytest.raises(ValueError, match="cannot differentiate this model"):
        top_eigenvalues(task, task.theta, 1, backend="curvlinops")
