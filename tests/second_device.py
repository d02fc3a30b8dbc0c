"""A second device on a machine without one: tensors there say "meta", keep their values, and do not mix with the CPU's.

torch.meta is the one device besides the CPU whose autograd runs in every build. A tensor of it here holds a tensor of
the CPU, by which every operation is computed; so values are those of the CPU, and what is left on the wrong device
raises as on a GPU. Not rehearsed: kernels of a GPU, its random numbers, its memory.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves, tree_map

from landscape.model import copies
from landscape.sweep import vmap_points

DEVICE = torch.device("meta")
BETWEEN = {"aten::_to_copy", "aten::copy_", "aten::index", "aten::index_put_", "aten::_index_put_impl_"}
"""Operations that take tensors of two devices on a GPU too."""


class There(Tensor):
    """A tensor of the second device, by the values of one of the CPU."""

    __torch_function__ = torch._C._disabled_torch_function_impl
    value: Tensor

    @staticmethod
    def __new__(cls, value: Tensor) -> There:
        layout = {"strides": value.stride(), "storage_offset": value.storage_offset(), "dtype": value.dtype}
        tensor = Tensor._make_wrapper_subclass(cls, value.shape, **layout, device=DEVICE)
        tensor.value = value
        return tensor

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})

    def __getitem__(self, index: Any) -> Tensor:
        return super().__getitem__(torch.tensor(index) if isinstance(index, list) else index)  # made without the mode

    def __matmul__(self, other: Tensor) -> Tensor:
        return other.T.mv(self) if self.ndim == 1 < other.ndim else super().__matmul__(other)  # that squeezes in place

    @property
    def data(self) -> Tensor:
        return There(self.value)

    @data.setter
    def data(self, other: Tensor) -> None:
        self.value = _value(other)


class Both(TorchDispatchMode):
    """Lets tensors move to the second device and be made there."""

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        return _computed(func, args, kwargs or {})


def _value(entry: Any) -> Any:
    return entry.value if isinstance(entry, There) else entry


def _computed(func: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    tensors = [entry for entry in tree_leaves((args, kwargs)) if isinstance(entry, Tensor)]
    there = any(isinstance(tensor, There) for tensor in tensors)
    here = any(not isinstance(tensor, There) and tensor.ndim for tensor in tensors)
    if there and here and func._schema.name not in BETWEEN:
        raise RuntimeError(f"Expected all tensors to be on the same device: {func}")
    if kwargs.get("device") is not None:
        there, kwargs = torch.device(kwargs["device"]) == DEVICE, {**kwargs, "device": torch.device("cpu")}
    same = {id(_value(tensor)): tensor for tensor in tensors}
    result = func(*tree_map(_value, args), **tree_map(_value, kwargs))

    def placed(entry: Any) -> Any:
        if not isinstance(entry, Tensor) or id(entry) in same:
            before = same.get(id(entry), entry)
            if isinstance(before, There) and before.shape != entry.shape:
                raise NotImplementedError(f"{func} changes the shape of a tensor of the second device in place")
            return before
        return There(entry) if there else entry

    return tree_map(placed, result)


def _convert(module: nn.Module, dtype: torch.dtype, device: torch.device) -> nn.Module:
    """`copies.convert`; torch does not let `.data` of a parameter become a tensor of another class."""
    plain(module, dtype, torch.device("cpu"))
    moved: dict[int, tuple[Tensor, Tensor]] = {}
    for part in module.modules() if device == DEVICE else ():
        for tensors in (part._parameters, part._buffers):
            for name, tensor in tensors.items():
                if tensor is not None and id(tensor) not in moved:
                    copy = tensor.detach().to(device)
                    is_parameter = isinstance(tensor, nn.Parameter)
                    moved[id(tensor)] = (nn.Parameter(copy, tensor.requires_grad) if is_parameter else copy), tensor
                if tensor is not None:
                    tensors[name] = moved[id(tensor)][0]
    return module


def _tensor(data: Any, *, device: Any = None, **options: Any) -> Tensor:
    """`torch.tensor`, which does not ask the mode how to make a tensor of this device."""
    made = new_tensor(data, **options)
    return made if device is None else made.to(device)


plain, new_tensor = copies.convert, torch.tensor


@contextmanager
def second_device(monkeypatch: Any) -> Iterator[torch.device]:
    """A device that is a GPU to the library, while the context lasts."""
    with monkeypatch.context() as patched:
        for module in list(sys.modules.values()):
            if getattr(module, "convert", None) is plain:
                patched.setattr(module, "convert", _convert)
        patched.setattr(vmap_points, "DEVICES", (DEVICE.type,))
        patched.setattr(torch, "tensor", _tensor)
        with Both():
            yield DEVICE
