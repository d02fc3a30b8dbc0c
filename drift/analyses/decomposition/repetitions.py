"""Runs of one setting that differ in their seed alone: repetitions of an experiment on the same clients."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch

from drift.runs.run import Run
from drift.simulation.run_index import find
from drift.store.round_record import Round
from landscape.model.samples import leaves

IGNORED = ("seed", "keep", "evaluate_every", "threads")
"""Settings in which repetitions may differ: they change no model beyond rounding but by the seed."""


def repetitions(run: Run, others: Sequence[str]) -> list[Run]:
    """The runs beside `run` (or at paths) that repeat its experiment with other seeds on the same partition.

    Args:
        others: Paths, names of folders beside the run's, or the beginning of such a name.

    Raises:
        LookupError: If there is no such run.
        ValueError: If one is named twice, differs in more than its seed, or has other data.
    """
    found = [Run(find(run.folder.parent, text), run.context) for text in others]
    seeds = [one.experiment.seed for one in (run, *found)]
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"the runs have seeds {seeds}; each seed may occur once.")
    for one in found:
        _require_same(run, one)
    return [Run(one.folder, one.context) for one in found]  # without the data that were compared


def require_same_cohort(runs: Sequence[Run], records: Sequence[Round]) -> None:
    """Refuse a round in which the runs trained other clients.

    Raises:
        ValueError: If cohorts differ.
    """
    first = records[0].ids.tolist()
    for run, record in zip(runs, records, strict=True):
        if (ids := record.ids.tolist()) != first:
            raise ValueError(
                f"round {record.index} has clients {_short(first)} in {runs[0].name} and {_short(ids)} in {run.name}: "
                "cohorts follow the seed. Repeat the run with every client in every round (clients.per_round = "
                f"{run.experiment.clients.number}), or use the estimator local."
            )


def _require_same(run: Run, other: Run) -> None:
    one, two = (_flat(each.experiment.resolved()) for each in (run, other))
    if changed := sorted(key for key in one.keys() | two.keys() if one.get(key) != two.get(key)):
        key = changed[0]
        raise ValueError(
            f"{other.name} has {key} = {two.get(key)}, {run.name} has {one.get(key)}; runs must differ in their seed "
            "alone."
        )
    parts = zip(run.parts, other.parts, strict=True)
    mine, theirs = (leaves(each.task.split("train").inputs) for each in (run, other))
    same = all(a.shape == b.shape and torch.equal(a, b) for a, b in zip(mine, theirs, strict=True))
    if not same or not all(np.array_equal(a, b) for a, b in parts):
        raise ValueError(
            f"the clients of {other.name} hold other samples than those of {run.name}; train both with --set "
            "clients.partition_seed=0, and without task.train_samples and clients.valid_ratio, which follow the seed."
        )


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings by dotted key, without those that may differ."""
    found: dict[str, Any] = {}
    for key, value in settings.items():
        if not prefix and key in IGNORED:
            continue
        found |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return found


def _short(ids: list[int]) -> str:
    return f"[{', '.join(map(str, ids[:6]))}{', ..' if len(ids) > 6 else ''}]"
