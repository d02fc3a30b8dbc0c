"""Ranking metrics of scores per user: AUC, HR@k, NDCG@k."""

from typing import Literal

import torch
from torch import Tensor


def auc(scores: Tensor, targets: Tensor, users: Tensor | None = None) -> float:
    """Probability that a positive scores above a negative, ties counted by half, a fraction 0-1.

    Over all pairs, as FedEve's code has it; with users the mean over users of the pairs within each, users without a
    positive or a negative left out. FedEve's formula counts ties as 0 (papers.md 7).

    Args:
        scores: Shape (n,).
        targets: 1 for positives, else 0, shape (n,).
        users: User of every sample, shape (n,).

    Raises:
        ValueError: If shapes differ, a score is NaN, or there is no pair.
    """
    scores, positive = _checked(scores, targets, users)
    group = torch.zeros(len(scores), dtype=torch.int64) if users is None else _numbered(users)
    ranks = _mean_ranks(scores, group)
    groups = int(group.max()) + 1
    positives = torch.zeros(groups, dtype=torch.float64).index_add_(0, group, positive.double())
    negatives = torch.zeros(groups, dtype=torch.float64).index_add_(0, group, (~positive).double())
    won = torch.zeros(groups, dtype=torch.float64).index_add_(0, group, ranks.where(positive, 0))
    pairs = positives * negatives
    if not (pairs > 0).any():
        raise ValueError("there is no pair of a positive and a negative sample; an AUC needs one.")
    auc_by_group = (won - positives * (positives + 1) / 2) / pairs
    return float(auc_by_group[pairs > 0].mean())


def positive_ranks(
    scores: Tensor,
    targets: Tensor,
    users: Tensor,
    *,
    ties: Literal["pessimistic", "random"] = "pessimistic",
    seed: int = 0,
) -> Tensor:
    """Rank of each user's positive among its candidates, 1 is best, shape (U,), in the order of user numbers.

    Args:
        scores: Shape (n,).
        targets: 1 for the one positive of each user, else 0, shape (n,).
        users: User of every sample, shape (n,).
        ties: "pessimistic" counts equal scores as ranked above, "random" draws their order.
        seed: Of the draws.

    Raises:
        ValueError: If shapes differ, a score is NaN, or a user has not exactly one positive.
    """
    scores, positive = _checked(scores, targets, users)
    group = _numbered(users)
    groups = int(group.max()) + 1 if len(group) else 0
    counts = group[positive].bincount(minlength=groups)
    if (counts != 1).any():
        number = int(torch.unique(users)[(counts != 1).nonzero()[0, 0]])
        raise ValueError(f"user {number} has {int(counts[counts != 1][0])} positives; a rank needs one per user.")
    positive_scores = torch.empty(groups, dtype=torch.float64)
    positive_scores[group[positive]] = scores[positive]
    other = ~positive
    above, equal = (
        torch.zeros(groups, dtype=torch.int64).index_add_(0, group, (compared & other).long())
        for compared in (scores > positive_scores[group], scores == positive_scores[group])
    )
    if ties == "pessimistic":
        return 1 + above + equal
    generator = torch.Generator().manual_seed(seed)
    return 1 + above + (torch.rand(groups, generator=generator, dtype=torch.float64) * (equal + 1)).long()


def hit_rate(ranks: Tensor, k: int) -> float:
    """HR@k: share of users whose positive is among the first k, a fraction 0-1."""
    return float((ranks <= k).double().mean())


def ndcg(ranks: Tensor, k: int) -> float:
    """NDCG@k: mean over users of 1 / log2(rank + 1) where rank <= k, else 0; 0-1.

    FedEve prints an indicator inside the logarithm, which would make it equal HR@k (papers.md 7).
    """
    return float((1 / torch.log2(ranks.double() + 1)).where(ranks <= k, 0).mean())


def _checked(scores: Tensor, targets: Tensor, users: Tensor | None) -> tuple[Tensor, Tensor]:
    """Scores in float64 and which samples are positive."""
    shapes = {tuple(tensor.shape) for tensor in (scores, targets, *([] if users is None else [users]))}
    if len(shapes) != 1 or scores.ndim != 1:
        raise ValueError(f"scores, targets and users have shapes {sorted(shapes)}; give one value per sample, (n,).")
    if scores.isnan().any():
        raise ValueError("a score is NaN; the model has diverged, and NaN has no rank.")
    return scores.double(), targets > 0


def _numbered(users: Tensor) -> Tensor:
    return torch.unique(users, return_inverse=True)[1]


def _mean_ranks(scores: Tensor, group: Tensor) -> Tensor:
    """Rank of every score within its group from 1, the smallest first, equal ones at their mean, shape (n,)."""
    order = torch.argsort(scores, stable=True)
    order = order[torch.argsort(group[order], stable=True)]
    sorted_group, values = group[order], scores[order]
    new = torch.ones(len(order), dtype=torch.bool)
    new[1:] = (sorted_group[1:] != sorted_group[:-1]) | (values[1:] != values[:-1])
    run = new.cumsum(0) - 1
    sizes = run.bincount()
    ends = sizes.cumsum(0)
    begins = sorted_group.bincount().cumsum(0) - sorted_group.bincount()
    mean = (ends - (sizes - 1) / 2)[run] - begins[sorted_group]
    ranks = torch.empty(len(order), dtype=torch.float64)
    ranks[order] = mean.double()
    return ranks
