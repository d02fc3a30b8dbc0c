"""Copies of modules, and their conversion to another dtype and device."""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

_COMPLEX = {torch.float16: torch.complex32, torch.float64: torch.complex128}


def copy_module(module: nn.Module) -> nn.Module:
    """A copy of a module that shares no memory with it.

    Tensors that a layer computed from its parameters and stored (`torch.nn.utils.weight_norm` does so) are copied by
    value; `copy.deepcopy` alone refuses them. Copies of those, and of views of a trained parameter, require gradients,
    so that their use can be seen.
    """
    addresses = {parameter.untyped_storage().data_ptr() for parameter in module.parameters() if parameter.requires_grad}
    copies = {id(buffer): buffer.detach().clone() for buffer in module.buffers() if not buffer.is_leaf}
    for value in [value for layer in module.modules() for value in _stored(vars(layer))]:
        if not value.is_leaf or (value.is_floating_point() and value.untyped_storage().data_ptr() in addresses):
            copies[id(value)] = value.detach().clone().requires_grad_()
    return deepcopy(module, copies)


def _stored(values: Mapping[str, Any]) -> Iterator[Tensor]:
    """Tensors that a layer stores beside its parameters and buffers, also in dicts, as peft stores its arguments."""
    for name, value in values.items():
        if isinstance(value, Tensor):
            yield value
        elif isinstance(value, dict) and name not in ("_parameters", "_buffers", "_modules"):
            yield from (tensor for tensor in _stored(value) if not isinstance(tensor, nn.Parameter))


HALF = (torch.float16, torch.bfloat16)
"""Types in which models are stored, and nothing is computed."""


def in_float32(module: nn.Module) -> nn.Module:
    """The module itself, or a copy in float32 of one in half precision, which says so as `stored_in`."""
    half = [tensor.dtype for tensor in (*module.parameters(), *module.buffers()) if tensor.dtype in HALF]
    if not half:
        return module
    copy = copy_module(module)
    for tensor in (*copy.parameters(), *copy.buffers()):
        tensor.data = tensor.data.float() if tensor.dtype in HALF else tensor.data
    vars(copy)["stored_in"] = str(half[0]).removeprefix("torch.")
    return copy


def dtype_attrs(*models: Any) -> dict[str, str]:
    """The attribute of a result that names the half precision in which a model or its tensors were stored, if any."""
    stored = [text for model in models if (text := getattr(model, "stored_in", ""))]
    return {"model_dtype": f"{stored[0]}, computed in float32"} if stored else {}


def convert(module: nn.Module, dtype: torch.dtype, device: torch.device) -> nn.Module:
    """Convert a module in place: real tensors to `dtype`, complex ones to the complex type of that precision.

    `nn.Module.to` would drop the imaginary parts, and separate a buffer that has two names.
    """
    for tensor in (*module.parameters(), *module.buffers()):
        kind = dtype if tensor.is_floating_point() else tensor.dtype
        if tensor.is_complex():
            kind = _COMPLEX.get(dtype, torch.complex64)
        tensor.data = tensor.data.to(dtype=kind, device=device)
    return module
