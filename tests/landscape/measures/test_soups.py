"""Soups against all of their steps by hand."""

from __future__ import annotations

import oracles
import pytest
import torch

import landscape
from landscape.model.samples import Samples
from landscape.model.task import Task

GROWING = 1
"""Seed whose greedy soup has some of the models."""


def models_around(task, count=6, spread=1.5, seed=4):
    generator = torch.Generator().manual_seed(seed)
    return task.centre + spread * torch.randn(count, len(task.centre), generator=generator, dtype=torch.float64)


def mean_loss(task, models, rows):
    return float(task.loss(models[list(rows)].mean(0)))


def test_the_greedy_soup_takes_models_by_rising_loss_and_never_worsens():
    task = oracles.quadratic(4)
    models = models_around(task, seed=GROWING)
    order = sorted(range(6), key=lambda row: float(task.loss(models[row])))
    soup, least = [], float("inf")
    for row in order:
        if (loss := mean_loss(task, models, [*soup, row])) <= least:
            soup, least = [*soup, row], loss
    assert landscape.model_soup(task.task, models) == sorted(soup)
    assert 1 < len(soup) < 6


def test_the_pruned_soup_drops_the_worst_member_until_none_is_worse_than_its_absence():
    task = oracles.quadratic(4)
    models = models_around(task)
    soup = list(range(6))
    while len(soup) > 1:
        losses = {row: mean_loss(task, models, [other for other in soup if other != row]) for row in soup}
        worst = min(losses, key=losses.get)
        if losses[worst] >= mean_loss(task, models, soup):
            break
        soup.remove(worst)
    assert landscape.model_soup(task.task, models, kind="pruned") == soup
    assert 1 < len(soup) < 6


def test_equal_models_and_a_single_one():
    task = oracles.quadratic(4)
    models = models_around(task, 1)
    assert landscape.model_soup(task.task, models) == landscape.model_soup(task.task, models, kind="pruned") == [0]
    copies = models.expand(3, -1).clone()
    assert landscape.model_soup(task.task, copies) == [0, 1, 2]
    assert landscape.model_soup(task.task, copies, kind="pruned") == [0, 1, 2]


@pytest.mark.parametrize("kind", ["greedy", "pruned"])
@pytest.mark.parametrize("broken", [float("nan"), float("inf")])
def test_models_without_a_finite_loss_are_in_no_soup(kind, broken):
    task = Task(torch.nn.Linear(2, 2, bias=False), {"test": Samples(torch.eye(2), torch.arange(2))})
    good = torch.tensor([[2.0, 0.0, 0.0, 2.0], [3.0, 0.0, 0.0, 1.0]])
    bad = torch.full((1, 4), broken)
    without = landscape.model_soup(task, good, kind=kind)
    assert landscape.model_soup(task, torch.cat([bad, good, bad]), kind=kind) == [row + 1 for row in without]
    with pytest.raises(ValueError, match="none of the 2 models has a finite loss"):
        landscape.model_soup(task, torch.cat([bad, bad]), kind=kind)
