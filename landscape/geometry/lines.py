"""The straight line through two models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from torch import Tensor

from landscape.model.vectors import takes_models
from landscape.sweep.grid import Sweep, axis, make_mark, stack_models


@takes_models("a", "b")
def line(
    a: Tensor,
    b: Tensor,
    *,
    points: int = 41,
    low: float = -0.5,
    high: float = 1.5,
    labels: Sequence[str] = ("a", "b"),
    buffers: Tensor | None = None,
) -> Sweep:
    """The models (1 - t) a + t b, dimension t, marked at both models and at their mean.

        ds = landscape.surface(task, landscape.line(a, b, points=21))
        ds.loss.sel(t=0.5, method="nearest")

    In the notation of the paper, L(beta w1 + (1 - beta) w2), t is beta for a = w2 and b = w1. The defaults go past
    both models so that the walls show.

    Source: IMA paper, section 3.2.

    Args:
        a, b: Models, shape (d,).
        points: Evaluations on the line; 41 puts both models and the mean on the grid.
        low, high: Ends of the line.
        labels: Names of the two marks; the third is "mean".
        buffers: Floating buffers of a and b, shape (2, b).

    Raises:
        ValueError: If a and b differ in length, or the range is empty.
    """
    marks = (
        make_mark(labels[0], (0,), (1, 0)),
        make_mark(labels[1], (1,), (0, 1)),
        make_mark("mean", (0.5,), (0.5, 0.5)),
    )
    attrs = {"analysis": "line", "source": "IMA paper, section 3.2"}
    return Sweep(
        stack_models([a, b]),
        origin=np.array([1.0, 0.0]),
        axes=np.array([[-1.0, 1.0]]),
        coords={"t": axis(low, high, points)},
        marks=marks,
        buffers=buffers,
        attrs=attrs,
    )
