"""What a person sees in a shell or a notebook cell is short, whatever tensors a value holds."""

from __future__ import annotations

import pytest
import tiny
import torch

import landscape
from landscape.geometry.curves import Curve


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("reprs"))


SHOWN = {
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
