"""Repetitions of an experiment: runs on the same clients that differ in their seed alone."""

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
"""Settings in which repetitions may differ: all but the seed change no model beyond rounding."""


def repetitions(run: Run, others: Sequence[str]) -> list[Run]:
    """The runs in the folder of `run` (or at paths) that repeat its experiment with other seeds on the same partition.

    Args:
        others: Paths, names of folders beside the run's, or the beginning of such a name.

    Raises:
        LookupError: If there is no such run.
        ValueError: If one is named twice, differs in more than its seed, or has other data.
    """
    repeated = [Run(find(run.folder.parent, text), run.context) for text in others]
    seeds = [member.experiment.seed for member in (run, *repeated)]
    if len(set(seeds)) < len(seeds):
        raise ValueError(f"the runs have seeds {seeds}; each seed may occur once.")
    for other in repeated:
        _require_same(run, other)
    return [Run(other.folder, other.context) for other in repeated]  # without the data that were compared


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
    mine, theirs = (_flat(member.experiment.resolved()) for member in (run, other))
    if changed := sorted(key for key in mine.keys() | theirs.keys() if mine.get(key) != theirs.get(key)):
        key = changed[0]
        raise ValueError(
            f"{other.name} has {key} = {theirs.get(key)}, {run.name} has {mine.get(key)}; runs must differ in their "
            "seed alone."
        )
    parts = zip(run.parts, other.parts, strict=True)
    inputs = (leaves(member.task.split("train").inputs) for member in (run, other))
    same = all(a.shape == b.shape and torch.equal(a, b) for a, b in zip(*inputs, strict=True))
    if not same or not all(np.array_equal(a, b) for a, b in parts):
        raise ValueError(
            f"the clients of {other.name} hold other samples than those of {run.name}; train both with --set "
            "clients.partition_seed=0, and without task.train_samples and clients.valid_ratio, which follow the seed."
        )


def _flat(settings: dict[str, Any], prefix: str = "") -> dict[str, Any]:
    """Settings by dotted key, without those that may differ."""
    flat: dict[str, Any] = {}
    for key, value in settings.items():
        if not prefix and key in IGNORED:
            continue
        flat |= _flat(value, f"{prefix}{key}.") if isinstance(value, dict) else {f"{prefix}{key}": value}
    return flat


def _short(ids: list[int]) -> str:
    return f"[{', '.join(map(str, ids[:6]))}{', ..' if len(ids) > 6 else ''}]"
