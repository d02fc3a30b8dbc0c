"""Which of several models to average, decided by the loss of their means: soups, grown and pruned."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Literal, Unpack

import numpy as np
from torch import Tensor

from landscape.model.task import Task
from landscape.model.vectors import takes_models
from landscape.sweep.evaluate import evaluate
from landscape.sweep.evaluation import USUAL, Evaluation, EvaluationOptions
from landscape.sweep.grid import stack_models


@takes_models("models")
def model_soup(
    task: Task,
    models: Sequence[Tensor] | Tensor,
    *,
    kind: Literal["greedy", "pruned"] = "greedy",
    buffers: Tensor | None = None,
    evaluation: Evaluation = USUAL,
    **options: Unpack[EvaluationOptions],
) -> list[int]:
    """Rows of those of several models whose mean has a low loss; a model without a finite loss is in none.

        greedy    by rising loss, each model joins if the loss of the mean does not rise
        pruned    from all models, the one goes without which the loss of the mean is lowest, until none lowers it

    Source: greedy: Wortsman et al. 2022, recipe 1, by loss in place of accuracy; pruned, its reverse: this project.

    Args:
        task: Model, loss and samples.
        models: Shape (n, d).
        kind: Of the soup.
        buffers: Floating buffers of the models, shape (n, b); by default the models' own.
        evaluation, options: Samples by which the models are chosen, batch statistics of means and workers: a
            `landscape.Evaluation`, and fields of it by name.

    Raises:
        ValueError: If the models differ in length, none has a finite loss, or there is no such kind.
    """
    basis = stack_models(list(models))
    evaluation = evaluation.but(**options).without("model_soup", "metrics", "groups", "precision").between(task)
    evaluation = evaluation.but(metrics=("loss",))

    def losses(*means: list[int]) -> np.ndarray:
        rows = np.stack([mean_of(members, len(basis)) for members in means])
        values = evaluate(task, basis, rows, buffers=buffers, evaluation=evaluation)["loss"].numpy()
        return np.where(np.isfinite(values), values, np.inf)

    soups = {"greedy": _greedy, "pruned": _pruned}
    if kind not in soups:
        raise ValueError(f"kind is {kind!r}; give one of {', '.join(soups)}.")
    alone = losses(*([row] for row in range(len(basis))))
    order = [row for row in alone.argsort(kind="stable").tolist() if alone[row] < np.inf]
    if not order:
        raise ValueError(f"none of the {len(basis)} models has a finite loss; give others.")
    return soups[kind](losses, order)


def _greedy(losses: Callable[..., np.ndarray], order: list[int]) -> list[int]:
    soup, least = list[int](), np.inf
    for row in order:
        if (loss := losses([*soup, row])[0]) <= least:
            soup, least = [*soup, row], loss
    return sorted(soup)


def _pruned(losses: Callable[..., np.ndarray], order: list[int]) -> list[int]:
    soup = sorted(order)
    while len(soup) > 1:
        attempts = [soup, *([other for other in soup if other != row] for row in soup)]
        if (lowest := int(losses(*attempts).argmin())) == 0:
            break
        soup = attempts[lowest]
    return soup


def mean_of(members: Sequence[int], number: int) -> np.ndarray:
    """Coefficients (number,) of the mean of some of `number` models."""
    row = np.zeros(number)
    row[list(members)] = 1 / len(members)
    return row
