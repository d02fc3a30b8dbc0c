"""The four drift settings: what clients hold, what a round makes of it, and that nothing is lost on the way."""

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from kinds import FEW, one_of_each

from drift.config import method as methods
from drift.config.load import read, validated
from drift.config.random_keys import cohort, rng
from drift.partitions import histogram, load, names
from drift.simulation.simulate import simulate
from drift.training.data import client_samples
from tests.drift.methods.test_methods import SHORT
from tests.replays import replay

LABELS = arrays(np.int64, st.integers(1, 60), elements=st.integers(0, 4))
SETTINGS = ("iid", "period", "client", "both")
TINY = {
    "rounds": 3,
    "seed": 3,
    "task": {"dataset": "digits", "model": "linear", "train_samples": 120, "test_samples": 60},
    "clients": {"number": 6, "per_round": 4, "partition": "drift", "concentration": 0.05},
    "local": {"lr": 0.05, "momentum": 0.0, "epochs": 1, "batch": 16},
}


def partition(setting, concentration=0.1, **options):
    return load("drift")(setting=setting, concentration=concentration, **options)


def trained(tmp_path, *changes):
    return simulate(read(validated(TINY), *changes), runs=tmp_path)


@given(
    LABELS,
    st.integers(1, 12),
    st.integers(1, 12),
    st.sampled_from(SETTINGS),
    st.floats(1e-4, 1e3),
    st.integers(0, 2**32),
)
def test_a_round_conserves_the_cohorts_samples(labels, clients, per_round, setting, concentration, seed):
    clients = min(clients, len(labels))
    chosen = partition(setting, concentration)
    parts = chosen.split(labels, clients, rng(seed))
    assert np.array_equal(np.sort(np.concatenate(parts)), np.arange(len(labels)))
    drawn = cohort(seed, 0, clients, min(per_round, clients))
    given_out = chosen.for_round(labels, parts, drawn, rng(seed, 1))
    assert len(given_out) == len(drawn)
    assert all(part.dtype == np.int64 and (np.diff(part) > 0).all() for part in given_out)
    own = np.sort(np.concatenate([parts[client] for client in drawn]))
    assert np.array_equal(np.sort(np.concatenate(given_out)), own)
    if setting == "period":
        assert np.ptp([len(part) for part in given_out]) <= 1
    if not chosen.moves:
        assert all(np.array_equal(parts[client], part) for client, part in zip(drawn, given_out, strict=True))


@given(LABELS, st.sampled_from(sorted(set(names()) - {"drift"})), st.integers(0, 2**32))
def test_other_partitions_leave_a_client_its_own(labels, name, seed):
    parts = [np.arange(len(labels))[:2], np.arange(len(labels))[2:], np.zeros(0, dtype=np.int64)]
    kept = load(name)().for_round(labels, parts, np.array([0, 2]), rng(seed))
    assert [part.tolist() for part in kept] == [parts[0].tolist(), []]
    assert not load(name)().moves


class TestOnManySamples:
    labels = np.random.default_rng(0).permutation(np.repeat(np.arange(10), 600))

    def counts(self, setting, rounds=6, concentration=0.02):
        """Samples by class of each client of the cohorts of several rounds, shape (rounds, m, C)."""
        chosen = partition(setting, concentration)
        parts = chosen.split(self.labels, 40, rng(0))
        found = []
        for t in range(rounds):
            drawn = cohort(0, t, 40, 8)
            found.append(histogram(self.labels, chosen.for_round(self.labels, parts, drawn, rng(0, t)), 10))
        return np.stack(found)

    def skew(self, shares):
        """Mean over clients, or cohorts, of half the sum of |share - 1/C|."""
        return float(np.abs(shares / shares.sum(-1, keepdims=True) - 0.1).sum(-1).mean() / 2)

    def test_client_only_cohorts_are_iid_samples_of_all_data(self):
        counts = self.counts("client")
        union = counts.sum(1)
        assert (union.sum(1) == 8 * 150).all()
        deviation = np.sqrt(1200 * 0.1 * 0.9 * (1 - 1200 / 6000))  # drawn without replacement
        assert union == pytest.approx(120, abs=5 * deviation)
        assert abs(float(union.std()) / deviation - 1) < 0.25
        held = counts.reshape(-1, 10)
        assert self.skew(held[held.sum(1) > 0]) > 0.6

    def test_period_only_clients_agree_and_rounds_differ(self):
        counts = self.counts("period")
        union = counts.sum(1, keepdims=True)
        expected = union / 8
        assert (np.abs(counts - expected) <= 6 * np.sqrt(expected) + 1).all()
        assert self.skew(union) > 0.25

    def test_iid_and_both_differ_in_both_ways(self):
        same, other = self.counts("iid"), self.counts("both")
        held = other.reshape(-1, 10)
        assert self.skew(same) < 0.1
        assert self.skew(same.sum(1)) < 0.1
        assert self.skew(held[held.sum(1) > 0]) > 0.6
        assert self.skew(other.sum(1)) > 0.25

    def test_iid_and_both_hold_what_the_plain_partitions_give(self):
        one = partition("iid").split(self.labels, 7, rng(5))
        for part, plain in zip(one, load("iid")().split(self.labels, 7, rng(5)), strict=True):
            assert np.array_equal(part, plain)
        other = partition("both", 0.3).split(self.labels, 7, rng(5))
        dirichlet = load("dirichlet")(concentration=0.3, variant="plain")
        for part, plain in zip(other, dirichlet.split(self.labels, 7, rng(5)), strict=True):
            assert np.array_equal(part, plain)

    def test_a_base_gives_the_skewed_parts(self):
        chosen = partition("period", base={"name": "shards", "shards": 3})
        shards = load("shards")(shards=3).split(self.labels, 7, rng(5))
        for part, plain in zip(chosen.split(self.labels, 7, rng(5)), shards, strict=True):
            assert np.array_equal(part, plain)


