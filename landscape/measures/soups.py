"""Which of several models to average, decided by the loss of their means: soups, grown and pruned."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Unpack

import numpy as np
import torch
from torch import Tensor

from landscape.model.task import Task
from landscape.model.vectors import takes_models
from landscape.sweep.evaluate import evaluate
from landscape.sweep.evaluation import USUAL, Evaluation, EvaluationOptions
from landscape.sweep.grid import stack_models


@takes_models("models")
def greedy_soup(
    task: Task,
    models: Sequence[Tensor] | Tensor,
    *,
    buffers: Tensor | None = None,
    evaluation: Evaluation = USUAL,
    **options: Unpack[EvaluationOptions],
) -> list[int]:
    """Rows of the models in a greedy soup: by rising loss, each joins if the loss of the mean does not rise.

    Source: Wortsman et al. 2022, recipe 1, by loss in place of accuracy.

    Args:
        task: Model, loss and samples.
        models: Shape (n, d).
        buffers: Floating buffers of the models, shape (n, b); by default the models' own.
        evaluation, options: Samples by which the models are chosen, batch statistics of means and workers: a
            `landscape.Evaluation`, and fields of it by name.
    """
    basis = stack_models(list(models))
    evaluation = _of_loss("greedy_soup", task, evaluation.but(**options))
    losses = evaluate(task, basis, np.eye(len(basis)), buffers=buffers, evaluation=evaluation)["loss"]
    soup, least = list[int](), np.inf
    for row in losses.argsort(stable=True).tolist():
        attempt = mean_of([*soup, row], len(basis))[None]
        loss = float(evaluate(task, basis, attempt, buffers=buffers, evaluation=evaluation)["loss"])
        if loss <= least:
            soup, least = [*soup, row], loss
    return sorted(soup)


@takes_models("models")
def pruned_soup(
    task: Task,
    models: Sequence[Tensor] | Tensor,
    *,
    buffers: Tensor | None = None,
    evaluation: Evaluation = USUAL,
    **options: Unpack[EvaluationOptions],
) -> list[int]:
    """Rows of the models whose mean is left when those go, one by one, without which the loss of the mean is lowest.

    From the mean of all, the model goes whose absence lowers the loss of the mean most, until none lowers it.

    Source: this project; the reverse of Wortsman et al. 2022, recipe 1.

    Args:
        task, models, buffers, evaluation, options: As in `greedy_soup`.
    """
    basis = stack_models(list(models))
    evaluation = _of_loss("pruned_soup", task, evaluation.but(**options))
    soup, least = list(range(len(basis))), np.inf
    while True:
        rest = torch.cat([basis.mean(0, keepdim=True, dtype=torch.float64).to(basis), basis])
        fixed = None if buffers is None else torch.cat([buffers.mean(0, keepdim=True), buffers])
        number, none = len(soup), np.zeros((len(soup), 1))
        whole = np.concatenate([none[:1], mean_of(range(number), number)[None]], 1)  # no single row: its statistics
        without = np.concatenate([none + number, -np.eye(number)], 1) / max(number - 1, 1)
        if number == 2:
            without = np.concatenate([none, np.eye(2)[::-1]], 1)
        rows = np.concatenate([whole, without[: number if number > 1 else 0]])
        losses = evaluate(task, rest, rows, buffers=fixed, evaluation=evaluation)["loss"].numpy()
        least, lowest = min(least, losses[0]), int(losses.argmin())
        if not losses[lowest] < least:
            return soup
        del soup[lowest - 1]
        keep = [row for row in range(number) if row != lowest - 1]
        basis, buffers = basis[keep], None if buffers is None else buffers[keep]


def mean_of(members: Sequence[int], number: int) -> np.ndarray:
    """Coefficients (number,) of the mean of some of `number` models."""
    row = np.zeros(number)
    row[list(members)] = 1 / len(members)
    return row


def _of_loss(function: str, task: Task, evaluation: Evaluation) -> Evaluation:
    """An evaluation of the loss alone, with the batch statistics that suit means."""
    return evaluation.without(function, "metrics", "groups", "precision").between(task).but(metrics=("loss",))
