"""LSS: pool geometry against closed forms and autograd, training of the pool against plain local training."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
import torch
from torch import Tensor

from drift.config.experiment import Local
from drift.methods._pool import Distance, MeanDistance, Volume, simplex_point
from drift.methods.lss import LSS, fisher, mixed_gradient
from drift.training.client import Client
from landscape.model.task import Task
from tests.drift import hand
from tests.oracles import cnn_task, mlp_task, thetas


def client(task: Task | None = None, *, local: Local | None = None, samples: int = 7) -> Client:
    """A client with some of the task's training samples."""
    task = mlp_task() if task is None else task
    return Client(
        id=3,
        index=2,
        seed=8,
        samples=task.samples["train"][:samples],
        start=task.theta,
        buffers=task.buffers.to(task.theta),
        local=local or Local(lr=0.05, epochs=3, batch=3),
        flat=task.flat(task.theta),
    )


@pytest.mark.parametrize("kind", ["dirichlet", "normalized_uniform"])
def test_coefficients_lie_on_the_simplex(kind: Any) -> None:
    generator = torch.Generator().manual_seed(0)
    drawn = torch.stack([simplex_point(kind, 4, generator) for _ in range(3000)])
    assert bool((drawn >= 0).all())
    torch.testing.assert_close(drawn.sum(1), torch.ones(3000, dtype=torch.float64))
    variance = 3 / (16 * 5)  # of one coordinate under Dirichlet(1, 1, 1, 1)
    assert float(drawn[:, 1].var()) == pytest.approx(variance, rel=0.1) or kind != "dirichlet"
    assert simplex_point(kind, 1, generator).tolist() == [1]


@pytest.mark.parametrize("kind", ["l2", "sq_l2", "fisher"])
@pytest.mark.parametrize("count", [2, 3])
def test_mean_distance_gradient_matches_autograd(kind: Any, count: int) -> None:
    others, member = hand.random(2, 5, seed=1), hand.random(5, seed=2).requires_grad_()
    distance = Distance(kind, hand.random(5, seed=3).abs() if kind == "fisher" else None)
    mean = MeanDistance(others, distance, count)
    mean(member).backward()
    torch.testing.assert_close(mean.gradient(member.detach()), member.grad)


def test_distances_are_what_they_say() -> None:
    u = hand.vector(3, 4)
    assert float(Distance("l2")(u)) == pytest.approx(5)
    assert float(Distance("sq_l2")(u)) == 25
    assert float(Distance("fisher", hand.vector(2, 0.5))(u)) == 26
    assert Distance("l2").gradient(0 * u).tolist() == [0, 0]


def test_volume_of_two_is_their_squared_distance_and_of_three_the_squared_area() -> None:
    base, height = hand.vector(1, 2, 0, 5), hand.vector(0, 0, 3, 4)
    assert float(Volume(base[None])(base + height)) == pytest.approx(25)
    side = hand.vector(2, 0, 0, 0)
    triangle = Volume(torch.stack([base, base + side]))
    assert float(triangle(base + 7 * side + height)) == pytest.approx((2 * 5 / 2) ** 2)


def test_volume_equals_the_cayley_menger_determinant() -> None:
    points = hand.random(4, 6, seed=4)
    squares = torch.cdist(points, points).square()
    menger = torch.ones(5, 5, dtype=torch.float64)
    menger[0, 0], menger[1:, 1:] = 0, squares
    expected = abs(float(torch.linalg.det(menger))) / (36 * 8)  # (n - 1)!^2 2^(n - 1), n = 4
    assert float(Volume(points[:-1])(points[-1])) == pytest.approx(expected)


@pytest.mark.parametrize("count", [1, 2, 3])
def test_volume_gradient_matches_autograd_and_vanishes_at_the_mean(count: int) -> None:
    others, member = hand.random(count, 6, seed=5), hand.random(6, seed=6).requires_grad_()
    volume = Volume(others)
    volume(member).backward()
    torch.testing.assert_close(volume.gradient(member.detach()), member.grad)
    assert float(volume.gradient(others.mean(0)).norm()) < 1e-12


def test_gradient_of_the_candidate_is_its_coefficient_times_that_of_the_mixture() -> None:
    task, alpha = mlp_task(), hand.vector(0.2, 0.5, 0.3)
    members, samples, flat = thetas(task, 3), task.samples["train"], task.flat(task.theta)
    mixed_gradient(flat, members, alpha, samples)
    active = members[-1].clone().requires_grad_()
    theta = alpha[:2] @ members[:2] + alpha[2] * active
    task.flat(task.theta).functional_loss(theta, samples).backward()
    torch.testing.assert_close(float(alpha[-1]) * flat.grad, active.grad)


