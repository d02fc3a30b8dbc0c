"""The way of a run on one plane: its global models, and the clients of each round around them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr

from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.per_round import selected_rounds
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.geometry.planes import project
from landscape.geometry.trajectory import principal_plane
from landscape.model.batchnorm import Statistics
from landscape.results.zarr_files import Partial
from landscape.sweep.grid import Sweep


@analysis("mark", "alpha", "beta", cost="evaluations")
def trajectory_plane(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    clients: bool = False,
    points: int = 21,
    margin: float = 0.3,
    split: str = "test",
    statistics: Statistics | None = None,
    partial: Partial | None = None,
) -> xr.Dataset:
    """Loss and error on the plane of the first two principal components of the global models, which are its marks.

    Source: Li et al. 2018, section 7.2; the clients on it are this project's.

    Args:
        rounds: Whose global models; at most 20 by default, evenly spread.
        clients: Also project the client models of those rounds that kept them; the box then holds them, too.
        points, margin: Grid points an axis, and how far the box reaches beyond the trajectory.
        split: Samples that loss (nats) and error (fraction) are averaged over.
        statistics: Of batch normalisation between the models, as in `round_plane`.
        partial: Where an unfinished result lies.

    Returns:
        The surface, with mark_round and distance (mark,), the distance of the models out of the plane; the shares of
        the variance, explained_alpha and explained_beta, are in attrs. With clients also client_alpha, client_beta
        and client_distance (round, client), NaN for clients that were not in the cohort.

    Raises:
        LookupError: If the run kept fewer than two global models, or no clients that were asked for.
    """
    kept = selected_rounds(run, "globals", rounds, 20)
    if len(kept) < 2:
        raise LookupError(f"run {run.name} kept {len(kept)} global models; train it with --set keep.globals=all.")
    records = [run.round(index) for index in kept]
    models = torch.stack([record.kept("end") for record in records])
    buffers = torch.stack([record.end_buffers for record in records])
    labels = [f"round {index}" for index in kept]
    sweep = principal_plane(models, points=points, margin=margin, labels=labels, buffers=buffers)
    around = _clients(run, kept, sweep) if clients else xr.Dataset()
    if clients:
        corners = np.stack([around[name].values.ravel() for name in ("client_alpha", "client_beta")], axis=1)
        inside = corners[np.isfinite(corners).all(1)]
        sweep = principal_plane(models, points=points, margin=margin, labels=labels, buffers=buffers, within=inside)
    found = evaluate_on(run, sweep, split, partial, statistics=statistics)
    found["mark_round"] = ("mark", kept, {"long_name": "round of the mark", "units": "rounds"})
    found["distance"] = project(models, sweep, labels=labels).distance
    return found.merge(around).assign_attrs(found.attrs, analysis="trajectory_plane")


def _clients(run: Run, rounds: Sequence[int], sweep: Sweep) -> xr.Dataset:
    """Where the clients of some rounds stand on a plane, a round at a time."""
    held = sorted(set(rounds) & set(run.kept("clients")))
    if not held:
        raise LookupError(f"run {run.name} kept no clients of these rounds; train it with --set keep.clients=all.")
    number = run.experiment.clients.number
    found = {name: np.full((len(held), number), np.nan) for name in ("alpha", "beta", "distance")}
    for row, index in enumerate(held):
        record = run.round(index)
        ids = record.ids.numpy()
        if not len(ids):
            continue
        on_plane = project(record.kept("clients"), sweep)
        for name, values in found.items():
            values[row, ids] = on_plane["distance" if name == "distance" else f"mark_{name}"].values
    unit = {"alpha": "1", "beta": "1", "distance": "1"}
    words = {"alpha": "alpha of the client", "beta": "beta of the client", "distance": "distance out of the plane"}
    return xr.Dataset(
        {
            f"client_{name}": (("round", "client"), values, {"long_name": words[name], "units": unit[name]})
            for name, values in found.items()
        },
        coords={"round": held, "client": np.arange(number)},
    )
