"""Where the global models of a run and its clients are on the plane in which the global models move most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.analyses.per_round import ABOUT, result, selected_rounds
from drift.runs.registry import LOSS_UNITS, analysis
from drift.runs.run import Run
from drift.store.row_matrices import Rows
from landscape.geometry.planes import project
from landscape.geometry.trajectory import principal_plane
from landscape.results.progress import with_progress
from landscape.sweep.grid import Sweep


@analysis("mark", cost="record")
def trajectory_points(run: Run, *, rounds: Sequence[int] | None = None, clients: bool = False) -> xr.Dataset:
    """Places of the global models on the plane of `trajectory_plane`, without any loss but the recorded one.

    Source: Li et al. 2018, section 7.2.

    Args:
        run: Run to analyse.
        rounds, clients: As in `trajectory_plane`.

    Returns:
        mark_alpha, mark_beta, mark_round, distance and mark_loss (the recorded test loss; NaN where there is none) over
        mark; with clients also client_alpha, client_beta and client_distance (round, client). The shares of the
        variance are in attrs.

    Raises:
        LookupError: As `trajectory_plane`.
    """
    path = trajectory_sweep(run, rounds, clients, points=2, margin=0.3)
    projected = project(path.models, path.sweep, labels=path.labels)
    rounds_read = with_progress(path.rounds, run.context.progress)
    losses = [run.round(index).metrics.get("loss", np.nan) for index in rounds_read]
    variables = {
        "mark_alpha": ("mark", projected.mark_alpha.values, "alpha of the model"),
        "mark_beta": ("mark", projected.mark_beta.values, "beta of the model"),
        "distance": ("mark", projected.distance.values, "distance out of the plane"),
        "mark_round": ("mark", path.rounds, "round of the mark", "rounds"),
        "mark_loss": ("mark", losses, "recorded test loss", LOSS_UNITS),
    }
    dataset = result(variables, None, {"mark": ("mark", path.labels, "model")}, **path.sweep.attrs)
    dataset = dataset.merge(path.clients, combine_attrs="override")
    return dataset.assign_attrs(analysis="trajectory_points", source="Li et al. 2018, section 7.2")


@dataclass(frozen=True)
class Trajectory:
    """The plane of a trajectory.

    Args:
        rounds: Rounds of the global models, R of them.
        models: Global models, shape (R, d).
        sweep: The plane, with the models as marks.
        clients: Places of their clients, as `trajectory_plane` returns them; empty where they are not asked for.
    """

    rounds: list[int]
    models: Tensor
    sweep: Sweep
    clients: xr.Dataset

    @property
    def labels(self) -> list[str]:
        """Names of the marks."""
        return [f"round {index}" for index in self.rounds]


def trajectory_sweep(
    run: Run, rounds: Sequence[int] | None, clients: bool, *, points: int, margin: float
) -> Trajectory:
    """The plane of the global models of some rounds, by default of at most 20, with their clients in its box if asked.

    Raises:
        LookupError: As `trajectory_plane`.
    """
    indices = selected_rounds(run, "globals", rounds, 20)
    if len(indices) < 2:
        raise LookupError(f"run {run.name} kept {len(indices)} global models; train it with --set keep.globals=all.")
    records = [run.round(index) for index in indices]
    models = torch.stack([record.kept("end") for record in records])
    labels = [f"round {index}" for index in indices]
    sweep = principal_plane(models, points=points, margin=margin, labels=labels)
    if not clients:
        return Trajectory(indices, models, sweep, xr.Dataset())
    projections = _project_clients(run, indices, sweep)
    corners = np.stack([projections[name].values.ravel() for name in ("client_alpha", "client_beta")], axis=1)
    inside = corners[np.isfinite(corners).all(1)]
    sweep = principal_plane(models, points=points, margin=margin, labels=labels, within=inside)
    return Trajectory(indices, models, sweep, projections)


def _project_clients(run: Run, rounds: Sequence[int], sweep: Sweep) -> xr.Dataset:
    """Places of the clients of some rounds on a plane; one round is in memory at a time."""
    indices = sorted(set(rounds) & set(run.kept("clients")))
    if not indices:
        raise LookupError(f"run {run.name} kept no clients of these rounds; train it with --set keep.clients=all.")
    number = run.experiment.clients.number
    columns = {name: np.full((len(indices), number), np.nan) for name in ABOUT["trajectory_points"]}
    for row, index in enumerate(indices):
        record = run.round(index)
        ids = record.ids.numpy()
        if not len(ids):
            continue
        on_plane = project(Rows(record.kept("clients")), sweep)
        for name, source in zip(ABOUT["trajectory_points"], ("mark_alpha", "mark_beta", "distance"), strict=True):
            columns[name][row, ids] = on_plane[source].values
    variables = {name: (("round", "client"), values) for name, values in columns.items()}
    return result(variables, ABOUT["trajectory_points"], {"round": indices, "client": np.arange(number)})
