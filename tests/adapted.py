"""Layers with low-rank adapters in the form of peft's, without peft: a task of them, and twins of their models."""

from __future__ import annotations

from math import prod
from typing import Any

import torch
from torch import Tensor, nn

from landscape.model.products import adapted_layers, with_residuals


class LowRank(nn.Module):
    """base(x) + scale B A x, with the names and the methods of a layer of peft."""

    disable_adapters = merged = False
    active_adapters = ("default",)

    def __init__(self, base: nn.Linear, rank: int, scale: float) -> None:
        super().__init__()
        self.base_layer = base.requires_grad_(False)
        self.scaling = {"default": scale}
        self.lora_A = nn.ModuleDict({"default": nn.Linear(base.in_features, rank, bias=False)})
        self.lora_B = nn.ModuleDict({"default": nn.Linear(rank, base.out_features, bias=False)})
        nn.init.zeros_(self.lora_B["default"].weight)

    def get_base_layer(self) -> nn.Linear:
        return self.base_layer

    def get_delta_weight(self, name: str) -> Tensor:
        return self.scaling[name] * self.lora_B[name].weight @ self.lora_A[name].weight

    def forward(self, inputs: Tensor) -> Tensor:
        return self.base_layer(inputs) + self.scaling["default"] * self.lora_B["default"](
            self.lora_A["default"](inputs)
        )


class Net(nn.Module):
    """Two adapted layers below a trained head."""

    def __init__(self, inputs: int, classes: int, rank: int, scales: tuple[float, float]) -> None:
        super().__init__()
        self.body = nn.Sequential(
            nn.Flatten(),
            LowRank(nn.Linear(inputs, 6), rank, scales[0]),
            nn.Tanh(),
            LowRank(nn.Linear(6, 5), rank, scales[1]),
            nn.Tanh(),
        )
        self.head = nn.Linear(5, classes)

    def forward(self, inputs: Tensor) -> Tensor:
        return self.head(self.body(inputs))


def build(
    shape: tuple[int, ...], classes: int, *, rank: int = 2, scale: float = 2.0, residual: bool = False
) -> nn.Module:
    """The model of `task.model=adapted:build`; layers differ in their scale."""
    module = Net(prod(shape), classes, rank, (scale, 0.5 * scale))
    return with_residuals(module) if residual else module


def twin(module: nn.Module, theta: Tensor, seed: int = 0, size: float = 1.0) -> Tensor:
    """The same model (d,) by other factors, Q A and B Q^-1 with a random Q, about `size` in norm; in float64."""
    from landscape.model.layout import Layout

    source = torch.Generator().manual_seed(seed)
    twins: dict[str, Any] = {name: value.double().clone() for name, value in Layout.of(module).named(theta).items()}
    for name, _ in adapted_layers(module):
        a, b = f"{name}.lora_A.default.weight", f"{name}.lora_B.default.weight"
        rank = len(twins[a])
        q = size * (torch.eye(rank) * 2 + torch.randn(rank, rank, generator=source)).double()
        twins[a], twins[b] = q @ twins[a], twins[b] @ torch.linalg.inv(q)
    return torch.cat([value.flatten() for value in twins.values()])
