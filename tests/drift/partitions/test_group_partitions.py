"""Partitions by groups of samples: domains, users, and the divided sets of clients."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from drift.config.load import validated
from drift.config.random_keys import rng
from drift.partitions import histogram, load
from drift.runs.run import Run
from drift.simulation.simulate import simulate
from drift.training.data import build_task, read_data
from tests import movielens


def test_domains_have_clients_of_their_own():
    domain = np.random.default_rng(3).permutation(np.repeat([0, 1, 4], [300, 900, 1800]))
    partition = load("domains")()
    parts = partition.split(TEN, 8, rng(0), {"domain": domain})
    assert [np.unique(domain[part]).tolist() for part in parts] == [[0]] * 3 + [[1]] * 3 + [[4]] * 2
    assert [len(part) for part in parts] == [100] * 3 + [300] * 3 + [900] * 2
    nested = load("domains")(base={"name": "users"}).split(
        TEN, 6, rng(0), {"domain": domain, "user": np.arange(3000) % 2}
    )
    assert all(len(np.unique(part % 2)) == 1 for part in nested)
    with pytest.raises(ValueError, match="2 clients cannot have 3 domains of their own; use at least 3 clients"):
        partition.split(TEN, 2, rng(0), {"domain": domain})
    with pytest.raises(ValueError, match="base is drift, which redistributes data each round"):
        load("domains")(base={"name": "drift", "setting": "period"})


def test_one_domain_a_client_leaves_out_the_last_or_the_named_ones():
    domain = np.arange(3000) % 6
    for options, held in (({}, [0, 1, 2, 3, 4]), ({"leave_out": (1,)}, [0, 2, 3, 4, 5])):
        parts = load("one_domain")(**options).split(TEN, 5, rng(0), {"domain": domain})
        assert [np.unique(domain[part]).tolist() for part in parts] == [[one] for one in held]
        assert [len(part) for part in parts] == [500] * 5
    with pytest.raises(ValueError, match="7 clients and 6 domains; one domain per client needs 6 clients"):
        load("one_domain")().split(TEN, 7, rng(0), {"domain": domain})


def test_users_are_whole_and_chosen_at_random_where_there_are_more():
    user = np.random.default_rng(4).permutation(np.repeat([3, 8, 9, 20], [1, 10, 100, 2889]))
    users = [
        [int(np.unique(user[part])[0]) for part in load("users")(minimum=2).split(TEN, 2, rng(seed), {"user": user})]
        for seed in range(20)
    ]
    assert {tuple(one) for one in users} == {(8, 9), (8, 20), (9, 20)}
    parts = load("users")().split(TEN, 4, rng(0), {"user": user})
    assert [len(part) for part in parts] == [1, 10, 100, 2889]
    with pytest.raises(ValueError, match="4 clients asked for, 3 users have at least 2 samples; use at most 3"):
        load("users")(minimum=2).split(TEN, 4, rng(0), {"user": user})


TEN = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 300))
SEEDS = st.integers(0, 2**32)


@given(SEEDS, st.floats(0.01, 0.99))
def test_the_lss_split_divides_each_client_in_proportion(seed, share):
    partition = load("lss_split")(test=share, base="iid")
    labels = np.repeat([0, 1, 2], [40, 4, 100])
    parts = partition.split(labels, 3, rng(seed))
    train, test = partition.tested(labels, parts, rng(seed))
    for part, one, other in zip(parts, train, test, strict=True):
        assert np.array_equal(np.union1d(one, other), part)
        assert len(one) + len(other) == len(part)
        assert len(other) == int(share * len(part) + 0.5)
        held = histogram(labels, [part, other], 3)
        assert np.abs(held[1] - share * held[0]).max() <= 1.5


TINY = {
    "rounds": 2,
    "task": {"dataset": "digits", "model": "linear"},
    "clients": {"number": 6, "per_round": 3, "partition": "iid"},
    "local": {"epochs": 1},
}


def experiment(task=None, **clients):
    return validated({**TINY, "task": task or TINY["task"], "clients": {**TINY["clients"], **clients}})


def test_the_lss_split_makes_a_test_set_of_the_clients_parts():
    plain, found = read_data(experiment(), None), read_data(experiment(partition="lss_split"), None)
    train, test = found.samples["train"], found.samples["test"]
    assert (len(train) + len(test), len(plain.samples["train"]) + len(plain.samples["test"])) == (1797, 1797)
    assert len(test) == pytest.approx(1797 / 4, abs=3)
    assert np.array_equal(np.sort(np.concatenate(found.parts)), np.arange(len(train)))
    assert all((np.diff(part) == 1).all() for part in found.parts)
    both = torch.cat([train.inputs, test.inputs]).flatten(1)
    original = torch.cat([plain.samples["train"].inputs, plain.samples["test"].inputs]).flatten(1)
    assert torch.equal(both.unique(dim=0), original.unique(dim=0))
    assert found.fingerprint == plain.fingerprint
    again = read_data(experiment(partition="lss_split"), None)
    assert torch.equal(again.samples["test"].inputs, test.inputs)


def test_partitions_that_look_at_groups_name_datasets_that_have_them():
    with pytest.raises(ValueError, match=r"partition users needs the user of every sample, .*femnist, movielens1m"):
        read_data(experiment(partition="users"), None)


def test_din_trains_on_natural_users_and_ranks(tmp_path):
    movielens.write(tmp_path / "data" / "movielens1m")
    wanted = validated(
        {
            **TINY,
            "task": movielens.TASK,
            "clients": {"number": 3, "per_round": 2, "partition": "users"},
            "local": {"optimizer": "adam", "lr": 0.01, "epochs": 2},
        }
    )
    data = read_data(wanted, tmp_path / "data")
    users = data.groups["user"].train.numpy()
    assert [len(np.unique(users[part])) for part in data.parts] == [1, 1, 1]
    outputs = build_task(wanted, data).outputs(build_task(wanted, data).theta, "test")
    assert outputs.shape == (len(data.samples["test"]), 1)
    run = simulate(wanted, runs=tmp_path / "runs", data=tmp_path / "data")
    assert isinstance(run, Run)
    error = run.round(-1).metrics["error"]
    predicted = run.task.outputs(run.round(-1).end, "test")[:, 0] > 0
    assert error == pytest.approx(float((predicted != (data.samples["test"].targets > 0)).double().mean()))


def test_subsets_keep_their_groups(tmp_path):
    movielens.write(tmp_path / "movielens1m")
    task = {
        "dataset": "movielens1m",
        "model": "din",
        "dataset_options": {"any_size": True, "history": 4},
        "train_samples": 40,
        "test_samples": 20,
    }
    data = read_data(experiment(task, number=2, per_round=1), tmp_path)
    for split in ("train", "test"):
        names, numbers = data.groups["user"].names, getattr(data.groups["user"], split)
        users = torch.tensor([int(names[number]) for number in numbers])
        assert torch.equal(users, data.samples[split].inputs[:, 0].long())
