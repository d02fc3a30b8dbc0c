"""A stored model as the state dict that its own program reads."""

from __future__ import annotations

from copy import deepcopy
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor, nn

from drift.plugins.reserved_names import USER_TASK
from drift.runs.run import Run
from landscape.model.layout import Layout

SUFFIXES = (".pt", ".pth", ".safetensors", ".npz")
"""Of files that a state dict is written to."""

State = dict[str, Tensor]


def state_dict(run: Run, round: int = -1, client: int | str | None = None) -> State:
    """The global model after a round, or a client's after its local training, by the names of its tensors.

    It holds everything that the module's own state dict does, frozen parameters and counters as the module came with.
    A run that was recorded without its task gives parameters and floating buffers alone.

    Args:
        run: Any run.
        round: Number of the round; negative ones count from the last.
        client: Number of a client of that round, or its name where the run has names; None: the global model.

    Raises:
        LookupError: If the round kept no such model.
    """
    record = run.round(round)
    if client is None:
        theta, buffers = record.kept("end"), record.end_buffers
    else:
        row = _row(run, record.ids.tolist(), client, record.index)
        theta = record.kept("clients")[row]
        buffers = record.client_buffers[row]
    if run.context.user_task is None and run.experiment.task.dataset == USER_TASK:
        layout = Layout(_entries(run.about["layout"]), _entries(run.about["buffers"]))
        return _copies({**layout.named(theta), **_buffers(layout, buffers)})
    layout, model = run.task.layout, run.task.model
    return _copies({**model.state_dict(), **_within(model, layout.named(theta)), **_buffers(layout, buffers, model)})


def state_file(state: State, suffix: str) -> bytes:
    """A state dict as the content of a file: by torch.save, safetensors or numpy.

    Raises:
        ValueError: If the suffix is none of `SUFFIXES`.
    """
    held = BytesIO()
    if suffix == ".safetensors":
        return save({name: value.contiguous() for name, value in state.items()})
    if suffix == ".npz":
        arrays: dict[str, Any] = {name: value.numpy() for name, value in state.items()}
        np.savez(held, **arrays)
    elif suffix in (".pt", ".pth"):
        torch.save(state, held)
    else:
        raise ValueError(f"cannot write a model as {suffix!r}; the suffixes are {', '.join(SUFFIXES)}.")
    return held.getvalue()


def save_transformers(run: Run, state: State, folder: Path) -> list[str]:
    """Write the part of a model that is one of `transformers` as its folder; names of tensors that are outside it.

    `transformers.AutoModel.from_pretrained(folder)` reads it, and so does the model plug-in `hf` by `source`. Low-rank
    adapters are added into the layers that they adapt.

    Raises:
        ValueError: If the run's model holds none.
    """
    model = deepcopy(run.task.model)
    model.load_state_dict(state)
    parts = [(name, part) for name, part in model.named_modules() if hasattr(part, "save_pretrained")]
    if not parts:
        raise ValueError(
            f"model {run.experiment.task.model} is none of transformers; write a state dict: -o FILE"
            f"{' or -o FILE'.join(SUFFIXES)}."
        )
    name, part = parts[0]
    saver: Any = part
    _merge(saver)
    saver.save_pretrained(folder)
    return [key for key in state if not key.startswith(f"{name}.")] if name else []


def _merge(model: nn.Module) -> None:
    """Put the layers that peft's adapters stand around in their place, with what the adapters add."""
    for name, layer in list(model.named_modules()):
        if hasattr(layer, "base_layer") and hasattr(layer, "merge"):
            adapted: Any = layer
            adapted.merge()
            model.set_submodule(name, adapted.base_layer)


def _row(run: Run, ids: list[int], client: int | str, index: int) -> int:
    names = run.about.get("names")
    number = names.index(str(client)) if names and str(client) in names else client
    if number not in ids:
        known = [names[one] for one in ids] if names else ids
        raise LookupError(f"client {client} was not in round {index} of run {run.name}; its clients are {known}.")
    return ids.index(int(number))


def _entries(listed: list[list[Any]]) -> tuple[tuple[str, tuple[int, ...]], ...]:
    return tuple((name, tuple(shape)) for name, shape in listed)


def _buffers(layout: Layout, buffers: Tensor, model: nn.Module | None = None) -> State:
    """Floating buffers by name, those alone that the module's state dict holds."""
    named = layout.named_buffers(buffers) if layout.buffer_size else {}
    return named if model is None else _within(model, named)


def _within(model: nn.Module, named: State) -> State:
    held = model.state_dict().keys()
    return {name: value for name, value in named.items() if name in held}


def _copies(state: State) -> State:
    return {name: value.detach().cpu().clone() for name, value in state.items()}
