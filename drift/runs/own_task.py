"""A task that the user of a run brings along: its own model, loss and samples, in place of a dataset's."""

from __future__ import annotations

import hashlib
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np
import torch

from drift.config.external_run import UnknownParts
from drift.training.data import Data
from landscape.model.samples import leaves
from landscape.model.task import Task
from landscape.model.task_from import task_from

Parts = Sequence[Sequence[int]] | Mapping[Any, Sequence[int]]
"""Sample numbers (into train) of each client: in the order of their numbers, or by number or name."""


@dataclass(frozen=True)
class Given:
    """A task, and who holds which of its training samples where that is known.

    Args:
        task: Model, samples (splits train and test), loss and metrics.
        parts: Sample numbers (into train) of each client, K arrays.
    """

    task: Task
    parts: list[np.ndarray] | None = None

    @classmethod
    def of(cls, task: Task | str, parts: Parts | None = None, names: Sequence[str] | None = None) -> Given:
        """From a task, or from the text `my_code.py:make_task` of a function that returns one.

        A task is a `Task` or (model, loss, samples), as `landscape.model.task_from.task_from` takes it; or a pair of a
        task and parts.

        Args:
            task: The task, or who makes it.
            parts: Sample numbers (into train) of each client: a list by number, or a mapping by number or name.
            names: Names of the run's clients in the order of their numbers, where they have names.

        Raises:
            ValueError: If the task is none, or parts name samples or clients that are not there.
        """
        made, beside = apart(task)
        whole, held = task_from(made), parts if beside is None else beside
        return cls(whole, None if held is None else _numbered(held, names, len(whole.samples["train"])))

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits of samples, model and loss, by which results are found again.

        Code behind the names of loss and metrics is not seen.
        """
        functions = {"loss": self.task.loss, **self.task.metrics}
        called = {name: getattr(one, "__qualname__", repr(type(one))) for name, one in functions.items()}
        total = hashlib.sha256(f"{self.task.model} {called}".encode())
        for name, samples in sorted(self.task.samples.items()):
            for leaf in (*leaves(samples.inputs), samples.targets):
                total.update(f"{name} {leaf.dtype} {tuple(leaf.shape)};".encode())
                total.update(leaf.detach().cpu().contiguous().reshape(-1).view(torch.uint8).numpy().data)
        for part in self.parts or ():
            total.update(part.tobytes() + b";")
        return total.hexdigest()[:16]

    @property
    def data(self) -> Data:
        """What the task tells of the data; classes are the numbers up to the largest target."""
        targets = [samples.targets for samples in self.task.samples.values()]
        whole = all(not found.is_floating_point() and found.ndim == 1 and len(found) for found in targets)
        classes = tuple(str(label) for label in range(max(int(found.max()) for found in targets) + 1)) if whole else ()
        first = leaves(next(iter(self.task.samples.values())).inputs)[0]
        parts: Any = UnknownParts() if self.parts is None else self.parts
        held: Any = parts if self.parts is None else [np.zeros(0, np.int64) for _ in self.parts]
        return Data(dict(self.task.samples), classes, tuple(first.shape[1:]), self.fingerprint, parts, held)


def apart(task: Any) -> tuple[Any, Parts | None]:
    """A task and the parts beside it, None where there are none; the text of a function is called."""
    made = load_task(task) if isinstance(task, str) else task
    return made if isinstance(made, tuple) and len(made) == 2 else (made, None)


def load_task(text: str) -> Any:
    """What a function of a Python file returns: a task, or a task and parts; the file is run.

    Args:
        text: `my_code.py:make_task`, where `make_task()` takes nothing.

    Raises:
        LookupError: If there is no such file or function.
        ValueError: If the text is something else.
    """
    return load_function(text, "task", "make_task")()


def load_function(text: str, what: str, example: str) -> Callable[..., Any]:
    """A function of a Python file, by the text FILE.py:FUNCTION; the file is run.

    Args:
        what, example: What it is for, and what it might be called, for errors.

    Raises:
        LookupError: If there is no such file or function.
        ValueError: If the text is something else.
    """
    path, colon, name = text.rpartition(":")
    if not colon or not name.isidentifier() or not path.endswith(".py"):
        raise ValueError(f"cannot read {what} {text!r}; write FILE.py:FUNCTION, as in my_code.py:{example}.")
    if not Path(path).is_file():
        raise LookupError(f"no file {path}; a {what} is given as FILE.py:FUNCTION.")
    beside = str(Path(path).resolve().parent)
    sys.path.insert(0, beside)  # what lies beside the file can be imported by it
    try:
        found: Callable[..., Any] | None = runpy.run_path(path, run_name=Path(path).stem).get(name)
    finally:
        sys.path.remove(beside)
    if not callable(found):
        raise LookupError(f"{path} has no function {name!r}; a {what} is given as FILE.py:FUNCTION.")
    return found


def _numbered(parts: Parts, names: Sequence[str] | None, samples: int) -> list[np.ndarray]:
    """Sample numbers by number of the client; none for clients that a mapping leaves out."""
    if isinstance(parts, Mapping):
        places = {name: place for place, name in enumerate(names or ())}
        by_number = {places.get(str(client), -1) if names else client: part for client, part in parts.items()}
        if not all(isinstance(number, int) and number >= 0 for number in by_number):
            known = f"the names {', '.join(list(places)[:8])}" if names else "numbers"
            given = ", ".join(map(repr, list(parts)[:8]))
            raise ValueError(f"parts is given by {given}; the run's clients have {known}.")
        parts = [by_number.get(number, ()) for number in range(max(by_number, default=-1) + 1)]
    found = [np.asarray(part, np.int64) for part in parts]
    for client, part in enumerate(found):
        if part.ndim != 1 or (part.size and not 0 <= part.min() <= part.max() < samples):
            raise ValueError(
                f"parts of client {client} names samples that are not there; numbers go from 0 to {samples - 1}, into "
                "train."
            )
    return found


def require_fit(given: Given, about: Mapping[str, Any], name: str) -> None:
    """Refuse a task whose model is not that of a run, or that tells of fewer clients.

    Args:
        given: The task.
        about: Content of run.json.
        name: The run's.

    Raises:
        ValueError: With the first tensor that differs, or both numbers of clients.
    """
    clients, layout = about["experiment"]["clients"]["number"], about["layout"]
    if given.parts is not None and len(given.parts) < clients:
        raise ValueError(
            f"parts tells of {len(given.parts)} clients, run {name} has {clients}; give the sample numbers of each, "
            "none ([]) for a client that holds none."
        )
    own = [[name, list(shape)] for name, shape in given.task.layout.parameters]
    if own == layout:
        return
    mine, theirs = next(pair for pair in zip_longest(own, layout) if pair[0] != pair[1])
    raise ValueError(
        f"the task's model is not that of run {name}: it has {mine} where the run has {theirs}. Give the module to "
        "the recorder when parameters are tied or frozen."
    )
