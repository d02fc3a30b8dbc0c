"""What the figures of the four papers are drawn from here: recorded runs, those of the gallery, and short further ones.

The further runs have the setting of `_ext/plan.py`, and 40 rounds or fewer; seed 0. They show the form of a figure on
one's own machine, and no claim. Figures of labels alone take the paper's partition; how long they train is no matter.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from itertools import product
from typing import Any

from _ext.plan import KEEP, SETTING, planned
from drift.config.experiment import Experiment
from drift.config.load import read


@dataclass(frozen=True)
class Source:
    """What an item is drawn from.

    Args:
        groups: Of runs, of `_ext/plan.py` or GROUPS.
        recorded: Items of `fedscape reproduce`, whose runs are in docs/results/data.
        stored: Name of stored numbers of a picture of `recorded` (`_ext/showcase.py`).
        options: Of the figure, and words of its look.
        one_seed: Whether only runs of seed 0 are taken.
        lacks: Why there is no picture, or what its form lacks that no setting tells.
    """

    groups: tuple[str, ...] = ()
    recorded: tuple[str, ...] = ()
    stored: str = ""
    options: dict[str, Any] = field(default_factory=dict)
    one_seed: bool = False
    lacks: str = ""


def _crossed(*fixed: str, **lists: Sequence[Any]) -> tuple[tuple[str, ...], ...]:
    """Settings of every combination; "__" stands for the dot, and a value that is a tuple is several settings."""
    names = [name.replace("__", ".") for name in lists]
    return tuple(
        (
            *fixed,
            *(
                text
                for name, value in zip(names, values, strict=True)
                for text in (value if isinstance(value, tuple) else (f"{name}={value}",))
            ),
        )
        for values in product(*lists.values())
    )


_SHARDS = ("rounds=40", *SETTING[1:])
_DIRICHLET = ("rounds=40", "clients.partition=dirichlet")
_HYBRID = ('clients.partition={name="hybrid_dirichlet"}', "clients.number=20", "clients.per_round=20", "rounds=40")
_IMA = (
    ("method=fedavg",),
    ("method=fedadam",),
    ("method=ima",),
    ("method=ima", "method.base=fedadam"),
)
_LAW = (("method=fedavg",), ("method=feddf",), ("method=fedlaw",), ("method=fedlaw", "method.variant=swa"))
_GWS = (("method=fedavg",), ("method=fedlaw", "method.variant=gws"))
_ALL = (*_LAW, ("method=fedprox",), ("method=feddyn",), ("method=fedbe",), ("method=server_ft",))
_BASES = ((), ("method.base=fedfa",))
_STARTS, _DRIFTS = (0.375, 0.5, 0.625, 0.75), ("period", "client", "both")

GROUPS: dict[str, tuple[tuple[str, ...], ...]] = {
    "ima-6a": _crossed(*_DIRICHLET, method=_IMA, clients__concentration=(0.1, 0.2, 0.4, 0.8)),
    "ima-6b": _crossed(*_DIRICHLET, "clients.concentration=0.1", method=_IMA, clients__per_round=(5, 10, 20)),
    "ima-6c": _crossed(*_DIRICHLET, "clients.concentration=0.1", method=_IMA, local__epochs=(1, 3, 5)),
    "ima-7a": (
        *_crossed(*_SHARDS, method=(("method=fedavg",), ("method=fedfa",))),
        *_crossed(*_SHARDS, "method=ima", base=_BASES, method__start=_STARTS),
    ),
    "ima-7b": _crossed(*_SHARDS, "method=ima", base=_BASES, method__start=(0.5, 0.75), method__window=(3, 5, 9)),
    "silo": (("method=fedavg", *SETTING, *KEEP, "clients.number=10", "clients.per_round=10"),),
    "data": (
        ("method=fedavg", *_SHARDS, *KEEP, "task.dataset=mnist"),
        ("method=fedavg", *_SHARDS, *KEEP, "task.dataset=mnist", "task.model=lenet5"),
        ("method=fedavg", *_DIRICHLET, *KEEP, "clients.concentration=0.1", "task.dataset=cifar10"),
    ),
    "gws-iid": _crossed(
        'clients.partition={name="dirichlet", concentration=100.0}',
        "rounds=40",
        method=_GWS,
        local__epochs=(1, 2, 3, 5),
    ),
    "gws-concentrations": _crossed(*_DIRICHLET, method=_GWS, clients__concentration=(0.1, 1.0, 100.0)),
    "gws-seeds": _crossed(
        *_DIRICHLET, "method=fedlaw", "method.variant=gws", clients__concentration=(0.1, 1.0, 100.0), seed=(1, 2, 3, 4)
    ),
    "hybrid-weights": tuple(
        (*_HYBRID, *method)
        for method in (
            ("method=fedavg",),
            ("method=fedlaw", "method.variant=attentive"),
            ("method=fedlaw", "method.variant=early_stopped", "method.stop_round=10"),
        )
    ),
    "partial": tuple(
        (*_DIRICHLET, "clients.concentration=1.0", "clients.per_round=5", *method)
        for method in (
            ("method=fedavg",),
            ("method=fedlaw", "method.variant=attentive"),
            ("method=fedlaw", "method.variant=swa"),
        )
    ),
    "fedlaw-8a": _crossed(*_DIRICHLET, "clients.concentration=1.0", method=_LAW, clients__per_round=(5, 10, 20)),
    "fedlaw-8b": _crossed(*_DIRICHLET, "clients.concentration=0.1", method=_LAW, proxy__per_class=(1, 5, 20)),
    "fedlaw-15": _crossed(
        "rounds=20",
        "clients.partition=dirichlet",
        method=_ALL,
        clients__concentration=(100.0, 0.1),
        task=(("task.dataset=fashion_mnist",), ("task.dataset=mnist", "task.model=lenet5")),
    ),
    "lss-5a": _crossed("rounds=1", "method=lss", method__affinity=(0.0, 0.001, 0.01, 0.1)),
    "lss-5b": _crossed("rounds=1", "method=lss", method__diversity_weight=(0.0, 0.001, 0.01, 0.1)),
    "prox": (("method=fedprox", *SETTING, *KEEP),),
    "fedlaw-13": (("method=fedavg", "rounds=2", "local.steps=1"),),
    "fedeve-3a": _crossed("method=fedavg", "rounds=20", clients__concentration=(1.0, 0.1, 0.01)),
    "fedeve-5": _crossed("method=fedavg", "rounds=20", clients__concentration=(10.0, 0.5, 0.05)),
    "fedeve-3b": (
        ("clients.setting=iid", "rounds=60"),
        *_crossed("rounds=60", clients__setting=_DRIFTS, clients__concentration=(0.05, 1.0)),
    ),
    "fedeve-6": (
        *_crossed("rounds=60", "clients.setting=iid", local__epochs=(1, 3)),
        *_crossed("rounds=60", clients__setting=_DRIFTS, clients__concentration=(0.05, 0.5), local__epochs=(1, 3)),
    ),
    "domains": _crossed("rounds=12", method=(("method=fedavg",), ("method=lss",), ("method=fedprox",))),
}
"""Settings of short runs by group; the presets of those of PRESETS, else common-fmnist."""

PRESETS = {
    "fedlaw-13": "fedlaw-cifar10-hybrid",
    "fedeve-3a": "fedeve-mnist-dir001",
    "fedeve-5": "fedeve-mnist-dir001",
    "fedeve-3b": "fedeve-femnist-drift-quick",
    "fedeve-6": "fedeve-femnist-drift-quick",
    "domains": "lss-digit5-domains-quick",
}


def experiments(source: Source) -> list[Experiment]:
    """Experiments of the groups of an item, each once."""
    known = planned()
    rows = [one for group in source.groups for one in known.get(group) or _group(group)]
    return list({one.slug: one for one in rows if not source.one_seed or one.seed == 0}.values())


def _group(name: str) -> list[Experiment]:
    return [read(PRESETS.get(name, "common-fmnist"), *settings) for settings in GROUPS[name]]
