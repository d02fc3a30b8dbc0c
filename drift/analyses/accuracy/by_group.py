"""Accuracy of the global model by group of test samples: per domain, and ranking metrics per user."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.analyses.evaluate_on import evaluate_models
from drift.analyses.per_round import ABOUT, global_model, result, selected_rounds
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.measures.ranking import auc, hit_rate, ndcg, positive_ranks
from landscape.model.model import buffers_of


@analysis("round", "domain", cost="evaluations")
def domain_accuracy(run: Run, *, rounds: Sequence[int] | None = None) -> xr.Dataset:
    """Test accuracy of the global model on each domain, and the mean over domains.

    Source: IMA paper (Digit-Five and PACS report the mean over domains); papers.md 6.3.

    Args:
        run: Run to analyse.
        rounds: Rounds of the global models; by default all that kept one.

    Returns:
        accuracy (round, domain), mean_accuracy (round,), accuracy_std (round,) over domains, fractions 0-1; NaN for a
        domain without test samples.

    Raises:
        LookupError: If the dataset has no domains or a round kept no global model.
    """
    group = run.dataset.groups.get("domain")
    if group is None:
        raise LookupError(
            f"run {run.name} is of {run.data_name}, which has no domains; train on digits3, digit5, pacs or domainnet."
        )
    indices = selected_rounds(run, "globals", rounds, None)
    accuracy = np.full((len(indices), len(group.names)), np.nan)
    for row, index in enumerate(run.context.track(indices)):
        model = global_model(run, index)
        if not bool(torch.isfinite(model.theta).all()):
            continue
        own_ranking = model.theta[None]
        values = evaluate_models(
            run, own_ranking, "test", metrics=("error",), buffers=buffers_of(own_ranking), groups=group.test
        )
        error = values["error"]
        accuracy[row, : error.shape[1]] = 1 - error[0].numpy()
    dataset = xr.Dataset(
        {"accuracy": (("round", "domain"), accuracy)}, coords={"round": indices, "domain": list(group.names)}
    )
    dataset["mean_accuracy"] = dataset.accuracy.mean("domain")
    dataset["accuracy_std"] = dataset.accuracy.std("domain", ddof=1)
    return result(dataset, ABOUT["domain_accuracy"], analysis="domain_accuracy", source="IMA paper; papers.md 6.3")


@analysis("round", "rank", cost="evaluations")
def ranking_rounds(run: Run, *, rounds: Sequence[int] | None = None, k: Sequence[int] = (5, 10)) -> xr.Dataset:
    """AUC, HR@k and NDCG@k of the global model on the test candidates of each user, over rounds.

    Source: FedEve paper, Table 2; papers.md 7.

    Args:
        run: Run to analyse.
        rounds: Rounds of the global models; by default all that kept one.
        k: Lengths of the lists.

    Returns:
        auc (round,) over all pairs, user_auc (round,), the mean over users, and hit_rate and ndcg (round, rank),
        where rank is k; fractions 0-1.

    Raises:
        LookupError: If the dataset has no users with one output, or a round kept no global model.
    """
    group = run.dataset.groups.get("user")
    if group is None or run.dataset.loss != "binary":
        raise LookupError(
            f"run {run.name} is of {run.data_name}, which has no candidates to rank; train on movielens1m."
        )
    indices = selected_rounds(run, "globals", rounds, None)
    targets, rows = run.task.split("test").targets, []
    for index in run.context.track(indices):
        model = global_model(run, index)
        scores = run.task.outputs(model.theta, "test").reshape(len(targets))
        rows.append(_ranking(scores, targets, group.test, k))
    dataset = xr.concat(rows, "round", join="exact").assign_coords(round=indices)
    return result(dataset, ABOUT["ranking_rounds"], analysis="ranking_rounds", source="FedEve paper, Table 2")


def _ranking(scores: Tensor, targets: Tensor, users: Tensor, k: Sequence[int]) -> xr.Dataset:
    """Metrics of one model; NaN where it has diverged."""
    if not bool(scores.isfinite().all()):
        none = ("rank", [nan] * len(k))
        return xr.Dataset({"auc": nan, "user_auc": nan, "hit_rate": none, "ndcg": none}, coords={"rank": list(k)})
    ranks = positive_ranks(scores, targets, users)
    lists = {name: ("rank", [metric(ranks, length) for length in k]) for name, metric in _LISTS.items()}
    areas = {"auc": auc(scores, targets), "user_auc": auc(scores, targets, users)}
    return xr.Dataset({**areas, **lists}, coords={"rank": list(k)})


_LISTS = {"hit_rate": hit_rate, "ndcg": ndcg}
