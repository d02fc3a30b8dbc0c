"""Initial models from checkpoints, in place of random initialisation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from drift.store import chain, files
from landscape.model.checkpoint import read_tensors
from landscape.model.content_words import one_line
from landscape.model.fitted_names import Names
from landscape.model.layout import Entry, Layout
from landscape.results.parsed_text import json_table

if TYPE_CHECKING:
    from drift.config.experiment import Experiment, Init

COPY = "init.safetensors"
"""Name of the copy in a run's folder."""

ANEW = "Give a checkpoint or the folder of a run; `fedscape pretrain` makes one."
OTHER = "The checkpoint belongs to another architecture or input size."


@dataclass(frozen=True)
class InitialModel:
    """Content of a checkpoint.

    Args:
        path: Path of the checkpoint, for messages.
        values: Tensors by name, or theta (d,) and buffers (b,) of a run.
        classes: Names of the classes of its head; empty if unknown.
        layout: Names and shapes in theta; None for a state dict.
    """

    path: Path
    values: dict[str, Tensor]
    classes: tuple[str, ...] = ()
    layout: tuple[Entry, ...] | None = None

    @property
    def digest(self) -> str:
        """First 16 hexadecimal digits of the SHA-256 of its tensors."""
        return files.digest(self.values)[:16]

    def named(self, model: nn.Module) -> dict[str, Tensor]:
        """Tensors by their names in the model; buffers of a run are in the model's order.

        Raises:
            ValueError: If a run's model has another length.
        """
        if self.layout is None:
            fit = Names(model).fitted(self.values)
            return {fit.names.get(name, name): value for name, value in self.values.items()}
        layout = Layout(self.layout, Layout.of(model).buffers)
        try:
            return {**layout.named(self.values["theta"]), **layout.named_buffers(self.values["buffers"])}
        except ValueError as reason:
            raise ValueError(f"init: {self.path}: {reason}") from reason


def with_digest(experiment: Experiment) -> Experiment:
    """The experiment with the digest of its initial model, which is part of its identity, and the absolute path.

    An existing digest stays; it is compared when the checkpoint is read.

    Raises:
        LookupError: If there is no such checkpoint.
        ValueError: If it is neither a checkpoint nor a run, or is damaged.
    """
    init = experiment.init
    if init is None or init.digest is not None:
        return experiment
    path = Path(init.path).expanduser().absolute()
    return experiment.model_copy(
        update={"init": init.model_copy(update={"path": str(path), "digest": read_initial_model(path).digest})}
    )


def initialise(model: nn.Module, init: Init, classes: Sequence[str], folder: Path | None = None) -> nn.Module:
    """Copy the values of a checkpoint into a model, in place.

    All trainable parameters and floating buffers are required, with the same shapes; frozen parameters (as below
    adapters) are optional. With `head = "new"` the head keeps its values.

    Args:
        model: The model with its random initial values.
        init: The settings of the checkpoint.
        classes: Names of the classes of the task; a head for other classes is refused.
        folder: Folder of the run, which has a copy of the checkpoint.

    Raises:
        LookupError: If there is no such checkpoint.
        ValueError: If it was altered since the experiment was read, or does not fit the model.
    """
    start = _read_for(init, folder)
    tensors, head = start.named(model), set[str]()
    if init.head == "new":
        head = _head_names(model)
        tensors = {name: tensor for name, tensor in tensors.items() if name not in head}
    elif start.classes and start.classes != tuple(classes):
        raise ValueError(
            f"init: the head of {start.path} is for classes {_list_names(start.classes)}, the task has "
            f"{_list_names(classes)}; set init.head=new to start with a new one."
        )
    _check(model, tensors, head, start.path)
    targets = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    with torch.no_grad():
        for name, tensor in tensors.items():
            targets[name].copy_(tensor)
    return model


