"""Differences of losses on the same samples, with their standard errors, and which of them are clear."""

from statistics import NormalDist

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.analyses.evaluate_on import evaluate_models
from drift.analyses.selected_samples import selected_samples
from drift.runs.run import Run
from drift.store.round_record import Round
from drift.store.row_matrices import stacked
from figures.page import sampled
from figures.page.diagnosis_text import number as in_words
from landscape.model.held_values import digest
from landscape.model.losses import group_weights
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.surfaces.sampling_error import sample_folds

PARTS = 1000
"""Parts of the samples by whose mean losses two models are compared: each sample where there are no more of them, and
else as many as give a standard error within a few percent (1 / sqrt(2 PARTS), one standard deviation)."""

DOUBT = 0.05
"""Probability that a sentence calls one of its differences clear although there is none."""


def loss_parts(task: Task, samples: Samples) -> tuple[Tensor | None, np.ndarray]:
    """The part of each sample (n,), the same in every call, and the shares of the parts in the mean loss.

    Of one sample, and of a loss that is not a mean over samples, there are no parts: None, and one share.
    """
    try:
        parts = sample_folds(len(samples), min(PARTS, len(samples)))
        weights = group_weights(task.per_sample, samples.targets, parts).numpy()
    except ValueError:
        return None, np.ones(1)
    return parts, weights / weights.sum()


def mean_and_error(values: np.ndarray, shares: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Means over the parts, the last axis, and their standard errors; NaN for a single part."""
    values = np.where(shares > 0, values, 0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean = values @ shares
        squares = (values - mean[..., None]) ** 2 @ shares
        return mean, np.sqrt(squares / np.float64((shares > 0).sum() - 1))


def is_clear(difference: float, error: float | None, among: int = 1) -> bool:
    """Whether the interval of a difference lies above zero, in a sentence about the largest of so many."""
    return error is not None and difference > NormalDist().inv_cdf(1 - DOUBT / 2 / among) * error


def with_error(difference: float, error: float | None, unit: str) -> str:
    """A difference with its standard error, as a sentence writes it."""
    return f"{in_words(difference, 3, sign=True)} ± {'?' if error is None else in_words(error, 2)}{unit}"


def round_losses(run: Run, record: Round, samples: sampled.Samples, split: str = "test") -> xr.Dataset:
    """Losses of the models of a round on the plane's samples.

    Returns:
        Dataset with client (id,), without (id,), the loss of the aggregate without that client, the weights of the
        others scaled to sum 1; and aggregate and, where they were kept, start and end: all in the run's unit. Standard
        errors over the samples, of more than PARTS from parts of them: cost_error (id,), of aggregate minus without,
        and gain_error, of aggregate minus the mean of the clients. end_parts (part,): loss of the end, or of the
        aggregate, on parts of the samples, which the attribute `of` names; `samples` is their number.
    """
    ids, shares = record.ids.tolist(), run.experiment.cohort_weights(record.sizes).double()
    others = globals_of(record)
    basis, number = stacked([record.kept("clients"), *(model[None] for model in others.values())]), len(ids)
    left = shares.repeat(number, 1).fill_diagonal_(0)
    alone = (total := left.sum(1, keepdim=True)) == 0  # of a client without others nothing is left
    left = (left / total).masked_fill(alone, 0)
    sums = torch.nn.functional.pad(torch.cat([left, shares[None]]), (0, len(others)))
    rows = torch.cat([torch.eye(len(basis), dtype=torch.float64), sums])
    selected = selected_samples(run, record.index, split, samples)
    parts, shares_of_parts = loss_parts(run.task, selected)
    table = evaluate_models(run, basis, selected, rows, groups=parts)["loss"].double().numpy().reshape(len(rows), -1)
    client, after, without, (aggregate,) = np.split(table, [number, len(basis), len(basis) + number])
    without[alone.flatten().numpy()] = np.nan
    single = {"aggregate": aggregate, **dict(zip(others, after, strict=True))}
    mean = lambda values: mean_and_error(values, shares_of_parts)[0]  # noqa: E731
    error = lambda values: mean_and_error(values, shares_of_parts)[1]  # noqa: E731
    columns = {"client": mean(client), "without": mean(without), "cost_error": error(aggregate - without)}
    numbers = {name: float(mean(values)) for name, values in single.items()}
    numbers["gain_error"] = float(error(aggregate - client.mean(0)))
    known = np.where(shares_of_parts > 0, single.get("end", aggregate), np.nan)
    variables = {**{name: ("id", values) for name, values in columns.items()}, **numbers, "end_parts": ("part", known)}
    attrs = {"of": digest(selected.targets, selected[:PARTS].inputs, run.loss_units), "samples": len(selected)}
    return xr.Dataset(variables, coords={"id": ids}, attrs=attrs)


def globals_of(record: Round) -> dict[str, Tensor]:
    """The global models of a round that it kept: start, end."""
    return {name: model for name in ("start", "end") if (model := getattr(record, name)) is not None}
