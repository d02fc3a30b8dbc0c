"""A run on disk: experiment, rounds, data, model and cached analyses; `open` opens one."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from drift.config import chain
from drift.config.experiment import Experiment
from drift.config.external_run import UNKNOWN, complete_experiment, seed_of
from drift.config.load import validated
from drift.config.method import Method, Setting, State
from drift.config.migrations import corrected_since, from_outside
from drift.config.random_keys import cohort
from drift.plugins.reserved_names import USER_TASK
from drift.plugins.trust import allow, names_in, require_trusted, warn_changed
from drift.runs.client_of_round import recorded_client
from drift.runs.context import Announce, Context
from drift.runs.user_task import Parts, UserMetric, UserTask, require_fit
from drift.store import files, links, round_headers
from drift.store.round_record import Round
from drift.training.client import Client
from drift.training.data import Data, build_task, client_samples, read_data
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.results.progress import Progress

if TYPE_CHECKING:  # training starts without them
    import xarray as xr

    from landscape.sweep.threads import PointPool


@dataclass(frozen=True)
class Run:
    """A folder in which a run is recorded.

    Args:
        folder: Folder of the run.
        context: How its analyses are computed; no part of the run itself.
    """

    folder: Path
    context: Context = field(default_factory=Context)

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.folder.name

    @cached_property
    def about(self) -> dict[str, Any]:
        """Content of run.json: experiment, versions, fingerprint of the data, layout.

        Raises:
            LookupError: If it is damaged, or contains no experiment.
        """
        path = self.folder / "run.json"
        about = files.read_json(path)
        if not isinstance(about.get("experiment"), dict):
            raise files.Damaged(path, "contains no experiment", "Read it with the version of fedscape that wrote it.")
        return about

    @cached_property
    def experiment(self) -> Experiment:
        """The resolved experiment.

        Raises:
            ValueError: If a setting is not accepted, or a method or partition is code that is not trusted, in one line.
        """
        content = complete_experiment(self.about)
        experiment = validated(content, str(self.folder / "run.json"))
        parts = content.get("method"), content.get("clients", {}).get("partition")
        self._warn_changed(*(part for part in parts if isinstance(part, dict)))
        return experiment

    def _warn_changed(self, *parts: Any) -> None:
        names = [name for part in parts for name in names_in(part)]
        warn_changed(self.about.get("sources", {}), names, self.name)

    @property
    def method(self) -> Method:
        """The method that trained it."""
        return self.experiment.method

    @property
    def label(self) -> str:
        """Name of the run in figures: its method, with the variant or the base where it has one."""
        return self.method.label

    @property
    def seed(self) -> int | None:
        """The seed; None for a run of another program that does not state it."""
        return seed_of(self.about, self.experiment.seed)

    @property
    def data_name(self) -> str:
        """Name of the dataset; `external_run.UNKNOWN` where the run was recorded without one."""
        name = self.experiment.task.dataset
        return str(self.about.get("told", {}).get("data", UNKNOWN)) if name == USER_TASK else name

    def rounds(self) -> list[int]:
        """Indices of the rounds on disk, ascending; only those before the commit point."""
        done = self.committed
        return [index for index in round_headers.round_numbers(self.folder) if index < done]

    @property
    def committed(self) -> int:
        """Number of rounds that are complete.

        Raises:
            LookupError: If the state is damaged, or that of another run.
        """
        if not (self.folder / files.STATE).exists():
            return 0
        following = files.read_next(self.folder)
        chain.require_own(self.folder, files.STATE)
        return following

    @property
    def identity(self) -> str:
        """Name of the run in its files, independent of the folder's name; "" in older recorded runs."""
        return links.identity(self.about)

    @property
    def head(self) -> str:
        """Link of the last complete round, which depends on all rounds before it; "" where there is none."""
        return round_headers.last_link(self.folder, self.committed)

    def round(self, index: int) -> Round:
        """The record of a round; negative indices count from the last complete one.

        Raises:
            LookupError: If the run has no such round, or its file is damaged or of another run.
        """
        number = self.require_round(index)
        chain.require_own(self.folder, round_headers.round_file(number))
        return files.read_round(self.folder, number)

    def require_round(self, index: int) -> int:
        """Number of a round of the run; negative indices count from the last complete one.

        Raises:
            LookupError: If the run has no such round.
        """
        rounds = self.rounds()
        number = rounds[index] if -len(rounds) <= index < 0 else index
        if number not in rounds:
            present = f"{rounds[0]} to {rounds[-1]}" if rounds else "none"
            raise LookupError(f"run {self.name} has no round {index}; it has {present}.")
        return number

    def kept(self, what: str = "clients") -> list[int]:
        """Rounds with stored "clients" or "globals"."""
        rounds, keep = self.experiment.rounds, self.experiment.keep
        keeps = keep.keeps_clients if what == "clients" else keep.keeps_globals
        return [index for index in self.rounds() if keeps(index, rounds)]

    @cached_property
    def dataset(self) -> Data:
        """Samples, labels and the partition over clients, as in training.

        Raises:
            ValueError: If the dataset is not the one that the run was trained on.
            LookupError: If the run was recorded without its data and opened without a task.
        """
        if self.context.user_task is not None:
            return self.context.user_task.data
        if self.experiment.task.dataset == USER_TASK:
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

    @cached_property
    def task(self) -> Task:
        """The task with splits train, test and, where there is one, proxy.

        Raises:
            ValueError: If its model needs code from outside that is not trusted (`drift.plugins.trust`).
        """
        if self.context.user_task is not None:
            require_fit(self.context.user_task, self.about, self.name)
            task = self.context.user_task.task
        else:
            require_trusted(self.experiment.task.model, f"run {self.name} makes its model by")
            task = build_task(self.experiment, self.dataset, self.folder)
            self._warn_changed(self.experiment.task.model)
        own = {metric.name: metric.function for metric in self.context.metrics}
        return replace(task, metrics={**task.metrics, **own})

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
        """The argument `setting` of the method's hooks."""
        engine = "batched" if self.about.get("engine") == "batched" else "serial"
        return Setting(self.task, self.experiment, self.task.samples.get("proxy"), engine)

    def client(self, index: int, client: int, *, replicate: int = 0) -> Client:
        """A client of a recorded round, ready to train again by `run.method.local`.

        Replicate 0 repeats the recorded training bit for bit; others have other random batches.

        Raises:
            LookupError: If the round has no stored start, or the state of the client was not recorded.
        """
        return recorded_client(self, index, client, replicate)

    def trained(self, index: int) -> np.ndarray:
        """Clients that trained in round `index`: the cohort, or all with `clients.train_all`, ascending."""
        clients = self.experiment.clients
        return np.arange(clients.number) if clients.train_all else self.cohort(index)

    def cohort(self, index: int) -> np.ndarray:
        """Clients of the cohort of round `index`, shape (m,)."""
        clients = self.experiment.clients
        return cohort(self.experiment.seed, index, clients.number, clients.per_round)

    def state(self) -> tuple[State, int]:
        """Everything needed to resume, and the next round.

        Raises:
            LookupError: If the file is absent or damaged, or that of another run.
        """
        state = files.read_state(self.folder)
        chain.require_own(self.folder, files.STATE)
        return state

    def models(self, indices: list[int] | None = None) -> Tensor:
        """Global models after the rounds `indices` (default: all that are stored), shape (R, d)."""
        indices = self.kept("globals") if indices is None else indices
        return torch.stack([self.round(index).kept("end") for index in indices])

    def metrics(self) -> xr.Dataset:
        """Every recorded number of every round, by name, over `round`; NaN where a round has none."""
        from drift.runs.metrics import recorded_metrics

        return recorded_metrics(self)

    def cached(self, analysis: Callable[..., xr.Dataset], **arguments: Any) -> xr.Dataset:
        """Result of `analysis(run, **arguments)`, computed once and stored in the run's folder.

        A stopped analysis with a parameter `partial` resumes from its stored part.

        Raises:
            TypeError: If the analysis has no such argument, or one is neither number, text nor list of these.
        """
        from drift.runs import cache

        return cache.cached(self, analysis, arguments)

    def with_data(self, data: Path | None) -> Run:
        """The same run with its datasets read from another folder."""
        return self._with(data=data)

    def with_progress(self, progress: Progress | None, announce: Announce | None = None) -> Run:
        """The same run, whose analyses report their progress to `progress` and their cost to `announce`."""
        return self._with(progress=progress, announce=announce)

    def with_measures(self, measures: Sequence[UserMetric]) -> Run:
        """The same run with further metrics in planes and lines."""
        return self._with(metrics=tuple(measures))

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
    trust: str | None = None,
) -> Run:
    """The recorded run in a folder.

    Args:
        folder: Folder of the run.
        data: Folder of the datasets.
        task: A task that replaces the recorded one, or the text `my_code.py:make_task` of a function that returns it.
        parts: Sample numbers (into the task's train split) of each client, where that is known: a list by number, or
            a mapping by number or name.
        trust: The function, MODULE:FUNCTION, that may be imported to make the model of this and of other runs.

    Raises:
        LookupError: If the folder holds no run, or its description is damaged.
        ValueError: If the task is none.
    """
    if trust is not None:
        allow(trust)
    run = Run(Path(folder), Context(Path(data) if data is not None else None))
    names = run.about.get("names")  # reads and checks the description at once
    if not from_outside(run.about) and (since := corrected_since(run.about, run.method)):
        warnings.warn(
            f"{run.name} was trained before {run.method.name()} was corrected ({'; '.join(since)}); its numbers are "
            "those of the earlier version.",
            stacklevel=2,
        )
    return run if task is None else run._with(user_task=UserTask.load(task, parts, names))
