"""A tiny cohort above the plane of three of its models."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from drift.analyses.landscapes.planes import round_plane
from drift.analyses.landscapes.projected_plane import projected_plane
from tests import tiny


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), "clients.number=6", "clients.per_round=5")


def _loss(run, theta):
    return float(run.task.loss(run.task.outputs(theta, "test"), run.task.samples["test"].targets).mean())


def test_every_model_of_the_round_is_marked_with_its_own_loss(run):
    ds, record = projected_plane(run, points=3), run.round(-1)
    ids = record.ids.tolist()
    assert ds.mark.values.tolist() == [*(f"client {client}" for client in ids), "start", "global"]
    models = [*record.clients, record.start, record.end]
    np.testing.assert_allclose(ds.mark_loss, [_loss(run, theta) for theta in models], rtol=1e-5)
    np.testing.assert_array_equal(ds.in_plane, [1, 1, 1, 0, 0, 0, 0])


def test_foot_is_the_nearest_model_of_the_plane(run):
    ds, record = projected_plane(run, points=3), run.round(-1)
    a, b, c = record.clients[:3].double()
    sides = torch.stack([b - a, c - a], dim=1)
    away = record.clients[3].double() - a
    foot = a + sides @ torch.linalg.lstsq(sides, away[:, None]).solution[:, 0]
    found = ds.isel(mark=3)
    assert float(found.distance) == pytest.approx(float((record.clients[3].double() - foot).norm()), rel=1e-5)
    assert float(found.foot_loss) == pytest.approx(_loss(run, foot.float()), rel=1e-5)


def test_models_of_the_plane_are_their_own_feet(run):
    inside = projected_plane(run, points=3).isel(mark=slice(3))
    np.testing.assert_allclose(inside.distance, 0, atol=1e-5)
    np.testing.assert_allclose(inside.foot_loss, inside.mark_loss, rtol=1e-5)
    np.testing.assert_allclose(inside.mark_loss, round_plane(run, points=3).mark_loss[:3], rtol=1e-5)


def test_the_box_holds_every_foot(run):
    ds = projected_plane(run, points=3, margin=0.1)
    for name in ("alpha", "beta"):
        assert float(ds[name].min()) < float(ds[f"mark_{name}"].min())
        assert float(ds[name].max()) > float(ds[f"mark_{name}"].max())
