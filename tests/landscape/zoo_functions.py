"""Foreign models with autograd functions, parametrisations and normalised weights of their own."""

from __future__ import annotations

import warnings
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.nn.utils import parametrizations, parametrize

from tests.landscape.zoo_views import CLASSES


class Normed(nn.Module):
    """Weight norm by hooks and by parametrisation, and a parametrisation of one's own."""

    def __init__(self) -> None:
        super().__init__()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", FutureWarning)  # deprecated, and in use
            self.hooked = nn.utils.weight_norm(nn.Linear(32, 5))
        self.normed = parametrizations.weight_norm(nn.Linear(5, 5))
        self.symmetric = nn.Linear(5, 5)
        parametrize.register_parametrization(self.symmetric, "weight", _Symmetric())
        self.head = nn.Linear(5, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        x = torch.tanh(self.hooked(x.flatten(1)))
        return self.head(self.symmetric(torch.tanh(self.normed(x))))


class Spectral(nn.Module):
    """Spectral norm, whose buffers change in training."""

    def __init__(self) -> None:
        super().__init__()
        self.body = parametrizations.spectral_norm(nn.Linear(32, 5))
        self.head = nn.Linear(5, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(torch.tanh(self.body(x.flatten(1))))


class _Symmetric(nn.Module):
    def forward(self, x: Tensor) -> Tensor:
        return x.triu() + x.triu(1).T


class _Softsign(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor) -> Tensor:
        y = x / (1 + x.abs())
        ctx.save_for_backward(x)
        return y

    @staticmethod
    def backward(ctx: Any, *outer: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return outer[0] / (1 + x.abs()).square()


class _SoftsignOnce(_Softsign):
    @staticmethod
    @once_differentiable
    def backward(ctx: Any, *outer: Tensor) -> Tensor:
        (x,) = ctx.saved_tensors
        return outer[0] / (1 + x.abs()).square()


class Custom(nn.Module):
    """A custom autograd function."""

    function = _Softsign

    def __init__(self) -> None:
        super().__init__()
        self.body, self.head = nn.Linear(32, 6), nn.Linear(6, CLASSES)

    def forward(self, x: Tensor) -> Tensor:
        return self.head(self.function.apply(self.body(x.flatten(1))))


class CustomOnce(Custom):
    """A custom autograd function without a second derivative."""

    function = _SoftsignOnce
