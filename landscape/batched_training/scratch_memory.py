"""Reused buffers: fresh pages from the system cost more than the computations of a small model."""

import threading
from math import prod

import torch
from torch import Tensor

LARGEST = 2**26
"""Most bytes of a reused buffer; larger ones are allocated per call."""


class _ThreadBuffers(threading.local):
    def __init__(self) -> None:
        self.memory: dict[tuple[str, torch.dtype, torch.device], Tensor] = {}


_buffers = _ThreadBuffers()


def scratch_buffer(name: str, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """A contiguous tensor of arbitrary content, valid until this thread requests the same name again."""
    size, key = prod(shape), (name, like.dtype, like.device)
    if size * like.element_size() > LARGEST:
        return like.new_empty(shape)
    buffer = _buffers.memory.get(key)
    if buffer is None or buffer.numel() < size:
        buffer = _buffers.memory[key] = like.new_empty(size)
    return buffer[:size].view(shape)
