"""Recorder of the rounds of any training loop; needs numpy, but not torch."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from drift.record.early_warning import Stop, StopRule, broken_share
from drift.record.flat_arrays import FlatArrays, State, Vectors, gram
from drift.record.recorded_files import RecordedFiles, read_description
from drift.record.round_arguments import number_clients, origin_of, require_unequal, round_numbers, whole_training
from drift.record.run_description import Clients, RecordedCohort, describe_run, describe_training, layout_entries
from drift.store import keep_rules
from drift.store.locks import locked
from landscape.results.atomic_write import clear
from landscape.results.notebook_table import notebook_table


class Recorder:
    """Records the rounds of another program in a folder, one call per round.

        recorder = Recorder("runs/mine", model)
        recorder.round(start=start, clients={0: (state_dict, 120), 7: (state_dict, 80)}, end=end, metrics={"loss": 0.4})

    `drift.open("runs/mine")` reads it like any run. A folder that has rounds already is continued. A process that is
    killed at any moment leaves complete rounds behind; only the round that it was writing is lost.

    Args:
        folder: Folder of the run.
        model: Module or state dict that has the layout; None: the first model that is recorded.
        parameters, buffers: Names of the parameters and of the floating buffers, if the rules of
            `drift.record.flat_arrays.FlatArrays.of` for state dicts do not fit.
        clients, globals: Policies by which rounds store client models, and global models: "all", "none",
            "every 10", "last 3", "first 2", "at 5 17", joined by commas.
        rounds: Number of rounds in total, which "last 3" needs.
        continuous: Whether the first round that is added to a folder must start at its last global model, so that a
            second training does not follow the first one unnoticed.
        name: Name of the run in lists and figures; None: the name of its folder.
        method, data, partition: Their names, such as "FedProx", "CIFAR-10", "Dirichlet(0.3)".
        seed: Seed of the training.
        settings: Other settings of the training by name: numbers, texts, lists, tables. Absent ones are "unknown".
        metrics: Names of the metrics of `round` by the usual name, such as {"accuracy": "test_acc"}.
        stop: "early warning", or a function of (number of a round, its numbers) that returns a reason to stop or None.
            The attribute `stopped` and `run.json` have the reason, also when the folder is reopened with `stop`.

    Raises:
        ValueError: If a policy cannot be read, rounds is not a number of rounds, or the folder has another kind of run
            or other policies.
        LookupError: If the folder is damaged.
    """

    def __init__(
        self,
        folder: str | Path,
        model: State | None = None,
        *,
        parameters: Sequence[str] | None = None,
        buffers: Sequence[str] | None = None,
        clients: str = "all",
        globals: str = "all",
        rounds: int | None = None,
        continuous: bool = True,
        name: str | None = None,
        method: str | None = None,
        data: str | None = None,
        partition: str | None = None,
        seed: int | None = None,
        settings: Mapping[str, Any] | None = None,
        metrics: Mapping[str, str] | None = None,
        stop: Stop | str | None = None,
    ) -> None:
        for policy in (clients, globals):
            keep_rules.require(policy)
            if rounds is None and keep_rules.counts_from_the_end(policy):
                raise ValueError(f"policy {policy!r} counts from the last round; give their number by rounds=N.")
        self.folder = Path(folder)
        self._names = (parameters, buffers)
        self._rounds = rounds = whole_training("rounds", rounds)
        self._keep = {"clients": clients, "globals": globals}
        training = describe_training(name, method, data, partition, seed, settings, metrics)
        about = read_description(self.folder, self._keep)
        recorded = about.get("told", {})
        for key, value in recorded.items():
            if training.get(key, value) != value:
                raise ValueError(
                    f"{self.folder} was recorded with {key} {value!r}, not {training[key]!r}; record elsewhere."
                )
        self._training = recorded | training
        self._files = RecordedFiles(self.folder, about)
        self._start_checked = not continuous or not self._files.next
        self._flat: FlatArrays | None = None
        self.stop_by(stop, rounds)
        if model is not None:
            self._layout(model)

    def __repr__(self) -> str:
        """One line: folder and number of rounds."""
        return f"Recorder({str(self.folder)!r}: {self.next} rounds)"

    def _repr_html_(self) -> str:
        """A small table for notebooks: rounds, policies, what was said about the training."""
        return notebook_table(repr(self), {"rounds": self.next, **self._keep, **self._training})

    @property
    def next(self) -> int:
        """Number of the next round."""
        return self._files.next

    def stop_by(self, stop: Stop | str | None, rounds: int | None) -> None:
        """Ask `stop` after each round of a training of `rounds`, first of those recorded; ValueError as above."""
        loss = self._training.get("metrics", {}).get("loss", "loss")
        self._rule = StopRule(stop, rounds, loss, self.folder)
        self.stopped = self._rule.reason

    def model(self) -> dict[str, np.ndarray]:
        """Parameters and floating buffers of the last global model by name, from which training continues.

        Raises:
            LookupError: If no round is recorded.
        """
        if not self.next:
            raise LookupError(f"{self.folder} has no round yet.")
        about, state = self._files.about, self._files.state
        theta, rest = (tuple((name, tuple(shape)) for name, shape in about[key]) for key in ("layout", "buffers"))
        return FlatArrays((), theta, rest).named(state["theta"], state["buffers"])

    def require_start(self, start: State) -> None:
        """Refuse a start of the next round other than the last global model; checked once, see `continuous`.

        Raises:
            ValueError: If it is another model.
        """
        theta, _ = self._layout(start).vectors(start)
        if not self._start_checked and not np.array_equal(theta, self._files.state["theta"]):
            raise ValueError(
                f"{self.folder} holds {self.next} rounds and this one does not begin where they ended; record into "
                "another folder, or continue from recorder.model()."
            )
        self._start_checked = True

    def round(
        self,
        *,
        clients: Clients,
        end: State,
        start: State | None = None,
        metrics: Mapping[str, float] | None = None,
        weights: Mapping[Any, float] | None = None,
        unequal: Mapping[Any, Mapping[str, Any]] | None = None,
        index: int | None = None,
    ) -> int:
        """Record a round; when this returns, it is on disk.

        A client whose model is not finite is excluded and listed in the round's `extras["excluded"]`. Tensors that a
        client did not send (by name) are recorded as it received them; such clients are listed in `extras["partial"]`.
        The recorded model of a client is the round's start plus the update that the server received.

        Args:
            clients: Model and number of samples by client. Whole numbers below 2^31 are client numbers; other names
                (texts, long numbers of nodes) are numbered in the order of first appearance, in `run.json`.
            end: The new global model.
            start: The model that the clients received; None: the last global model.
            metrics: Numbers of the round, such as loss (nats), error and accuracy (fractions) on test data.
            weights: Aggregation weights by client, scaled to sum 1 unless they give `end` as is; None: by samples.
            unequal: What differs by client: `start_round` (it trained from that start), `start` (that model, if not
                recorded), `steps`, `sent` (its model as decoded, if compressed, clipped or noised), `stopped` (True: it
                sent nothing, `clients` lacks it), `narrow` (True: smaller tensors are leading blocks; or `Narrow`).
            index: Number of the round; None: the next.

        Returns:
            The number of the round.

        Raises:
            ValueError: If an argument has another kind, a model of another layout, a global model not finite, or the
                first start is unknown or not where it ended.
            Busy: If another process writes the folder.
            OSError: If the disk is full; nothing is recorded then, and the call can be made again.
        """
        numbers = round_numbers(clients, end, start, metrics)
        with locked(self.folder):
            clear(self.folder, self.folder / "rounds")
            self._files.require_unchanged()
            number = self.next if index is None else index
            if number < self.next:
                raise ValueError(f"round {number} comes after round {self.next - 1} in {self.folder}; rounds ascend.")
            flat = self._layout(end if start is None else start)
            before = self._start(start, flat)
            after = flat.vectors(end)
            if not all(np.isfinite(array).all() for array in (*before, *after)):
                raise ValueError(f"round {number}: a global model is not finite; the round is not recorded.")
            stated = require_unequal(unequal or {}, clients, number)
            every = {**clients, **{client: () for client, what in stated.items() if what.get("stopped")}}
            ids, names = number_clients(every, self._files.about.get("names"), fresh=not self._files.about)
            origin = partial(origin_of, number, before, flat, self._files.start_of)
            cohort = RecordedCohort.from_clients(flat, clients, ids, before, after[0], weights, stated, origin)
            about = describe_run(
                self._files.about,
                flat,
                cohort,
                ids,
                names,
                rounds=max(number + 1, self._rounds or 1),
                keep=self._keep,
                training=self._training,
            )
            previous = self._files.state.get("previous", np.zeros_like(before[0]))
            tensors = self._stored_arrays(number, about["experiment"]["rounds"], before, after, cohort)
            tensors |= {"gram": gram(before[0], previous, after[0] - before[0], cohort.models - before[0]), **numbers}
            if len(cohort.ids):
                previous = cohort.shares.astype(before[0].dtype) @ (cohort.models - before[0])
            self._files.commit(number, about, tensors, {"theta": after[0], "buffers": after[1], "previous": previous})
            self.stopped = self.stopped or self._rule.ask(number, tensors, broken_share(after[1], flat.buffers))
            if self.stopped:
                self._files.describe({**self._files.about, "stopped": self.stopped})
        return number

    def _layout(self, model: State) -> FlatArrays:
        if self._flat is None:
            flat = FlatArrays.of(model, *self._names)
            if self._files.about and self._files.about["layout"] != layout_entries(flat.parameters):
                raise ValueError(f"{self.folder} was recorded with another model; record elsewhere.")
            self._flat = flat
        return self._flat

    def _start(self, start: State | None, flat: FlatArrays) -> Vectors:
        if start is not None:
            self.require_start(start)
            return flat.vectors(start)
        state = self._files.state
        if not state:
            raise ValueError("the first round needs start, the model that its clients received.")
        return state["theta"], state["buffers"]

    def _stored_arrays(
        self, number: int, rounds: int, before: Vectors, after: Vectors, cohort: RecordedCohort
    ) -> dict[str, np.ndarray]:
        """Arrays of a round; models where the policies store them."""
        arrays = cohort.numbers()
        clients = keep_rules.matches(self._keep["clients"], number, rounds)
        if clients or keep_rules.matches(self._keep["globals"], number, rounds):
            arrays |= {"start": before[0], "start_buffers": before[1], "end": after[0], "end_buffers": after[1]}
        if clients:
            arrays |= {"clients": cohort.models, "client_buffers": cohort.buffers}
            arrays |= {} if cohort.trained is None else {"extras.trained": cohort.trained}
        return arrays
