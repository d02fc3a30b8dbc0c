"""Plug-ins outside the package: a file of each kind, and the ways of naming it."""

from __future__ import annotations

import sys
from pathlib import Path

CODE = {
    "method": '''
from drift.config.method import Method
from drift.config.method_values import Combined

class Halved(Method):
    """Half of the mean update."""

    factor: float = 0.5

    def combine(self, setting, state, cohort):
        return Combined(cohort.start + self.factor * (cohort.weighted_mean - cohort.start), cohort.weights)
''',
    "partition": '''
import numpy as np
from drift.partitions import Partitioner

class Strided(Partitioner):
    """Every K-th sample."""

    first: int = 0

    def split(self, labels, clients, rng):
        return [np.arange(client, len(labels), clients) for client in range(clients)]
''',
    "dataset": '''
from landscape.results import netcdf_files
from landscape.datasets import open_dataset
from landscape.datasets.blobs import load

def Points(folder=None, *, samples=60):
    """Blobs by another name."""
    return load(folder, samples=samples)
''',
    "model": '''
from torch import nn

def Net(shape, classes):
    """A line by another name."""
    return nn.Sequential(nn.Flatten(), nn.Linear(8, classes))
''',
    "figure": '''
import xarray as xr
from matplotlib.figure import Figure

class Lengths:
    """Numbers of rounds."""

    NEEDS, COST = "any runs", "seconds"

    def data(self, runs):
        lengths, names = [len(run.rounds()) for run in runs], [run.name for run in runs]
        return xr.Dataset({"rounds": ("run", lengths)}, attrs={"runs": ", ".join(names)})

    def draw(self, ds):
        figure = Figure(layout="constrained")
        figure.add_subplot().plot(ds.rounds)
        return figure
''',
}


CODE["analysis"] = """
import xarray as xr

def longest(run, *, metric="loss"):
    return xr.Dataset({"longest": ((), max(len(text) for text in run.round(-1).metrics)), "metric": ((), metric)})
"""


NAMES = {
    "method": "Halved",
    "partition": "Strided",
    "dataset": "Points",
    "model": "Net",
    "figure": "Lengths",
    "analysis": "longest",
}


SETTINGS = {
    "method": "method",
    "partition": "clients.partition.name",
    "dataset": "task.dataset",
    "model": "task.model",
}


PLURAL = {"analysis": "analyses"}


WAYS = ("file", "module", "entry point")


ROOT = Path(__file__).resolve().parents[1]


def called(kind: str, way: str) -> str:
    """The text by which a plug-in is named."""
    return {"file": f"my_{kind}.py:", "module": f"my_{kind}:"}.get(way, "") + (
        f"my-{kind}" if way == "entry point" else NAMES[kind]
    )


def recorded(folder: Path, kind: str, way: str) -> str:
    """The text by which it is recorded."""
    return f"{folder}/my_{kind}.py:{NAMES[kind]}" if way == "file" else f"my_{kind}:{NAMES[kind]}"


def forgotten(kind: str) -> None:
    """As in a process that has not imported it."""
    for name in [name for name in sys.modules if f"my_{kind}" in name]:
        del sys.modules[name]


OTHER = {"dataset": ("task.dataset_options={samples=50}",)}
