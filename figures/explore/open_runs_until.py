"""Stand-in until open_runs.py lands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path

from drift.runs.run import Run
from drift.runs.run import open as open_run


@dataclass
class Changes:
    """What changed since the poll before."""

    added: set[str] = field(default_factory=set)
    grown: set[str] = field(default_factory=set)
    gone: set[str] = field(default_factory=set)
    problems: set[str] = field(default_factory=set)


class OpenRuns:
    """Runs of folders."""

    def __init__(self, folders: Sequence[Path]) -> None:
        inner = [path.parent for folder in folders for path in sorted(Path(folder).glob("*/run.json"))]
        self._folders = {
            path.name: path for path in [*inner, *(Path(f) for f in folders if (Path(f) / "run.json").exists())]
        }
        self._open: dict[str, Run] = {}

    @property
    def names(self) -> list[str]:
        """Names of the runs."""
        return list(self._folders)

    def run(self, name: str) -> Run:
        """The run of that name."""
        if name not in self._folders:
            raise LookupError(f"no run {name} here.")
        return self._open.setdefault(name, open_run(self._folders[name]))

    def problem(self, name: str) -> str:
        """Why it cannot be read."""
        return ""

    def poll(self) -> Changes:
        """What changed since the poll before."""
        return Changes()
