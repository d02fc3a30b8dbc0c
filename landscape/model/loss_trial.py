"""Trying a loss: on batches of many sizes, twice, over all targets, so that a wrong idea of its mean is noticed."""

import math
import warnings
from collections.abc import Callable, Iterator
from copy import deepcopy
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor, nn

from landscape.model.loss_failures import FAILS, advice, first_line
from landscape.model.loss_weights import special_rows
from landscape.model.losses import PerSample, SampleLoss, batch_mean, loss_name, sample_weights, total_weight

BATCHES = 24
"""Random batches of 2 to 9 samples that a loss is tried on, beside one for each special target."""

VALUES = 2**23
"""Most outputs in one batch of a trial."""

PASSES = 32
"""Most batches of that size; a random choice where all targets need more."""

Loss = Callable[[Any, Tensor], Any]


@dataclass(frozen=True)
class Trial:
    """Outputs (k, ...) of k spread samples, and targets (n, ...) of all splits, the first k of which belong to them."""

    outputs: Tensor
    targets: Tensor

    @property
    def shapes(self) -> str:
        """Shapes of outputs and targets, for messages."""
        return f"outputs {tuple(self.outputs.shape)}, targets {(len(self.outputs), *self.targets.shape[1:])}"

    @property
    def first(self) -> tuple[Tensor, Tensor]:
        """The outputs and their own targets."""
        return self.rows(torch.arange(len(self.outputs)))

    def rows(self, rows: Tensor) -> tuple[Tensor, Tensor]:
        """Targets by row, with the outputs of the first samples in turn."""
        k = len(self.outputs)
        return self.outputs[rows.to(self.outputs.device) % k], self.targets[rows.to(self.targets.device)].to(
            self.outputs.device
        )

    def called(self, loss: Loss) -> Any:
        """The loss of the first samples.

        Raises:
            ValueError: If it fails, is random, or compares every output with every target.
        """
        outputs, targets = self.first
        with warnings.catch_warnings(record=True) as notes:
            warnings.simplefilter("always")
            try:
                value, again = loss(outputs, targets), loss(outputs, targets)
            except FAILS as reason:
                what = f"fails on {self.shapes}: {first_line(reason)}{advice(outputs, targets, reason)}"
                raise ValueError(f"the loss {loss_name(loss)} {what}") from reason
            same = all(map(_same, _tensors(value), _tensors(again)))
            broadcast = any("Using a target size" in str(note.message) for note in notes) or self._broadcasts(loss)
        if not same:
            raise ValueError(f"the loss {loss_name(loss)} is random: two calls on the same outputs and targets differ.")
        if broadcast:
            give = (
                "targets[:, None]" if outputs.shape[1:] == (*targets.shape[1:], 1) else "targets of the outputs' shape"
            )
            raise ValueError(
                f"the loss {loss_name(loss)} compares every output with every target ({self.shapes}); give {give}."
            )
        return value

    def agrees(self, form: PerSample, number: Loss | None, *, small: bool = True) -> bool:
        """Whether numerators and weights of samples give the loss of every batch; in float64 where the loss can.

        Args:
            number: The user's own loss () of a batch; None: `found` gives values, which must not depend on the batch.
            small: Also try small batches; not needed where values are known not to depend on the batch.
        """
        precise = Trial(self.outputs.to(_wide(self.outputs)), self.targets.to(_wide(self.targets)))
        for trial, convert in ((precise, in_float64), (self, lambda loss: loss)):
            try:
                return trial._agrees(convert(form), None if number is None else convert(number), small)
            except FAILS:  # it computes in float32 only, or is no loss of fewer samples
                continue
        return False

    def _agrees(self, form: PerSample, number: Loss | None, small: bool) -> bool:
        compared = number is None
        for batch in map(self.rows, self._small_batches() if small else ()):
            values = torch.cat([form(*pair) for pair in _cut(*batch)])
            if number is None:
                if not _close(form(*batch), values, values):
                    return False
                continue
            weights = sample_weights(form, batch[1])
            total = total_weight(form, batch[1])
            if weights is not None and bool((weights < 0).any()):
                return False
            if total > 0:
                value = number(*batch)
                if not _close(value, values.sum() / total, values / total):
                    return False
                compared |= not math.isnan(value)
        return compared and all(_adds_up(form, number, *self.rows(rows)) for rows in self.large_batches())

    def _small_batches(self) -> Iterator[Tensor]:
        """Rows of targets: the first, then batches that mix special targets with others."""
        draw, special = torch.Generator().manual_seed(0), special_rows(self.targets)
        yield torch.arange(len(self.outputs))
        for index in range(BATCHES + len(special)):
            rows = torch.randint(len(self.targets), (2 + index % 8,), generator=draw)
            if index < len(special):
                rows[index % 2] = special[index]
            yield rows

    def large_batches(self) -> Iterator[Tensor]:
        """Rows of all targets, or of as many as `PASSES` batches hold."""
        size = max(2, VALUES // max(1, self.outputs[0].numel()))
        order = torch.randperm(len(self.targets), generator=torch.Generator().manual_seed(0))
        return iter(order[: PASSES * size].split(size))

    def _broadcasts(self, loss: Loss) -> bool:
        """Whether the loss of a batch follows from its samples only if targets take the shape of the outputs."""
        if self.outputs.shape[1:] == self.targets.shape[1:] or self.outputs[0].numel() != self.targets[0].numel():
            return False
        aligned = Trial(self.outputs, self.targets.reshape(len(self.targets), *self.outputs.shape[1:]))
        return not self._is_plain(loss) and aligned._is_plain(loss)

    def _is_plain(self, loss: Loss) -> bool:
        outputs, targets = self.first
        try:
            singles = torch.stack([loss(outputs[i : i + 1], targets[i : i + 1]).mean() for i in range(len(outputs))])
            return _close(loss(outputs, targets).mean(), singles.mean(), singles)
        except FAILS:
            return False


def require_sum(loss: PerSample, outputs: Tensor, targets: Tensor) -> None:
    """Refuse outputs of which the loss is not a mean over samples, though it was one of those that it was tried on.

    Losses that leave out samples by their outputs, such as those below a threshold, are of this kind.

    Raises:
        ValueError: If the user's own number of the batch does not follow from two parts of it.
    """
    if not isinstance(loss, SampleLoss) or loss.batch is None:
        return
    weights = sample_weights(loss, targets) if loss.kind == "mean" else None
    if loss.kind == "mean" and weights is None:
        weights = torch.ones(len(targets))
    try:
        same = _follows(in_float64(loss.batch), outputs.to(_wide(outputs)), targets.to(_wide(targets)), weights)
    except FAILS:  # it computes in float32 only
        same = _follows(loss.batch, outputs, targets, weights)
    if not same:
        raise ValueError(
            f"the loss {loss_name(loss)} is not a mean over samples at this model: its value for {len(targets)} "
            "samples does not follow from two parts of them, as if outputs decide which samples count. Return a pair "
            "(numerators, weights), each (n,), or give coupled=True, which takes all samples as one batch."
        )


def _follows(number: Loss, outputs: Tensor, targets: Tensor, weights: Tensor | None) -> bool:
    """Whether a batch's loss is the mean of those of its two parts by the weights (n,); without weights, their sum."""
    pairs = _cut(outputs, targets)
    sizes = [1.0] * len(pairs) if weights is None else [float(w.double().sum()) for _, w in _cut(targets, weights)]
    total = 1.0 if weights is None else sum(sizes)
    sums = [number(*pair) * size for pair, size in zip(pairs, sizes, strict=True) if size > 0]
    return not sums or _close(number(outputs, targets), torch.stack(sums).sum() / total, torch.stack(sums) / total)


def _adds_up(form: PerSample, number: Loss | None, outputs: Tensor, targets: Tensor) -> bool:
    """Whether the loss of a large batch follows from its two parts."""
    pairs = _cut(outputs, targets)
    if number is None:
        joined = form(outputs, targets)
        return _close(joined, torch.cat([form(*pair) for pair in pairs]), joined)
    sums = [batch_mean(form, *pair) * total_weight(form, pair[1]) for pair in pairs]
    total = total_weight(form, targets)
    return total == 0 or _close(number(outputs, targets), torch.stack(sums).sum() / total, torch.stack(sums) / total)


def _wide(values: Tensor) -> torch.dtype:
    kinds = torch.float64 if values.is_floating_point() else values.dtype
    return torch.complex128 if values.is_complex() else kinds


def _cut(outputs: Tensor, targets: Tensor) -> list[tuple[Tensor, Tensor]]:
    """A batch in two parts of unequal size."""
    cut = max(1, len(targets) // 3)
    spans = [slice(0, cut), slice(cut, None)] if cut < len(targets) else [slice(0, cut)]
    return [(outputs[span], targets[span]) for span in spans]


def in_float64(loss: Any) -> Any:
    """A copy of a loss whose own tensors are in float64."""
    if isinstance(loss, nn.Module):
        return deepcopy(loss).double()
    if isinstance(loss, SampleLoss) or hasattr(loss, "__dataclass_fields__"):
        inner = {name: in_float64(value) for name, value in vars(loss).items() if callable(value)}
        return replace(loss, **inner, **({"dtype": torch.float64} if hasattr(loss, "dtype") else {}))
    return loss


def _close(actual: Any, expected: Tensor, terms: Tensor) -> bool:
    """Equal up to rounding, on the scale of the largest term; NaN only where the other has it.

    As in mask.sum() + 1e-8, a denominator may have a small number that keeps it from being 0.
    """
    actual = torch.as_tensor(actual)
    if actual.numel() != expected.numel():
        return False
    scale = float(terms.detach().abs().nan_to_num(0, 0, 0).max()) if terms.numel() else 0.0
    precision = torch.finfo(actual.dtype).eps if actual.is_floating_point() else 1e-7
    tolerance = 10 * precision**0.75 * scale
    return torch.allclose(actual.reshape(expected.shape).to(expected), expected, 2e-8, tolerance, equal_nan=True)


def _tensors(value: Any) -> list[Tensor]:
    return [entry for entry in (value if isinstance(value, tuple | list) else [value]) if isinstance(entry, Tensor)]


def _same(once: Tensor, again: Tensor) -> bool:
    return once.shape == again.shape and _close(once, again, once)
