"""A run that takes a fraction of a second: blobs, a linear model, 4 clients of unequal size, 3 of them a round."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import nn

from drift.config.experiment import Experiment
from drift.config.load import read, validated
from drift.runs.run import Run
from drift.simulation.simulate import simulate

TOML = """# Tiny experiment of the tests.
rounds = 3
seed = 5
proxy = { per_class = 2 }
task = { dataset = "blobs", model = "linear", dataset_options = { samples = 60 } }
clients = { number = 4, per_round = 3, partition = { name = "dirichlet", concentration = 1.0 } }
local = { lr = 0.05, epochs = 1, batch = 8 }

[variants.lss.local]
optimizer = "adam"
"""

DIGITS: dict[str, Any] = {
    "rounds": 4,
    "seed": 5,
    "task": {"dataset": "digits", "model": "mlp", "model_options": {"hidden": [12]}, "train_samples": 200},
    "clients": {"number": 6, "per_round": 3, "partition": "dirichlet", "concentration": 0.5, "variant": "plain"},
    "local": {"lr": 0.1, "epochs": 3, "batch": 8, "momentum": 0.5},
}
"""An experiment of four rounds on real images: 200 digits, 6 clients, 3 of them a round."""


PLAIN = "clients.partition={name='dirichlet',concentration=0.1,variant='plain'}"
"""Clients of very unequal size, some without samples."""

EVERYONE = (
    ("clients.per_round=4",),
    ("clients.number=15", "clients.per_round=15", "seed=2", PLAIN),
    ("clients.number=1", "clients.per_round=1"),
    ("clients.per_round=4", "clients.weighting=uniform"),
)
"""Settings of cohorts in which all clients with samples take part."""


def normalised(shape: tuple[int, ...], classes: int, norm: str = "batch") -> nn.Module:
    """A model of five units with batch statistics, or with group normalisation: task.model=tiny:normalised."""
    layer = nn.BatchNorm1d(5) if norm == "batch" else nn.GroupNorm(1, 5)
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), 5), layer, nn.ReLU(), nn.Linear(5, classes))


def plain_cnn(shape: tuple[int, ...], classes: int) -> nn.Module:
    """Every layer that a page evaluates itself, of unequal sides: task.model=tiny:plain_cnn, for images of 8 x 8."""
    first = [nn.Conv2d(shape[0], 5, (3, 2), stride=(1, 2), padding=(1, 0)), nn.ReLU(), nn.AvgPool2d((2, 1))]
    second = [nn.Conv2d(5, 6, 2, padding=1, bias=False), nn.MaxPool2d(2), nn.Dropout(0.5), nn.ReLU(), nn.Flatten()]
    return nn.Sequential(*first, *second, nn.Linear(24, 9, bias=False), nn.Identity(), nn.Linear(9, classes))


def written(folder: Path) -> Path:
    """The tiny experiment as a TOML file in a folder."""
    path = folder / "tiny.toml"
    path.write_text(TOML)
    return path


def experiment(*overrides: str) -> Experiment:
    """The tiny experiment, changed."""
    content: dict[str, Any] = {
        "rounds": 3,
        "seed": 5,
        "proxy": {"per_class": 2},
        "task": {"dataset": "blobs", "model": "linear", "dataset_options": {"samples": 60}},
        "clients": {"number": 4, "per_round": 3, "partition": {"name": "dirichlet", "concentration": 1.0}},
        "local": {"lr": 0.05, "epochs": 1, "batch": 8},
    }
    return read(validated(content), *overrides)


def trained(runs: Path, *overrides: str) -> Run:
    """A run of it, trained into the folder `runs`."""
    return simulate(experiment(*overrides), runs=runs)


def replaced(run: Run, *overrides: str) -> Run:
    """Another run trained under the name of a run, once what is stored of it is written."""
    other = trained(run.folder.parent / "elsewhere", *overrides)
    run.folder.rename(run.folder.parent / "elsewhere" / "aside")
    other.folder.rename(run.folder)
    return Run(run.folder, run.context)


def assert_same_bits(first: Run, second: Run) -> None:
    """Both runs have the same bits in every round and in the state."""
    assert first.rounds() == second.rounds()
    for index in first.rounds():
        one, two = first.round(index), second.round(index)
        for name in ("ids", "sizes", "weights", "gram", "start", "end", "clients"):
            assert torch.equal(getattr(one, name), getattr(two, name)), (index, name)
        for group in ("extras", "sent", "carried"):
            tensors, others = getattr(one, group), getattr(two, group)
            assert tensors.keys() == others.keys(), (index, group)
            assert all(torch.equal(tensors[name], others[name]) for name in tensors), (index, group)
        for name in one.metrics.keys() - {"seconds"}:
            assert one.metrics[name] == two.metrics[name] or np.isnan(one.metrics[name])
    one, two = first.state()[0], second.state()[0]
    assert one.keys() == two.keys()
    assert all(torch.equal(one[name], two[name]) for name in one)
