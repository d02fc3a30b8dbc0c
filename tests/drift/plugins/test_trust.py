"""Code that a run names is imported only where the user has named it."""

import sys

import pytest
import tiny
import torch
from torch import nn

import drift
from drift.plugins import trust
from drift.runs.run import Run
from landscape import make_task

MODULE = """
from pathlib import Path
from torch import nn
Path("ran").write_text("")

def net(shape, classes):
    return nn.Sequential(nn.Flatten(), nn.Linear(8, classes))
"""


@pytest.fixture
def foreign(tmp_path, monkeypatch):
    """A run from elsewhere whose model a module beside it makes, which leaves a file behind when it is imported."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setenv(trust.TRUSTED, "")
    (tmp_path / "theirs.py").write_text(MODULE)
    run = tiny.trained(tmp_path / "runs", "task.model=theirs:net")
    (tmp_path / "ran").unlink()
    monkeypatch.setenv(trust.TRUSTED, "")
    sys.modules.pop("theirs")
    yield Run(run.folder)
    sys.modules.pop("theirs", None)


def test_what_needs_no_model_is_open_and_what_does_is_refused(foreign, tmp_path):
    assert drift.coherence(foreign).coherence.notnull().all()
    with pytest.raises(ValueError, match=r"by theirs:net, code that is not part of fedscape .* add --trust theirs:net"):
        drift.global_line(foreign, points=3)
    assert not (tmp_path / "ran").exists()


def test_the_name_alone_opens_it(foreign, tmp_path):
    for other in ("theirs:other", "mine:net"):
        trust.allow(other)
    with pytest.raises(ValueError, match="--trust theirs:net"):
        _ = foreign.task
    task = drift.open(foreign.folder, trust="theirs:net").task
    assert (tmp_path / "ran").exists() and task.layout.size == foreign.round(0).end.numel()
    _ = foreign.task  # from here on


def test_the_environment_and_a_training_of_ones_own_name_it(foreign, monkeypatch):
    monkeypatch.setenv(trust.TRUSTED, "mine:net,theirs:net")
    _ = Run(foreign.folder).task
    monkeypatch.setenv(trust.TRUSTED, "")
    _ = tiny.trained(foreign.folder.parent, "task.model=theirs:net", "seed=6").task


def test_a_task_in_its_place_needs_none(foreign, tmp_path):
    net = nn.Sequential(nn.Flatten(), nn.Linear(8, 4))
    task = make_task(net, nn.CrossEntropyLoss(), (torch.randn(6, 8), torch.arange(6) % 4))
    assert drift.open(foreign.folder, task=task).dataset.classes
    assert not (tmp_path / "ran").exists()


@pytest.mark.parametrize("name", ["", "theirs", ":net", "theirs:", "a:b,c:d"])
def test_a_name_that_is_none_is_refused(name):
    with pytest.raises(ValueError, match="name the code as MODULE:FUNCTION"):
        trust.allow(name)
