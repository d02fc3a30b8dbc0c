"""Clients with other numbers of steps, that stop, are late, or compress what they send."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch

from drift.analyses.counterfactual.changes import UNCHANGED
from drift.analyses.counterfactual.replayed_rounds import play_again
from drift.config.experiment import Local
from drift.simulation.recompute import Inexact, recompute_rounds
from drift.simulation.simulate import simulate
from drift.training.unequal_clients import compressed, rounds_late, share_of_steps, stopped

KEEP = ("rounds=5", "keep.clients=all", "keep.globals=all", "local.epochs=3")
UNEQUAL = (*KEEP, "clients.late=2", "clients.work=[0.3,1.0]", "clients.stops=0.3", "local.compress=top-k")


def test_draws_do_not_depend_on_method_and_reach_their_ends():
    experiment = tiny.experiment("clients.late=2", "clients.work=[0.3,0.8]", "clients.stops=0.3")
    late = [rounds_late(experiment, 9, client) for client in range(200)]
    assert set(late) == {0, 1, 2}
    assert {rounds_late(experiment, 1, client) for client in range(50)} == {0, 1}  # none starts before round 0
    shares = [share_of_steps(experiment, 9, client) for client in range(200)]
    assert 0.3 <= min(shares) < 0.35 and 0.75 < max(shares) <= 0.8
    many = tiny.experiment("clients.stops=0.3", "clients.number=400")
    assert 85 < len(stopped(many, 9, np.arange(400))) < 155
    some = np.arange(0, 400, 3)
    assert set(stopped(many, 9, some)) == set(stopped(many, 9, np.arange(400))) & set(some)
    everyone = tiny.experiment("clients.stops=0.999999")
    assert len(stopped(everyone, 0, np.arange(4))) == 3
    assert not len(stopped(tiny.experiment(), 0, np.arange(4)))


@pytest.mark.parametrize("method", ["fedavg", "fedbuff", "fednova", "ima"])
def test_a_stopped_run_of_unequal_clients_continues_with_the_same_bits(method, tmp_path):
    more = ["method.window=2", "method.start=0.4"] if method == "ima" else []
    experiment = tiny.experiment(*UNEQUAL, f"method={method}", *more)
    whole = simulate(experiment, runs=tmp_path / "whole")
    simulate(experiment, runs=tmp_path / "parts", until=3)
    tiny.assert_same_bits(whole, simulate(experiment, runs=tmp_path / "parts"))


@pytest.mark.seconds
def test_processes_train_unequal_clients_with_the_same_bits(tmp_path):
    experiment = tiny.experiment(*UNEQUAL)
    tiny.assert_same_bits(
        simulate(experiment, runs=tmp_path / "one"), simulate(experiment, runs=tmp_path / "two", workers=2)
    )


def test_the_batched_engine_trains_unequal_clients_alike(tmp_path):
    serial, batched = (tiny.trained(tmp_path, *UNEQUAL, f"engine={engine}") for engine in ("serial", "batched"))
    for index in serial.rounds():
        one, two = serial.round(index), batched.round(index)
        assert torch.equal(one.extras["steps"], two.extras["steps"])
        torch.testing.assert_close(one.clients, two.clients, rtol=0, atol=1e-5)


def test_a_late_client_starts_from_the_earlier_model_and_its_update_is_measured_against_it(tmp_path):
    run = tiny.trained(tmp_path, *KEEP, "clients.late=2")
    seen = set()
    for index in run.rounds():
        record = run.round(index)
        for row, client in enumerate(record.ids.tolist()):
            begun = int(record.extras["start_round"][row])
            origin = run.round(begun).start
            ready = run.client(index, client)
            assert torch.equal(ready.start, origin)
            update = run.method.local(ready).theta - origin
            torch.testing.assert_close(record.deltas[row], update, rtol=0, atol=1e-6)
            square = float(update.double() @ update.double())
            assert float(record.gram[3 + row, 3 + row]) == pytest.approx(square, rel=1e-4)
            assert torch.equal(ready.sent(run.method.local(ready)).theta, record.clients[row])  # the recorded bits
            seen.add(index - begun)
    assert seen == {0, 1, 2}


def test_clients_do_their_share_of_steps_and_those_that_stop_are_listed(tmp_path):
    run = tiny.trained(tmp_path, *KEEP, "clients.work=[0.3,0.9]", "clients.stops=0.4")
    plain = tiny.trained(tmp_path, *KEEP)
    lost = 0
    for index in run.rounds():
        record = run.round(index)
        gone = record.extras.get("stopped", torch.zeros(0, dtype=torch.int64)).tolist()
        assert sorted([*record.ids.tolist(), *gone]) == run.cohort(index).tolist()
        lost += len(gone)
        assert float(record.weights.sum()) == pytest.approx(1)
        for row, client in enumerate(record.ids.tolist()):
            planned = 3 * plain.client(index, client).batches_per_epoch
            expected = max(1, round(planned * share_of_steps(run.experiment, index, client)))
            assert int(record.extras["steps"][row]) == expected <= planned
    assert lost > 0
    assert "steps" not in plain.round(0).extras


def test_compression_by_hand():
    update = torch.tensor([0.3, -4.0, 0.0, 2.0, -1.0])
    kept = compressed(update, Local(compress="top-k", topk=0.4))
    assert kept.tolist() == [0.0, -4.0, 0.0, 2.0, 0.0]
    assert compressed(update, Local(compress="top-k", topk=0.01)).tolist() == [0.0, -4.0, 0.0, 0.0, 0.0]
    level = 4 / 127
    rounded = compressed(update, Local(compress="8-bit"))
    expected = [round(value / level) * level for value in update.tolist()]
    torch.testing.assert_close(rounded, torch.tensor(expected))
    assert float((rounded - update).abs().max()) <= level / 2 + 1e-7
    assert compressed(torch.zeros(3), Local(compress="8-bit")).tolist() == [0, 0, 0]
    assert compressed(update, Local()) is update


def test_late_clients_are_replayed_and_not_recomputed_from_one_round(tmp_path):
    run = tiny.trained(tmp_path, *UNEQUAL)
    again = play_again(run, UNCHANGED.name, 3, 2)
    assert all(torch.equal(again[index], run.round(index).end) for index in (3, 4))
    with pytest.raises(Inexact, match="late clients start from"):
        recompute_rounds(run, [3], [0, 1, 2, 4])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (("clients.work=[0.9,0.2]",), "smaller share first"),
        (("clients.late=1", "method=scaffold", "local.momentum=0"), "scaffold sends .* set clients.late=0"),
        (("local.compress=8-bit", "method=dpfedavg"), "local.compress=none"),
    ],
)
def test_settings_that_cannot_be_are_refused(settings, message):
    with pytest.raises(ValueError, match=message):
        tiny.experiment(*settings)


def test_equal_clients_have_the_name_and_the_record_that_they_had():
    plain, more = tiny.experiment(), tiny.experiment("clients.late=0", "clients.work=[1.0,1.0]", "local.topk=0.1")
    assert plain.hash == more.hash != tiny.experiment("clients.late=1").hash
