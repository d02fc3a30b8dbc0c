"""Aggregation weights that another program gives, and tensors that no real vector has."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import torch
from torch import Tensor

import drift
from drift.record.recorder import Recorder

SIZES = (10, 20, 30)


def rounds(folder, weights, *, by=None, count=3):
    """Rounds of three clients, whose end is their sum weighted by `by`, by default `weights`; the vectors of each."""
    draw, recorder, made = torch.Generator().manual_seed(0), Recorder(folder), []
    start = torch.randn(50, generator=draw)
    for _ in range(count):
        clients = [start + 0.1 * torch.randn(50, generator=draw) for _ in SIZES]
        end = torch.tensor(by or weights) @ torch.stack(clients)
        models = {k: ({"w": model}, SIZES[k]) for k, model in enumerate(clients)}
        recorder.round(start={"w": start}, clients=models, end={"w": end}, weights=dict(enumerate(weights)))
        made.append((start, torch.stack(clients)))
        start = end
    return drift.open(folder), made


def test_a_server_that_shrinks_has_its_factor(tmp_path):
    run, made = rounds(tmp_path / "run", [0.2, 0.3, 0.4])
    assert run.round(1).weights.tolist() == pytest.approx([0.2, 0.3, 0.4])
    assert drift.aggregation_weights(run).gamma.values == pytest.approx([0.9] * 3)
    start, clients = made[1]
    step, rest = 0.9 * (torch.tensor([2, 3, 4]) / 9.0 @ clients) - start, -0.1 * start
    expected = float((step - rest).norm() / rest.norm())
    assert float(drift.regularisation_ratio(run).ratio[1]) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("weights", [[120.0, 80.0, 40.0], [0.5, 0.2, 0.2]])
def test_weights_that_do_not_give_the_end_are_relative(tmp_path, weights):
    total = sum(weights)
    run, _ = rounds(tmp_path / "run", weights, by=[weight / total for weight in weights])
    assert run.round(1).weights.tolist() == pytest.approx([weight / total for weight in weights])


@pytest.mark.parametrize("weights", [[0.2, 0.3, 0.4], [0.7, 0.2, 0.1]])
def test_the_update_change_compares_means_by_samples_whatever_the_weights(tmp_path, weights):
    run, made = rounds(tmp_path / "run", weights)
    shares = torch.tensor(SIZES, dtype=torch.float64) / sum(SIZES)
    means: list[Tensor] = [shares @ (clients - start).double() for start, clients in made]
    expected = [float((before - mean).square().sum()) / (3 * 50) for before, mean in pairwise(means)]
    np.testing.assert_allclose(drift.drift_variances(run).change_variance[1:], expected, rtol=1e-4)


@pytest.mark.parametrize("weights", [[1.0, -1.0, 0.0], [0.0, 0.0, 0.0], [-1.0, 0.0, 0.0], [float("nan"), 0.5, 0.5]])
def test_weights_without_a_sum_above_0_are_refused(tmp_path, weights):
    with pytest.raises(ValueError, match="give a finite sum above 0"):
        rounds(tmp_path / "run", weights, by=[0.2, 0.3, 0.5], count=1)


def test_a_complex_tensor_is_refused_unless_the_parameters_are_named(tmp_path):
    start = {"w": torch.randn(4), "z": torch.randn(4, dtype=torch.complex64)}
    moved = {name: value + 1 for name, value in start.items()}
    with pytest.raises(ValueError, match="'z' is complex"):
        Recorder(tmp_path / "run").round(start=start, clients={0: (moved, 5)}, end=moved)
    named = Recorder(tmp_path / "run", parameters=["w"])
    named.round(start=start, clients={0: (moved, 5)}, end=moved)
    assert drift.open(tmp_path / "run").round(0).clients.tolist() == [moved["w"].tolist()]
