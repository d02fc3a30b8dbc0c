"""Baselines that change the clients' gradients: by hand on a quadratic, and where each of them is FedAvg."""

import pytest
import torch
from torch import nn

from drift.config import method as methods
from drift.config.experiment import Local
from drift.methods._sam import Ascent
from drift.training.client import Client
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.models import build_model
from tests.drift import hand
from tests.oracles import half_squared_error
from tests.tiny import trained

START = hand.vector(0.5, -1.0)
INPUTS = torch.tensor([[1.0, 2.0], [3.0, -1.0]], dtype=torch.float64)
TARGETS = hand.vector(1.0, 0.0)


def client(local: Local | None = None) -> Client:
    """Two samples in one batch, a linear model w without bias: gradient A w - b, A = X'X / 2, b = X'y / 2."""
    samples = Samples(INPUTS, TARGETS)
    task = Task(nn.Linear(2, 1, bias=False, dtype=torch.float64), {"train": samples}, loss=half_squared_error)
    local = local or Local(lr=0.1, momentum=0.0, epochs=2, batch=2)
    return Client(0, 0, 7, samples, START, torch.zeros(0), local, task.flat(START))


def gradient(w: torch.Tensor) -> torch.Tensor:
    return INPUTS.T @ (INPUTS @ w - TARGETS) / 2


def test_fedprox_adds_the_pull_to_where_the_client_started():
    w = START.clone()
    for _ in range(2):
        w = w - 0.1 * (gradient(w) + 0.4 * (w - START))
    torch.testing.assert_close(methods.load("fedprox")(mu=0.4).local(client()).theta, w)


def test_fedsam_steps_along_the_gradient_at_the_worst_point():
    w = START.clone()
    for _ in range(2):
        g = gradient(w)
        w = w - 0.1 * gradient(w + 0.3 * g / g.norm())
    torch.testing.assert_close(methods.load("fedsam")(rho=0.3).local(client()).theta, w)


def test_fedasam_scales_the_ascent_by_the_size_of_the_weights():
    w = START.clone()
    for _ in range(2):
        g, scale = gradient(w), w.abs() + 0.2
        w = w - 0.1 * gradient(w + 0.3 * scale**2 * g / (scale * g).norm())
    torch.testing.assert_close(methods.load("fedasam")(rho=0.3, eta=0.2).local(client()).theta, w)


def test_ascent_leaves_biases_unscaled_and_batch_statistics_as_the_first_pass_made_them():
    model = build_model("resnet8", (3, 8, 8), 3, seed=0, norm="batch").double()
    batch = Samples(hand.random(6, 3, 8, 8), torch.arange(6) % 3)
    task = Task(model, {"train": batch})
    plain, ascent = task.flat(task.theta), task.flat(task.theta)
    for flat in (plain, ascent):
        flat.training(True)
    value = plain.gradient(batch)
    torch.testing.assert_close(Ascent(0.5, 0.01).gradient(ascent, batch), value)
    assert torch.equal(ascent.buffers, plain.buffers)
    assert torch.equal(ascent.theta, plain.theta)
    assert not torch.allclose(ascent.grad, plain.grad)
    scale = Ascent(0.5, 0.01)._scale(ascent)
    at = task.layout.slices()
    assert bool((scale[at["head.bias"]] == 1).all())
    torch.testing.assert_close(scale[at["head.weight"]], ascent.theta[at["head.weight"]].abs() + 0.01)


@pytest.mark.parametrize("override", ["fedprox", "fedsam", "fedasam"])
def test_without_its_term_each_is_fedavg(override, tmp_path):
    """Methods.md 8, identity 6."""
    option = "mu" if override == "fedprox" else "rho"
    plain = trained(tmp_path)
    found = trained(tmp_path, f"method={override}", f"method.{option}=0.0")
    assert torch.equal(found.round(-1).end, plain.round(-1).end)
    assert not torch.equal(trained(tmp_path, f"method={override}").round(-1).end, plain.round(-1).end)
