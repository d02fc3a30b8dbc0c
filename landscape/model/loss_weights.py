"""Weights that samples may have in the mean that a loss returns: counted entries, classes, a part of the targets."""

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product
from typing import Any

import torch
from torch import Tensor

from landscape.model.held_values import held_values
from landscape.model.loss_failures import FAILS
from landscape.model.losses import IGNORED, SampleLoss, Weigh, loss_name

USUAL = (IGNORED, -1, 255, 0)
"""Labels that often stand for "ignore"."""

FEW, MOST, MANY = 4, 1000, 2**20
"""Samples that class weights are fitted on; most classes that have fitted weights; entries whose mode is taken."""


@dataclass(frozen=True)
class Counted:
    """Weights (n,): entries of each sample's target that are not `ignored` (or not NaN), or their classes' weights.

    Args:
        ignored: Value of entries that do not count.
        classes: Weights (C,) of the classes 0, 1, ..
        shift: Entries at the beginning of each sample that do not count.
        by_sample: Samples count by 1, those with an ignored entry not.
    """

    ignored: float | None = IGNORED
    classes: Tensor | None = None
    shift: int = 0
    by_sample: bool = False

    def __call__(self, targets: Tensor) -> Tensor:
        """Weights of samples, shape (n,)."""
        targets = targets[:, self.shift :] if self.shift else targets
        counted = torch.ones_like(targets, dtype=torch.bool)
        if self.ignored is not None:
            counted = ~targets.isnan() if math.isnan(self.ignored) else torch.ne(targets, self.ignored)
        if self.by_sample:
            return counted.flatten(1).all(1).long() if counted.ndim > 1 else counted.long()
        weights = counted.to(torch.int64)
        if self.classes is not None:
            classes, labels = self.classes.to(targets.device), targets.long()
            known = counted & (labels >= 0) & (labels < len(classes))
            weights = classes[labels.where(known, 0)].where(known, 0)
        return weights.flatten(1).sum(1) if weights.ndim > 1 else weights


def ignored_label(loss: Any) -> float:
    """The label that does not count in a loss of classes."""
    weigh = loss.weigh if isinstance(loss, SampleLoss) else None
    return weigh.ignored if isinstance(weigh, Counted) and weigh.ignored is not None else IGNORED


@dataclass(frozen=True)
class SummedSpan:
    """Weights (n,): the sums of a part of each sample's target, of some places along a dimension."""

    dim: int
    start: int
    stop: int

    def __call__(self, targets: Tensor) -> Tensor:
        """Weights of samples, shape (n,)."""
        return targets.narrow(self.dim, self.start, self.stop - self.start).flatten(1).sum(1)


def candidate_weights(loss: Any, outputs: Tensor, targets: Tensor) -> Iterator[tuple[Weigh | None, str]]:
    """Weights that a loss may use, with words for them; the first is none, the others most likely first."""
    yield None, ""
    vectors, numbers = vectors_and_numbers(loss)
    real, sizes = targets.is_floating_point(), outputs.shape[1:] + outputs.shape[-1:]
    labels = list(dict.fromkeys([*numbers, *USUAL, *_marks(targets)]))
    if real:
        yield Counted(torch.nan), "mean of the targets that are not NaN"
        yield Counted(torch.nan, by_sample=True), "mean of samples without NaN"
    yield from _span_weights(targets)
    for sentinel in labels if real else ():
        yield Counted(sentinel), f"mean of the targets that are not {sentinel:g}"
        yield Counted(sentinel, by_sample=True), f"mean of samples without {sentinel:g}"
    shifts = (0, 1) if targets.ndim > 1 and targets.shape[1] > 1 else (0,)
    for vector in [None, *(vector for vector in vectors if len(vector) in sizes)] if not real else ():
        for ignored, shift in product([None, *labels], shifts):
            words = ["mean of counted labels" if vector is None else "mean by class weights"]
            words += [] if ignored is None else [f"label {ignored} not counted"]
            yield Counted(ignored, vector, shift), ", ".join(words)
    entries = targets[~targets.isnan()] if real else targets
    if not len(entries) or (real and bool((entries != entries.round()).any())):
        return
    for classes in {int(entries.max().clamp(0, MOST)) + 1} if real else dict.fromkeys([*sizes, 2]):
        fitted = _class_weights(loss, outputs, targets, classes) if classes <= MOST else None
        for shift in shifts if fitted is not None else ():
            yield Counted(None, fitted, shift), "mean by class weights"


