from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import torch
from oracles import cnn_task, mlp_task, quadratic, thetas
from torch import Tensor

from landscape.measures.ensemble import subset_errors
from landscape.measures.predictions import class_probabilities
from landscape.model.task import Task, cross_entropy

WEIGHTS = torch.tensor([2.0, 7.0, 1.0])


def error_of(outputs: Tensor, targets: Tensor) -> float:
    return (outputs.argmax(1) != targets).double().mean().item()


def test_buffers_are_averaged_with_the_models_where_asked():
    task = cnn_task(norm=True)
    models, buffers = thetas(task, 3), task.buffers + torch.rand(3, len(task.buffers), dtype=torch.float64)
    share = (WEIGHTS / WEIGHTS.sum()).double()
    mean = task.outputs(share @ models, "test", buffers=share @ buffers)
    subsets = subset_errors(task, models, WEIGHTS, buffers=buffers, statistics="averaged")
    expected = cross_entropy(mean, task.split("test").targets).mean().item()
    assert subsets.loss.sel(models=3, draw=0).item() == pytest.approx(expected)


def test_subsets_by_hand():
    task = mlp_task()
    models = thetas(task, 3)
    ds = subset_errors(task, models, WEIGHTS)
    assert dict(ds.sizes) == {"models": 3, "draw": 3}
    assert ds["models"].values.tolist() == [1, 2, 3]
    for count in (1, 2, 3):
        for draw, chosen in enumerate(combinations(range(3), count)):
            picked = list(chosen)
            theta = WEIGHTS[picked].double() @ models[picked] / WEIGHTS[picked].sum()
            outputs, targets = task.outputs(theta, "test"), task.split("test").targets
            cell = ds.sel(models=count).isel(draw=draw)
            assert cell.loss.item() == pytest.approx(cross_entropy(outputs, targets).mean().item())
            assert cell.error.item() == pytest.approx(error_of(outputs, targets))
    assert ds.loss.sel(models=3).isnull().values.tolist() == [False, True, True]


def test_subsets_are_drawn_without_repeats_and_by_seed():
    task = mlp_task()
    models, weights = thetas(task, 7), torch.arange(1.0, 8.0)
    ds = subset_errors(task, models, weights, subsets=9, counts=[1, 3, 7])
    assert ds.loss.notnull().sum("draw").values.tolist() == [7, 9, 1]
    assert len(np.unique(ds.loss.sel(models=3))) == 9
    assert ds.identical(subset_errors(task, models, weights, subsets=9, counts=[1, 3, 7]))
    other = subset_errors(task, models, weights, subsets=9, counts=[3], seed=1)
    assert not np.array_equal(other.loss.sel(models=3), ds.loss.sel(models=3))
    alone = subset_errors(task, models, weights, subsets=9, counts=[3])
    np.testing.assert_array_equal(alone.loss.sel(models=3), ds.loss.sel(models=3))


def test_tasks_without_error_have_loss_only():
    task = quadratic(4).task
    assert list(subset_errors(task, thetas(task, 2), WEIGHTS[:2]).data_vars) == ["loss"]


def test_bad_values_are_named():
    task: Task = mlp_task()
    models = thetas(task, 3)
    with pytest.raises(ValueError, match=r"\(m, d\) and \(m,\)"):
        subset_errors(task, models, WEIGHTS[:2])
    with pytest.raises(ValueError, match="must not be negative"):
        subset_errors(task, models, -WEIGHTS)
    with pytest.raises(ValueError, match="cannot average 4 of 3"):
        subset_errors(task, models, WEIGHTS, counts=[1, 4])
    with pytest.raises(ValueError, match="a weight is zero"):
        subset_errors(task, models, torch.tensor([1.0, 0.0, 2.0]))
    with pytest.raises(ValueError, match="subsets is 0"):
        subset_errors(task, models, WEIGHTS, subsets=0)


@pytest.mark.parametrize(("width", "targets"), [(1, torch.arange(8).remainder(2)), (3, torch.ones(8, 3))])
def test_probabilities_of_one_logit_or_of_labels_are_refused(width, targets):
    with pytest.raises(ValueError, match=r"probabilities need logits \(n, C\) of two classes.*Give outputs=logits"):
        class_probabilities(torch.zeros(8, width), targets)
