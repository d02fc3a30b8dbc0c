"""The path alone has the places of the path on its plane."""

from __future__ import annotations

import numpy as np
import tiny

from drift.analyses.landscapes.projected_plane import trajectory_plane
from drift.analyses.landscapes.trajectory_points import trajectory_points


def test_a_path_has_the_places_of_its_plane_and_the_recorded_losses(tmp_path):
    run = tiny.trained(tmp_path)
    alone, plane = trajectory_points(run, clients=True), trajectory_plane(run, clients=True, points=2)
    for name in ("mark_alpha", "mark_beta", "distance", "client_alpha", "client_beta", "client_distance"):
        np.testing.assert_allclose(alone[name], plane[name], rtol=1e-5, atol=1e-6, err_msg=name)
    np.testing.assert_array_equal(alone.mark_round, [0, 1, 2])
    np.testing.assert_array_equal(alone.mark_loss, run.metrics().loss)
    np.testing.assert_allclose(alone.mark_loss, plane.mark_loss, rtol=1e-5)
    assert alone.attrs["explained_alpha"] == plane.attrs["explained_alpha"]
