"""Barriers from the midpoints first: what is decided early, how far, and that humps beside the midpoint are seen."""

from __future__ import annotations

import numpy as np
import oracles
import pytest
import torch
from torch import nn

import landscape
from landscape.model.samples import Samples


class Place(nn.Module):
    """A model of one parameter that returns it."""

    def __init__(self) -> None:
        super().__init__()
        self.place = nn.Parameter(torch.zeros(1, dtype=torch.float64))

    def forward(self, inputs):
        return self.place.expand(len(inputs), 1)


def curve_task(curve):
    """A task whose loss is `curve` of the single parameter."""
    samples = Samples(torch.zeros(3, 1, dtype=torch.float64), torch.zeros(3, dtype=torch.float64))
    return landscape.Task(Place(), {"test": samples}, loss=lambda outputs, targets: curve(outputs[:, 0]))


def at(*places):
    return [torch.tensor([float(place)], dtype=torch.float64) for place in places]


def dense(curve, a, b):
    """The barrier at 100 001 points."""
    t = torch.linspace(0, 1, 100_001, dtype=torch.float64)
    losses = curve(a + t * (b - a))
    return float((losses - torch.lerp(losses[0], losses[-1], t)).max().clamp(min=0))


CURVES = {
    "hump beside the start": lambda x: torch.exp(-((x - 0.15) ** 2) / 0.02),
    "narrow hump in the middle": lambda x: torch.exp(-((x - 0.5) ** 2) / 0.002),
    "waves": lambda x: 0.3 * torch.sin(9 * x) + x**2,
    "bowl": lambda x: (x - 0.4) ** 2,
    "arch": lambda x: x * (1 - x),
    "just below": lambda x: 0.39 * x * (1 - x),
    "just above": lambda x: 0.41 * x * (1 - x),
}


@pytest.mark.parametrize("name", CURVES)
def test_the_true_barrier_lies_between_the_bounds_and_decides(name):
    curve = CURVES[name]
    ds = landscape.bounded_barriers(curve_task(curve), at(0, 1), margin=0.1)
    exact, low, high = dense(curve, 0, 1), float(ds.barrier[0, 1]), float(ds.barrier_high[0, 1])
    assert low <= exact + 1e-12
    assert exact <= high + 1e-12
    assert bool(ds.joined[0, 1]) == (exact <= 0.1)
    assert ds.attrs["undecided"] == 0


def test_one_point_decides_a_bowl_and_a_high_arch():
    for name in ("bowl", "arch"):
        ds = landscape.bounded_barriers(curve_task(CURVES[name]), at(0, 1), margin=0.1)
        assert ds.points[0, 1] == 1
    assert ds.midpoint[0, 1] == pytest.approx(0.25)


def test_the_slopes_at_the_ends_reveal_a_hump_that_the_midpoint_misses():
    curve = CURVES["hump beside the start"]
    middle = curve(torch.tensor(0.5)) - (curve(torch.tensor(0.0)) + curve(torch.tensor(1.0))) / 2
    assert middle <= 0.1
    ds = landscape.bounded_barriers(curve_task(curve), at(0, 1), margin=0.1)
    assert ds.points[0, 1] > 1
    assert ds.joined[0, 1] == 0


def test_a_quadratic_of_any_size_is_decided_by_midpoints():
    task = oracles.quadratic(7)
    models = [task.centre + torch.randn(7, generator=torch.Generator().manual_seed(s)).double() for s in range(4)]
    ds = landscape.bounded_barriers(task.task, models, margin=0.0)
    pairs = np.triu_indices(4, 1)
    assert (ds.joined.values == 1).all()
    assert (ds.points.values[pairs] == 1).all()
    assert (np.diag(ds.points.values) == 0).all()
    for i, j in zip(*pairs, strict=True):
        d = models[j] - models[i]
        assert float(ds.midpoint[i, j]) == pytest.approx(float(-d @ task.matrix @ d / 8))
        assert float(ds.distance[i, j]) == pytest.approx(float(d.norm()))


def test_equal_models_cost_nothing_and_diverged_ones_are_nan():
    task = curve_task(CURVES["arch"])
    ds = landscape.bounded_barriers(task, at(0, 0, 1, float("nan")), labels=["a", "a again", "b", "lost"])
    assert ds.barrier.sel(mark="a", mark_other="a again") == 0
    assert ds.points.sel(mark="a", mark_other="a again") == 0
    assert ds.joined.sel(mark="a", mark_other="b") == 0
    lost = ds.sel(mark="lost")
    for name in ("barrier", "barrier_high", "joined", "points", "midpoint", "mark_loss"):
        assert lost[name].isnull().all(), name
    assert ds.joined.isel(mark=slice(3), mark_other=slice(3)).notnull().all()


def test_an_infinite_loss_between_models_separates_them():
    task = curve_task(lambda x: torch.where((x > 0.3) & (x < 0.8), torch.inf, x))
    ds = landscape.bounded_barriers(task, at(0, 1))
    assert ds.joined[0, 1] == 0
    assert np.isinf(ds.barrier[0, 1])


def test_a_single_model_has_no_line_and_a_negative_margin_is_refused():
    task = curve_task(CURVES["bowl"])
    single = oracles.quadratic(3)
    assert landscape.bounded_barriers(single.task, single.centre[None]).joined.values.tolist() == [[1.0]]
    with pytest.raises(ValueError, match="margin is -1"):
        landscape.bounded_barriers(task, at(0, 1), margin=-1)
