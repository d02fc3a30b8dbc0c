"""Losses have the unit of the loss that was measured: nats for cross-entropies alone."""

from __future__ import annotations

import copy

import pytest
import torch
from matplotlib.text import Text
from torch import nn

import drift
import landscape
from drift.analyses.counterfactual.whatif import what_if
from drift.analyses.landscapes.topology import topology_rounds
from drift.simulation.compare import mean_of_last
from figures.gallery import load
from landscape.model.binary_losses import binary_cross_entropy
from landscape.model.task import metric_units
from tests.oracles import mlp_task


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    torch.manual_seed(0)
    start = nn.Linear(3, 2)
    recorder = drift.Recorder(tmp_path_factory.mktemp("units") / "run", start)
    for index in range(2):
        clients = {k: (_moved(start, k + 10 * index), 4) for k in range(3)}
        end = _moved(start, 99 + index)
        recorder.round(start=start, clients=clients, end=end, metrics={"loss": 1.0 + index, "accuracy": 0.5})
        start = end
    return recorder.folder


def _moved(model: nn.Module, seed: int) -> nn.Module:
    other = copy.deepcopy(model)
    draw = torch.Generator().manual_seed(seed)
    for parameter in other.parameters():
        parameter.data += 0.1 * torch.randn(parameter.shape, generator=draw)
    return other


def _task(loss: nn.Module, targets: torch.Tensor):
    inputs = torch.randn(12, 3, generator=torch.Generator().manual_seed(1))
    return landscape.make_task(nn.Linear(3, 2), loss, {"train": (inputs, targets), "test": (inputs, targets)})


LOSSES = [(nn.MSELoss(), torch.ones(12, 2), "1"), (nn.CrossEntropyLoss(), torch.arange(12) % 2, "nats")]


@pytest.mark.parametrize(("loss", "targets", "units"), LOSSES)
def test_results_and_labels_have_the_unit_of_the_loss(folder, loss, targets, units):
    task = _task(loss, targets)
    assert metric_units(task, "loss") == units
    run = drift.open(folder, task=(task, [range(4), range(4, 8), range(8, 12)]))
    stated = {
        name: values.attrs["units"]
        for ds in (what_if(run, windows=(2,)), topology_rounds(run, points=5))
        for name, values in ds.variables.items()
        if name in ("loss", "gain", "shrink_loss", "second", "smad", "climb")
    }
    assert set(stated.values()) == {units} and len(stated) == 6
    assert run.metrics().loss.attrs["units"] == units
    rules = load("what-if-rounds")
    labels = [ax.get_ylabel() for ax in rules.draw(rules.data([run], windows=(2,))).axes]
    assert labels[0] == ("loss gained [nats]" if units == "nats" else "loss gained")
    assert ("accuracy gained [points]" in labels) == (units == "nats")  # a regression has no accuracy


@pytest.mark.parametrize(("loss", "targets", "units"), LOSSES)
def test_texts_of_figures_have_the_unit_of_the_loss(folder, loss, targets, units):
    run = drift.open(folder, task=(_task(loss, targets), [range(4), range(4, 8), range(8, 12)]))
    texts = []
    for name, options in (
        ("sharpness-ball", {"radii": [0.1], "directions": 2}),
        ("eigen-slice", {"points": 5}),
        ("lines-aligned", {"points": 5, "rounds": [1]}),
        ("barriers-clients", {"points": 5, "rounds": [1]}),
    ):
        figure = load(name)
        texts += [text.get_text() for text in figure.draw(figure.data([run], **options)).findobj(Text)]
    about_losses = [text for text in texts if "loss" in text or "barrier " in text]
    assert len(about_losses) >= 4
    assert any("nats" in text for text in texts) == (units == "nats")


def test_a_run_without_its_task_has_losses_of_no_known_unit(folder):
    run = drift.open(folder)
    assert (run.loss_units, run.metrics().loss.attrs["units"]) == ("1", "1")
    assert run.metrics().accuracy.attrs["units"] == "fraction"
    assert mean_of_last(run, "loss") == 1.5


def test_a_binary_cross_entropy_is_in_nats():
    task = mlp_task()
    binary = landscape.Task(task.model, task.samples, loss=binary_cross_entropy)
    assert metric_units(binary, "loss") == "nats"