def store_initial_model(folder: Path, init: Init | None) -> None:
    """Copy the initial model of a run into its folder, so that the run does not depend on the checkpoint."""
    if init is None or (folder / COPY).exists():
        return
    start = _read_for(init, folder)
    layout = None if start.layout is None else [[name, list(shape)] for name, shape in start.layout]
    files.write_tensors(folder / COPY, start.values, {"classes": list(start.classes), "layout": layout})


def read_initial_model(path: Path) -> InitialModel:
    """A state dict, or the last global model of a run's folder.

    Raises:
        LookupError: If there is neither.
        ValueError: If the file is no state dict, or damaged.
    """
    if (path / "run.json").is_file() and (path / "state.safetensors").is_file():
        chain.remembered(path).require(files.STATE)
        about, (state, _) = files.read_json(path / "run.json"), files.read_state(path)
        values = {name: state[name] for name in ("theta", "buffers")}
        return InitialModel(path, values, *_read_description(path, about))
    try:
        values = read_tensors(path)
    except LookupError as reason:
        raise LookupError(f"init: {reason} {ANEW}") from reason
    return InitialModel(path, values, *_read_description(path, _about(path)))


def _read_for(init: Init, folder: Path | None) -> InitialModel:
    """The copy in the run's folder where there is one, else the checkpoint itself."""
    copied = folder is not None and (folder / COPY).is_file()
    start = read_initial_model(folder / COPY if folder is not None and copied else Path(init.path).expanduser())
    if init.digest not in (None, start.digest):
        raise ValueError(
            f"init: {start.path} has digest {start.digest}, the experiment starts from {init.digest}; restore the "
            "file, or set init = PATH again to start from this one."
        )
    return start


def _read_description(path: Path, about: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[Entry, ...] | None]:
    """Classes and layout in a description; the layout is None for a state dict."""
    try:
        layout = about.get("layout")
        entries = None if layout is None else tuple((str(name), tuple(map(int, shape))) for name, shape in layout)
        return tuple(map(str, about.get("classes", ()))), entries
    except (TypeError, ValueError, OverflowError) as reason:
        raise ValueError(f"init: {path} does not describe classes and layout ({one_line(reason)}). {ANEW}") from reason


def _about(path: Path) -> dict[str, Any]:
    """Description of a checkpoint by `fedscape pretrain`; empty for other programs."""
    if path.suffix != ".safetensors":
        return {}
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
        return json_table(header.get("about", "{}")) if header.get("format") == files.FORMAT else {}
    except (SafetensorError, OSError, ValueError) as reason:
        raise ValueError(f"{path} cannot be read ({one_line(reason)}); it is damaged or not a checkpoint.") from reason


def _head_names(model: nn.Module) -> set[str]:
    head = getattr(model, "head", None)
    if not isinstance(head, nn.Module):
        raise ValueError("init.head is 'new' and the model has no part called `head`; leave init.head out.")
    return {f"head.{name}" for name in head.state_dict()}


def _check(model: nn.Module, tensors: Mapping[str, Tensor], head: set[str], path: Path) -> None:
    """Refuse a checkpoint with a tensor that is missing, unknown, of another shape or not finite."""
    layout = Layout.of(model)
    required = {name: shape for name, shape in (*layout.parameters, *layout.buffers) if name not in head}
    if absent := [name for name in required if name not in tensors]:
        raise ValueError(f"init: {path} has no tensor {absent[0]!r}; it has {_list_names(list(tensors))}. {OTHER}")
    expected = model.state_dict()
    for name, tensor in tensors.items():
        if name not in expected:
            raise ValueError(
                f"init: the model has no tensor {name!r} of {path}; it has {_list_names(list(expected))}. {OTHER}"
            )
        if tensor.shape != expected[name].shape:
            advice = "Set init.head=new to start with a new one." if name.startswith("head.") else OTHER
            raise ValueError(
                f"init: tensor {name!r} of {path} has shape {tuple(tensor.shape)}, the model has "
                f"{tuple(expected[name].shape)}. {advice}"
            )
        if not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"init: tensor {name!r} of {path} holds values that are not finite; give another one.")


def _list_names(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
