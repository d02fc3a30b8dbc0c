"""Basins and minima on the planes of a run, with the errors of the fit and of the samples."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.landscapes.minima import FOLDS, locate_minimum
from drift.analyses.landscapes.planes import global_plane, round_plane
from drift.analyses.landscapes.sweeps import client_sweep, global_sweep
from drift.analyses.per_round import ABOUT, DIMS, evenly_spaced, result, selected_rounds, stack_rows
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.surfaces.basin import area_below, basin, curvature, flatness_radius, loss_excess, smallest
from landscape.surfaces.minimum import label_minimum

MODELS = ("clients", "globals")
"""Models that the planes go through."""


@analysis("round", "rank", cost="evaluations")
def basin_rounds(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    models: str = "clients",
    rise: float = 0.1,
    points: int = 21,
    margin: float = 0.3,
    reach: int = 2,
    split: str = "test",
    folds: int = FOLDS,
) -> xr.Dataset:
    """Basin statistics of the planes through three models, over rounds: climb, area, radius, curvature, offset.

    A statistic is NaN in a round without such a plane (fewer than three clients with samples), and where its
    plane has too few finite values.

    Source: IMA paper, section 3.2 (models around a common basin); see `landscape.basin`.

    Args:
        run: Run to analyse.
        rounds: Rounds of the planes; by default five, evenly spaced.
        models: "clients" for the first three of the cohort that have samples, "globals" for the global model of the
            round and the two kept before it.
        rise: Height above the lowest grid point or mean of the plane (nats) at which area and radius are taken.
        points: Grid points per axis.
        margin: How far the grid extends beyond the models on each side, as a fraction of the box's width.
        reach: Cells on each side of the lowest one to which the curvature is fitted.
        split: Samples that the loss is averaged over.
        folds: Number of parts of the samples that are left out in turn for offset_error.

    Returns:
        Dataset over round: minimum, level (lowest at which the models and their mean lie in one basin) and climb, level
        minus the largest loss in the cells of these models, in nats; excess, loss of the mean minus the minimum, in
        nats; offset and offset_error, distance from the mean to the fitted minimum and its standard error, NaN where
        this is not inside the box (located: 1 where it is); width, largest distance between two models; area
        within `rise` of the minimum; radius around the mean within it, 0 where the mean is higher; open, 1 where the
        basin at `level` reaches the edge of the box; curvature (round, rank) at the minimum.

    Raises:
        LookupError: If the run kept no clients, or fewer than three global models.
        ValueError: If `models` is neither, or the grid is too small for `reach`.
    """
    if models not in MODELS:
        raise ValueError(f"models is {models!r}; accepted: {', '.join(MODELS)}.")
    if reach < 1 or points < 2 * reach + 1:
        raise ValueError(f"reach is {reach} and points {points}; take reach >= 1 and points >= 2 reach + 1.")
    available = run.kept(models)
    suited = available if models == "clients" else available[2:]
    if not suited:
        count = len(available)
        raise LookupError(f"run {run.name} kept {models} of {count} rounds; train it with --set keep.{models}=all.")
    indices = evenly_spaced(suited, 5) if rounds is None else selected_rounds(run, models, rounds, None)
    options = {"points": points, "margin": margin, "split": split}
    rows = [_statistics(_plane(run, index, models, options, folds), rise, reach) for index in indices]
    coords = {"round": indices, "rank": [1, 2]}
    variables = stack_rows(rows, ABOUT["basin_rounds"], coords, DIMS["basin_rounds"])
    attrs = {"source": "IMA paper, section 3.2", "split": split, "models": models, "rise": rise}
    return result(variables, ABOUT["basin_rounds"], coords, analysis="basin_rounds", **attrs)


def _plane(run: Run, index: int, models: str, options: dict[str, Any], folds: int) -> xr.Dataset | None:
    """The plane of a round with its fitted minimum; None for fewer than three models."""
    grid = {name: options[name] for name in ("points", "margin")}
    if models == "globals":
        available = run.kept("globals")
        before = available.index(index)
        if before < 2:
            return None
        rounds = available[before - 2 : before + 1]
        _, sweep = global_sweep(run, rounds, **grid)
        plane = global_plane(run, rounds=rounds, **options)
    else:
        record = run.round(index)
        ids = record.ids[record.sizes > 0].tolist()[:3]
        if len(ids) < 3:
            return None
        _, _, sweep = client_sweep(run, index, ids, **grid)
        plane = round_plane(run, round=index, clients=ids, **options)
    fitted = locate_minimum(run, plane, sweep, split=options["split"], folds=folds)
    return plane.assign(label_minimum(fitted, plane).data_vars)


def _statistics(plane: xr.Dataset | None, rise: float, reach: int) -> dict[str, Any]:
    """Every number of `basin_rounds` that the plane has."""
    if plane is None:
        return {}
    plane = plane.assign(loss=plane.loss.where(np.isfinite(plane.loss)))  # a model far out may overflow
    coordinates = np.stack([plane.mark_alpha.values[:3], plane.mark_beta.values[:3]], axis=1)
    values: dict[str, Any] = {"width": np.linalg.norm(coordinates[:, None] - coordinates[None], axis=2).max()}
    try:
        values["minimum"] = lowest = smallest(plane)
        values["excess"] = loss_excess(plane)
        values["offset"], values["offset_error"] = plane.minimum_offset.values, plane.minimum_offset_error.values
        values["located"] = float(plane.minimum_state == "inside")
        values["area"] = area_below(plane, lowest + rise)
        values["radius"] = flatness_radius(plane, rise)
        joined = basin(plane)
        values["level"], values["open"] = joined.level.values, joined.open.values
        cells = plane.loss.sel(alpha=plane.mark_alpha, beta=plane.mark_beta, method="nearest")
        values["climb"] = joined.level.values - float(cells.max())
        values["curvature"] = curvature(plane, reach=reach).values
    except LookupError:  # too few values for this statistic and for those after it, which need more of them
        pass
    return values
