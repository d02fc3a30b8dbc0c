"""Servers that train on a proxy set: the losses by hand, the Gaussian, and where each is FedAvg."""

from dataclasses import replace

import pytest
import torch

from drift.config import method as methods
from drift.config.random_keys import generator
from drift.methods.fedbe import Gaussian
from drift.simulation.simulate import simulate
from drift.store.column_blocks import WIDTH
from landscape.model.layout import Layout
from landscape.model.mapped_files import map_tensor
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.models import build_model
from tests.drift import hand

NAMES = ("server_ft", "feddf", "fedbe")


@pytest.fixture
def setting():
    """Seven proxy samples of three classes and a linear model in float64."""
    held = Samples(hand.random(7, 4, seed=1), torch.arange(7) % 3)
    task = Task(build_model("linear", (4,), 3, seed=0).double(), {"train": held, "test": held})
    return replace(hand.setting(proxy=held), task=task, proxy=held)


@pytest.fixture
def group(setting):
    """Two clients with 1 and 3 samples, and one without any."""
    start = setting.task.theta
    return hand.cohort(start + 0.5 * hand.random(3, len(start), seed=2), start=start, sizes=(1, 3, 0))


@pytest.mark.parametrize("name", NAMES)
def test_without_server_epochs_each_is_fedavg(name, setting, group):
    outcome = methods.load(name)(server_epochs=0).aggregate(setting, {}, group)
    assert torch.equal(outcome.end, group.weighted_mean)


def stepped(setting, start, loss):
    """One plain gradient step of rate 0.3 on the loss of the outputs on the whole proxy set."""
    theta = start.clone().requires_grad_()
    outputs = setting.task.flat(start).functional(theta, setting.proxy.inputs)
    (gradient,) = torch.autograd.grad(loss(outputs), theta)
    return start - 0.3 * gradient


def logits(setting, theta):
    return setting.task.outputs(theta, setting.proxy)


ONE_STEP = {"server_optimizer": "sgd", "server_lr": 0.3, "server_epochs": 1}


def test_server_ft_follows_the_labels(setting, group):
    found = methods.load("server_ft")(**ONE_STEP).aggregate(setting, {}, group).end
    targets = setting.proxy.targets
    torch.testing.assert_close(
        found, stepped(setting, group.weighted_mean, lambda z: torch.nn.functional.cross_entropy(z, targets))
    )


def test_feddf_follows_the_mean_logits_of_the_clients_with_samples(setting, group):
    found = methods.load("feddf")(**ONE_STEP).aggregate(setting, {}, group).end
    teacher = ((logits(setting, group.clients[0]) + logits(setting, group.clients[1])) / 2).softmax(1)

    def divergence(z):
        return (teacher * (teacher.log() - z.log_softmax(1))).sum(1).mean()

    torch.testing.assert_close(found, stepped(setting, group.weighted_mean, divergence))


def test_fedbe_asks_mean_clients_and_drawn_models(setting, group):
    found = methods.load("fedbe")(**ONE_STEP, samples=2, ensemble="probabilities").aggregate(setting, {}, group).end
    noise = generator(setting.experiment.seed, 0, "fedbe")
    around = Gaussian.around(setting.task.layout, group.start, group.clients, [0, 1])
    drawn = [around.draw(0.1, noise) for _ in range(2)]
    teachers = [group.weighted_mean, group.clients[0], group.clients[1], *drawn]
    teacher = torch.stack([logits(setting, model).softmax(1) for model in teachers]).mean(0)

    def divergence(z):
        return (teacher * (teacher.log() - z.log_softmax(1))).sum(1).mean()

    torch.testing.assert_close(found, stepped(setting, group.weighted_mean, divergence))


def test_fedbe_student_is_the_mean_of_the_second_half_of_the_epochs(setting, group):
    options = {**ONE_STEP, "server_epochs": 4, "samples": 0}
    last = {
        n: methods.load("fedbe")(**options | {"server_epochs": n}).aggregate(setting, {}, group).end for n in (3, 4)
    }
    found = methods.load("fedbe")(**options, student_average=True).aggregate(setting, {}, group).end
    torch.testing.assert_close(found, (last[3] + last[4]) / 2)


def test_gaussian_has_the_statistics_of_the_normalised_moves():
    layout = Layout((("a", (2,)), ("b", (3,))))
    start = hand.vector(0, 0, 1, 1, 1)
    clients = start + torch.tensor([[3.0, 4, 0, 0, 0], [0.0, 1, 0, 0, 0]], dtype=torch.float64)
    around = Gaussian.around(layout, start, clients, range(2))
    mean = around.draw(0.0, torch.Generator())
    torch.testing.assert_close(mean, hand.vector(3 * 0.3, 3 * 0.9, 1, 1, 1))
    draws = torch.stack([around.draw(0.1, generator(0, i)) for i in range(4000)])
    expected = 3 * 0.1 * hand.vector(0.3, 0.1)  # standard deviations over g: (0.6, 0) and (0.8, 1)
    torch.testing.assert_close(draws[:, :2].std(0), expected, rtol=0.05, atol=0)
    torch.testing.assert_close(draws[:, 2:].std(0), torch.zeros(3, dtype=torch.float64), rtol=0, atol=1e-12)


@pytest.mark.parametrize("mapped", [False, True])
def test_gaussian_by_blocks_has_the_bits_of_whole_matrices(tmp_path, mapped):
    layout = Layout((("a", (7,)), ("b", (2 * WIDTH + 77,)), ("c", (3, 5))))
    start, rows = torch.randn(layout.size, generator=generator(1)), [0, 1, 3]
    clients = start + torch.randn(4, layout.size, generator=generator(2))
    clients[1, :7] = start[:7]  # a tensor that did not move
    stored = clients
    if mapped:
        (tmp_path / "clients").write_bytes(b"header__" + clients.numpy().tobytes())
        stored = map_tensor(tmp_path / "clients", torch.float32, tuple(clients.shape), 8)
    drawn = Gaussian.around(layout, start, stored, rows).draw(0.1, generator(3))
    expected, noise = start.clone(), generator(3)
    for part in layout.slices().values():
        moves = clients[rows][:, part] - start[part]
        norms = moves.norm(dim=1, keepdim=True)
        directions = torch.where(norms > 0, moves / norms.clamp(min=torch.finfo(moves.dtype).tiny), 0.0)
        mean = directions.mean(0)
        variance = (directions.square().mean(0) - mean.square()).clamp(min=1e-5)
        draws = torch.randn(mean.shape, generator=noise)
        expected[part] += norms.mean() * (mean + 0.1 * variance.sqrt() * draws)
    assert torch.equal(drawn, expected)


@pytest.mark.parametrize("name", NAMES)
def test_batch_normalised_models_train_on_the_server(name, tmp_path):
    from drift.config.load import read, validated
    from tests.drift.methods.test_methods import TINY

    changes = ["task.model=resnet8", "task.model_options={norm='batch'}", "rounds=1", "method.server_epochs=1"]
    run = simulate(read(validated(TINY), f"method={name}", *changes), runs=tmp_path)
    assert bool(torch.isfinite(run.round(0).end_buffers).all())
    assert "loss" in run.round(0).metrics


def test_without_a_proxy_set_the_remedy_is_named():
    with pytest.raises(ValueError, match="set proxy"):
        methods.load("feddf")().aggregate(hand.setting(), {}, hand.cohort(hand.random(2, 3)))
