"""Basins of a tiny run's planes in numbers."""

from __future__ import annotations

import numpy as np
import pytest

from drift.analyses.landscapes.basin import basin_rounds
from drift.analyses.landscapes.planes import global_plane, round_plane
from landscape import basin as basin_of
from landscape.surfaces.basin import area_below, centre_offset, curvature, flatness_radius
from tests import tiny


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), "rounds=4")


def test_statistics_are_those_of_the_round_planes(run):
    ds = basin_rounds(run, rounds=[1, -1], points=7, rise=0.2, reach=1)
    assert ds["round"].values.tolist() == [1, 3]
    for index in (1, 3):
        plane, found = round_plane(run, round=index, points=7), ds.sel(round=index)
        lowest = float(plane.loss.min())
        assert float(found.minimum) == lowest
        assert float(found.area) == area_below(plane, lowest + 0.2)
        assert float(found.radius) == flatness_radius(plane, 0.2)
        assert float(found.offset) == pytest.approx(centre_offset(plane), nan_ok=True)
        assert float(found.located) == np.isfinite(found.offset_error) == np.isfinite(found.offset)
        assert float(found.level) == float(basin_of(plane).level)
        assert float(found.climb) >= 0
        np.testing.assert_array_equal(found.curvature, curvature(plane))


def test_width_is_the_longest_side_of_the_triangle(run):
    clients = run.round(2).clients.double()
    longest = max(float((clients[i] - clients[j]).norm()) for i, j in ((0, 1), (0, 2), (1, 2)))
    assert float(basin_rounds(run, rounds=[2], points=5).width[0]) == pytest.approx(longest, rel=1e-6)


def test_planes_of_globals_need_two_earlier_ones(run):
    ds = basin_rounds(run, models="globals", points=5)
    assert ds["round"].values.tolist() == [2, 3]
    assert float(ds.minimum[0]) == float(global_plane(run, rounds=[0, 1, 2], points=5).loss.min())
    assert bool(basin_rounds(run, models="globals", rounds=[1], points=5).minimum.isnull().all())


def test_a_round_without_three_clients_is_missing(tmp_path):
    two = tiny.trained(tmp_path, "clients.per_round=2", "rounds=2")
    ds = basin_rounds(two, points=5)
    assert all(bool(values.isnull().all()) for values in ds.data_vars.values())


@pytest.mark.parametrize(
    ("options", "said"), [({"models": "server"}, "accepted: clients, globals"), ({"points": 4}, "points >= 2 reach")]
)
def test_wrong_options_are_refused(run, options, said):
    with pytest.raises(ValueError, match=said):
        basin_rounds(run, **options)
