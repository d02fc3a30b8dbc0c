"""Recording that stops and goes on: whole rounds at any moment, other trainings noticed, other writers refused."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
import tiny
import torch
from recordings import moved, net, recorded
from torch import nn

import drift
from drift.record.recorder import Recorder
from drift.simulation.verify import verify
from drift.store import files
from drift.store.locks import Busy, locked
from landscape.model.layout import Layout

ROOT = Path(__file__).resolve().parents[3]


def test_recording_goes_on_where_it_ended_and_notices_another_training(tmp_path):
    recorded(tmp_path / "whole", rounds=4)
    recorded(tmp_path / "parts", rounds=2)
    recorder = recorded(tmp_path / "parts", rounds=4)
    for index in range(4):
        names = [files.round_path(tmp_path / folder, index) for folder in ("whole", "parts")]
        assert names[0].read_bytes() == names[1].read_bytes()
    layout = Layout.of(net())
    model = {name: torch.from_numpy(value.copy()) for name, value in recorder.model().items()}
    assert torch.equal(layout.theta(model), drift.open(tmp_path / "parts").round(-1).end)
    begin = net().state_dict()
    with pytest.raises(ValueError, match="does not begin where they ended"):
        Recorder(tmp_path / "parts").round(start=begin, clients={}, end=begin)
    Recorder(tmp_path / "parts", continuous=False).round(start=begin, clients={}, end=begin)


def test_other_folders_models_and_writers_are_refused(tmp_path):
    source = tiny.trained(tmp_path)
    with pytest.raises(ValueError, match="not recorded by this class"):
        Recorder(source.folder)
    recorder = recorded(tmp_path / "run", rounds=1)
    with pytest.raises(ValueError, match="another model"):
        Recorder(tmp_path / "run", nn.Linear(2, 2))
    with pytest.raises(ValueError, match="keeps"):
        Recorder(tmp_path / "run", clients="none")
    with pytest.raises(ValueError, match="first round needs start"):
        Recorder(tmp_path / "new").round(clients={}, end=net())
    with pytest.raises(ValueError, match=r"'0.bias' has shape \(2,\), the run has \(3,\)"):
        recorder.round(clients={0: (moved(net(), 1) | {"0.bias": torch.zeros(2)}, 1)}, end=net())
    with pytest.raises(ValueError, match="client 'x' is not a number"):
        recorder.round(clients={"x": (net(), 1)}, end=net())
    with locked(tmp_path / "run"), pytest.raises(Busy, match="being trained by another"):
        recorder.round(clients={0: (net(), 1)}, end=net())
    recorded(tmp_path / "run", rounds=2)
    with pytest.raises(Busy, match="another recorder"):
        recorder.round(clients={0: (net(), 1)}, end=net())
    assert drift.open(tmp_path / "run").rounds() == [0, 1] and verify(tmp_path / "run") == []


LOOP = """
import sys
import numpy as np
from drift.record.recorder import Recorder

recorder = Recorder(sys.argv[1])
start = recorder.model() if recorder.next else {"w": np.zeros(20_000, np.float32)}
while True:
    clients = {k: ({"w": start["w"] + k + 1}, k + 1) for k in range(3)}
    end = {"w": start["w"] + 1}
    print(recorder.round(start=start, clients=clients, end=end), flush=True)
    start = end
"""


def test_killed_at_any_moment_it_leaves_whole_rounds_and_goes_on(tmp_path):
    for _ in range(4):
        process = subprocess.Popen([sys.executable, "-c", LOOP, tmp_path / "run"], cwd=ROOT, stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(float(np.random.default_rng().uniform(0, 0.03)))
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        run = drift.open(tmp_path / "run")
        assert verify(run.folder) == [] and run.committed > 0
        assert run.rounds() == list(range(run.committed))
    ends = [float(run.round(index).end[0]) for index in run.rounds()]
    assert ends == [index + 1 for index in run.rounds()]
    assert json.loads((tmp_path / "run" / "run.json").read_bytes())["experiment"]["rounds"] >= run.committed


def test_killed_before_the_first_round_was_committed_it_begins_anew(tmp_path):
    """Description and round are written, the commit point is not: another first round takes their place."""
    begin, clients = {"w": torch.zeros(4)}, {0: ({"w": torch.ones(4)}, 2)}
    Recorder(tmp_path / "run").round(start=begin, clients=clients, end=clients[0][0], metrics={"loss": 1.0})
    (tmp_path / "run" / files.STATE).unlink()
    for number in range(2):
        end = {"w": torch.full((4,), number + 2.0)}
        Recorder(tmp_path / "run").round(start=begin, clients=clients, end=end)
        begin = end
    run = drift.open(tmp_path / "run")
    assert verify(run.folder) == [] and run.rounds() == [0, 1]
    assert [float(run.round(index).end[0]) for index in run.rounds()] == [2, 3]
