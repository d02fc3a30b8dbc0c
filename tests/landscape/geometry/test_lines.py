"""The line through two models."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from landscape.geometry.lines import line
from landscape.surfaces.surface import surface
from tests.oracles import mlp_task, quadratic, thetas


def test_line_of_a_quadratic_is_the_parabola():
    oracle = quadratic(4)
    a, b = thetas(oracle.task, 2, spread=1.0)
    ds = surface(oracle.task, line(a, b, points=9), metrics=("loss",))
    expected = [oracle.loss((1 - t) * a + t * b).item() for t in ds.t.values]
    np.testing.assert_allclose(ds.loss.values, expected, rtol=1e-12)


def test_defaults_put_both_models_and_their_mean_on_the_grid():
    task = mlp_task()
    a, b = thetas(task, 2)
    ds = surface(task, line(a, b))
    assert ds.sizes["t"] == 41
    assert (float(ds.t[0]), float(ds.t[-1])) == (-0.5, 1.5)
    for index in range(3):
        place = float(ds.mark_t[index])
        assert float(ds.loss.sel(t=place, method="nearest")) == pytest.approx(float(ds.mark_loss[index]), rel=1e-12)
    assert ds.mark.values.tolist() == ["a", "b", "mean"]


def test_swapping_the_models_turns_the_line_round():
    task = mlp_task()
    a, b = thetas(task, 2)
    forward, back = surface(task, line(a, b, points=5)), surface(task, line(b, a, points=5))
    np.testing.assert_allclose(forward.loss.values, back.loss.values[::-1], rtol=1e-12)


def test_bad_models_and_ranges_are_named():
    with pytest.raises(ValueError, match=r"\(3,\), \(4,\)"):
        line(torch.zeros(3), torch.zeros(4))
    with pytest.raises(ValueError, match=r"range 1.5 to 0.0 is empty"):
        line(torch.zeros(3), torch.ones(3), low=1.5, high=0.0)
    with pytest.raises(ValueError, match="1 points"):
        line(torch.zeros(3), torch.ones(3), points=1)
