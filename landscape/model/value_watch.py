"""Whether the course of a forward pass may depend on values, and what in it follows from the inputs alone."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor
from torch.overrides import TorchFunctionMode

from landscape.model.samples import tensors_in

READS: tuple[str, ...] = ("__array__", "__bool__", "__contains__", "__float__", "__index__", "__int__")
READS += ("allclose", "equal", "is_nonzero", "item", "numpy", "tolist")
READS += ("argwhere", "bincount", "masked_select", "nonzero", "unique", "unique_consecutive")
"""Functions of torch that make Python values, or shapes, of values."""

WRITES = ("__set__", "__setitem__")
"""Functions of torch that change their first argument, beside those that end with one underscore."""


class ValueWatch(TorchFunctionMode):
    """Context of a forward pass that sees whether it reads a value into Python or writes to the memory of `theta`.

    Attributes:
        fixed: Neither happened, so that the pass calls the same functions on other samples and at other models.
        wrote: Addresses of the memory that was written to, by `.data` too.
        others: Tensors that it takes and that are neither inputs, nor in `theta`, nor made in the pass.
    """

    def __init__(self, theta: Tensor, inputs: Any = ()) -> None:
        super().__init__()
        self.fixed, self.wrote, self._memory = True, set[int](), address(theta)
        self._kept = tensors_in(inputs)  # so that no other tensor takes their memory
        self._free = {*map(address, self._kept)} - {0}
        self._made, self.others = {*self._free, self._memory}, list[Tensor]()

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """The function's result."""
        name, options = getattr(func, "__name__", ""), kwargs or {}
        written = name in WRITES or (name.endswith("_") and not name.endswith("__"))
        changed = tensors_in([*args[: int(written)], options.get("out")])
        self.wrote |= {*map(address, changed)}
        if name in READS or self._memory in self.wrote or _chooses(name, args):
            self.fixed = False
        result = func(*args, **options)
        taken, results = tensors_in([*args, *options.values()]), tensors_in([result])
        self.others += [tensor for tensor in taken if address(tensor) not in self._made]
        self._kept += results
        self._made |= {*map(address, results)}
        if self.follows(taken):
            self._free |= {*map(address, results)} - {0}
        else:
            self._free -= {*map(address, [*results, *changed])}
        return result

    def follows(self, values: Any) -> bool:
        """Whether tensors were made of the inputs by functions that took nothing else: no parameter and no buffer."""
        return all(address(tensor) in self._free for tensor in tensors_in(values))


def _chooses(name: str, args: tuple[Any, ...]) -> bool:
    """Whether the shape of a result follows from values: entries are chosen by a mask, or repeated."""
    if name == "repeat_interleave" or (name == "where" and len(args) == 1):
        return True
    return name == "__getitem__" and any(index.dtype in (torch.bool, torch.uint8) for index in tensors_in([*args[1:]]))


def address(tensor: Tensor) -> int:
    """Address of a tensor's memory; 0 where it has none of its own, as sparse ones and those in vmap."""
    try:
        return tensor.untyped_storage().data_ptr()
    except (RuntimeError, NotImplementedError):
        return 0
