"""Classes of clients and cohorts, against numbers by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.labels import (
    balance_groups,
    class_shares,
    evenness,
    heterogeneity,
    jensen_shannon,
    mix,
    overlap,
)
from tests.drift import hand
from tests.drift.holding import LabelRun, records

HELD = [[0, 0], [0, 1, 2, 0, 1, 2, 2], [1, 1, 1, 2], [], [0, 1, 2]]
"""Clients of 2, 7, 4, 0 and 3 samples."""


def run_of(*groups, **options):
    return LabelRun(records(*groups), hand.experiment(number=5, **options), d=4, held=HELD)


def test_class_shares_are_fractions_and_missing_without_samples():
    found = class_shares(run_of())
    np.testing.assert_allclose(found[:3], [[1, 0, 0], [2 / 7, 2 / 7, 3 / 7], [0, 0.75, 0.25]])
    assert np.isnan(found[3]).all()


def test_evenness_is_one_for_equal_classes_and_zero_for_one():
    found = evenness(class_shares(run_of()))
    assert found[0] == 0
    assert found[4] == pytest.approx(1)
    assert found[2] == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)) / np.log(3))
    assert np.isnan(found[3])


def test_groups_are_split_at_the_median_of_clients_with_samples():
    assert balance_groups(run_of()) == {"balanced": [1, 4], "imbalanced": [0, 2]}


def test_equal_clients_are_all_balanced():
    run = replace(run_of(), held=[[0, 1, 2]] * 3 + [[]])
    assert balance_groups(run) == {"balanced": [0, 1, 2], "imbalanced": []}


def test_coherence_takes_the_groups_from_the_data():
    run = run_of(([4, 0, 1], [3, 2, 7], None), ([2, 3, 4], [4, 0, 3], None), ([0, 2], [2, 4], None))
    found = coherence(run, groups="balance", smooth=2)
    named = coherence(run, groups={"balanced": [1, 4], "imbalanced": [0, 2]}, smooth=2)
    np.testing.assert_array_equal(found.group_cosine, named.group_cosine)
    assert list(found.pair.values) == ["balanced-balanced", "balanced-imbalanced", "imbalanced-imbalanced"]
    np.testing.assert_array_equal(np.isnan(found.group_cosine.values[2]), [True, True, False])
    np.testing.assert_array_equal(found.balanced, [0, 1, 0, np.nan, 1])
    both = found.group_cosine.sel(pair="balanced-imbalanced").values[:2].mean()
    assert float(found.group_cosine_smooth.sel(pair="balanced-imbalanced", round=1)) == pytest.approx(both)
    assert "evenness" not in named


def test_another_text_is_no_group():
    with pytest.raises(ValueError, match="groups is 'size'"):
        coherence(run_of(), groups="size")
    with pytest.raises(ValueError, match=r"groups is \['a'\]; give .*client ids by name"):
        coherence(run_of(), groups=["a"])


def test_cohort_is_mixed_by_the_weights_used_and_by_size():
    run = run_of(([2, 0, 1], [4, 2, 7], [0.1, 0.3, 0.4]))
    found = heterogeneity(run).isel(round=0)
    shares = np.array([[0, 0.75, 0.25], [1, 0, 0], [2 / 7, 2 / 7, 3 / 7]])
    used, data = np.array([1, 3, 4]) / 8 @ shares, np.array([4, 2, 7]) / 13 @ shares
    np.testing.assert_allclose(found.cohort_share, used)
    np.testing.assert_allclose(found.cohort_share_data, data)
    whole = np.array([5, 6, 5]) / 16
    np.testing.assert_allclose(found.share, whole)
    assert float(found.overlap) == pytest.approx(1 - np.abs(used - whole).sum() / 2)
    assert float(found.cosine_data) == pytest.approx(data @ whole / np.linalg.norm(data) / np.linalg.norm(whole))


def test_a_cohort_of_everyone_is_all_data_under_every_similarity():
    found = heterogeneity(run_of(([0, 1, 2, 3, 4], [2, 7, 4, 0, 3], None)))
    for name in ("overlap", "cosine", "jensen_shannon"):
        assert float(found[name][0]) == pytest.approx(1)
        assert float(found[f"{name}_data"][0]) == pytest.approx(1)


def test_similarities_of_disjoint_classes_are_zero_and_of_halves_known():
    first, second = np.array([1.0, 0, 0]), np.array([0.0, 0.5, 0.5])
    assert overlap(first, second) == 0
    assert jensen_shannon(first, second) == pytest.approx(0)
    half = np.array([0.5, 0.5, 0])
    middle = (first + half) / 2
    direct = (np.log(1 / middle[0]) + 0.5 * np.log(0.5 / middle[0]) + 0.5 * np.log(0.5 / middle[1])) / 2
    assert jensen_shannon(first, half) == pytest.approx(1 - direct / np.log(2))


def test_weights_of_clients_without_samples_do_not_count():
    np.testing.assert_allclose(mix(np.array([[1.0, 0], [np.nan, np.nan]]), np.array([0.2, 0.8])), [1, 0])


def test_weights_equal_over_clients_weigh_all_clients_equally():
    run = run_of(([2, 0], [4, 2], None), clients={"weighting": "uniform"})
    np.testing.assert_allclose(heterogeneity(run).share, np.nanmean(class_shares(run), axis=0))


def test_a_round_without_usable_clients_is_missing():
    found = heterogeneity(run_of(([0, 1], [2, 7], None), ([], [], None), ([0, 1], [2, 7], [0.0, 0.0])))
    np.testing.assert_array_equal(np.isnan(found.overlap.values), [False, True, True])
    np.testing.assert_array_equal(np.isnan(found.overlap_data.values), [False, True, False])


def test_data_dealt_out_anew_in_a_round_count_in_that_round():
    run = run_of(([0, 1], [2, 7], None), ([0, 1], [2, 7], None))
    swapped = [run.parts[1], run.parts[0], *run.parts[2:]]
    found = heterogeneity(replace(run, moved={1: swapped}))
    shares = class_shares(run)[:2]
    np.testing.assert_allclose(found.cohort_share[1], np.array([2, 7]) / 9 @ shares[::-1])
    np.testing.assert_allclose(found.cohort_share[0], np.array([2, 7]) / 9 @ shares)


def test_imported_runs_without_a_known_partition_are_refused():
    class Imported(LabelRun):
        given = None

        @property
        def about(self):
            return {"unknown": ["partition (recorded as iid)"]}

    with pytest.raises(LookupError, match="was imported"):
        heterogeneity(Imported(records(), hand.experiment(number=5), held=HELD))
