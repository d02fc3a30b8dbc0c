"""Paths between the models of tiny runs."""

from __future__ import annotations

import numpy as np
import pytest

from drift.analyses.landscapes.barriers import aligned_barrier, client_barriers, mode_curve
from drift.analyses.landscapes.projected_plane import trajectory_plane
from drift.runs.run import open as open_run
from landscape.geometry.planes import project
from landscape.geometry.trajectory import principal_plane
from landscape.results import netcdf_files
from landscape.surfaces.barrier import barrier
from tests import tiny


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(
        tmp_path_factory.mktemp("runs"), "task.model=mlp", "task.model_options={hidden=[6]}", "rounds=4"
    )


def test_trajectory_marks_are_the_global_models(run):
    ds = trajectory_plane(run, points=3)
    assert dict(ds.sizes) == {"alpha": 3, "beta": 3, "mark": 4}
    assert ds.mark.values.tolist() == ["round 0", "round 1", "round 2", "round 3"]
    np.testing.assert_array_equal(ds.mark_round, [0, 1, 2, 3])
    models = run.models()
    losses = [
        float(run.task.loss(run.task.outputs(m, "test"), run.task.samples["test"].targets).mean()) for m in models
    ]
    np.testing.assert_allclose(ds.mark_loss, losses, rtol=1e-5)
    np.testing.assert_allclose(ds.distance, project(models, principal_plane(models)).distance)
    assert 0 < ds.attrs["explained_beta"] <= ds.attrs["explained_alpha"] < 1


def test_trajectory_goes_on_where_it_stopped(run, tmp_path):
    whole = trajectory_plane(run, points=3, rounds=[0, 1, -1])
    half = whole.copy(deep=True)
    half.loss.values[1:] = np.nan
    half.error.values[0, 0] = 0.25  # kept, not computed again
    partial = netcdf_files.Partial(tmp_path / "part.nc")
    partial.checkpoint(half)
    resumed = trajectory_plane(run, points=3, rounds=[0, 1, -1], partial=partial)
    np.testing.assert_array_equal(resumed.loss, whole.loss)
    assert float(resumed.error[0, 0]) == 0.25


def test_a_trajectory_needs_two_models(run):
    with pytest.raises(LookupError, match="kept 1 global models"):
        trajectory_plane(run, rounds=[1])


def test_client_barriers_are_those_of_the_lines(run):
    ds = client_barriers(run, round=1, points=5)
    record = run.round(1)
    ids = record.ids.tolist()
    assert ds.mark.values.tolist() == [*(f"client {client}" for client in ids), "global"]
    alone = barrier(run.task, record.clients[1], record.end, points=5)
    found = ds.sel(mark=f"client {ids[1]}", mark_other="global")
    assert float(found.barrier) == pytest.approx(float(alone.barrier), abs=1e-6)
    assert float(found.mark_loss) == pytest.approx(float(alone.mark_loss[0]), rel=1e-5)
    two = client_barriers(run, round=1, clients=ids[:0:-1], points=5)
    assert two.mark.values.tolist() == [f"client {ids[2]}", f"client {ids[1]}", "global"]
    with pytest.raises(ValueError, match="client 17 was asked for"):
        client_barriers(run, clients=[17])


def test_curve_joins_two_clients(run):
    ds = mode_curve(run, round=2, steps=5, points=4)
    record = run.round(2)
    assert [ds.attrs["first"], ds.attrs["second"]] == record.ids.tolist()[:2]
    alone = barrier(run.task, *record.clients[:2], points=4)
    np.testing.assert_allclose(ds.straight_loss, alone.loss, rtol=1e-5)
    np.testing.assert_allclose(ds.loss[[0, -1]], alone.loss[[0, -1]], rtol=1e-5)
    with pytest.raises(ValueError, match="name two of them"):
        mode_curve(run, clients=record.ids.tolist())


def test_alignment_of_clients_and_of_runs(run, tmp_path):
    own = aligned_barrier(run, points=3)
    assert [own.attrs["first"], own.attrs["second"]] == run.round(-1).ids.tolist()[:2]
    assert float(own.aligned_distance) <= float(own.distance)
    options = ("task.model=mlp", "task.model_options={hidden=[6]}")
    other = tiny.trained(tmp_path, *options, "seed=8")
    there = aligned_barrier(run, other=str(other.folder), points=3)
    assert float(there.distance) == pytest.approx(float((run.models()[-1] - other.models()[-1]).norm()), rel=1e-5)
    assert float(there.aligned_distance) < float(there.distance)
    assert (there.attrs["first"], there.attrs["second"]) == (3, 2)
    linear = tiny.trained(tmp_path)
    with pytest.raises(ValueError, match="different models"):
        aligned_barrier(run, other=str(linear.folder))


def test_results_are_kept(run):
    first = run.cached(client_barriers, points=3)
    again = open_run(run.folder).cached(client_barriers, points=3)
    assert first.identical(again)


def test_clients_stand_where_they_project_and_inside_the_box(run):
    ds = trajectory_plane(run, points=3, clients=True)
    assert np.array_equal(ds["round"], run.rounds())
    for index in run.rounds():
        record = run.round(index)
        row = ds.sel(round=index)
        assert np.array_equal(np.flatnonzero(np.isfinite(row.client_alpha)), record.ids.numpy())
        one = int(record.ids[0])
        other = int(record.ids[1])
        both = [float((row[name].sel(client=one) - row[name].sel(client=other)) ** 2) for name in PLACE]
        assert sum(both) <= float((record.clients[0] - record.clients[1]).double().norm()) ** 2 * (1 + 1e-6)
    for name in ("alpha", "beta"):
        values = ds[f"client_{name}"].values
        assert ds[name].min() <= np.nanmin(values) <= np.nanmax(values) <= ds[name].max()


PLACE = ("client_alpha", "client_beta")
