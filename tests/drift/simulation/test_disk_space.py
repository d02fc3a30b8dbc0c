"""The estimated size of a run against what it takes, with states of clients in files of their own."""

import pytest
import tiny

import drift
from drift.simulation import disk_space
from drift.simulation.disk_space import client_numbers, expected_bytes, require_space
from drift.store import server_state
from drift.store.paths import CLIENTS

WIDE = ("task.model=mlp", "task.model_options.hidden=[600]", "clients.number=6", "clients.per_round=3", "rounds=8")


@pytest.mark.parametrize(
    "settings",
    [
        ("method=scaffold", "local.momentum=0.0"),
        ("method=feddyn",),
        ("method=moon",),
        ("method=fedrep",),
        ("method=fedfomo", "method.validation=train", "method.baseline=before_training"),
        ("method=ima", "method.base=moon"),
        ("method=fedavg", "local.momentum=0.9", "local.persist_optimizer=true"),
        ("method=fedavg", "local.optimizer=adam", "local.persist_optimizer=true", "local.momentum=0.0"),
        ("method=fedavg",),
    ],
    ids=lambda settings: settings[0] + settings[-1],
)
def test_what_clients_keep_is_as_large_as_estimated(tmp_path, monkeypatch, settings):
    monkeypatch.setattr(server_state, "ONE_FILE", 0)
    run = drift.simulate(tiny.experiment(*WIDE, "keep.clients=none", *settings), runs=tmp_path)
    stored = list((run.folder / CLIENTS).glob("*"))
    numbers = client_numbers(run.experiment, run.task)
    assert bool(stored) == bool(numbers)
    for path in stored:
        assert 0.9 * 4 * numbers < path.stat().st_size < 4 * numbers + 4096


def test_a_run_is_refused_for_its_clients_states_alone(tmp_path, monkeypatch):
    run = tiny.experiment(*WIDE, "keep.clients=none", "method=scaffold", "local.momentum=0.0")
    size, carried = 40_000, 40_000
    plain, whole = expected_bytes(run, size), expected_bytes(run, size, carried=carried)
    assert whole - plain == 4 * carried * (6 + 3)
    all_have_files = expected_bytes(run, size, 7, carried=carried) - expected_bytes(run, size, 7)
    assert all_have_files == 4 * carried * 3
    usage = type("Usage", (), {"free": (plain + whole) // 2})
    monkeypatch.setattr(disk_space.shutil, "disk_usage", lambda place: usage)
    require_space(tmp_path, run, size)
    with pytest.raises(OSError, match="the run needs about"):
        require_space(tmp_path, run, size, carried=carried)
