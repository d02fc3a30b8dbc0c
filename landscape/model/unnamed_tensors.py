"""Models saved without names of tensors: one vector, or arrays in the order of the model's state dict."""

from __future__ import annotations

import re
from collections.abc import Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from torch import Tensor

from landscape.model.state_dict_search import FLAT

if TYPE_CHECKING:
    from landscape.model.task import Task

_NUMBERED = re.compile(r"arr_(\d+)")


def are_unnamed(tensors: Mapping[str, Any]) -> bool:
    """Whether tensors are one vector, or called `arr_0`, `arr_1`, ... by numpy.savez, as in Flower's guide."""
    matches = [_NUMBERED.fullmatch(name) for name in tensors]
    return set(tensors) == {FLAT} or (bool(matches) and all(matches))


def name_tensors(path: Path, tensors: Mapping[str, Tensor], task: Task) -> dict[str, Tensor]:
    """Tensors by the names of the model's state dict, in its order.

    One vector is all of the state dict (FedLab's SerializationTool.serialize_model), or the parameters alone
    (serialize_trainable_model) of a model without buffers.

    Raises:
        ValueError: If number or shapes are not those of the model; the message names the file.
    """
    shapes = {name: tuple(value.shape) for name, value in task.model.state_dict().items()}
    if set(tensors) == {FLAT}:
        return _cut(path, tensors[FLAT], shapes, task)
    arrays = [tensors[name] for name in sorted(tensors, key=lambda name: int(name.removeprefix("arr_")))]
    if len(arrays) != len(shapes):
        raise ValueError(
            f"{path} has {len(arrays)} arrays without names, the model's state dict has {len(shapes)}; was it trained "
            "with another model?"
        )
    for index, (value, (name, shape)) in enumerate(zip(arrays, shapes.items(), strict=True)):
        if tuple(value.shape) != shape:
            raise ValueError(
                f"{path}: array {index} has shape {tuple(value.shape)}, {name!r} of the model's state dict has "
                f"{shape}; was it trained with another model?"
            )
    return dict(zip(shapes, arrays, strict=True))


def _cut(path: Path, vector: Tensor, shapes: Mapping[str, tuple[int, ...]], task: Task) -> dict[str, Tensor]:
    layout, sizes = task.layout, [prod(shape) for shape in shapes.values()]
    if vector.numel() == sum(sizes):
        pieces = zip(shapes.items(), vector.split(sizes), strict=True)
        return {name: piece.reshape(shape) for (name, shape), piece in pieces}
    if vector.numel() == layout.size and not layout.buffer_size:
        return layout.named(vector)
    raise ValueError(
        f"{path} holds one vector of {vector.numel()} numbers; the model's state dict has {sum(sizes)}, of which "
        f"{layout.size} are parameters and {layout.buffer_size} in buffers. Save state dicts."
    )
