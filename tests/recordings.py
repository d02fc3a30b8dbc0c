"""Rounds of any loop, recorded: a small model, what training makes of it, and a run of a few rounds."""

import torch
from torch import nn

from drift.record.recorder import Recorder


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
