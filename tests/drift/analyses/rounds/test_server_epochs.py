"""Curves of FedLAW's server within a round."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from drift.analyses.rounds.weight_factors import server_epochs, settled
from tests import tiny


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


def law(folder, *options):
    return tiny.trained(folder, "method=fedlaw", "method.server_epochs=4", "method.server_lr=0.1", *options)


def test_curves_end_at_the_weights_that_the_round_used(folder):
    run = law(folder)
    for index in run.rounds():
        found, record = server_epochs(run, round=index), run.round(index)
        assert dict(found.sizes) == {"epoch": 4, "client": 3}
        assert list(found.client.values) == record.ids.tolist()
        assert float(found.gamma[-1]) == pytest.approx(float(found.gamma_used), rel=1e-12)
        np.testing.assert_allclose(found["lambda"][-1], found.lambda_used, rtol=1e-12)
        np.testing.assert_allclose(found["lambda"].sum("client"), 1)
        used = found.gamma_used * found.lambda_used
        np.testing.assert_allclose(used, record.weights.double(), rtol=1e-6)
        assert bool((found.proxy_loss > 0).all())
    assert server_epochs(run).attrs["round"] == 2


def test_a_variant_moves_only_what_it_learns(folder):
    shrinking = server_epochs(law(folder, "method.variant=gws"))
    assert np.isnan(shrinking.lambda_settled)
    assert shrinking.gamma_settled > 0
    sharing = server_epochs(law(folder, "method.variant=attentive"))
    np.testing.assert_array_equal(sharing.gamma, 1)
    assert np.isnan(sharing.gamma_settled)


@pytest.mark.parametrize("options", [("method=fedavg",), ("method=fedlaw", "method.server_epochs=0")])
def test_rounds_without_server_epochs_say_so(folder, options):
    with pytest.raises(LookupError, match="recorded no server epochs"):
        server_epochs(tiny.trained(folder, *options))


def test_a_round_after_the_early_stop_has_none(folder):
    run = law(folder, "method.variant=early_stopped", "method.stop_round=1")
    assert server_epochs(run, round=1).sizes["epoch"] == 4
    with pytest.raises(LookupError, match="round 2 of run"):
        server_epochs(run)


def test_settled_is_the_first_epoch_after_the_last_deviation():
    curve = np.array([1.0, 0.5, 0.96, 0.9, 0.91, 0.9])[:, None]
    assert settled(curve, 0.05) == 4
    assert settled(curve, 0.2) == 3
    assert settled(curve, 1.0) == 1
    assert np.isnan(settled(np.ones((5, 2)), 0.05))
    slow = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.1])[:, None]
    assert settled(np.hstack([curve, slow]), 0.05) == 6


def test_curves_survive_the_store(folder):
    record = law(folder).round(0)
    assert record.extras["gamma_epochs"].shape == (4,)
    assert record.extras["lambda_epochs"].shape == (4, 3)
    assert record.extras["gamma_epochs"].dtype == torch.float64
