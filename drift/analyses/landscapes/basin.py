"""The basin that the models of a round share, in numbers over rounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.landscapes.minima import FOLDS, located
from drift.analyses.landscapes.planes import client_sweep, global_plane, global_sweep, round_plane
from drift.analyses.per_round import evenly_spaced, resolve_round
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.surfaces.basin import area_below, basin, curvature, flatness_radius, loss_excess, minimum
from landscape.surfaces.minimum import label_minimum

MODELS = ("clients", "globals")
"""What the planes go through."""


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

    A statistic is NaN in a round without such a plane (fewer than three clients with samples came back), and where its
    plane has too few finite values.

    Source: IMA paper, section 3.2 (models around a common basin); see `landscape.basin`.

    Args:
        rounds: Rounds looked at; by default five, evenly spread.
        models: "clients" for the first three of the cohort that have samples, "globals" for the global model of the
            round and the two kept before it.
        rise: Height above the lowest point of the plane (nats) at which area and radius are taken.
        points, margin: Grid points an axis, and how far the box reaches beyond the models.
        reach: Cells on each side of the lowest one that the curvature is fitted to.
        split: Samples that the loss is averaged over.
        folds: Parts of the samples that are left out in turn for offset_error.

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
    kept = run.kept(models)
    suited = kept if models == "clients" else kept[2:]
    if not suited:
        raise LookupError(f"run {run.name} kept {models} of {len(kept)} rounds; train it with --set keep.{models}=all.")
    indices = evenly_spaced(suited, 5) if rounds is None else [resolve_round(run, index, models) for index in rounds]
    options = {"points": points, "margin": margin, "split": split}
    planes = [_plane(run, index, models, options, folds) for index in indices]
    columns = [_statistics(plane, rise, reach) for plane in planes]
    found = xr.Dataset(coords={"round": indices, "rank": [1, 2]})
    for name, (text, unit) in _ABOUT.items():
        dims = ("round", "rank") if name == "curvature" else ("round",)
        found[name] = (dims, np.array([column[name] for column in columns]), {"long_name": text, "units": unit})
    about = {"analysis": "basin_rounds", "source": "IMA paper, section 3.2", "split": split}
    return found.assign_attrs(about, models=models, rise=rise)


_ABOUT = {
    "minimum": ("smallest loss on the plane", "nats"),
    "level": ("lowest level that joins the models", "nats"),
    "climb": ("climb between the models", "nats"),
    "excess": ("loss of the mean above the minimum", "nats"),
    "offset": ("distance from the mean to the minimum", "1"),
    "offset_error": ("standard error of the offset", "1"),
    "located": ("minimum is inside the box", "1"),
    "width": ("largest distance of two models", "1"),
    "area": ("area near the minimum", "1"),
    "radius": ("flatness radius around the mean", "1"),
    "open": ("basin reaches the edge of the box", "1"),
    "curvature": ("curvature of the loss at the minimum", "1"),
}


def _plane(run: Run, index: int, models: str, options: dict[str, Any], folds: int) -> xr.Dataset | None:
    """The plane of a round with its fitted minimum; None where there are not three models."""
    grid = {name: options[name] for name in ("points", "margin")}
    if models == "globals":
        kept = run.kept("globals")
        place = kept.index(index)
        if place < 2:
            return None
        rounds = kept[place - 2 : place + 1]
        _, sweep = global_sweep(run, rounds, **grid)
        found = global_plane(run, rounds=rounds, **options)
    else:
        record = run.round(index)
        some = [client for client, size in zip(record.ids.tolist(), record.sizes.tolist(), strict=True) if size > 0]
        if len(some) < 3:
            return None
        _, _, sweep = client_sweep(run, index, some[:3], **grid)
        found = round_plane(run, round=index, clients=some[:3], **options)
    return found.assign(label_minimum(located(run, found, sweep, split=options["split"], folds=folds), found).data_vars)


def _statistics(plane: xr.Dataset | None, rise: float, reach: int) -> dict[str, np.ndarray]:
    """Every number of `_ABOUT`, NaN where it cannot be had."""
    found = {name: np.full(2 if name == "curvature" else (), np.nan) for name in _ABOUT}
    if plane is None:
        return found
    plane = plane.assign(loss=plane.loss.where(np.isfinite(plane.loss)))  # a model far out may overflow
    places = np.stack([plane.mark_alpha.values[:3], plane.mark_beta.values[:3]], axis=1)
    found["width"] = np.linalg.norm(places[:, None] - places[None], axis=2).max()
    try:
        lowest = float(minimum(plane))
        found["minimum"] = np.array(lowest)
        found["excess"] = np.array(loss_excess(plane))
        found["offset"], found["offset_error"] = plane.minimum_offset.values, plane.minimum_offset_error.values
        found["located"] = np.array(float(plane.minimum_state == "inside"))
        found["area"] = np.array(area_below(plane, lowest + rise))
        found["radius"] = np.array(flatness_radius(plane, rise))
        joined = basin(plane)
        found["level"], found["open"] = joined.level.values, joined.open.values
        cells = plane.loss.sel(alpha=plane.mark_alpha, beta=plane.mark_beta, method="nearest")
        found["climb"] = joined.level.values - float(cells.max())
        found["curvature"] = curvature(plane, reach=reach).values
    except LookupError:  # too few values for this statistic and those after it, which need more of them
        pass
    return found
