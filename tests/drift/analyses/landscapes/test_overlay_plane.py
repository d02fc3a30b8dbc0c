"""Each client's own loss on a common plane."""

from __future__ import annotations

from copy import copy
from dataclasses import replace

import numpy as np
import pytest
import tiny
import torch

from drift.analyses.landscapes.data_planes import overlay_plane
from drift.analyses.landscapes.planes import round_plane
from landscape.results.netcdf_files import Partial
from landscape.sweep.evaluate import evaluate


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), "keep.clients=all")


def test_every_clients_loss_is_that_of_its_own_data(run):
    ids = run.round(1).ids.tolist()[::-1]
    ds = overlay_plane(run, round=1, clients=ids, points=5)
    assert ds.client_loss.dims == ("client", "alpha", "beta")
    assert ds.client.values.tolist() == ids
    sizes = [len(run.client_samples(client)) for client in ids]
    assert len(set(sizes)) > 1
    assert ds.client_samples.values.tolist() == sizes
    record = run.round(1)
    w1, w2, w3 = (record.clients[record.ids.tolist().index(client)].double() for client in ids)
    one = (w2 - w1) / (w2 - w1).norm()
    two = w3 - w1 - ((w3 - w1) @ one) * one
    theta = w1 + float(ds.alpha[3]) * one + float(ds.beta[1]) * two / two.norm()
    for client in ids:
        held = run.client_samples(client)
        outputs = run.task.outputs(theta.float(), held)
        expected = torch.nn.functional.cross_entropy(outputs, held.targets).item()
        assert float(ds.client_loss.sel(client=client)[3, 1]) == pytest.approx(expected, rel=1e-4)


def test_marks_have_each_clients_own_loss_and_weighted_by_samples_that_of_all(run):
    ds = overlay_plane(run, round=1, points=4)
    record, ids = run.round(1), ds.client.values.tolist()
    assert ids == record.ids.tolist()[:3]
    models = record.clients[:3]
    for client in ids:
        alone = evaluate(run.task, models, torch.eye(3), split=run.client_samples(client))["loss"]
        np.testing.assert_allclose(ds.mark_client_loss.sel(client=client).values[:3], alone.numpy(), rtol=1e-5)
    parts = torch.from_numpy(np.concatenate([run.parts[client] for client in ids]))
    whole = evaluate(run.task, models, torch.eye(3), split=run.task.split("train")[parts])["loss"]
    mean = (ds.mark_client_loss * ds.client_samples).sum("client") / ds.client_samples.sum()
    np.testing.assert_allclose(mean.values[:3], whole.numpy(), rtol=1e-5)


def test_a_client_without_samples_is_refused(run):
    ids = run.round(1).ids.tolist()[:3]
    bare = copy(run)
    parts = [part[:0] if client == ids[2] else part for client, part in enumerate(run.parts)]
    vars(bare)["dataset"] = replace(run.dataset, parts=parts)
    with pytest.raises(ValueError, match="name three that hold some"):
        overlay_plane(bare, round=1, clients=ids, points=3)


def test_a_started_common_loss_is_continued(run, tmp_path):
    whole = overlay_plane(run, points=5)
    partial = Partial(tmp_path / "plane.nc")
    partial.checkpoint(round_plane(run, points=5).assign(loss=whole.loss.where(whole.alpha > 0) + 1))
    ds = overlay_plane(run, points=5, partial=partial)
    np.testing.assert_array_equal(ds.loss, (whole.loss + 1).where(whole.alpha > 0, whole.loss))


def test_the_common_loss_is_that_of_the_round_plane(run):
    ds = overlay_plane(run, points=5)
    plain = round_plane(run, points=5)
    for name in plain.data_vars:
        np.testing.assert_array_equal(ds[name], plain[name])
    assert ds.client_loss.attrs["units"] == "nats"
    assert ds.attrs["split"] == "test"
    assert run.cached(overlay_plane, points=5).identical(run.cached(overlay_plane, points=5))


def test_clients_of_another_cohort_are_refused(run):
    absent = set(range(4)) - set(run.round(1).ids.tolist())
    with pytest.raises(ValueError, match="name three of them"):
        overlay_plane(run, round=1, clients=[*absent, 0, 1])


def test_an_adaptive_plane_has_the_values_of_the_whole_one_where_it_was_evaluated(run):
    whole = round_plane(run, points=9, box="symmetric")
    ds = run.cached(round_plane, points=9, box="symmetric", tolerance=0.05)
    evaluated = ~ds.interpolated.values
    np.testing.assert_array_equal(ds.loss.values[evaluated], whole.loss.values[evaluated])
    assert ds.attrs["analysis"] == "round_plane"
    assert 0 < evaluated.sum() <= evaluated.size
