"""Ranking metrics of the global model on recommendation data."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import xarray as xr
from torch import Tensor

from drift.analyses.per_round import global_model, result, selected_rounds
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.measures.ranking import auc, hit_rate, ndcg, positive_ranks
from landscape.results.progress import with_progress


@analysis("round", "rank", cost="evaluations")
def ranking_rounds(run: Run, *, rounds: Sequence[int] | None = None, k: Sequence[int] = (5, 10)) -> xr.Dataset:
    """AUC, HR@k and NDCG@k of the global model on the test candidates of each user, over rounds.

    Source: FedEve paper, Table 2; methods.md 7.

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
            f"run {run.name} is of {run.experiment.task.dataset}, which has no candidates to rank; train on "
            "movielens1m."
        )
    indices = selected_rounds(run, "globals", rounds, None)
    targets, rows = run.task.split("test").targets, []
    for index in with_progress(indices, run.context.progress):
        model = global_model(run, index)
        scores = run.task.outputs(model.theta, "test", buffers=model.buffers).reshape(len(targets))
        rows.append(_ranking(scores, targets, group.test, k))
    dataset = xr.concat(rows, "round", join="exact").assign_coords(round=indices)
    return result(dataset, _ABOUT, analysis="ranking_rounds", source="FedEve paper, Table 2")


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
_ABOUT = {
    "auc": ("AUC over all pairs", "fraction"),
    "user_auc": ("mean AUC of users", "fraction"),
    "hit_rate": ("HR@k", "fraction"),
    "ndcg": ("NDCG@k", "fraction"),
    "rank": ("k", "1"),
}
