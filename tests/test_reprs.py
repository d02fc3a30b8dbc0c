"""What a person sees in a shell or a notebook cell is short, whatever tensors a value holds."""

from __future__ import annotations

import pytest
import tiny
import torch

import landscape
from drift.runs.run import Run
from landscape.geometry.curves import Curve


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("reprs"))


SHOWN = {
    "run": lambda run: run,
    "round": lambda run: run.round(-1),
    "task": lambda run: run.task,
    "samples": lambda run: run.task.samples["train"],
    "data": lambda run: run.dataset,
    "sweep": lambda run: landscape.line(*run.round(-1).clients[:2], points=5),
    "curve": lambda run: Curve("bezier", torch.zeros(3, 36)),
}


@pytest.mark.parametrize("what", SHOWN)
def test_a_value_with_tensors_is_shown_in_one_short_line(run, what):
    text = repr(SHOWN[what](run))
    assert len(text) < 200
    assert "\n" not in text
    assert "tensor(" not in text


def test_a_round_shows_its_numbers_in_a_notebook(run):
    record = run.round(-1)
    text = record._repr_html_()
    assert f"{record.metrics['loss']:.6g}" in text
    assert "tensor(" not in text


@pytest.mark.parametrize("what", ["run", "task", "sweep", "round"])
def test_a_notebook_shows_a_short_table(run, what):
    text = SHOWN[what](run)._repr_html_()
    assert repr(SHOWN[what](run)).split(":")[0] in text
    assert text.count("<tr>") >= 3
    assert "tensor(" not in text and len(text) < 2_000


def test_a_run_is_shown_with_its_rounds_and_last_loss(run):
    assert f"{run.committed} of {run.experiment.rounds} rounds" in repr(run)
    assert f"<td>{run.round(-1).metrics['loss']:.6g}</td>" in run._repr_html_()


def test_a_folder_that_is_no_run_is_shown_with_the_reason(tmp_path):
    line = repr(Run(tmp_path / "<b>absent</b>"))
    assert "absent" in line and "\n" not in line
    assert "<b>" not in Run(tmp_path / "<b>absent</b>")._repr_html_()
