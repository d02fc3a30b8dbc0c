"""Errors by class on a tiny run's plane."""

from __future__ import annotations

import numpy as np

from drift.analyses.landscapes.models_plane import models_plane
from drift.analyses.landscapes.planes import round_plane
from landscape.results import netcdf_files
from tests import tiny


def test_class_errors_weighted_by_class_sizes_are_the_error(tmp_path):
    run = tiny.trained(tmp_path)
    ds, plane = models_plane(run, points=3), round_plane(run, points=3)
    counts = np.bincount(run.task.samples["test"].targets, minlength=ds.sizes["class"])
    assert ds.class_error.dims == ("alpha", "beta", "class")
    np.testing.assert_allclose((ds.class_error * counts).sum("class") / counts.sum(), plane.error, atol=1e-12)
    np.testing.assert_array_equal(ds.loss, plane.loss)
    assert ds["class"].values.tolist() == run.about["classes"]


def test_class_errors_go_on_where_it_stopped(tmp_path):
    run = tiny.trained(tmp_path)
    whole = models_plane(run, points=3)
    half = whole.copy(deep=True).drop_vars("class").assign_attrs(split="given")  # as the evaluation states it
    half.class_error.values[1:] = np.nan
    half.loss.values[0, 0] = 0.25  # kept, not computed again
    partial = netcdf_files.Partial(tmp_path / "part.nc")
    partial.checkpoint(half)
    resumed = models_plane(run, points=3, partial=partial)
    np.testing.assert_array_equal(resumed.class_error, whole.class_error)
    assert float(resumed.loss[0, 0]) == 0.25
