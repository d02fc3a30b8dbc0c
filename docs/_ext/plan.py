"""Runs and options that every picture of README and docs is drawn from: the demo's setting, at length.

`fedscape demo` (figures/commands/_demo_steps.py) trains a few of these runs for fewer rounds.
"""

from __future__ import annotations

from typing import Any

from drift.config.experiment import Experiment
from drift.config.load import read

METHODS = ("fedavg", "ima", "fedlaw", "fedeve", "lss")
SEEDS = (8, 9)


def _dirichlet(concentration: float) -> str:
    return f'clients.partition={{name="dirichlet", concentration={concentration}}}'


_HYBRID = ('clients.partition={name="hybrid_dirichlet"}', "clients.per_round=10")

EXTRAS: dict[str, tuple[tuple[str, ...], ...]] = {
    "gws": tuple(("method=fedlaw", "method.variant=gws", f"seed={seed}") for seed in SEEDS),
    "hybrid": (("method=fedavg", *_HYBRID), ("method=fedlaw", "method.variant=gws", *_HYBRID)),
    "decay": tuple(("method=fedavg", f"local.lr_decay={value}") for value in (1.0, 0.95)),
    "concentrations": tuple(("method=fedeve", _dirichlet(value)) for value in (0.1, 1.0, 10.0)),
    "epochs": tuple(("method=fedeve", _dirichlet(value), "local.epochs=1") for value in (0.1, 1.0, 10.0)),
    "settings": tuple(
        ("method=fedavg", f'clients.partition={{name="drift", setting="{setting}", concentration=0.05}}')
        for setting in ("iid", "period", "client", "both")
    ),
    "normalised": (("method=fedavg", "task.model=resnet8", "rounds=6", "local.epochs=1"),),
}
"""Further runs that some figures need, by group: settings of each; the seed is the first one unless it is set."""

_SHORT = ("seed=8", "rounds=20")
_THREE = ("clients.number=3", "clients.per_round=3", *_SHORT)

FURTHER: dict[str, tuple[tuple[str, ...], ...]] = {
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
    "epochs-gws": tuple(
        (*method, f"local.epochs={epochs}", 'clients.partition={name="dirichlet", concentration=1.0}', *_SHORT)
        for method in (("method=fedavg",), ("method=fedlaw", "method.variant=gws"))
        for epochs in (1, 3)
    ),
}
"""Short runs in other settings, by group, for the figures that need those: settings of each."""

GROUPS: dict[str, tuple[str, ...]] = {
    "accuracies-models": ("pools",),
    "accuracy-setting": ("concentrations",),
    "regularisation-histogram": ("methods", "gws"),
    "regularisation-rounds": ("methods", "gws"),
    "bias-rounds": ("decay",),
    "coherence-groups": ("hybrid",),
    "coherence-rounds": ("hybrid",),
    "error-averaged": ("decay",),
    "gain-alpha": ("concentrations", "epochs"),
    "gws-setting": ("epochs-gws",),
    "labels-scatter": ("concentrations",),
    "locality-rounds": ("decay",),
    "planes-statistics": ("normalised",),
    "settings-rounds": ("settings",),
    "sharpness-models": ("pools",),
    "shrink-rounds": ("shrink",),
    "simplex-optima": ("hybrid",),
    "simplex-settings": ("three",),
    "weights-corrupted": ("corrupted",),
    "weights-learned": ("methods", "gws"),
}
"""Groups of runs per figure; "methods" (all methods and seeds) for all others."""

OPTIONS: dict[str, dict[str, Any]] = {
    "basin-rounds": {"points": 13, "rounds": 4},
    "bias-rounds": {"by": "local.lr_decay"},
    "decomposition-rounds": {"rounds": 3},
    "eigen-rounds": {"rounds": 5, "split": "train"},
    "error-averaged": {"by": "local.lr_decay"},
    "gap-scaling": {"rounds": 3},
    "locality-rounds": {"by": "local.lr_decay"},
    "trace-rounds": {"products": 30, "rounds": 3},
}
"""Options that reduce the cost of the most expensive figures, and the settings that figures compare."""


def planned() -> dict[str, list[Experiment]]:
    """Experiments by group; "methods" holds every method with every seed."""
    groups = {"methods": [read("demo", method=name, seed=seed) for name in METHODS for seed in SEEDS]}
    groups |= {
        group: [read("demo", f"seed={SEEDS[0]}", *settings) for settings in members]
        for group, members in EXTRAS.items()
    }
    return groups | {group: [read("demo", *settings) for settings in members] for group, members in FURTHER.items()}
