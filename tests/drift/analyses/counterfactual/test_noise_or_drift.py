"""Noise or drift in real tiny runs: against all orders of the minibatches, with clients of one sample, and refusals."""

from __future__ import annotations

from dataclasses import replace
from itertools import permutations

import numpy as np
import pytest
import recordings
import tiny
import torch

import drift
from drift.analyses.counterfactual.all_clients import frozen_update
from drift.analyses.counterfactual.noise_or_drift import noise_or_drift_effort
from drift.analyses.counterfactual.noise_replays import plan_replays, products_of
from drift.analyses.counterfactual.noise_terms import SHARE

FEW = (
    *("task.train_samples=18", "local.batch=2", "local.lr=0.5", "rounds=2", "keep.clients=none"),
    *("clients.partition.minimum=1",),
)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def run(runs):
    return tiny.trained(runs)


def all_orders(client):
    """Updates (n!, d) of one epoch, for every order of the samples."""
    rows = []
    for order in torch.tensor(list(permutations(range(len(client.samples))))):
        batches = [client.samples[part] for part in order.split(client.local.batch)]
        rows.append(client.train(batches=batches).theta - client.start)
    return torch.stack(rows).double().numpy()


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_estimates_are_those_of_all_orders_of_the_samples(runs, momentum):
    run = tiny.trained(runs, *FEW, f"local.momentum={momentum}")
    sizes = [len(part) for part in run.parts]
    assert len(set(sizes)) > 1
    assert max(sizes) <= 7
    ready = [run.client(1, k) for k in range(4)]
    q = np.array(sizes) / sum(sizes)
    frozen = np.array([frozen_update(client).double().numpy() for client in ready])
    orders = [all_orders(client) for client in ready]
    means = np.array([rows.mean(0) for rows in orders])
    scale = sum(q * (means * frozen).sum(1)) / sum(q * (frozen**2).sum(1))
    signal = scale * q @ frozen
    noise = np.array([((rows - rows.mean(0)) ** 2).sum(1).mean() for rows in orders])
    squares = [signal @ signal, q @ ((scale * frozen - signal) ** 2).sum(1)]
    squares += [q @ ((means - scale * frozen) ** 2).sum(1), q @ noise]
    ds = drift.noise_or_drift(run, rounds=[1], clients="all", replays=60).isel(round=0).sel(fraction=1)
    np.testing.assert_allclose(ds.share, squares / np.sum(squares), atol=0.02)
    np.testing.assert_allclose(ds.mean_square.sel(cause="noise"), 4 * q**2 @ noise, rtol=0.2)
    for variable, exact in (("square", squares), ("scale", scale)):
        assert (ds[f"{variable}_low"] <= exact).all()
        assert (exact <= ds[f"{variable}_high"]).all()

    draw, hits = np.random.default_rng(0), []
    for _ in range(200):
        three = [rows[draw.integers(len(rows), size=3)] for rows in orders]
        one = products_of(torch.from_numpy(np.concatenate([frozen, *three])), q, 4, 3).estimated()
        hits.append(np.abs(one.values[SHARE] - squares / np.sum(squares)) <= one.half[SHARE])
    assert noise[3] * q[3] > 0.95 * q @ noise, "one client of seven samples has the noise, the hardest case"
    assert (np.mean(hits, axis=0) > 0.8).all()
    assert np.mean(hits) < 0.99


@pytest.mark.parametrize("momentum", [0.0, 0.9])
def test_batches_of_all_samples_leave_no_noise_and_one_step_no_drift(runs, momentum):
    whole = tiny.trained(runs, "local.batch=1000", "local.epochs=4", f"local.momentum={momentum}", "local.lr=0.5")
    ds = drift.noise_or_drift(whole, rounds=[1], replays=2, clients="all").isel(round=0)
    assert abs(ds.share.sel(part="noise", fraction=1)) < 1e-9
    assert ds.share.sel(part="drift", fraction=1) > 1e-4
    assert ds.attrs["trainings"] == 5, "four clients twice, three of which are recorded"
    split = drift.noise_or_drift(whole, rounds=[1], replays=2, clients="all", fractions=[0.25, 1]).isel(round=0)
    np.testing.assert_allclose(split.share.sel(fraction=1), ds.share.sel(fraction=1), rtol=1e-4, atol=1e-9)
    first = split.sel(fraction=0.25)
    assert first.steps == 1
    np.testing.assert_allclose(first.share.sel(part=["drift", "noise"]), 0, atol=1e-6)


