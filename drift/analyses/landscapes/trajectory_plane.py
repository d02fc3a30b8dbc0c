"""The trajectory of a run on one plane: its global models, and the clients of each round."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr

from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.per_round import result, selected_rounds
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

    Source: Li et al. 2018, section 7.2; the clients on it: this project.

    Args:
        run: Run to analyse.
        rounds: Rounds of the global models; by default at most 20, evenly spaced.
        clients: Also project the client models of those rounds that kept them; the box then contains them.
        points, margin: Grid points per axis, and how far the box extends beyond the trajectory.
        split: Samples that loss (nats) and error (fraction) are averaged over.
        statistics: Of batch normalisation between the models, as in `round_plane`.
        partial: Unfinished result to go on from.

    Returns:
        The surface, with mark_round and distance (mark,), the distance of the models out of the plane; the shares of
        the variance, explained_alpha and explained_beta, are in attrs. With clients also client_alpha, client_beta
        and client_distance (round, client), NaN for clients that were not in the cohort.

    Raises:
        LookupError: If the run kept fewer than two global models, or no clients that were asked for.
    """
    indices = selected_rounds(run, "globals", rounds, 20)
    if len(indices) < 2:
        raise LookupError(f"run {run.name} kept {len(indices)} global models; train it with --set keep.globals=all.")
    records = [run.round(index) for index in indices]
    models = torch.stack([record.kept("end") for record in records])
    buffers = torch.stack([record.end_buffers for record in records])
    labels = [f"round {index}" for index in indices]
    sweep = principal_plane(models, points=points, margin=margin, labels=labels, buffers=buffers)
    projections = _project_clients(run, indices, sweep) if clients else xr.Dataset()
    if clients:
        corners = np.stack([projections[name].values.ravel() for name in ("client_alpha", "client_beta")], axis=1)
        inside = corners[np.isfinite(corners).all(1)]
        sweep = principal_plane(models, points=points, margin=margin, labels=labels, buffers=buffers, within=inside)
    dataset = evaluate_on(run, sweep, split, partial, statistics=statistics)
    dataset["mark_round"] = ("mark", indices)
    dataset["distance"] = project(models, sweep, labels=labels).distance
    dataset = dataset.merge(projections, combine_attrs="override")
    return result(dataset, {"mark_round": ("round of the mark", "rounds")}, analysis="trajectory_plane")


def _project_clients(run: Run, rounds: Sequence[int], sweep: Sweep) -> xr.Dataset:
    """Places of the clients of some rounds on a plane; one round is in memory at a time."""
    indices = sorted(set(rounds) & set(run.kept("clients")))
    if not indices:
        raise LookupError(f"run {run.name} kept no clients of these rounds; train it with --set keep.clients=all.")
    number = run.experiment.clients.number
    columns = {name: np.full((len(indices), number), np.nan) for name in _ABOUT}
    for row, index in enumerate(indices):
        record = run.round(index)
        ids = record.ids.numpy()
        if not len(ids):
            continue
        on_plane = project(record.kept("clients"), sweep)
        for name, source in zip(_ABOUT, ("mark_alpha", "mark_beta", "distance"), strict=True):
            columns[name][row, ids] = on_plane[source].values
    variables = {name: (("round", "client"), values) for name, values in columns.items()}
    return result(variables, _ABOUT, {"round": indices, "client": np.arange(number)})


_ABOUT = {
    "client_alpha": ("alpha of the client", "1"),
    "client_beta": ("beta of the client", "1"),
    "client_distance": ("distance out of the plane", "1"),
}
