"""Server-side baselines: two clients by hand, and where each of them is FedAvg."""

from dataclasses import replace

import pytest
import torch

from drift.config import method as methods
from drift.methods.fednova import path_length
from tests.drift import hand

UPDATES = torch.tensor([[[1.0, -2.0, 3.0], [5.0, 2.0, 1.0]], [[-1.0, 0.5, 2.0], [0.0, 4.0, -6.0]]], dtype=torch.float64)
SIZES = (1, 3)
START = hand.vector(0.5, -1.0, 2.0)
ADAPTIVE = ("fedadam", "fedyogi", "fedadagrad")


def played(name, updates=UPDATES, sizes=SIZES, **options):
    method = methods.load(name)(**options)
    return hand.play(method, hand.setting({"name": name, **options}), START, updates, sizes=sizes)


def means():
    """Weighted mean updates of both rounds: shares 1/4 and 3/4."""
    return 0.25 * UPDATES[:, 0] + 0.75 * UPDATES[:, 1]


def test_fedavgm_keeps_a_moving_average_of_the_mean_updates():
    first, second = means()
    found = played("fedavgm", beta=0.9, server_lr=2.0)
    one = 0.1 * first
    two = 0.9 * one + 0.1 * second
    torch.testing.assert_close(found.outcomes[0].end, START + 2 * one)
    torch.testing.assert_close(found.outcomes[1].end, START + 2 * one + 2 * two)
    torch.testing.assert_close(methods.load("fedavgm")().momentum(found.state), two)


def test_fedavgm_as_a_sum_steps_ten_times_as_far_and_expects_the_same():
    average, total = played("fedavgm"), played("fedavgm", form="sum", server_lr=0.1)
    for one, two in zip(average.outcomes, total.outcomes, strict=True):
        torch.testing.assert_close(one.end, two.end)
    method = methods.load("fedavgm")
    torch.testing.assert_close(method(form="sum").momentum(total.state), method().momentum(average.state))


def test_fedavgm_by_nesterov_looks_one_step_ahead():
    first, second = means()
    found = played("fedavgm", beta=0.5, form="sum", nesterov=True)
    torch.testing.assert_close(found.outcomes[0].end - START, 1.5 * first)
    torch.testing.assert_close(found.outcomes[1].end - found.outcomes[0].end, 0.5 * (0.5 * first + second) + second)


@pytest.mark.parametrize("name", ["fedadam", "fedyogi"])
def test_first_step_of_fedadam_and_fedyogi(name):
    """Methods.md 8, identity 8: V = (1 - beta2) d^2 for both, step = lr (1 - beta1) d / (sqrt(1 - beta2) |d| + tau)."""
    d = means()[0]
    found = played(name, server_lr=0.1, beta1=0.9, beta2=0.99, tau=1e-3)
    torch.testing.assert_close(found.outcomes[0].end - START, 0.1 * 0.1 * d / (0.1 * d.abs() + 1e-3))


def test_second_variances_by_hand():
    first, second = means().square()
    last = {name: played(name).state["variance"] for name in ADAPTIVE}
    torch.testing.assert_close(last["fedadam"], 0.99 * 0.01 * first + 0.01 * second)
    before = 0.01 * first
    torch.testing.assert_close(last["fedyogi"], before - 0.01 * second * (before - second).sign())
    torch.testing.assert_close(last["fedadagrad"], first + second)


def test_adaptive_steps_follow_their_moments():
    for name in ADAPTIVE:
        found = played(name, server_lr=0.5, tau=0.1, initial_variance=0.04)
        momentum = 0.9 * 0.1 * means()[0] + 0.1 * means()[1]
        step = 0.5 * momentum / (found.state["variance"].sqrt() + 0.1)
        torch.testing.assert_close(found.outcomes[1].end - found.outcomes[0].end, step)


def test_bias_correction_makes_the_first_fedadam_step_a_sign():
    d = means()[0]
    found = played("fedadam", server_lr=0.1, tau=1e-12, bias_correction=True)
    torch.testing.assert_close(found.outcomes[0].end - START, 0.1 * d.sign())