def test_a_client_with_one_sample_has_no_noise(runs):
    parts = ("clients.number=5", "clients.per_round=5", "clients.partition={name='dirichlet',concentration=0.2}")
    thin = tiny.trained(
        runs, *parts, "task.dataset_options.samples=24", "clients.partition.minimum=1", "proxy.per_class=1"
    )
    assert min(len(part) for part in thin.parts) == 1
    ds = drift.noise_or_drift(thin, rounds=[0])
    assert np.isfinite(ds.share.sel(fraction=1)).all()
    np.testing.assert_allclose(ds.share.sum("part"), 1)
    assert ds.cohort_size.sel(pair="sampling=noise").isnull().all() or (ds.cohort_size <= 5).any()


def test_the_record_is_a_replay_and_is_what_training_again_gives(runs, run):
    kept = drift.noise_or_drift(run, rounds=[1])
    assert kept.attrs["trainings"] == 2 * 3
    bare = drift.noise_or_drift(tiny.trained(runs, "keep.clients=none"), rounds=[1])
    assert bare.attrs["trainings"] == 3 * 3
    for name in kept.data_vars:
        np.testing.assert_allclose(kept[name], bare[name], rtol=1e-4, atol=1e-9, err_msg=str(name))
    np.testing.assert_allclose(kept.square.sum("part"), kept.square.sum("part") * kept.share.sum("part"))
    assert noise_or_drift_effort(run, rounds=[1]).trainings == 6
    assert drift.noise_or_drift(run, rounds=[1], workers=2).equals(kept)


def test_some_clients_of_a_cohort_are_a_random_sample_of_all(runs):
    settings = ("clients.number=5", "clients.per_round=5", "local.batch=1000", "clients.weighting=uniform")
    run, drawn = tiny.trained(runs, *settings), []
    every = drift.noise_or_drift(run, rounds=[0], replays=2).isel(round=0).sel(fraction=1)
    for seed in range(40):
        other = replace(run, context=run.context)
        other.__dict__["experiment"] = run.experiment.model_copy(update={"seed": 1000 + seed})
        plan = plan_replays(other, 0, clients=3, replays=2, fractions=(1.0,))
        assert plan.who == sorted({*plan.who}) and plan.cohort == 5 and plan.trainings == 3
        drawn.append(tuple(plan.who))
    assert len({*drawn}) == 10, "all samples of three of five"
    ds = drift.noise_or_drift(run, rounds=[0], replays=2, clients=3).isel(round=0).sel(fraction=1)
    assert ds.attrs["clients"] == 3 and ds.attrs["trainings"] == 3 and ds["clients"] == 3 and ds.cohort == 5
    width, whole = (float((one.square_high - one.square_low).sel(part="signal")) for one in (ds, every))
    assert width > whole
    assert noise_or_drift_effort(run, rounds=[0], replays=2, clients=3).trainings == 3
    assert run.cached(drift.noise_or_drift, rounds=[0], replays=2, clients=3).attrs["clients"] == 3


def test_scale_and_sampling_are_those_of_counterfactual_without_noise(runs):
    still = tiny.trained(runs, "local.batch=1000", "local.epochs=3", "local.lr=0.5", "clients.weighting=uniform")
    ds = drift.noise_or_drift(still, clients="all", rounds=[2]).isel(round=0).sel(fraction=1)
    exact = drift.counterfactual(still, rounds=[2]).isel(round=0)
    np.testing.assert_allclose(ds.scale, exact.scale, rtol=1e-4)
    np.testing.assert_allclose(ds.share.sel(part="drift"), exact.local_share, rtol=1e-3)
    np.testing.assert_allclose(ds.mean_square.sel(cause="signal"), exact.norm.sel(part="gradient") ** 2, rtol=1e-3)
    sampling = float(ds.mean_square.sel(cause="sampling")) * (1 / 3 - 1 / 4)
    np.testing.assert_allclose(sampling, exact.expected_sampling**2, rtol=1e-3)
    assert ds.cohort_size.sel(pair="sampling=noise") > 3.9, "equal where all clients take part, and both are zero"


@pytest.mark.parametrize("method", ["fedavgm", "fedadam", "fedlaw", "fedprox", "ima", "fednova"])
def test_methods_of_the_server_and_fedprox_are_split(runs, method):
    ds = drift.noise_or_drift(tiny.trained(runs, f"method={method}", "rounds=6"), rounds=[2])
    np.testing.assert_allclose(ds.share.sel(fraction=1).sum("part"), 1)


