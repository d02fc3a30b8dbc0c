"""The files of a run: settings, rounds before the commit point, state."""

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from drift.config.method_values import State
from drift.plugins.reserved_names import UNKNOWN
from drift.runs import metric_names
from drift.runs.described_run import DescribedRun
from drift.store import chain, files, links, paths, round_headers, server_state
from drift.store.round_headers import read_small_arrays
from drift.store.round_record import Round
from landscape.results.notebook_table import notebook_table
from landscape.results.stated import state


@dataclass(frozen=True, repr=False)
class RunFiles(DescribedRun):
    """What is read from the folder of a run without its data and model.

    Args:
        folder: Folder of the run.
    """

    folder: Path

    def __repr__(self) -> str:
        """One line: method, dataset, seed (where stated), rounds, folder; the folder alone if it cannot be read."""
        try:
            method, data = (None if name == UNKNOWN else name for name in (self.label, self.data_name))
            words = f"{method or 'recorded'}{f' on {data}' if data else ''}"
            words += "" if self.seed is None else f", seed {self.seed}"
            return f"Run({words}: {len(self.rounds())} of {self.experiment.rounds} rounds, in {self.folder})"
        except (LookupError, ValueError, OSError) as problem:
            return f"Run({self.folder}: {problem})"

    def _repr_html_(self) -> str:
        """A small table for notebooks."""
        try:
            clients = self.experiment.clients
            partition = self.about["experiment"].get("clients", {}).get("partition", "")
            rows: dict[str, Any] = {"method": self.label, "dataset": self.data_name}
            rows["partition"] = ", ".join(map(str, partition.values())) if isinstance(partition, dict) else partition
            rows |= {"model": self.model_name, "clients": clients.number, "in a round": clients.per_round}
            rows |= {"seed": self.seed, "rounds": f"{len(self.rounds())} of {self.experiment.rounds}"}
            rows |= self.round(-1).metrics if self.committed else {}
        except (LookupError, ValueError, OSError):
            rows = {}
        return notebook_table(repr(self), rows)

    @property
    def name(self) -> str:
        """Name of the folder."""
        return self.folder.name

    @property
    def source(self) -> Path:
        """The file with the description."""
        return self.folder / "run.json"

    @cached_property
    def about(self) -> dict[str, Any]:
        """Content of run.json: experiment, versions, fingerprint of the data, layout.

        Raises:
            LookupError: If it is damaged, or contains no experiment.
        """
        about = files.read_json(path := self.source)
        if not isinstance(about.get("experiment"), dict):
            raise files.Damaged(path, "contains no experiment", "Read it with the version of fedscape that wrote it.")
        return about

    def rounds(self) -> list[int]:
        """Indices of the rounds before the commit point, ascending; one is missing only in a run of another program."""
        following = self.committed or round_headers.following_round(self.folder)
        return round_headers.complete_rounds(self.folder, following, gaps=bool(self.about.get("imported")))

    @property
    def committed(self) -> int:
        """Number of rounds that are complete.

        Raises:
            LookupError: If the state is damaged, or that of another run.
        """
        return 0 if not (self.folder / files.STATE).exists() else self._chain_of(files.STATE).following

    def _chain_of(self, *names: str) -> chain.Chain:
        """The chain of the run's files, of which these are as they should be."""
        known = chain.remembered(self.folder, *names)
        known.require(*names)
        return known

    @property
    def identity(self) -> str:
        """Name of the run in its files, independent of the folder's name."""
        return links.identity(self.about)

    @property
    def head(self) -> str:
        """What names all complete rounds, by their cohorts, weights, Gram matrices and metrics; "" for none.

        Raises:
            LookupError: If a round was altered, or is of another run, or the state is missing beside rounds.
        """
        known = chain.remembered(self.folder, check=True)
        if not known.following:
            round_headers.following_round(self.folder)
        return known.head()

    def round(self, index: int) -> Round:
        """The record of a round; negative indices count from the last complete one.

        Raises:
            LookupError: If the run has no such round, or its file is damaged or of another run.
        """
        number = self.require_round(index)
        self._chain_of(paths.round_file(number))
        return self.named(files.read_round(self.folder, number))

    def without_models(self, indices: Sequence[int]) -> Iterator[Round]:
        """Records of rounds on disk with their numbers, cohort, Gram matrix and small extras; no model is read.

        The digest of what is read is compared; that of the models is not, which `round` and `fedscape verify` do.

        Raises:
            LookupError: If a file is damaged or of another run.
        """
        for index in indices:
            path = files.round_path(self.folder, index)
            self._chain_of(paths.round_file(index))
            small = read_small_arrays(path)
            files.require_number(path, {"round": small.index}, index)
            yield self.named(Round.without_models(small))

    def numbers_of(self, indices: Sequence[int]) -> list[Mapping[str, float]]:
        """Recorded numbers of these rounds, by name."""
        return [record.metrics for record in self.without_models(indices)]

    @property
    def metric_names(self) -> dict[str, str]:
        """Recorded names of numbers by the usual name that they stand for, such as {"accuracy": "test_acc"}."""
        return {**metric_names.recorded(self.about), **metric_names.stated()}

    def named(self, record: Round) -> Round:
        """The record with its numbers under their usual names too (`metric_names`); its excluded clients are stated."""
        state({"read": record.index})
        self.state_excluded(record.index, record.extras.get("excluded", ()))
        return replace(record, metrics=metric_names.under_usual(record.metrics, self.metric_names))

    def state_excluded(self, index: int, clients: Iterable[Any]) -> None:
        """State clients that have no finite model in a round to the result that is computed (attribute `excluded`)."""
        if numbers := ", ".join(str(int(client)) for client in clients):
            state({"excluded": f"round {index} of {self.name}: client {numbers}"})

    def require_round(self, index: int) -> int:
        """Number of a round of the run; negative indices count from the last complete one.

        Raises:
            ValueError: If it is no whole number.
            LookupError: If the run has no such round.
        """
        if not isinstance(index, int | np.integer) or isinstance(index, bool):
            raise ValueError(f"round {index!r} of run {self.name}: give a whole number, such as 0 or -1.")
        if 0 <= index < self.committed and files.round_path(self.folder, index).is_file():
            return index
        rounds = self.rounds()
        number = rounds[index] if -len(rounds) <= index < 0 else index
        if not rounds:
            there = round_headers.uncommitted(self.folder) or "; train it first"
            raise LookupError(f"run {self.name} has no complete round{there}.")
        if number not in rounds:
            present = f"{rounds[0]} to {rounds[-1]}"
            raise LookupError(f"run {self.name} has no round {index}; it has {present}.")
        return number

    def keeps(self, index: int, what: str = "clients", *, least: int = 1) -> bool:
        """Whether a round stores "clients" or "globals".

        Args:
            index: Number of the round.
            what: Which of them.
            least: Fewest clients of the round, for "clients". Rounds of other programs differ in their number of
                clients; one in which no client replied stored none.
        """
        stored = super().keeps(index, what)
        if what != "clients" or (least < 2 and not self.about.get("imported")):
            return stored
        return stored and self.cohort_size(index) >= least

    def cohort_size(self, index: int) -> float:
        """Number of clients of a round; infinite where the file cannot be read, so that reading it says why."""
        if index not in self._cohort_sizes:
            header = round_headers.read_round(self.folder, index)
            self._cohort_sizes[index] = math.inf if header is None else len(header.arrays["ids"])
        return self._cohort_sizes[index]

    @cached_property
    def _cohort_sizes(self) -> dict[int, float]:
        return {}

    def state(self) -> tuple[State, int]:
        """Everything needed to resume, with the states of all clients in memory, and the next round.

        Raises:
            LookupError: If a file is absent or damaged, or that of another run.
        """
        stored = self.stored_state()
        return stored.tensors | stored.clients.tensors(), stored.next

    def stored_state(self) -> server_state.StoredState:
        """Everything needed to resume; states of clients in files of their own are read when they are used.

        Raises:
            LookupError: If a file is absent or damaged, or that of another run.
        """
        stored = server_state.read(self.folder)
        self._chain_of(files.STATE)
        return stored
