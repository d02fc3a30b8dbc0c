import numpy as np
import pytest
import torch
from oracles import cnn_task, mlp_task, quadratic, thetas

import landscape
from landscape.measures.sharpness import ball_sharpness
from landscape.model.layout import Layout


@pytest.mark.seconds
def test_at_the_minimum_of_a_quadratic_the_worst_rise_follows_the_largest_eigenvalue():
    known = quadratic(4, eigenvalues=[7.0, 3.0, 2.0, 0.5])
    ds = ball_sharpness(known.task, known.centre, radius=0.3, steps=60, directions=600)
    assert float(ds.loss) == pytest.approx(0, abs=1e-20)
    assert float(ds.worst) == pytest.approx(0.5 * 7 * 0.3**2, rel=1e-5)
    assert float(ds["mean"]) == pytest.approx(0.5 * 12.5 * 0.3**2 / (4 + 2), rel=0.1)  # E e e^T = r^2 / (d + 2) I
    assert float(ds.one_step) <= float(ds.worst)


def test_off_the_minimum_the_worst_rise_solves_the_trust_region_problem():
    known = quadratic(3, eigenvalues=[4.0, 2.0, 1.0])
    theta = known.centre + torch.tensor([0.5, -0.2, 0.7], dtype=torch.float64)
    angles = torch.linspace(0, torch.pi, 400, dtype=torch.float64)
    up, around = torch.meshgrid(angles, 2 * angles, indexing="ij")
    sphere = torch.stack([up.sin() * around.cos(), up.sin() * around.sin(), up.cos()], -1).reshape(-1, 3)
    moves = 0.4 * sphere - (known.centre - theta)
    best = (0.5 * ((moves @ known.matrix) * moves).sum(1)).max() - known.loss(theta)
    ds = ball_sharpness(known.task, theta, radius=0.4, steps=60)
    assert float(ds.worst) == pytest.approx(float(best), rel=1e-3)


@pytest.mark.parametrize("adaptive", [False, True])
def test_one_step_is_the_metric_of_sam_and_asam(adaptive):
    task = mlp_task()
    theta, samples = thetas(task, 1)[0], task.samples["train"]
    flat = task.flat(theta)
    flat.load(theta)
    before = flat.gradient(samples)
    scale = torch.ones_like(theta)
    if adaptive:
        for name, where in Layout.of(task.model).slices().items():
            scale[where] = theta[where].abs() + 0.2 if "weight" in name else 1.0
    move = 0.7 * scale**2 * flat.grad / (scale * flat.grad).norm()
    flat.load(theta + move)
    rise = float(flat.gradient(samples) - before)
    ds = ball_sharpness(task, theta, radius=0.7, eta=0.2, adaptive=adaptive, steps=1, block=5)
    assert float(ds.one_step) == pytest.approx(rise, rel=1e-9)
    assert float(ds.worst) == float(ds.one_step)
    assert ds.attrs["adaptive"] == adaptive


def test_opposite_points_cancel_the_slope_of_a_quadratic():
    known = quadratic(3, eigenvalues=[4.0, 2.0, 1.0])
    at, off = known.centre, known.centre + 1.0
    for name in ("mean", "spread"):
        values = [float(ball_sharpness(known.task, theta, radius=0.2, steps=1)[name]) for theta in (at, off)]
        assert values[0] == pytest.approx(values[1], rel=1e-9)


def test_more_steps_and_larger_balls_rise_higher():
    task = mlp_task()
    theta = thetas(task, 1)[0]
    rises = [float(ball_sharpness(task, theta, radius=radius, steps=20).worst) for radius in (0.05, 0.1, 0.4)]
    assert rises == sorted(rises)
    few = ball_sharpness(task, theta, radius=0.4, steps=1)
    assert float(few.worst) <= rises[-1]
    assert float(few["mean"]) < float(few.one_step)


def test_a_ball_that_reaches_losses_without_a_value_has_no_worst_one():
    model = torch.nn.Linear(1, 1, bias=False)
    model.weight.data.fill_(0.9)

    class Root(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.inner = model

        def forward(self, x):
            return torch.sqrt(1 - self.inner(x) ** 2)

    task = landscape.make_task(Root(), torch.nn.MSELoss(), (torch.ones(8, 1), torch.ones(8, 1)))
    assert np.isfinite(float(ball_sharpness(task, task.theta, radius=0.05, steps=5).worst))
    assert np.isnan(float(ball_sharpness(task, task.theta, radius=0.5, steps=5).worst))


def test_a_seed_gives_the_same_points_and_nothing_is_touched():
    task = cnn_task(norm=True)
    theta, buffers = thetas(task, 1)[0], task.buffers + 0.5
    copies, state = (theta.clone(), buffers.clone()), torch.get_rng_state()
    first = ball_sharpness(task, theta, seed=3, buffers=buffers)
    again = ball_sharpness(task, theta, seed=3, buffers=buffers)
    other = ball_sharpness(task, theta, seed=4, buffers=buffers)
    assert first.identical(again)
    assert float(first["mean"]) != float(other["mean"])
    assert torch.equal(theta, copies[0])
    assert torch.equal(buffers, copies[1])
    assert torch.equal(torch.get_rng_state(), state)
    assert np.isfinite(float(first.worst))
    assert float(first.loss) != float(ball_sharpness(task, theta, seed=3).loss)


@pytest.mark.parametrize(("wrong", "word"), [({"radius": 0.0}, "radius"), ({"steps": 0}, "steps")])
def test_a_ball_needs_a_radius_and_steps(wrong, word):
    task = mlp_task()
    with pytest.raises(ValueError, match=word):
        ball_sharpness(task, task.theta, **wrong)
