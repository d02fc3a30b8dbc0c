"""The table of a cohort against vectors computed one by one."""

from __future__ import annotations

import numpy as np
import torch

from drift.analyses.rounds.cohort_table import cohort_table
from tests import tiny
from tests.drift import hand

SIZES, IDS = [2, 7, 4], [5, 0, 3]


def test_columns_equal_those_of_the_vectors():
    deltas, start = hand.random(3, 6), hand.random(6, seed=9)
    group = hand.cohort(start + deltas, start=start, sizes=SIZES, ids=IDS)
    end = start + hand.random(6, seed=4)
    weights = hand.vector(0.2, 0.5, 0.1)
    run = hand.HandRun([hand.record(group, end, weights=weights)], hand.experiment(number=6), d=6)
    ds = cohort_table(run, round=0)
    mean = torch.tensor(SIZES).double() / 13 @ deltas
    cosine = torch.nn.functional.cosine_similarity
    assert ds.client.values.tolist() == IDS
    np.testing.assert_allclose(ds.update_norm, deltas.norm(dim=1), rtol=1e-12)
    np.testing.assert_allclose(ds.distance, (deltas - mean).norm(dim=1), rtol=1e-12)
    np.testing.assert_allclose(ds.cosine_mean, cosine(deltas, mean[None]), rtol=1e-12)
    np.testing.assert_allclose(ds.cosine_step, cosine(deltas, (end - start)[None]), rtol=1e-12)
    np.testing.assert_allclose(ds.cosine, cosine(deltas[:, None], deltas[None], dim=2), atol=1e-12)
    np.testing.assert_allclose(ds.weight, weights)
    np.testing.assert_allclose(ds.relative_weight, weights / 0.8)
    np.testing.assert_allclose(ds.share, np.array(SIZES) / 13)
    assert ds.samples.values.tolist() == SIZES
    assert ds.attrs["round"] == 0


def test_a_resting_client_has_cosine_zero_and_length_zero():
    group = hand.cohort(torch.stack([hand.vector(1, 2), hand.vector(0, 0)]), sizes=[2, 7])
    ds = cohort_table(hand.HandRun([hand.record(group, hand.vector(1, 1))], d=2), round=0)
    assert float(ds.cosine_mean[1]) == 0
    assert float(ds.update_norm[1]) == 0


def test_a_round_of_a_real_run_has_its_cohort(tmp_path):
    run = tiny.trained(tmp_path)
    ds = run.cached(cohort_table, round=-1)
    record = run.round(-1)
    assert ds.client.values.tolist() == record.ids.tolist()
    np.testing.assert_allclose(ds.update_norm, record.deltas.double().norm(dim=1), rtol=1e-5)
    assert ds.attrs["round"] == 2
