"""The best weights of three clients, against a quadratic whose minimum is known."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np
import pytest
import torch

from drift.analyses.landscapes.weight_simplex import (
    best_weights,
    best_weights_effort,
    most_frequent_three,
    shared_rounds,
    weight_simplex,
)
from landscape.model.task import Task
from tests import tiny
from tests.drift import hand
from tests.oracles import quadratic

ROUND = quadratic(2, eigenvalues=[1, 1])
CORNERS = torch.tensor([[0.0, 0], [1, 0], [0, 1]], dtype=torch.float64)


@dataclass(frozen=True)
class Bowl(hand.HandRun):
    """A run on the quadratic that kept all its rounds."""

    bowl: Task = field(default=ROUND.task)

    @property
    def task(self):
        return self.bowl

    def kept(self, what="clients"):
        return self.rounds()


def run_of(*lambdas, ids=(5, 1, 3), sizes=(2, 7, 4)):
    """Rounds in which the three clients lie so that these weights reach the minimum."""
    records = []
    for index, weights in enumerate(lambdas):
        clients = ROUND.centre - hand.vector(*weights) @ CORNERS + CORNERS
        group = hand.cohort(clients, sizes=sizes, ids=ids, index=index)
        records.append(replace(hand.record(group, group.weighted_mean), client_buffers=torch.zeros(3, 0)))
    return Bowl(records, hand.experiment(number=6), d=2)


def test_the_grid_point_at_the_minimum_is_found_in_every_round():
    run = run_of((0.2, 0.3, 0.5), (0.6, 0.0, 0.4), (0.1, 0.8, 0.1))
    found = best_weights(run, step=0.1)
    assert list(found.client.values) == [5, 1, 3]
    best = np.array([[0.2, 0.3, 0.5], [0.6, 0, 0.4], [0.1, 0.8, 0.1]])
    np.testing.assert_allclose(found.best_weight, best, atol=1e-12)
    np.testing.assert_allclose(found.best_loss, 0, atol=1e-12)
    np.testing.assert_allclose(found.size_weight, np.tile(np.array([2, 7, 4]) / 13, (3, 1)))
    np.testing.assert_allclose(found["mean"], best.mean(0), atol=1e-12)
    np.testing.assert_allclose(found.covariance, np.cov(best.T), atol=1e-12)
    offset = (np.array([2, 7, 4]) / 13 - best[0]) @ CORNERS.numpy()
    assert float(found.size_loss[0]) == pytest.approx(0.5 * offset @ offset)


def test_weights_below_zero_are_looked_at_when_asked_for():
    run = run_of((0.6, -0.2, 0.6))
    np.testing.assert_allclose(best_weights(run, step=0.1, extend=0.2).best_weight[0], [0.6, -0.2, 0.6], atol=1e-12)
    inside = best_weights(run, step=0.1)
    assert float(inside.best_weight.min()) >= 0
    assert float(inside.best_loss[0]) > 0
    assert np.isnan(inside.covariance).all()


def test_the_whole_landscape_agrees_with_the_best_weights():
    run = run_of((0.6, -0.2, 0.6), (0.2, 0.3, 0.5))
    plane = weight_simplex(run, round=0, step=0.1, extend=0.2)
    best = best_weights(run, step=0.1, extend=0.2)
    assert float(plane.loss.min()) == pytest.approx(float(best.best_loss[0]), abs=1e-12)
    assert float(plane.mark_loss.isel(mark=-1)) == pytest.approx(float(best.size_loss[0]))


def test_permuted_clients_give_permuted_weights():
    run = run_of((0.2, 0.3, 0.5))
    found = best_weights(run, clients=[3, 5, 1], step=0.1)
    np.testing.assert_allclose(found.best_weight[0], [0.5, 0.2, 0.3], atol=1e-12)


def test_companions_are_the_three_that_were_together_most_often():
    assert most_frequent_three([[4, 7, 2, 9], [7, 2, 9, 1], [1, 2, 7, 4, 9]]) == [2, 7, 9]
    assert most_frequent_three([[3, 1, 2, 0], [0, 1, 2, 3]]) == [0, 1, 2]
    assert most_frequent_three([[5, 6, 7], [1, 2, 3, 4]]) == [1, 2, 3]


def test_rounds_without_the_three_are_left_out_or_missing():
    first, other = run_of((0.2, 0.3, 0.5)), run_of((0.2, 0.3, 0.5), (0.6, 0.0, 0.4), ids=(5, 1, 4))
    run = Bowl([first.records[0], other.records[1]], hand.experiment(number=6), d=2)
    assert shared_rounds(run) == ([5, 1, 4], [1])
    assert best_weights(run, clients=[5, 1, 3], step=0.5)["round"].values.tolist() == [0]
    both = best_weights(run, rounds=[0, 1], clients=[5, 1, 3], step=0.1)
    np.testing.assert_array_equal(np.isnan(both.best_loss.values), [False, True])
    with pytest.raises(ValueError, match=r"no round of run by-hand kept clients \[0, 1, 2\] together"):
        best_weights(run, clients=[0, 1, 2])
    with pytest.raises(ValueError, match="three different ones"):
        best_weights(run, clients=[5, 1, 1])


def test_rounds_in_which_too_few_came_back_are_no_simplex():
    few = run_of((0.2, 0.3, 0.5))
    empty = hand.record(
        hand.cohort(torch.zeros(0, 2).double(), start=hand.vector(0, 0), sizes=[], ids=[]), ROUND.centre
    )
    with pytest.raises(LookupError, match="kept no round with three clients"):
        best_weights(Bowl([empty], few.experiment, d=2))


def test_a_run_that_kept_nothing_says_how_to_keep(tmp_path):
    run = tiny.trained(tmp_path, "keep.clients=none")
    with pytest.raises(LookupError, match=r"keep.clients=all"):
        best_weights(run)
    with pytest.raises(LookupError, match=r"keep.clients=all"):
        best_weights(run, rounds=[0])


def test_effort_counts_the_points_of_the_triangle(tmp_path):
    run = tiny.trained(tmp_path, "keep.clients=all")
    _, rounds = shared_rounds(run)
    samples = len(run.task.split("test"))
    assert best_weights_effort(run, step=0.5).forwards == len(rounds) * (6 + 5) * samples
    heard = []
    run.with_progress(None, heard.append).cached(best_weights, step=0.5)
    assert len(heard) == 1
    assert heard[0].startswith("best_weights of ")
