"""Files that `fedscape new` writes: a plug-in of each kind that works as it stands, its test, its next command."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Template:
    """Content of a plug-in and of its test, and a command that uses it; NAME, CLASS and FILE stand for its names."""

    code: str
    test: str
    command: str


METHOD = Template(
    code='''"""CLASS, the mean update times a factor. Source: name the paper and its equation."""

from drift.method import Combined, Method
from pydantic import Field


class CLASS(Method):
    """One round: w + factor * (mean of the clients - w). Hooks that are not overridden are those of FedAvg."""

    factor: float = Field(default=0.5, gt=0, description="of the mean update; 1 is FedAvg")

    def combine(self, setting, state, cohort):
        theta = cohort.start + self.factor * (cohort.weighted_mean - cohort.start)
        return Combined(theta, cohort.weights)
''',
    test="""import torch
from drift.method import Cohort
from NAME import CLASS


def cohort():
    start, clients = torch.tensor([1.0, 1.0]), torch.tensor([[3.0, 1.0], [1.0, 5.0]])
    weights = torch.tensor([0.25, 0.75], dtype=torch.float64)
    return Cohort(0, start, start, torch.arange(2), torch.tensor([2, 6]), weights, clients, torch.ones(2))


def test_one_step_by_hand():
    theta = CLASS(factor=0.5).combine(None, {}, cohort()).theta
    assert torch.allclose(theta, torch.tensor([1.25, 2.5]))


def test_factor_one_is_fedavg():
    assert torch.allclose(CLASS(factor=1.0).combine(None, {}, cohort()).theta, cohort().weighted_mean)
""",
    command="fedscape compare digits-shards2 --methods fedavg FILE:CLASS --seeds 8 --set rounds=3",
)

PARTITION = Template(
    code='''"""Every K-th sample to the same client. Source: name the paper and its section."""

import numpy as np
from drift.partitions import Partitioner, require_samples


class CLASS(Partitioner):
    """Client k has the samples first + k, first + k + K, and so on.

    Args:
        first: Samples before it are dropped.
    """

    first: int = 0

    def split(self, labels, clients, rng):
        require_samples(labels, clients)
        return [np.arange(self.first + client, len(labels), clients) for client in range(clients)]
''',
    test="""import numpy as np
from NAME import CLASS


def test_parts_are_disjoint_and_cover_the_samples():
    parts = CLASS().split(np.arange(11) % 3, 4, np.random.default_rng(0))
    assert sorted(np.concatenate(parts)) == list(range(11))
""",
    command="fedscape train digits-shards2 --set clients.partition=FILE:CLASS rounds=3",
)

DATASET = Template(
    code='''"""Points on two rings. Source: name the data and its publisher."""

import torch
from landscape import Samples
from landscape.datasets._dataset import Dataset, fingerprint


def CLASS(folder=None, *, samples=200, seed=0):
    """Class 0 inside, class 1 outside; values as they are published, the scaling is a setting of the experiment.

    Args:
        folder: Where files are read from; not used here.
        samples: Training samples; there are a quarter as many test samples.
        seed: Of the points.
    """
    generator = torch.Generator().manual_seed(seed)

    def sample(count):
        targets = torch.arange(count) % 2
        points = torch.randn(count, 2, generator=generator)
        return Samples(points / points.norm(dim=1, keepdim=True) * (1 + targets[:, None]), targets)

    train, test = sample(samples), sample(samples // 4)
    return Dataset("NAME", train, test, ("inner", "outer"), (2,), fingerprint(train, test), "default", None)
''',
    test="""from NAME import CLASS


def test_classes_lie_on_two_rings():
    train = CLASS(samples=40).train
    radius = train.inputs.norm(dim=1)
    assert len(train) == 40 and (radius.round() == 1 + train.targets).all()


def test_the_seed_fixes_the_points():
    assert CLASS(seed=3).fingerprint == CLASS(seed=3).fingerprint != CLASS(seed=4).fingerprint
