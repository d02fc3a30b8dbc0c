"""Export of stored models as state dicts and as folders of transformers."""

from copy import deepcopy
from io import BytesIO
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import save
from torch import Tensor

from drift.runs.run import Run
from landscape.model.fitted_names import Names
from landscape.model.products import adapted_layers, residual_name, settle_residual

SUFFIXES = (".pt", ".pth", ".safetensors", ".npz")
"""Suffixes of files of state dicts."""

State = dict[str, Tensor]


def state_dict(run: Run, round: int = -1, client: int | str | None = None) -> State:
    """The global model after a round, or a client model after local training, as tensors by name.

    It has all tensors of the module's state dict; frozen parameters and counters have their initial values. Of a run
    that was recorded without its task it has parameters and floating buffers only.

    Args:
        run: The run.
        round: Number of the round; negative ones count from the last.
        client: Number of a client of that round, or its name where the run has names; None: the global model.

    Raises:
        LookupError: If the model is not stored.
    """
    record = run.round(round)
    if client is None:
        theta, buffers = record.kept("end"), record.end_buffers
    else:
        row = _row(run, record.ids.tolist(), client, record.index)
        theta = record.kept("clients")[row]
        buffers = record.client_buffers[row]
    layout = run.layout if run.without_data else run.task.layout
    present = None if run.without_data else run.task.model.state_dict()
    named = layout.named(theta) | (layout.named_buffers(buffers) if layout.buffer_size else {})
    if present is not None:  # all of the module's state, and nothing else
        first = Names(run.task.model).first  # tied tensors have several names, of which the layout has the first
        named = present | {name: named[first[name]] for name in present if first.get(name) in named}
    return {name: value.detach().cpu().clone() for name, value in named.items()}


def state_file(state: State, suffix: str) -> bytes:
    """A state dict as the content of a file: by torch.save, safetensors or numpy.

    Raises:
        ValueError: If the suffix is none of `SUFFIXES`.
    """
    buffer = BytesIO()
    if suffix == ".safetensors":
        return save({name: value.contiguous() for name, value in state.items()})
    if suffix == ".npz":
        arrays: dict[str, Any] = {name: value.numpy() for name, value in state.items()}
        np.savez(buffer, **arrays)
    elif suffix in (".pt", ".pth"):
        torch.save(state, buffer)
    else:
        raise ValueError(f"cannot write a model as {suffix!r}; the suffixes are {', '.join(SUFFIXES)}.")
    return buffer.getvalue()


def save_transformers(run: Run, state: State, folder: Path) -> list[str]:
    """Write the part of a model that is a `transformers` model as a folder; return the names of all other tensors.

    `transformers.AutoModel.from_pretrained(folder)` reads it, and so does the model plug-in `hf` by `source`. The
    adapter of a `PeftModel` is written alone, as `peft.PeftModel.from_pretrained(base, folder)` reads it; adapters of
    any other model, and those beside changed frozen weights, are merged into their layers.

    Raises:
        ValueError: If the run's model has no such part.
    """
    model = deepcopy(run.task.model)
    model.load_state_dict(state)
    models: list[Any] = [pair for pair in model.named_modules() if hasattr(pair[1], "save_pretrained")]
    if not models:
        raise ValueError(
            f"model {run.experiment.task.model} is not a model of transformers; write a state dict: -o FILE"
            f"{' or -o FILE'.join(SUFFIXES)}."
        )
    name, saver = models[0]
    shifted = [layer for path, layer in adapted_layers(saver) if residual_name(path, layer) is not None]
    if shifted or not hasattr(saver, "get_base_model"):
        for layer in shifted:
            settle_residual(layer.get_base_layer())
        saver = saver.merge_and_unload() if hasattr(saver, "merge_and_unload") else _merged(saver)
    saver.save_pretrained(folder)
    return [key for key in state if not key.startswith(f"{name}.")] if name else []


def _merged(model: Any) -> Any:
    """The model, with peft's adapters merged into the layers that they wrap."""
    for name, layer in list(model.named_modules()):
        if hasattr(layer, "base_layer") and hasattr(layer, "merge"):
            layer.merge()
            model.set_submodule(name, layer.base_layer)
    return model


def _row(run: Run, ids: list[int], client: int | str, index: int) -> int:
    names = run.about.get("names")
    number = names.index(str(client)) if names and str(client) in names else client
    if number not in ids:
        present = [names[client_id] for client_id in ids] if names else ids
        raise LookupError(f"client {client} was not in round {index} of run {run.name}; its clients are {present}.")
    return ids.index(int(number))
