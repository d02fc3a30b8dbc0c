"""A model scaled by factors around 1."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from landscape.model.vectors import takes_models
from landscape.sweep.grid import Sweep, axis, make_mark, stack_models


@takes_models("theta")
def scaling(
    theta: Tensor, *, low: float = 0.5, high: float = 1.2, points: int = 36, buffers: Tensor | None = None
) -> Sweep:
    """The models gamma theta, dimension t = gamma, marked at the model itself (t = 1).

    A loss that hardly changes over it is called scale invariant. Every parameter is scaled, biases and normalisation
    parameters included; buffers are not scaled, but `surface` recomputes batch statistics by default.

    Source: FedLAW paper, Fig. 4 left; its range of gamma.

    Args:
        theta: Model, shape (d,).
        low, high: Smallest and largest gamma.
        points: Evaluations; the default has gamma = 1 on the grid.
        buffers: Floating buffers (b,) of the model.

    Raises:
        ValueError: If the range is empty or there are fewer than 2 points.
    """
    return Sweep(
        stack_models([theta, torch.zeros_like(theta)]),
        origin=np.array([0.0, 1.0]),
        axes=np.array([[1.0, -1.0]]),
        coords={"t": axis(low, high, points)},
        marks=(make_mark("model", (1,), (1, 0)),),
        buffers=None if buffers is None else torch.stack([buffers, buffers]),
        attrs={"analysis": "scaling", "source": "FedLAW paper, Fig. 4 left"},
    )
