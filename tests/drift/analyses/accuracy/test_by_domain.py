"""Accuracy by domain and rankings of users, over the rounds of small runs."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from drift.analyses.accuracy.by_group import _ranking, domain_accuracy, ranking_rounds
from drift.config.load import validated
from drift.simulation.simulate import simulate
from landscape.datasets import digits
from landscape.datasets._dataset import Groups
from landscape.measures.ranking import auc
from tests import movielens

DOMAINS = ("print", "script", "ink")


@pytest.fixture
def with_domains(monkeypatch):
    """Digits in which every sample has a domain, of unequal sizes; ink has no test sample."""
    from dataclasses import replace

    load = digits.load

    def grouped(folder=None):
        dataset = load(folder)
        train, test = torch.arange(len(dataset.train)) % 3, (torch.arange(len(dataset.test)) % 5 == 0).long()
        return replace(dataset, groups={"domain": Groups(DOMAINS, train, test)})

    monkeypatch.setattr(digits, "load", grouped)


def trained(folder, task, data=None, **clients):
    content = {
        "rounds": 2,
        "task": task,
        "clients": {"number": 3, "per_round": 2, **clients},
        "local": {"epochs": 1},
        "keep": {"globals": "all"},
    }
    return simulate(validated(content), runs=folder, data=data)


def test_accuracy_by_domain_is_that_of_its_samples(with_domains, tmp_path):
    run = trained(tmp_path, {"dataset": "digits", "model": "linear", "test_samples": 200}, partition="domains")
    assert [np.unique(run.dataset.groups["domain"].train[part]).tolist() for part in run.parts] == [[0], [1], [2]]
    found = domain_accuracy(run)
    test = run.task.split("test")
    right = run.task.outputs(run.round(-1).kept("end"), "test").argmax(1) == test.targets
    domain = run.dataset.groups["domain"].test
    for number, name in ((0, "print"), (1, "script")):
        expected = float(right[domain == number].double().mean())
        assert float(found.accuracy.sel(round=1, domain=name)) == pytest.approx(expected)
    assert found.accuracy.sel(domain="ink").isnull().all()
    assert float(found.mean_accuracy[1]) == pytest.approx(float(found.accuracy[1, :2].mean()))
    assert 0 < float(found.accuracy_std[1]) < 1
    assert domain_accuracy(run, rounds=[-1])["round"].values.tolist() == [1]


def test_a_proxy_set_takes_its_domains_with_it(with_domains, tmp_path):
    content = {"dataset": "digits", "model": "linear"}
    experiment = validated(
        {"rounds": 1, "task": content, "clients": {"number": 3, "per_round": 2, "partition": "iid"}, "proxy": {}}
    )
    from drift.training.data import read_data

    data = read_data(experiment, None)
    whole = read_data(experiment.model_copy(update={"proxy": None}), None)
    for name in DOMAINS:
        number = DOMAINS.index(name)
        kept = {one.numpy().tobytes() for one in data.samples["test"].inputs[data.groups["domain"].test == number]}
        assert kept <= {
            one.numpy().tobytes() for one in whole.samples["test"].inputs[whole.groups["domain"].test == number]
        }
    assert len(data.groups["domain"].test) == len(data.samples["test"]) == len(whole.samples["test"]) - 100


def test_rankings_are_those_of_the_scores(tmp_path):
    movielens.write(tmp_path / "data" / "movielens1m")
    run = trained(tmp_path / "runs", movielens.TASK, tmp_path / "data", partition="users")
    found = ranking_rounds(run, k=(1, 3, 20))
    assert found.hit_rate.dims == ("round", "rank")
    scores = run.task.outputs(run.round(0).kept("end"), "test")[:, 0]
    assert float(found.auc[0]) == pytest.approx(auc(scores, run.task.split("test").targets))
    assert (found.hit_rate.diff("rank") >= 0).all()
    assert (found.hit_rate.sel(rank=20) == 1).all()
    assert np.array_equal(found.ndcg.sel(rank=1), found.hit_rate.sel(rank=1))
    with pytest.raises(LookupError, match="which has no domains; train on digits3"):
        domain_accuracy(run)
    diverged = _ranking(scores * torch.nan, run.task.split("test").targets, run.dataset.groups["user"].test, (5,))
    assert all(bool(np.isnan(values).all()) for values in diverged.data_vars.values())


def test_runs_of_other_data_say_what_to_train_on(with_domains, tmp_path):
    run = trained(tmp_path, {"dataset": "digits", "model": "linear"}, partition="iid")
    with pytest.raises(LookupError, match=rf"run {run.name} is of digits, which has no candidates to rank"):
        ranking_rounds(run)
