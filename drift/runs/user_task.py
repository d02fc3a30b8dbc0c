"""The user's own code: metrics, and a task that replaces the recorded dataset: model, loss, samples of each client."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import zip_longest
from typing import Any, Self

import numpy as np

from drift.config.external_run import UnknownParts
from drift.runs.run_files import RunFiles
from drift.training.data import Data, client_samples
from landscape.datasets._dataset import range_normalisation
from landscape.model.held_values import digest
from landscape.model.make_task import task_from
from landscape.model.samples import leaves
from landscape.model.task import PerSample, Task
from landscape.model.tensor_names import adapters_of, matched_names
from landscape.plugins import outside

Parts = Sequence[Sequence[int]] | Mapping[Any, Sequence[int]]
"""Sample numbers (into train) of each client: in the order of their numbers, or by number or name.

A client has a sample once; clients may share samples, as in partitions that overlap.
"""


@dataclass(frozen=True)
class UserTask:
    """A task, and the clients that hold its training samples where that is known.

    Args:
        task: Model, samples (splits train and test), loss and metrics.
        parts: Sample numbers (into train) of each client, K arrays.
    """

    task: Task
    parts: list[np.ndarray] | None = None

    @classmethod
    def load(cls, task: Task | str, parts: Parts | None = None, names: Sequence[str] | None = None) -> Self:
        """A task, or the result of the function that the text `my_code.py:make_task` names.

        A task is a `Task` or (model, loss, samples), as `landscape.make_task` takes it; or a pair of a
        task and parts.

        Args:
            task: The task, or the text that names its function.
            parts: Sample numbers (into train) of each client: a list by number, or a mapping by number or name.
            names: Names of the run's clients in the order of their numbers, where they have names.

        Raises:
            ValueError: If it is no task, or parts name absent samples or clients.
        """
        content, own_parts = split_task(task)
        complete, parts = task_from(content), parts if own_parts is None else own_parts
        return cls(complete, None if parts is None else _by_number(parts, names, len(complete.samples["train"])))

    @cached_property
    def fingerprint(self) -> str:
        """Sixteen hexadecimal digits of the task and its parts, part of the key of stored results."""
        return digest(self.task.digest(*self.task.samples.values()), list(self.task.samples), self.parts)

    @property
    def data(self) -> Data:
        """The task as data of a run; classes are the numbers up to the largest target, ignored labels are -100.

        Inputs that are not in [0, 1] are scaled by their range.
        """
        splits = dict(self.task.samples)
        targets = [samples.targets for samples in splits.values()]
        labelled = all(not values.is_floating_point() and values.ndim == 1 and len(values) for values in targets)
        if labelled:
            splits = {name: replace(samples, targets=self.task.labels(name)) for name, samples in splits.items()}
        largest = max(int(samples.targets.max()) for samples in splits.values()) if labelled else -1
        classes = range(largest + 1)
        inputs = [leaves(samples.inputs)[0] for samples in splits.values()]
        real = inputs[0].is_floating_point() and any(bool(((tensor < 0) | (tensor > 1)).any()) for tensor in inputs)
        scale: dict[str, Any] = {"normalisation": range_normalisation(*inputs)} if real else {}
        parts: Any = UnknownParts() if self.parts is None else self.parts
        held_out: Any = parts if self.parts is None else [np.zeros(0, np.int64) for _ in self.parts]
        names = tuple(map(str, classes))
        return Data(splits, names, tuple(inputs[0].shape[1:]), self.fingerprint, parts, held_out, **scale)


def split_task(task: Any) -> tuple[Any, Parts | None]:
    """Split a task with parts into both; parts are None where there are none.

    Args:
        task: A task, a pair of task and parts, or the text `my_code.py:make_task` of a function that returns one of
            these.

    Raises:
        LookupError, ValueError: As `load_function`.
    """
    content = load_function(task)() if isinstance(task, str) else task
    return content if isinstance(content, tuple) and len(content) == 2 else (content, None)


def _by_number(parts: Parts, names: Sequence[str] | None, samples: int) -> list[np.ndarray]:
    """Sample numbers by client number; a client that a mapping leaves out has no samples."""
    if isinstance(parts, Mapping):
        indices = {name: index for index, name in enumerate(names or ())}
        by_number = {indices.get(str(client), -1) if names else client: numbers for client, numbers in parts.items()}
        if not all(isinstance(number, int) and number >= 0 for number in by_number):
            expected = f"the names {', '.join(list(indices)[:8])}" if names else "numbers"
            keys = ", ".join(map(repr, list(parts)[:8]))
            raise ValueError(f"parts is given by {keys}; the run's clients have {expected}.")
        parts = [by_number.get(number, ()) for number in range(max(by_number, default=-1) + 1)]
    arrays = list(map(np.asarray, parts))
    for client, numbers in enumerate(arrays):
        if numbers.size and numbers.dtype.kind not in "iu":
            raise ValueError(
                f"parts of client {client} has numbers of type {numbers.dtype}; give those of samples, such as "
                "np.flatnonzero(mask) of a mask."
            )
        if numbers.ndim != 1 or (numbers.size and not 0 <= numbers.min() <= numbers.max() < samples):
            raise ValueError(
                f"parts of client {client} names samples that are not there; numbers go from 0 to {samples - 1}, into "
                "train."
            )
        if len(np.unique(numbers)) < numbers.size:
            raise ValueError(f"parts of client {client} names a sample twice; give each sample once.")
    return [numbers.astype(np.int64) for numbers in arrays]


def require_fit(user_task: UserTask, run: RunFiles) -> None:
    """Refuse a task whose model is not that of a run, or whose parts are not those of the run's clients.

    A run in which every client has one sample in every round does not know the sizes: importers write these.

    Raises:
        ValueError: With the first tensor that differs, both numbers of clients, or the client with another size.
    """
    clients, layout, parts = run.experiment.clients.number, run.about["layout"], user_task.parts
    if parts is not None:
        exact = not run.about.get("imported")  # other programs record the clients that took part
        if len(parts) < clients or (exact and len(parts) > clients):
            raise ValueError(
                f"parts has {len(parts)} clients, run {run.name} has {clients}; give the sample numbers of each, "
                "none ([]) for a client that holds none."
            )
        _require_sizes(user_task.data, run)
    parameters = user_task.task.layout.parameters
    entries: list[Any] = [[name, list(shape)] for name, shape in parameters]
    adapters = adapters_of(user_task.task.model)
    known = matched_names([name for name, _ in layout], [name for name, _ in parameters], adapters)
    if [[known.get(name), list(shape)] for name, shape in parameters] == layout:
        return
    actual, expected = next(pair for pair in zip_longest(entries, layout) if pair[0] != pair[1])
    raise ValueError(
        f"the task's model is not that of run {run.name}: it has {actual} where the run has {expected}. Give the "
        "module to the recorder when parameters are tied or frozen."
    )


def _require_sizes(data: Data, run: RunFiles) -> None:
    rounds = run.without_models(run.rounds())  # each with a Gram matrix, which is not held
    recorded = [(record.index, dict(zip(record.ids.tolist(), record.sizes.tolist(), strict=True))) for record in rounds]
    if all(size == 1 for _, sizes in recorded for size in sizes.values()):
        return
    for index, sizes in recorded:
        counted = [len(rows) + len(out) for rows, out in zip(*client_samples(run.experiment, data, index), strict=True)]
        for client, size in sizes.items():
            if counted[client] != size:
                raise ValueError(
                    f"parts gives client {client} {counted[client]} samples, run {run.name} recorded {size} in round "
                    f"{index}; give those that it trained on, or the task without parts. Sizes are numbers of "
                    "samples; numbers of steps are recorded as weights."
                )


@dataclass(frozen=True)
class UserMetric:
    """A metric of the user's own.

    Args:
        name: Name of the metric.
        function: (outputs, targets) -> one value per sample (n,), or several (n, v).
        digest: Of the function (`landscape.model.held_values.digest`).
    """

    name: str
    function: PerSample = field(compare=False, repr=False)
    digest: str

    @classmethod
    def load(cls, text: str) -> Self:
        """The metric of the text `my_code.py:top5_error`; the function's name is the metric's.

        Raises:
            LookupError, ValueError: As `load_function`.
        """
        function, (_, _, name) = load_function(text), text.rpartition(":")
        return cls(name, function, digest(function))


def load_function(text: str) -> Callable[..., Any]:
    """The function of the user's own that a text names (`landscape.plugins.outside.load`).

    Raises:
        LookupError: If there is no such file.
        ValueError: If the file or module has no such function, or the text has another form.
    """
    function = outside.load(text)
    if not callable(function):
        raise ValueError(f"{text} is a {type(function).__name__}; name a function as FILE.py:NAME or module:NAME.")
    return function
