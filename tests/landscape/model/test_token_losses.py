"""Losses of texts: the mean over all tokens that count, whatever the batches, and the share of wrong ones."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F

import landscape
from drift.training.data import Data, task_of
from landscape.model.samples import Samples


class Table(torch.nn.Module):
    """Logits (n, T, 5) of the next token by the token alone."""

    def __init__(self):
        super().__init__()
        self.logits = torch.nn.Embedding(6, 5)

    def forward(self, ids):
        return self.logits(ids)


def texts():
    source = torch.Generator().manual_seed(2)
    ids = torch.randint(0, 6, (7, 4), generator=source)
    labels = torch.randint(0, 5, (7, 4), generator=source)
    labels[0], labels[1, :3], labels[5, 1] = -100, -100, -100  # a text without labels, one with a single one
    return Samples(ids, labels)


def test_loss_and_error_are_means_over_the_tokens_that_count():
    torch.manual_seed(0)
    samples = texts()
    task = task_of(Table(), {"train": samples, "test": samples}, "tokens")
    outputs = task.outputs(task.theta, "test")
    wanted = F.cross_entropy(outputs.flatten(0, 1), samples.targets.flatten(), ignore_index=-100)
    counted = samples.targets != -100
    wrong = (outputs.argmax(-1) != samples.targets)[counted].double().mean()
    for block in (2, 512):
        found = landscape.evaluate(task, [task.theta], [[1.0]], block=block)
        assert found["loss"].item() == pytest.approx(wanted.item(), rel=1e-6)
        assert found["error"].item() == pytest.approx(wrong.item(), rel=1e-6)
    own = landscape.make_task(
        Table(), lambda logits, labels: F.cross_entropy(logits.flatten(0, 1), labels.flatten()), samples
    )
    assert landscape.loss(own, task.theta) == pytest.approx(wanted.item(), rel=1e-6)
    gradient = task.flat(task.theta)
    assert gradient.gradient(samples).item() == pytest.approx(wanted.item(), rel=1e-6)


def test_texts_have_no_classes():
    data = Data({"train": texts()}, tuple("abcde"), (4,), "", [], [], loss="tokens")
    with pytest.raises(LookupError, match="the data have no classes: their targets are int64"):
        _ = data.labels
