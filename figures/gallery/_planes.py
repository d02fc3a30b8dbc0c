"""Planes for several figures: which clients and rounds they go through, their fitted minima, their titles."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import torch
import xarray as xr
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from drift.analyses.landscapes import minima, planes
from drift.runs.run import Run
from figures.gallery import _runs
from figures.looks import style

MARGINS = (0.3, 0.8)
"""Around three global models, as fractions of their box."""

OWN_SCALE = "own scale"
"""In the title of a map with other levels than the maps in its row."""


def round_plane(run: Run, **how: Any) -> xr.Dataset:
    """`drift.round_plane` of a run, with its fitted minimum."""
    return run.cached(planes.round_plane, **how).assign(run.cached(minima.round_minimum, **how).data_vars)


def widest_plane(run: Run, index: int, **how: Any) -> xr.Dataset:
    """`round_plane` through the clients of `largest_triangle`."""
    return round_plane(run, round=index, clients=largest_triangle(run, index), **how)


def of_round(run: Run, round: int | None) -> dict[str, Any]:
    """The round that is named, or the last one that kept three clients, and its `largest_triangle`; as options."""
    stored = _runs.rounds_with_clients(run, least=3)
    index = stored[-1] if round is None else round
    return {"round": index, "clients": largest_triangle(run, index)}


def early_and_last(run: Run, rounds: Sequence[int] | None) -> list[int]:
    """The rounds that are named, or an early one and the last one that kept three clients."""
    stored = _runs.rounds_with_clients(run, least=3)
    return sorted({stored[len(stored) // 10], stored[-1]}) if rounds is None else list(rounds)


def global_plane(run: Run, **how: Any) -> xr.Dataset:
    """`drift.global_plane` of a run, with its fitted minimum; a wider one where this is not well inside."""
    for margin in MARGINS:
        plane = run.cached(planes.global_plane, margin=margin, **how)
        plane = plane.assign(run.cached(minima.global_minimum, margin=margin, **how).data_vars)
        ends = [(plane[name] - plane[f"minimum_{name}"]).values[[0, -1]] for name in ("alpha", "beta")]
        if all(0.12 < -low / (high - low) < 0.88 for low, high in ends):
            break
    return plane


def short_marks(planes: Sequence[xr.Dataset]) -> list[xr.Dataset]:
    """The planes with the numbers of models as their names."""
    return [plane.assign_coords(mark=[str(name).rpartition(" ")[2] for name in plane.mark.values]) for plane in planes]


def key(figure: Figure, axs: np.ndarray, models: str, **how: Any) -> Figure:
    """The figure with a key of the marks of planes, as `figures.contour` draws them.

    Args:
        models: What the triangles are.
        how: Passed to `style.key`.
    """
    marks = [
        Line2D([], [], marker=marker, color=face, markeredgecolor=edge, markersize=5, linewidth=0, label=text)
        for marker, face, edge, text in (
            ("^", "black", "white", models),
            ("X", "white", "black", "their mean"),
            ("o", "none", "#555555", "fitted minimum (lines: standard error)"),
        )
    ]
    return style.key(figure, axs.flat, handles=marks, columns=3, **how)


def largest_triangle(run: Run, index: int) -> list[int]:
    """The three clients of a round with the largest triangle; the two with the largest distance come first.

    Only the first ten clients of a cohort are compared. Other triples are thin triangles where clients have the same
    classes, and a map with the longest side along alpha is wide and low.
    """
    record = run.round(index)
    models, ids = record.kept("clients")[:10].double(), record.ids.tolist()
    if len(models) < 3:
        return [int(client) for client in ids]
    distances = torch.cdist(models, models)

    def area(triple: tuple[int, ...]) -> float:
        """Area times area of a triangle, by Heron's formula."""
        sides = [float(distances[first, second]) for first, second in combinations(triple, 2)]
        half = sum(sides) / 2
        return half * (half - sides[0]) * (half - sides[1]) * (half - sides[2])

    corners = max(combinations(range(len(models)), 3), key=area)
    first, second = max(combinations(corners, 2), key=lambda pair: float(distances[pair]))
    (last,) = set(corners) - {first, second}
    return [int(ids[index]) for index in (first, second, last)]


def early_middle_last(rounds: Sequence[int]) -> list[int]:
    """An early round (a tenth of the way), a middle one and the last."""
    thirds = (len(rounds) // 10, len(rounds) // 2, len(rounds) - 1)
    return [rounds[index] for index in sorted(set(thirds))] if rounds else []
