"""`Samples` in memory: inputs (a tensor, tuple or dict of tensors) and targets."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, is_dataclass
from typing import Any

import torch
from torch import Tensor

from landscape.results.notebook_table import notebook_table

Inputs = Tensor | tuple[Tensor, ...] | dict[str, Tensor]


@dataclass(frozen=True, repr=False)
class Samples:
    """Inputs and targets with a common first dimension.

    Args:
        inputs: A tensor, or a tuple or dict of tensors as the model's `forward` takes them.
        targets: Shape (n,) class indices, or whatever the loss compares outputs with.

    Raises:
        ValueError: If the first dimensions differ.
    """

    inputs: Inputs
    targets: Tensor

    def __post_init__(self) -> None:
        with torch.inference_mode(False):  # tensors made in inference mode have no derivatives
            object.__setattr__(self, "inputs", map_leaves(_with_derivatives, self.inputs))
            object.__setattr__(self, "targets", _with_derivatives(self.targets))
        lengths = {leaf.shape[0] for leaf in (*leaves(self.inputs), self.targets)}
        if len(lengths) != 1:
            raise ValueError(f"inputs and targets have {sorted(lengths)} samples; they must have equally many.")

    def __repr__(self) -> str:
        """One line: number of samples, and the shapes of one."""
        inner = ", ".join(str(tuple(leaf.shape[1:])) for leaf in leaves(self.inputs))
        return f"Samples({len(self)} of shape {inner}, targets {tuple(self.targets.shape[1:])} {self.targets.dtype})"

    def _repr_html_(self) -> str:
        """A small table for notebooks: number of samples, shape and type of each input, and of the targets."""
        named = self.inputs if isinstance(self.inputs, dict) else dict(enumerate(leaves(self.inputs), 1))
        rows = {"samples": str(len(self))}
        rows |= {f"input {name}": f"{tuple(leaf.shape[1:])} {leaf.dtype}" for name, leaf in named.items()}
        rows["targets"] = f"{tuple(self.targets.shape[1:])} {self.targets.dtype}"
        return notebook_table(repr(self), rows)

    @property
    def kind(self) -> Hashable:
        """Shapes and types of one sample."""
        return tuple((leaf.shape[1:], leaf.dtype) for leaf in (*leaves(self.inputs), self.targets))

    def __len__(self) -> int:
        return self.targets.shape[0]  # len of a tensor is slow

    def __getitem__(self, index: slice | Tensor) -> Samples:
        def select(leaf: Tensor) -> Tensor:
            if isinstance(index, Tensor) and index.dtype == torch.int64 and index.ndim == 1:
                return leaf.index_select(0, index.to(leaf.device))  # leaf[index], in whole rows
            return leaf[index]

        return Samples(map_leaves(select, self.inputs), select(self.targets))

    def to(self, *, dtype: torch.dtype | None = None, device: torch.device | None = None) -> Samples:
        """Same samples with floating inputs in `dtype`, everything on `device`."""

        def move(leaf: Tensor) -> Tensor:
            return leaf.to(device=device, dtype=dtype if leaf.is_floating_point() else None)

        return Samples(map_leaves(move, self.inputs), move(self.targets))

    def blocks(self, size: int) -> Iterator[Samples]:
        """Consecutive pieces of at most `size` samples."""
        return (self[start : start + size] for start in range(0, len(self), size))


def _with_derivatives(leaf: Tensor) -> Tensor:
    return leaf.clone() if leaf.is_inference() else leaf


def leaves(inputs: Inputs) -> list[Tensor]:
    """The tensors of `inputs`, in order."""
    if isinstance(inputs, Tensor):
        return [inputs]
    return list(inputs.values()) if isinstance(inputs, dict) else list(inputs)


def tensors_in(values: Any) -> list[Tensor]:
    """The tensors in nested tuples, lists, mappings and dataclasses, in order."""
    if isinstance(values, Tensor):
        return [values]
    if isinstance(values, Mapping):
        values = list(values.values())
    elif is_dataclass(values):
        values = list(vars(values).values())
    return [tensor for entry in values for tensor in tensors_in(entry)] if isinstance(values, list | tuple) else []


def map_leaves(function: Callable[[Tensor], Tensor], inputs: Inputs) -> Inputs:
    """`function` applied to every tensor of `inputs`, in the same structure."""
    if isinstance(inputs, Tensor):
        return function(inputs)
    if isinstance(inputs, dict):
        return {name: function(leaf) for name, leaf in inputs.items()}
    return tuple(function(leaf) for leaf in inputs)


def with_leaves(inputs: Inputs, tensors: Iterable[Tensor]) -> Inputs:
    """Other tensors, in order, in the same structure as `inputs`."""
    others = iter(tensors)
    return map_leaves(lambda _: next(others), inputs)


def joined(blocks: Sequence[Samples]) -> Samples:
    """All samples, one block after the other."""
    columns = zip(*(leaves(block.inputs) for block in blocks), strict=True)
    inputs = with_leaves(blocks[0].inputs, map(torch.cat, columns))
    return Samples(inputs, torch.cat([block.targets for block in blocks]))


def call_module(module: Callable[..., Any], inputs: Inputs) -> Tensor:
    """Output of `module` on `inputs`: a tuple is passed as positional, a dict as keyword arguments."""
    if isinstance(inputs, Tensor):
        return module(inputs)
    return module(**inputs) if isinstance(inputs, dict) else module(*inputs)
