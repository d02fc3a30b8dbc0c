"""The triangle of three clients' weights, while those of the others and gamma stay."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import plotly.graph_objects as go
import xarray as xr

from figures.explore.plane.maps import POINT
from figures.interactive.simplex import simplex_rounds
from landscape.geometry.simplex import on_triangle

STEPS = 10
"""Steps of the grid from one corner to another."""


def corners(weights: Sequence[float], clients: Sequence[int], ids: Sequence[int]) -> list[int]:
    """Places in the cohort of three clients: the selected ones first, then those with the largest weights."""
    selected = [ids.index(client) for client in dict.fromkeys(clients) if client in ids]
    rest = [row for row in np.argsort(-np.asarray(weights), kind="stable").tolist() if row not in selected]
    return [*selected, *rest][:3]


def grid() -> np.ndarray:
    """Barycentric coordinates of the grid points, shape (P, 3)."""
    ticks = range(STEPS + 1)
    return np.array([(a, b, STEPS - a - b) for a in ticks for b in ticks if a + b <= STEPS]) / STEPS


def rows(weights: Sequence[float], gamma: float, three: Sequence[int], shares: np.ndarray) -> np.ndarray:
    """Coefficients of the cohort, shape (P, m), where three clients share their weight as `shares` (P, 3) says."""
    base = np.tile(np.asarray(weights, dtype=float), (len(shares), 1))
    base[:, list(three)] = base[0, list(three)].sum() * shares
    return gamma * base


def share_of(weights: Sequence[float], three: Sequence[int]) -> np.ndarray:
    """How three clients share their weight now, shape (3,); equally where it is 0."""
    own = np.asarray(weights, dtype=float)[list(three)]
    return own / own.sum() if own.sum() > 1e-12 else np.full(3, 1 / 3)


def surface(shares: np.ndarray, losses: np.ndarray, names: Sequence[str]) -> xr.Dataset:
    """Losses (P,) at barycentric coordinates (P, 3), as `drift.weight_simplex` labels them."""
    ticks = np.arange(STEPS + 1) / STEPS
    values = np.full((STEPS + 1, STEPS + 1), np.nan)
    cells = np.rint(shares[:, :2] * STEPS).astype(int)
    values[cells[:, 0], cells[:, 1]] = losses
    at_corner = np.array([values[-1, 0], values[0, -1], values[0, 0]])
    about = {"long_name": "loss", "units": "nats"}
    return xr.Dataset(
        {
            "loss": (("alpha", "beta"), values, about),
            "mark_alpha": ("mark", [1.0, 0.0, 0.0]),
            "mark_beta": ("mark", [0.0, 1.0, 0.0]),
            "mark_loss": ("mark", at_corner, about),
        },
        coords={"alpha": ticks, "beta": ticks, "mark": list(names)},
    )


def figure(ds: xr.Dataset, share: np.ndarray) -> go.Figure:
    """The map on the triangle, with the point that is dragged."""
    picture = simplex_rounds([ds])
    x, y = on_triangle(share[:1], share[1:2])
    marker = {"size": 17, "symbol": "circle-open", "color": POINT, "line": {"width": 4}}
    picture.add_trace(go.Scatter(x=x, y=y, mode="markers", marker=marker, name="point", hoverinfo="skip"))
    return picture.update_layout(showlegend=False, uirevision="triangle", dragmode=False)


def share_at(x: float, y: float) -> np.ndarray:
    """Barycentric coordinates (3,) of a place on the picture, moved into the triangle."""
    third = 2 * y / 3**0.5
    second = x - third / 2
    shares = np.clip([1 - second - third, second, third], 0, 1)
    return shares / shares.sum()
