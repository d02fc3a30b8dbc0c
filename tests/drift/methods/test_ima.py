"""IMA: the window by hand, the late schedules against the paper, wrapping of other methods."""

from __future__ import annotations

import pytest
import torch

from drift.config import method as methods
from drift.config.experiment import Experiment, Local
from drift.methods.fedavg import FedAvg
from drift.methods.fedeve import FedEve
from drift.methods.ima import IMA
from drift.training.client import Client
from tests.drift import hand

SIZES = [2, 7, 4]
ROUNDS, D = 8, 3


def played(method, *, rounds=ROUNDS, seed=0, updates=None):
    """Rounds of a method with prescribed client updates."""
    updates = hand.random(rounds, len(SIZES), D, seed=seed) if updates is None else updates
    return hand.play(method, hand.setting(method, rounds=rounds), hand.vector(1, 2, 3), updates, sizes=SIZES)


def ends(run):
    return torch.stack([outcome.end for outcome in run.outcomes])


def test_window_of_one_is_fedavg_bit_for_bit():
    assert torch.equal(ends(played(IMA(window=1, start=0.25))), ends(played(FedAvg())))


def test_its_label_names_the_base_but_fedavg():
    bases = ["fedavg", "fedprox", {"name": "fedlaw", "variant": "gws"}]
    assert [IMA(base=base).label for base in bases] == ["ima", "fedprox+ima", "fedlaw-gws+ima"]


def test_before_the_start_it_is_fedavg_bit_for_bit():
    assert torch.equal(ends(played(IMA(window=3, start=5)))[:5], ends(played(FedAvg()))[:5])


def test_end_is_the_mean_of_the_last_plain_aggregates():
    run = played(IMA(window=3, start=4))
    aggregates = torch.stack([group.weighted_mean for group in run.groups])
    for index in range(4, ROUNDS):
        expected = aggregates[index - 2 : index + 1].mean(0)
        assert torch.allclose(run.outcomes[index].end, expected, rtol=1e-14)
        assert torch.equal(run.outcomes[index].extras["aggregate"], aggregates[index])
    assert all("aggregate" not in run.outcomes[index].extras for index in range(4))


def test_clients_continue_from_the_mean():
    run = played(IMA(window=3, start=4))
    for index in range(5, ROUNDS):
        assert torch.equal(run.groups[index].start, run.outcomes[index - 1].end)
    assert torch.equal(run.groups[4].start, run.groups[3].weighted_mean)


def test_without_feedback_clients_continue_from_the_last_aggregate():
    """The aggregates are those of FedAvg; their mean, over a window that takes in all of them, is evaluated."""
    plain = ends(played(FedAvg()))
    run = played(IMA(window=ROUNDS, start=3, feedback=False))
    torch.testing.assert_close(torch.stack([group.start for group in run.groups])[1:], plain[:-1])
    for index in range(3, ROUNDS):
        torch.testing.assert_close(run.outcomes[index].end, plain[: index + 1].mean(0))
    assert IMA(feedback=False).label == "ima-no_feedback"
    assert IMA(feedback=False, base="fedsam").label == "fedsam+ima-no_feedback"


def test_without_feedback_the_base_steps_from_its_own_model():
    base = {"name": "fedadam", "server_lr": 0.3}
    run = played(IMA(base=base, window=2, start=4, feedback=False))
    adam = ends(played(methods.load("fedadam")(server_lr=0.3)))
    for index in range(4, ROUNDS):
        torch.testing.assert_close(run.outcomes[index].end, adam[index - 1 : index + 1].mean(0))


def test_constant_aggregates_stay_constant():
    run = played(IMA(window=5, start=0), updates=torch.zeros(ROUNDS, 3, D, dtype=torch.float64))
    assert torch.allclose(ends(run), hand.vector(1, 2, 3).expand(ROUNDS, D), rtol=1e-15)


def test_young_window_averages_what_is_there():
    run = played(IMA(window=5, start=0))
    aggregates = torch.stack([group.weighted_mean for group in run.groups])
    for index in range(4):
        assert torch.allclose(run.outcomes[index].end, aggregates[: index + 1].mean(0), rtol=1e-14)


def test_first_window_begins_one_round_early():
    run = played(IMA(window=3, start=4, first="window"))
    aggregates = torch.stack([group.weighted_mean for group in run.groups])
    assert torch.allclose(run.groups[4].start, aggregates[1:4].mean(0), rtol=1e-14)
    assert torch.equal(run.outcomes[2].end, aggregates[2])


