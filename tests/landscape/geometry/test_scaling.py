import numpy as np
import pytest
import torch
from oracles import cnn_task, quadratic, thetas
from torch import nn

from landscape.geometry.scaling import scaling
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.surfaces.surface import surface
from landscape.sweep.evaluate import evaluate


def test_the_curve_of_a_quadratic_is_its_loss_at_scaled_models():
    known = quadratic(3)
    theta = thetas(known.task, 1)[0]
    ds = surface(known.task, scaling(theta, points=5), metrics=("loss",))
    np.testing.assert_allclose(ds.loss, [known.loss(gamma * theta) for gamma in ds.t.values])
    assert ds.t.values[[0, -1]].tolist() == [0.5, 1.2]
    assert float(ds.mark_loss.sel(mark="model")) == pytest.approx(float(known.loss(theta)))


def test_the_default_grid_holds_the_model():
    assert np.isclose(scaling(torch.ones(3)).coords["t"], 1).any()


def test_a_relu_network_without_biases_keeps_its_error():
    model = nn.Sequential(nn.Linear(4, 5, bias=False), nn.ReLU(), nn.Linear(5, 3, bias=False)).double()
    generator = torch.Generator().manual_seed(0)
    inputs = torch.randn(13, 4, generator=generator, dtype=torch.float64)
    task = Task(model, {"test": Samples(inputs, torch.randint(3, (13,), generator=generator))})
    ds = surface(task, scaling(task.theta, points=4))
    assert len(np.unique(ds.error)) == 1
    assert len(np.unique(ds.loss)) == 4


def test_buffers_are_not_scaled():
    task = cnn_task(norm=True)
    theta, buffers = thetas(task, 1)[0], task.buffers + 0.5
    ds = surface(task, scaling(theta, points=3, buffers=buffers), statistics="averaged")
    by_hand = evaluate(task, 0.5 * theta[None], torch.ones(1, 1), buffers=buffers[None], statistics="averaged")
    assert float(ds.loss[0]) == pytest.approx(float(by_hand["loss"]))
