"""All aggregation weights of three clients of a tiny run."""

from __future__ import annotations

import numpy as np
import pytest

from drift.analyses.landscapes.weight_simplex import weight_simplex
from tests import tiny


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"))


def test_the_mark_by_size_is_fedavg(run):
    ds, record = weight_simplex(run, step=0.5), run.round(-1)
    held = record.shares.numpy()
    place = ds.isel(mark=ds.mark.values.tolist().index("by size"))
    np.testing.assert_allclose([place.mark_alpha, place.mark_beta], held[:2])
    targets = run.task.samples["test"].targets
    loss = float(run.task.loss(run.task.outputs(record.end, "test"), targets).mean())
    assert float(place.mark_loss) == pytest.approx(loss, rel=1e-5)


def test_corners_are_the_clients_in_their_order(run):
    ids = run.round(-1).ids.tolist()[::-1]
    ds = weight_simplex(run, step=0.5, clients=ids)
    assert ds.mark.values.tolist()[:3] == [f"client {client}" for client in ids]
    corners = [ds.loss.sel(alpha=1, beta=0), ds.loss.sel(alpha=0, beta=1), ds.loss.sel(alpha=0, beta=0)]
    np.testing.assert_allclose([float(value) for value in corners], ds.mark_loss[:3], rtol=1e-5)
    assert np.isnan(ds.loss.sel(alpha=1, beta=1))
    assert ds.beta.attrs["long_name"] == f"weight of client {ids[1]}"


def test_a_triangle_needs_three_of_the_cohort(run):
    with pytest.raises(ValueError, match="name three of them"):
        weight_simplex(run, clients=[0, 1])
