"""Losses of samples of other shapes than those of the task: the user's own number, or a refusal."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from reference.registry import agree, reference
from reference.test_losses import IDS, INPUTS, LABELS, VALUES, Words, naive
from torch import Tensor, nn

import landscape


def broadcasting(outputs: Tensor, targets: Tensor) -> Tensor:
    return (outputs - targets).square().mean()


def per_token(outputs: Tensor, targets: Tensor) -> Tensor:
    return F.cross_entropy(outputs.flatten(0, 1), targets.flatten())


@reference("landscape.loss", by="the user's own loss of samples of other shapes, or a refusal")
def test_a_loss_is_tried_again_once_for_each_new_kind_of_samples():
    torch.manual_seed(2)
    calls = []

    def noted(outputs: Tensor, targets: Tensor) -> Tensor:
        calls.append(len(targets))
        return broadcasting(outputs, targets)

    task = landscape.make_task(nn.Linear(4, 1).double(), noted, (INPUTS, VALUES[:, :1]))
    same, flat = landscape.Samples(INPUTS[:9], VALUES[:9, 1:2]), landscape.Samples(INPUTS[:9], VALUES[:9, 1])
    calls.clear()
    own = naive(task, broadcasting, same.inputs, same.targets)(task.theta).item()
    agree("landscape.loss", landscape.loss(task, task.theta, split=same), own, relative=1e-12)
    untried = len(calls)
    for _ in range(2):
        for function in (landscape.loss, landscape.trace, landscape.hessian):
            with pytest.raises(ValueError, match=r"compares every output with every target .*\(9, 1\), targets \(9,\)"):
                function(task, task.theta, split=flat)
    single = landscape.Samples(INPUTS.float(), VALUES[:, :1].float())
    landscape.loss(task, task.theta, split=single)
    calls.clear()
    landscape.loss(task, task.theta, split=single[:9])
    assert len(calls) == untried


@reference("landscape.loss", by="the user's own loss of sequences of another length")
def test_a_loss_of_longer_sequences_is_the_users_or_refused():
    draw = torch.Generator().manual_seed(1)
    longer, labels = torch.randint(0, 7, (20, 9), generator=draw), torch.randint(0, 3, (20, 9), generator=draw)
    labels[3, 2:] = -100
    samples = landscape.Samples(longer, labels)
    task = landscape.make_task(Words().double(), per_token, (IDS, LABELS))
    own = naive(task, per_token, longer, labels)(task.theta).item()
    agree("landscape.loss", landscape.loss(task, task.theta, split=samples), own, relative=1e-12)

    def by_length(outputs: Tensor, targets: Tensor) -> Tensor:
        rows = F.cross_entropy(outputs.transpose(1, 2), targets, reduction="none").sum(1)
        return rows.mean() if targets.shape[1] < 9 else rows[0]

    task = landscape.make_task(Words().double(), by_length, (IDS, LABELS))
    with pytest.raises(ValueError, match=r"by_length, found with the samples of the task, is another one .*20, 9"):
        landscape.loss(task, task.theta, split=samples)
