"""The barrier between two models."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from landscape.barrier import barrier
from landscape.samples import Samples
from landscape.task import Task
from tests.oracles import mlp_task, quadratic, thetas


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


def test_barrier_is_the_same_both_ways():
    task = mlp_task()
    a, b = thetas(task, 2, spread=3.0)
    there, back = barrier(task, a, b, split="train"), barrier(task, b, a, split="train")
    assert float(there.barrier) == pytest.approx(float(back.barrier), rel=1e-9)


def test_models_of_unequal_length_are_refused():
    task = mlp_task()
    with pytest.raises(ValueError, match=r"\(43,\), \(42,\)"):
        barrier(task, task.theta, task.theta[1:])
