"""Repetitions of an experiment with other seeds: what is accepted, and what the decomposition makes of them."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from drift.analyses.decomposition.client_models import repetitions
from drift.analyses.decomposition.decomposition import decomposition
from drift.runs.run import Run
from tests import tiny
from tests.drift import hand

SAME = ("clients.partition_seed=1", "clients.per_round=4")


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> list[Run]:
    """Three seeds of one setting in one folder, every client in every round, one keeping less."""
    folder = tmp_path_factory.mktemp("runs")
    kept = {7: ("keep.clients='first 2'", "keep.globals=none")}
    return [tiny.trained(folder, *SAME, f"seed={seed}", *kept.get(seed, ())) for seed in (5, 6, 7)]


def test_factors_over_runs_are_those_of_their_recorded_clients(runs: list[Run]) -> None:
    first, *others = runs
    found = decomposition(
        first, estimator="runs", others=[run.name for run in others], rounds=[1], samples_per_client=10**6
    ).isel(round=0)
    record, train = first.round(1), first.task.samples["train"]
    numbers = np.concatenate([first.parts[k] for k in record.ids.tolist()])
    samples = train[torch.from_numpy(numbers)]
    outputs = torch.stack(
        [
            torch.stack([first.task.outputs(theta, samples).softmax(1) for theta in run.round(1).kept("clients")])
            for run in runs
        ]
    )
    fma = torch.stack([first.task.outputs(run.round(1).fma, samples).softmax(1) for run in runs])
    member = torch.from_numpy(np.stack([np.isin(numbers, first.parts[k]) for k in record.ids.tolist()]))
    expected = hand.five_factors(outputs, F.one_hot(samples.targets, 4), member, record.shares, fma=fma)
    for name, value in expected.items():
        np.testing.assert_allclose(found[name], value, rtol=1e-5, atol=1e-12, err_msg=name)
    assert found.attrs["replicates"] == 3
    assert abs(float(found["cov"])) > 1e-3 * float(found["var"])


def test_the_shared_history_gives_covariance_and_keeps_the_identities(runs: list[Run]) -> None:
    first, *others = runs
    named = [str(others[0].folder), others[1].name]
    found = first.cached(decomposition, estimator="runs", others=named, rounds=[0, 1], split="test")
    np.testing.assert_allclose(found.wens_loss, found.bias2 + 2 / 3 * (found["var"] + found["cov"]), rtol=1e-10)
    assert float(abs(found.identity_gap).max()) < 1e-12
    assert (found["cov"] >= found["cov_bound"]).all()


def test_a_round_that_another_run_did_not_keep_is_named(runs: list[Run]) -> None:
    with pytest.raises(LookupError, match=f"{runs[2].name} kept no clients in round 2"):
        decomposition(runs[0], estimator="runs", others=[runs[2].name], rounds=[2])
    common = decomposition(runs[0], estimator="runs", others=[runs[2].name])
    assert common["round"].values.tolist() == [0, 1]


def test_unequal_cohorts_are_refused(tmp_path: Path) -> None:
    partial = [tiny.trained(tmp_path, "clients.partition_seed=1", f"seed={seed}") for seed in (5, 6)]
    with pytest.raises(ValueError, match=r"cohorts follow the seed.*clients\.per_round = 4"):
        decomposition(partial[0], estimator="runs", others=[partial[1].name])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        (("seed=6", "clients.per_round=4"), r"hold other samples.*clients\.partition_seed=0"),
        (("seed=6", "clients.per_round=4", "local.lr=0.1"), r"has local\.lr = 0\.1"),
        (("clients.per_round=4", "local.lr=0.1"), "seeds .5, 5."),
    ],
)
def test_runs_that_differ_in_more_than_their_seed_are_refused(tmp_path: Path, changes: tuple, message: str) -> None:
    run = tiny.trained(tmp_path, "clients.per_round=4")
    other = tiny.trained(tmp_path, *changes)
    with pytest.raises(ValueError, match=message):
        repetitions(run, [other.name])


def test_absent_runs_and_unsuited_options_are_refused(runs: list[Run]) -> None:
    with pytest.raises(LookupError, match="no run named 'nothing'"):
        decomposition(runs[0], estimator="runs", others=["nothing"])
    with pytest.raises(ValueError, match="others names 0 runs"):
        decomposition(runs[0], estimator="runs")
    with pytest.raises(ValueError, match="others names 1 runs"):
        decomposition(runs[0], others=[runs[1].name])
    with pytest.raises(ValueError, match="estimator is 'run'; decomposition takes one of single, local, runs"):
        decomposition(runs[0], estimator="run")  # type: ignore[arg-type]
