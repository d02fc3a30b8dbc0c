"""Safetensors files without copies: the same format as the library writes, given as pieces to be written in order."""

from __future__ import annotations

import json
from collections.abc import Mapping

import torch
from torch import Tensor

_NAMES = {
    torch.float64: "F64",
    torch.float32: "F32",
    torch.float16: "F16",
    torch.bfloat16: "BF16",
    torch.int64: "I64",
    torch.int32: "I32",
    torch.int16: "I16",
    torch.int8: "I8",
    torch.uint8: "U8",
    torch.bool: "BOOL",
}


def pieces(tensors: Mapping[str, Tensor], metadata: Mapping[str, str]) -> list[bytes | memoryview]:
    """A safetensors file of contiguous tensors in memory, as pieces to be written one after the other.

    Source: safetensors format: length of the header (u64), JSON header padded with spaces to 8 bytes, tensors without
    gaps, those of the widest type first.

    Raises:
        ValueError: If a tensor has a type that the format does not name.
    """
    header: dict[str, object] = {"__metadata__": dict(metadata)}
    parts: list[bytes | memoryview] = []
    position = 0
    for name, tensor in sorted(tensors.items(), key=lambda item: (-item[1].element_size(), item[0])):
        if tensor.dtype not in _NAMES:
            raise ValueError(f"tensor {name!r} is {tensor.dtype}; files hold {', '.join(_NAMES.values())}.")
        size = tensor.numel() * tensor.element_size()
        span = [position, position + size]
        header[name] = {"dtype": _NAMES[tensor.dtype], "shape": list(tensor.shape), "data_offsets": span}
        parts.append(tensor.reshape(-1).view(torch.uint8).numpy().data)
        position += size
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return [len(text).to_bytes(8, "little"), text, *parts]
