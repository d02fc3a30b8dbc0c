"""The runs that an explorer shows: opened when they are looked at, followed while they grow."""

import shlex
import threading
import time
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from itertools import islice, zip_longest
from pathlib import Path

from drift.runs.context import Context
from drift.runs.growing_run import GrowingRun, Stamp
from drift.runs.run import Run
from drift.runs.run import open as open_run
from drift.store import paths
from figures.explore.work.messages import one_line
from landscape.plugins import unknown

AT_A_TIME, MOST = 50, 12
"""Rounds of a run that are read before the next run has its turn, and runs that are selected to begin with."""

PROBLEMS = (LookupError, ValueError, OSError, TypeError, AttributeError)
"""What a damaged, foreign or vanished run raises; it becomes the run's one line."""


@dataclass
class Changes:
    """What changed since the last poll: names of runs."""

    added: set[str] = field(default_factory=set)
    grown: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    problems: set[str] = field(default_factory=set)


@dataclass
class _Open:
    """A run: where it is, and what of it is open."""

    folder: Path
    recorded: GrowingRun
    context: Context | None = None
    run: Run | None = None
    read: bool = False
    complete: bool = False
    problem: str = ""
    stamp: Stamp | None = None
    described: paths.Stamp | None = None


class OpenRuns:
    """Runs by name, which is the name of the folder, with the folder above it where two have one name.

    Args:
        places: Folders of runs, folders that contain such folders (also such as appear later), or runs.
        data: Folder of the datasets.
        task: Text that names a task for runs that were recorded without their data, as for `drift.open`.

    Raises:
        LookupError: If a place is a file, or no place exists.
    """

    def __init__(
        self, inputs: Sequence[str | Path | Run], *, data: Path | None = None, task: str | None = None
    ) -> None:
        self._data, self._task = data, task
        self._lock = threading.RLock()
        self._runs: dict[str, _Open] = {}
        self._known: set[Path] = set()
        self._paths = [Path(source) for source in inputs if not isinstance(source, Run)]
        self.folders = self._paths if task is None and len(self._paths) == len(inputs) else []
        _require_folders(self._paths, any(isinstance(source, Run) for source in inputs))
        for source in inputs:
            if isinstance(source, Run):
                self._add(source.folder, source)
        self.poll()

    @property
    def names(self) -> list[str]:
        """Names of all runs, also of those that vanished."""
        return list(self._runs)

    @property
    def none_yet(self) -> str:
        """What to do where there is no run yet."""
        folder = shlex.quote(str(self._paths[0])) if self._paths else "runs"
        train = f"fedscape train digits-shards2 --runs {folder}"
        return f"No run here yet. Train one ({train}): it appears here while it is trained."

    @property
    def suggested(self) -> list[str]:
        """Names of runs to begin with: of those that share task, clients and rounds, at most `MOST`, of all methods."""
        groups: dict[str, dict[str, list[str]]] = {}
        for name in self.names:
            try:
                experiment = self.described(name).experiment
            except PROBLEMS:
                continue
            shared = repr((experiment.task, experiment.clients, experiment.rounds, experiment.local.lr_decay))
            groups.setdefault(shared, {}).setdefault(experiment.method.label, []).append(name)
        largest = max(groups.values(), key=lambda methods: sum(map(len, methods.values())), default={})
        in_turn = (name for names in zip_longest(*largest.values()) for name in names if name is not None)
        return sorted(islice(in_turn, MOST), key=self.names.index)

    def run(self, name: str) -> Run:
        """The run, with models and data.

        Raises:
            LookupError: If there is no such run, or it is damaged or gone.
            ValueError: If a setting of it is not accepted.
        """
        entry = self._entry(name)
        with self._lock:
            described = paths.stamp(entry.folder / "run.json")
            if entry.run is None or entry.described not in (None, described):
                entry.run, entry.described = self._opened(entry), described
            return entry.run

    def recorded(self, name: str) -> GrowingRun:
        """The run without its models, read up to its last round; analyses of the record take it.

        Raises:
            LookupError: If there is no such run. One that is damaged or gone has the rounds that were read, and a
                `problem`.
        """
        entry = self._entry(name)
        if not entry.complete:
            self._read(entry)
        return entry.recorded

    def read_ahead(self, names: Sequence[str], seconds: float, few: int = AT_A_TIME) -> bool:
        """Read rounds of runs in turn, for about so many seconds; returns whether all of them are read."""
        ends = time.monotonic() + seconds
        waiting = [self._runs[name] for name in names if name in self._runs and not self._runs[name].complete]
        while waiting:
            for entry in waiting:
                self._read(entry, few)
            waiting = [entry for entry in waiting if not entry.complete]
            if time.monotonic() > ends:
                break
        return not waiting

    def described(self, name: str) -> GrowingRun:
        """The run without its models, of which settings and last numbers can be asked; it has the rounds read so far.

        Raises:
            LookupError: If there is no such run.
        """
        return self._entry(name).recorded

    def problem(self, name: str) -> str:
        """Why a run cannot be read further, in one line; empty if it can.

        Raises:
            LookupError: If there is no such run.
        """
        return self._entry(name).problem

    def poll(self) -> Changes:
        """Look at all folders, and read rounds that were committed since the last call, of runs that are shown."""
        changes = Changes()
        for folder in self._folders():
            if (name := self._add(folder)) is not None:
                changes.added.add(name)
        for name, entry in list(self._runs.items()):
            self._look(name, entry, changes)
        return changes

    def _look(self, name: str, entry: _Open, changes: Changes) -> None:
        """Notice what changed in the folder of a run; read on where it is shown."""
        before, problem, damaged = entry.stamp, entry.problem, entry.recorded.damaged
        entry.stamp = entry.recorded.stamp()
        if entry.stamp == before or before is None:
            return
        if entry.stamp[0] is None:
            entry.problem = f"run {name} is gone: {entry.folder} was deleted or moved. Put it back to see it again."
            changes.gone.add(name)
            return
        if entry.stamp[0] != before[0]:
            entry.run = None
            entry.recorded.forget_description()
        entry.problem = ""
        if entry.read:
            self._read(entry)
        if entry.stamp[:2] != before[:2]:
            changes.grown.add(name)
        if entry.problem != problem or entry.recorded.damaged.keys() != damaged.keys():
            changes.problems.add(name)

    def _read(self, entry: _Open, most: int | None = None) -> None:
        """Read what was committed since, at most so many rounds; where that fails, the problem says why."""
        entry.read = True
        try:
            read = entry.recorded.update(most)
            entry.complete = most is None or read < most
            _ = entry.recorded.experiment
            damaged = entry.recorded.damaged
            entry.problem = one_line(damaged[min(damaged)]) if damaged and not entry.recorded.rounds() else ""
        except PROBLEMS as reason:
            entry.problem = one_line(reason)
            entry.complete = True

    def _opened(self, entry: _Open) -> Run:
        if entry.context is not None:
            return Run(entry.folder, entry.context)
        with warnings.catch_warnings(record=True):  # runs of earlier versions say so where they are drawn
            warnings.simplefilter("always")
            return open_run(entry.folder, data=self._data, task=self._task)

    def _folders(self) -> Iterator[Path]:
        """Folders with a run.json: the places themselves, or those in them."""
        for entry in self._paths:
            if (entry / "run.json").is_file():
                yield entry
            elif entry.is_dir():
                yield from sorted(path.parent for path in entry.glob("*/run.json"))

    def _add(self, folder: Path, run: Run | None = None) -> str | None:
        """The name of a run that was not there yet; None if it was."""
        if folder in self._known:
            return None
        resolved = folder.resolve()
        with self._lock:
            self._known.add(folder)
            if any(entry.folder == resolved for entry in self._runs.values()):
                return None
            names = (resolved.name, f"{resolved.parent.name}/{resolved.name}", str(resolved))
            name = next(name for name in names if name not in self._runs)
            recorded = GrowingRun(resolved, Context() if run is None else run.context, tolerant=True)
            self._runs[name] = _Open(resolved, recorded, None if run is None else run.context, run)
            return name

    def _entry(self, name: str) -> _Open:
        if name not in self._runs:
            raise LookupError(unknown("run", name, self.names) if self.names else f"no run {name}: there is no run.")
        return self._runs[name]


def _require_folders(folders: Sequence[Path], others: bool) -> None:
    for folder in folders:
        if folder.exists() and not folder.is_dir():
            raise LookupError(f"{folder} is a file; give the folder of a run, or a folder that contains runs.")
    if folders and not others and not any(folder.exists() for folder in folders):
        raise LookupError(
            f"{', '.join(map(str, folders))} does not exist; give the folder of a run, or a folder that contains runs. "
            "Train one: fedscape train digits-shards2, or make some: fedscape demo."
        )