def test_state_holds_at_most_the_window_and_nothing_long_before():
    run = played(IMA(window=3, start=6))
    assert run.state["window"].shape == (3, D)
    assert [len(outcome.state.get("window", ())) for outcome in run.outcomes] == [0, 0, 0, 0, 1, 2, 3, 3]


@pytest.mark.parametrize(
    ("start", "rounds", "first"),
    [(0.75, 400, 300), (0.75, 15, 11), (0.29, 100, 29), (12, 15, 12), (0, 7, 0), (1, 7, 1)],
)
def test_start_is_a_fraction_or_a_round(start, rounds, first):
    assert IMA(start=start).first_round(rounds) == first


def rates(method, *, rounds=400, local=None):
    local = Local(lr=0.01, lr_decay=0.99) if local is None else local
    return [method.schedule(local, index, rounds) for index in range(rounds)]


def test_exp_schedule_has_the_rates_of_the_paper():
    lrs = [local.lr for local in rates(IMA())]
    assert lrs[299] == pytest.approx(0.01 * 0.99**299)
    assert lrs[300] == pytest.approx(4.9e-4, rel=1e-2)
    assert lrs[399] == pytest.approx(2.4e-5, rel=1e-2)
    assert lrs[301] / lrs[300] == pytest.approx(0.97)


def test_const_and_na_schedules():
    assert {local.lr for local in rates(IMA(late="const"))[300:]} == {5e-5}
    assert rates(IMA(late="na")) == rates(FedAvg())


def test_sawtooth_falls_from_top_to_bottom_in_each_cycle():
    lrs = [local.lr for local in rates(IMA(late="cyclic"))]
    assert (lrs[300], lrs[319], lrs[320], lrs[339]) == pytest.approx((1e-2, 5e-5, 1e-2, 5e-5))
    assert lrs[301] == pytest.approx(1e-2 - (1e-2 - 5e-5) / 19)


def test_triangle_falls_from_the_decayed_rate_and_returns_to_it_without_a_jump():
    lrs = [local.lr for local in rates(IMA(late="cyclic", cyclic="triangular"))]
    top = 0.01 * 0.99**300
    assert (lrs[300], lrs[305], lrs[310], lrs[320]) == pytest.approx((top, (top + 5e-5) / 2, 5e-5, top))
    assert lrs[311] == pytest.approx(lrs[309])
    assert max(lrs[300:]) == pytest.approx(top)


def test_epoch_schedule_shortens_training_and_keeps_the_rate():
    found = rates(IMA(late="epoch"), local=Local(lr=0.01, lr_decay=0.99, epochs=3))
    assert [found[index].epochs for index in (299, 300, 319, 320, 340, 399)] == [3, 3, 3, 2, 1, 1]
    assert found[350].lr == pytest.approx(0.01 * 0.99**350)
    again = rates(IMA(late="epoch", restart_lr=True), local=Local(lr=0.01, lr_decay=0.99, epochs=3))
    assert (again[299].lr, again[300].lr, again[310].lr) == pytest.approx((0.01 * 0.99**299, 0.01, 0.01 * 0.99**10))


def test_stage_schedule_halves():
    lrs = [local.lr for local in rates(IMA(late="stage", halve_every=7))]
    top = 0.01 * 0.99**300
    assert (lrs[306], lrs[307], lrs[314]) == pytest.approx((top, top / 2, top / 4))


@pytest.mark.parametrize("base", [FedAvg(server_lr=0.5), FedEve()])
@pytest.mark.parametrize("placement", ["inside", "post"])
def test_before_the_start_a_wrapped_method_is_itself(base, placement):
    wrapped = played(IMA(base=base, window=3, start=6, placement=placement))
    assert torch.equal(ends(wrapped)[:6], ends(played(base))[:6])


@pytest.mark.parametrize("placement", ["inside", "post"])
def test_window_of_one_without_reset_is_the_wrapped_method(placement):
    wrapped = played(IMA(base=FedEve(), window=1, start=2, placement=placement, reset=False))
    assert torch.allclose(ends(wrapped), ends(played(FedEve())), rtol=1e-13)


