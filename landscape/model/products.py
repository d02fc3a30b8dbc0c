"""A model with low-rank adapters as a model of its products: the weights that B A adds, whatever the factors are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrize

from landscape.model.copies import copy_module
from landscape.model.layout import Layout
from landscape.model.model import plain, with_buffers
from landscape.model.task import Task
from landscape.model.vectors import AnyModel, takes_models


def products(task: Task) -> Products:
    """The task of a model with low-rank adapters, seen as a function of their products.

        view = landscape.products(task)
        a, b = view.model("saved/first"), view.model("saved/second")
        landscape.barrier(view.task, a, b)
        float((a - b).norm())

    An adapted layer has the weight W + D with D = scale B A (and what the layer adds to its frozen weight, `residual`).
    The factors (Q A, B Q^-1) of any invertible Q are the same model at another place of their space, so that
    distances, angles, curvature and the plane through three models differ. In the space of the products D they agree.
    Every function of models and vectors takes `view.task` and `view.model(...)`.

    Source: Hu et al. 2021 (LoRA), equation 3; the quotient by the factors: this project (docs/howto-adapters.md).

    Args:
        task: Its model has layers of peft's LoRA, or of the same form (`lora_A`, `lora_B`, `get_delta_weight`).

    Raises:
        ValueError: If no layer has adapters, or one computes something else than W + D (DoRA, a bias of B).
    """
    return Products(task)


@dataclass(frozen=True)
class Products:
    """A task in factors, and the same one in products.

    Args:
        factors: The task whose model has adapters.
    """

    factors: Task

    def __post_init__(self) -> None:
        layers = dict(adapted_layers(self.factors.model))
        if not layers:
            raise ValueError(
                f"no layer of {type(self.factors.model).__name__} has low-rank adapters; use the task as it is."
            )
        for name, layer in layers.items():
            _require_linear(name, layer)
        _require_single_use(self.factors.model, layers)

    def __repr__(self) -> str:
        """One line: layers, and numbers of parameters."""
        sizes = f"{self.factors.layout.size} parameters in factors, {self.task.layout.size} in products"
        return f"Products({sum(1 for _ in adapted_layers(self.factors.model))} adapted layers, {sizes})"

    @cached_property
    def task(self) -> Task:
        """The task as a function of the products D, and of all else that is trained; metrics and samples are the same.

        theta is that of the initial model.
        """
        module = copy_module(self._bare.model)
        with torch.no_grad():
            for name, value in self.layout.named(plain(self.model(self.factors.theta))).items():
                module.get_parameter(name).copy_(value)
        return replace(self.factors, model=module)

    @property
    def layout(self) -> Layout:
        """Names and shapes in the vector of the products: of each adapted layer D, in the shape of its weight."""
        return self._bare.layout

    def model(self, model: AnyModel) -> Tensor:
        """The products (D,) of a model of the task in factors, with its other parameters and its buffers.

        They are computed in float64 and rounded once.

        Args:
            model: A vector (d,), or any other model that functions of the task take.

        Raises:
            ValueError: If it is no model of the task.
        """
        any_model: Any = model  # `takes_models` makes a vector of it
        return _products(self.factors, any_model, self.layout)

    @cached_property
    def _bare(self) -> Task:
        """The task in products, where D is 0."""
        module = copy_module(self.factors.model)
        for name, layer in list(adapted_layers(module)):
            base = layer.get_base_layer()
            if not _has(base, Added):
                frozen = _frozen(base).detach().clone()
                if _has(base, Shifted):  # to remove it would change the class that copies of the module share
                    base.parametrizations.weight[0] = Added(frozen)
                else:
                    base.weight = nn.Parameter(torch.zeros_like(frozen))  # another tensor than that of a tied layer
                    parametrize.register_parametrization(base, "weight", Added(frozen), unsafe=True)
                base.parametrizations.weight.original = nn.Parameter(torch.zeros_like(frozen))
            module.set_submodule(name, base)
        return replace(self.factors, model=module)


class Added(nn.Module):
    """The weight of a layer as its frozen weight plus the trained one.

    Args:
        frozen: Weight of the layer without adapters.
    """

    def __init__(self, frozen: Tensor) -> None:
        super().__init__()
        self.frozen = nn.Parameter(frozen, requires_grad=False)

    def forward(self, added: Tensor) -> Tensor:
        return self.frozen + added


class Shifted(nn.Module):
    """The frozen weight of an adapted layer plus a buffer, `residual`: what a server adds that no factors can hold."""

    residual: Tensor

    def __init__(self, weight: Tensor) -> None:
        super().__init__()
        self.register_buffer("residual", torch.zeros_like(weight))

    def forward(self, weight: Tensor) -> Tensor:
        return weight + self.residual


def with_residuals(module: nn.Module) -> nn.Module:
    """The module, whose adapted layers have a buffer that is added to their frozen weight, at first 0; in place."""
    for _, layer in adapted_layers(module):
        base = layer.get_base_layer()
        parametrize.register_parametrization(base, "weight", Shifted(base.weight.detach()), unsafe=True)
    return module


def settle_residual(base: Any) -> None:
    """Add the residual of a base layer to its frozen weight, and drop it; in place, and other copies stay as they are.

    `torch.nn.utils.parametrize` would change the class that copies of a layer share.
    """
    weight = base.weight.detach().clone()
    del base.parametrizations
    base.__class__ = type(base).__bases__[0]
    base.weight = nn.Parameter(weight, requires_grad=False)


def adapted_layers(module: nn.Module) -> Iterator[tuple[str, Any]]:
    """Name and module of every layer with low-rank adapters, under each of its names."""
    for name, layer in module.named_modules(remove_duplicate=False):
        if hasattr(layer, "get_delta_weight") and hasattr(layer, "get_base_layer") and hasattr(layer, "lora_A"):
            yield name, layer


def residual_name(name: str, layer: Any) -> str | None:
    """Name of the buffer that `with_residuals` adds to an adapted layer of a name; None if it has none."""
    if not _has(layer.get_base_layer(), Shifted):
        return None
    base = next(key for key, module in layer.named_modules() if module is layer.get_base_layer())
    return f"{name}.{base}.parametrizations.weight.0.residual"


def _has(base: nn.Module, kind: type[nn.Module]) -> bool:
    """Whether the weight of a layer has a parametrization of a kind."""
    return any(isinstance(module, kind) for module in getattr(getattr(base, "parametrizations", None), "weight", ()))


def _frozen(base: Any) -> Tensor:
    """The weight of a base layer without its residual."""
    return base.parametrizations.weight.original if _has(base, Shifted) else base.weight


def _require_linear(name: str, layer: Any) -> None:
    """Refuse a layer whose adapter is more than an addition to its weight."""
    weight = getattr(layer.get_base_layer(), "weight", None)
    odd = "a variant such as DoRA" if getattr(layer, "lora_variant", None) else ""
    odd = odd or ("a bias beside B" if any(getattr(layer, "lora_bias", {}).values()) else "")
    odd = odd or ("a base layer without a weight" if not isinstance(weight, Tensor) else "")
    odd = odd or ("grouped convolutions" if getattr(layer.get_base_layer(), "groups", 1) > 1 else "")
    odd = odd or ("its adapters off or merged" if layer.disable_adapters or layer.merged else "")
    if odd:
        raise ValueError(
            f"{name} has {odd}; products are those of plain LoRA, W + scale B A. Merge the model "
            "(merge_and_unload()) to analyse it in all its parameters."
        )


def _require_single_use(model: nn.Module, layers: Mapping[str, Any]) -> None:
    """Refuse an adapted layer that the model also calls elsewhere, without its adapter."""
    for name, layer in layers.items():
        base, inside = layer.get_base_layer(), tuple(f"{path}." for path, wrapper in layers.items() if wrapper is layer)
        for path, module in model.named_modules(remove_duplicate=False):
            if module is base and not path.startswith(inside):
                raise ValueError(
                    f"{path} is the frozen layer of {name}, called without its adapter; products are those of layers "
                    "that are called with it. Merge the model (merge_and_unload()) to analyse it."
                )


@takes_models("theta")
def _products(task: Task, theta: Tensor, layout: Layout, *, buffers: Tensor | None = None) -> Tensor:
    """Products by the layout of the task in products, of a model in factors."""
    flat = task.flat(theta.double())
    flat.load(theta.double(), buffers)
    tensors = {**dict(flat.module.named_parameters()), **dict(flat.module.named_buffers())}
    first = dict(adapted_layers(task.model))
    with torch.no_grad():
        for name, layer in adapted_layers(flat.module):
            base = layer.get_base_layer()
            for key, value in (*base.named_parameters(), *base.named_buffers()):
                tensors[f"{name}.{key}"] = value
            added = sum(
                layer.get_delta_weight(adapter) for adapter in layer.active_adapters if adapter in layer.scaling
            )
            residual = base.weight - _frozen(first[name].get_base_layer()).double()
            tensors[f"{name}.parametrizations.weight.original"] = residual + added
    return with_buffers(layout.theta(tensors).to(theta), layout.buffer_vector(tensors).to(theta))
