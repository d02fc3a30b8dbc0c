"""Planes with their sampling error: the same heights, and what cannot have one."""

import numpy as np
import pytest
import tiny

from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.landscapes.models_plane import models_line, models_plane
from drift.analyses.landscapes.planes import global_plane, round_plane
from drift.analyses.landscapes.sweeps import client_sweep


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), "keep.clients=all")


@pytest.mark.parametrize("analysis", [round_plane, global_plane, models_plane, models_line])
def test_heights_stay_and_get_their_error(run, analysis):
    plain, found = analysis(run, points=3), run.cached(analysis, points=3, folds=4)
    np.testing.assert_allclose(found.loss, plain.loss, rtol=1e-6)
    assert found.loss_sampling_error.dims == plain.loss.dims
    assert float(found.loss_sampling_error.min()) == 0 < float(found.loss_sampling_error.max())
    assert "class_error" not in found
    assert run.cached(analysis, points=3, folds=4).identical(found)


def test_interpolated_points_have_no_sampling_error(run):
    _, _, sweep = client_sweep(run, -1, None, points=3, margin=0.3, box="marks")
    with pytest.raises(ValueError, match=r"folds is 4 and tolerance 0\.1; interpolated points have no sampling error"):
        evaluate_on(run, sweep, split="test", tolerance=0.1, folds=4)
