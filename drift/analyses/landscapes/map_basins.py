"""Basins of models: branches of the tree of their distances whose means no barrier separates."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from scipy.cluster.hierarchy import linkage
from scipy.spatial.distance import squareform
from torch import Tensor

from drift.analyses.evaluate_on import evaluation_of
from drift.analyses.landscapes.named_models import recomputed
from drift.runs.run import Run
from landscape.geometry.trajectory import principal_coordinates
from landscape.model.model import buffers_of, plain
from landscape.model.samples import Samples
from landscape.surfaces.bounded_barriers import bounded_barriers


def basins_of(run: Run, models: Tensor, distances: np.ndarray, margin: float, samples: Samples) -> np.ndarray:
    """Number of each model's basin, shape (n,): 1, 2, .. by falling size, then by the first model."""
    branches, whole = [[row] for row in range(len(models))], [True] * len(models)
    tree = linkage(squareform(distances, checks=False), "average") if len(models) > 1 else np.zeros((0, 4))
    for pair in tree[:, :2].astype(int).tolist():
        members = [branches[branch] for branch in pair]
        one = all(whole[branch] for branch in pair)
        whole.append(one and bool(mean_barriers(run, models, members, margin, samples)["joined"][0, 1] == 1))
        branches.append([*members[0], *members[1]])
    basins, remaining = list[list[int]](), [len(branches) - 1]
    while remaining:
        branch = remaining.pop()
        if whole[branch]:
            basins.append(branches[branch])
        else:
            remaining += tree[branch - len(models), :2].astype(int).tolist()
    labels = np.zeros(len(models), dtype=int)
    for number, rows in enumerate(sorted(basins, key=lambda rows: (-len(rows), min(rows))), 1):
        labels[rows] = number
    return labels


def rows_by_basin(basins: np.ndarray) -> dict[int, list[int]]:
    """Rows of the models of each basin, by its number."""
    return {number: np.flatnonzero(basins == number).tolist() for number in range(1, int(basins.max()) + 1)}


def mean_barriers(
    run: Run, models: Tensor, groups: Sequence[Sequence[int]], margin: float, samples: Samples
) -> xr.Dataset:
    """`landscape.bounded_barriers` between the means of groups of models, whose batch statistics are recomputed."""
    evaluation = evaluation_of(run, split=samples, progress=None)
    means = torch.stack([_mean(run, models[list(rows)]) for rows in groups])
    return bounded_barriers(run.task, means, margin=margin, evaluation=evaluation)


def _mean(run: Run, models: Tensor) -> Tensor:
    """Equal mean (d,) of models (n, d); a single model is its own."""
    if len(models) == 1:
        return models[0]
    mean, buffers = plain(models).mean(0, dtype=torch.float64).to(plain(models)), buffers_of(models)
    return mean if buffers is None else recomputed(run, mean, buffers.mean(0))


def places_of(distances: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Principal coordinates (n, 2) of distances (n, n), and their shares (2,) of the squared distances."""
    if not distances.any():
        return np.zeros((len(distances), 2)), np.zeros(2)
    squares = distances**2
    rows = squares.mean(0)
    places, _, shares = principal_coordinates((rows + rows[:, None] - squares - squares.mean()) / 2)
    return places, shares