@pytest.mark.parametrize("method", ["scaffold", "feddyn", "fedsam", "moon", "fedbn", "fedbabu", "lss"])
def test_methods_with_another_gradient_at_the_start_are_refused(runs, method):
    model = ["task.model=tiny:normalised"] if method == "fedbn" else ["task.model=mlp"] if method == "moon" else []
    model += ["local.momentum=0.0"] if method == "scaffold" else []
    other = tiny.trained(runs, f"method={method}", "rounds=1", *model)
    with pytest.raises(ValueError, match=r"noise_or_drift needs SGD on the client's own data") as refusal:
        drift.noise_or_drift(other)
    assert "\n" not in str(refusal.value)


def test_what_cannot_be_split_is_refused_in_one_line(runs, run, tmp_path):
    refused = [
        (tiny.trained(runs, "local.optimizer=adam"), {}, "train with adam; noise_or_drift needs SGD"),
        (tiny.trained(runs, "local.persist_optimizer=true"), {}, "moments of the round before"),
        (tiny.trained(runs, "clients.per_round=2"), {}, "2 clients with samples count in round 0 .* clients='all'"),
        (run, {"replays": 1}, "replays is 1"),
        (run, {"clients": 3, "replays": 2, "rounds": [0], "workers": 0}, "workers is 0; give 1 or more"),
        (run, {"clients": 3, "replays": 2, "rounds": [0], "workers": -1}, "workers is -1; give 1 or more"),
        (run, {"clients": "some"}, "takes one of cohort, all or a whole number"),
        (run, {"clients": 2}, "or a number of its clients, 3 or more"),
        (run, {"clients": True}, "takes one of cohort, all or a whole number"),
        (run, {"clients": 4}, "3 clients with samples count in round 0 .* needs 4; name another round"),
        (run, {"fractions": [0.5]}, "of which the last is 1"),
        (run, {"fractions": [1, 0.5]}, "ascending"),
    ]
    for one, options, text in refused:
        with pytest.raises(ValueError, match=text) as refusal:
            drift.noise_or_drift(one, **options)
        assert "\n" not in str(refusal.value)
    with pytest.raises(LookupError, match=r"keep\.globals=all"):
        drift.noise_or_drift(tiny.trained(runs, "keep.globals=none", "keep.clients=none"))
    recordings.recorded(tmp_path / "run")
    with pytest.raises(LookupError, match="recorded without its data"):
        drift.noise_or_drift(drift.open(tmp_path / "run"))


@pytest.mark.parametrize(
    ("diverging", "excluded"),
    [(("local.lr=300", "local.epochs=2"), True), (("local.lr=1e5", "seed=1"), False)],
    ids=["a client of the record", "a replay"],
)
def test_a_round_in_which_a_client_or_a_replay_diverged_is_refused_in_one_line(runs, diverging, excluded):
    run = tiny.trained(runs, "rounds=1", "task.model=mlp", *diverging)
    assert ("excluded" in run.round(0).extras) == excluded
    with pytest.raises(ValueError, match=r"a client diverged in round 0, .*; name other rounds") as refusal:
        drift.noise_or_drift(run)
    assert "\n" not in str(refusal.value)


def test_clients_that_do_not_move_have_parts_of_size_zero_and_no_shares(runs):
    ds = drift.noise_or_drift(tiny.trained(runs, "local.lr=1e-30"), rounds=[0])
    assert not ds.square.any() and not ds.mean_square.any()
    assert ds.share.isnull().all() and ds.snr.isnull().all()
    assert not ds.square_high.any() and not ds.mean_square_low.any(), "what is exactly 0 has an interval"


def test_full_batches_of_one_step_have_no_noise_and_no_drift_but_in_rounding(runs):
    run = tiny.trained(runs, "local.batch=100", "clients.per_round=4")
    ds = drift.noise_or_drift(run, rounds=[1]).isel(round=0, fraction=0)
    assert ds.mean_square.sel(cause=["drift", "noise"]).values.tolist() == [0, 0]
    assert ds.snr.isnull() and ds.cohort_size.sel(pair="drift=noise").isnull(), "nothing but rounding is left of both"
    np.testing.assert_allclose(ds.share_low, ds.share, rtol=1e-5)
    assert ds.cohort_size.sel(pair="signal=sampling") > 1


def test_a_run_of_one_client_is_not_sent_to_all_clients(runs):
    run = tiny.trained(runs, "clients.number=1", "clients.per_round=1", "clients.partition=iid")
    with pytest.raises(ValueError, match=r"needs 3; name another round\.$"):
        drift.noise_or_drift(run, rounds=[1])
