"""A run on disk: experiment, rounds, data, model and cached analyses; `open` opens one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from drift.config.corrections import corrected_since, from_outside
from drift.config.method_values import Setting
from drift.plugins.reserved_names import USER_TASK
from drift.plugins.trust import allow, require_trusted
from drift.runs import metric_names
from drift.runs.client_of_round import recorded_client
from drift.runs.context import Announce, Context
from drift.runs.run_files import RunFiles
from drift.runs.user_task import Parts, UserMetric, UserTask, require_fit
from drift.training.client import Client
from drift.training.data import Data, build_task, client_samples, read_data
from landscape.model.samples import Samples
from landscape.model.task import Task, metric_units
from landscape.results.progress import Progress

if TYPE_CHECKING:  # training starts without them
    import xarray as xr

    from landscape.sweep.threads import PointPool


@dataclass(frozen=True, repr=False)
class Run(RunFiles):
    """A folder in which a run is recorded.

        drift.open("runs/mine").cached(drift.coherence)  # computed once, then read

    Args:
        folder: Folder of the run.
        context: How its analyses are computed; no part of the run itself.
    """

    context: Context = field(default_factory=Context)

    @cached_property
    def dataset(self) -> Data:
        """Samples, labels and the partition over clients, as in training.

        Raises:
            ValueError: If the dataset is not the one that the run was trained on, or a task does not fit the run.
            LookupError: If the run was recorded without its data and opened without a task.
        """
        if self.context.user_task is not None:
            require_fit(self.context.user_task, self)
            return self.context.user_task.data
        if self.without_data:
            raise LookupError(
                f"run {self.name} was recorded without its data; give the task: drift.open(folder, task=task), or "
                "--task FILE.py:FUNCTION."
            )
        require_trusted(self.experiment.task.dataset, f"run {self.name} takes its data by")
        data = read_data(self.experiment, self.context.data)
        self._warn_changed(self.experiment.task.dataset)
        if data.fingerprint != self.about["fingerprint"]:
            raise ValueError(
                f"dataset {self.experiment.task.dataset} has fingerprint {data.fingerprint}, run {self.name} was "
                f"trained on {self.about['fingerprint']}; give the folder of the old data by --data."
            )
        return data

    @property
    def without_data(self) -> bool:
        """Whether the run was recorded without its data and model, and opened without a task that supplies them."""
        return self.context.user_task is None and self.experiment.task.dataset == USER_TASK

    @cached_property
    def task(self) -> Task:
        """The task with splits train, test and, where there is one, proxy.

        Raises:
            ValueError: If its model needs code from outside that is not trusted (`drift.plugins.trust`).
        """
        if self.context.user_task is not None:
            _ = self.dataset  # which refuses a task that does not fit
            task = self.context.user_task.task
        else:
            require_trusted(self.experiment.task.model, f"run {self.name} makes its model by")
            task = build_task(self.experiment, self.dataset, self.folder)
            self._warn_changed(self.experiment.task.model)
        functions = {metric.name: metric.function for metric in self.context.metrics}
        return replace(task, metrics={**task.metrics, **functions})

    @property
    def loss_units(self) -> str:
        """Unit of the run's losses: that of the task that it was opened with, or as `RunFiles.loss_units`."""
        user_task = self.context.user_task
        return super().loss_units if user_task is None else metric_units(user_task.task, "loss")

    @property
    def parts(self) -> list[np.ndarray]:
        """Sample numbers (into train) of each of the K clients, as the partition gave them."""
        return self.dataset.parts

    def parts_in(self, index: int) -> list[np.ndarray]:
        """Sample numbers (into train) that each of the K clients trains on in a round, K arrays.

        They differ from `parts` if the partition redistributes the data of the cohort in every round.

        Args:
            index: Number of the round, not negative.
        """
        return client_samples(self.experiment, self.dataset, index)[0]

    @property
    def labels(self) -> np.ndarray:
        """Class of every training sample, shape (n,)."""
        return self.dataset.labels

    def client_samples(self, client: int, index: int | None = None) -> Samples:
        """Training data of a client: of round `index`, or of the partition."""
        parts = self.parts if index is None else self.parts_in(index)
        return self.task.samples["train"][torch.from_numpy(parts[client])]

    @property
    def setting(self) -> Setting:
        """The argument `setting` of the method's hooks.

        Raises:
            ValueError: If the code of the method or partition is not at hand.
        """
        self.require_code()
        engine = "batched" if self.about.get("engine") == "batched" else "serial"
        return Setting(self.task, self.experiment, self.task.samples.get("proxy"), engine)

    def client(self, index: int, client: int, *, replicate: int = 0) -> Client:
        """A client of a recorded round, ready to train again by `run.method.local`.

        Replicate 0 repeats the recorded training bit for bit; others have other random batches.

        Raises:
            LookupError: If the round has no stored start, or the state of the client was not recorded.
            ValueError: If the code of the method or partition is not at hand.
        """
        self.require_code()
        return recorded_client(self, index, client, replicate)

    def models(self, indices: list[int] | None = None) -> Tensor:
        """Global models after the rounds `indices` (default: all that are stored), shape (R, d)."""
        indices = self.kept("globals") if indices is None else indices
        return torch.stack([self.round(index).kept("end") for index in indices])

    def metrics(self) -> xr.Dataset:
        """Every recorded number of every round, by name, over `round`; NaN where a round has none."""
        from drift.runs.metrics import recorded_metrics

        return recorded_metrics(self)

    @property
    def metric_names(self) -> dict[str, str]:
        """Recorded names of numbers by usual name: of the record, of the environment, and given to `drift.open`."""
        return {**super().metric_names, **self.context.metric_names}

    def cached(self, analysis: Callable[..., xr.Dataset], **arguments: Any) -> xr.Dataset:
        """Result of `analysis(run, **arguments)`, computed once and stored in the run's folder.

        A stopped analysis with a parameter `partial` resumes from its stored part.

        Raises:
            TypeError: If the analysis has no such argument, or one is neither number, text nor list of these.
        """
        from drift.runs import cache

        return cache.cached(self, analysis, arguments)

    def with_progress(self, progress: Progress | None, announce: Announce | None = None) -> Run:
        """The same run, whose analyses report their progress to `progress` and their cost to `announce`."""
        return self._with(progress=progress, announce=announce)

    def with_measures(self, measures: Sequence[UserMetric]) -> Run:
        """The same run with further metrics in planes and lines."""
        return self._with(metrics=tuple(measures))

    def with_metric_names(self, names: Mapping[str, str]) -> Run:
        """The same run, whose numbers have these usual names too, such as {"accuracy": "test_acc"}.

        Raises:
            LookupError: If the run recorded no such number; names those that it did.
        """
        if names and self.committed:
            metric_names.require_recorded(self.name, names.values(), self.number_names())
        return self._with(metric_names=dict(names))

    def number_names(self) -> list[str]:
        """Names of the numbers that any round has."""
        return sorted({name for record in self.without_models(self.rounds()) for name in record.metrics})

    def with_crew(self, crew: PointPool | None) -> Run:
        """The same run with other processes that compute planes and lines."""
        return self._with(pool=crew)

    def _with(self, **changed: Any) -> Run:
        return replace(self, context=replace(self.context, **changed))


