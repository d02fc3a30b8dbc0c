"""Corrupted clients: whose labels are swapped, and that everything sees the same ones."""

import numpy as np
import pytest
import torch
from replays import replay

from drift.config.load import read, validated
from drift.simulation.simulate import simulate
from drift.training.corrupted_labels import corrupted_targets, swaps
from drift.training.data import read_data

TINY = {
    "rounds": 2,
    "seed": 3,
    "task": {"dataset": "digits", "model": "linear", "train_samples": 150, "test_samples": 60},
    "clients": {"number": 5, "per_round": 3, "partition": "shards", "valid_ratio": 0.2},
    "local": {"lr": 0.05, "epochs": 1, "batch": 16},
}


def experiment(*changes):
    return read(validated(TINY), *changes)


@pytest.mark.parametrize(("given", "count"), [(0.0, 0), (0.1, 1), (0.4, 2), (1, 5), ([4, 1], 2)])
def test_only_corrupted_clients_have_two_of_their_own_labels_swapped(given, count):
    clean, found = read_data(experiment(), None), read_data(experiment(f"clients.corrupted={given}"), None)
    assert len(found.corrupted) == count
    assert clean.corrupted == {}
    if isinstance(given, list):
        assert sorted(found.corrupted) == sorted(given)
    assert found.fingerprint == clean.fingerprint
    assert torch.equal(found.samples["train"].inputs, clean.samples["train"].inputs)
    assert torch.equal(found.samples["test"].targets, clean.samples["test"].targets)
    for client in range(5):
        numbers = np.concatenate([clean.parts[client], clean.held_out[client]])
        assert np.array_equal(clean.parts[client], found.parts[client])
        before, after = clean.labels[numbers], found.labels[numbers]
        one, other = found.corrupted.get(client, (0, 0))
        expected = np.where(before == one, other, np.where(before == other, one, before))
        assert np.array_equal(after, expected)
        assert (client in found.corrupted) == (not np.array_equal(before, after))


def test_a_client_with_one_class_takes_it_for_another():
    labels, parts = np.array([2, 2, 2, 0, 1]), [np.array([0, 1, 2]), np.array([3]), np.zeros(0, dtype=int)]
    found = swaps(experiment("clients.corrupted=[0, 1, 2]"), labels, parts, 3)
    assert 2 in found[0]
    assert 0 in found[1]
    assert all(one < other for one, other in found.values())
    swapped = corrupted_targets(torch.from_numpy(labels), parts, found)
    assert (swapped[:4] != torch.from_numpy(labels[:4])).all()
    assert swapped[4] == 1
    with pytest.raises(ValueError, match="there is 1 class"):
        swaps(experiment("clients.corrupted=[0]"), labels, parts, 1)


def test_the_draw_is_keyed_by_the_seed():
    draws = [read_data(experiment("clients.corrupted=0.4", f"seed={seed}"), None).corrupted for seed in (3, 3, 4, 5)]
    assert draws[0] == draws[1]
    assert len({tuple(draw) for draw in draws}) > 1


def test_training_and_the_record_see_the_corrupted_labels(tmp_path):
    clean, run = (simulate(experiment(*more), runs=tmp_path) for more in ([], ["clients.corrupted=[0, 2]"]))
    assert torch.equal(run.task.samples["train"].targets, torch.from_numpy(run.labels))
    record, before = run.round(0), clean.round(0)
    for row, client in enumerate(record.ids.tolist()):
        same = client not in run.dataset.corrupted
        assert torch.equal(record.clients[row], before.clients[row]) == same
        targets, true = run.client_samples(client).targets, clean.client_samples(client).targets
        assert torch.equal(targets, true) == same
    jobs = [(1, client, 0) for client in run.round(1).ids.tolist()]
    assert torch.equal(replay(run, jobs)[0], run.round(1).clients)


def test_runs_without_corruption_keep_their_name():
    assert experiment("clients.corrupted=0").hash == experiment().hash
    assert experiment("clients.corrupted=[]").hash == experiment().hash
    names = {experiment(f"clients.corrupted={given}").hash for given in (0, 0.2, 0.4, [1], [2])}
    assert len(names) == 5
    assert validated(experiment("clients.corrupted=[1]").resolved()) == experiment("clients.corrupted=[1]")


@pytest.mark.parametrize("given", ["[5]", "[1, 1]", "1.5", "-0.1"])
def test_clients_that_cannot_be_are_refused(given):
    with pytest.raises(ValueError, match="corrupted"):
        experiment(f"clients.corrupted={given}")
