"""Running means of per-sample values, over all samples or per group."""

from functools import partial

import torch
from torch import Tensor

from landscape.model.loss_trial import require_sum
from landscape.model.loss_weights import Counted, ignored_label
from landscape.model.losses import IGNORED, PerSample, SampleLoss, batch_mean, error, sample_weights, total_weight


def class_error(outputs: Tensor, targets: Tensor, *, ignored: float = IGNORED) -> Tensor:
    """Per sample (n, C): the error 0 or 1 at the sample's own class, NaN (not counted) at all others.

    As a metric of a task its mean is the error of each class; a class without samples has NaN, and every class where
    a logit is NaN.
    """
    counted = targets != ignored
    wrong = error(outputs, targets).where(counted, torch.nan)
    return torch.full_like(outputs, torch.nan).scatter_(1, targets.where(counted, 0)[:, None], wrong[:, None])


def error_of(loss: PerSample) -> PerSample:
    """The error of classes (n,), in which labels that the loss ignores have weight 0."""
    if (ignored := ignored_label(loss)) == IGNORED:
        return error
    return SampleLoss(error, Counted(ignored), name="error")


def class_error_of(loss: PerSample) -> PerSample:
    """The error per class, in which labels that the loss ignores do not count."""
    return partial(class_error, ignored=ignored_label(loss))


class Means:
    """Running means of one metric at P points: (P,) or (P, v), with groups (P, groups) or (P, groups, v).

    A mean is the sum of numerators by the sum of weights (`landscape.model.losses`), both in float64.

    NaN of a metric with one value per sample makes the mean NaN: the model diverged. NaN of a metric with v values
    per sample means that a value does not apply to the sample; it is left out of sum and count. If an output of the
    sample is NaN, it makes the mean NaN.

    Args:
        measure: (outputs, targets) -> (n,) or (n, v).
        points: Number P of points.
        groups: Number of groups, or None for the mean over all samples.
    """

    def __init__(self, measure: PerSample, points: int, groups: int | None) -> None:
        self._measure = measure
        self._points = points
        self._groups = groups
        self._sums: Tensor | None = None
        self._counts: Tensor | None = None

    @property
    def _by_batch(self) -> SampleLoss | None:
        """The metric where it is a loss of whole batches."""
        measure = self._measure
        return measure if isinstance(measure, SampleLoss) and (measure.batch or measure.kind != "mean") else None

    def add(self, point: int, outputs: Tensor, targets: Tensor, group: Tensor | None) -> None:
        """Add a block of m samples at one point; `group` (m,) holds the group of each sample.

        Raises:
            ValueError: If the metric returns another shape than (m,) or (m, v).
        """
        if (by_batch := self._by_batch) is not None:
            self._add_batch(by_batch, point, outputs, targets, group)
            return
        for total, values in self._values(outputs, targets):
            if group is None:
                total[point] += values.sum(0)
            else:
                total[point].index_add_(0, group.to(values.device), values)

    def add_all(self, outputs: Tensor, targets: Tensor, group: Tensor | None) -> None:
        """Add a block of m samples at all points: outputs (P, m, ...)."""
        if self._by_batch is not None:
            for point, of_point in enumerate(outputs):
                self.add(point, of_point, targets, group)
            return
        every = targets.expand(len(outputs), *targets.shape).flatten(0, 1)
        for total, values in self._values(outputs.flatten(0, 1), every):
            by_point = values.unflatten(0, (len(outputs), len(targets)))
            if group is None:
                total += by_point.sum(1)
            else:
                total.index_add_(1, group, by_point)

    def _add_batch(self, loss: SampleLoss, point: int, outputs: Tensor, targets: Tensor, group: Tensor | None) -> None:
        """Add a block by the loss of the block, or of each group in it."""
        require_sum(loss, outputs, targets)
        sums, counts = self._totals(outputs.new_zeros((), dtype=torch.float64))
        numbers = [None] if group is None else group.unique().tolist()
        for number in numbers:
            rows = slice(None) if number is None else group == number
            where, weight = (point, number)[: 1 + (number is not None)], total_weight(loss, targets[rows])
            sums[where] += batch_mean(loss, outputs[rows], targets[rows]).double() * weight
            counts[where] = 1 if loss.kind != "mean" else counts[where] + weight

    def _totals(self, value: Tensor) -> tuple[Tensor, Tensor]:
        """Sums and counts, at first zeros of the shape that values of one sample have."""
        if self._sums is None or self._counts is None:
            shape = (self._points, *([] if self._groups is None else [self._groups]), *value.shape)
            self._sums, self._counts = value.new_zeros(shape), value.new_zeros(shape)
        return self._sums, self._counts

    def _values(self, outputs: Tensor, targets: Tensor) -> list[tuple[Tensor, Tensor]]:
        """The sums with values, 0 where they do not apply, and the counts with weights, 0 where they do not apply."""
        values = self._measure(outputs, targets).double()
        if values.ndim not in (1, 2) or len(values) != len(targets):
            raise ValueError(
                f"a metric gave shape {tuple(values.shape)} for {len(targets)} samples; it must be (n,) or (n, v)."
            )
        weights = sample_weights(self._measure, targets)
        counts = torch.ones_like(values)
        if values.ndim == 2:
            lost = ~outputs.flatten(1).amax(1).isfinite()[:, None] if outputs.is_floating_point() else False
            counts = (~values.isnan() | lost).double()
        counts = counts if weights is None else weights.to(values)
        sums, totals = self._totals(values[0] if len(values) else values.new_zeros(values.shape[1:]))
        return [(sums, values.where(counts != 0, 0)), (totals, counts)]

    def result(self) -> Tensor:
        """The means, float64 on the CPU; NaN where no sample was added."""
        if self._sums is None or self._counts is None:
            return torch.zeros(self._points, dtype=torch.float64)
        return (self._sums / self._counts).cpu()
