"""The scene of a page: sent once as far as it is read, then what changed of it, while runs are read and grow."""

import contextlib
import threading
import time
from collections.abc import Callable, Hashable
from typing import Any

from drift.runs.growing_run import GrowingRun
from figures.explore.answers.run_entry import entry_of, last_mean, unread_entry
from figures.explore.work import first_scene
from figures.explore.work.messages import one_line
from figures.explore.work.open_runs import PROBLEMS, Changes, OpenRuns
from figures.explore.work.record_numbers import known, number
from figures.page.scene import SERIES, scene
from figures.selection.groups import groups, settings, told_apart

AT_FIRST, AT_A_TIME, FEW = 0.4, 1.5, 10
"""Seconds for which rounds are read before the scene is sent, and between two messages on what is read further; rounds
of a run that are read before those of the next one."""


class ChangedScene:
    """What a page shows of all runs.

    Args:
        runs: The open runs.
        push: Sends ("scene", changes): runs (entries that changed), keys (of all runs, in order), problems, and other
            fields of the scene that changed.
        closed: Set when the page is closed.
    """

    def __init__(self, runs: OpenRuns, push: Callable[[str, Any], None], closed: threading.Event) -> None:
        self._runs, self._push, self._closed = runs, push, closed
        self._lock = threading.Lock()
        self._sent: dict[str, dict[str, Any]] | None = None
        self._about: dict[str, Any] = {}
        self._details: dict[Hashable, dict[str, Any]] = {}
        self._before: dict[Hashable, dict[str, Any]] = {}
        self._reader: threading.Thread | None = None

    def value(self) -> dict[str, Any]:
        """The whole scene, as far as it is read within a moment; the rest is pushed."""
        self._runs.read_ahead(self._in_turn(), AT_FIRST, FEW)
        with self._lock:
            content = self._scene()
            self._remember(content)
        self._read_on()
        return content

    def grown(self, changes: Changes) -> None:
        """Send what changed, where the page has the scene already."""
        self._tell()
        self._read_on()

    def _in_turn(self) -> list[str]:
        """Names of all runs, those first that a page begins with."""
        return list(dict.fromkeys([*self._runs.suggested, *self._runs.names]))

    def _scene(self) -> dict[str, Any]:
        runs = self._runs
        records: dict[str, GrowingRun | None] = dict.fromkeys(runs.names)
        for name in records:
            with contextlib.suppress(*PROBLEMS):
                records[name] = runs.described(name)
        usable = [run for name, run in records.items() if run is not None and _is_usable(run)]
        names = {run.folder: name for name, run in records.items() if run is not None}
        damaged = [run for run in usable if runs.problem(names[run.folder]) or run.damaged]
        sound = [run for run in usable if run not in damaged]  # a damaged seed does not cut the rounds of the others
        grouped = groups(sound) if sound else {}
        grouped |= {f"{name}, damaged": group for name, group in groups(damaged).items()} if damaged else {}
        self._before, self._details = self._details, {}
        content = scene(grouped, lambda name, group: self._detail(group, names), last_mean)
        shown = {member["name"] for entry in content["runs"] for member in entry["names"]}
        content["runs"] += [
            unread_entry(name, run, runs.problem(name)) for name, run in records.items() if name not in shown
        ]
        places = [runs.described(entry["names"][0]["name"]).folder for entry in content["runs"]]
        labels = told_apart([entry["label"] for entry in content["runs"]], places)
        content["runs"] = [{**entry, "label": label} for entry, label in zip(content["runs"], labels, strict=True)]
        suggested = set(runs.suggested)
        first = [entry["key"] for entry in content["runs"] if suggested & {member["name"] for member in entry["names"]}]
        problems = [line for name in runs.names if (line := runs.problem(name))]
        return {**content, "suggested": first, "none_yet": "" if runs.names else runs.none_yet, "problems": problems}

    def _detail(self, group: Any, names: Any) -> dict[str, Any]:
        """Of a group; it is made anew where a run has grown, or more of it is known."""
        states = tuple((run.folder, run.identity, run.head, run.stamp(), len(known(run))) for run in group)
        key = states, tuple((self._runs.problem(names[run.folder]), *run.damaged) for run in group)
        if key in self._before:
            self._details[key] = self._before[key]
        else:
            try:
                self._details[key] = entry_of(group, names, self._runs.problem)
            except PROBLEMS as reason:  # a file was damaged or removed meanwhile
                name = names[group[0].folder]
                problem = self._runs.problem(name) or one_line(reason)
                return {**unread_entry(name, group[0], problem), "rounds": group[0].rounds()}
        return self._details[key]

    def _remember(self, content: dict[str, Any]) -> None:
        self._sent = {entry["key"]: entry for entry in content["runs"]}
        self._about = {name: value for name, value in content.items() if name != "runs"}

    def _tell(self) -> None:
        """Send the entries that changed."""
        with self._lock:
            if (before := self._sent) is None:
                return
            about, content = self._about, self._scene()
            keys = [entry["key"] for entry in content["runs"]]
            changed = [entry for entry in content["runs"] if before.get(entry["key"]) != entry]
            self._remember(content)
            if changed or keys != [*before]:
                others = {name: value for name, value in self._about.items() if about[name] != value}
                self._push("scene", {**others, "runs": changed, "keys": keys, "problems": content["problems"]})

    def _read_on(self) -> None:
        """Read what is not read yet, in a thread of its own."""
        if self._reader is None or not self._reader.is_alive():
            self._reader = threading.Thread(target=self._read, name="explore-reader", daemon=True)
            self._reader.start()

    def _read(self) -> None:
        """Read one run after the other, then what their records give, and send what is there from time to time."""
        names, sent_at = self._in_turn(), time.monotonic()
        folders = self._runs.folders
        before = first_scene.identity(folders)
        for compute in (False, True):
            for name in names:
                if self._closed.is_set():
                    return
                run = self._runs.recorded(name)
                if compute and _is_usable(run):
                    _compute(run)
                if time.monotonic() - sent_at > AT_A_TIME:
                    self._tell()
                    sent_at = time.monotonic()
        self._tell()
        if folders:
            with self._lock:
                content = self._scene()
            first_scene.store_scene(folders, before, content)


def _compute(run: GrowingRun) -> None:
    """Compute the numbers of the time line that a run has."""
    for quantity in (*SERIES, "coherence"):
        with contextlib.suppress(*PROBLEMS):  # a run without this number
            number(run, quantity)


def _is_usable(run: GrowingRun) -> bool:
    """Whether a run has a round and its settings can be read."""
    try:
        return bool(run.rounds()) and run.require_round(-1) >= 0 and bool(settings(run))
    except PROBLEMS:
        return False
