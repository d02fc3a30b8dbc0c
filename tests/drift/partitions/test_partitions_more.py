"""Partitions by class number, client, coarse class, domain and user: sizes, moments, and what data make of them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from drift.config.random_keys import rng
from drift.partitions import histogram, load
from drift.partitions._draws import draw_counts

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
