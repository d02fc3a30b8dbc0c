"""Spectral densities and traces of the Hessian at global models."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.per_round import GlobalModel, global_model, join_global_models, result
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.curvature.density import density
from landscape.curvature.hessian import CURVATURES
from landscape.curvature.trace import trace


@analysis("round", cost="curvature")
def trace_rounds(
    run: Run, *, rounds: Sequence[int] | None = None, split: str = "train", products: int = 60, seed: int = 0
) -> xr.Dataset:
    """Trace and norm of the Hessian and of the Gauss-Newton matrix of the global model over rounds.

    Their difference is the curvature of the model itself, weighted by its remaining errors.

    Source: Meyer et al. 2021, Hutch++, algorithm 1; see `landscape.trace`.

    Args:
        run: Run to analyse.
        rounds: Rounds of the global models; by default five, evenly spaced.
        split: Samples that the loss is averaged over.
        products: Largest number of matrix-vector products per matrix; exact where the model has no more parameters.
        seed: Of the random vectors.

    Returns:
        Dataset with trace, standard_error, frobenius and frobenius_error (round,) of the Hessian, and the same of the
        Gauss-Newton matrix with the prefix gauss_newton_; parameters (), d.

    Raises:
        LookupError: If the run kept no global model.
    """

    def compute(model: GlobalModel) -> xr.Dataset:
        joined = xr.Dataset()
        for curvature, prefix in zip(CURVATURES, ("", "gauss_newton_"), strict=True):
            estimated = model.measure(trace, split=split, curvature=curvature, products=products, seed=seed)
            joined = joined.merge(estimated.rename({name: f"{prefix}{name}" for name in estimated.data_vars}))
        return joined

    source = "Meyer et al. 2021, Hutch++, algorithm 1"
    dataset = join_global_models(run, rounds, 5, compute, analysis="trace_rounds", source=source, split=split)
    dataset["parameters"] = run.task.layout.size
    return result(dataset, {"parameters": ("parameters", "1")})


@analysis("value", "outlier_rank", cost="curvature")
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


@analysis("round", "mark", "outlier_rank", cost="curvature")
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
