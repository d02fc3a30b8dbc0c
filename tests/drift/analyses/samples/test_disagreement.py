"""Groups of like samples on clouds with known groups, and disagreement on a tiny run."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import xarray as xr

from drift.analyses.samples.client_losses import client_losses
from drift.analyses.samples.disagreement import disagreement, disagreement_of
from drift.analyses.samples.likeness import like_groups, principal_components
from drift.analyses.samples.predictions import sample_predictions
from drift.analyses.selected_samples import selected_samples
from landscape.sweep.evaluate import evaluate

CENTRES = np.array([[0.0, 0.0], [9.0, 0.0], [0.0, 9.0]])


def clouds(*counts):
    """Samples around the centres, so many at each."""
    draws = np.random.default_rng(1)
    owner = np.repeat(np.arange(len(counts)), counts)
    return CENTRES[owner] + draws.normal(size=(len(owner), 2), scale=0.3), owner


def test_groups_are_the_clouds_of_each_class():
    points, owner = clouds(4, 5, 3)
    labels = (owner == 2).astype(int)  # class 0 has two clouds
    groups = like_groups(points, labels, np.ones(12, bool), 3).group
    assert [len(set(groups[owner == cloud])) for cloud in range(3)] == [1, 1, 1]
    assert len(set(groups)) == 3


def test_samples_of_two_classes_share_no_group():
    points, _ = clouds(6)
    labels = np.array([0, 1] * 3)
    groups = like_groups(points, labels, np.ones(6, bool), 1).group
    assert set(groups[labels == 0]).isdisjoint(groups[labels == 1])


def test_context_joins_the_nearest_group_of_its_class():
    points, owner = clouds(4, 5)
    marked = np.array([True, True, False, False, True, True, False, False, False])
    result = like_groups(points, np.zeros(9, int), marked, 2)
    for cloud in range(2):
        members = owner == cloud
        assert len(set(result.group[members])) == 1
        centre = points[members & marked].mean(0)
        np.testing.assert_allclose(result.distance[members], np.linalg.norm(points[members] - centre, axis=1))


def test_a_class_without_marked_samples_has_no_group():
    points, owner = clouds(3, 4)
    result = like_groups(points, owner, owner == 0, 5)
    assert (result.group[owner == 1] == -1).all()
    assert np.isnan(result.distance[owner == 1]).all()
    assert sorted(result.group[owner == 0]) == [0, 1, 2]


def test_components_keep_distances_of_flat_clouds():
    points, _ = clouds(20, 15, 17)
    wide = points @ np.random.default_rng(0).normal(size=(2, 30))
    components = principal_components(wide)
    before, after = (np.linalg.norm(cloud[:, None] - cloud, axis=2) for cloud in (wide, components))
    np.testing.assert_allclose(after, before, atol=1e-3)


@pytest.mark.parametrize("shape", [(300, 40), (40, 300), (61, 61)])
@pytest.mark.parametrize("offset", [0.0, 1e3])
def test_components_are_those_of_the_singular_value_decomposition(shape, offset):
    values = np.geomspace(30, 0.3, shape[1]) * np.random.default_rng(1).normal(size=shape) + offset
    flat = values.astype(np.float32).astype(np.float64)
    left, size, _ = np.linalg.svd(flat - flat.mean(0), full_matrices=False)
    expected = left[:, :20] * size[:20]
    found = principal_components(flat)
    np.testing.assert_allclose(found * np.sign((found * expected).sum(0)), expected, atol=1e-7 * size[0])


def predicted(first, second, target):
    """Predictions of two models as `sample_predictions` returns them."""
    values = (("model", "sample"), np.array([first, second]))
    loss = (values[0], np.ones((2, len(target))), {"units": "nats"})
    coords = {"model": ["client 3", "end"], "sample": np.arange(len(target)) + 10}
    return xr.Dataset({"predicted": values, "confidence": loss, "loss": loss, "target": ("sample", target)}, coords)


def test_a_group_states_its_size_share_and_who_is_right():
    points, owner = clouds(4, 3)
    ds = disagreement_of(predicted([0, 0, 0, 1, 2, 2, 2], [1, 1, 0, 0, 0, 0, 2], owner * 0), points, groups=2)
    assert ds.differs.values.tolist() == [1, 1, 0, 1, 1, 1, 0]
    assert ds.sample_group.values.tolist() == [0, 0, 0, 0, 1, 1, 1]  # the larger first
    assert ds.group_size.values.tolist() == [3, 2]
    np.testing.assert_allclose(ds.group_share, [3 / 4, 2 / 3])
    np.testing.assert_allclose(ds.group_client_right, [2 / 3, 0])
    np.testing.assert_allclose(ds.group_other_right, [1 / 3, 1])


def test_models_that_agree_leave_no_group():
    points, owner = clouds(4, 3)
    ds = disagreement_of(predicted([0] * 7, [0] * 7, owner), points)
    assert ds.sizes["group"] == 0
    assert ds.sample_group.isnull().all()


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"))


def test_a_run_disagrees_where_its_predictions_do(run):
    client = int(run.round(0).ids[1])
    ds = run.cached(disagreement, round=0, client=client, groups=4)
    both = sample_predictions(run, round=0, models=[f"client {client}", "end"])
    np.testing.assert_array_equal(ds.differs, both.predicted[0] != both.predicted[1])
    assert float(ds.group_size.sum()) == float(ds.differs.sum()) > 0
    classes = {int(label) for label in ds.target.values[ds.differs.values > 0]}
    assert set(ds.group_class.values) == classes
    assert (ds.attrs["client"], ds.attrs["against"]) == (f"client {client}", "end")


def test_losses_of_clients_equal_those_of_single_evaluations(run):
    ds, record = client_losses(run, round=1), run.round(1)
    for place, client in enumerate(record.ids.tolist()):
        own = run.client_samples(client, 1)
        models = {"": record.clients[place], "start_": record.start, "end_": record.end}
        for name, theta in models.items():
            loss = evaluate(run.task, theta[None], [[1.0]], split=own)["loss"][0]
            np.testing.assert_allclose(ds[f"{name}own_loss"].sel(client=client), loss, rtol=1e-12)
        values = evaluate(run.task, record.clients[place][None], [[1.0]])
        np.testing.assert_allclose(ds.error.sel(client=client), values["error"][0])


def test_losses_of_clients_on_some_samples_are_means_over_them(run):
    ds, record = client_losses(run, round=1, samples=4), run.round(1)
    some = selected_samples(run, 1, "test", 4)
    for place, client in enumerate(record.ids.tolist()):
        loss = evaluate(run.task, record.clients[place][None], [[1.0]], split=some)["loss"][0]
        np.testing.assert_allclose(ds.loss.sel(client=client), loss, rtol=1e-12)
    assert (ds.attrs["samples"], ds.attrs["samples_of"]) == (4, len(run.task.split("test")))
    np.testing.assert_array_equal(ds.own_loss, client_losses(run, round=1).own_loss)
