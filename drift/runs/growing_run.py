"""A run read without its models, and read on while it is trained."""

import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from math import isfinite
from threading import RLock
from typing import cast

import numpy as np
import xarray as xr

from drift.runs.metric_names import under_usual
from drift.runs.metrics import number_attributes
from drift.runs.run import Run
from drift.store import files, links, paths, round_headers
from drift.store.numpy_files import Damaged
from drift.store.round_headers import Header, read_small_arrays
from drift.store.round_record import Round

Stamp = tuple[paths.Stamp | None, ...]
"""Of run.json, state and folder of rounds, None where one is absent."""

_REMEDY = "See fedscape verify --repair."


LATEST = 20
"""Last rounds among which `GrowingRun.latest` looks for an evaluated one."""


@dataclass
class _Rounds:
    """What was read of the rounds, in their order."""

    stamp: Stamp | None = None
    description: paths.Stamp | None = None
    indices: list[int] = field(default_factory=list)
    columns: dict[str, list[float]] = field(default_factory=dict)
    damaged: dict[int, Damaged] = field(default_factory=dict)
    cohorts: list[str] = field(default_factory=list)
    link: str | None = ""
    head: str = ""
    lock: RLock = field(default_factory=RLock)


@dataclass(frozen=True)
class GrowingRun(Run):
    """A run whose rounds have no models, for analyses of its record: about 50 microseconds a round.

    `update` reads the rounds that were committed since the last call; between calls nothing changes. Each round is
    checked to be of this run and to follow the round before it, and the digest of what is read is compared.
    If it is `tolerant`, rounds after a damaged one are read too, and `damaged` has the reason of each.
    """

    tolerant: bool = False
    _rounds: _Rounds = field(default_factory=_Rounds, compare=False, repr=False)

    @property
    def committed(self) -> int:
        """Number of rounds up to the last one that was read."""
        return self._rounds.indices[-1] + 1 if self._rounds.indices else 0

    def rounds(self) -> list[int]:
        """Indices of the rounds that were read, ascending."""
        return list(self._rounds.indices)

    @property
    def damaged(self) -> dict[int, Damaged]:
        """Rounds that cannot be read, and why."""
        return dict(self._rounds.damaged)

    def round(self, index: int) -> Round:
        """Numbers, cohort and Gram matrix of a round; negative indices count from the last one.

        Raises:
            LookupError: If the run has no such round, or its file is damaged.
        """
        number = self.require_round(index)
        return self.named(Round.without_models(read_small_arrays(files.round_path(self.folder, number))))

    def without_models(self, indices: Sequence[int]) -> Iterator[Round]:
        """Records of rounds, as `round` returns them."""
        return (self.round(index) for index in indices)

    def listed_rounds(self) -> list[int]:
        """Indices of the committed rounds in the folder, ascending; none of them is read."""
        return self._listed()[1]

    def latest(self) -> dict[str, float]:
        """Numbers of the last committed round, and those of rounds before it that it lacks; no other round is read.

        Raises:
            LookupError: If a file is damaged.
        """
        numbers: dict[str, float] = {}
        on_disk = self.listed_rounds()
        for index in reversed(on_disk[-LATEST:]):
            recorded = read_small_arrays(files.round_path(self.folder, index)).numbers()
            fresh = under_usual(recorded, self.metric_names)
            numbers = {**{name: value for name, value in fresh.items() if isfinite(value)}, **numbers}
            if "accuracy" in numbers or "loss" in numbers:
                break
        return numbers | {"rounds": len(on_disk)}

    @property
    def head(self) -> str:
        """What names all rounds that were read; another one where the run has grown or is another run."""
        return self._rounds.head

    def number_names(self) -> list[str]:
        """Names of the numbers that any round has."""
        with self._rounds.lock:
            return sorted(under_usual(self._rounds.columns, self.metric_names))

    def numbers(self) -> xr.Dataset:
        """Every recorded number of every round that was read, by name, over `round`; NaN where a round has none.

        Beside the metrics these are what the method recorded as one number, such as gain or gamma.
        """
        with self._rounds.lock:
            indices = list(self._rounds.indices)
            columns = {name: np.array(values[: len(indices)]) for name, values in self._rounds.columns.items()}
        columns = under_usual(columns, self.metric_names)
        words = {name: number_attributes(name, self.loss_units) for name in sorted(columns)}
        values = {name: ("round", columns[name], about) for name, about in words.items()}
        return xr.Dataset(values, {"round": indices}, {"analysis": "numbers", "source": "recorded rounds"})

    def cohorts(self) -> dict[int, str]:
        """Digest of the clients of each round and their numbers of samples, by round: equal for equal cohorts."""
        with self._rounds.lock:
            return dict(zip(self._rounds.indices, self._rounds.cohorts, strict=True))

    def stamp(self) -> Stamp:
        """Inode, time and size of run.json, state and folder of rounds, None where one is absent.

        The second changes with every commit, the third also while a round is written, or if one is removed.
        """
        return tuple(paths.stamp(self.folder / name) for name in ("run.json", files.STATE, "rounds"))

    def update(self, most: int | None = None) -> int:
        """Read rounds that were committed since the last call; returns how many.

        Where the run is no longer the one that was read, as after training it anew, it is read from its first round.

        Args:
            most: Rounds to read at most; None: all.

        Raises:
            Damaged: If a file is absent, damaged, or belongs to another run. What was read before stays.
        """
        with self._rounds.lock:
            stamp = self.stamp()
            if stamp == self._rounds.stamp:
                return 0
            self._read_description()
            committed, on_disk = self._listed()
            if (self._rounds.damaged and self._rounds.stamp) or not self._continues(on_disk):
                self._forget()
            following = [index for index in on_disk if index >= self._following()]
            for index in following[:most]:
                self._require_before(index)
                try:
                    self._append(index, read_small_arrays(files.round_path(self.folder, index)))
                except Damaged as reason:
                    self._note(index, reason)
            if most is None or len(following) <= most:
                self._require_before(committed)
                self._rounds.stamp = stamp
            return len(following[:most])

    def forget_description(self) -> None:
        """Read run.json again when it is next asked for."""
        for name in ("about", "experiment"):
            vars(self).pop(name, None)

    def _listed(self) -> tuple[int, list[int]]:
        """Number of the next round, and the rounds in the folder before it."""
        committed = round_headers.following_round(self.folder)
        return committed, [index for index in round_headers.round_numbers(self.folder) if index < committed]

    def _read_description(self) -> None:
        """Drop what is derived from run.json where the file is another one."""
        path = self.folder / "run.json"
        stamp = paths.stamp(path)
        if stamp is None:
            raise Damaged(path, "is missing", f"Is {self.folder} still the folder of a run?")
        if stamp != self._rounds.description:
            identity = self.identity if "about" in vars(self) else ""
            self.forget_description()
            self._rounds.description = stamp
            if identity not in ("", self.identity):
                self._forget()

    def _continues(self, on_disk: list[int]) -> bool:
        """Whether the rounds on disk begin with those that were read."""
        read = self._rounds.indices
        if not read:
            return True
        if [index for index in on_disk if index <= read[-1] and index not in self._rounds.damaged] != read:
            return False
        link = self._rounds.link
        return link is None or read_small_arrays(files.round_path(self.folder, read[-1])).link == link

    def _note(self, index: int, reason: Damaged) -> None:
        if not self.tolerant:
            raise reason
        self._rounds.damaged[index], self._rounds.link = reason, None

    def _following(self) -> int:
        return max([-1, *self._rounds.indices[-1:], *self._rounds.damaged]) + 1

    def _append(self, index: int, small: Header) -> None:
        path, seen = files.round_path(self.folder, index), self._rounds
        what = small.misplaced(index) or small.foreign(self.identity)
        if what := what or ("" if seen.link is None else small.broken(seen.link)):
            raise Damaged(path, what, _REMEDY)
        for name, value in small.numbers().items():
            seen.columns.setdefault(name, [np.nan] * len(seen.indices)).append(value)
        for column in seen.columns.values():
            column.extend([np.nan] * (len(seen.indices) + 1 - len(column)))
        seen.cohorts.append(_cohort(small))
        seen.link, seen.head = small.link, links.head(seen.head, small.link)
        seen.indices.append(index)

    def _require_before(self, index: int) -> None:
        """Refuse a trained run that lacks a round before another; a recorded one may number its rounds with gaps."""
        for absent in [] if self.about.get("imported") else range(self._following(), index):
            self._note(absent, Damaged(files.round_path(self.folder, absent), "is missing", _REMEDY))

    def _forget(self) -> None:
        seen = self._rounds
        seen.indices, seen.columns, seen.damaged, seen.cohorts, seen.link, seen.head = [], {}, {}, [], "", ""


def recorded(run: Run, *, tolerant: bool = False) -> GrowingRun:
    """The record of a run, its rounds read; one that is a record already, or the file of a campaign, stays as it is."""
    if isinstance(run, GrowingRun) or run.folder.is_file():
        return cast(GrowingRun, run)
    record = GrowingRun(run.folder, run.context, tolerant)
    record.update()
    return record


def _cohort(small: Header) -> str:
    order = np.argsort(small.arrays["ids"], kind="stable")
    total = hashlib.sha256(small.arrays["ids"][order].tobytes())
    total.update(small.arrays["sizes"][order].tobytes())
    return total.hexdigest()[:16]
