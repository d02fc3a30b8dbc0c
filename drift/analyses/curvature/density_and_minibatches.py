"""Curvature of a run's global models: spectral density, and sharpness of minibatches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.per_round import GlobalModel, global_model, join_global_models
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.curvature.density import density
from landscape.curvature.minibatch_sharpness import minibatch_sharpness


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
        run: Run to analyse.
        round: Round of the global model; negative counts from the last one kept.
        split: Samples that the Hessian is averaged over.
        steps, probes, points, curvature: As in `landscape.density`.

    Raises:
        LookupError: If the round kept no global model.
    """
    model = global_model(run, round)
    options = {"steps": steps, "probes": probes, "points": points, "curvature": curvature}
    dataset = model.measure(density, split=split, seed=model.index, **options)
    return dataset.assign_attrs(analysis="hessian_density", round=model.index, split=split)


@analysis("round", "mark", cost="curvature")
def density_rounds(
    run: Run, *, rounds: Sequence[int] | None = None, split: str = "train", points: int = 501, **options: Any
) -> xr.Dataset:
    """Spectral densities at the global models of several rounds.

    The grid differs between rounds: density and eigenvalue are over round and mark, the position in the grid.

    Args:
        run: Run to analyse.
        split: Samples that the numbers are averaged over.
        points: Values of the eigenvalue axis.
        rounds: Rounds of the global models; by default three, evenly spaced.
        options: `steps`, `probes` and `curvature` of `hessian_density`.
    """

    def by_position(model: GlobalModel) -> xr.Dataset:
        dataset = hessian_density(run, round=model.index, split=split, points=points, **options)
        grid = ("mark", dataset.value.values, dataset.value.attrs)
        dataset = dataset.drop_vars("value").rename_dims(value="mark")
        return dataset.assign(eigenvalue=grid).assign_coords(mark=np.arange(points))

    source = "Ghorbani et al. 2019, algorithm 1"
    return join_global_models(run, rounds, 3, by_position, analysis="density_rounds", source=source, split=split)


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
    """Largest Hessian eigenvalue of minibatches at global models over rounds, their median, and that of all data.

    Source: LSS paper, Table 7 (median over batches), and its published code (full data).

    Args:
        run: Run to analyse.
        rounds: Rounds of the global models; by default five, evenly spaced.
        split: Samples that batches are drawn from.
        batch, batches: Samples in a batch, and number of batches.
        full: Also the eigenvalue of the mean loss over the whole split.
        curvature: "hessian" or "gauss_newton".
    """

    def compute(model: GlobalModel) -> xr.Dataset:
        return model.measure(minibatch_sharpness, batch=batch, batches=batches, full=full, **shared)

    shared = {"split": split, "curvature": curvature}
    attrs = {"source": "LSS paper, Table 7", **shared, "batch_size": batch}
    return join_global_models(run, rounds, 5, compute, analysis="sharpness_rounds", **attrs)


@analysis("batch", cost="curvature")
def round_sharpness(run: Run, *, round: int = -1, **options: Any) -> xr.Dataset:
    """Largest Hessian eigenvalue of minibatches at the global model of one round; options as `sharpness_rounds`.

    Args:
        run: Run to analyse.
        round: Of the global model; negative numbers count from the last round that kept it.
        options: As `landscape.minibatch_sharpness` takes them.
    """
    return sharpness_rounds(run, rounds=[round], **options).isel(round=0)
