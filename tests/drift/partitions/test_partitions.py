"""Partitions: what each hands out, and what all of them must keep to."""

from __future__ import annotations

import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from pydantic import ValidationError

from drift.config.random_keys import rng
from drift.partitions import Partitioner, histogram, load, names
from drift.partitions._partitioner import Grouped, split_with_groups
from drift.plugins import tables

CIFAR = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 5000))
UNEVEN = np.random.default_rng(1).permutation(np.repeat([0, 1, 2, 5], [2, 70, 301, 40]))
LABELS = arrays(np.int64, st.integers(1, 200), elements=st.integers(0, 6))
SEEDS = st.integers(0, 2**32)


def iid():
    return load("iid")()


def shards(number=2):
    return load("shards")(shards=number)


def dirichlet(concentration=0.5, variant="capped", minimum=10):
    return load("dirichlet")(concentration=concentration, variant=variant, minimum=minimum)


def split_by(partition, labels, clients, source, groups=None):
    """What a partition gives; one that looks at groups sees users, domains and coarse classes that suit K clients."""
    if groups is None:
        place = np.random.default_rng(len(labels)).permutation(len(labels))
        domains = max(1, clients // 2) if tables.name(partition) == "domains" else clients
        groups = {"user": place % clients, "domain": place % domains, "coarse": labels // 2}
    return split_with_groups(partition, labels, clients, source, groups)


def made(name, **options):
    """A partition, or a skip where it needs an extra that is not installed."""
    if name == "flwr":
        pytest.importorskip("flwr_datasets", reason="needs the extra `flwr`")
    return load(name)(**options)


def kept_samples(name, partition, labels, clients):
    """How many samples a partition gives away in all, by its documentation; every one unless it says otherwise."""
    samples = len(labels)
    each = np.unique(labels, return_counts=True)[1]
    if name == "shards":
        return samples - samples % (clients * partition.shards)
    if name in ("dirichlet_clients", "pachinko"):
        return samples - samples % clients
    if name == "class_quantity":
        return None if clients < len(each) else samples
    if name == "long_tail":
        last = max(1, labels.max())
        return sum(int(n * 5 ** (-c / last) + 1e-9) for c, n in zip(np.unique(labels), each, strict=True))
    return samples


EASY = {
    "dirichlet": {"minimum": 0},
    "long_tail": {"base": {"name": "dirichlet", "variant": "plain"}},
    "lss_split": {"base": {"name": "dirichlet", "variant": "plain"}},
    "domains": {"base": "iid"},
}
"""Options without which a partition refuses few samples."""


def assert_disjoint(parts, samples):
    together = np.concatenate(parts)
    assert len(np.unique(together)) == len(together)
    assert together.size == 0 or 0 <= together.min() <= together.max() < samples


def assert_whole(parts, samples):
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(samples))


FIXED = ("one_domain", "users")
"""Partitions without chance where there are as many groups as clients."""
NEEDS = {"domains": "domain", "one_domain": "domain", "users": "user", "pachinko": "coarse"}


@pytest.mark.parametrize("name", names())
class TestEveryPartition:
    def test_is_a_frozen_set_of_options_with_defaults(self, name):
        partition = load(name)()
        assert isinstance(partition, Partitioner)
        assert tables.build(tables.dump(partition), load) == partition
        with pytest.raises(ValidationError):
            load(name)(no_such_option=1)
        with pytest.raises(ValidationError):
            partition.no_such_option = 1

    def test_describes_itself(self, name):
        module = __import__(f"drift.partitions.{name}", fromlist=["Partition"])
        assert "Source:" in module.__doc__
        assert module.Partition.__doc__

    def test_gives_each_client_ascending_samples_that_nobody_else_has(self, name):
        before = UNEVEN.copy()
        parts = split_by(made(name), UNEVEN, 3, rng(3, "partition"))
        assert len(parts) == 3
        assert all(part.dtype == np.int64 and part.ndim == 1 and (np.diff(part) > 0).all() for part in parts)
        assert_disjoint(parts, len(UNEVEN))
        assert np.array_equal(UNEVEN, before)

    def test_one_client_gets_everything(self, name):
        partition, labels = made(name), UNEVEN[:-1]
        parts = split_by(partition, labels, 1, rng(0))
        if name in ("class_quantity", "long_tail"):  # it has few classes, or few samples of some
            assert 0 < len(parts[0]) < len(labels)
        else:
            assert_whole(parts, len(labels))

    @given(LABELS, st.integers(1, 12), SEEDS)
    def test_every_sample_is_given_to_one_client_or_dropped_as_documented(self, name, labels, clients, seed):
        partition = made(name, **EASY.get(name, {}))
        clients = max(1, min(clients, len(labels) // 2))
        wanted = kept_samples(name, partition, labels, clients)
        if wanted is not None and wanted < clients:
            with pytest.raises(ValueError, match="samples"):
                split_by(partition, labels, clients, rng(seed))
            return
        parts = split_by(partition, labels, clients, rng(seed))
        assert len(parts) == clients
        assert_disjoint(parts, len(labels))
        assert histogram(labels, parts, 7).sum() == sum(map(len, parts))
        assert wanted in (None, sum(map(len, parts)))

    def test_same_seed_same_bits_other_seed_other_parts(self, name):
        first, again, other = (split_by(made(name), UNEVEN, 3, rng(seed, "partition")) for seed in (3, 3, 4))
        assert all(np.array_equal(a, b) for a, b in zip(first, again, strict=True))
        differ = not all(np.array_equal(a, b) for a, b in zip(first, other, strict=True))
        assert differ or name in FIXED, f"{name} ignores the seed; if it is meant to, add it to FIXED"

    def test_says_which_groups_it_needs(self, name):
        partition = load(name)()
        if name in NEEDS:
            assert isinstance(partition, Grouped)
            with pytest.raises(ValueError, match=rf"partition {name} needs the {NEEDS[name]}( class)? of every sample"):
                partition.split(UNEVEN, 3, rng(0))
            with pytest.raises(ValueError, match=r"has shape \(3,\), labels have \(413,\)"):
                partition.split(UNEVEN, 3, rng(0), {NEEDS[name]: np.arange(3)})

    def test_refuses_what_cannot_be_split(self, name):
        partition = made(name)
        with pytest.raises(ValueError, match="5 samples cannot serve 6 clients; use at most 5"):
            partition.split(np.arange(5), 6, rng(0))
        with pytest.raises(ValueError, match="0 clients asked for"):
            partition.split(np.arange(5), 0, rng(0))
        with pytest.raises(ValueError, match=r"labels have shape \(5, 1\)"):
            partition.split(np.zeros((5, 1), dtype=int), 2, rng(0))


def test_an_unknown_partition_is_named_with_the_nearest():
    with pytest.raises(ValueError, match=r"no partition named 'dirichelt'. Did you mean 'dirichlet'\?"):
        load("dirichelt")


@given(LABELS, st.integers(1, 30), SEEDS)
def test_iid_parts_are_whole_and_differ_by_at_most_one(labels, clients, seed):
    clients = min(clients, len(labels))
    parts = iid().split(labels, clients, rng(seed))
    assert_whole(parts, len(labels))
    assert np.ptp([len(part) for part in parts]) <= 1


def test_iid_parts_have_every_class_in_proportion():
    counts = histogram(CIFAR, iid().split(CIFAR, 10, rng(0)), 10)
    assert counts == pytest.approx(500, abs=6 * np.sqrt(500))


@given(LABELS, st.integers(1, 30), st.integers(1, 4), SEEDS)
def test_shards_drop_only_the_end_of_the_label_order(labels, clients, number, seed):
    clients = min(clients, len(labels) // number)
    if clients == 0:
        return
    parts = shards(number).split(labels, clients, rng(seed))
    dropped = len(labels) % (clients * number)
    assert {len(part) for part in parts} == {(len(labels) - dropped) // clients}
    order = np.argsort(labels, kind="stable")
    assert np.array_equal(np.sort(np.concatenate(parts)), np.sort(order[: len(labels) - dropped]))


@pytest.mark.parametrize(("samples", "clients", "size"), [(50_000, 100, 250), (60_000, 100, 300), (50_000, 10, 2500)])
def test_shards_have_the_published_sizes(samples, clients, size):
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(10), samples // 10))
    parts = shards(2).split(labels, clients, rng(1, "partition"))
    counts = histogram(labels, parts, 10)
    assert set(counts.ravel()) <= {0, size, 2 * size}
    assert (counts.sum(axis=1) == 2 * size).all()
    assert ((counts > 0).sum(axis=1) <= 2).all()
    assert counts.sum() == samples


def test_some_clients_get_both_shards_of_one_class():
    counts = histogram(CIFAR, shards(2).split(CIFAR, 100, rng(1, "partition")), 10)
    assert 0 < (counts == 500).sum() < 30


def test_shards_refuse_more_shards_than_samples():
    with pytest.raises(ValueError, match="5 clients with 3 shards each need 15 samples, there are 14; use at most 2"):
        shards(3).split(np.zeros(14, dtype=int), 5, rng(0))


@given(LABELS, st.integers(1, 30), st.floats(1e-6, 1e6), SEEDS)
def test_plain_dirichlet_keeps_every_sample(labels, clients, concentration, seed):
    clients = min(clients, len(labels))
    parts = dirichlet(concentration, "plain").split(labels, clients, rng(seed))
    assert len(parts) == clients
    assert_whole(parts, len(labels))


@given(LABELS, st.integers(1, 5), st.floats(0.3, 1e6), SEEDS)
def test_capped_dirichlet_keeps_every_sample_the_minimum_and_the_cap(labels, clients, concentration, seed):
    clients = min(clients, len(labels))
    minimum = len(labels) // clients // 4
    parts = dirichlet(concentration, "capped", minimum).split(labels, clients, rng(seed))
    assert_whole(parts, len(labels))
    assert min(len(part) for part in parts) >= minimum
    counts = histogram(labels, parts, 7)
    held = np.cumsum(counts, axis=1) - counts
    assert (counts[held >= len(labels) / clients] == 0).all()


def test_plain_dirichlet_has_the_moments_of_the_draw():
    classes, clients, concentration, per_class = 2000, 4, 0.3, 200
    labels = np.repeat(np.arange(classes), per_class)
    shares = histogram(labels, dirichlet(concentration, "plain").split(labels, clients, rng(0)), classes) / per_class
    variance = (1 / clients) * (1 - 1 / clients) / (clients * concentration + 1)
    assert shares.mean(axis=1) == pytest.approx(1 / clients, abs=6 * np.sqrt(variance / classes))
    assert shares.var(axis=1) == pytest.approx(variance, rel=0.1)
    assert np.mean(shares[:2].prod(axis=0)) == pytest.approx(1 / clients**2 - variance / (clients - 1), rel=0.15)


@pytest.mark.parametrize("variant", ["plain", "capped"])
def test_a_huge_concentration_is_nearly_iid(variant):
    counts = histogram(CIFAR, dirichlet(1e8, variant).split(CIFAR, 10, rng(0)), 10)
    assert counts[:, :-1] == pytest.approx(500, abs=2)


def test_a_tiny_concentration_gives_each_class_to_one_client():
    counts = histogram(CIFAR, dirichlet(1e-5, "plain").split(CIFAR, 10, rng(0)), 10)
    assert ((counts > 0).sum(axis=0) == 1).all()


def test_smaller_concentration_is_more_skewed():
    def largest_share(concentration):
        counts = histogram(CIFAR, dirichlet(concentration, "capped").split(CIFAR, 20, rng(5)), 10)
        return (counts.max(axis=1) / counts.sum(axis=1)).mean()

    assert largest_share(0.1) > largest_share(1) > largest_share(10)


def test_plain_dirichlet_may_leave_a_client_empty_and_capped_does_not():
    assert min(len(part) for part in dirichlet(0.01, "plain").split(CIFAR, 100, rng(0))) == 0
    assert min(len(part) for part in dirichlet(0.1, "capped").split(CIFAR, 100, rng(0))) >= 10


def test_capped_dirichlet_gives_up_with_advice_and_soon():
    began = time.perf_counter()
    with pytest.raises(ValueError, match=r"10000 Dirichlet draws with concentration 0.01 .* fewer clients, a larger"):
        dirichlet(0.01).split(UNEVEN, 20, rng(0))
    assert time.perf_counter() - began < 20


def test_capped_dirichlet_refuses_at_once_a_minimum_that_the_samples_cannot_meet():
    with pytest.raises(ValueError, match="20 clients with at least 40 samples each need 800, there are 413"):
        dirichlet(minimum=40).split(UNEVEN, 20, rng(0))


@pytest.mark.parametrize("concentration", [0, -1, float("inf"), float("nan")])
def test_concentration_must_be_positive_and_finite(concentration):
    with pytest.raises(ValueError, match="concentration"):
        dirichlet(concentration)


def test_histogram_counts_classes_of_unequal_clients():
    labels = np.array([0, 2, 2, 1, 0, 2])
    counts = histogram(labels, [np.array([1, 2]), np.array([], dtype=int), np.array([0, 3, 5, 4])], 4)
    assert counts.tolist() == [[0, 0, 2, 0], [0, 0, 0, 0], [2, 1, 1, 0]]
    with pytest.raises(ValueError, match="labels run from 0 to 2; 2 classes are 0 to 1"):
        histogram(labels, [np.array([1])], 2)
