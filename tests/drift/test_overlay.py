"""Each client's own loss on a common plane."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import torch

from drift.overlay import overlay_plane
from drift.terrain import round_plane


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


def test_the_common_loss_is_that_of_the_round_plane(run):
    ds = overlay_plane(run, points=5)
    plain = round_plane(run, points=5)
    for name in plain.data_vars:
        np.testing.assert_array_equal(ds[name], plain[name])
    assert ds.client_loss.attrs["units"] == "nats"
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
