"""Means of the models of a map: basins are branches whose means no barrier separates; which means are candidates."""

from collections.abc import Collection, Mapping, Sequence

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
from landscape.measures.soups import mean_of, model_soup
from landscape.model.model import buffers_of, plain
from landscape.model.samples import Samples
from landscape.surfaces.bounded_barriers import bounded_barriers
from landscape.sweep.evaluate import evaluate


def basins_of(run: Run, models: Tensor, distances: np.ndarray, margin: float, samples: Samples) -> np.ndarray:
    """Number of each model's basin, shape (n,): 1, 2, .. by falling size, then by the first model."""
    branches, is_basin = [[row] for row in range(len(models))], [True] * len(models)
    tree = linkage(squareform(distances, checks=False), "average") if len(models) > 1 else np.zeros((0, 4))
    for pair in tree[:, :2].astype(int).tolist():
        members = [branches[branch] for branch in pair]
        joined = all(is_basin[branch] for branch in pair)
        is_basin.append(joined and bool(mean_barriers(run, models, members, margin, samples)["joined"][0, 1] == 1))
        branches.append([*members[0], *members[1]])
    basins, remaining = list[list[int]](), [len(branches) - 1]
    while remaining:
        branch = remaining.pop()
        if is_basin[branch]:
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


def candidate_means(
    run: Run, models: Tensor, basins: Mapping[int, list[int]], losses: np.ndarray, samples: Samples
) -> dict[str, list[int]]:
    """Rows of the models of each candidate, by name."""
    evaluation = evaluation_of(run, split=samples, progress=None).between(run.task)
    rows = np.stack([mean_of(members, len(models)) for members in basins.values()])
    of_basins = evaluate(run.task, models, rows, evaluation=evaluation.but(metrics=("loss",)))["loss"]
    best = list(basins)[int(of_basins.nan_to_num(torch.inf).argmin())]
    group = basins[best]
    pruned = model_soup(run.task, models[group], kind="pruned", evaluation=evaluation)
    return {
        f"basin {best}": group,
        f"basin {best} pruned": [group[row] for row in pruned],
        "greedy soup": model_soup(run.task, models, evaluation=evaluation),
        "best model": [int(losses.argmin())],
    }


def judged_means(
    run: Run, models: Tensor, references: Tensor, means: Collection[list[int]], choosing: Samples, judging: Samples
) -> dict[str, np.ndarray]:
    """Losses and errors of candidates and, behind them, of references (r, d)."""
    number = len(models) + len(references)
    rows = np.stack([*(mean_of(members, number) for members in means), *np.eye(number)[len(models) :]])
    metrics = ("loss", *(("error",) if "error" in run.task.metrics else ()))
    evaluation = evaluation_of(run, metrics=metrics, progress=None).between(run.task)
    basis = torch.cat([models, references])
    on_map, judged = (
        evaluate(run.task, basis, rows, evaluation=evaluation.but(split=samples)) for samples in (choosing, judging)
    )
    return {
        "candidate_loss": on_map["loss"].numpy(),
        "judged_loss": judged["loss"].numpy(),
        "judged_error": judged["error"].numpy() if "error" in judged else np.full(len(rows), np.nan),
        "candidate_models": np.array([*map(len, means), *[np.nan] * len(references)]),
    }
