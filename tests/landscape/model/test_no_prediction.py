"""Outputs that are NaN are no predictions: loss, error and error by class say so together."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch import nn

import landscape
from landscape.measures.predictions import predictions
from landscape.model.losses import error
from landscape.model.metrics import class_error


def posed(spoilt: int) -> landscape.Task:
    """A task of 12 samples and 3 classes, of which `spoilt` have inputs without finite outputs."""
    draw = torch.Generator().manual_seed(0)
    x, y = torch.randn(12, 4, generator=draw), torch.arange(12) % 3
    x[:spoilt] = torch.nan
    model = nn.Linear(4, 3)
    return landscape.Task(model, {"train": landscape.Samples(x, y)}, metrics={"error": error, "by_class": class_error})


@pytest.mark.parametrize("spoilt", [0, 1, 12])
def test_nan_outputs_have_neither_loss_nor_error(spoilt):
    task = posed(spoilt)
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
