"""Means of models of a map: which are candidates, and how they do on samples that no choice has seen."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import torch
from torch import Tensor

from drift.analyses.evaluate_on import evaluation_of
from drift.runs.run import Run
from landscape.measures.soups import greedy_soup, mean_of, pruned_soup
from landscape.model.samples import Samples
from landscape.sweep.evaluate import evaluate


def candidate_means(
    run: Run, models: Tensor, basins: Mapping[int, list[int]], losses: np.ndarray, samples: Samples
) -> dict[str, list[int]]:
    """Rows of the models of each candidate, by name."""
    evaluation = evaluation_of(run, split=samples, progress=None).between(run.task)
    rows = np.stack([mean_of(members, len(models)) for members in basins.values()])
    of_basins = evaluate(run.task, models, rows, evaluation=evaluation.but(metrics=("loss",)))["loss"]
    best = list(basins)[int(of_basins.argmin())]
    group = basins[best]
    pruned = pruned_soup(run.task, models[group], evaluation=evaluation)
    return {
        f"basin {best}": group,
        f"basin {best} pruned": [group[row] for row in pruned],
        "greedy soup": greedy_soup(run.task, models, evaluation=evaluation),
        "best model": [int(losses.argmin())],
    }


def judged_means(
    run: Run, models: Tensor, references: Tensor, means: Collection[list[int]], choosing: Samples, judging: Samples
) -> dict[str, np.ndarray]:
    """Losses and errors of candidates and, behind them, of references (r, d)."""
    number = len(models) + len(references)
    rows = np.stack([*(mean_of(members, number) for members in means), *np.eye(number)[len(models) :]])
    metrics = ("loss", *(("error",) if "error" in run.task.metrics else ()))
    evaluation = evaluation_of(run, metrics=metrics, progress=None).between(run.task)
    basis = torch.cat([models, references])
    chosen, judged = (
        evaluate(run.task, basis, rows, evaluation=evaluation.but(split=part)) for part in (choosing, judging)
    )
    return {
        "candidate_loss": chosen["loss"].numpy(),
        "judged_loss": judged["loss"].numpy(),
        "judged_error": judged["error"].numpy() if "error" in judged else np.full(len(rows), np.nan),
        "candidate_models": np.array([*map(len, means), *[np.nan] * len(references)]),
    }
