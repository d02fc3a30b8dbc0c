"""Parts that are given with a task, against the samples that a run recorded of its clients."""

import json

import numpy as np
import pytest
import recordings
import tiny
import torch
from torch import nn

import drift
import landscape
from drift.importers.bare import record_checkpoints
from drift.importers.path_patterns import parse_patterns

PARTS = [[0, 1], [], [], range(2, 19)]
"""Parts with the sizes that `recordings.recorded` records: client 0 has two samples, client 3 has seventeen."""


def task():
    inputs = torch.randn(30, 4, generator=torch.Generator().manual_seed(0))
    samples = (inputs, (inputs[:, 0] > 0).long())
    return landscape.make_task(recordings.net(), nn.CrossEntropyLoss(), {"train": samples, "test": samples})


@pytest.mark.parametrize(
    ("parts", "words"),
    [
        (PARTS[::-1], r"parts gives client 0 17 samples, run run recorded 2 in round 0; give those that it trained on"),
        ([*PARTS[:3], range(2, 18)], r"parts gives client 3 16 samples, run run recorded 17 in round 0"),
        ([[1, 1], *PARTS[1:]], r"parts of client 0 names a sample twice"),
        ([[0, 30], *PARTS[1:]], r"numbers go from 0 to 29"),
        ([[0, -1], *PARTS[1:]], r"numbers go from 0 to 29"),
        (PARTS[:3], r"parts has 3 clients, run run has 4"),
    ],
)
@pytest.mark.parametrize("read", [drift.client_losses, drift.label_scatter])
def test_parts_that_the_record_contradicts_are_refused(tmp_path, parts, words, read):
    recordings.recorded(tmp_path / "run")
    with pytest.raises(ValueError, match=words):
        read(drift.open(tmp_path / "run", task=task(), parts=parts))


def test_clients_may_share_samples_and_others_may_hold_some(tmp_path):
    recordings.recorded(tmp_path / "run")
    run = drift.open(tmp_path / "run", task=task(), parts=[[3, 2], [0], [], range(2, 19), [5, 6]])
    assert drift.label_scatter(run)["count"].sum("class").sel(round=0).values.tolist() == [2, 17]


def test_sizes_that_no_one_stated_contradict_no_parts(tmp_path):
    recorder = drift.Recorder(tmp_path / "run")
    model = recordings.net().state_dict()
    recorder.round(start=model, clients={0: (model, 1), 1: (model, 1)}, end=model)
    run = drift.open(tmp_path / "run", task=task(), parts=[[0, 1], [2, 3, 4]])
    assert np.isfinite(drift.client_losses(run).own_loss).all()


def test_parts_of_a_trained_run_have_its_clients(tmp_path):
    run = tiny.trained(tmp_path, "rounds=1", "clients.valid_ratio=0.2")
    own = [np.union1d(part, out) for part, out in zip(run.dataset.parts, run.dataset.held_out, strict=True)]
    assert len(drift.open(run.folder, task=run.task, parts=own).parts) == 4
    with pytest.raises(ValueError, match=r"parts has 5 clients, run .* has 4"):
        _ = drift.open(run.folder, task=run.task, parts=[*own, [0]]).parts


def test_sizes_of_a_folder_are_those_of_the_parts(tmp_path):
    for path, seed in {"0/global": 1, "1/client0": 2, "1/client1": 3, "1/global": 4}.items():
        (tmp_path / "ck" / path).parent.mkdir(parents=True, exist_ok=True)
        torch.save(recordings.moved(recordings.net(), seed), tmp_path / "ck" / f"{path}.pt")
    (tmp_path / "ck" / "sizes.json").write_text(json.dumps({"0": 2, "1": 3}))
    patterns = parse_patterns("{round}/client{client}.pt")
    read = lambda parts: record_checkpoints(tmp_path / "ck", patterns, task=(task(), parts), runs=tmp_path / "runs")  # noqa: E731
    assert read([[0, 1], [2, 3, 4]]).round(-1).sizes.tolist() == [2, 3]
    with pytest.raises(ValueError, match=r"sizes.json gives client 1 3 samples, its part of the task has 2"):
        read([[0, 1], [2, 3]])
