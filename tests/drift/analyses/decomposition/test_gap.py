"""The gap between averaging models and their outputs shrinks with the square of their spread."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from drift.analyses.decomposition.gap import gap_scaling, gap_scaling_effort
from drift.runs.run import Run
from tests import tiny


@pytest.fixture(scope="module")
def linear(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return tiny.trained(tmp_path_factory.mktemp("runs"))


@pytest.fixture(scope="module")
def network(tmp_path_factory: pytest.TempPathFactory) -> Run:
    changes = (
        "task.model=mlp",
        "task.model_options={hidden=[9]}",
        "task.dataset_options={samples=200}",
        "local.epochs=3",
    )
    return tiny.trained(tmp_path_factory.mktemp("runs"), *changes)


def test_linear_models_have_no_gap_and_no_slope(linear: Run) -> None:
    found = gap_scaling(linear)
    assert float(found.gap.max()) < 1e-12
    assert np.isnan(found.slope).all()
    assert (found.locality > 0).all()


def test_softmax_of_linear_models_is_smooth_and_has_slope_2(linear: Run) -> None:
    found = gap_scaling(linear, outputs="probabilities", scales=(1e-3, 0.01, 0.005))
    np.testing.assert_allclose(found.slope, 2, atol=0.05)
    np.testing.assert_allclose(found.slope_smallest, 2, atol=0.02)
    assert found.scale.values.tolist() == [1e-3, 0.005, 0.01]


def test_network_with_kinks_is_near_2(network: Run) -> None:
    found = gap_scaling(network, samples=10**6)
    assert (abs(found.slope - 2) < 0.4).all()


@pytest.mark.parametrize("outputs", ["logits", "probabilities"])
def test_scale_1_is_the_gap_of_the_recorded_clients(network: Run, outputs) -> None:
    found = gap_scaling(network, rounds=[1], outputs=outputs, samples=10**6).isel(round=0)
    record = network.round(1)
    models = record.kept("clients").double()
    mean = record.shares @ models
    each = torch.stack([network.task.outputs(theta, "test") for theta in (*models, mean)])
    each = each.softmax(2) if outputs == "probabilities" else each
    gap = (torch.einsum("k,knc->nc", record.shares, each[:-1]) - each[-1]).norm(dim=1).mean()
    assert float(found.gap.sel(scale=1.0)) == pytest.approx(float(gap), rel=1e-9)
    assert float(found.locality) == pytest.approx(float((models - mean).norm(dim=1).max()), rel=1e-6)


def test_batch_statistics_move_with_the_models(tmp_path: Path) -> None:
    changes = ("task.model=resnet8", "task.dataset=digits", "task.dataset_options={}", "task.train_samples=60")
    run = tiny.trained(tmp_path, *changes, "rounds=1", "task.test_samples=45")
    assert run.task.layout.buffer_size > 0
    found = gap_scaling(run)
    assert abs(float(found.slope[0]) - 2) < 0.3


def test_effort_and_refusals(linear: Run, tmp_path: Path) -> None:
    assert gap_scaling_effort(linear, rounds=[0], samples=4, scales=(1, 2)).forwards == 4 * 7
    with pytest.raises(ValueError, match="two different positive"):
        gap_scaling(linear, scales=(1.0, 1.0))
    with pytest.raises(ValueError, match="outputs is 'logit'; gap_scaling takes one of probabilities, logits"):
        gap_scaling(linear, outputs="logit")  # type: ignore[arg-type]
    bare = tiny.trained(tmp_path, "keep.clients=none", "rounds=1")
    with pytest.raises(LookupError, match=r"keep\.clients=all"):
        gap_scaling(bare)