def test_adaptive_moments_survive_a_round_without_samples():
    for name in ("fedavgm", *ADAPTIVE):
        method, setting = methods.load(name)(), hand.setting(name)
        state = hand.play(method, setting, START, UPDATES, sizes=SIZES).state
        nobody = hand.cohort(START + UPDATES[0], start=START, sizes=(0, 0), weights=hand.vector(0.5, 0.5))
        outcome = method.aggregate(setting, state, nobody)
        assert torch.equal(outcome.end, START), name
        assert outcome.state is state, name


def test_fednova_by_hand():
    """Steps 2 and 4, no momentum: shares 1/4 and 3/4, mean length 3.5, w' = w + 3.5 (1/4 d_1 / 2 + 3/4 d_2 / 4)."""
    setting = hand.setting("fednova", local={"momentum": 0.0})
    group = replace(hand.cohort(START + UPDATES[0], start=START, sizes=SIZES), steps=torch.tensor([2, 4]))
    outcome = setting.experiment.method.aggregate(setting, {}, group)
    expected = 3.5 * (0.25 * UPDATES[0, 0] / 2 + 0.75 * UPDATES[0, 1] / 4)
    torch.testing.assert_close(outcome.end - START, expected)
    torch.testing.assert_close(outcome.weights, hand.vector(0.4, 0.6))
    assert outcome.extras["nova_scale"].item() == pytest.approx(3.5 * (0.125 + 0.1875))


def test_path_length_counts_how_often_momentum_uses_each_gradient():
    rho, steps = 0.9, 7
    uses = [sum(rho**later for later in range(steps - at)) for at in range(steps)]
    assert path_length(torch.tensor([float(steps)]), rho).item() == pytest.approx(sum(uses))
    assert path_length(torch.tensor([3.0]), 0.0).item() == 3


def test_fednova_leaves_out_clients_that_did_not_step():
    setting = hand.setting("fednova")
    group = replace(hand.cohort(START + UPDATES[0], start=START, sizes=SIZES), steps=torch.tensor([0, 4]))
    outcome = setting.experiment.method.aggregate(setting, {}, group)
    torch.testing.assert_close(outcome.end - START, UPDATES[0, 1])
    still = setting.experiment.method.aggregate(setting, {}, replace(group, steps=torch.tensor([0, 0])))
    torch.testing.assert_close(still.end, group.weighted_mean)


def test_fednova_refuses_adam():
    with pytest.raises(ValueError, match="counts steps of SGD"):
        hand.experiment("fednova", local={"optimizer": "adam"})


def test_fedgma_masks_entries_that_clients_disagree_on():
    """Signs of round 0 agree in entries 0 and 2; entry 1 has -2 and 2: agreement 0."""
    d = means()[0]
    for mask in ("soft", "and"):
        found = played("fedgma", mask=mask)
        torch.testing.assert_close(found.outcomes[0].end - START, d * hand.vector(1, 0, 1))
        assert found.outcomes[0].extras["masked"].item() == pytest.approx(1 / 3)
    three = torch.tensor([[[1.0, 1, 1], [1, 1, -1], [1, -1, -1]]], dtype=torch.float64)
    found = played("fedgma", updates=three, sizes=(1, 1, 1), threshold=0.5)
    torch.testing.assert_close(found.outcomes[0].end - START, three[0].mean(0) * hand.vector(1, 1 / 3, 1 / 3))


def test_shrink_scales_the_mean_model_and_its_weights():
    found = played("shrink", gamma=0.9)
    torch.testing.assert_close(found.outcomes[0].end, 0.9 * (START + means()[0]))
    assert found.outcomes[0].weights.sum().item() == pytest.approx(0.9)


@pytest.mark.parametrize(
    ("name", "options"),
    [("fedavgm", {"beta": 0.0}), ("fedgma", {"threshold": 0.0}), ("shrink", {"gamma": 1.0}), ("fednova", {})],
)
def test_identities_with_fedavg(name, options):
    """Methods.md 8, identity 6; FedNova's clients took equally many steps."""
    found, plain = played(name, **options), played("fedavg")
    for one, two in zip(found.outcomes, plain.outcomes, strict=True):
        torch.testing.assert_close(one.end, two.end)
        torch.testing.assert_close(one.weights.double(), two.weights)
