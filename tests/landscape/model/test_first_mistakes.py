"""What people give first that is no task: one line that says what is wrong, what was given and what to do."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pandas as pd
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.data import DataLoader, TensorDataset

import landscape

X = torch.randn(60, 5, generator=torch.Generator().manual_seed(1))
Y = X[:, :3].argmax(1)
FAR = Y.clone()
FAR[51] = 3
FAR4 = torch.cat([Y, FAR, Y, Y])
CE = nn.CrossEntropyLoss()


def net(outputs: int = 3) -> nn.Module:
    torch.manual_seed(3)
    return nn.Sequential(nn.Linear(5, 8), nn.ReLU(), nn.Linear(8, outputs))


class Counting(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(5, 3)
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls += 1
        return self.layer(x) * self.calls


def own(outputs: Tensor, targets: Tensor) -> Tensor:
    return -outputs.log_softmax(1).gather(1, targets[:, None]).mean()


MISTAKES: dict[str, tuple[tuple[Any, ...], str]] = {
    "label of no class": (
        (net(), CE, (X, FAR)),
        r"split 'train': sample 51 has the label 3, and the model has 3 classes: labels are 0 to 2.*ignore_index=3",
    ),
    "label of no class in test": (
        (net(), F.cross_entropy, {"train": (X, Y), "test": (X[50:], FAR[50:])}),
        r"split 'test': sample 1 has the label 3",
    ),
    "label below 0": ((net(), CE, (X, Y - 1)), r"sample \d+ has the label -1.*labels are 0 to 2"),
    "label of no class in an own loss": (
        (net(), own, (X.tile(4, 1), FAR4)),
        r"own fails on a sample .* target \[3\]",
    ),
    "all ignored": ((net(), CE, (X, Y * 0 - 100)), r"split 'train': no sample counts in the loss"),
    "all ignored in test": (
        (net(), nn.CrossEntropyLoss(ignore_index=1), {"train": (X, Y), "test": (X, Y * 0 + 1)}),
        r"split 'test': no sample counts in the loss",
    ),
    "all ignored in an own loss": (
        (net(), lambda o, t: F.cross_entropy(o, t, ignore_index=1), (X, Y * 0 + 1)),
        r"<lambda> is NaN on .*no target counts",
    ),
    "fewer features": (
        (net(), CE, (X[:, :4], Y)),
        r"Sequential fails on the inputs \(8, 4\) float32: .*8x4 and",
    ),
    "whole numbers": ((net(), CE, (X.long(), Y)), r"on the inputs \(8, 5\) int64: .*inputs\.float\(\)"),
    "another forward": ((net(), CE, ((X, X), Y)), r"Sequential fails on the inputs \(8, 5\) float32, \(8, 5\) float32"),
    "meta": ((nn.Linear(5, 3, device="meta"), CE, (X, Y)), "the model is on the device meta"),
    "function of inputs": ((lambda x: x, CE, (X, Y)), "the model is the function <lambda>, which takes arguments"),
    "class of model": ((nn.Linear, CE, (X, Y)), "the model is the class Linear, which takes arguments"),
    "class of loss": ((net(), nn.CrossEntropyLoss, (X, Y)), r"give a function .*nn.CrossEntropyLoss\(\) with brackets"),
    "whole 0 and 1": (
        (net(1), nn.BCEWithLogitsLoss(), (X, (X[:, :1] > 0).long())),
        "give targets.float",
    ),
    "floating classes": ((net(), CE, (X, Y.float())), r"give classes as targets.long\(\)"),
    "list of loaders": (
        (net(), CE, [DataLoader(TensorDataset(X, Y)), DataLoader(TensorDataset(X, Y))]),
        "split 'train': several sets of samples were given; give one, or splits as .*'test'",
    ),
    "pair of sets": ((net(), CE, (TensorDataset(X, Y), TensorDataset(X, Y))), "several sets of samples were given"),
    "all frozen": (
        (net().requires_grad_(False), CE, (X, Y)),
        r"no parameter of Sequential is trained",
    ),
    "buffer in eval mode": ((Counting(), CE, (X, Y)), r"Counting changes its buffer 'calls' in eval mode"),
}


@pytest.mark.parametrize("what", MISTAKES)
def test_a_first_mistake_is_told_in_one_line(what):
    arguments, message = MISTAKES[what]
    with pytest.raises(ValueError, match=message) as refused:
        landscape.make_task(*arguments)
    assert "\n" not in str(refused.value)


def test_tables_and_lists_of_pairs_are_data():
    expected = landscape.loss(landscape.make_task(net(), CE, (X, Y)), net())
    table = {**{f"f{place}": X[:, place].numpy() for place in range(5)}, "labels": Y.numpy()}
    for data in (pd.DataFrame(table), table, {"train": pd.DataFrame(table)}, list(zip(X, Y, strict=True))):
        task = landscape.make_task(net(), CE, data)
        assert landscape.loss(task, net()) == expected and len(task.samples["train"]) == 60
    numbered = [(row.numpy(), int(label)) for row, label in zip(X[:2], Y[:2], strict=True)]
    two = landscape.make_task(net(), CE, numbered)
    assert landscape.loss(two, net()) == pytest.approx(F.cross_entropy(net()(X[:2]), Y[:2]).item(), rel=1e-6)
    with pytest.raises(ValueError, match=r"split 'train': it has the columns f0, .*call the column of targets one of"):
        landscape.make_task(net(), CE, pd.DataFrame(table).drop(columns="labels"))
    np.testing.assert_array_equal(two.samples["train"].inputs, X[:2])


def test_torch_warns_of_nothing_that_is_ours():
    layer = nn.TransformerEncoderLayer(4, 2, 8, batch_first=True)

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder, self.head = nn.TransformerEncoder(layer, 1), nn.Linear(4, 3)

        def forward(self, x: Tensor, padding: Tensor) -> Tensor:
            return self.head(self.encoder(x, src_key_padding_mask=padding)[:, 0])

    padding = torch.arange(5)[None] >= torch.randint(2, 6, (60, 1), generator=torch.Generator().manual_seed(0))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        landscape.make_task(Encoder(), CE, ((X[:, :, None].expand(60, 5, 4), padding), Y))
        landscape.make_task(net(), lambda o, t: F.soft_margin_loss(o, t.sign()), (X, X[:, :3]))