""",
    command="fedscape train digits-shards2 --set task.dataset=FILE:CLASS task.model=linear clients.number=5 rounds=3",
)

MODEL = Template(
    code='''"""Two layers. Source: name the paper and its table."""

from math import prod

from torch import nn


def CLASS(shape, classes, *, width=32):
    """FC width, ReLU, FC classes.

    Args:
        shape: Of one input.
        classes: Number of outputs.
        width: Units of the hidden layer.
    """
    return nn.Sequential(nn.Flatten(), nn.Linear(prod(shape), width), nn.ReLU(), nn.Linear(width, classes))
''',
    test="""import torch
from NAME import CLASS


def test_it_has_one_output_per_class():
    assert CLASS((1, 8, 8), 10)(torch.zeros(3, 1, 8, 8)).shape == (3, 10)


def test_number_of_parameters():
    assert sum(p.numel() for p in CLASS((1, 8, 8), 10, width=4).parameters()) == 64 * 4 + 4 + 4 * 10 + 10
""",
    command="fedscape train digits-shards2 --set task.model=FILE:CLASS rounds=3",
)

FIGURE = Template(
    code='''"""Length of the server's step over rounds, one line per run."""

import xarray as xr
from figures.looks import style


class CLASS:
    """What is shown, and which figure of which paper it is."""

    NEEDS, COST = "any runs that stored global models", "seconds"

    def data(self, runs):
        steps = {run.name: [run.round(t).end - run.round(t).start for t in run.rounds()] for run in runs}
        lines = [xr.DataArray([float(step.norm()) for step in each], dims="round") for each in steps.values()]
        joined = xr.concat(lines, "run").assign_coords(run=list(steps)).rename("length")
        return joined.to_dataset().assign_attrs(runs=", ".join(steps))

    @style.styled
    def draw(self, ds):
        figure, axs = style.panels(1, 1, width=3.3)
        for name in ds.run.values:
            axs[0, 0].plot(ds.length.sel(run=name), label=str(name))
        axs[0, 0].set(xlabel="round", ylabel="length of the step")
        axs[0, 0].legend()
        return figure
''',
    test="""import xarray as xr
from NAME import CLASS


def test_each_run_is_a_line():
    ds = xr.Dataset({"length": (("run", "round"), [[3.0, 2.0], [1.0, 4.0]])}, {"run": ["a", "b"]})
    (ax,) = CLASS().draw(ds).axes
    assert [line.get_label() for line in ax.lines] == ["a", "b"]
    assert ax.lines[1].get_ydata().tolist() == [1.0, 4.0]
""",
    command="fedscape figures draw FILE:CLASS runs",
)

ANALYSIS = Template(
    code='''"""Spread of the client updates, per round."""

import xarray as xr


def NAME(run, power=1.0):
    """Root mean square distance of the clients from their mean, to a power.

    Args:
        run: Its rounds with stored client models are read.
        power: Exponent.
    """
    rounds = run.kept("clients")
    clients = [run.round(t).clients for t in rounds]
    spread = [float((models - models.mean(0)).square().sum(1).mean().sqrt() ** power) for models in clients]
    values = ("round", spread, {"long_name": "spread of the clients", "units": "1"})
    return xr.Dataset({"spread": values}, {"round": rounds}, {"analysis": "NAME"})
''',
    test="""from types import SimpleNamespace

import torch
from NAME import NAME


def test_two_clients_by_hand():
    record = SimpleNamespace(clients=torch.tensor([[0.0, 0.0], [6.0, 8.0]]))
    run = SimpleNamespace(kept=lambda what: [4], round=lambda t: record)
    ds = NAME(run)
    assert ds.spread.values.tolist() == [5.0] and ds["round"].values.tolist() == [4]
""",
    command="fedscape analyse FILE:NAME RUN",
)

TEMPLATES = {
    "method": METHOD,
    "partition": PARTITION,
    "dataset": DATASET,
    "model": MODEL,
    "figure": FIGURE,
    "analysis": ANALYSIS,
}
