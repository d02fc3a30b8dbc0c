"""Tiny runs of every kind that the figures of the gallery take, and options with which these draw fast."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from torch import nn

import drift
from drift.config.experiment import Experiment
from drift.runs.run import Run
from figures.gallery import AnyOf

QUICK = {
    "planes-clients": {"points": 5},
    "planes-settings": {"points": 4, "most": 2},
    "plane-round": {"points": 5},
    "planes-overlay": {"points": 5},
    "planes-adaptive": {"points": 17, "tolerance": 0.5},
    "trajectory-plane": {"points": 5},
    "barriers-clients": {"points": 5},
    "curve-modes": {"points": 5, "steps": 5},
    "lines-globals": {"points": 7, "lines": 2},
    "lines-fma-ima": {"points": 7, "window": 3},
    "bias-rounds": {"rounds": 2, "samples_per_client": 5},
    "error-averaged": {"rounds": 2, "subsets": 2, "cka_rounds": 2},
    "planes-projected": {"points": 5},
    "planes-classes": {"points": 5},
    "planes-random": {"points": 5},
    "planes-statistics": {"points": 3},
    "simplex-weights": {"step": 0.2},
    "simplex-optima": {"step": 0.25, "rounds": 3, "extend": 0.25},
    "simplex-settings": {"step": 0.25, "rounds": 3, "extend": 0.25},
    "gws-setting": {"over": "clients.concentration"},
    "lines-aligned": {"points": 5},
    "model-map": {"rounds": 1},
    "barriers-pool": {"points": 3, "count": 4},
    "basin-rounds": {"rounds": 2, "points": 7},
    "topology-distances": {"rounds": 2, "points": 5},
    "topology-rounds": {"rounds": 2, "points": 9},
    "weights-round": {"gamma": 0.9},
    "trace-rounds": {"rounds": 2, "products": 6},
    "layers-rounds": {"rounds": 2},
    "drift-curvature": {"rounds": 2, "k": 3},
    "eigen-slice": {"points": 5},
    "gap-scaling": {"rounds": 2, "samples": 5},
    "ntk-clients": {"rounds": 2, "points": 4},
    "decomposition-rounds": {"rounds": 2, "replicates": 2, "samples_per_client": 4},
    "eigen-rounds": {"rounds": 2, "k": 2},
    "sharpness-models": {"batches": 2},
    "sharpness-minibatch": {"rounds": 2, "batches": 2},
    "noise-rounds": {"rounds": 2},
    "robustness-table": {"draws": 1, "after": [1]},
}
"""Options of figures by name."""

KINDS = (
    *(
        "accuracy-rounds",
        "coherence-groups",
        "accuracies-clients",
        "cost-table",
        "regularisation-rounds",
        "weights-round",
    ),
    *("barriers-clients", "labels-scatter", "hessian-density", "eigen-slice", "planes-clients"),
    *("lines-globals", "simplex-weights", "accuracy-table", "topology-distances", "accuracy-after", "layers-drift"),
)
"""Figures of each kind: of each file of figures/axes, and tables. Panels of all are stacked by the same layout in a
column; the slow tests look at the others there."""

FEW = KINDS[3:12]
"""Those whose panels differ in how they are put into a part of another figure, and read by the door that finds them
empty: a table, bars, points, curves and maps."""


def normalised(shape, classes):
    """A model with batch statistics."""
    return nn.Sequential(nn.Flatten(), nn.Linear(int(np.prod(shape)), 5), nn.BatchNorm1d(5), nn.Linear(5, classes))


def _train(
    folder: Path,
    method: dict,
    seed: int,
    partition: dict | None = None,
    model: str = "linear",
    clients: dict | None = None,
    **options,
) -> drift.Run:
    experiment = Experiment(
        rounds=4,
        seed=seed,
        task={"dataset": "blobs", "model": model},
        clients={
            "number": 5,
            "per_round": 3,
            "partition": partition or {"name": "shards", "shards": 2},
            **(clients or {}),
        },
        method=method,
        local={"lr": 0.05, "epochs": 1, "batch": 20},
        proxy={"per_class": 2},
        **options,
    )
    return drift.simulate(experiment, runs=folder)


def every_kind(folder: Path) -> list[Run]:
    """Runs of several methods, seeds, partitions, models and cohorts, which allow almost every figure."""
    quick = {"name": "fedlaw", "server_epochs": 2}
    methods = [{"name": "fedavg"}, quick, {**quick, "variant": "gws"}]
    runs = [_train(folder, method, seed) for method in methods for seed in (3, 4)]
    dirichlet = [{"name": "dirichlet", "concentration": value, "minimum": 1} for value in (0.3, 3.0)]
    drifts = [{"name": "drift", "setting": setting, "concentration": 0.3} for setting in ("iid", "period", "both")]
    runs += [_train(folder, methods[0], 3, partition) for partition in dirichlet + drifts]
    runs += [_train(folder, methods[2], 3, partition) for partition in dirichlet]
    iid, three = {"name": "iid"}, {"name": "hybrid_dirichlet", "first": 1}
    runs += [_train(folder, {"name": "shrink", "gamma": gamma}, seed, iid) for gamma, seed in ((0.9, 3), (1.0, 4))]
    runs += [_train(folder, {**quick, "variant": "attentive"}, 3, iid, clients={"corrupted": 0.4})]
    runs += [_train(folder, methods[0], 3, {**three, "even": even}, clients={"number": 3}) for even in (10.0, 0.5)]
    pools = [_train(folder, {"name": "lss", "candidates": count}, seed, iid) for count, seed in ((2, 3), (1, 4))]
    hidden = [_train(folder, methods[0], seed, model="mlp") for seed in (3, 4)]
    others = [_train(folder, methods[0], 3, model=model) for model in (f"{__name__}:normalised", "adapted:build")]
    unequal = [_train(folder, method, 3, clients={"late": 1, "work": [0.2, 0.9]}) for method in methods[:2]]
    return [*runs, *pools, *others, *hidden, *unequal]


SUITED = {
    "simplex-optima": lambda run: run.experiment.clients.number == 3,  # its path takes the same clients in every round
    "product-gap": lambda run: run.experiment.task.model == "adapted:build",
    "update-causes": lambda run: bool(run.unequal),
    "lines-aligned": lambda run: run.experiment.task.model == "mlp",  # a linear model has no hidden units to align
}
"""Which runs a figure takes, where it cannot take all."""


def suited(name: str, runs: list[Run]) -> AnyOf:
    """The runs that a figure can be drawn from."""
    suits = SUITED.get(name, lambda run: not run.unequal)
    return AnyOf(run for run in runs if suits(run))


def titles(figure: Figure) -> str:
    """Titles of legends and panels, in one line."""
    keys = [key.get_title().get_text() for key in figure.legends]
    names = [ax.get_title(loc=loc) for ax in figure.axes for loc in ("center", "left")]
    return " | ".join(" ".join(text.split()) for text in [*keys, *names] if text)


def panels(figure: Figure) -> list[Axes]:
    """The axes that are no colour bars."""
    return [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