def test_first_step_of_a_second_candidate_by_hand() -> None:
    task = mlp_task()
    one = client(task, local=Local(lr=0.1, momentum=0, steps=1, batch=7))
    method = LSS(candidates=2, affinity=0.5, diversity_weight=0.25, dist="sq_l2", n_samples=2)
    members = method.pool(one).members
    mixing, samples = one.generator("pool"), one.samples
    expected = members[:2].mean(0)
    pool = torch.stack([one.start, members[1], expected])
    for _ in range(2):  # the draws of the first candidate
        simplex_point("dirichlet", 2, mixing)
    gradient, flat = torch.zeros_like(expected), task.flat(task.theta)
    for _ in range(2):
        alpha = simplex_point("dirichlet", 3, mixing)
        mixed_gradient(flat, pool, alpha, samples)
        gradient += alpha[2] * flat.grad / 2
    gradient += 0.5 * 2 * (expected - one.start)
    gradient -= 0.25 * ((expected - one.start) + (expected - members[1]))  # mean of 2 u over two others
    torch.testing.assert_close(members[2], expected - 0.1 * gradient)


def test_only_the_newest_candidate_changes() -> None:
    one = client()
    pools = [LSS(candidates=count).pool(one).members for count in (1, 2, 4)]
    assert [len(pool) for pool in pools] == [2, 3, 5]
    assert torch.equal(pools[0], pools[1][:2])
    assert torch.equal(pools[1], pools[2][:3])
    assert torch.equal(pools[2][0], one.start)


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_one_free_trained_candidate_is_fedavg_to_the_bit(optimizer: Any) -> None:
    one = client(local=Local(optimizer=optimizer, epochs=2, batch=3, weight_decay=0.01))
    method = LSS(candidates=1, affinity=0, diversity_weight=0, pool_init="trained")
    found, plain = method.local(one), one.train()
    assert torch.equal(found.theta, plain.theta)
    assert found.steps == plain.steps
    assert found.loss == pytest.approx(plain.loss)


def test_trained_pool_has_no_received_model() -> None:
    one = client()
    pool = LSS(candidates=3, pool_init="trained").pool(one).members
    assert len(pool) == 3
    assert not torch.equal(pool[0], one.start)


def test_mean_of_the_pool_is_sent() -> None:
    one, method = client(), LSS(candidates=2)
    found = method.local(one)
    assert torch.equal(found.theta, method.pool(one).members.mean(0))
    assert found.report["pool_distances"].shape == (3,)
    assert found.report["pool_distances"][0] == 0
    assert torch.equal(found.theta, method.local(one).theta)


def test_later_epochs_and_unused_minibatches_count_in_steps() -> None:
    one = client(local=Local(lr=0.01, epochs=4, batch=3))  # 7 samples: 3 minibatches an epoch
    assert LSS(candidates=3).local(one).steps == 3 * 12
    assert LSS(candidates=3, later_epochs=1).local(one).steps == 12 + 3 + 3
    assert LSS(candidates=3, step_every=5).local(one).steps == 3 * 2


@pytest.mark.parametrize(
    "options",
    [
        {"dist": "fisher"},
        {"diversity": "volume"},
        {"diversity_over": "pool"},
        {"coefficients": "normalized_uniform"},
        {"n_samples": 2},
        {"epsilon": 1.0},
    ],
)
def test_every_option_changes_the_result(options: dict[str, Any]) -> None:
    one, plain = client(), LSS(candidates=3, affinity=0.1, diversity_weight=0.05)
    changed = plain.model_copy(update=options)
    assert not torch.allclose(changed.local(one).theta, plain.local(one).theta)


def test_fisher_is_the_mean_squared_minibatch_gradient() -> None:
    one = client()
    flat, expected = one.flat, torch.zeros_like(one.start)
    for low, high in ((0, 3), (3, 6), (6, 7)):
        theta = one.start.clone().requires_grad_()
        flat.functional_loss(theta, one.samples[low:high]).backward()
        assert isinstance(theta.grad, Tensor)
        expected += theta.grad.square() / 3
    torch.testing.assert_close(fisher(one), expected)


def test_batch_statistics_of_the_mean_are_those_of_the_local_data() -> None:
    one = client(cnn_task(norm=True))
    found = LSS(candidates=2).local(one)
    flat = workspace(one)
    flat.load(found.theta)
    layers = list(flat.module.children())
    inputs = layers[0](one.samples.inputs)
    torch.testing.assert_close(found.buffers[:4], inputs.mean((0, 2, 3)))
    torch.testing.assert_close(found.buffers[4:], inputs.transpose(0, 1).flatten(1).var(1))
    left = LSS(candidates=2, recompute_buffers=False).local(one)
    assert torch.equal(left.theta, found.theta)
    assert not torch.allclose(left.buffers, found.buffers)


def workspace(one: Client) -> Any:
    """A second workspace for the client's architecture."""
    return cnn_task(norm=True).flat(one.start)


def test_a_client_without_samples_returns_what_it_received() -> None:
    one = replace(client(), samples=client().samples[:0])
    found = LSS().local(one)
    assert torch.allclose(found.theta, one.start, rtol=1e-14)
    assert found.steps == 0


def test_kept_moments_are_refused() -> None:
    with pytest.raises(ValueError, match="persist_optimizer"):
        hand.experiment("lss", local={"persist_optimizer": True})
