"""Planes and slices along directions."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from landscape.geometry.directions import random_direction, random_directions, random_plane, slice_along
from landscape.surfaces.surface import surface
from tests.oracles import cnn_task, quadratic


def test_every_filter_has_the_norm_of_the_models_filter():
    task = cnn_task()
    theta = task.theta
    direction = random_direction(task, theta, torch.Generator().manual_seed(0))
    own, found = task.layout.named(theta), task.layout.named(direction)
    for name, part in found.items():
        if part.ndim == 1:
            assert not part.any()
        else:
            torch.testing.assert_close(part.flatten(1).norm(dim=1), own[name].flatten(1).norm(dim=1))
    assert found["0.weight"].flatten(1).norm(dim=1).std() > 0


def test_vectors_may_move_too():
    task = cnn_task()
    direction = random_direction(task, task.theta, torch.Generator().manual_seed(0), vectors=True)
    own, found = task.layout.named(task.theta), task.layout.named(direction)
    torch.testing.assert_close(found["0.bias"].norm(), own["0.bias"].norm())


def test_a_filter_of_zeros_stays():
    task = cnn_task()
    theta = task.theta
    task.layout.named(theta)["0.weight"][1] = 0
    found = task.layout.named(random_direction(task, theta, torch.Generator().manual_seed(0)))
    assert not found["0.weight"][1].any()
    assert found["0.weight"][0].any()


def test_random_plane_is_keyed_by_its_seed_and_centred_on_the_model():
    task = cnn_task(norm=True)
    sweep = random_plane(task, task.theta, seed=1, points=(3, 5), buffers=task.buffers)
    ds = surface(task, sweep)
    assert ds.loss.shape == (3, 5)
    assert float(ds.loss.sel(alpha=0, beta=0)) == float(ds.mark_loss[0])
    assert torch.equal(random_plane(task, task.theta, seed=1).basis, sweep.basis)
    assert not torch.equal(random_plane(task, task.theta, seed=2).basis, sweep.basis)
    assert not torch.equal(sweep.basis[1], sweep.basis[2])
    np.testing.assert_array_equal(
        ds.loss.values, surface(task, random_plane(task, task.theta, seed=1, points=(3, 5))).loss
    )


def test_the_global_random_state_is_left_alone():
    task = cnn_task()
    before = torch.get_rng_state()
    random_plane(task, task.theta)
    assert torch.equal(torch.get_rng_state(), before)


def test_slice_along_an_eigenvector_has_its_eigenvalue_as_curvature():
    oracle = quadratic(4, eigenvalues=(9, 4, 2, 1))
    sweep = slice_along(oracle.centre, 7 * oracle.eigenvectors[:, 1], points=5, radius=2)
    ds = surface(oracle.task, sweep, metrics=("loss",))
    np.testing.assert_allclose(ds.loss.values, 0.5 * 4 * ds.t.values**2, atol=1e-12)
    assert ds.t.values.tolist() == [-2, -1, 0, 1, 2]


def test_a_direction_of_zeros_is_refused():
    with pytest.raises(ValueError, match="direction is 0"):
        slice_along(torch.ones(3), torch.zeros(3))


def test_three_directions_begin_with_the_two_of_a_plane():
    task = cnn_task()
    plane, cube = (
        random_plane(task, task.theta, points=(3, 5), seed=4),
        random_directions(task, task.theta, count=3, points=(3, 5, 2), seed=4),
    )
    torch.testing.assert_close(cube.basis[:3], plane.basis, rtol=0, atol=0)
    assert list(cube.coords) == ["alpha", "beta", "gamma"]
    assert cube.shape == (3, 5, 2)
    with pytest.raises(ValueError, match="1 to 4 directions"):
        random_directions(task, task.theta, count=5)
