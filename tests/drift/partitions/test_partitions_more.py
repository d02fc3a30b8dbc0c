"""Partitions by class number, client, coarse class, domain and user: sizes, moments, and what data make of them."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from drift.config.load import validated
from drift.config.random_keys import rng
from drift.partitions import histogram, load
from drift.partitions._draws import draw_counts
from drift.runs.run import Run
from drift.simulation.simulate import simulate
from drift.training.data import build_task, read_data
from tests import movielens

TEN = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 300))
HUNDRED = np.random.default_rng(1).permutation(np.repeat(np.arange(100), 50))
COARSE = {"coarse": (HUNDRED * 7 % 100) // 5}  # five fine classes each, not neighbours
SEEDS = st.integers(0, 2**32)


def counts_of(name, labels=TEN, clients=20, seed=0, groups=None, **options):
    partition = load(name)(**options)
    more = () if groups is None else (groups,)
    return histogram(labels, partition.split(labels, clients, rng(seed), *more), int(labels.max()) + 1)


def total_variation(counts, prior):
    """Mean distance of the clients' shares from the prior."""
    return 0.5 * np.abs(counts / counts.sum(1, keepdims=True) - prior).sum(1).mean()


@given(SEEDS, st.integers(1, 7), st.integers(1, 10))
def test_class_quantity_gives_each_client_its_classes_and_splits_classes_evenly(seed, clients, number):
    labels = np.repeat(np.arange(5), [11, 30, 7, 50, 20])
    counts = counts_of("class_quantity", labels, clients, seed, classes=number)
    assert ((counts > 0).sum(1) == min(number, 5)).all()
    assert all(counts[client, client % 5] > 0 for client in range(clients))
    for column in counts.T:
        held = column[column > 0]
        assert held.size == 0 or np.ptp(held) <= 1


def test_class_quantity_drops_classes_without_holders():
    counts = counts_of("class_quantity", clients=3, classes=1)
    assert counts.sum(0).tolist() == [300] * 3 + [0] * 7


@given(SEEDS, st.integers(0, 12))
def test_filled_never_takes_more_than_there_is(seed, size):
    left = np.array([0, 5, 1, 6])
    counts = draw_counts(size, np.array([0.0, -900.0, 3.0, -1.0]), left, rng(seed))
    assert counts.sum() == size
    assert (counts >= 0).all() and (counts <= left).all()


def test_filled_draws_one_after_the_other_without_what_ran_out():
    """Against the slow draw, one sample at a time."""
    shares, left, size = np.array([0.7, 0.2, 0.1]), np.array([2, 3, 9]), 5
    slow = np.zeros((3000, 3))
    source = rng(1)
    for row in slow:
        for _ in range(size):
            open_ = shares * (row < left)
            row[source.choice(3, p=open_ / open_.sum())] += 1
    fast = np.stack([draw_counts(size, np.log(shares), left, rng(seed)) for seed in range(3000)])
    assert fast.mean(0) == pytest.approx(slow.mean(0), abs=0.1)
    assert fast.var(0) == pytest.approx(slow.var(0), abs=0.12)


@pytest.mark.parametrize("prior", ["global", "uniform"])
def test_dirichlet_per_client_gives_equal_sizes_and_tends_to_the_prior(prior):
    labels = np.repeat([0, 1, 2], [100, 300, 602])
    counts = counts_of("dirichlet_clients", labels, 10, concentration=1e7, prior=prior)
    assert (counts.sum(1) == 100).all()
    expected = [0.1, 0.3, 0.6] if prior == "global" else [1 / 3] * 3
    assert counts[0] / 100 == pytest.approx(expected, abs=0.2)
    skews = [
        total_variation(counts_of("dirichlet_clients", clients=30, concentration=a, prior=prior), 0.1)
        for a in (0.01, 0.3, 1e4)
    ]
    assert skews[0] > 0.6 > skews[1] > skews[2]
    assert skews[2] < 0.2


def test_dirichlet_per_client_has_the_variance_of_the_draw():
    labels = np.repeat(np.arange(4), 10**5)
    shares = np.concatenate(
        [counts_of("dirichlet_clients", labels, 1000, seed, concentration=0.5)[:60] / 400 for seed in range(12)]
    )
    assert shares.mean(0) == pytest.approx([0.25] * 4, abs=0.04)
    assert shares.var(0).mean() == pytest.approx(0.25 * 0.75 / (4 * 0.5 + 1) + 0.25 * 0.75 / 400, rel=0.12)


def test_pachinko_gives_equal_sizes_and_few_coarse_classes():
    counts = counts_of("pachinko", HUNDRED, 100, groups=COARSE)
    assert (counts.sum(1) == 50).all()
    assert (counts.sum(0) == 50).all()  # every image once
    coarse = np.zeros((100, 20))
    of_fine = np.array([COARSE["coarse"][fine == HUNDRED][0] for fine in range(100)])
    np.add.at(coarse.T, of_fine, counts.T)
    early = coarse[:30]
    assert 2 < (np.exp(-_entropy(early))).mean() ** -1 < 6  # Dir(0.1 1_20) has few effective coarse classes
    within = counts[:30][:, of_fine == coarse[:30].sum(0).argmax()]
    assert (within > 0).any(0).all()  # Dir(10 1_5) has all of its fine ones
    even = counts_of("pachinko", HUNDRED, 100, groups=COARSE, concentration=1e5, fine=1e5)
    assert total_variation(even[:50], 0.01) < total_variation(counts[:50], 0.01) - 0.2


