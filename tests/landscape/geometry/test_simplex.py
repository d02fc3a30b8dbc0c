"""Weighted averages of models."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from landscape.geometry.simplex import points, simplex
from landscape.surfaces.surface import surface
from landscape.sweep.evaluate import evaluate
from tests.oracles import mlp_task, quadratic, thetas


def test_cells_are_weighted_averages_and_outside_is_missing():
    oracle = quadratic(3)
    models = thetas(oracle.task, 3, spread=1.0)
    ds = surface(oracle.task, simplex(models, step=0.25), metrics=("loss",))
    assert ds.loss.shape == (5, 5)
    assert int(ds.loss.notnull().sum()) == 15
    for alpha in ds.alpha.values:
        for beta in ds.beta.values:
            value = float(ds.loss.sel(alpha=alpha, beta=beta))
            if alpha + beta > 1:
                assert np.isnan(value)
            else:
                theta = alpha * models[0] + beta * models[1] + (1 - alpha - beta) * models[2]
                assert value == pytest.approx(oracle.loss(theta).item(), rel=1e-12)


def test_corners_equal_the_marks():
    task = mlp_task()
    ds = surface(task, simplex(thetas(task, 3), step=0.5))
    corners = [ds.loss.sel(alpha=a, beta=b) for a, b in ((1, 0), (0, 1), (0, 0))]
    assert [float(corner) for corner in corners] == ds.mark_loss.values[:3].tolist()


def test_extension_lets_every_weight_go_as_far_below_zero():
    sweep = simplex(torch.zeros(3, 2), step=0.1, extend=0.2)
    rows = sweep.coefficients
    rows = rows[np.isfinite(rows).all(1)]
    np.testing.assert_allclose(rows.sum(1), 1)
    np.testing.assert_allclose(rows.min(0), -0.2)
    np.testing.assert_allclose(rows.max(0), 1.4)


def test_default_step_is_a_fiftieth():
    assert simplex(torch.zeros(3, 2)).shape == (51, 51)


@pytest.mark.parametrize(
    ("count", "step", "match"), [(2, 0.1, "2 models given"), (3, 0.3, "step is 0.3"), (3, 0, "step is 0")]
)
def test_bad_input_is_named(count, step, match):
    with pytest.raises(ValueError, match=match):
        simplex(torch.zeros(count, 2), step=step)


def test_random_points_are_weights_and_keyed_by_the_seed():
    models = torch.zeros(4, 2)
    rows = points(models, 500, 3)
    assert rows.shape == (500, 4)
    assert (rows >= 0).all()
    torch.testing.assert_close(rows.sum(1), torch.ones(500, dtype=torch.float64))
    torch.testing.assert_close(rows.mean(0), torch.full((4,), 0.25, dtype=torch.float64), rtol=0, atol=0.04)
    assert torch.equal(points(models, 500, 3), rows)
    assert not torch.equal(points(models, 500, 4), rows)


def test_random_points_go_into_the_evaluator():
    task = mlp_task()
    models = thetas(task, 4)
    assert torch.isfinite(evaluate(task, models, points(models, 5, 0))["loss"]).all()
