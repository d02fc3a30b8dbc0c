"""A small map of losses, and axes to draw it on."""

from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure


def bowl() -> xr.Dataset:
    """Loss and error on a plane through three models, lowest between the first two."""
    alpha, beta = np.linspace(-1, 5, 7), np.linspace(-1, 1, 5)
    loss = 0.1 + (alpha[:, None] - 3) ** 2 + 4 * (beta - 0.5) ** 2
    return xr.Dataset(
        {
            "loss": (("alpha", "beta"), loss, {"long_name": "loss", "units": "nats"}),
            "error": (("alpha", "beta"), loss / loss.max(), {"long_name": "error", "units": "fraction"}),
            "mark_alpha": ("mark", [0.0, 4.0, 2.0, 2.0]),
            "mark_beta": ("mark", [0.0, 0.0, 0.9, 0.3]),
        },
        coords={"alpha": alpha, "beta": beta, "mark": ["client 3", "client 1", "client 7", "mean"]},
        attrs={"isometric": 1},
    )


def ax_alone() -> Axes:
    """Axes of a new figure."""
    return Figure().subplots()
