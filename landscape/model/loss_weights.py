"""Weights that samples may have in the mean that a loss returns: counted entries, classes, a column of the targets."""

from __future__ import annotations

import inspect
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from landscape.model.losses import IGNORED, Weigh

USUAL = (IGNORED, -1, 255, 0)
"""Labels that often stand for "ignore"."""


@dataclass(frozen=True)
class Counted:
    """Weights (n,): entries of each sample's target that are not `ignored`, or the sum of their classes' weights."""

    ignored: int | None = IGNORED
    classes: Tensor | None = None
    shift: int = 0

    def __call__(self, targets: Tensor) -> Tensor:
        """Weights of samples, shape (n,)."""
        targets = targets[:, self.shift :] if self.shift else targets
        counted = torch.ones_like(targets, dtype=torch.bool) if self.ignored is None else targets != self.ignored
        weights = counted.to(torch.int64)
        if self.classes is not None:
            classes = self.classes.to(targets.device)
            known = counted & (targets >= 0) & (targets < len(classes))
            weights = classes[targets.where(known, 0)].where(known, 0)
        return weights.flatten(1).sum(1) if weights.ndim > 1 else weights


@dataclass(frozen=True)
class Present:
    """Weights (n,): the entries of each sample's target that are numbers, or 1 where all are."""

    whole: bool = False

    def __call__(self, targets: Tensor) -> Tensor:
        """Weights of samples, shape (n,)."""
        there = ~targets.isnan().flatten(1) if targets.ndim > 1 else ~targets.isnan()[:, None]
        return there.all(1).long() if self.whole else there.sum(1)


@dataclass(frozen=True)
class Column:
    """Weights (n,): a column of targets (n, c)."""

    number: int

    def __call__(self, targets: Tensor) -> Tensor:
        """Weights of samples, shape (n,)."""
        return targets[:, self.number]


def candidate_weights(loss: Any, outputs: Tensor, targets: Tensor) -> list[tuple[Weigh | None, str]]:
    """Weights that a loss may use, with words for them; the first is none, the others most likely first."""
    candidates: list[tuple[Weigh | None, str]] = [(None, "")]
    vectors, numbers = _held_by(loss)
    if targets.is_floating_point():
        candidates += [
            (Present(), "mean of the targets that are not NaN"),
            (Present(True), "mean of samples without NaN"),
        ]
        few = targets.shape[1] if targets.ndim == 2 and targets.shape[1] <= 4 else 0
        columns = [number for number in range(few) if bool((targets[:, number] >= 0).all())]
        return candidates + [(Column(number), f"weights in column {number} of the targets") for number in columns]
    low, high = int(targets.min()), int(targets.max())
    classes = outputs.shape[1:] + outputs.shape[-1:]
    labels = [None, *dict.fromkeys([*numbers, *USUAL, low, high])]
    for vector in [None, *(vector for vector in vectors if len(vector) in classes)]:
        for ignored in labels:
            for shift in (0, 1) if targets.ndim > 1 else (0,):
                words = ["mean of counted labels" if vector is None else "mean by class weights"]
                words += [] if ignored is None else [f"label {ignored} not counted"]
                candidates.append((Counted(ignored, vector, shift), ", ".join(words)))
    return candidates


def special_rows(targets: Tensor, most: int = 64) -> list[int]:
    """Rows of targets that differ from others: with most and fewest missing or usual ignored entries; of each class."""
    if targets.ndim == 1 and not targets.is_floating_point():
        values, inverse = targets.unique(return_inverse=True)
        firsts = torch.full((len(values),), len(targets), device=targets.device).scatter_reduce(
            0, inverse, torch.arange(len(targets), device=targets.device), "amin"
        )
        return firsts[:most].tolist()
    flat = targets.flatten(1) if targets.ndim > 1 else targets[:, None]
    marks = (
        [flat.isnan()] if targets.is_floating_point() else [flat == label for label in (*USUAL, flat.min(), flat.max())]
    )
    rows: list[int] = []
    for counts in (mark.sum(1) for mark in marks):
        rows += [int(counts.argmax()), int(counts.argmin()), *counts.nonzero().flatten()[:4].tolist()]
    return list(dict.fromkeys(rows))


def _held_by(loss: Any, depth: int = 2) -> tuple[list[Tensor], list[int]]:
    """Vectors and whole numbers that a loss holds: attributes, arguments of a partial, variables of a closure."""
    values_held: list[Any] = []
    if isinstance(loss, nn.Module):
        values_held = [
            *loss.buffers(),
            *loss.parameters(),
            *(value for name, value in vars(loss).items() if name[0] != "_"),
        ]
        values_held += list(loss.children())
    elif isinstance(loss, partial):
        values_held = [loss.func, *loss.args, *loss.keywords.values()]
    elif inspect.isfunction(loss):
        scope = inspect.getclosurevars(loss)
        values_held = [*scope.nonlocals.values(), *scope.globals.values(), *loss.__code__.co_consts]
        values_held += [*(loss.__defaults__ or ()), *(loss.__kwdefaults__ or {}).values()]
    elif inspect.ismethod(loss) or hasattr(loss, "__dict__"):
        values_held = list(vars(getattr(loss, "__self__", loss)).values())
    vectors = [
        value.detach() for value in values_held if isinstance(value, Tensor) and value.ndim == 1 and len(value) > 1
    ]
    numbers = [value for value in values_held if isinstance(value, int) and not isinstance(value, bool)]
    for value in values_held if depth else ():
        if isinstance(value, nn.Module | partial) or inspect.isfunction(value):
            further: tuple[list[Tensor], list[int]] = _held_by(value, depth - 1)
            vectors, numbers = vectors + further[0], numbers + further[1]
    return vectors[:8], list(dict.fromkeys(numbers))[:12]
