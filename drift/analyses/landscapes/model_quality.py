"""What the models of a run are worth beside their accuracy: robustness, sharpness, size, and use to other clients."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.analyses.evaluate_on import evaluate_on, sharing
from drift.analyses.per_round import buffers_or_none, resolve_round
from drift.runs.registry import analysis
from drift.runs.run import Run
from drift.store.round_record import Round
from landscape.geometry.scaling import scaling
from landscape.measures import robustness, sharpness
from landscape.measures.norms import weight_histogram
from landscape.model.samples import Samples
from landscape.results.progress import with_progress
from landscape.results.zarr_files import Partial
from landscape.sweep.evaluate import evaluate


@analysis("mark", "t", cost="evaluations")
def scale_curve(
    run: Run,
    *,
    round: int = -1,
    low: float = 0.5,
    high: float = 1.2,
    points: int = 36,
    split: str = "test",
    partial: Partial | None = None,
) -> xr.Dataset:
    """Loss and error of a global model times gamma, over t = gamma.

    Source: FedLAW paper, Fig. 4 left.

    Args:
        round: Round of the global model; negative counts from the last one that kept it.
        low, high, points: Range of gamma and evaluations in it.
        split: Samples that loss (nats) and error (fraction) are averaged over.
        partial: Where an unfinished result lies.
    """
    record = _record(run, round)
    sweep = scaling(record.kept("end"), low=low, high=high, points=points, buffers=buffers_or_none(record.end_buffers))
    found = evaluate_on(run, sweep, split, partial)
    return found.assign_attrs(analysis="scale_curve", round=record.index)


@analysis("round", "value", cost="record")
def weight_histograms(
    run: Run, *, rounds: Sequence[int] = (-1,), bins: int = 101, limit: float | None = None
) -> xr.Dataset:
    """Histograms of the parameters of global models over rounds, and how many are near zero.

    Source: FedLAW paper, Fig. 4 middle.

    Args:
        rounds: Rounds of the global models; negative ones count from the last that kept it.
        bins, limit: As in `landscape.measures.norms.weight_histogram`; the largest magnitude of all models is the
        default limit.

    Returns:
        Dataset with count (round, value), near_zero (round), outside (round) and norm (round), and parameters (), d.
    """
    records = [_record(run, index) for index in with_progress(rounds, run.context.progress)]
    models = torch.stack([record.kept("end") for record in records])
    reach = limit if limit is not None else float(models.abs().max()) or 1.0
    found = xr.concat([weight_histogram(theta, bins, reach) for theta in models], "round", join="exact")
    found = found.assign_coords(round=[record.index for record in records])
    total = ((), models.shape[1], {"long_name": "parameters", "units": "1"})
    return found.assign(parameters=total).assign_attrs(analysis="weight_histograms", bin_width=2 * reach / bins)


@analysis("value", "draw", cost="evaluations")
def noise_robustness(
    run: Run,
    *,
    round: int = -1,
    levels: Sequence[float] = robustness.LEVELS,
    draws: int = 3,
    split: str = "test",
) -> xr.Dataset:
    """Accuracy lost by a global model under uniform noise on the inputs, before they are normalised.

    Where the dataset holds real numbers, its range from smallest to largest training value stands for [0, 1].

    Source: LSS paper, Table 6; see `landscape.measures.robustness.noise_robustness`.

    Args:
        round: Round of the global model; negative counts from the last one that kept it.
        levels: Noise amplitudes for inputs in [0, 1].
        draws: Noises that the drop is averaged over.
        split: Samples that the accuracy is taken over.
    """
    record = _record(run, round)
    mean, std = run.dataset.normalisation
    options = {
        "mean": mean,
        "std": std,
        "levels": levels,
        "draws": draws,
        "split": split,
        "progress": run.context.progress,
    }
    buffers = buffers_or_none(record.end_buffers)
    found = robustness.noise_robustness(run.task, record.kept("end"), buffers=buffers, **options)  # type: ignore[arg-type]
    return found.assign_attrs(round=record.index)


@analysis("value", cost="gradients")
def ball_sharpness(
    run: Run,
    *,
    round: int = -1,
    radii: Sequence[float] = (0.05, 0.1, 0.2),
    steps: int = 10,
    directions: int = 10,
    adaptive: bool = False,
    split: str = "train",
) -> xr.Dataset:
    """Worst, one-step and mean rise of the loss in balls around a global model, over their radius (value).

    Source: methods.md 2.1; see `landscape.measures.sharpness.ball_sharpness`.

    Args:
        round: Round of the global model; negative counts from the last one that kept it.
        radii: Of the balls, parameter-space length (adaptive: multiples of the parameters).
        steps, directions: Gradients of the ascent, random points of the mean.
        split: Samples that the loss is averaged over.
    """
    record = _record(run, round)
    theta, buffers = record.kept("end"), buffers_or_none(record.end_buffers)
    found = [
        sharpness.ball_sharpness(
            run.task,
            theta,
            radius=radius,
            steps=steps,
            directions=directions,
            adaptive=adaptive,
            split=split,
            buffers=buffers,
            **sharing(run, part, len(radii)),
        )
        for part, radius in enumerate(radii)
    ]
    amplitude = ("value", np.asarray(radii, dtype=float), {"long_name": "radius of the ball", "units": "1"})
    joined = xr.concat(found, "value", join="exact", combine_attrs="drop_conflicts").assign_coords(value=amplitude)
    return joined.assign_attrs(round=record.index)


@analysis("client", "holder", cost="evaluations")
def three_accuracies(run: Run, *, round: int = -1, criterion: str = "label") -> xr.Dataset:
    """Accuracy of the global model, of the local ones, and of the local ones on data of the client they suit worst.

    a_ij is the accuracy of client i's model, before aggregation, on client j's data. By "label" that is the test set
    with its classes in the shares of client j's training data; by "train" client j's training data themselves, which
    model j has seen. worst_ood is the mean over i of the smallest a_ij with j != i, ood_min the smallest of all.
    ood_mean is the released code's measure, model i on the data of all other clients joined.

    Source: LSS paper, Fig. 6; methods.md 3.5.

    Args:
        round: Round that kept its clients; negative counts from the last one that did.
        criterion: "label" or "train".

    Returns:
        Dataset with global_accuracy (), local (client) on the test set, averaged_local (), ood (client, holder) (a_ij),
        worst_ood (), ood_min () and ood_mean (), fractions; NaN where a cohort has one client or a client no data.

    Raises:
        LookupError: If the round kept no clients.
        ValueError: If the criterion is unknown.
    """
    if criterion not in ("label", "train"):
        raise ValueError(f"criterion is {criterion!r}; accepted: label, train.")
    record = run.round(resolve_round(run, round, "clients"))
    every = torch.cat([record.kept("end")[None], record.kept("clients")])
    buffers = torch.cat([record.end_buffers[None], record.client_buffers]) if len(record.end_buffers) else None
    by_class = _by_class(run, every, buffers)
    on_test = _weighted(by_class, np.bincount(run.task.samples["test"].targets, minlength=by_class.shape[1])[None])[
        :, 0
    ]
    ids = record.ids.tolist()
    parts = run.parts_in(record.index)
    counts = np.stack([np.bincount(run.labels[parts[i]], minlength=by_class.shape[1]) for i in ids])
    held = None if buffers is None else buffers[1:]
    matrix = _weighted(by_class[1:], counts) if criterion == "label" else _on_training(run, record, every[1:], held)
    values = {
        "global_accuracy": ((), on_test[0], "accuracy of the global model"),
        "local": ("client", on_test[1:], "accuracy of a local model"),
        "averaged_local": ((), on_test[1:].mean(), "mean accuracy of local models"),
        "ood": (("client", "holder"), matrix, "accuracy on a client's data"),
        **_out_of_distribution(matrix, counts.sum(1)),
    }
    return xr.Dataset(
        {name: (dims, value, {"long_name": text, "units": "fraction"}) for name, (dims, value, text) in values.items()},
        coords={"client": ids, "holder": ids},
        attrs={
            "analysis": "three_accuracies",
            "source": "LSS paper, Fig. 6",
            "criterion": criterion,
            "round": record.index,
        },
    )


def _by_class(run: Run, models: Tensor, buffers: Tensor | None) -> np.ndarray:
    """Accuracy (n, C) of models (n, d) on each class of the test set; NaN for classes that it does not hold."""
    samples = run.task.samples["test"]
    found = np.full((len(models), len(run.dataset.classes)), np.nan)
    for label in with_progress(samples.targets.unique().tolist(), run.context.progress):
        found[:, label] = _accuracies(run, models, samples[samples.targets == label], buffers)
    return found


def _on_training(run: Run, record: Round, models: Tensor, buffers: Tensor | None) -> np.ndarray:
    """Accuracy (m, m) of models (m, d) on the training data of clients; NaN where a client has none."""
    found = np.full((len(record.ids), len(record.ids)), np.nan)
    for column, client in enumerate(with_progress(record.ids.tolist(), run.context.progress)):
        samples = run.client_samples(client, record.index)
        if len(samples):
            found[:, column] = _accuracies(run, models, samples, buffers)
    return found


def _accuracies(run: Run, models: Tensor, samples: Samples, buffers: Tensor | None) -> np.ndarray:
    coefficients = torch.eye(len(models), dtype=torch.float64)
    found = evaluate(
        run.task,
        models,
        coefficients,
        split=samples,
        metrics=("error",),
        buffers=buffers,
        workers=run.context.pool or 1,
    )
    return 1 - found["error"].numpy()


def _weighted(by_class: np.ndarray, counts: np.ndarray) -> np.ndarray:
    """Accuracy (n, m) of n models on m mixtures of classes (m, C); classes that were not tested are left out."""
    known = np.isfinite(by_class[0])
    mixture = np.where(known, counts, 0).astype(float)
    total = mixture.sum(1, keepdims=True)
    shares = np.divide(mixture, total, out=np.full_like(mixture, np.nan), where=total > 0)
    return np.nan_to_num(by_class) @ shares.T


def _out_of_distribution(matrix: np.ndarray, sizes: np.ndarray) -> dict[str, tuple[tuple[()], float, str]]:
    """worst_ood, ood_min and ood_mean of accuracies (m, m) on clients with `sizes` samples."""
    others = np.where(np.eye(len(matrix), dtype=bool), np.nan, matrix)[:, sizes > 0]
    rows = others[np.isfinite(others).any(1)]
    weights = np.where(np.isfinite(rows), sizes[sizes > 0], 0)
    if not len(rows):
        worst = lowest = joined = np.nan
    else:
        worst, lowest = np.nanmin(rows, axis=1).mean(), np.nanmin(rows)
        joined = ((np.nan_to_num(rows) * weights).sum(1) / weights.sum(1)).mean()
    return {
        "worst_ood": ((), worst, "mean accuracy on the worst other client"),
        "ood_min": ((), lowest, "lowest accuracy on another client"),
        "ood_mean": ((), joined, "mean accuracy on all other clients"),
    }


def _record(run: Run, index: int) -> Round:
    return run.round(resolve_round(run, index, "globals"))
