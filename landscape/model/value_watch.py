"""Whether the course of a forward pass may depend on values: on its samples, or on the parameters."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor
from torch.overrides import TorchFunctionMode

READS: tuple[str, ...] = ("__array__", "__bool__", "__contains__", "__float__", "__index__", "__int__")
READS += ("allclose", "equal", "is_nonzero", "item", "numpy", "tolist")
"""Functions of torch that make Python values of tensors."""

WRITES = ("__set__", "__setitem__")
"""Functions of torch that change their first argument, beside those that end with one underscore."""


class ValueWatch(TorchFunctionMode):
    """Context of a forward pass that sees whether it reads a value into Python or writes to the memory of `theta`.

    Attributes:
        fixed: Neither happened, so that the pass calls the same functions on other samples and at other models.
    """

    def __init__(self, theta: Tensor) -> None:
        super().__init__()
        self.fixed, self._memory = True, theta.untyped_storage().data_ptr()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """The function's result."""
        name = getattr(func, "__name__", "")
        written = name in WRITES or (name.endswith("_") and not name.endswith("__"))
        changed = [*args[: int(written)], (kwargs or {}).get("out")]
        if name in READS or any(isinstance(at, Tensor) and self._holds(at) for at in changed):
            self.fixed = False
        return func(*args, **(kwargs or {}))

    def _holds(self, tensor: Tensor) -> bool:
        return tensor.untyped_storage().data_ptr() == self._memory
