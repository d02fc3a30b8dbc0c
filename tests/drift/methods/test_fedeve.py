"""FedEve against numbers by hand and a second, plain implementation of its equations."""

from __future__ import annotations

import pytest
import torch

from drift.methods.fedavg import FedAvg
from drift.methods.fedeve import FedEve, fuse
from tests.drift import hand

SIZES = [2, 7, 4]


def played(method, updates, *, sizes=SIZES, theta=None):
    d = updates.shape[-1]
    theta = hand.random(d, seed=9) if theta is None else theta
    return hand.play(method, hand.setting(method, d=d), theta, updates, sizes=sizes)


def ends(run):
    return torch.stack([outcome.end for outcome in run.outcomes])


def test_two_clients_in_one_dimension_by_hand():
    updates = -hand.vector(1, 3).view(1, 2, 1)
    run = played(FedEve(), updates, sizes=[1, 1], theta=hand.vector(5))
    outcome = run.outcomes[0]
    assert outcome.extras == {
        "q_variance": pytest.approx(2),
        "r_variance": pytest.approx(0.5),
        "gain": pytest.approx(0.8),
        "sigma": pytest.approx(0.4),
    }
    assert float(outcome.state["momentum"]) == pytest.approx(1.6)
    assert float(outcome.end) == pytest.approx(5 - 1.6)


def test_second_round_by_hand():
    updates = -torch.tensor([[[1.0], [3.0]], [[0.0], [2.0]]], dtype=torch.float64)
    run = played(FedEve(), updates, sizes=[1, 1], theta=hand.vector(5))
    assert float(run.groups[1].start) == pytest.approx(3.4 - 1.6)
    q, r = 0.6**2 / 2, 0.5
    gain = (0.4 + q) / (0.4 + q + r)
    assert float(run.outcomes[1].extras["gain"]) == pytest.approx(gain)
    assert float(run.outcomes[1].end) == pytest.approx(3.4 - (1.6 + gain * (1 - 1.6)))


def test_the_next_start_takes_twice_the_gain_of_the_mean_update():
    run = played(FedEve(), hand.random(3, len(SIZES), 4, seed=1))
    for index in (0, 1):
        start, mean = run.groups[index].start, run.groups[index].weighted_mean - run.groups[index].start
        end_before = run.outcomes[index - 1].end if index else start
        share = 2 * float(run.outcomes[index].extras["gain"])
        expected = start + (1 - share) * (start - end_before) + share * mean
        torch.testing.assert_close(run.groups[index + 1].start, expected)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"q_mode": "update_norm"},
        {"r_center": "uniform"},
        {"sigma0": 0.3},
        {"fusion": "lookahead"},
        {"predict": False},
        {"server_lr": 0.5},
        {"gain": "layer"},
        {"gain": "layer", "fusion": "lookahead", "sigma0": 0.3},
    ],
)
def test_rounds_equal_a_plain_transcription_of_the_equations(options):
    updates = hand.random(4, 3, 3)
    run = played(FedEve(**options), updates)
    parts = [slice(0, 2), slice(2, 3)] if options.get("gain") == "layer" else [slice(0, 3)]
    lr, shares = options.get("server_lr", 1.0), torch.tensor(SIZES).double() / sum(SIZES)
    w, momentum = hand.random(3, seed=9), torch.zeros(3, dtype=torch.float64)
    sigma = [options.get("sigma0", 0.0)] * len(parts)
    for index, deltas in enumerate(updates):
        start = w - lr * momentum if options.get("predict", True) else w
        assert torch.allclose(run.groups[index].start, start, rtol=1e-12)
        pseudo, end, after = -deltas, w.clone(), momentum.clone()
        mean = shares @ pseudo
        centre = pseudo.mean(0) if options.get("r_center") == "uniform" else mean
        for number, part in enumerate(parts):
            d, m = len(w[part]), len(SIZES)
            difference = mean if options.get("q_mode") == "update_norm" else momentum - mean
            q = float(difference[part].square().sum()) / (m * d)
            r = float((pseudo - centre)[:, part].square().sum()) / (m * m * d)
            predicted = sigma[number] + q
            gain = predicted / (predicted + r)
            after[part] = momentum[part] + gain * (mean - momentum)[part]
            sigma[number] = (1 - gain) * predicted
            end[part] = (
                start[part] - gain * lr * mean[part]
                if options.get("fusion") == "lookahead"
                else w[part] - lr * after[part]
            )
            if len(parts) == 2:
                assert float(run.outcomes[index].extras["layer_gain"][number]) == pytest.approx(gain)
        if len(parts) == 1:
            assert float(run.outcomes[index].extras["gain"]) == pytest.approx(gain)
            assert float(run.outcomes[index].extras["sigma"]) == pytest.approx(sigma[0])
        w, momentum = end, after
        assert torch.allclose(run.outcomes[index].end, w, rtol=1e-12)
        assert torch.allclose(run.outcomes[index].state["momentum"], momentum, rtol=1e-12)


