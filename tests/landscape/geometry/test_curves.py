"""Mode-connecting curves."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

from landscape.geometry.curves import Curve, along, connecting_curve
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.surfaces.barrier import barrier
from tests.oracles import cnn_task, mlp_task, thetas

POINTS = torch.tensor([[0.0, 1.0, 2.0], [4.0, -1.0, 0.5], [3.0, 3.0, 3.0], [1.0, 0.0, -2.0]], dtype=torch.float64)


class Ring(nn.Module):
    """Output (w1^2 + w2^2 - 1)^2: models on the unit circle are joined by it, and parted by a hill of height 1."""

    def __init__(self) -> None:
        super().__init__()
        self.w = nn.Parameter(torch.zeros(2, dtype=torch.float64))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return ((self.w.square().sum() - 1) ** 2).expand(len(x))


def ring() -> Task:
    held = Samples(torch.zeros(3, 1, dtype=torch.float64), torch.zeros(3))
    return Task(Ring(), {"train": held, "test": held}, loss=lambda outputs, targets: outputs, metrics={})


A = torch.tensor([1.0, 0.0], dtype=torch.float64)
B = torch.tensor([-0.9, 0.3], dtype=torch.float64)


@pytest.mark.parametrize("kind", ["bezier", "polygon"])
@pytest.mark.parametrize("count", [2, 3, 4])
def test_ends_are_the_models_exactly(kind, count):
    curve = Curve(kind, POINTS[:count])
    first, last = np.eye(count)[[0, -1]]
    np.testing.assert_array_equal(curve.coefficients(np.array([0.0, 1.0])), [first, last])


def test_quadratic_bezier_and_chain_are_the_papers():
    t = np.linspace(0, 1, 7)
    a, mid, b = POINTS[:3].numpy()
    bezier = Curve("bezier", POINTS[:3]).coefficients(t) @ POINTS[:3].numpy()
    s = t[:, None]
    np.testing.assert_allclose(bezier, (1 - s) ** 2 * a + 2 * s * (1 - s) * mid + s**2 * b, atol=1e-14)
    chain = Curve("polygon", POINTS[:3]).coefficients(t) @ POINTS[:3].numpy()
    known = np.where(s <= 0.5, 2 * (s * mid + (0.5 - s) * a), 2 * ((s - 0.5) * b + (1 - s) * mid))
    np.testing.assert_allclose(chain, known, atol=1e-14)


@pytest.mark.parametrize("kind", ["bezier", "polygon"])
def test_untrained_curve_is_the_straight_line(kind):
    task = mlp_task()
    a, b = thetas(task, 2, spread=2.0)
    ds = along(task, connecting_curve(task, a, b, kind=kind, bends=2, steps=0), points=6)
    np.testing.assert_allclose(ds.loss, ds.straight_loss, rtol=1e-12)
    np.testing.assert_array_equal(ds.error, ds.straight_error)
    assert float(ds.length) == pytest.approx(float((a - b).norm()))
    assert float(ds.straight_barrier) == pytest.approx(float(barrier(task, a, b, points=6).barrier), rel=1e-12)


@pytest.mark.parametrize("kind", ["bezier", "polygon"])
def test_trained_curve_goes_around_the_hill(kind):
    task = ring()
    curve = connecting_curve(task, A, B, kind=kind, bends=2, steps=400, lr=0.02)
    ds = along(task, curve, metrics=("loss",))
    assert float(ds.loss.max()) < 0.3 * float(ds.straight_loss.max())
    assert float(ds.barrier) < 0.3 * float(ds.straight_barrier)
    assert float(ds.length) > float(ds.distance) == pytest.approx(float((A - B).norm()))
    torch.testing.assert_close(curve.points[[0, -1]], torch.stack([A, B]), rtol=0, atol=0)


def test_same_seed_gives_the_same_curve_and_leaves_the_callers_state():
    task = cnn_task(dtype=torch.float32)
    a, b = thetas(task, 2)
    before, theta = torch.get_rng_state(), task.theta
    first, again, other = (connecting_curve(task, a, b, steps=4, batch=5, seed=seed).points for seed in (3, 3, 4))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert torch.equal(before, torch.get_rng_state())
    assert torch.equal(theta, task.theta)
    assert torch.equal(first[0], a)
    assert torch.equal(first[2], b)


def test_averaged_buffers_are_interpolated_between_the_ends():
    task = cnn_task(norm=True)
    a, b = thetas(task, 2)
    generator = torch.Generator().manual_seed(1)
    buffers = torch.rand(2, task.layout.buffer_size, generator=generator, dtype=torch.float64) + 0.5
    curve = Curve("bezier", torch.stack([a, thetas(task, 3)[2], b]))
    ds = along(task, curve, points=3, buffers=buffers, statistics="averaged")
    straight = barrier(task, a, b, points=3)
    assert not np.allclose(ds.straight_loss, straight.loss)
    outputs = task.outputs((a + b) / 2, "test", buffers=buffers.mean(0))
    loss = task.loss(outputs, task.samples["test"].targets).mean()
    assert float(ds.straight_loss[1]) == pytest.approx(float(loss), rel=1e-12)


def test_what_cannot_be_a_curve_is_refused():
    task = mlp_task()
    with pytest.raises(ValueError, match=r"no kind of curve named 'bezir'\. Did you mean 'bezier'"):
        Curve("bezir", POINTS)
    with pytest.raises(ValueError, match="bends = 0"):
        connecting_curve(task, task.theta, task.theta, bends=0)
    with pytest.raises(ValueError, match=r"\(43,\), \(42,\)"):
        connecting_curve(task, task.theta, task.theta[1:])
