"""`fedscape diagnose` of runs that another program trained: what is unknown is said to be unknown."""

import pytest
import torch
from torch import nn

import drift
from drift.diagnosis.diagnose import diagnose
from drift.record.recorder import Recorder
from figures.commands.diagnose import screen
from landscape.model.samples import Samples


def net() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 3), nn.ReLU(), nn.Linear(3, 2))


def made(outputs, targets):
    return nn.functional.cross_entropy(outputs, targets, reduction="none")


def task():
    source = torch.Generator().manual_seed(0)
    train, test = (Samples(torch.randn(n, 4, generator=source), torch.arange(n) % 2) for n in (60, 30))
    return net(), made, {"train": train, "test": test}


def recorded(folder, metrics, clients="every 3", rounds=4):
    source, start = torch.Generator().manual_seed(1), net().state_dict()

    def near(state, by):
        return {name: value + by * torch.randn(value.shape, generator=source) for name, value in state.items()}

    recorder = Recorder(folder, net(), clients=clients)
    for index in range(rounds):
        models = {client: (near(start, 0.1), 15) for client in range(4)}
        end = near(start, 0.03)
        told = {name: value - 0.01 * index for name, value in metrics.items()}
        recorder.round(start=start, clients=models, end=end, metrics=told)
        start = end
    return folder


PARTS = [list(range(client, 60, 4)) for client in range(4)]
OPENED = {"alone": {}, "task": {"task": True}, "task and parts": {"task": True, "parts": PARTS}}


@pytest.mark.parametrize("quick", [True, False])
@pytest.mark.parametrize("opened", OPENED)
@pytest.mark.parametrize(
    "metrics",
    [{}, {"loss": 0.6}, {"error": 0.4}, {"loss": 0.6, "error": 0.4}, {"loss": float("nan"), "error": 0.4}],
    ids=["no metrics", "loss", "error", "both", "loss not finite"],
)
def test_no_number_that_nobody_recorded_and_whole_sentences(tmp_path, metrics, opened, quick):
    how = OPENED[opened] | ({"task": task()} if "task" in OPENED[opened] else {})
    run = drift.open(recorded(tmp_path / "run", metrics), **how)
    said = " ".join(" ".join(screen(diagnose(run, quick=quick))).split())
    assert opened != "alone" or "loss 0.57 nats" not in said, "nobody said that it is a cross-entropy"
    assert "nan" not in said.lower() and ".." not in said.replace("parts=...", "") and ". ." not in said, said
    finite = {name for name, value in metrics.items() if value == value}
    assert ("% " in said.partition("STATE")[0]) == ("error" in finite)
    assert ("no test loss or error recorded" in said) == (not finite)
    assert "Causes were not tested" in said
    assert "broke down" not in said or ("loss" in metrics and "loss" not in finite)
