"""Many runs at once: crossed in order, skipped where they exist, each failing alone."""

import pytest
import tiny
import torch

import drift
from drift.simulation import settings_grid as module
from drift.simulation.crossed_settings import cross_settings
from drift.simulation.settings_grid import train_grid, values


def test_values_are_read_as_toml_else_as_text():
    found = values(["method=fedavg,ima", "seed=0,1", "clients.concentration=0.1", "task.classes=[0,1],[2,3]"])
    assert found == {
        "method": ["fedavg", "ima"],
        "seed": [0, 1],
        "clients.concentration": [0.1],
        "task.classes": [[0, 1], [2, 3]],
    }
    assert values(["local.optimizer='sgd','adam'"]) == {"local.optimizer": ["sgd", "adam"]}
    for wrong in (["seed"], ["seed="], ["=1"], ["seed=1", "seed=2"]):
        with pytest.raises(ValueError, match="KEY=VALUE"):
            values(wrong)


def test_settings_are_crossed_the_last_one_fastest():
    found = cross_settings(tiny.experiment(), {"method": ["fedavg", "ima"], "local.lr": [0.1, 0.2, 0.3]}, "rounds=5")
    assert [(one.method.name(), one.local.lr) for one in found] == [
        (method, rate) for method in ("fedavg", "ima") for rate in (0.1, 0.2, 0.3)
    ]
    assert {one.rounds for one in found} == {5}


def test_runs_on_disk_are_skipped_and_one_that_fails_stops_nobody(tmp_path, monkeypatch):
    done = tiny.trained(tmp_path, "seed=1")
    begun = tiny.experiment("seed=2", "rounds=5")
    wanted = [tiny.experiment("local.lr=1e39"), done.experiment, begun, done.experiment]
    boards = []
    planned = train_grid(wanted, runs=tmp_path, workers=2, watch=boards.append)
    assert [one.state for one in planned] == ["failed", "on disk", "done"]
    assert [one.rounds for one in planned][1:] == [3, 5]
    assert "no finite model" in planned[0].reason
    assert [one.state for one in boards[0]] == ["waiting", "on disk", "waiting"]
    assert boards[-1] == planned
    alone = drift.simulate(begun, runs=tmp_path / "alone")
    assert torch.equal(alone.round(-1).end, planned[2].run.round(-1).end)
    monkeypatch.setattr(module, "job_pool", None)  # nothing is left to do
    assert [one.state for one in train_grid(wanted[1:], runs=tmp_path)] == ["on disk", "on disk"]


def test_a_method_that_refuses_the_setting_leaves_the_others(tmp_path):
    told = []
    crossed = {"method": ["ima", "fedbn", "fedavg"], "seed": [1]}
    wanted = cross_settings(tiny.experiment(), crossed, "rounds=1", hear=told.append)
    assert [one.method.name() for one in wanted] == ["fedbn", "fedavg"]
    assert [dict(one.settings) for one in told] == [{"method": "ima", "seed": 1}] and "window is 5" in told[0].reason
    planned = train_grid(wanted, runs=tmp_path, workers=2)
    assert [one.state for one in planned] == ["failed", "done"] and "normalisation layers" in planned[0].reason
    with pytest.warns(UserWarning, match="method=ima, seed=1 is not trained: .*window is 5"):
        assert cross_settings(tiny.experiment(), crossed, "rounds=1") == wanted
    with pytest.raises(ValueError, match="window is 5"):
        cross_settings(tiny.experiment(), {"method": ["ima"], "seed": [1, 2]}, "rounds=1")


@pytest.mark.parametrize(
    "setting", ["method", "method.name", "method.base", "clients.partition", "task.dataset", "task.model"]
)
def test_a_name_that_there_is_none_of_is_no_refusal_but_a_mistake(setting):
    right = {"clients.partition": "iid", "task.dataset": "blobs", "task.model": "linear"}.get(setting, "fedavg")
    with pytest.raises(ValueError, match="named 'nosuch'"):
        cross_settings(tiny.experiment(), {setting: [right, "nosuch"]})
