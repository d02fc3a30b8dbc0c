"""Keyed randomness: the same in every process, different for every purpose."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from drift.config.random_keys import cohort, generator, key, rng

PARTS = st.lists(st.one_of(st.integers(-(2**40), 2**40), st.text(max_size=5)), max_size=4)


def test_key_never_changes():
    assert key(8, "cohort", 3) == 289001216968244267
    assert key(8) == 6975662661659050244


@pytest.mark.seconds
@pytest.mark.seconds
def test_other_processes_draw_the_same():
    code = (
        "from drift.config.random_keys import *; print(key(8, 'batches', 2), cohort(8, 3, 50, 4), rng(1, 'a').random())"
    )
    environment = os.environ | {"PYTHONHASHSEED": "0"}
    told = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=True)
    assert told.stdout.strip() == f"{key(8, 'batches', 2)} {cohort(8, 3, 50, 4)} {rng(1, 'a').random()}"


@given(PARTS, PARTS)
def test_keys_differ_where_purposes_differ(first, second):
    assert 0 <= key(1, *first) < 2**63
    assert (key(1, *first) == key(1, *second)) == (first == second)


def test_purposes_that_join_to_the_same_text_differ():
    different = [("a", "b"), ("ab",), ("a", 1), ("a1",), (1, 2), (12,), ("1",), (1,), ("[1]",), ()]
    assert len({key(0, *purpose) for purpose in different}) == len(different)
    assert key(0, 1) != key(1, 0)


def test_numpy_numbers_count_as_numbers():
    assert key(np.int64(8), "batches", np.int32(3)) == key(8, "batches", 3)


@pytest.mark.parametrize("part", [1.0, None, (1,)])
def test_parts_must_be_texts_or_whole_numbers(part):
    with pytest.raises(TypeError):
        key(0, part)


def test_generators_are_fresh_and_keyed():
    first, again, other = (torch.rand(5, generator=generator(8, "init", n)) for n in (0, 0, 1))
    assert torch.equal(first, again)
    assert not torch.equal(first, other)
    assert rng(8, "init").random() == rng(8, "init").random() != rng(9, "init").random()


@given(st.integers(0, 10**6), st.integers(0, 500), st.data())
def test_cohort_holds_distinct_ascending_clients(seed, t, data):
    clients = data.draw(st.integers(1, 60))
    per_round = data.draw(st.integers(1, clients))
    drawn = cohort(seed, t, clients, per_round)
    assert drawn.shape == (per_round,)
    assert drawn.dtype == np.int64
    assert (np.diff(drawn) > 0).all()
    assert 0 <= drawn[0] <= drawn[-1] < clients


def test_cohorts_are_uniform_over_clients_and_change_with_round_and_seed():
    drawn = np.array([cohort(8, t, 7, 2) for t in range(3500)])
    assert np.bincount(drawn.ravel(), minlength=7) == pytest.approx(1000, abs=6 * np.sqrt(1000 * 5 / 7))
    pairs = np.unique(drawn, axis=0, return_counts=True)[1]
    assert len(pairs) == 21
    assert pairs == pytest.approx(3500 / 21, abs=6 * np.sqrt(3500 / 21))
    assert not np.array_equal(drawn[:50], [cohort(9, t, 7, 2) for t in range(50)])


@pytest.mark.parametrize("per_round", [0, -1, 6])
def test_cohort_refuses_an_impossible_size(per_round):
    with pytest.raises(ValueError, match=f"per_round is {per_round}, there are 5 clients; give a number from 1 to 5"):
        cohort(0, 0, 5, per_round)
