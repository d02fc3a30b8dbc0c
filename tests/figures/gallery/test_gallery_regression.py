"""Runs of tasks without classes, such as regression: each figure draws them or says in words why not."""

from __future__ import annotations

import re

import numpy as np
import pytest
import torch
from torch import nn

import drift
import landscape
from figures.gallery import load

pytestmark = pytest.mark.usefixtures("not_laid_out")

INPUTS = torch.randn(60, 5, generator=torch.Generator().manual_seed(1))
TARGETS = INPUTS[:, :2].sin()


def net(seed: int = 0) -> nn.Module:
    torch.manual_seed(seed)
    return nn.Sequential(nn.Linear(5, 4), nn.Tanh(), nn.Linear(4, 2))


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Three recorded rounds of a regression, whose clients are known."""
    folder = tmp_path_factory.mktemp("regression") / "run"
    recorder, start = drift.Recorder(folder), net().state_dict()
    for index in range(3):
        clients = {
            k: ({n: v + 0.1 * torch.randn_like(v) for n, v in start.items()}, 20) for k in torch.arange(3).tolist()
        }
        end = {name: sum(state[name] for state, _ in clients.values()) / 3 for name in start}
        recorder.round(start=start, clients=clients, end=end, metrics={"loss": 1.0 - index / 10})
        start = end
    task = landscape.make_task(net(), nn.MSELoss(), {"train": (INPUTS, TARGETS), "test": (INPUTS[:20], TARGETS[:20])})
    return drift.open(folder, task=task, parts=[range(k, 60, 3) for k in range(3)])


DRAWN = {
    "planes-clients": {"points": 3},
    "planes-projected": {"points": 3},
    "planes-random": {"points": 3},
    "lines-globals": {"points": 3},
    "lines-fma-ima": {"points": 3},
    "scale-invariance": {"points": 3},
    "simplex-weights": {"step": 0.5},
    "curve-modes": {"steps": 2, "points": 3},
    "eigen-slice": {"points": 3},
    "what-if-rounds": {"rounds": 2, "windows": (2,)},
    "weights-round": {"gamma": 0.9},
}


@pytest.mark.parametrize("name", DRAWN)
def test_a_figure_draws_the_loss_alone(name, run):
    figure = load(name)
    ds = figure.data([run], **DRAWN[name])
    assert "error" not in ds or bool(ds.error.isnull().all())
    assert figure.draw(ds).axes


REFUSED = ("accuracies-clients", "bias-rounds", "decomposition-rounds", "error-averaged", "labels-partition")


@pytest.mark.parametrize("name", [*REFUSED, "planes-classes", "coherence-groups"])
def test_a_figure_of_classes_says_that_there_are_none(name, run):
    with pytest.raises(LookupError, match=r"has no errors by class|have no classes: their targets are float32") as told:
        load(name).data([run])
    assert not isinstance(told.value, KeyError | IndexError)


def test_what_if_has_the_losses_of_regression_and_no_errors(run):
    ds = drift.what_if(run, rounds=[2], windows=[2], steps=0)
    assert bool(ds.error.isnull().all()) and bool(ds.error_gain.isnull().all())
    rng = np.isfinite(ds.loss.sel(variant="end").values)
    assert rng.all()
    said = [finding.statement for finding in drift.diagnose(run, quick=True).findings]
    assert not any(re.search("no metric named", statement) for statement in said)
