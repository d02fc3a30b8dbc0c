"""Dense layers and convolutions by oneDNN's own operations, which torch does not make public."""

from __future__ import annotations

from collections.abc import Callable

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from landscape.probe import probed

Packs = dict[int, Tensor]
"""Weights in the order of oneDNN by the address of the plain ones."""

Places = tuple[tuple[int, ...], tuple[int, ...], tuple[int, ...], int]
"""Padding, stride, dilation and groups of a convolution, as oneDNN takes them."""


def convolution_places(layer: nn.Conv2d) -> Places:
    """Where a convolution with zeros around its images computes."""
    return tuple(int(side) for side in layer.padding), tuple(layer.stride), tuple(layer.dilation), layer.groups


def _plain_dense(inputs: Tensor, weight: Tensor, bias: Tensor | None, packs: Packs | None) -> Tensor:
    return F.linear(inputs, weight, bias)


@probed(_plain_dense)
def dense(inputs: Tensor, weight: Tensor, bias: Tensor | None, packs: Packs | None) -> Tensor:
    """Outputs of a dense layer; with `packs` its weight is reordered once."""
    if packs is not None:
        rows, plain = inputs.numel() // inputs.shape[-1], weight
        weight = _packed(packs, plain, lambda: torch.ops.mkldnn._reorder_linear_weight(plain, rows))
    return torch.ops.mkldnn._linear_pointwise(inputs, weight, bias, "none", [], "")


def _plain_convolution(
    inputs: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    where: Places,
    packs: Packs | None,
    activation: str = "none",
    summand: Tensor | None = None,
) -> Tensor:
    padding, stride, dilation, groups = where
    outputs = F.conv2d(inputs, weight, bias, stride, padding, dilation, groups)
    outputs = outputs if summand is None else outputs + summand
    return outputs.relu() if activation == "relu" else outputs


@probed(_plain_convolution)
def convolution(
    inputs: Tensor,
    weight: Tensor,
    bias: Tensor | None,
    where: Places,
    packs: Packs | None,
    activation: str = "none",
    summand: Tensor | None = None,
) -> Tensor:
    """Activation ("none" or "relu") of a convolution plus the summand; with `packs` its weight is reordered once."""
    if packs is not None:
        plain, shape = weight, list(inputs.shape)
        weight = _packed(packs, plain, lambda: torch.ops.mkldnn._reorder_convolution_weight(plain, *where, shape))
    if summand is None:
        return torch.ops.mkldnn._convolution_pointwise(inputs, weight, bias, *where, activation, [], "")
    return torch.ops.mkldnn._convolution_pointwise.binary(
        inputs, summand, weight, bias, *where, "add", 1.0, activation, [], ""
    )


def fallback_attrs() -> dict[str, str]:
    """Attribute `plan_note` of a result where torch's own functions took over in this process, and why."""
    fallen = [probe.private.__name__ for probe in (dense, convolution) if not probe.works]
    why = "torch's own: oneDNN's failed or gave other values"
    return {"plan_note": f"products of {' and '.join(fallen)} layers are {why}"} if fallen else {}


def _packed(packs: Packs, weight: Tensor, pack: Callable[[], Tensor]) -> Tensor:
    if weight.data_ptr() not in packs:
        packs[weight.data_ptr()] = pack()
    return packs[weight.data_ptr()]
