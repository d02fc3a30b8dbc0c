"""Where a run is, small enough to send to another process, and the runs that a process has open."""

from __future__ import annotations

import threading
from collections import OrderedDict
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

import torch

from drift.runs.run import Run
from drift.runs.run import open as open_run
from drift.store.paths import Stamp, stamp
from drift.training.data import Data
from landscape.model.samples import leaves

OPEN = 6
"""Runs that a process keeps open with their data, those used last."""

_LOCAL: dict[int, Run] = {}
_NUMBERS = count()


@dataclass(frozen=True)
class Address:
    """Where a run is.

    Args:
        folder: Folder of the run.
        data: Folder of the datasets, or None.
        local: Number of a run that only this process can open: it has a task or metrics of the user's own.
    """

    folder: Path
    data: Path | None = None
    local: int | None = None

    @classmethod
    def from_run(cls, run: Run) -> Address:
        """The address of a run."""
        if run.context.user_task is None and not run.context.metrics:
            return cls(run.folder.resolve(), run.context.data)
        number = next((number for number, known in _LOCAL.items() if known is run), None)
        if number is None:
            _LOCAL[number := next(_NUMBERS)] = run
        return cls(run.folder.resolve(), run.context.data, number)

    def run(self) -> Run:
        """The run, with the data that earlier calls of this process have read.

        Raises:
            LookupError: If there is no run any more, or it is damaged.
        """
        return _LOCAL[self.local] if self.local is not None else _OPENED.run(self)


class _Opened:
    """Runs by address and version of their description; equal samples of two runs are stored once."""

    def __init__(self) -> None:
        self._runs: OrderedDict[tuple[Address, Stamp], Run] = OrderedDict()
        self._lock = threading.Lock()

    def run(self, address: Address) -> Run:
        if (stated := stamp(address.folder / "run.json")) is None:
            raise LookupError(f"run {address.folder.name} no longer exists.")
        key = (address, stated)
        with self._lock:
            if key not in self._runs:
                self._runs[key] = open_run(address.folder, data=address.data)
            self._runs.move_to_end(key)
            while len(self._runs) > OPEN:
                self._runs.popitem(last=False)
            return self._runs[key]

    def share_data(self, run: Run) -> None:
        """Read the data of a run; samples that another open run has too are those of the other."""
        with self._lock:
            if "dataset" in run.__dict__:
                return
            data = run.dataset
            others = (other.__dict__.get("dataset") for other in self._runs.values() if other is not run)
            twin = next((other for other in others if other is not None and _same_samples(data, other)), None)
            if twin is not None:
                run.__dict__["dataset"] = replace(data, samples=twin.samples)


def share_data(run: Run) -> None:
    """Read the data of a run once; equal samples of the runs that this process has open are stored once."""
    _OPENED.share_data(run)


_OPENED = _Opened()


def _same_samples(first: Data, other: Data) -> bool:
    """Whether two runs have equal samples in every split."""
    if first.fingerprint != other.fingerprint or first.samples.keys() != other.samples.keys():
        return False
    pairs = [(first.samples[split], other.samples[split]) for split in first.samples]
    return all(
        len(mine) == len(theirs)
        and torch.equal(mine.targets, theirs.targets)
        and all(torch.equal(*leaf) for leaf in zip(leaves(mine.inputs), leaves(theirs.inputs), strict=True))
        for mine, theirs in pairs
    )
