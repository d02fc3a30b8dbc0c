"""Retrained rounds of real tiny runs: the split against the record, its costs against the task, every method."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch
from kinds import one_of_each

from drift.analyses.counterfactual import all_clients
from drift.analyses.counterfactual.all_clients import frozen_update
from drift.analyses.counterfactual.counterfactual import counterfactual, counterfactual_effort
from drift.analyses.counterfactual.step_terms import TERMS
from drift.analyses.rounds.variance import drift_variances
from drift.simulation.simulate import simulate
from landscape.sweep.evaluate import evaluate
from tests.drift.methods.test_methods import NAMES, experiment
from tests.tiny import trained

ALL = "clients.per_round=4"


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def run(runs):
    return trained(runs)


def loss(run, theta):
    return float(evaluate(run.task, theta[None], torch.ones(1, 1), metrics=("loss",))["loss"])


def test_the_split_agrees_with_every_client_trained_by_hand(run):
    found = counterfactual(run, rounds=[1]).isel(round=0)
    record = run.round(1)
    models = torch.stack([run.method.local(run.client(1, client)).theta for client in range(4)])
    updates = models.double() - record.start.double()
    q = torch.tensor([len(part) for part in run.parts]).double()
    q /= q.sum()
    mean, full = record.shares @ updates[record.ids], q @ updates
    step = record.end.double() - record.start.double()
    vectors = {"step": step, "mean": mean, "full": full, "sampling": mean - full}
    for name, vector in vectors.items():
        assert float(found.norm.sel(part=name)) == pytest.approx(float(vector.norm())), name
        without = loss(run, (record.end.double() - vector).float())
        assert float(found.loss_without.sel(part=name)) == pytest.approx(without, rel=1e-5), name
    assert float(found.loss) == pytest.approx(loss(run, record.end))
    np.testing.assert_allclose(found.loss_cost, found.loss - found.loss_without)
    np.testing.assert_allclose(found.distance, (updates - full).norm(dim=1))
    m, d = len(record.ids), len(step)
    assert float(found.sampling_variance) == pytest.approx(float((mean - full).square().sum()) / (m * d))
    assert float(found.client_variance) == pytest.approx(float((updates - full).square().sum()) / (4 * m * d))
    cosine = torch.nn.functional.cosine_similarity(full, mean - full, dim=0)
    assert float(found.cosine.sel(part="full", other="sampling")) == pytest.approx(float(cosine))


def test_a_clients_cost_is_that_of_its_drift(run):
    found = counterfactual(run, rounds=[2]).isel(round=0)
    record = run.round(2)
    updates = record.deltas.double()
    for row, client in enumerate(record.ids.tolist()):
        drift = record.shares[row] * (updates[row] - record.shares @ updates)
        without = loss(run, (record.end.double() - drift).float())
        assert float(found.client_cost.sel(client=client)) == pytest.approx(float(found.loss) - without, abs=1e-6)
    outside = next(client for client in range(4) if client not in record.ids.tolist())
    assert np.isnan(found.client_cost.sel(client=outside))


def test_estimates_are_those_of_equation_13(run):
    found, cheap = counterfactual(run, rounds=[0, 1, 2]), drift_variances(run)
    for drift, recorded in (("sampling", "change"), ("client", "client")):
        np.testing.assert_allclose(found[f"{drift}_estimate"], cheap[f"{recorded}_variance"])
        np.testing.assert_allclose(found[f"{drift}_ratio"], found[f"{drift}_estimate"] / found[f"{drift}_variance"])
    np.testing.assert_allclose(found.sampling_share_estimate, cheap.change_share)


def test_without_server_and_sampling_fedavg_is_full_participation(run):
    found = counterfactual(run)
    assert found.sizes["round"] == 3
    assert float(found.norm.sel(part="server").max()) < 1e-6
    assert np.isnan(found.cosine.sel(part="server")).all()
    assert float(found.norm.sel(part="sampling").min()) > 1e-3
    assert found.attrs["trainings"] == 3  # one of four clients is outside each cohort


@pytest.mark.parametrize("more", [(), ("clients.train_all=true",)])
def test_full_participation_has_no_sampling_part_and_exact_client_variance(runs, more):
    found = counterfactual(trained(runs, ALL, *more))
    np.testing.assert_allclose(found.client_ratio, 1, rtol=1e-5)
    assert found.attrs["trainings"] == 0
    assert not found.expected_sampling.any()


@pytest.mark.parametrize("keep", [(), ("keep.clients=none",)])
@pytest.mark.parametrize("cohort", tiny.EVERYONE)
def test_sampling_drift_of_everyone_is_exactly_zero_and_has_no_ratio(runs, cohort, keep):
    """Not within rounding: a ratio to what is left would be 10^27."""
    found = counterfactual(trained(runs, *cohort, *keep, "keep.globals=all"))
    assert (found.clients == found.cohort).all()
    assert not found.norm.sel(part=["sampling", "gradient_sampling"]).any()
    assert not found.sampling_variance.any() and found.sampling_ratio.isnull().all()
    alone = found.cohort == 1  # without client drift either
    assert (found.sampling_share.isnull() == alone).all() and (found.client_ratio.isnull() == alone).all()
    assert not found.sampling_share.fillna(0).any()


def test_one_client_in_the_cohort_has_no_client_drift(runs):
    found = counterfactual(trained(runs, "clients.per_round=1"))
    assert float(found.client_norm.max()) < 1e-12
    assert float(found.data_norm.max()) < 1e-12
    np.testing.assert_allclose(found.client_cost.max("client"), 0, atol=1e-6)
    assert found.sampling_share.isnull().sum() == 0


def test_one_full_batch_step_has_no_local_part(runs):
    found = counterfactual(trained(runs, "local.batch=1000", "rounds=2"))
    np.testing.assert_allclose(found.scale, 1, rtol=1e-4)
    np.testing.assert_allclose(found.local_share, 0, atol=1e-6)
    np.testing.assert_allclose(found.norm.sel(part="gradient_sampling"), found.norm.sel(part="sampling"), rtol=1e-3)


def test_recorded_clients_need_not_be_trained_again(runs, run):
    """Records in 16 bits or without clients leave everybody to be trained; the split hardly changes."""
    whole = counterfactual(run)
    for keep in ("keep.dtype=bfloat16 deltas", "keep.clients=none"):
        bare = counterfactual(trained(runs, keep))
        assert bare.attrs["trainings"] == 12
        np.testing.assert_allclose(bare.norm, whole.norm, atol=1e-6)
        np.testing.assert_allclose(bare.loss_without, whole.loss_without, atol=1e-5)


def test_processes_give_the_same_numbers_and_progress_counts_trainings(run):
    heard = []
    told = run.with_progress(lambda done, total: heard.append((done, total)))
    alone = counterfactual(told, rounds=[0, 2])
    assert heard[0] == (0, 2)
    assert heard[-1] == (2, 2)
    assert counterfactual(run, rounds=[0, 2], workers=2).equals(alone)


def test_clients_without_samples_and_diverged_ones_do_not_count(runs):
    thin = trained(runs, "clients.number=12", "clients.partition={name='dirichlet',concentration=0.05,variant='plain'}")
    empty = sum(not len(part) for part in thin.parts)
    found = counterfactual(thin)
    assert empty > 0
    assert set(found.clients.values) == {12 - empty}
    assert int(found.share.isel(round=0).isnull().sum()) == empty
    np.testing.assert_allclose(found.share.sum("client"), 1)


def test_a_client_that_diverges_is_left_out(run, monkeypatch):
    outside = next(client for client in range(4) if client not in run.round(1).ids.tolist())
    real = all_clients.replayed

    def diverging(run, jobs, **options):
        for place, (theta, buffers) in real(run, jobs, **options):
            yield place, (torch.full_like(theta, torch.nan), buffers)

    monkeypatch.setattr(all_clients, "replayed", diverging)
    found = counterfactual(run, rounds=[1]).isel(round=0)
    assert float(found.clients) == 3
    assert np.isnan(found.distance.sel(client=outside))
    assert float(found.norm.sel(part="sampling")) < 1e-12


def test_a_round_in_which_every_client_diverged_is_missing(run, monkeypatch):
    whole = type(run).round

    def emptied(self, index):
        record = whole(self, index)
        none = {"ids": record.ids[:0], "sizes": record.sizes[:0], "clients": record.clients[:0]}
        return type(record)(**{**vars(record), **none, "weights": record.weights[:0]}) if index == 1 else record

    monkeypatch.setattr(type(run), "round", emptied)
    found = counterfactual(run, rounds=[0, 1])
    assert all(np.isnan(values.sel(round=1)).all() for values in found.data_vars.values())
    assert not np.isnan(found.norm.sel(round=0)).any()


def test_batch_statistics_are_recomputed_at_every_point(runs):
    run = trained(runs, "task.model=tiny:normalised", "rounds=2")
    found = counterfactual(run)
    assert np.isfinite(found.loss_cost).all()
    end = run.round(1).end.theta  # without its own statistics
    expected = evaluate(run.task, end[None], torch.ones(1, 1), statistics="recomputed")["loss"]
    assert float(found.loss[1]) == pytest.approx(float(expected))
    assert bool(frozen_update(run.client(1, 0)).any())


def test_effort_counts_the_trainings(runs, run):
    told = counterfactual_effort(run)
    assert told.trainings == counterfactual(run).attrs["trainings"]
    assert told.forwards > 0
    heard: list[str] = []
    run.with_progress(None, heard.append).cached(counterfactual, rounds=[0])
    assert heard[0].startswith(f"counterfactual of {run.name}: 1 trainings")


def test_runs_and_options_that_do_not_do_are_refused(runs, run):
    with pytest.raises(ValueError, match="scale is 'half'"):
        counterfactual(run, scale="half")
    bare = trained(runs, "keep.globals=none", "keep.clients=none")
    for rounds in (None, [1]):
        with pytest.raises(LookupError, match=r"keep\.globals=all"):
            counterfactual(bare, rounds=rounds)


@pytest.mark.parametrize("name", one_of_each(NAMES))
def test_every_method_is_split(name, tmp_path):
    run = simulate(experiment(name), runs=tmp_path)
    found = counterfactual(run, rounds=[1, -1])
    assert found["round"].values.tolist() == [1, 2]
    assert found.part.values.tolist() == list(TERMS)
    assert np.isfinite(found.norm).all()
    assert all({"long_name", "units"} <= set(found[name].attrs) for name in found.data_vars)
