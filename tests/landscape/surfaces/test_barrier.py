"""The barrier between two models."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from landscape.geometry.curves import Curve, along
from landscape.geometry.lines import line
from landscape.geometry.simplex import points
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.surfaces.barrier import barrier, pairwise_barriers, simplex_losses
from landscape.surfaces.basin import line_summary
from landscape.surfaces.surface import surface
from tests.oracles import cnn_task, mlp_task, quadratic, thetas


class DoubleWell(nn.Module):
    """Output (w^2 - 1)^2 + w / 4, two minima with a wall of known height between."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(1, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ((self.w**2 - 1) ** 2 + self.w / 4).expand(len(x))


def test_double_well_has_the_known_barrier():
    held = Samples(torch.zeros(3, 1, dtype=torch.float64), torch.zeros(3))
    task = Task(DoubleWell(), {"test": held}, loss=lambda outputs, targets: outputs, metrics={})
    a, b = torch.tensor([-1.0], dtype=torch.float64), torch.tensor([1.0], dtype=torch.float64)
    ds = barrier(task, a, b, points=5)
    assert float(ds.barrier) == pytest.approx(1)  # unequal ends: the linear part is taken off
    np.testing.assert_allclose(ds.mark_loss.values, [-0.25, 0.25, 1])
    assert ds.loss.dims == ("t",)
    assert ds.barrier.dims == ()


def test_convex_loss_has_none():
    oracle = quadratic(4)
    assert float(barrier(oracle.task, *thetas(oracle.task, 2, spread=2.0)).barrier) == 0


@pytest.mark.parametrize("bad", [float("nan"), float("inf")])
def test_a_diverged_model_has_no_barrier(bad):
    task = mlp_task()
    a, b = thetas(task, 2)
    b[-1] = bad
    assert np.isnan(float(barrier(task, a, b).barrier))
    ds = along(task, Curve("polygon", torch.stack([a, 0.5 * (a + b), b])), points=5)
    assert np.isnan(float(ds.barrier)) and np.isnan(float(ds.straight_barrier))


def test_a_line_without_a_point_between_the_models_has_no_barrier():
    task = mlp_task()
    ds = surface(task, line(*thetas(task, 2), points=2))
    assert np.isnan(float(line_summary(ds).barrier))


def test_barrier_is_the_same_both_ways():
    task = mlp_task()
    a, b = thetas(task, 2, spread=3.0)
    there, back = barrier(task, a, b, split="train"), barrier(task, b, a, split="train")
    assert float(there.barrier) == pytest.approx(float(back.barrier), rel=1e-9)


def test_models_of_unequal_length_are_refused():
    task = mlp_task()
    with pytest.raises(ValueError, match=r"\(43,\), \(42,\)"):
        barrier(task, task.theta, task.theta[1:])


@pytest.mark.parametrize("count", [4, 5])  # 0.5 is on the line of five points only
def test_pairs_have_the_barriers_of_their_lines(count):
    task = mlp_task()
    models = thetas(task, 3, spread=3.0)
    ds = pairwise_barriers(task, models, labels=("x", "y", "z"), points=count)
    assert ds.barrier.dims == ("mark", "mark_other")
    np.testing.assert_array_equal(ds.barrier, ds.barrier.values.T)
    np.testing.assert_array_equal(np.diag(ds.barrier), 0)
    for i, first in enumerate("xyz"):
        for j, second in enumerate("xyz"):
            alone = barrier(task, models[i], models[j], points=count)
            found = ds.sel(mark=first, mark_other=second)
            assert float(found.barrier) == pytest.approx(float(alone.barrier), rel=1e-10, abs=1e-12)
            assert float(found.distance) == pytest.approx(float((models[i] - models[j]).norm()))
            assert float(found.mark_loss) == pytest.approx(float(alone.mark_loss[0]), rel=1e-12)
            middle = float(alone.mark_loss[2] - alone.mark_loss[:2].mean())
            assert float(found.midpoint) == pytest.approx(middle, rel=1e-10, abs=1e-12)
    assert float(ds.barrier.max()) > 0


def test_pairs_take_buffers_of_their_models():
    task = cnn_task(norm=True)
    models = thetas(task, 2, spread=2.0)
    buffers = torch.stack([task.buffers, task.buffers + 0.7])
    there = pairwise_barriers(task, models, points=5, buffers=buffers)
    alone = surface(task, line(*models, points=5, low=0, high=1, buffers=buffers), metrics=("loss",))
    height = float((alone.loss - (1 - alone.t) * alone.mark_loss[0] - alone.t * alone.mark_loss[1]).max())
    assert float(there.barrier[0, 1]) == pytest.approx(max(0, height), rel=1e-10, abs=1e-12)
    np.testing.assert_allclose(there.mark_loss, alone.mark_loss[:2], rtol=1e-12)


def test_two_points_are_too_few_for_a_barrier():
    task = mlp_task()
    with pytest.raises(ValueError, match="points is 2"):
        pairwise_barriers(task, thetas(task, 2), points=2)


def test_losses_on_a_simplex_are_those_of_its_points():
    oracle = quadratic(4)
    models = thetas(oracle.task, 3, spread=2.0)
    ds = simplex_losses(oracle.task, models, count=7, seed=2, metrics=("loss",))
    known = [float(oracle.loss(row @ models)) for row in points(models, 7, 2)]
    np.testing.assert_allclose(ds.loss, known, rtol=1e-10)
    assert float(ds.loss_mean) == pytest.approx(np.mean(known))
    assert float(ds.loss_max) == pytest.approx(max(known))
    assert float(ds.loss_max) < max(float(oracle.loss(model)) for model in models)  # convex


def test_a_barrier_says_where_its_ends_have_other_batch_statistics():
    task = cnn_task(norm=True)
    ends = barrier(task, *thetas(task, 2), points=5)
    assert ends.barrier.long_name == "loss barrier, ends with own batch statistics, points between with recomputed ones"
    plain = cnn_task()
    assert barrier(plain, *thetas(plain, 2), points=5).barrier.long_name == "loss barrier"
