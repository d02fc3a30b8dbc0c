"""Curvature of global models: largest Hessian eigenvalues, also of layers and minibatches, their density and traces."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
import xarray as xr

from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.per_round import GlobalModel, global_model, join_global_models, result
from drift.analyses.selected_samples import stated_subset
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.curvature.hessian import top_eigenvalues
from landscape.curvature.layer_blocks import layer_eigenvalues
from landscape.curvature.minibatch_sharpness import minibatch_sharpness
from landscape.geometry.directions import slice_along


@analysis("round", "rank", cost="curvature")
def eigen_rounds(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    k: int = 5,
    split: str = "train",
    samples: int | None = None,
    tolerance: float = 1e-3,
    which: str = "magnitude",
    curvature: str = "hessian",
    backend: str = "native",
) -> xr.Dataset:
    """Largest Hessian eigenvalues of the global model over rounds, and the ratio of the first to the k-th.

        ds = run.cached(drift.eigen_rounds, rounds=[0, -1], k=2)
        ds.eigenvalue.sel(rank=1)

    An eigenvalue that did not converge is NaN (see residual and converged); one not told from 0 is 0, without ratio.

    Source: FedLAW paper, Fig. 10.

    Args:
        run: Run to analyse.
        rounds, k: Rounds of the global models, by default five, evenly spaced; number of eigenvalues per round.
        split: Samples that the Hessian is averaged over.
        samples: Largest number of samples, as in `round_plane`; by default all.
        tolerance: Bound on the relative residual, as in `landscape.top_eigenvalues`.
        which: "magnitude", "largest", "smallest" or "both", as in `landscape.top_eigenvalues`.
        curvature: "hessian" or "gauss_newton".
        backend: "native", "curvlinops" or "pyhessian", as in `landscape.top_eigenvalues`.
    """

    def compute(model: GlobalModel) -> xr.Dataset:
        dataset = model.measure(top_eigenvalues, k=k, tolerance=tolerance, split=selected, **shared)
        return dataset[["eigenvalue", "residual", "converged"]].drop_attrs(deep=False)

    shared = {"which": which, "curvature": curvature, "backend": backend}
    selected, stated = stated_subset(run.task, split, samples)
    attrs = {"source": "FedLAW paper, Fig. 10", "split": split, **stated, **shared}
    dataset = join_global_models(run, rounds, 5, compute, analysis="eigen_rounds", **attrs)
    values = dataset.eigenvalue.where(dataset.eigenvalue != 0)
    dataset["ratio"] = values.isel(rank=0, drop=True) / values.isel(rank=-1, drop=True)
    return result(dataset, {"ratio": (f"lambda_1 / lambda_{k}", "1")})


@analysis("mark", "t", cost="curvature")
def eigen_slice(
    run: Run, *, round: int = -1, radius: float = 0.5, points: int = 41, split: str = "train"
) -> xr.Dataset:
    """Loss and error along the unit eigenvector of the largest Hessian eigenvalue of a global model.

    Source: FedLAW paper, Fig. 4 right.

    Args:
        run: Run to analyse.
        round: Round of the global model.
        radius, points: The slice reaches from -radius to radius (parameter-space length).
        split: Samples of the Hessian and of the slice.

    Raises:
        ValueError: If the eigenvector did not converge.
    """
    model = global_model(run, round)
    top = model.measure(top_eigenvalues, k=1, split=split, vectors=True)
    if not top.converged.item():
        raise ValueError(
            f"the largest eigenvalue at round {model.index} did not converge (residual {top.residual.item():.2g} after "
            f"{top.attrs['products']} products), so there is no direction; choose another round or split."
        )
    direction = torch.from_numpy(top.eigenvector.isel(rank=0).values).to(model.theta)
    sweep = slice_along(model.theta, direction, points=points, radius=radius)
    dataset = evaluate_on(run, sweep, split=split).assign(eigenvalue=top.eigenvalue.isel(rank=0, drop=True))
    return dataset.assign_attrs(analysis="eigen_slice", source="FedLAW paper, Fig. 4 right", round=model.index)


@analysis("round", "layer", cost="curvature")
def layer_rounds(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    split: str = "train",
    which: str = "magnitude",
    curvature: str = "hessian",
    tolerance: float = 1e-2,
    max_products: int = 100,
) -> xr.Dataset:
    """Largest eigenvalue of the Hessian's diagonal block of each parameter tensor, at global models over rounds.

    With ReLU the outputs are piecewise linear in one tensor, so that both kinds of curvature are equal.

    Source: this project; the blocks of `landscape.layer_eigenvalues`.

    Args:
        run: Run to analyse.
        rounds: Rounds of the global models; by default three, evenly spaced.
        split: Samples that the loss is averaged over.
        which: "magnitude", "largest" or "smallest".
        curvature: "hessian" or "gauss_newton".
        tolerance, max_products: Of one block.

    Returns:
        Dataset with eigenvalue (NaN where not converged), residual and converged (round, layer), and size (layer) in
        parameters.

    Raises:
        LookupError: If the run kept no global model.
        ValueError: If the curvature is unknown.
    """

    def compute(model: GlobalModel) -> xr.Dataset:
        limits = {"tolerance": tolerance, "max_products": max_products}
        return model.measure(layer_eigenvalues, seed=model.index, **limits, **shared)

    shared = {"split": split, "which": which, "curvature": curvature}
    dataset = join_global_models(run, rounds, 3, compute, analysis="layer_rounds", source="this project", **shared)
    return dataset.assign(size=dataset["size"].isel(round=0, drop=True))


@analysis("round", "batch", cost="curvature")
def sharpness_rounds(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    split: str = "train",
    batch: int = 64,
    batches: int | None = 50,
    full: bool = True,
    which: str = "magnitude",
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
        which: "magnitude", "largest" or "smallest".
        curvature: "hessian" or "gauss_newton".
    """

    def compute(model: GlobalModel) -> xr.Dataset:
        return model.measure(minibatch_sharpness, batch=batch, batches=batches, full=full, **shared)

    shared = {"split": split, "which": which, "curvature": curvature}
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