def open(
    folder: str | Path,
    *,
    data: str | Path | None = None,
    task: Task | str | None = None,
    parts: Parts | None = None,
    trust: str | Sequence[str] | None = None,
    metrics: Mapping[str, str] | None = None,
) -> Run:
    """The recorded run in a folder.

        drift.open("runs/mine").round(-1).metrics

    Args:
        folder: Folder of the run.
        data: Folder of the datasets.
        task: A task that replaces the recorded one, or the text `my_code.py:make_task` of a function that returns it.
        parts: Sample numbers (into train) of each recorded client: a list, or a mapping by number or name.
        trust: Functions, MODULE:FUNCTION, that may be imported to make the model of this and of other runs.
        metrics: Recorded names of numbers by usual name, such as {"accuracy": "test_acc"}, for figures and analyses.

    Raises:
        LookupError: If the folder holds no run, its description is damaged, or it recorded no such number.
        ValueError: If the folder is not a path, or the task is not one.
    """
    if not isinstance(folder, str | PathLike) or not folder:
        raise ValueError(f"the folder of a run is {folder!r}; give its path, such as 'runs/NAME'.")
    for name in [trust] if isinstance(trust, str) else trust or ():
        allow(name)
    run = Run(Path(folder), Context(Path(data) if data is not None else None))
    names = run.about.get("names")  # reads and checks the description at once
    if not from_outside(run.about) and (since := corrected_since(run.about, run.method)):
        warnings.warn(
            f"{run.name} was trained before {run.method.name()} was corrected ({'; '.join(since)}); its numbers are "
            "those of the earlier version.",
            stacklevel=2,
        )
    metric_names.require_stated(run)
    run = run if not metrics else run.with_metric_names(metrics)
    return run if task is None else run._with(user_task=UserTask.load(task, parts, names))
