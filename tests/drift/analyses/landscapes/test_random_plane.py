"""Random planes around the global models of a tiny run."""

from __future__ import annotations

import numpy as np
import pytest

from drift.analyses.landscapes.planes import random_plane
from landscape.geometry.directions import random_plane as random_sweep
from landscape.surfaces.surface import surface
from tests import tiny


def test_the_plane_is_that_of_the_global_model(tmp_path):
    run = tiny.trained(tmp_path)
    ds = random_plane(run, round=1, points=3, radius=0.5, seed=4)
    alone = surface(run.task, random_sweep(run.task, run.round(1).end, seed=4, points=3, radius=0.5), split="test")
    np.testing.assert_array_equal(ds.loss, alone.loss)
    assert ds.mark.values.tolist() == ["round 1"]
    with pytest.raises(LookupError, match="has no round 17; it has 0 to 2"):
        random_plane(run, round=17)
