"""Curvature of a run's global models: spectral density, and sharpness of minibatches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.per_round import buffers_or_none, resolve_round, selected_rounds
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.curvature.density import density
from landscape.curvature.minibatch_sharpness import minibatch_sharpness
from landscape.results.progress import with_progress


@analysis("value", cost="curvature")
def hessian_density(
    run: Run,
    *,
    round: int = -1,
    split: str = "train",
    steps: int = 40,
    probes: int = 3,
    points: int = 501,
    curvature: str = "hessian",
) -> xr.Dataset:
    """Spectral density of the Hessian at the global model of one round.

    Source: Ghorbani et al. 2019, algorithm 1, as in PyHessian.

    Args:
        round: Round of the global model; negative counts from the last one kept.
        split: Samples that the Hessian is averaged over.
        steps, probes, points, curvature: As in `landscape.density`.

    Raises:
        LookupError: If the round kept no global model.
    """
    record = run.round(resolve_round(run, round, "globals"))
    found = density(
        run.task,
        record.kept("end"),
        split=split,
        steps=steps,
        probes=probes,
        points=points,
        curvature=curvature,
        seed=record.index,
        buffers=buffers_or_none(record.end_buffers),
    )
    return found.assign_attrs(analysis="hessian_density", round=record.index, split=split)


@analysis("round", "mark", cost="curvature")
def density_rounds(
    run: Run, *, rounds: Sequence[int] | None = None, split: str = "train", points: int = 501, **options: Any
) -> xr.Dataset:
    """Spectral densities at the global models of several rounds, by default three, evenly spread.

    Each round has a grid of its own: density and eigenvalue over round and mark, the grid's positions.

    Args:
        rounds: Rounds looked at.
        options: `steps`, `probes` and `curvature` of `hessian_density`.
    """
    indices = selected_rounds(run, "globals", rounds, 3)
    found = []
    for index in with_progress(indices, run.context.progress):
        one = hessian_density(run, round=index, split=split, points=points, **options)
        grid = ("mark", one.value.values, one.value.attrs)
        by_position = one.drop_vars("value").rename_dims(value="mark")
        found.append(by_position.assign(eigenvalue=grid).assign_coords(mark=np.arange(points)))
    about = {"analysis": "density_rounds", "source": "Ghorbani et al. 2019, algorithm 1", "split": split}
    joined = xr.concat(found, "round", join="exact", combine_attrs="drop_conflicts")
    return joined.assign_coords(round=indices).assign_attrs(about)


@analysis("round", "batch", cost="curvature")
def sharpness_rounds(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    split: str = "train",
    batch: int = 64,
    batches: int | None = 50,
    full: bool = True,
    curvature: str = "hessian",
) -> xr.Dataset:
    """Largest Hessian eigenvalue of minibatches at global models over rounds: each, their median, and of all data.

    Source: LSS paper, Table 7 (median over batches), and its published code (full data).

    Args:
        rounds: Rounds looked at; by default five, evenly spread.
        split: Samples that batches are drawn from.
        batch, batches: Samples in a batch, and how many are looked at.
        full: Also the mean loss over the whole split.
        curvature: "hessian" or "gauss_newton".
    """
    indices = selected_rounds(run, "globals", rounds, 5)
    found = []
    for index in with_progress(indices, run.context.progress):
        record = run.round(index)
        found.append(
            minibatch_sharpness(
                run.task,
                record.kept("end"),
                split=split,
                batch=batch,
                batches=batches,
                full=full,
                curvature=curvature,
                buffers=buffers_or_none(record.end_buffers),
            )
        )
    joined = xr.concat(found, "round", join="exact", combine_attrs="drop_conflicts").assign_coords(round=indices)
    about = {"analysis": "sharpness_rounds", "source": "LSS paper, Table 7", "split": split, "curvature": curvature}
    return joined.assign_attrs(about, batch_size=batch)


@analysis("batch", cost="curvature")
def round_sharpness(run: Run, *, round: int = -1, **options: Any) -> xr.Dataset:
    """Largest Hessian eigenvalue of minibatches at the global model of one round; options as `sharpness_rounds`."""
    return sharpness_rounds(run, rounds=[round], **options).isel(round=0)
