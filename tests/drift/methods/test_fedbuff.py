"""FedBuff against a loop in numpy: two clients that start from models of earlier rounds."""

from __future__ import annotations

from dataclasses import replace

import pytest
import tiny
import torch

from drift.simulation.one_round import run_round
from drift.training.server import Server
from drift.training.unequal_clients import rounds_late
from tests.drift.by_hand import CLIENTS, P, close, played, prepared, trained

ROUNDS = 6


def test_late_updates_count_less():
    """w' = w + 0.8 sum_k p_k (1 + tau_k)^-0.7 (trained(w_(t - tau_k)) - w_(t - tau_k))."""
    setting, data = prepared({"name": "fedbuff", "server_lr": 0.8, "exponent": 0.7}, ROUNDS)
    spread = setting.experiment.clients.model_copy(update={"late": 3})
    setting = replace(setting, experiment=setting.experiment.model_copy(update={"clients": spread}))
    server, seen = Server.fresh(setting), set()
    models = [server.theta.numpy()]
    for index in range(ROUNDS):
        record, server = run_round(setting, data, server)
        expected, total = models[-1], 0.0
        for client, (part, share) in enumerate(zip(CLIENTS, P, strict=True)):
            tau = rounds_late(setting.experiment, index, client)
            origin = models[index - tau]
            factor = share * (1 + tau) ** -0.7
            expected = expected + 0.8 * factor * (trained(origin, part) - origin)
            total += factor
            close(record.clients[client].numpy(), models[-1] + trained(origin, part) - origin)
            seen.add(tau)
        close(server.theta.numpy(), expected)
        assert float(record.extras["staleness"]) == pytest.approx(total)
        models.append(server.theta.numpy())
    assert len(seen) > 2


def test_fedbuff_without_late_clients_is_fedavg():
    for one, two in zip(played("fedbuff").ends, played("fedavg").ends, strict=True):
        close(one, two)


def test_with_exponent_0_late_updates_count_like_others(tmp_path):
    options = ["clients.late=2", "rounds=4", "keep.clients=all"]
    plain = tiny.trained(tmp_path, *options)
    buffered = tiny.trained(tmp_path, *options, "method=fedbuff", "method.exponent=0")
    for index in plain.rounds():
        torch.testing.assert_close(plain.round(index).clients, buffered.round(index).clients, rtol=0, atol=1e-5)
