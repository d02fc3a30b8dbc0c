"""The loss barrier between two models."""

from __future__ import annotations

import xarray as xr
from torch import Tensor

from landscape.basin import line_summary
from landscape.lines import line
from landscape.surface import surface
from landscape.task import Split, Task


def barrier(task: Task, a: Tensor, b: Tensor, *, points: int = 21, split: Split = "test") -> xr.Dataset:
    """Height of the loss barrier on the straight line between two models.

    The barrier is the largest L((1 - t) a + t b) - ((1 - t) L(a) + t L(b)) for t from 0 to 1; near zero means that
    the models are linearly mode connected. Frankle et al. subtract the mean of the two losses instead of their
    interpolation, which differs when the models are not equally good.

    Source: IMA paper, section 3.2; Frankle et al. 2020, section 2.

    Args:
        task: Defines the loss.
        a, b: Models, shape (d,).
        points: Evaluations on the line, both ends included.
        split: Samples that the loss is averaged over.

    Returns:
        Dataset with loss (t,), its marks, and barrier (), in nats for cross-entropy.

    Raises:
        ValueError: If a and b differ in length.
    """
    ds = surface(task, line(a, b, points=points, low=0.0, high=1.0), split=split, metrics=("loss",))
    return ds.assign(barrier=line_summary(ds).barrier).assign_attrs(analysis="barrier")
