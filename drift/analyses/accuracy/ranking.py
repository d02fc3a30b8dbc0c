"""How well the global model ranks what users chose."""

from __future__ import annotations

from collections.abc import Sequence
from math import nan

import xarray as xr
from torch import Tensor

from drift.analyses.per_round import described, resolve_round
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.measures.ranking import auc, hit_rate, ndcg, positive_ranks
from landscape.results.progress import with_progress


@analysis("round", "rank", cost="evaluations")
def ranking_rounds(run: Run, *, rounds: Sequence[int] | None = None, k: Sequence[int] = (5, 10)) -> xr.Dataset:
    """AUC, HR@k and NDCG@k of the global model on the test candidates of each user, over rounds.

    Source: FedEve paper, Table 2; methods.md 7.

    Args:
        rounds: Rounds looked at; by default all that kept a global model.
        k: Lengths of the lists.

    Returns:
        auc (round,) over all pairs, user_auc (round,) as the mean over users, and hit_rate and ndcg (round, rank),
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
    wanted = (run.kept("globals") or [-1]) if rounds is None else rounds
    indices = [resolve_round(run, index, "globals") for index in wanted]
    targets, rows = run.task.split("test").targets, []
    for index in with_progress(indices, run.context.progress):
        record = run.round(index)
        buffers = record.end_buffers if len(record.end_buffers) else None
        scores = run.task.outputs(record.kept("end"), "test", buffers=buffers).reshape(len(targets))
        rows.append(_measured(scores, targets, group.test, k))
    found = xr.concat(rows, "round", join="exact").assign_coords(round=indices)
    about = {"analysis": "ranking_rounds", "source": "FedEve paper, Table 2"}
    return described(
        found.assign_attrs(about),
        {
            "auc": ("AUC over all pairs", "fraction"),
            "user_auc": ("mean AUC of users", "fraction"),
            "hit_rate": ("HR@k", "fraction"),
            "ndcg": ("NDCG@k", "fraction"),
            "rank": ("k", "1"),
        },
    )


def _measured(scores: Tensor, targets: Tensor, users: Tensor, k: Sequence[int]) -> xr.Dataset:
    """The measures of one model; NaN where it has diverged."""
    if not bool(scores.isfinite().all()):
        none = ("rank", [nan] * len(k))
        return xr.Dataset({"auc": nan, "user_auc": nan, "hit_rate": none, "ndcg": none}, coords={"rank": list(k)})
    ranks = positive_ranks(scores, targets, users)
    lists = {name: ("rank", [of(ranks, length) for length in k]) for name, of in _LISTS.items()}
    areas = {"auc": auc(scores, targets), "user_auc": auc(scores, targets, users)}
    return xr.Dataset({**areas, **lists}, coords={"rank": list(k)})


_LISTS = {"hit_rate": hit_rate, "ndcg": ndcg}