def test_a_base_is_written_and_read_back_and_its_mistakes_are_named():
    text = 'clients.partition={name="drift", setting="period", base={name="shards", shards=3}}'
    found = read(validated(TINY), text)
    assert validated(found.resolved()) == found
    assert found.clients.partition.base.shards == 3
    assert read(validated(TINY), "clients.setting=client").clients.partition.setting == "client"
    with pytest.raises(ValueError, match=r"shads.*shards"):
        read(validated(TINY), text.replace("shards=3", "shads=3"))
    with pytest.raises(ValueError, match="base is drift itself"):
        partition("both", base="drift")


@pytest.mark.parametrize("setting", SETTINGS)
def test_sizes_are_those_of_the_round_and_replicate_zero_repeats_it(setting, tmp_path):
    run = trained(tmp_path, f"clients.setting={setting}")
    for index in run.rounds():
        record, parts = run.round(index), run.parts_in(index)
        assert record.sizes.tolist() == [len(parts[client]) for client in record.ids]
        assert int(record.sizes.sum()) == sum(len(run.parts[client]) for client in record.ids)
        jobs = [(index, client, 0) for client in record.ids.tolist()]
        assert torch.equal(replay(run, jobs)[0], record.clients)
        absent = next(client for client in range(6) if client not in record.ids)
        assert np.array_equal(parts[absent], run.parts[absent])
        assert len(run.client_samples(absent, index)) == len(run.parts[absent])
    moved = not all(np.array_equal(a, b) for a, b in zip(run.parts, run.parts_in(0), strict=True))
    assert moved == (setting in ("period", "client"))


def test_settings_share_cohorts_and_the_initial_model_and_rounds_differ(tmp_path):
    period, client = (trained(tmp_path, f"clients.setting={setting}") for setting in ("period", "client"))
    assert torch.equal(period.round(0).start, client.round(0).start)
    assert torch.equal(period.round(2).ids, client.round(2).ids)
    other = trained(tmp_path, "clients.setting=client", "clients.per_round=6")
    assert not np.array_equal(other.parts_in(0)[0], other.parts_in(1)[0])


@pytest.mark.parametrize("setting", ["period", "client"])
def test_what_a_round_deals_out_is_in_part_held_out(setting, tmp_path):
    run = trained(tmp_path, f"clients.setting={setting}", "clients.valid_ratio=0.25")
    for index in run.rounds():
        parts, held = client_samples(run.experiment, run.dataset, index)
        assert np.array_equal(np.sort(np.concatenate([*parts, *held])), np.arange(120))
        record = run.round(index)
        for client, size in zip(record.ids.tolist(), record.sizes.tolist(), strict=True):
            assert size == len(parts[client]) + len(held[client])
            assert len(held[client]) == size // 4
            assert len(run.client(index, client).held_out) == size // 4
        jobs = [(index, client, 0) for client in record.ids.tolist()]
        assert torch.equal(replay(run, jobs)[0], record.clients)


@pytest.mark.parametrize("name", one_of_each(methods.names(), FEW))
def test_every_method_trains_with_clients_that_a_round_leaves_empty(name, tmp_path):
    changes = [f"method.name={name}", *SHORT.get(name, []), "proxy.per_class=2", "clients.setting=client"]
    run = trained(tmp_path, *changes, "clients.concentration=0.001", "clients.per_round=6")
    records = [run.round(index) for index in run.rounds()]
    assert any((record.sizes == 0).any() for record in records), "no client is left empty; choose another seed"
    for record in records:
        assert bool(torch.isfinite(record.end).all())
        if name == "fedavg":  # LSS rounds in its mean, and others keep a part of the model on the client
            assert torch.equal(
                record.clients[record.sizes == 0], record.start.expand(int((record.sizes == 0).sum()), -1)
            )
            assert not record.weights[record.sizes == 0].any()


def test_data_that_move_are_nobodys():
    with pytest.raises(ValueError, match="no client has data of its own; leave corrupted out"):
        read(validated(TINY), "clients.corrupted=0.5", "clients.setting=period")
    read(validated(TINY), "clients.corrupted=0.5", "clients.setting=both")
