"""A run on disk: its experiment, its rounds, its data and model, and its cached analyses."""

from __future__ import annotations

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
from drift.config.external_run import UNKNOWN, completed, seed_of
from drift.config.load import validated
from drift.config.method import Method, Setting, State
from drift.config.random_keys import cohort
from drift.plugins.reserved_names import GIVEN
from drift.plugins.trust import names_in, require_trusted, tell_changed
from drift.runs.client_of_round import recorded_client
from drift.runs.context import Announce, Context
from drift.runs.own_metrics import Measure
from drift.runs.own_task import require_fit
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
        folder: Where it lies.
        context: How its analyses are computed; no part of what the run is.
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
            LookupError: If it is damaged, or tells no experiment.
        """
        path = self.folder / "run.json"
        about = files.read_json(path)
        if not isinstance(about.get("experiment"), dict):
            raise files.Damaged(path, "tells no experiment", "Read it with the version of fedscape that wrote it.")
        return about

    @cached_property
    def experiment(self) -> Experiment:
        """The resolved experiment.

        Raises:
            ValueError: If a setting is not accepted, or a method or partition is code that is not trusted, in one line.
        """
        content = completed(self.about)
        found = validated(content, str(self.folder / "run.json"))
        parts = content.get("method"), content.get("clients", {}).get("partition")
        self._tell_changed(*(part for part in parts if isinstance(part, dict)))
        return found

    def _tell_changed(self, *named: Any) -> None:
        """Say which code from outside has changed since the run was begun with it."""
        names = [name for part in named for name in names_in(part)]
        tell_changed(self.about.get("sources", {}), names, self.name)

    @property
    def method(self) -> Method:
        """The method that trained it."""
        return self.experiment.method

    @property
    def label(self) -> str:
        """What figures call this run: its method, with the variant or the base where it has one."""
        return self.method.label

    @property
    def seed(self) -> int | None:
        """The seed; None where another program trained the run and nobody said."""
        return seed_of(self.about, self.experiment.seed)

    @property
    def data_name(self) -> str:
        """Name of the dataset; `external_run.UNKNOWN` where the run was recorded without one."""
        named = self.experiment.task.dataset
        return str(self.about.get("told", {}).get("data", UNKNOWN)) if named == GIVEN else named

    def rounds(self) -> list[int]:
        """Indices of the rounds on disk, ascending; only those before the commit point."""
        done = self.committed
        found = (int(path.stem) for path in (self.folder / "rounds").glob(f"{'[0-9]' * 6}.safetensors"))
        return sorted(index for index in found if index < done)

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
        """What the run's files name it by, whatever the folder is called; "" in older recorded runs."""
        return links.identity(self.about)

    @property
    def head(self) -> str:
        """Link of the last complete round, which stands for all rounds before it; "" where there is none."""
        return round_headers.last_link(self.folder, self.committed)

    def round(self, index: int) -> Round:
        """The record of a round; negative indices count from the last complete one.

        Raises:
            LookupError: If the run has no such round, or its file is damaged or of another run.
        """
        chosen = self.require_round(index)
        chain.require_own(self.folder, f"rounds/{chosen:06d}.safetensors")
        return files.read_round(self.folder, chosen)

    def require_round(self, index: int) -> int:
        """Number of a round of the run; negative indices count from the last complete one.

        Raises:
            LookupError: If the run has no such round.
        """
        known = self.rounds()
        chosen = known[index] if -len(known) <= index < 0 else index
        if chosen not in known:
            have = f"{known[0]} to {known[-1]}" if known else "none"
            raise LookupError(f"run {self.name} has no round {index}; it has {have}.")
        return chosen

    def kept(self, what: str = "clients") -> list[int]:
        """Rounds that kept their "clients" or "globals"."""
        rounds, keep = self.experiment.rounds, self.experiment.keep
        keeps = keep.keeps_clients if what == "clients" else keep.keeps_globals
        return [index for index in self.rounds() if keeps(index, rounds)]

    @cached_property
    def dataset(self) -> Data:
        """Samples, labels and the partition over clients, as in training.

        Raises:
            ValueError: If the dataset is not the one that the run was trained on.
            LookupError: If the run was recorded without its data and no task is given.
        """
        if self.context.user_task is not None:
            return self.context.user_task.data
        if self.experiment.task.dataset == GIVEN:
            raise LookupError(
                f"run {self.name} was recorded without its data; give the task: drift.open(folder, task=task), or "
                "--task FILE.py:FUNCTION."
            )
        require_trusted(self.experiment.task.dataset, f"run {self.name} takes its data by")
        found = read_data(self.experiment, self.context.data)
        self._tell_changed(self.experiment.task.dataset)
        if found.fingerprint != self.about["fingerprint"]:
            raise ValueError(
                f"dataset {self.experiment.task.dataset} has fingerprint {found.fingerprint}, run {self.name} was "
                f"trained on {self.about['fingerprint']}; give the folder of the old data by --data."
            )
        return found

    @cached_property
    def task(self) -> Task:
        """The task with splits train, test and, where there is one, proxy.

        Raises:
            ValueError: If its model would be made by code of its own that is not trusted (`drift.plugins.trust`).
        """
        if self.context.user_task is not None:
            require_fit(self.context.user_task, self.about, self.name)
            found = self.context.user_task.task
        else:
            require_trusted(self.experiment.task.model, f"run {self.name} makes its model by")
            found = build_task(self.experiment, self.dataset, self.folder)
            self._tell_changed(self.experiment.task.model)
        return replace(found, metrics={**found.metrics, **{one.name: one.function for one in self.context.metrics}})

    @property
    def parts(self) -> list[np.ndarray]:
        """Sample numbers (into train) of each of the K clients, as the partition gave them."""
        return self.dataset.parts

    def parts_in(self, index: int) -> list[np.ndarray]:
        """Sample numbers (into train) that each of the K clients trains on in a round, K arrays.

        They differ from `parts` where the partition deals the cohort's data out anew in every round.

        Args:
            index: Number of the round, not negative.
        """
        return client_samples(self.experiment, self.dataset, index)[0]

    @property
    def labels(self) -> np.ndarray:
        """Class of every training sample, shape (n,)."""
        return self.dataset.labels

    def client_samples(self, client: int, index: int | None = None) -> Samples:
        """Training data of a client: those of round `index`, or those that the partition gave it."""
        parts = self.parts if index is None else self.parts_in(index)
        return self.task.samples["train"][torch.from_numpy(parts[client])]

    @property
    def setting(self) -> Setting:
        """What the method's hooks see."""
        engine = "batched" if self.about.get("engine") == "batched" else "serial"
        return Setting(self.task, self.experiment, self.task.samples.get("proxy"), engine)

    def client(self, index: int, client: int, *, replicate: int = 0) -> Client:
        """A client of a recorded round, ready to train again by `run.method.local`.

        Replicate 0 repeats the recorded training bit for bit; others draw fresh batches.

        Raises:
            LookupError: If the round kept no start, or the method's clients keep state that was not recorded.
        """
        return recorded_client(self, index, client, replicate)

    def trained(self, index: int) -> np.ndarray:
        """Clients that trained in round `index`: the cohort, or everyone where the experiment says so, ascending."""
        everyone = self.experiment.clients.train_all
        return np.arange(self.experiment.clients.number) if everyone else self.cohort(index)

    def cohort(self, index: int) -> np.ndarray:
        """Clients drawn in round `index`, shape (m,)."""
        clients = self.experiment.clients
        return cohort(self.experiment.seed, index, clients.number, clients.per_round)

    def state(self) -> tuple[State, int]:
        """Everything needed to go on, and the next round.

        Raises:
            LookupError: If the file is absent or damaged, or that of another run.
        """
        found = files.read_state(self.folder)
        chain.require_own(self.folder, files.STATE)
        return found

    def models(self, indices: list[int] | None = None) -> Tensor:
        """Global models after the given rounds (default: all kept), shape (R, d)."""
        indices = self.kept("globals") if indices is None else indices
        return torch.stack([self.round(index).kept("end") for index in indices])

    def metrics(self) -> xr.Dataset:
        """Every recorded number of every round, by name, over `round`; NaN where a round has none."""
        from drift.runs.metrics import recorded_metrics

        return recorded_metrics(self)

    def cached(self, analysis: Callable[..., xr.Dataset], **arguments: Any) -> xr.Dataset:
        """Result of `analysis(run, **arguments)`, computed once and kept in the run's folder.

        An analysis with a parameter `partial` fills a stored result further where it was stopped.

        Raises:
            TypeError: If the analysis has no such argument, or one is no number, text or list of these.
        """
        from drift.runs import cache

        return cache.cached(self, analysis, arguments)

    def with_data(self, data: Path | None) -> Run:
        """The same run with its datasets read from another folder."""
        return self._with(data=data)

    def with_progress(self, progress: Progress | None, announce: Announce | None = None) -> Run:
        """The same run, whose analyses report to `progress` how far they are, and to `announce` what they will cost."""
        return self._with(progress=progress, announce=announce)

    def with_measures(self, measures: Sequence[Measure]) -> Run:
        """The same run, whose planes and lines have further metrics."""
        return self._with(metrics=tuple(measures))

    def with_crew(self, crew: PointPool | None) -> Run:
        """The same run, whose planes and lines are computed by other processes."""
        return self._with(pool=crew)

    def _with(self, **changed: Any) -> Run:
        return replace(self, context=replace(self.context, **changed))
