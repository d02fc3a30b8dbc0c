"""Limits of the early warning, fitted to statistics of healthy runs, for `benchmarks.early_warning`."""

from __future__ import annotations

import hashlib
import json
from bisect import bisect
from collections.abc import Sequence
from math import inf
from typing import Any

import numpy as np

from drift.record.early_warning import DETECTORS

LEVEL = 0.05
"""Share of healthy runs of a new setting in which a family of detectors may give an alarm."""


def fitted(rows: Sequence[dict[str, Any]], family: str) -> dict[str, float]:
    """Limits by detector, with which the family has an alarm in LEVEL of the runs of a new setting.

    All settings weigh the same. The limit of a detector is exceeded in a share `tail` of the runs that have it; `tail`
    is the largest, equal for all detectors, with (K J + 1) / (K + 1) <= LEVEL, where J is the share of the K settings'
    runs in which any limit is exceeded: of all runs, and of those with all detectors. The limit of `variances` is 0.
    """
    names = [name for name in DETECTORS[family] if name != "variances"]
    rows = [row for row in rows if "peaks" in row]
    columns = {name: _column(rows, name) for name in names}
    groups = [rows, [row for row in rows if row["gram"]]] if "client" in names else [rows]
    tails = np.linspace(0, LEVEL, 51)

    def limits_at(place: int) -> dict[str, float]:
        return {name: _quantile(*columns[name], tails[place]) for name in names}

    def too_many(place: int) -> bool:
        return max(_bound(group, limits_at(place)) for group in groups) > LEVEL

    limits = limits_at(max(0, bisect(range(len(tails)), False, key=too_many) - 1))
    fixed = {"variances": 0.0} if "variances" in DETECTORS[family] else {}
    return {name: round(limit, 4) for name, limit in limits.items()} | fixed


def _bound(rows: Sequence[dict[str, Any]], limits: dict[str, float]) -> float:
    """(K J + 1) / (K + 1) of the K settings of some runs."""
    settings = sorted({row["setting"] for row in rows})
    joint = sum(_share([row for row in rows if row["setting"] == one], limits) for one in settings)
    return (joint + 1) / (len(settings) + 1)


def _column(rows: Sequence[dict[str, Any]], name: str) -> tuple[np.ndarray, np.ndarray]:
    """Values of a detector, ascending, with weights by which all settings weigh the same."""
    own = [row for row in rows if name in row["peaks"]]
    number = {one: sum(row["setting"] == one for row in own) for one in {row["setting"] for row in own}}
    values = np.array([row["peaks"][name] for row in own])
    weights = np.array([1 / number[row["setting"]] for row in own]) / len(number)
    order = np.argsort(values, kind="stable")
    return values[order], weights[order]


def _quantile(values: np.ndarray, weights: np.ndarray, tail: float) -> float:
    """The smallest value that at most a weight `tail` of the others exceeds."""
    above = 1 - np.cumsum(weights)
    return float(values[np.argmax(above <= tail + 1e-9)])


def _share(rows: Sequence[dict[str, Any]], limits: dict[str, float]) -> float:
    return float(np.mean([exceeds(row["peaks"], limits) for row in rows]))


def exceeds(values: dict[str, float], limits: dict[str, float]) -> bool:
    """Whether any statistic is above its limit."""
    return any(values.get(name, -inf) > limit for name, limit in limits.items())


def first_alarm(rows: Sequence[dict[str, float | None]], limits: dict[str, float]) -> tuple[int, str] | None:
    """Round and detector of the first alarm of a run."""
    for index, row in enumerate(rows):
        for name, limit in limits.items():
            if (value := row.get(name)) is not None and value > limit:
                return index, name
    return None


def limits_of(content: dict[str, Any]) -> dict[str, Any]:
    """The file of limits, from the stored numbers."""
    rows = [row for row in content["healthy"] if "peaks" in row]
    text = json.dumps(rows, sort_keys=True)
    return {
        "level": LEVEL,
        "limits": {family: fitted(rows, family) for family in DETECTORS},
        "runs": len(rows),
        "settings": len({row["setting"] for row in rows}),
        "digest": hashlib.sha256(text.encode()).hexdigest()[:16],
        "source": "docs/results/early_warning.json",
    }