def _entropy(counts):
    shares = counts / counts.sum(1, keepdims=True)
    return -(shares * np.log(np.where(shares > 0, shares, 1))).sum(1)


def test_hybrid_has_even_clients_first_and_skewed_ones_after():
    counts = counts_of("hybrid_dirichlet")
    assert counts.sum(0).tolist() == [300] * 10
    first, last = counts[:10], counts[10:]
    assert total_variation(first, 0.1) < 0.25
    assert total_variation(last[last.sum(1) > 0], 0.1) > 0.4
    assert first.sum() == pytest.approx(1500, abs=150)


def test_hybrid_of_the_toy_has_one_even_client_and_equal_sizes():
    counts = counts_of("hybrid_dirichlet", clients=3, first=1, even=1e6, skewed=0.5, tolerance=0.02)
    assert counts[0] == pytest.approx(np.full(10, 100), abs=2)
    assert np.abs(counts.sum(1) - 1000).max() <= 20
    with pytest.raises(ValueError, match=r"10000 draws gave no 20 clients within 1e-06 of 150 samples; use a larger"):
        counts_of("hybrid_dirichlet", tolerance=1e-6)
    with pytest.raises(ValueError, match="first is 20 of 20 clients"):
        counts_of("hybrid_dirichlet", first=20)


def test_long_tail_keeps_the_stated_sizes_and_splits_them_by_its_base():
    labels = np.repeat(np.arange(10), 500)
    counts = counts_of("long_tail", labels, 5, base="iid")
    kept = [500, 418, 349, 292, 244, 204, 170, 142, 119, 100]
    assert counts.sum(0).tolist() == kept
    assert np.ptp(counts.sum(1)) <= 1
    assert counts_of("long_tail", labels, 5, ratio=1).sum() == 5000


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
    task = {
        "dataset": "movielens1m",
        "model": "din",
        "dataset_options": {"any_size": True, "history": 4},
        "model_options": {"sizes": movielens.SIZES},
    }
    wanted = validated(
        {
            **TINY,
            "task": task,
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


class TestFlwr:
    def test_without_the_package_the_extra_is_named(self, monkeypatch):
        import sys

        monkeypatch.setitem(sys.modules, "flwr_datasets", None)
        monkeypatch.setitem(sys.modules, "flwr_datasets.partitioner", None)
        with pytest.raises(LookupError, match=r'pip install "fedscape\[flwr\]"'):
            load("flwr")().split(TEN, 3, rng(0))

    @pytest.mark.filterwarnings("ignore:Classes")
    @pytest.mark.parametrize(
        ("name", "arguments"),
        [
            ("DirichletPartitioner", {"alpha": 0.3, "min_partition_size": 1}),
            ("PathologicalPartitioner", {"num_classes_per_partition": 2}),
            ("ShardPartitioner", {"num_shards_per_partition": 2}),
            ("LinearPartitioner", {}),
            ("NaturalIdPartitioner", {"partition_by": "user"}),
        ],
    )
    def test_partitioners_are_used_by_name(self, name, arguments):
        pytest.importorskip("flwr_datasets", reason="needs the extra `flwr`")
        user = np.arange(3000) % 5
        partition = load("flwr")(partitioner=name, arguments=arguments)
        parts, again = (partition.split(TEN, 5, rng(7), {"user": user}) for _ in range(2))
        assert all(np.array_equal(one, other) for one, other in zip(parts, again, strict=True))
        together = np.concatenate(parts)
        assert len(np.unique(together)) == len(together)
        assert len(together) > 2900 or name == "PathologicalPartitioner"  # which warns of classes that nobody has
        if name == "NaturalIdPartitioner":
            assert [len(np.unique(user[part])) for part in parts] == [1] * 5
        if name == "PathologicalPartitioner":
            assert ((histogram(TEN, parts, 10) > 0).sum(1) <= 2).all()

    def test_wrong_names_arguments_and_numbers_are_said(self):
        pytest.importorskip("flwr_datasets", reason="needs the extra `flwr`")
        with pytest.raises(ValueError, match=r"no partitioner named 'Dirichlet' in flwr-datasets; known: .*IidPart"):
            load("flwr")(partitioner="Dirichlet").split(TEN, 3, rng(0))
        with pytest.raises(ValueError, match="IidPartitioner has no argument 'alpha'; it accepts num_partitions"):
            load("flwr")(arguments={"alpha": 1}).split(TEN, 3, rng(0))
        users, five = {"user": np.arange(3000) % 5}, {"partition_by": "user"}
        with pytest.raises(ValueError, match="NaturalIdPartitioner has 5 partitions, there are 3 clients"):
            load("flwr")(partitioner="NaturalIdPartitioner", arguments=five).split(TEN, 3, rng(0), users)