def test_gain_does_not_depend_on_the_scale_of_the_updates():
    updates = hand.random(5, 3, 4)
    one, other = (played(FedEve(), scale * updates) for scale in (1.0, 1e-3))
    for first, second in zip(one.outcomes, other.outcomes, strict=True):
        assert float(first.extras["gain"]) == pytest.approx(float(second.extras["gain"]), rel=1e-10)
    assert float(other.outcomes[0].extras["q_variance"]) == pytest.approx(
        1e-6 * float(one.outcomes[0].extras["q_variance"])
    )


def test_first_gain_follows_from_the_norms_for_equal_weights():
    deltas = hand.random(3, 4)
    gain = played(FedEve(), deltas[None], sizes=[4, 4, 4]).outcomes[0].extras["gain"]
    assert float(gain) == pytest.approx(float(deltas.mean(0).square().sum() / deltas.square().sum(1).mean()))


@pytest.mark.parametrize(
    ("deltas", "gain"),
    [
        ([[1.0, 2.0], [1.0, 2.0]], 1.0),
        ([[1.0, 0.0], [0.0, 1.0]], 0.5),
        ([[1.0, 2.0], [-1.0, -2.0]], 0.0),
        ([[0.0, 0.0], [0.0, 0.0]], 1.0),
        ([[1.0, 2.0]], 1.0),
    ],
)
def test_first_gain_of_equal_orthogonal_cancelling_resting_and_single_clients(deltas, gain):
    updates = torch.tensor([deltas], dtype=torch.float64)
    assert float(played(FedEve(), updates, sizes=[5] * len(deltas)).outcomes[0].extras["gain"]) == pytest.approx(gain)


def test_constant_equal_variances_lead_to_the_golden_ratio():
    variance, one = torch.zeros((), dtype=torch.float64), torch.ones((), dtype=torch.float64)
    for _ in range(50):
        gain, variance = fuse(variance, one, one)
    assert float(gain) == pytest.approx((5**0.5 - 1) / 2)


def test_without_prediction_identical_clients_make_it_fedavg():
    updates = hand.random(4, 1, 3).expand(4, 3, 3)
    assert torch.allclose(ends(played(FedEve(predict=False), updates)), ends(played(FedAvg(), updates)), rtol=1e-13)


def test_clients_without_samples_do_not_count():
    deltas = hand.random(1, 2, 3)
    resting = torch.cat([deltas, torch.zeros(1, 1, 3, dtype=torch.float64)], dim=1)
    one = played(FedEve(), deltas, sizes=[2, 7]).outcomes[0]
    other = played(FedEve(), resting, sizes=[2, 7, 0]).outcomes[0]
    assert one.extras == {name: pytest.approx(float(value)) for name, value in other.extras.items()}


def test_a_round_without_samples_is_skipped():
    method, theta = FedEve(), hand.random(3)
    setting = hand.setting(method)
    state = {"momentum": hand.random(3, seed=1), "variance": hand.vector(0.4)[0]}
    start = method.broadcast(state, theta, 3)
    group = hand.cohort(start.repeat(2, 1), start=start, theta=theta, sizes=[0, 0], weights=hand.vector(0.5, 0.5))
    outcome = method.aggregate(setting, state, group)
    assert torch.equal(outcome.end, theta)
    assert outcome.state is state
    assert torch.isnan(outcome.extras["gain"])


def test_momentum_hook_has_the_sign_of_client_updates():
    run = played(FedEve(), hand.random(2, 3, 3))
    assert torch.allclose(
        FedEve().momentum(run.outcomes[0].state), run.outcomes[0].end - run.groups[0].theta, rtol=1e-12
    )


def test_single_precision_stays_single():
    method = FedEve(gain="layer")
    theta = torch.zeros(3)
    state = method.initial(hand.setting(method), theta)
    outcome = method.aggregate(hand.setting(method), state, hand.cohort(hand.random(2, 3).float(), start=theta))
    assert outcome.end.dtype == outcome.state["momentum"].dtype == torch.float32
    assert outcome.extras["layer_gain"].shape == (2,)
    assert outcome.extras["gain"].shape == ()


def test_hooks_change_nothing_that_they_are_given():
    method, theta = FedEve(), hand.random(3)
    setting = hand.setting(method)
    state = {"momentum": hand.random(3, seed=1), "variance": hand.vector(0.4)[0]}
    before = {name: value.clone() for name, value in state.items()}
    group = hand.cohort(hand.random(2, 3, seed=2), start=method.broadcast(state, theta, 0), theta=theta, sizes=[2, 7])
    clients = group.clients.clone()
    method.aggregate(setting, state, group)
    assert all(torch.equal(state[name], before[name]) for name in before)
    assert torch.equal(group.clients, clients)
