"""FedAvg by hand, and the identities of the average."""

from __future__ import annotations

import pytest
import torch

from drift.config.method import Method
from drift.methods.fedavg import FedAvg
from tests.drift import hand

SETTING = hand.setting()


def test_average_of_unequal_clients_by_hand():
    group = hand.cohort(torch.stack([hand.vector(1, 0, 0), hand.vector(10, 9, -9)]), sizes=[2, 7])
    outcome = FedAvg().aggregate(SETTING, {}, group)
    assert torch.allclose(outcome.end, hand.vector(8, 7, -7), rtol=1e-14)
    assert outcome.weights.tolist() == [2 / 9, 7 / 9]
    assert outcome.state == {}
    assert outcome.extras == {}


def test_identical_models_average_to_that_model_exactly_enough():
    model = hand.random(5)
    group = hand.cohort(model.repeat(3, 1), sizes=[2, 7, 4])
    assert torch.allclose(FedAvg().aggregate(SETTING, {}, group).end, model, rtol=1e-15, atol=0)


def test_deviations_from_the_average_cancel():
    group = hand.cohort(hand.random(3, 5), sizes=[2, 7, 4])
    end = FedAvg().aggregate(SETTING, {}, group).end
    assert (group.weights @ (group.clients - end)).abs().max() < 1e-15


def test_one_client_gives_its_model_bit_for_bit():
    group = hand.cohort(hand.random(1, 5), start=hand.random(5, seed=1), sizes=[7])
    assert torch.equal(FedAvg().aggregate(SETTING, {}, group).end, group.clients[0])


def test_server_rate_scales_the_step():
    group = hand.cohort(hand.random(3, 5), start=hand.random(5, seed=1), sizes=[2, 7, 4])
    plain, half = (FedAvg(server_lr=lr).aggregate(SETTING, {}, group).end for lr in (1.0, 0.5))
    assert torch.allclose(half - group.start, 0.5 * (plain - group.start), rtol=1e-14)


def test_defaults_are_those_of_the_hooks():
    group = hand.cohort(hand.random(3, 5), sizes=[2, 7, 4])
    assert torch.equal(FedAvg().aggregate(SETTING, {}, group).end, Method().aggregate(SETTING, {}, group).end)


def test_permuting_clients_changes_nothing():
    clients, sizes = hand.random(3, 5), [2, 7, 4]
    one = FedAvg().aggregate(SETTING, {}, hand.cohort(clients, sizes=sizes)).end
    other = FedAvg().aggregate(SETTING, {}, hand.cohort(clients.flip(0), sizes=sizes[::-1])).end
    assert torch.allclose(one, other, rtol=1e-14)


@pytest.mark.parametrize("value", [0, -1, float("nan"), float("inf")])
def test_senseless_server_rate_is_refused(value):
    with pytest.raises(ValueError, match="server_lr"):
        FedAvg(server_lr=value)
