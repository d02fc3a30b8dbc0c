"""Outputs that are NaN, or whose largest is infinite, are no predictions: loss and both errors say so together."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import landscape
from landscape.measures.predictions import predictions
from landscape.model.losses import error
from landscape.model.metrics import class_error
from landscape.model.token_losses import token_error

INF = float("inf")


def posed(spoilt: int, value: float = torch.nan) -> landscape.Task:
    """A task of 12 samples and 3 classes, of which `spoilt` have inputs without finite outputs."""
    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(12, 4, generator=draw), torch.arange(12) % 3
    x[:spoilt] = value
    model = nn.Linear(4, 3)
    return landscape.Task(model, {"train": landscape.Samples(x, y)}, metrics={"error": error, "by_class": class_error})


@pytest.mark.parametrize("logits", [[INF, 1, 2], [INF, INF, -INF], [-INF, -INF, -INF], [torch.nan, 1, 2]])
def test_a_sample_without_a_largest_logit_has_no_error(logits):
    outputs, targets = torch.tensor([logits, [-INF, 1, 2], [3, 1, 2]]), torch.tensor([0, 2, 1])
    assert error(outputs, targets).isnan().tolist() == [True, False, False]
    assert error(outputs, targets)[1:].tolist() == [0, 1]
    texts = torch.stack([outputs, torch.tensor([[1.0, 2, 3]] * 3)])
    assert token_error.values(texts, torch.tensor([[0, 2, 1], [2, 2, 0]])).isnan().tolist() == [True, False]


@pytest.mark.parametrize("spoilt", [0, 1, 12])
@pytest.mark.parametrize("value", [torch.nan, INF])
def test_outputs_that_are_not_finite_have_neither_loss_nor_error(spoilt, value):
    task = posed(spoilt, value)
    groups = torch.arange(12) // 6
    found = landscape.evaluate(task, task.theta[None], np.ones((1, 1)), split="train")
    parts = landscape.evaluate(task, task.theta[None], np.ones((1, 1)), split="train", groups=groups)
    for name in ("loss", "error", "by_class"):
        assert found[name].isnan().all() == found[name].isnan().any() == (spoilt > 0), name
        assert parts[name][0, 0].isnan().all() == (spoilt > 0) and parts[name][0, 1].isnan().any() == (spoilt > 6), name
    if spoilt:
        with pytest.raises(ValueError, match="predicts no class"):
            predictions(task, task.theta, split="train")
    else:
        wrong = (task.outputs(task.theta, "train").argmax(1) != torch.arange(12) % 3).double()
        assert found["error"].item() == pytest.approx(wrong.mean().item())
        wanted = [wrong[torch.arange(12) % 3 == label].mean() for label in range(3)]
        np.testing.assert_allclose(found["by_class"][0], wanted)
