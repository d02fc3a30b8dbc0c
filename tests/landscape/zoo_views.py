"""Foreign models whose parameters are views of one another, strided, shared, or changed in place."""

from __future__ import annotations

from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

SHAPE, CLASSES = (2, 4, 4), 3


class Viewed(nn.Module):
    """The network of PyTorch's tutorial: `view` behind convolutions."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(2, 4, 3, padding=1)
        self.pool = nn.MaxPool2d(2)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(F.relu(self.convolution(x)))
        return self.head(x.view(x.size(0), -1))


class ViewedInTraining(Viewed):
    """`view` in train mode alone."""

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(torch.tanh(self.convolution(x)))
        return self.head(x.view(len(x), -1) if self.training else x.flatten(1))


class _ViewedBackward(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        return x.clone()

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> Tensor:
        return outer[0].view(len(outer[0]), -1).view_as(outer[0])


class ViewedBackward(Viewed):
    """`view` of a gradient, in a custom function's backward pass."""

    def forward(self, x: Tensor) -> Tensor:
        x = _ViewedBackward.apply(torch.tanh(self.convolution(x)))
        return self.head(self.pool(x).flatten(1))


class Strided(Viewed):
    """Reads memory in the order of a contiguous tensor, whatever the strides say: wrong values instead of an error."""

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.convolution(x))
        x = torch.as_strided(x, (len(x), 64), (64, 1))[:, ::4]
        return self.head(x)


class InPlace(nn.Module):
    """In-place ReLU, and in-place operations on the inputs themselves."""

    def __init__(self) -> None:
        super().__init__()
        self.convolution = nn.Conv2d(2, 4, 3)
        self.relu = nn.ReLU(inplace=True)
        self.head = nn.Linear(16, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x.sub_(0.25).mul_(2)
        x = self.convolution(x)
        x += 0.5
        x = self.relu(x)
        return self.head(x.flatten(1))


class Shared(nn.Module):
    """One weight in two layers, and one layer called twice."""

    def __init__(self) -> None:
        super().__init__()
        self.enter = nn.Linear(32, 5)
        self.twice = nn.Linear(5, 5)
        self.leave = nn.Linear(32, 5, bias=False)
        self.leave.weight = self.enter.weight
        self.head = nn.Linear(5, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = x.flatten(1)
        return self.head(torch.tanh(self.twice(torch.tanh(self.twice(self.enter(x))))) + self.leave(x))
