"""Drift in the coordinates of curvature, of rounds that were trained: the first one, and without eigenvectors."""

from __future__ import annotations

import numpy as np
import tiny

import drift


def test_the_first_round_has_no_change_of_its_update(tmp_path):
    run = tiny.trained(tmp_path, "rounds=3", "clients.partition=iid")
    ds = drift.drift_curvature(run, kinds=["change", "step"], k=2, samples=20)
    assert ds["round"].values.tolist() == [0, 1, 2]
    norm = ds.norm.sel(kind="change")
    assert np.isnan(norm.values).tolist() == [True, False, False]
    moved = [run.round(index).end - run.round(index).start for index in range(3)]  # of FedAvg the mean updates
    expected = [float((moved[index] - moved[index - 1]).norm()) for index in (1, 2)]
    np.testing.assert_allclose(norm.values[1:], expected, rtol=1e-4)


def test_what_the_mean_removes_needs_no_eigenvectors(tmp_path):
    run = tiny.trained(tmp_path, "rounds=2", "clients.partition=iid")
    few, many = (drift.averaging_gap(run, rounds=[1], k=k, samples=20) for k in (2, 10**6))
    for name in ("spread", "removed"):
        np.testing.assert_allclose(many[name], few[name], rtol=1e-6, err_msg=name)


def test_a_kind_that_is_named_twice_counts_once(tmp_path):
    run = tiny.trained(tmp_path, "rounds=1", "keep.clients=all")
    found = drift.drift_curvature(run, kinds=np.array(["step", "client", "step"]), k=2, samples=20)
    assert found.kind.values.tolist() == ["step", "client"]
