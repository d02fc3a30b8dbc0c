"""Differences of losses on the same samples, with their standard errors, and which of them are clear."""

from statistics import NormalDist

import numpy as np
from torch import Tensor

from figures.page.diagnosis_text import number
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

    Of one sample, and of a loss that is no mean over samples, there are no parts: None, and one share.
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
    return f"{number(difference, 3, sign=True)} ± {'?' if error is None else number(error, 2)}{unit}"