def test_placement_inside_feeds_the_mean_to_the_server_step():
    run = played(IMA(base=FedAvg(server_lr=0.5), window=2, start=3))
    mean = (run.groups[2].weighted_mean + run.groups[3].weighted_mean) / 2
    expected = run.groups[3].theta + 0.5 * (mean - run.groups[3].start)
    assert torch.allclose(run.outcomes[3].end, expected, rtol=1e-14)


def test_placement_post_averages_what_the_server_step_gave():
    run = played(IMA(base=FedAvg(server_lr=0.5), window=2, start=3, placement="post"))
    given = [group.theta + 0.5 * (group.weighted_mean - group.start) for group in run.groups]
    assert torch.allclose(run.outcomes[3].end, (given[2] + given[3]) / 2, rtol=1e-14)


def test_moments_are_reset_once_at_the_start_and_then_grow_again():
    base = FedEve(sigma0=0.25)
    run = played(IMA(base=base, window=2, start=3))
    after = [outcome.state for outcome in run.outcomes]
    assert after[1]["base.momentum"].norm() > 0
    assert torch.equal(after[2]["base.momentum"], torch.zeros(D, dtype=torch.float64))
    assert float(after[2]["base.variance"]) == 0.25
    assert torch.equal(run.groups[3].start, run.groups[3].theta)
    assert after[3]["base.momentum"].norm() > 0
    kept = played(IMA(base=base, window=2, start=3, reset=False)).outcomes[2].state
    assert kept["base.momentum"].norm() > 0


def test_broadcast_and_momentum_are_those_of_the_base():
    method = IMA(base=FedEve(), window=2, start=6)
    run = played(method)
    state = run.outcomes[3].state
    assert torch.equal(method.momentum(state), -state["base.momentum"])
    assert torch.equal(run.groups[4].start, run.outcomes[3].end - state["base.momentum"])


def test_base_trains_its_clients_and_sees_its_own_server_state(monkeypatch):
    seen = {}

    def local(self, client):
        seen.update(client.server)
        return "update"

    monkeypatch.setattr(FedEve, "local", local)
    theta = hand.random(D)
    setting = hand.setting()
    client = Client(
        id=1,
        index=0,
        seed=0,
        samples=setting.task.samples["train"],
        start=theta,
        buffers=theta[:0],
        local=Local(),
        flat=setting.task.flat(theta),
        server={"base.momentum": theta, "window": theta[None]},
    )
    assert IMA(base=FedEve()).local(client) == "update"
    assert list(seen) == ["momentum"]
    assert torch.equal(seen["momentum"], theta)


def test_default_base_is_fedavg_and_names_and_tables_are_read():
    assert IMA().base == FedAvg()
    assert IMA(base="fedeve").base == FedEve()
    assert IMA(base={"name": "fedavg", "server_lr": 0.5}).base == FedAvg(server_lr=0.5)


def test_resolved_experiment_round_trips_with_the_base():
    before = hand.experiment({"name": "ima", "window": 3, "base": {"name": "fedeve", "q_mode": "update_norm"}})
    after = Experiment.model_validate(before.resolved())
    assert after == before
    assert after.hash == before.hash
    assert before.resolved()["method"]["base"]["q_mode"] == "update_norm"


def test_a_wrapped_method_that_needs_a_proxy_set_is_refused_without_one():
    with pytest.raises(ValueError, match="proxy"):
        hand.experiment({"name": "ima", "base": "fedlaw"})
    assert not IMA().needs_proxy


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"window": 11}, "window is 11"),
        ({"window": 0}, "window"),
        ({"start": 10}, "last round is 9"),
        ({"start": 3.5}, "start is 3.5"),
        ({"start": -1}, "start"),
        ({"base": {"name": "ima"}}, "ima itself"),
        ({"base": {"server_lr": 1}}, "without a name"),
        ({"base": "fedavgg"}, "Did you mean 'fedavg'"),
        ({"base": {"name": "fedavg", "serverlr": 1}}, "serverlr"),
        ({"late": "linear"}, "late"),
        ({"lr_min": 1.0}, "lr_min"),
    ],
)
def test_senseless_options_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        hand.experiment({"name": "ima", **options})


def test_epoch_schedule_needs_epochs():
    with pytest.raises(ValueError, match=r"local\.steps"):
        hand.experiment({"name": "ima", "late": "epoch"}, local={"steps": 8})