def special_rows(targets: Tensor, most: int = 64) -> list[int]:
    """Rows of targets that differ from others: with most and fewest missing or usual ignored entries; of each class."""
    if targets.ndim == 1 and not targets.is_floating_point():
        values, inverse = targets.unique(return_inverse=True)
        firsts = torch.full((len(values),), len(targets), device=targets.device).scatter_reduce(
            0, inverse, torch.arange(len(targets), device=targets.device), "amin"
        )
        return firsts[:most].tolist()
    flat = targets.flatten(1) if targets.ndim > 1 else targets[:, None]
    usual = () if targets.is_floating_point() else USUAL
    rows: list[int] = []
    for mark in (flat.isnan(), *(flat == label for label in dict.fromkeys([*usual, *_marks(targets)]))):
        counts = mark.sum(1)
        rows += [int(counts.argmax()), int(counts.argmin()), *counts.nonzero().flatten()[:4].tolist()]
    return list(dict.fromkeys(rows))


def _marks(targets: Tensor) -> list[float]:
    """The least, the greatest and the most frequent value of targets, the last of some of them."""
    entries = targets.flatten()
    entries = (entries[~entries.isnan()] if targets.is_floating_point() else entries.long()).cpu()
    if not len(entries):
        return []
    return [entries.min().item(), entries.max().item(), entries[:: 1 + len(entries) // MANY].mode().values.item()]


def _span_weights(targets: Tensor) -> Iterator[tuple[Weigh, str]]:
    """Parts of targets that may be masks or weights: single places along a dimension, and halves; none is below 0."""
    for dim, size in enumerate(targets.shape[1:], 1):
        halves = [(0, size // 2), (size // 2, size)] if size % 2 == 0 else []
        singles = [(index, index + 1) for index in range(size) if size <= FEW or index in (0, size - 1)]
        for start, stop in dict.fromkeys([*singles, *halves]):
            if bool((targets.narrow(dim, start, stop - start) >= 0).all()):
                text = f"{start}:{stop}" if stop - start > 1 else str(start)
                yield SummedSpan(dim, start, stop), f"weights in targets[{':, ' * dim}{text}]"


def _class_weights(loss: Any, outputs: Tensor, targets: Tensor, classes: int) -> Tensor | None:
    """Weights (C,) of classes, up to a factor, by the losses a and c of a sample of the first class and of another.

    The loss of both is (a + w c) / (1 + w). Of the samples tried, that one is taken whose loss differs most from a.
    """

    outputs, targets = outputs.cpu(), targets.cpu()  # a label of no class would end a program on a GPU
    for dtype in (torch.float64, outputs.dtype):

        def value(*rows: tuple[int, int], dtype: torch.dtype = dtype) -> Tensor:
            stated = targets[: len(rows)].to(dtype if targets.is_floating_point() else targets.dtype, copy=True)
            for index, (_, label) in enumerate(rows):
                stated[index] = label
            return loss(outputs[[row for row, _ in rows]].to(dtype), stated).reshape(()).double()

        try:
            alone = [[value((row, label)) for row in range(min(FEW, len(outputs)))] for label in range(classes)]
            losses = torch.tensor(alone)
            first = int(losses[:, 0].isfinite().long().argmax())
            rows = (losses - losses[first, 0]).abs().nan_to_num(-1).argmax(1).tolist()
            both = torch.stack([value((0, first), (row, label)) for label, row in enumerate(rows)])
        except FAILS:
            continue
        other = losses[torch.arange(classes), rows]
        weights = ((both - losses[first, 0]) / (other - both)).nan_to_num(0)
        weights[first] = 1
        return weights if bool((weights >= 0).all()) else None
    return None


def vectors_and_numbers(loss: Any) -> tuple[list[Tensor], list[float]]:
    """Vectors and numbers that a loss holds: attributes, arguments of a partial, variables of a closure, constants."""
    values = list(held_values(loss))
    vectors = [value.detach() for value in values if isinstance(value, Tensor) and value.ndim == 1 and len(value) > 1]
    numbers = [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]
    return vectors[:8], list(dict.fromkeys(numbers))[:12]


def require_unweighted(loss: Any, weigh: Weigh) -> None:
    """Refuse weights beside values of samples that the loss has weighted itself."""
    loss_weight, classes = getattr(getattr(loss, "loss", loss), "weight", None), getattr(weigh, "classes", None)
    same = classes is not None and any(torch.equal(t.to(classes), classes) for t in vectors_and_numbers(loss)[0])
    if loss_weight is not None or same:
        what = f"weight= and the weights that {loss_name(loss)} has itself would count the weights twice"
        raise ValueError(f"{what}; give the loss with reduction='mean' and no weight=, or take its weights away.")
