"""Models projected on planes: those of a round, and the trajectory of a run with its clients."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import torch
import xarray as xr

from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.landscapes.sweeps import client_sweep
from drift.analyses.landscapes.trajectory_points import trajectory_sweep
from drift.analyses.per_round import result
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.row_matrices import stacked
from landscape.geometry.planes import project
from landscape.model.batchnorm import Statistics
from landscape.results.netcdf_files import Partial
from landscape.sweep.grid import Sweep, axis, make_mark


@analysis("mark", "alpha", "beta", cost="evaluations")
def projected_plane(
    run: Run,
    *,
    round: int = -1,
    clients: Sequence[int] | None = None,
    points: int = 21,
    margin: float = 0.2,
    split: str = "test",
    partial: Partial | None = None,
) -> xr.Dataset:
    """Loss and error on the plane through three clients, and the projections of all models of the round on it.

    Every model has a place, the foot of its projection, a distance out of the plane, its own loss, and the loss at its
    foot, which a picture shows there. Where the two losses differ the plane does not represent that model.

    Source: IMA paper, section 3.2 (the plane); the comparison is this project's.

    Args:
        run: Run to analyse.
        round: Round that kept its clients; negative counts from the last one that did.
        clients: Ids of the three clients in the plane; the first three with samples by default.
        points: Grid points per axis.
        margin: How far the grid extends beyond the feet of all models on each side, as a fraction of the box's width.
        split: Samples that loss (nats) and error (fraction) are averaged over.
        partial: Unfinished result to resume.

    Returns:
        As `round_plane`; the marks are all clients, "start" (the model they received) and "global" (the new model),
        with distance (mark,), in_plane (mark,), 1 for the three, and foot_loss and foot_error (mark,).

    Raises:
        LookupError: If the round kept no clients.
        ValueError: If the cohort does not hold three such clients.
    """
    record, ids, sweep = client_sweep(run, round, clients, points=points, margin=margin)
    buffers = torch.cat([record.client_buffers, record.start_buffers[None], record.end_buffers[None]])
    models = stacked([record.kept("clients"), record.kept("start")[None], record.kept("end")[None]])
    labels = [*(f"client {client}" for client in record.ids.tolist()), "start", "global"]
    projected = project(models, sweep, labels=labels)
    count = len(labels)
    inside = np.array([client in ids for client in record.ids.tolist()] + [False, False])
    with_feet = _with_feet(sweep, models, buffers, projected, inside, points, margin)
    evaluated = evaluate_on(run, with_feet, partial, split=split)
    dataset = evaluated.isel(mark=slice(count))
    for name in ("loss", *(("error",) if "mark_error" in evaluated else ())):
        about = {**evaluated[name].attrs, "long_name": f"{name} at the foot of the projection"}
        dataset[f"foot_{name}"] = ("mark", evaluated[f"mark_{name}"].values[count:], about)
    dataset["distance"] = ("mark", projected.distance.values, projected.distance.attrs)
    dataset["in_plane"] = ("mark", inside.astype(float))
    about = {"in_plane": ("the plane goes through the model", "1")}
    source = "IMA paper, section 3.2"
    return result(dataset, about, analysis="projected_plane", source=source, round=record.index)


def _with_feet(
    sweep: Sweep,
    models: torch.Tensor,
    buffers: torch.Tensor,
    projected: xr.Dataset,
    inside: np.ndarray,
    points: int,
    margin: float,
) -> Sweep:
    """The plane in a box around the feet of all models; the marks are the models, at their feet, then the feet.

    Models that the plane goes through, `inside` (m,), are their own feet, with their own batch statistics.
    """
    feet = np.stack([projected.mark_alpha.values, projected.mark_beta.values], axis=1)
    identity = np.eye(len(models), len(sweep.basis) + len(models), k=len(sweep.basis))
    origin, axes = (
        np.pad(array, [(0, 0)] * (array.ndim - 1) + [(0, len(models))]) for array in (sweep.origin, sweep.axes)
    )
    names = [str(name) for name in projected.mark.values]
    rows = np.concatenate([identity, np.where(inside[:, None], identity, origin + feet @ axes)])
    labels = [*names, *(f"foot of {name}" for name in names)]
    marks = [make_mark(*mark) for mark in zip(labels, [*feet.tolist()] * 2, rows.tolist(), strict=True)]
    low, high = feet.min(0), feet.max(0)
    width = np.where(high > low, high - low, (high - low).max())
    middle, half = (low + high) / 2, (0.5 + margin) * width
    coords = {name: axis(middle[i] - half[i], middle[i] + half[i], points) for i, name in enumerate(("alpha", "beta"))}
    return replace(
        sweep,
        basis=torch.cat([sweep.basis, models.to(sweep.basis)]),
        origin=origin,
        axes=axes,
        coords=coords,
        marks=tuple(marks),
        buffers=None if sweep.buffers is None else torch.cat([sweep.buffers, buffers.to(sweep.buffers)]),
    )


@analysis("mark", "alpha", "beta", cost="evaluations")
def trajectory_plane(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    clients: bool = False,
    points: int = 21,
    margin: float = 0.3,
    split: str = "test",
    samples: int | None = None,
    statistics: Statistics | None = None,
    folds: int = 0,
    partial: Partial | None = None,
) -> xr.Dataset:
    """Loss and error on the plane of the first two principal components of the global models, which are its marks.

        run.cached(drift.trajectory_plane, points=11).plot()

    Source: Li et al. 2018, section 7.2; the clients on it: this project.

    Args:
        run: Run to analyse.
        rounds: Rounds of the global models; by default at most 20, evenly spaced.
        clients: Also project the client models of those rounds that kept them; the box then contains them.
        points: Grid points per axis.
        margin: How far the grid extends beyond the trajectory on each side, as a fraction of the box's width.
        split: Samples that loss (nats) and error (fraction) are averaged over.
        samples, statistics, folds: As in `round_plane`.
        partial: Unfinished result to resume.

    Returns:
        The surface, with mark_round and distance (mark,), the distance of the models out of the plane; the shares of
        the variance, explained_alpha and explained_beta, are in attrs. With clients also client_alpha, client_beta
        and client_distance (round, client), NaN for clients that were not in the cohort.

    Raises:
        LookupError: If the run kept fewer than two global models, or no clients that were asked for.
    """
    path = trajectory_sweep(run, rounds, clients, points=points, margin=margin)
    dataset = evaluate_on(run, path.sweep, partial, split=split, samples=samples, statistics=statistics, folds=folds)
    dataset["mark_round"] = ("mark", path.rounds)
    dataset["distance"] = project(path.models, path.sweep, labels=path.labels).distance
    dataset = dataset.merge(path.clients, combine_attrs="override")
    return result(dataset, {"mark_round": ("round of the mark", "rounds")}, analysis="trajectory_plane")
