"""Modes of torch that a caller may be inside of; whole float32 products on a GPU, where torch rounds some to TF32."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import torch
from torch import nn


@contextmanager
def whole_products(module: nn.Module | None = None) -> Iterator[None]:
    """Context in which float32 products on a GPU keep all their digits; the caller's settings return at its end.

    TF32 moves losses by 1e-6 of their size, eigenvalues by 5e-4 and traces by 2e-3 (`benchmarks.gpu` on an H100).

    Args:
        module: If it has recurrent layers, they run without cuDNN, which has their gradients in training mode only and
            no second derivative.
    """
    with ExitStack() as stack:
        stack.enter_context(plain_modes())
        stack.enter_context(_WHOLE())
        if module is not None and any(isinstance(layer, nn.RNNBase) for layer in module.modules()):
            stack.enter_context(_PLAIN())
        yield


@contextmanager
def plain_modes() -> Iterator[None]:
    """Context with gradients and without autocast, whatever the caller is inside of (no_grad, inference_mode)."""
    with torch.inference_mode(False), torch.enable_grad(), ExitStack() as stack:
        for device in ("cpu", "cuda"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


class _Held:
    """A setting of the process that is changed while at least one thread is inside."""

    def __init__(self, change: Callable[[], Callable[[], None]]) -> None:
        self._change, self._lock, self._inside = change, threading.Lock(), 0
        self._undo: Callable[[], None] = lambda: None

    def __call__(self) -> AbstractContextManager[None]:
        return self._context()

    @contextmanager
    def _context(self) -> Iterator[None]:
        with self._lock:
            if not self._inside:
                self._undo = self._change()
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    self._undo()


def _no_tf32() -> Callable[[], None]:
    cudnn: Any = torch.backends.cudnn  # its stub does not know the kinds
    kinds = (cudnn.conv, cudnn.rnn, torch.backends.cuda.matmul)
    before = [kind.fp32_precision for kind in kinds]
    for kind in kinds:
        kind.fp32_precision = "ieee"

    def undo() -> None:
        for kind, precision in zip(kinds, before, strict=True):
            kind.fp32_precision = precision

    return undo


def _no_cudnn() -> Callable[[], None]:
    before = torch.backends.cudnn.enabled
    torch.backends.cudnn.enabled = False

    def undo() -> None:
        torch.backends.cudnn.enabled = before

    return undo


_WHOLE, _PLAIN = _Held(_no_tf32), _Held(_no_cudnn)
