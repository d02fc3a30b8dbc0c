"""`read_state`: the state dict of a task's model from a checkpoint: a file, or a folder as transformers writes it."""

from __future__ import annotations

import json
from pathlib import Path

from torch import Tensor

from landscape.model.foreign_tensors import SUFFIXES, read_tensors
from landscape.model.task import Task
from landscape.model.unnamed_tensors import are_unnamed, name_tensors

IN_FOLDER = ("model.safetensors", "pytorch_model.bin")
"""Files with the weights in a folder that `save_pretrained` of transformers writes."""

INDEX = "model.safetensors.index.json"
"""Table of the files over which `save_pretrained` distributes large models."""


def read_state(path: str | Path, task: Task) -> dict[str, Tensor]:
    """Tensors of a checkpoint by the names of the task's model; nothing but tensors is unpickled.

    A checkpoint of a module that has the task's model as a part (a LightningModule that saved `net.0.weight`) is read
    as that part, if it has nothing else.

    Args:
        path: A file (.pt, .pth, .safetensors, .npz), or a folder with `model.safetensors` or `pytorch_model.bin`.
        task: Its model has the names and shapes.

    Raises:
        LookupError: If there is no such file.
        ValueError: If the file cannot be read, or has floating tensors that the model has not; the message names it.
    """
    path = Path(path)
    tensors: dict[str, Tensor] = {}
    for file in _files(path):
        tensors |= read_tensors(file)
    if are_unnamed(tensors):
        return name_tensors(path, tensors, task)
    parameters = {name for name, _ in task.layout.parameters}
    known = parameters | {name for name, _ in task.layout.buffers} | set(task.model.state_dict())
    tensors = _as_part(tensors, parameters, known)
    if extra := sorted(name for name in set(tensors) - known if tensors[name].is_floating_point()):
        raise ValueError(
            f"{path}: the model has no tensor {extra[0]!r}; was it trained with another model? "
            f"Its tensors are {', '.join(sorted(known)[:8])}."
        )
    return tensors


def _as_part(tensors: dict[str, Tensor], parameters: set[str], known: set[str]) -> dict[str, Tensor]:
    """Tensors without the name of the module around the model, if that is all that tells them from the model's."""
    around = {name.removesuffix(first) for first in sorted(parameters)[:1] for name in tensors if name.endswith(first)}
    for prefix in sorted(around - {""}):
        inner = {name.removeprefix(prefix) for name in tensors if name.startswith(prefix)}
        if prefix.endswith(".") and len(inner) == len(tensors) and parameters <= inner <= known:
            return {name.removeprefix(prefix): value for name, value in tensors.items()}
    return tensors


def _files(path: Path) -> list[Path]:
    """The file itself, or the files with the weights in a folder."""
    if path.is_file():
        return [path]
    if not path.is_dir():
        raise LookupError(f"no checkpoint {path}; give a file ({', '.join(SUFFIXES)}) or a folder of transformers.")
    names: list[str] = [name for name in IN_FOLDER if (path / name).is_file()][:1]
    if (path / INDEX).is_file():
        try:
            names = sorted(set(json.loads((path / INDEX).read_text(encoding="utf-8"))["weight_map"].values()))
            if any(Path(name).name != name for name in names):
                raise ValueError("it names files outside its folder")
        except (ValueError, LookupError, AttributeError, TypeError) as reason:
            raise ValueError(f"{path / INDEX} cannot be read ({reason}); save the model anew.") from reason
    if absent := [name for name in names if not (path / name).is_file()]:
        raise LookupError(f"{path} has no {absent[0]}, which its {INDEX} names; copy the whole folder.")
    if not names:
        raise LookupError(f"{path} has no {' or '.join(IN_FOLDER)}; give the checkpoint file itself.")
    return [path / name for name in names]
