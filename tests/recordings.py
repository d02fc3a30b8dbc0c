"""Rounds of any loop, recorded: a small model, what training makes of it, and runs of a few rounds."""

import linecache

import torch
from torch import nn

import drift
import landscape
from drift.record.recorder import Recorder
from drift.runs.run import Run


def net() -> nn.Sequential:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3), nn.ReLU(), nn.Linear(3, 2))


def moved(model: nn.Module, seed: int, *, by: float = 0.1) -> dict[str, torch.Tensor]:
    source = torch.Generator().manual_seed(seed)
    state = model.state_dict()
    floating = {name: value for name, value in state.items() if value.is_floating_point()}
    return state | {k: v + by * torch.rand(v.shape, generator=source) for k, v in floating.items()}


def recorded(folder, rounds=3, **options) -> Recorder:
    recorder, start = Recorder(folder, net(), **options), net().state_dict()
    for index in range(recorder.next, rounds):
        clients = {client: (moved(net(), 10 * index + client), 2 + 5 * client) for client in (3, 0)}
        end = moved(net(), 100 + index)
        start = start if index == 0 else moved(net(), 99 + index)
        recorder.round(start=start, clients=clients, end=end, metrics={"loss": 1 / (1 + index)})
    return recorder


COHORTS = ((0, 1, 2, 3), (1, 4, 2), (3, 0), (2,), (), (0, 1, 4), ())
"""Clients that replied, by round, in `unequal`."""


def unequal(folder, **options) -> Run:
    """A run whose rounds have four clients to none, with a task of two classes and samples of a sixth client."""
    recorder, start = Recorder(folder, **options), net().state_dict()
    for index, cohort in enumerate(COHORTS):
        clients = {client: (moved(net(), 10 * index + client), 16) for client in cohort}
        end = moved(net(), 100 + index)
        recorder.round(start=start, clients=clients, end=end, metrics={"loss": 1 / (1 + index)})
        start = end
    inputs = torch.randn(96, 4, generator=torch.Generator().manual_seed(0))
    samples = (inputs, (inputs[:, 0] > 0).long())
    task = landscape.make_task(net(), nn.CrossEntropyLoss(), {"train": samples, "test": samples})
    return drift.open(folder, task=task, parts=torch.arange(96).chunk(6))


def require_stated(reason: Exception) -> None:
    """Fail unless an error was raised by a statement `raise`, as one about shapes in a library is not."""
    frame = reason.__traceback__
    while frame.tb_next is not None:
        frame = frame.tb_next
    path = frame.tb_frame.f_code.co_filename
    line = linecache.getline(path, frame.tb_lineno).strip()
    assert line.startswith("raise ") and "site-packages" not in path, f"{reason!r} at {path}: {line}"
