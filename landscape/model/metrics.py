"""Running means of per-sample values, over all samples or per group."""

from __future__ import annotations

import torch
from torch import Tensor

from landscape.model.task import PerSample


def class_error(outputs: Tensor, targets: Tensor) -> Tensor:
    """Per sample (n, C): the error 0 or 1 at the sample's own class, NaN (not counted) at all others.

    As a metric of a task its mean is the error of each class; a class without samples has NaN.
    """
    wrong = (outputs.argmax(1) != targets).to(outputs.dtype)
    return torch.full_like(outputs, torch.nan).scatter_(1, targets[:, None], wrong[:, None])


class Means:
    """Running means of one metric at P points: (P,) or (P, v), with groups (P, groups) or (P, groups, v).

    NaN of a metric with one value per sample makes the mean NaN: the model diverged. NaN of a metric with v values
    per sample means that a value does not apply to the sample; it is left out of sum and count.

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

    def add(self, point: int, outputs: Tensor, targets: Tensor, group: Tensor | None) -> None:
        """Add a block of m samples at one point; `group` (m,) holds the group of each sample.

        Raises:
            ValueError: If the metric returns another shape than (m,) or (m, v).
        """
        for total, values in self._values(outputs, targets):
            if group is None:
                total[point] += values.sum(0)
            else:
                total[point].index_add_(0, group, values)

    def add_all(self, outputs: Tensor, targets: Tensor, group: Tensor | None) -> None:
        """Add a block of m samples at all points: outputs (P, m, ...)."""
        every = targets.expand(len(outputs), *targets.shape).flatten(0, 1)
        for total, values in self._values(outputs.flatten(0, 1), every):
            by_point = values.unflatten(0, (len(outputs), len(targets)))
            if group is None:
                total += by_point.sum(1)
            else:
                total.index_add_(1, group, by_point)

    def _values(self, outputs: Tensor, targets: Tensor) -> list[tuple[Tensor, Tensor]]:
        """The sums with values, 0 where they do not apply, and the counts with a mask, 1 where they apply."""
        values = self._measure(outputs, targets).double()
        if values.ndim not in (1, 2) or len(values) != len(targets):
            raise ValueError(
                f"a metric gave shape {tuple(values.shape)} for {len(targets)} samples; it must be (n,) or (n, v)."
            )
        applies = torch.ones_like(values, dtype=torch.bool) if values.ndim == 1 else ~values.isnan()
        if self._sums is None or self._counts is None:
            shape = (self._points, *([] if self._groups is None else [self._groups]), *values.shape[1:])
            self._sums, self._counts = values.new_zeros(shape), values.new_zeros(shape)
        return [(self._sums, values.where(applies, 0)), (self._counts, applies.double())]

    def result(self) -> Tensor:
        """The means, float64 on the CPU; NaN where no sample was added."""
        if self._sums is None or self._counts is None:
            return torch.zeros(self._points, dtype=torch.float64)
        return (self._sums / self._counts).cpu()
