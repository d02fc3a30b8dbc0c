"""Faster sweeps in lower precision: inner layers multiply in bfloat16 and sum in float32; the error is measured."""

import weakref
from functools import partial
from typing import Literal, cast, get_args

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from landscape.model.bound_model import Flat
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.sweep.layer_calls import trace_calls
from landscape.sweep.processor import processor

Precision = Literal["exact", "fast"]

LEAST_WEIGHTS = 8192
"""A layer below this size gains nothing."""

CHECKED = 5
"""Points of a sweep that are evaluated in both precisions."""


def check_precision(precision: str) -> Precision:
    """The name of a precision, checked.

    Raises:
        ValueError: If it is unknown.
    """
    if precision not in get_args(Precision):
        raise ValueError(f"precision is {precision!r}; accepted: {', '.join(get_args(Precision))}.")
    return "fast" if precision == "fast" else "exact"


def has_bfloat16() -> bool:
    """Whether this processor multiplies in bfloat16 (AVX512-BF16 or AMX); other processors emulate it."""
    known: dict[str, bool] = getattr(torch.cpu, "get_capabilities", dict)()
    flags = processor()["flags"].split()
    return any(known.get(flag, flag in flags) for flag in ("avx512_bf16", "amx_bf16"))


def precision_attrs(precision: Precision, task: Task, like: Tensor, probe: Samples) -> dict[str, str]:
    """Attributes that state a precision other than exact, and where it changes no layer of a model (d,) as `like`."""
    if precision == "exact" or use_bfloat16(task.flat(like), probe):
        return {"precision": precision} if precision == "fast" else {}
    missing = "no large inner layer in float32" if has_bfloat16() else "this processor has no bfloat16 products"
    return {"precision": precision, "precision_note": f"{missing}: precision 'fast' computes exactly, and is no faster"}


@torch.no_grad()
def use_bfloat16(flat: Flat, probe: Samples) -> list[str]:
    """Let inner layers of `flat` multiply in bfloat16 for good, and return the names of their parameters.

    Plain dense layers and convolutions (zero padding only) round their inputs and parameters to 8 binary digits, sum
    the products in float32 and round once more. The first and the last such layer that the model calls (the first may
    be shared by all points, errors of the last are errors of the logits) and small layers are not changed, nor any
    layer on other devices or dtypes or on a processor without such products.
    """
    if flat.theta.device.type != "cpu" or flat.theta.dtype != torch.float32 or not has_bfloat16():
        return []
    calls = trace_calls(flat, probe.inputs).calls
    names = [call.name for call in calls if call.plain]
    inner = set(names[1:-1]) - {names[0], names[-1]} if names else set()
    coarse = []
    for name in sorted(inner):
        layer = flat.module.get_submodule(name)
        simple = getattr(layer, "groups", 1) == 1 and getattr(layer, "padding_mode", "zeros") == "zeros"
        if simple and layer.get_parameter("weight").numel() >= LEAST_WEIGHTS:
            vars(layer)["forward"] = partial(_forward, cast(nn.Module, weakref.proxy(layer)))  # makes no cycle
            coarse += [f"{name}.{parameter}" for parameter, _ in layer.named_parameters()]
    return coarse


def evenly_spaced(indices: np.ndarray) -> np.ndarray:
    """At most CHECKED evenly spaced indices, first and last included."""
    return indices[np.unique(np.linspace(0, len(indices) - 1, min(CHECKED, len(indices))).round().astype(int))]


def relative_difference(approximate: Tensor, exact: Tensor) -> float:
    """Largest |approximate - exact| / |exact| over finite pairs; NaN if there is none."""
    both = approximate.isfinite() & exact.isfinite() & (exact != 0)
    return float(((approximate - exact).abs() / exact.abs())[both].max()) if bool(both.any()) else torch.nan


def _forward(layer: nn.Module, inputs: Tensor) -> Tensor:
    bias = None if layer.bias is None else layer.get_parameter("bias").bfloat16()
    inputs, weight = inputs.bfloat16(), layer.get_parameter("weight").bfloat16()
    if not isinstance(layer, nn.Conv2d):
        return F.linear(inputs, weight, bias).float()
    return F.conv2d(inputs, weight, bias, layer.stride, layer.padding, layer.dilation).float()
