"""Clients with numbers that are not finite: excluded and named; a run without a finite client stops."""

import pytest
import tiny
import torch

from drift.config.load import validated
from drift.config.method import Method
from drift.runs.run import Run
from drift.simulation.simulate import Diverged, simulate
from drift.store import files
from drift.training import arrivals
from drift.training.client import Client


def _spoiled(ids: set[int]):
    real = Method.local

    def local(self, client: Client):
        update = real(self, client)
        if client.id in ids and client.index >= 1:
            update.theta[0] = torch.nan
        return update

    return local


def test_a_non_finite_client_is_excluded_and_named(tmp_path, monkeypatch):
    run = simulate(validated(tiny.DIGITS), runs=tmp_path / "sound")
    bad = int(run.round(1).ids[0])
    monkeypatch.setattr(Method, "local", _spoiled({bad}))
    spoiled = simulate(validated(tiny.DIGITS), runs=tmp_path / "spoiled")
    record = spoiled.round(1)
    assert record.extras["excluded"].tolist() == [bad]
    assert bad not in record.ids.tolist()
    assert float(record.weights.sum()) == pytest.approx(1)
    assert bool(torch.isfinite(spoiled.round(-1).end).all())


def test_a_run_without_a_finite_client_stops_and_keeps_the_record(tmp_path, monkeypatch):
    monkeypatch.setattr(Method, "local", _spoiled(set(range(6))))
    with pytest.raises(Diverged, match="round 1: no finite model is left"):
        simulate(validated(tiny.DIGITS), runs=tmp_path)
    (folder,) = tmp_path.iterdir()
    run = Run(folder)
    assert run.rounds() == [0]
    assert len(files.read_round(folder, 1).extras["excluded"]) == 3


@pytest.mark.parametrize("wrong", [float("nan"), float("inf"), -float("inf")])
@pytest.mark.parametrize("place", [0, 5, 1030])
def test_every_value_that_is_not_finite_is_noticed(wrong, place):
    values = torch.linspace(-1e38, 1e38, 1031)
    assert arrivals._all_finite(values) and arrivals._all_finite(values[:0])
    values[place] = wrong
    assert not arrivals._all_finite(values)
