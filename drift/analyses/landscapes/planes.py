"""Planes and lines through the recorded models of a run, and random planes around one."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import xarray as xr

from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.landscapes.sweeps import client_sweep, global_sweep
from drift.analyses.per_round import global_model, selected_rounds
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.geometry.directions import random_plane as random_sweep
from landscape.geometry.lines import line
from landscape.model.batchnorm import Statistics, calibration_of, recalibrate, usual_statistics
from landscape.results.netcdf_files import Partial
from landscape.sweep.precision import Precision


@analysis("mark", "alpha", "beta", cost="evaluations")
def round_plane(
    run: Run,
    *,
    round: int = -1,
    clients: Sequence[int] | None = None,
    points: int = 21,
    margin: float = 0.3,
    box: str = "marks",
    tolerance: float | None = None,
    split: str = "test",
    samples: int | None = None,
    statistics: Statistics | None = None,
    precision: Precision = "exact",
    folds: int = 0,
    partial: Partial | None = None,
) -> xr.Dataset:
    """Loss and error on the plane through three client models of one round.

        ds = run.cached(drift.round_plane, round=-1, points=11)
        ds.mark_loss.to_series()  # of the three clients and their mean
        ds.plot()

    Source: IMA paper, section 3.2, Fig. 1.

    Args:
        run: Run to analyse.
        round: Round that kept its clients; negative counts from the last one that did.
        clients: Ids of three clients of its cohort; the first three with samples by default.
        points: Grid points per axis.
        margin: How far the grid extends beyond the models on each side, as a fraction of the box's width.
        box: "marks" for their bounding box, "symmetric" for a square around their mean.
        tolerance: Largest accepted error of the log loss, as a share of its range, at points that are interpolated
            instead of evaluated, as in `landscape.interpolated_surface`; by default every point is evaluated.
        split: Samples that loss (nats) and error (fraction) are averaged over.
        samples: Largest number of samples, selected at random, the same in every call; by default all.
        statistics: Of batch normalisation between the models: "recomputed" from training samples at every point (the
            default), "averaged" like the models, or "own", those of the untrained task; stated in the attributes.
        precision: "fast" multiplies in bfloat16 and states the error, as `surface` does; not with a tolerance.
        folds: Parts of the samples from which the sampling error follows, as in `landscape.surface`; by default none.
        partial: Unfinished result to resume.

    Raises:
        LookupError: If the round kept no clients.
        ValueError: If the cohort does not hold three such clients.
    """
    record, _, sweep = client_sweep(run, round, clients, points=points, margin=margin, box=box)
    options: dict[str, Any] = {"samples": samples, "statistics": statistics, "precision": precision, "folds": folds}
    dataset = evaluate_on(run, sweep, partial, split=split, tolerance=tolerance, **options)
    return dataset.assign_attrs(analysis="round_plane", round=record.index)


@analysis("mark", "alpha", "beta", cost="evaluations")
def global_plane(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    points: int = 21,
    margin: float | tuple[float, float] = 0.3,
    split: str = "test",
    statistics: Statistics | None = None,
    folds: int = 0,
    partial: Partial | None = None,
) -> xr.Dataset:
    """Loss and error on the plane through the global models of three rounds, the last three by default.

    Source: IMA paper, section 3.2, Fig. 1.

    Args:
        run: Run to analyse.
        rounds: The three rounds; the last three by default.
        points: Evaluations per axis, both ends included.
        margin: Distance from the models to the edge of the grid, as in `landscape.plane`.
        split: Samples that the numbers are averaged over.
        statistics: Of batch normalisation, as in `landscape.evaluate`.
        folds: As in `round_plane`.
    """
    indices, sweep = global_sweep(run, rounds, points=points, margin=margin)
    dataset = evaluate_on(run, sweep, partial, split=split, statistics=statistics, folds=folds)
    return dataset.assign_attrs(analysis="global_plane", round=indices[-1])


@analysis("mark", "t", cost="evaluations")
def global_line(
    run: Run,
    *,
    rounds: tuple[int, int] = (-2, -1),
    points: int = 41,
    split: str = "test",
    statistics: Statistics | None = None,
    partial: Partial | None = None,
) -> xr.Dataset:
    """Loss and error on the line from the global model of one round (t = 0) to that of another (t = 1).

        ds = run.cached(drift.global_line, rounds=(0, -1))
        ds.plot()

    Source: IMA paper, Fig. 5b.

    Args:
        run: Run to analyse.
        rounds: The two rounds; negative ones count from the last.
        points: Evaluations per axis, both ends included.
        split: Samples that the numbers are averaged over.
        statistics: Of batch normalisation, as in `landscape.evaluate`.

    Raises:
        LookupError: If a round did not keep its global model.
        ValueError: If there are not two different rounds.
    """
    if len(indices := selected_rounds(run, "globals", rounds, None)) != 2:
        raise ValueError(f"rounds are {list(rounds)}; a line joins the global models of two different ones.")
    first, second = map(run.round, indices)
    sweep = line(first.kept("end"), second.kept("end"), points=points)
    dataset = evaluate_on(run, sweep, partial, split=split, statistics=statistics)
    return dataset.assign_attrs(analysis="global_line", first=first.index, second=second.index)


@analysis("mark", "t", cost="evaluations")
def average_line(
    run: Run,
    *,
    window: int = 5,
    points: int = 41,
    split: str = "test",
    statistics: Statistics | None = None,
    partial: Partial | None = None,
) -> xr.Dataset:
    """Loss and error on the line from the last aggregate (t = 0) to the mean of the last `window` aggregates (t = 1).

        ds = run.cached(drift.average_line, window=3)
        ds.plot()

    Fewer are averaged if fewer successive ones were kept; the attribute `window` is their number. Aggregates are those
    before IMA's averaging; for other methods they are the global models, so that t = 1 is the model that IMA would end
    with. Batch statistics as in `round_plane`; those of the mean are recomputed too.

    Source: IMA paper, Figs. 5c and 7c.

    Args:
        run: Run to analyse.
        window: Aggregates that are averaged, at most.
        points: Evaluations per axis, both ends included.
        split: Samples that the numbers are averaged over.
        statistics: Of batch normalisation, as in `landscape.evaluate`.
    """
    available = run.kept("globals")
    back = [index for steps, index in enumerate(reversed(available)) if index == available[-1] - steps]
    indices = back[:window][::-1]
    if len(indices) < 2:
        raise ValueError(
            f"run {run.name} kept {len(indices)} of its last global models; averaging needs two successive ones or "
            "more. Train with --set keep.globals='last 5'."
        )
    records = [run.round(index) for index in indices]
    aggregates = torch.stack([record.extras.get("aggregate", record.kept("end")) for record in records])
    buffers = torch.stack([record.end_buffers for record in records])
    mean, mean_buffers = aggregates.mean(0), buffers.mean(0)
    if (statistics or usual_statistics(run.task)) == "recomputed":
        mean_buffers = recalibrate(run.task, mean, mean_buffers, calibration_of(run.task, split))
    sweep = line(aggregates[-1], mean, points=points, buffers=torch.stack([buffers[-1], mean_buffers]))
    dataset = evaluate_on(run, sweep, partial, split=split, statistics=statistics)
    return dataset.assign_attrs(analysis="average_line", window=len(indices))


@analysis("mark", "alpha", "beta", cost="evaluations")
def random_plane(
    run: Run,
    *,
    round: int = -1,
    points: int = 21,
    radius: float = 1.0,
    seed: int = 0,
    split: str = "test",
    partial: Partial | None = None,
) -> xr.Dataset:
    """Loss and error on a plane of two filter-normalised random directions around the global model of a round.

    Source: Li et al. 2018, section 4.

    Args:
        run: Run to analyse.
        round: Round of the global model; negative counts from the last one that kept it.
        points, radius: Grid points per axis, and the largest coordinate in filter norms.
        seed: Of the directions: the same for all runs of one model.
        split: Samples that loss (nats) and error (fraction) are averaged over.
        partial: Unfinished result to resume.

    Raises:
        LookupError: If the round kept no global model.
    """
    model = global_model(run, round)
    label = f"round {model.index}"
    sweep = random_sweep(run.task, model.theta, radius=radius, label=label, points=points, seed=seed)
    return evaluate_on(run, sweep, partial, split=split).assign_attrs(analysis="random_plane", round=model.index)
