"""What the gallery's pictures are drawn from: recorded runs in papers' settings, or runs that `make pictures` trains.

The trained runs have the setting of `cross-fmnist-mlp-shards2` in `fedscape reproduce`: Fashion-MNIST, an MLP, 50
clients with two label shards each, 10 a round, 120 rounds.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path
from typing import Any

from drift.claims.campaign import judge
from drift.claims.campaign import plan as campaigns
from drift.config.experiment import Experiment
from drift.config.load import read
from drift.config.shipped import plans

METHODS = ("fedavg", "ima", "fedlaw", "fedeve", "lss")
SEEDS = (0, 1)
SETTING = ("rounds=120", "clients.partition=shards", "clients.partition.shards=2")
KEEP = ("keep.clients=every 20, last 3", "keep.globals=all")


def _dirichlet(concentration: float) -> str:
    return f'clients.partition={{name="dirichlet", concentration={concentration}}}'


_HYBRID = ('clients.partition={name="hybrid_dirichlet"}', "clients.number=20", "clients.per_round=20")
_SHORT = ("rounds=40", "keep.clients=every 10, last 3")

EXTRAS: dict[str, tuple[tuple[str, ...], ...]] = {
    "gws": tuple(("method=fedlaw", "method.variant=gws", f"seed={seed}") for seed in SEEDS),
    "hybrid": (("method=fedavg", *_HYBRID), ("method=fedlaw", "method.variant=gws", *_HYBRID)),
    "decay": tuple(("method=fedavg", f"local.lr_decay={value}") for value in (1.0, 0.95)),
    "starts": tuple(("method=ima", f"method.start={value}") for value in (0.25, 0.5, 0.9)),
    "concentrations": tuple(("method=fedavg", _dirichlet(value), "rounds=20") for value in (0.1, 1.0, 10.0)),
    "normalised": (("method=fedavg", "task.model=resnet8", "rounds=6", "local.epochs=1", "keep.clients=all"),),
}
"""Further runs that some figures need, by group: settings of each; the seed is 0 unless it is set."""

_THREE = ("clients.number=3", "clients.per_round=3", "rounds=40", "keep.clients=all")

FURTHER: dict[str, tuple[tuple[str, ...], ...]] = {
    "unequal": (
        (
            "method=fedavg",
            "clients.late=3",
            "clients.work=[0.2,1.0]",
            "clients.stops=0.2",
            "local.compress=8-bit",
            *_SHORT,
        ),
    ),
    "warned": (("method=fedavg", "seed=1", *_SHORT), ("method=fedadam", "method.server_lr=0.3", "seed=1", *_SHORT)),
    "pools": (
        ("method=fedavg", *_SHORT),
        *(("method=lss", f"method.candidates={count}", *_SHORT) for count in (1, 2, 4)),
    ),
    "shrink": tuple(
        ("method=shrink", f"method.gamma={gamma}", 'clients.partition={name="iid"}', *_SHORT)
        for gamma in (1.0, 0.97, 0.9)
    ),
    "corrupted": tuple(
        (
            "method=fedlaw",
            f"clients.corrupted={part}",
            'clients.partition={name="iid"}',
            "clients.per_round=10",
            *_SHORT,
        )
        for part in (0.25, 0.75)
    ),
    "three": tuple(
        (f'clients.partition={{name="hybrid_dirichlet", first=1, even={even}, skewed={skewed}}}', *_THREE)
        for even, skewed in ((10.0, 0.1), (100.0, 100.0), (0.5, 0.5))
    ),
    "factors": tuple(
        ("method=fedlaw", "method.variant=attentive", f"local.epochs={epochs}", _dirichlet(0.3), "rounds=40")
        for epochs in (1, 5)
    ),
    "epochs-gws": tuple(
        (*method, f"local.epochs={epochs}", 'clients.partition={name="dirichlet", concentration=1.0}', *_SHORT)
        for method in (("method=fedavg",), ("method=fedlaw", "method.variant=gws"))
        for epochs in (1, 2, 3, 5)
    ),
}
"""Short runs in other settings, by group, for the figures that need those: settings of each."""

GROUPS: dict[str, tuple[str, ...]] = {
    "accuracies-models": ("pools",),
    "accuracy-curves": ("starts",),
    "regularisation-histogram": ("methods", "gws", "hybrid", "corrupted", "epochs-gws"),
    "regularisation-rounds": ("methods", "gws"),
    "bias-rounds": ("decay",),
    "coherence-groups": ("hybrid",),
    "coherence-rounds": ("hybrid",),
    "early-warning": ("warned",),
    "error-averaged": ("decay",),
    "gws-setting": ("epochs-gws",),
    "labels-scatter": ("concentrations",),
    "layers-drift": ("three",),
    "locality-rounds": ("decay",),
    "planes-statistics": ("normalised",),
    "sharpness-models": ("pools",),
    "shrink-rounds": ("shrink",),
    "simplex-optima": ("hybrid",),
    "simplex-settings": ("three",),
    "update-causes": ("unequal",),
    "weight-factors": ("factors",),
    "weights-corrupted": ("corrupted",),
    "weights-learned": ("methods", "gws"),
}
"""Groups of trained runs per figure; "methods" (all methods and seeds) for all others."""

_IMA = ("ima-table1-fmnist-shards2",)
_BASES = ("ima-table1-fmnist-shards2-bases",)
_FEDEVE = ("fedeve-table1-mnist-dir001", "fedeve-table1-mnist-dir01", "fedeve-table1-mnist-dir1")

RECORDED: dict[str, tuple[str, ...]] = {
    "accuracy-after": ("lss-table1-cifar10",),
    "accuracy-early-late": _BASES,
    "accuracy-panels": _FEDEVE,
    "accuracy-rounds": _IMA,
    "accuracy-setting": _FEDEVE,
    "accuracy-table": _FEDEVE,
    "gain-alpha": ("fedeve-fig4-mnist",),
    "rounds-target": (*_IMA, *_BASES),
    "settings-rounds": ("fedeve-fig3b-mnist-rate",),
    "variance-rounds": _IMA,
}
"""Items of `fedscape reproduce` whose recorded runs a figure is drawn from, in place of trained ones."""

OPTIONS: dict[str, dict[str, Any]] = {
    "accuracy-curves": {"smooth": 10},
    "accuracy-early-late": {"methods": ["fedadam", "fedasam", "fedprox"]},
    "accuracy-panels": {"methods": ["fedavg", "fedeve", "scaffold"], "smooth": 20},
    "accuracy-rounds": {"smooth": 10},
    "accuracy-setting": {"methods": ["fedavg", "fedeve", "fedavgm", "scaffold"]},
    "accuracy-table": {"methods": ["fedavg", "fedeve", "fedavgm", "scaffold"]},
    "regularisation-rounds": {"smooth": 10},
    "coherence-rounds": {"smooth": 10},
    "norms-rounds": {"smooth": 10},
    "numbers-rounds": {"reference": "fedavg", "smooth": 10},
    "planes-random": {"methods": ["fedavg", "ima", "fedlaw", "fedeve"]},
    "planes-settings": {"methods": ["fedavg", "ima", "fedlaw"]},
    "rounds-target": {"methods": ["fedavg", "fedadam", "fedasam", "fedprox"], "target": 0.82},
    "settings-rounds": {"smooth": 20},
    "variance-rounds": {"smooth": 10},
    "weights-learned": {"smooth": 10},
    "weights-round": {"method": "fedlaw"},
    "basin-rounds": {"points": 13, "rounds": 4},
    "bias-rounds": {"by": "local.lr_decay"},
    "decomposition-rounds": {"rounds": 3},
    "drift-curvature": {"rounds": 4},
    "eigen-rounds": {"rounds": 5, "split": "train"},
    "error-averaged": {"by": "local.lr_decay"},
    "gap-scaling": {"rounds": 3},
    "heterogeneity-rounds": {"smooth": 10},
    "lines-fma-ima": {"methods": ["fedavg", "ima", "fedlaw", "fedeve"]},
    "hessian-density": {"methods": ["fedavg", "ima", "fedlaw", "fedeve"]},
    "locality-rounds": {"by": "local.lr_decay"},
    "trace-rounds": {"products": 30, "rounds": 3},
}
"""Options of figures, and words of their looks: what they compare and smooth, and what saves time."""


def planned() -> dict[str, list[Experiment]]:
    """Experiments by group; "methods" holds every method with every seed."""
    groups = {"methods": [_read(f"method={name}", f"seed={seed}") for name in METHODS for seed in SEEDS]}
    members = {**EXTRAS, **FURTHER}
    return groups | {group: [_read(*settings) for settings in rows] for group, rows in members.items()}


@cache
def recorded(files: Path) -> dict[str, list[Path]]:
    """Files of recorded runs in a folder, by item."""
    campaign = campaigns.load(plans()["reproduction"])
    identified = judge.by_identity(files)
    return {item.name: [run.path for run in judge.runs_of([item], campaign, identified)] for item in campaign.items}


def _read(*settings: str) -> Experiment:
    return read("common-fmnist", *SETTING, *KEEP, *settings)
