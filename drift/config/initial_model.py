"""What training starts from: a checkpoint's values in place of random ones."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch
from safetensors import SafetensorError, safe_open
from torch import Tensor, nn

from drift.store import files
from drift.store.foreign_tensors import SUFFIXES, one_line, read_tensors
from landscape.model.layout import Entry, Layout
from landscape.results.parsed_text import json_table

if TYPE_CHECKING:
    from drift.config.experiment import Experiment, Init

COPY = "init.safetensors"
"""Name of the copy in a run's folder."""

ANEW = "Give a state dict (.pt, .pth, .safetensors) or the folder of a run; `fedscape pretrain` makes one."
OTHER = "Was it another model's, or made for images of another size?"


@dataclass(frozen=True)
class Start:
    """What a checkpoint holds.

    Args:
        path: Where it was read, for messages.
        values: Tensors by name, or theta (d,) and buffers (b,) of a run.
        classes: What its head tells apart; nothing where unknown.
        layout: Names and shapes in theta, of a run only.
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
        """Tensors by their names in the model; buffers of a run are taken to be in the model's order.

        Raises:
            ValueError: If a run's model has another length.
        """
        if self.layout is None:
            return self.values
        layout = Layout(self.layout, Layout.of(model).buffers)
        try:
            return {**layout.named(self.values["theta"]), **layout.named_buffers(self.values["buffers"])}
        except ValueError as reason:
            raise ValueError(f"init: {self.path}: {reason}") from reason


def pinned(experiment: Experiment) -> Experiment:
    """The experiment with the digest of its start, which is part of its identity, and the absolute path.

    A digest that is there already stays; it is compared when the start is read.

    Raises:
        LookupError: If there is no such checkpoint.
        ValueError: If it is neither a checkpoint nor a run, or is damaged.
    """
    init = experiment.init
    if init is None or init.digest is not None:
        return experiment
    path = Path(init.path).expanduser().absolute()
    return experiment.model_copy(
        update={"init": init.model_copy(update={"path": str(path), "digest": read_start(path).digest})}
    )


def started(model: nn.Module, init: Init, classes: Sequence[str], folder: Path | None = None) -> nn.Module:
    """The model with the values of a checkpoint, in place.

    Trainable parameters and floating buffers must be there, each of the same shape; those that are not trained (as
    below adapters) may be. With `head = "new"` the head keeps the values that it has.

    Args:
        model: As it would start without the checkpoint.
        init: Where the checkpoint lies.
        classes: Names of what the model tells apart; a head made for others is refused.
        folder: Of the run, which keeps a copy of its start.

    Raises:
        LookupError: If there is no such checkpoint.
        ValueError: If it was altered since the experiment was read, or does not fit the model.
    """
    start = _found(init, folder)
    tensors, head = start.named(model), set[str]()
    if init.head == "new":
        head = _head_names(model)
        tensors = {name: tensor for name, tensor in tensors.items() if name not in head}
    elif start.classes and start.classes != tuple(classes):
        raise ValueError(
            f"init: the head of {start.path} tells {_listed(start.classes)} apart, the task has {_listed(classes)}; "
            "set init.head=new to start with a new one."
        )
    _check(model, tensors, head, start.path)
    held = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    with torch.no_grad():
        for name, tensor in tensors.items():
            held[name].copy_(tensor)
    return model


def keep_start(folder: Path, init: Init | None) -> None:
    """Copy the start of a run into its folder, so that the run can be moved and outlives the checkpoint."""
    if init is None or (folder / COPY).exists():
        return
    start = _found(init, folder)
    layout = None if start.layout is None else [[name, list(shape)] for name, shape in start.layout]
    files.write_tensors(folder / COPY, start.values, {"classes": list(start.classes), "layout": layout})


def read_start(path: Path) -> Start:
    """A state dict, or the last global model of a run's folder.

    Raises:
        LookupError: If there is neither.
        ValueError: If the file is no state dict, or damaged.
    """
    if (path / "run.json").is_file() and (path / "state.safetensors").is_file():
        from drift.config.chain import require_own  # which reads experiments, as this module is part of doing

        require_own(path, files.STATE)
        about, (state, _) = files.read_json(path / "run.json"), files.read_state(path)
        values = {name: state[name] for name in ("theta", "buffers")}
        return Start(path, values, *_described(path, about))
    if not path.is_file():
        what = "is a folder and no run" if path.is_dir() else "does not exist"
        raise LookupError(f"init: {path} {what}. {ANEW}")
    if path.suffix not in SUFFIXES:
        raise ValueError(f"init: {path} is no checkpoint by its name. {ANEW}")
    return Start(path, read_tensors(path), *_described(path, _about(path)))


def _found(init: Init, folder: Path | None) -> Start:
    """The copy in the run's folder where there is one, else the checkpoint itself."""
    copied = folder is not None and (folder / COPY).is_file()
    start = read_start(folder / COPY if folder is not None and copied else Path(init.path).expanduser())
    if init.digest not in (None, start.digest):
        raise ValueError(
            f"init: {start.path} has digest {start.digest}, the experiment starts from {init.digest}; restore the "
            "file, or give init = PATH anew to start from this one."
        )
    return start


