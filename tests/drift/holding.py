"""Runs made by hand whose clients hold given labels."""

from __future__ import annotations

from dataclasses import dataclass, field
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import numpy as np

from tests.drift import hand


@dataclass(frozen=True)
class LabelRun(hand.HandRun):
    """A run by hand with `classes` classes, in which client k holds the labels held[k]."""

    held: list[list[int]] = field(default_factory=list)
    classes: int = 3
    moved: dict[int, list[np.ndarray]] = field(default_factory=dict)

    @property
    def labels(self) -> np.ndarray:
        """All labels, client after client."""
        return np.concatenate([np.array(labels, dtype=np.int64) for labels in self.held])

    @property
    def parts(self) -> list[np.ndarray]:
        """Sample numbers of each client."""
        return _parts(tuple(map(len, self.held)))

    def parts_in(self, index: int) -> list[np.ndarray]:
        """Those of a round."""
        return self.moved.get(index, self.parts)

    @property
    def dataset(self) -> Any:
        """Names of the classes, and sizes of the clients."""
        sizes = np.array([len(labels) for labels in self.held])
        names = tuple("abcdefgh"[: self.classes])
        return SimpleNamespace(classes=names, class_names=list(names), sizes=lambda: sizes)


def _parts(sizes: tuple[int, ...]) -> list[np.ndarray]:
    edges = np.cumsum([0, *sizes])
    return [np.arange(low, high) for low, high in pairwise(edges.tolist())]


def records(*groups: tuple[list[int], list[int], list[float] | None], d: int = 4) -> list[Any]:
    """Rounds with the cohorts (ids, sizes, weights used or None for those by size) and random updates."""
    found = []
    for index, (ids, sizes, weights) in enumerate(groups):
        start = hand.random(d, seed=index + 50)
        group = hand.cohort(
            start + hand.random(len(ids), d, seed=index), start=start, sizes=sizes, ids=ids, index=index
        )
        used = None if weights is None else hand.vector(*weights)
        found.append(hand.record(group, group.weighted_mean, weights=used))
    return found
