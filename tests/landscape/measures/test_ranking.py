"""AUC, HR@k and NDCG@k: known values, and brute force."""

from __future__ import annotations

import math

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from landscape.measures.ranking import auc, hit_rate, ndcg, positive_ranks

SEEDS = st.integers(0, 2**32)


def drawn(seed, users=4, levels=6):
    """Scores with ties, one positive a user, users of unequal numbers of samples in mixed order."""
    generator = torch.Generator().manual_seed(seed)
    of_user = torch.cat([torch.full((3 + 2 * user,), 10 * user + 7) for user in range(users)])
    targets = torch.cat([torch.eye(3 + 2 * user, dtype=torch.int64)[user] for user in range(users)])
    order = torch.randperm(len(of_user), generator=generator)
    scores = torch.randint(0, levels, (len(of_user),), generator=generator).double()
    return scores, targets[order], of_user[order]


def share_won(scores, targets):
    """Share of the pairs of a positive and a negative that the positive wins; a tie is half."""
    pairs = [(high, low) for high in scores[targets == 1].tolist() for low in scores[targets == 0].tolist()]
    return sum((high > low) + 0.5 * (high == low) for high, low in pairs) / len(pairs)


def test_a_perfect_ranking_has_one_everywhere():
    scores, targets = torch.tensor([0.1, 3.0, -1.0, 0.3, 0.2]), torch.tensor([0, 1, 0, 1, 0])
    users = torch.tensor([0, 0, 0, 1, 1])
    ranks = positive_ranks(scores, targets, users)
    assert auc(scores, targets) == 1
    assert [measure(ranks, k) for measure in (hit_rate, ndcg) for k in (1, 5)] == [1, 1, 1, 1]


def test_rank_two_has_the_known_gain():
    ranks = positive_ranks(torch.tensor([1.0, 2.0, 0.0]), torch.tensor([1, 0, 0]), torch.zeros(3, dtype=torch.int64))
    assert ranks.tolist() == [2]
    assert ndcg(ranks, 5) == pytest.approx(1 / math.log2(3)) == pytest.approx(0.6309, abs=5e-5)
    assert (ndcg(ranks, 1), hit_rate(ranks, 1), hit_rate(ranks, 2)) == (0, 0, 1)


def test_constant_scores_have_auc_a_half_and_the_worst_rank():
    targets, users = torch.tensor([0, 1, 0, 0, 1]), torch.tensor([0, 0, 0, 1, 1])
    scores = torch.full((5,), 0.25)
    assert auc(scores, targets) == auc(scores, targets, users) == 0.5
    assert positive_ranks(scores, targets, users).tolist() == [3, 2]


@given(SEEDS)
def test_auc_is_the_share_of_pairs_won(seed):
    scores, targets, users = drawn(seed)
    assert auc(scores, targets) == pytest.approx(share_won(scores, targets), abs=1e-12)
    each = [share_won(scores[users == user], targets[users == user]) for user in users.unique()]
    assert auc(scores, targets, users) == pytest.approx(sum(each) / len(each), abs=1e-12)
    assert auc(-scores, targets) == pytest.approx(1 - auc(scores, targets), abs=1e-12)


@given(SEEDS)
def test_ranks_count_who_is_above_and_ties(seed):
    scores, targets, users = drawn(seed)
    ranks = positive_ranks(scores, targets, users)
    for rank, user in zip(ranks.tolist(), users.unique(), strict=True):
        own = users == user
        positive = scores[own & (targets == 1)]
        assert rank == int((scores[own] >= positive).sum())
    lucky = positive_ranks(scores, targets, users, ties="random", seed=seed)
    assert (lucky <= ranks).all()
    assert torch.equal(lucky, positive_ranks(scores, targets, users, ties="random", seed=seed))


def test_random_ties_reach_every_rank_equally_often():
    users, targets = torch.arange(3000).repeat_interleave(3), torch.tensor([0, 1, 0]).repeat(3000)
    ranks = positive_ranks(torch.zeros(9000), targets, users, ties="random")
    assert ranks.bincount().tolist()[1:] == pytest.approx([1000] * 3, abs=6 * math.sqrt(1000 * 2 / 3))


@given(SEEDS)
def test_ndcg_is_its_sum_over_the_sorted_samples_where_there_are_no_ties(seed):
    generator = torch.Generator().manual_seed(seed)
    scores, targets = torch.randperm(36, generator=generator).double(), torch.eye(12, dtype=torch.int64)[:3].ravel()
    users = torch.arange(3).repeat_interleave(12)
    ranks = positive_ranks(scores, targets, users)
    gains = []
    for own, score in zip(targets.view(3, 12), scores.view(3, 12), strict=True):
        best = score.argsort(descending=True)[:5].tolist()
        gains.append(sum(int(own[item]) / math.log2(2 + place) for place, item in enumerate(best)))
    assert ndcg(ranks, 5) == pytest.approx(sum(gains) / 3)
    assert hit_rate(ranks, 12) == 1
    assert ndcg(ranks, 1) == hit_rate(ranks, 1)


def test_what_has_no_rank_is_refused():
    scores, users = torch.arange(4.0), torch.tensor([3, 3, 8, 8])
    with pytest.raises(ValueError, match="user 8 has 2 positives; a rank needs one per user"):
        positive_ranks(scores, torch.tensor([1, 0, 1, 1]), users)
    with pytest.raises(ValueError, match="there is no pair"):
        auc(scores, torch.ones(4))
    with pytest.raises(ValueError, match="a score is NaN; the model has diverged"):
        auc(torch.tensor([1.0, float("nan")]), torch.tensor([0, 1]))
    with pytest.raises(ValueError, match=r"have shapes \[\(4,\), \(4, 1\)\]"):
        auc(scores[:, None], torch.ones(4))
    assert auc(scores, torch.tensor([0, 0, 0, 1]), users) == 1  # user 3 has no positive and is left out
