"""Modes of torch that a caller may be inside of; whole float32 products on a GPU, where torch rounds some to TF32."""

import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
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
        stack.enter_context(_FULL())
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


class _Fixed:
    """Settings of the process, (owner, name, value), that are changed while at least one thread is inside."""

    def __init__(self, *settings: tuple[Any, str, Any]) -> None:
        self._settings, self._lock, self._inside, self._before = settings, threading.Lock(), 0, list[Any]()

    @contextmanager
    def __call__(self) -> Iterator[None]:
        with self._lock:
            if not self._inside:
                self._before = [getattr(owner, name) for owner, name, _ in self._settings]
                for owner, name, value in self._settings:
                    setattr(owner, name, value)
            self._inside += 1
        try:
            yield
        finally:
            with self._lock:
                self._inside -= 1
                if not self._inside:
                    for (owner, name, _), value in zip(self._settings, self._before, strict=True):
                        setattr(owner, name, value)


_CUDNN: Any = torch.backends.cudnn  # its stub does not know the kinds
_KINDS = (_CUDNN.conv, _CUDNN.rnn, torch.backends.cuda.matmul)
_FULL, _PLAIN = _Fixed(*((kind, "fp32_precision", "ieee") for kind in _KINDS)), _Fixed((_CUDNN, "enabled", False))