def _described(path: Path, about: Mapping[str, Any]) -> tuple[tuple[str, ...], tuple[Entry, ...] | None]:
    """Classes, and the layout of a run or of the copy that a run stores of another run's model."""
    try:
        layout = about.get("layout")
        entries = None if layout is None else tuple((str(name), tuple(map(int, shape))) for name, shape in layout)
        return tuple(map(str, about.get("classes", ()))), entries
    except (TypeError, ValueError, OverflowError) as reason:
        raise ValueError(f"init: {path} describes no classes or no layout ({one_line(reason)}). {ANEW}") from reason


def _about(path: Path) -> dict[str, Any]:
    """What `fedscape pretrain` wrote of a checkpoint; nothing where another program wrote it."""
    if path.suffix != ".safetensors":
        return {}
    try:
        with safe_open(path, framework="pt") as file:
            header = file.metadata() or {}
        return json_table(header.get("about", "{}")) if header.get("format") == files.FORMAT else {}
    except (SafetensorError, OSError, ValueError) as reason:
        raise ValueError(f"{path} cannot be read ({one_line(reason)}); it is truncated or no checkpoint.") from reason


def _head_names(model: nn.Module) -> set[str]:
    head = getattr(model, "head", None)
    if not isinstance(head, nn.Module):
        raise ValueError("init.head is 'new' and the model does not tell a `head` from its body; leave init.head out.")
    return {f"head.{name}" for name in head.state_dict()}


def _check(model: nn.Module, tensors: Mapping[str, Tensor], head: set[str], path: Path) -> None:
    """Complain about the first tensor that is missing, foreign, of another shape or not finite."""
    layout = Layout.of(model)
    wanted = {name: shape for name, shape in (*layout.parameters, *layout.buffers) if name not in head}
    if absent := [name for name in wanted if name not in tensors]:
        raise ValueError(f"init: {path} has no tensor {absent[0]!r}; it has {_listed(list(tensors))}. {OTHER}")
    known = model.state_dict()
    for name, tensor in tensors.items():
        if name not in known:
            raise ValueError(
                f"init: the model has no tensor {name!r} of {path}; it has {_listed(list(known))}. {OTHER}"
            )
        if tensor.shape != known[name].shape:
            advice = "Set init.head=new to start with a new one." if name.startswith("head.") else OTHER
            raise ValueError(
                f"init: tensor {name!r} of {path} has shape {tuple(tensor.shape)}, the model has "
                f"{tuple(known[name].shape)}. {advice}"
            )
        if not bool(torch.isfinite(tensor).all()):
            raise ValueError(f"init: tensor {name!r} of {path} holds values that are not finite; give another one.")


def _listed(names: Sequence[str]) -> str:
    return ", ".join(names[:6]) + (f" and {len(names) - 6} more" if len(names) > 6 else "")
