"""Metrics of the user's own on a run's planes, from Python and from the command line."""

from __future__ import annotations

import json
import os

import numpy as np
import pytest
import torch
from torch import nn

import drift
import landscape
from drift.runs.user_task import UserMetric
from figures.cli import main
from tests.tiny import trained

CODE = """
def confidence(outputs, targets):
    return outputs.softmax(1).amax(1)


def both(outputs, targets):
    return outputs.softmax(1)[:, :2]
"""


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return trained(tmp_path_factory.mktemp("measures"))


def test_a_metric_stands_beside_loss_and_error_at_every_point(run, tmp_path):
    path = tmp_path / "mine.py"
    path.write_text(CODE)
    measured = run.with_measures([UserMetric.load(f"{path}:confidence"), UserMetric.load(f"{path}:both")])
    found, plain = (one.cached(drift.round_plane, points=3) for one in (measured, run))
    np.testing.assert_array_equal(found.loss, plain.loss)
    record, task = run.round(-1), run.task
    outputs = task.outputs(record.clients[0], "test")
    first = found.isel(mark=0)
    np.testing.assert_allclose(first.mark_confidence, outputs.softmax(1).amax(1).mean(), rtol=1e-5)
    np.testing.assert_allclose(first.mark_both, outputs.softmax(1)[:, :2].mean(0), rtol=1e-5)
    assert "confidence" not in plain


def test_changed_code_is_measured_anew(run, tmp_path):
    path = tmp_path / "mine.py"
    values = []
    for factor in (1, 2):
        path.write_text(CODE.replace("amax(1)\n", f"amax(1) * {factor}\n"))
        os.utime(path, (10**9, 10**9))  # of the same second and size as before
        measured = run.with_measures([UserMetric.load(f"{path}:confidence")])
        values.append(measured.cached(drift.global_line, points=3).confidence.values)
    np.testing.assert_allclose(values[1], 2 * values[0])


def test_results_of_another_task_of_the_user_are_not_served(tmp_path):
    models = [nn.Linear(5, 3) for _ in range(4)]
    recorder = drift.Recorder(tmp_path / "run", models[0])
    recorder.round(start=models[0], clients={k: (model, 9) for k, model in enumerate(models[1:])}, end=models[1])
    x, y = torch.randn(9, 5), torch.arange(9) % 3
    for weights in ([1.0, 2.0, 3.0], [9.0, 1.0, 1.0]):
        loss = nn.CrossEntropyLoss(weight=torch.tensor(weights))
        run = drift.open(tmp_path / "run", task=landscape.make_task(nn.Linear(5, 3), loss, (x, y)))
        found = run.cached(drift.round_plane, points=3).mark_loss.sel(mark=["client 0", "client 1"])
        np.testing.assert_allclose(found, [loss(model(x), y).detach() for model in models[1:3]], rtol=1e-5)


def code(command):
    with pytest.raises(SystemExit) as stop:
        main(command)
    return stop.value.code


def test_the_command_takes_metrics_and_says_what_is_wrong(run, tmp_path, capsys):
    path = tmp_path / "mine.py"
    path.write_text(CODE)
    command = ["analyse", "plane", str(run.folder), "--set", "points=3"]
    assert code([*command, "--metric", f"{path}:confidence", "--metric", f"{path}:both", "--json"]) == 0
    assert {"confidence", "both"} <= set(json.loads(capsys.readouterr().out)["data_vars"])
    for given, said in ((f"{path}:absent", "has no function 'absent'"), ("mine", "'mine' is incomplete")):
        assert code([*command, "--metric", given]) == 2
        assert said in capsys.readouterr().err
