from dataclasses import replace

import numpy as np
import pytest
import torch
from oracles import cnn_task, thetas
from torch import nn

from landscape.measures.robustness import noise_robustness, with_noise
from landscape.model.samples import Samples
from landscape.model.task import Task


def _samples(values):
    return Samples(torch.tensor(values, dtype=torch.float64)[:, None], torch.zeros(len(values), dtype=torch.long))


def test_noise_is_clipped_to_the_unit_interval():
    held = Samples(torch.tensor([[0.0, 1.0, 0.5]] * 500, dtype=torch.float64), torch.zeros(500, dtype=torch.long))
    found = with_noise(held, 0.1, torch.Generator().manual_seed(1)).inputs
    assert found.min() == 0
    assert found.max() == 1
    assert (found[:, 0] == 0).double().mean() == pytest.approx(0.5, abs=0.1)  # half the noise on a 0 is cut off
    middle = found[:, 2] - 0.5
    assert middle.abs().max() <= 0.1
    assert middle.var() == pytest.approx(0.1**2 / 3, rel=0.1)


def test_noise_comes_before_normalisation():
    generator = torch.Generator().manual_seed(0)
    plain = Samples(torch.rand(5, 2, 3, 4, generator=generator, dtype=torch.float64), torch.arange(5))
    mean, std = (0.2, 0.7), (0.5, 0.1)
    centre, width = (torch.tensor(values, dtype=torch.float64).view(-1, 1, 1) for values in (mean, std))
    normal = Samples((plain.inputs - centre) / width, plain.targets)
    first = with_noise(plain, 0.3, torch.Generator().manual_seed(7)).inputs
    second = with_noise(normal, 0.3, torch.Generator().manual_seed(7), mean=mean, std=std).inputs
    torch.testing.assert_close(second, (first - centre) / width)


def test_the_drop_of_a_threshold_is_the_share_that_crosses_it():
    """Class 1 above 0.5: an input 0.48 crosses by noise of amplitude 0.04 with probability 1/4."""
    model = nn.Linear(1, 2, dtype=torch.float64)
    theta = torch.tensor([0.0, 1.0, 0.0, -0.5], dtype=torch.float64)
    task = Task(model, {"test": _samples([0.48] * 3000 + [0.3] * 1000)})
    ds = noise_robustness(task, theta, levels=(0.01, 0.04), draws=2)
    assert ds.noisy.dims == ("value", "draw")
    assert ds.value.values.tolist() == [0.01, 0.04]
    assert float(ds.accuracy) == 1
    assert float(ds["drop"][0]) == pytest.approx(0, abs=1e-12)
    assert float(ds["drop"][1]) == pytest.approx(0.75 * 0.25, abs=0.02)


def test_no_noise_no_drop_and_draws_differ():
    task = cnn_task(norm=True)
    theta = thetas(task, 1, spread=1.0)[0]
    ds = noise_robustness(task, theta, mean=(0.5, 0.5), std=(0.05, 0.05), levels=(0.0, 0.8), draws=6)  # all in [0, 1]
    assert float(ds["drop"][0]) == pytest.approx(0, abs=1e-12)
    assert len(np.unique(ds.noisy[1])) > 1
    assert ds.identical(noise_robustness(task, theta, mean=(0.5,), std=(0.05,), levels=(0.0, 0.8), draws=6))


def test_inputs_outside_the_unit_interval_are_refused():
    task = cnn_task()
    with pytest.raises(
        ValueError, match=r"inputs run from .* but noise is for inputs in \[0, 1\]; give mean= and std="
    ):
        noise_robustness(task, thetas(task, 1)[0], levels=(0.0,))


def test_inputs_that_are_no_images_and_wrong_arguments_are_refused():
    task = cnn_task()
    words = Samples(torch.randint(5, (11, 4)), task.samples["test"].targets)
    with pytest.raises(ValueError, match="tensor of real numbers"):
        with_noise(words, 0.1, torch.Generator())
    with pytest.raises(ValueError, match="2 channels"):
        noise_robustness(task, task.theta, mean=(0.1, 0.2, 0.3))
    with pytest.raises(ValueError, match="draws"):
        noise_robustness(task, task.theta, draws=0)
    with pytest.raises(ValueError, match="levels"):
        noise_robustness(task, task.theta, levels=(-0.1,))
    with pytest.raises(ValueError, match="error"):
        noise_robustness(replace(task, metrics={}), task.theta)
