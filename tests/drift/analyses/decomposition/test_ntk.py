"""Theorem 2 on a real small run: rows and columns of the table, and the kernels behind them."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from drift.analyses.decomposition.ntk import ntk_variance, ntk_variance_effort
from drift.runs.run import Run
from landscape.curvature.ntk import ntk, variance_by_mmd
from tests import tiny


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    return tiny.trained(tmp_path_factory.mktemp("runs"), "keep.clients=none")


def test_clients_of_the_cohort_have_both_sides_and_others_have_none(run: Run) -> None:
    found = ntk_variance(run, points=6)
    assert found["variance"].dims == ("round", "client")
    for index in (0, 1, 2):
        record = run.round(index)
        there = np.isin(np.arange(4), [k for k in record.ids.tolist() if len(run.parts[k])])
        np.testing.assert_array_equal(np.isfinite(found["variance"].sel(round=index)), there)
        assert (found.diagonal.sel(round=index).values[there] > 0).all()
    assert np.isfinite(found.data_diagonal).all()
    assert float(found.points.max()) <= 6
    assert all({"long_name", "units"} <= set(values.attrs) for values in found.data_vars.values())


def test_a_client_that_holds_everything_is_compared_with_itself(tmp_path) -> None:
    alone = tiny.trained(tmp_path, "clients.number=1", "clients.per_round=1", "clients.partition=iid", "rounds=1")
    found = ntk_variance(alone, points=60).isel(round=0, client=0)
    record, samples = alone.round(0), alone.client_samples(0)
    kernel = ntk(alone.task, record.kept("start"), samples)
    sides = variance_by_mmd(kernel, kernel, kernel)
    for name, value in sides.items():
        assert float(found[name]) == pytest.approx(value, rel=1e-4, abs=1e-4), name
    assert abs(float(found["variance"])) < 1e-3 * float(found.diagonal)


def test_points_stay_the_same_over_rounds_and_all_clients_may_be_the_data(run: Run) -> None:
    everyone = ntk_variance(run, points=10, union="all")
    assert everyone.attrs["union"] == "all"
    few = ntk_variance(run, rounds=[-1], points=10, union="all")
    torch.testing.assert_close(few.data_square.values, everyone.data_square.values[-1:])
    assert np.isfinite(few.mmd2).sum() > 0


def test_effort_and_refusals(run: Run, tmp_path) -> None:
    one, two = ntk_variance_effort(run, rounds=[0], points=5), ntk_variance_effort(run, points=5)
    assert (one.trainings, two.forwards) == (0, 3 * one.forwards)
    with pytest.raises(ValueError, match="points is 1"):
        ntk_variance(run, points=1)
    bare = tiny.trained(tmp_path, "keep.clients=none", "keep.globals=none", "rounds=1")
    with pytest.raises(LookupError, match=r"keep\.globals=all"):
        ntk_variance(bare)
    with pytest.raises(LookupError, match=r"keep\.globals=all"):
        ntk_variance(bare, rounds=[0])
