"""The tangent kernel against Jacobians, and theorem 2 where its assumption holds exactly."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from landscape.curvature.ntk import ntk, variance_by_mmd
from landscape.model.samples import Samples
from landscape.model.task import Task
from tests.oracles import cnn_task, half_squared_error, mlp_task


def by_jacobian(task: Task, theta: Tensor, samples: Samples) -> Tensor:
    """C Jacobians, one output of one sample at a time."""
    flat = task.flat(theta)
    rows = []
    for place in range(len(samples)):
        jacobian = torch.autograd.functional.jacobian(
            lambda t, at=place: flat.functional(t, samples[at : at + 1].inputs).flatten(), theta
        )
        rows.append(jacobian)
    each = torch.stack(rows)
    return torch.einsum("icd,jcd->ij", each, each) / each.shape[1]


@pytest.mark.parametrize("build", [mlp_task, cnn_task, lambda: cnn_task(norm=True)])
def test_kernel_is_the_mean_product_of_jacobian_rows(build) -> None:
    task = build()
    samples = task.split("test")
    kernel = ntk(task, task.theta, samples)
    torch.testing.assert_close(kernel, by_jacobian(task, task.theta, samples), rtol=1e-10, atol=1e-12)


def test_small_memory_changes_nothing() -> None:
    task = mlp_task()
    samples = task.split("train")
    whole = ntk(task, task.theta, samples)
    for held in (1, 3, 7):
        found = ntk(task, task.theta, samples, memory=2 * held * 8 * task.layout.size)
        torch.testing.assert_close(found, whole, rtol=1e-12, atol=1e-12)


def test_inputs_may_be_nested() -> None:
    class Sum(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.Linear(3, 2, dtype=torch.float64)

        def forward(self, left: Tensor, right: Tensor) -> Tensor:
            return self.inner(left + right)

    one, two = torch.randn(2, 5, 3, dtype=torch.float64)
    task = Task(Sum(), {"train": Samples({"left": one, "right": two}, torch.zeros(5, dtype=torch.int64))})
    expected = ((one + two) @ (one + two).T + 1) / 1
    torch.testing.assert_close(ntk(task, task.theta, task.split("train")), expected)


def test_no_samples_are_refused() -> None:
    task = mlp_task()
    with pytest.raises(ValueError, match="no samples"):
        ntk(task, task.theta, task.split("test")[:0])


def linear(features: int) -> Task:
    """f(x) = w . x, whose kernel is x . x' at any w."""
    model = nn.Linear(features, 1, bias=False, dtype=torch.float64)
    return Task(model, {}, loss=half_squared_error, metrics={})


def kernels(own: Tensor, data: Tensor) -> tuple[Tensor, Tensor, Tensor]:
    """K(A, A), K(A, D) and K(D, D) of two sets of inputs, by the tangent kernel of a linear model."""
    task, both = linear(own.shape[1]), torch.cat([own, data])
    kernel = ntk(task, task.theta, Samples(both, torch.zeros(len(both), dtype=torch.float64)))
    return kernel[: len(own), : len(own)], kernel[: len(own), len(own) :], kernel[len(own) :, len(own) :]


@pytest.mark.parametrize("shared", [0, 3])
def test_both_sides_agree_for_orthogonal_features(shared: int) -> None:
    """The data may hold the client's own points."""
    torch.manual_seed(1)
    own = 1.7 * torch.linalg.qr(torch.randn(9, 5, dtype=torch.float64)).Q.T
    data = torch.cat([own[:shared], torch.randn(7, 9, dtype=torch.float64)])
    found = variance_by_mmd(*kernels(own, data))
    assert found["diagonal"] == pytest.approx(1.7**2)
    assert found["off_diagonal"] < 1e-12 and found["diagonal_spread"] < 1e-12
    assert found["variance"] == pytest.approx(found["expression"], rel=1e-12)
    projected = data - data @ own.T @ own / 1.7**2
    assert found["variance"] == pytest.approx(float(projected.square().sum(1).mean()), rel=1e-10)


def test_the_assumption_is_reported_where_it_fails() -> None:
    torch.manual_seed(2)
    own, data = torch.randn(4, 6, dtype=torch.float64), torch.randn(3, 6, dtype=torch.float64)
    found = variance_by_mmd(*kernels(own, data))
    products = own @ own.T
    level = float(products.diagonal().mean())
    off = products - torch.diag(products.diagonal())
    assert found["off_diagonal"] == pytest.approx(float(off.abs().max()) / level)
    assert abs(found["variance"] - found["expression"]) > 0.01
    cross, squared = (own @ data.T).square(), (data @ data.T).square()
    data_square = float(squared.sum() - squared.diagonal().sum()) / 6
    mmd2 = float(off.square().sum()) / 12 + data_square - 2 * float(cross.mean())
    assert found["mmd2"] == pytest.approx(mmd2)
    assert found["data_square"] == pytest.approx(data_square)
    residual = data - data @ torch.linalg.pinv(own) @ own
    assert found["variance"] == pytest.approx(float(residual.square().sum(1).mean()), rel=1e-6)


def test_more_points_than_features_leave_no_variance_and_one_point_has_no_pairs() -> None:
    torch.manual_seed(3)
    own, data = torch.randn(8, 5, dtype=torch.float64), torch.randn(6, 5, dtype=torch.float64)
    assert abs(variance_by_mmd(*kernels(own, data))["variance"]) < 1e-9
    single = variance_by_mmd(*kernels(own[:1], data))
    assert np.isnan([single["mmd2"], single["expression"], single["off_diagonal"]]).all()
    assert single["variance"] > 0
