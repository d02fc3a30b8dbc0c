"""`Layout`: order and shapes of the parameters in the vector theta, and of the floating buffers in a second one."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from math import prod

import torch
from torch import Tensor, nn

from landscape.results.notebook_table import notebook_table

Entry = tuple[str, tuple[int, ...]]


@dataclass(frozen=True)
class Layout:
    """Names and shapes of trainable parameters (theta) and of floating buffers, in order.

    Frozen parameters (`requires_grad` is False) and integer buffers are in neither vector.
    """

    parameters: tuple[Entry, ...]
    buffers: tuple[Entry, ...] = ()

    @classmethod
    def of(cls, module: nn.Module) -> Layout:
        """Layout of a module's trainable parameters and floating buffers.

        Raises:
            ValueError: If a trainable parameter is complex.
        """
        for name, parameter in module.named_parameters():
            if parameter.requires_grad and parameter.is_complex():
                raise ValueError(
                    f"the parameter {name!r} is complex, theta is real; make its real and imaginary part two "
                    "parameters (`torch.view_as_complex` joins them)."
                )
        return cls(
            tuple((name, tuple(p.shape)) for name, p in module.named_parameters() if p.requires_grad),
            tuple((name, tuple(b.shape)) for name, b in module.named_buffers() if b.is_floating_point()),
        )

    def __repr__(self) -> str:
        """One line: numbers of parameters and of buffer entries."""
        buffers = f", {self.buffer_size} buffer entries in {len(self.buffers)}" if self.buffers else ""
        return f"Layout({self.size} parameters in {len(self.parameters)} tensors{buffers})"

    def _repr_html_(self) -> str:
        """A table for notebooks: the shape of each tensor."""
        return notebook_table(repr(self), dict(self.parameters + self.buffers))

    @property
    def size(self) -> int:
        """Length d of theta."""
        return sum(prod(shape) for _, shape in self.parameters)

    @property
    def buffer_size(self) -> int:
        """Length b of the buffer vector."""
        return sum(prod(shape) for _, shape in self.buffers)

    def named(self, theta: Tensor) -> dict[str, Tensor]:
        """Views of theta (d,) by parameter name.

        Raises:
            ValueError: If theta has another length.
        """
        return _views("theta", theta, self.parameters)

    def named_buffers(self, buffers: Tensor) -> dict[str, Tensor]:
        """Views of a buffer vector (b,) by buffer name.

        Raises:
            ValueError: If the vector has another length.
        """
        return _views("the buffer vector", buffers, self.buffers)

    def theta(self, source: nn.Module | Mapping[str, Tensor]) -> Tensor:
        """theta (d,) of a module or state dict, copied.

        Raises:
            ValueError: If a parameter is absent or has another shape; the first one is named.
        """
        return self._concatenated(source, self.parameters)

    def buffer_vector(self, source: nn.Module | Mapping[str, Tensor]) -> Tensor:
        """Floating buffers (b,) of a module or state dict, copied."""
        return self._concatenated(source, self.buffers)

    def slices(self) -> dict[str, slice]:
        """Slice of theta per parameter name."""
        return _slices(self.parameters)

    def _concatenated(self, source: nn.Module | Mapping[str, Tensor], entries: Iterable[Entry]) -> Tensor:
        tensors = source
        if isinstance(source, nn.Module):
            tensors = dict(source.named_parameters()) | dict(source.named_buffers())
        if not isinstance(tensors, Mapping):
            raise ValueError(f"a model of type {type(source).__name__} was given; give a module or its state dict.")
        flat_tensors = []
        for name, shape in entries:
            if name not in tensors:
                raise ValueError(
                    f"no tensor named {name!r} in the model given; it has {', '.join(list(tensors)[:8])}; "
                    "was it trained with another model?"
                )
            if not isinstance(tensors[name], Tensor):
                raise ValueError(f"{name!r} is of type {type(tensors[name]).__name__} in the model given, no tensor.")
            if tuple(tensors[name].shape) != shape:
                raise ValueError(
                    f"tensor {name!r} has shape {tuple(tensors[name].shape)}, the task has {shape}; "
                    "was it trained with another model?"
                )
            flat_tensors.append(tensors[name].detach().reshape(-1))
        return torch.cat(flat_tensors).clone() if flat_tensors else torch.zeros(0)


def _slices(entries: Iterable[Entry]) -> dict[str, slice]:
    spans, start = {}, 0
    for name, shape in entries:
        spans[name] = slice(start, start + prod(shape))
        start += prod(shape)
    return spans


def _views(what: str, vector: Tensor, entries: Sequence[Entry]) -> dict[str, Tensor]:
    size = sum(prod(shape) for _, shape in entries)
    if vector.numel() != size:
        raise ValueError(
            f"{what} has {vector.numel()} entries, the task has {size}; was it trained with another model?"
        )
    spans = _slices(entries)
    return {name: vector[spans[name]].view(shape) for name, shape in entries}
