"""Batch statistics of one client alone: named with the layer by `fedscape show`, by diagnose and below pictures."""

import pytest
import torch
from torch import nn

import drift
import figures
from drift.record.recorder import Recorder
from figures.commands.runs import show
from landscape.model.samples import Samples

ODD = "batch statistics of layer 4 of the global model of round 1 are those of client 2 alone"


def net():
    torch.manual_seed(3)
    layers = (nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Linear(3, 2))
    return nn.Sequential(*layers)


def task():
    source = torch.Generator().manual_seed(0)
    samples = Samples(torch.randn(60, 4, generator=source), torch.arange(60) % 2)
    return net(), nn.functional.cross_entropy, {"train": samples, "test": samples}


@pytest.fixture
def recorded(tmp_path):
    """Folder of two rounds of three clients; the last global model has the statistics of client 2 in its layer 4."""
    recorder, start, source = Recorder(tmp_path / "mine", net()), net().state_dict(), torch.Generator().manual_seed(1)
    for _ in range(2):
        clients = {
            client: {name: value + torch.rand(value.shape, generator=source) for name, value in start.items()}
            for client in range(3)
        }
        end = {name: sum(model[name] for model in clients.values()) / 3 for name in start}
        end |= {name: value for name, value in clients[2].items() if name.startswith("4.running")}
        recorder.round(start=start, clients={client: (model, 20) for client, model in clients.items()}, end=end)
        start = end
    return tmp_path / "mine"


def test_statistics_of_one_client_are_named_by_show_by_diagnose_and_below_pictures(recorded, tmp_path, capsys):
    show(str(recorded))
    assert ODD in " ".join(capsys.readouterr().out.split())
    run = drift.open(recorded, task=task())
    assert any(ODD in finding.statement for finding in drift.diagnose(run, quick=True).findings)
    figures.draw("lines-globals", [run], tmp_path, formats=("svg",))
    assert ODD in (tmp_path / "lines-globals.txt").read_text()
    again = figures.draw("lines-globals", tmp_path / "lines-globals.nc", tmp_path / "again", formats=("svg",))
    assert ODD in again[0].with_suffix(".txt").read_text()
    figures.draw("norms-rounds", [run], tmp_path, formats=("svg",))  # of recorded numbers
    assert ODD not in (tmp_path / "norms-rounds.txt").read_text()
