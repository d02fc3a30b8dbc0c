"""What computes on a GPU, on a second device without one: nothing stays on the CPU, and values are the CPU's."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from second_device import second_device

import landscape
from landscape import models
from landscape.model.model import plain
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.sweep import vmap_points
from tests.oracles import thetas


def _task(name: str) -> Task:
    shape = {"cnn_fmnist": (1, 16, 16), "resnet8": (3, 8, 8), "linear": (6,)}.get(name, (1, 5, 6))
    generator = torch.Generator().manual_seed(3)
    samples = Samples(torch.rand(12, *shape, generator=generator), torch.arange(12) % 10)
    return Task(models.build_model(name, shape, 10, seed=0), {"train": samples, "test": samples[:7]})


ROWS = torch.tensor([[1.0, 0, 0], [0.2, 0.3, 0.5], [-0.5, 0.9, 0.6]], dtype=torch.float64)
NUMBERS = {
    "evaluate": lambda task, three: landscape.evaluate(task, three, ROWS)["loss"],
    "surface": lambda task, three: landscape.surface(task, landscape.plane(*three, points=3)).loss,
    "hessian": lambda task, three: landscape.hessian(task, three[0], k=2).eigenvalue,
    "eigenvectors": lambda task, three: landscape.hessian(task, three[0], k=2, vectors=True).eigenvector,
    "trace": lambda task, three: landscape.trace(task, three[0]).trace,
    "density": lambda task, three: landscape.density(task, three[0]).density,
    "layers": lambda task, three: landscape.layer_eigenvalues(task, three[0]).eigenvalue,
    "ntk": lambda task, three: landscape.ntk(task, three[0], task.split("test")[:4]).cpu(),
    "ball_sharpness": lambda task, three: landscape.ball_sharpness(task, three[0]).to_array(),
    "bounded_barriers": lambda task, three: landscape.bounded_barriers(task, three).barrier,
    "align": lambda task, three: landscape.align(task, three[0], three[1]).cpu(),
    "noise_robustness": lambda task, three: landscape.noise_robustness(task, three[0]).to_array(),
}


@pytest.mark.parametrize("number", NUMBERS)
@pytest.mark.parametrize("name", ["mlp", "cnn_fmnist"])
def test_numbers_on_a_second_device_are_those_of_the_cpu(name, number, monkeypatch):
    task = _task(name)
    three = thetas(task, 3, spread=0.05)
    expected = np.asarray(NUMBERS[number](task, three))
    with second_device(monkeypatch) as device:
        found = np.asarray(NUMBERS[number](task, three.to(device)))
    np.testing.assert_allclose(found, expected, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("batched", [True, False])
@pytest.mark.parametrize(
    ("name", "statistics"),
    [("cnn_fmnist", None), ("linear", None), ("resnet8", "recomputed"), ("resnet8", "averaged"), ("resnet8", "task")],
)
def test_points_of_a_second_device_are_those_of_the_cpu(name, statistics, batched, monkeypatch):
    task, batches, whole = _task(name), [], vmap_points.batch_points
    three = plain(thetas(task, 3, spread=0.05))
    how = {"groups": torch.arange(7) % 2, "statistics": statistics}
    if statistics in ("recomputed", "averaged"):
        how["buffers"] = task.buffers + torch.rand(3, len(task.buffers), generator=torch.Generator().manual_seed(1))
    expected = landscape.evaluate(task, three, ROWS, **how)
    monkeypatch.setattr(vmap_points, "batch_points", lambda *given: batches.append(whole(*given)) or batches[-1])
    with second_device(monkeypatch) as device:
        if not batched:
            monkeypatch.setattr(vmap_points, "DEVICES", ())
        there = {key: value.to(device) if key == "buffers" else value for key, value in how.items()}
        found = landscape.evaluate(task, three.to(device), ROWS, **there)
    assert [batch is not None for batch in batches] == [True] * batched  # where a batch fails, points go one by one
    for metric, values in expected.items():
        torch.testing.assert_close(found[metric], values, rtol=1e-4, atol=1e-6)


def test_a_tensor_that_stays_on_the_cpu_raises_as_on_a_gpu(monkeypatch):
    task = _task("mlp")
    with second_device(monkeypatch) as device:
        theta = task.theta.to(device)
        assert (theta.device, theta.to("cpu").device.type) == (device, "cpu")
        with pytest.raises(RuntimeError, match="same device"):
            theta + task.theta
        assert (theta + torch.tensor(1.0)).device == device  # a number may come from the CPU
