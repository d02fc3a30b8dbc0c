"""The interpolated plane of a run has the points of its plane, and the workers and progress of the run."""

import numpy as np
import pytest
import tiny

from drift.analyses.landscapes.interpolated_plane import interpolated_plane
from drift.analyses.landscapes.planes import round_plane


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), "keep.clients=all")


def test_evaluated_points_are_those_of_the_plane_and_the_others_are_near(run):
    counts = []
    ds = interpolated_plane(run.with_progress(lambda done, total: counts.append((done, total))), points=17)
    whole = round_plane(run, points=17)
    exact = ~ds.interpolated.values
    np.testing.assert_array_equal(ds.loss.values[exact], whole.loss.values[exact])
    assert 0 < exact.sum() < exact.size
    logs = np.log(ds.loss.values), np.log(whole.loss.values)
    assert np.abs(logs[0] - logs[1]).max() < 0.02 * np.ptp(logs[1])
    assert ds.attrs["analysis"] == "interpolated_plane" and ds.attrs["round"] == whole.attrs["round"]
    assert counts and counts[-1][0] == counts[-1][1]


def test_a_budget_stops_it(run):
    ds = interpolated_plane(run, points=17, tolerance=1e-9, budget=60)
    assert ds.attrs["evaluated"] <= 60 and ds.attrs["converged"] == 0
