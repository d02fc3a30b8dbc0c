"""The runs that a command line names: the options that say where they are, and their opening."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cyclopts import Parameter

from figures.commands.options import Data, Runs, Task
from figures.texts import console

if TYPE_CHECKING:
    from drift.runs.run import Run


@Parameter(name="*")
@dataclass(frozen=True)
class RunSource:
    """Where runs, their data and their task are."""

    runs: Runs = Path("runs")
    data: Data = None
    task: Task = None

    def open(self, text: str) -> Run:
        """The run with this path, name or beginning of a name."""
        from drift.runs.run_names import find

        return self._opened(find(self.runs, text))

    def open_all(self, texts: Sequence[str], left_out: list[str] | None = None) -> list[Run]:
        """Runs by path, name or beginning of a name; a folder of runs stands for all of them that can be read.

        Args:
            left_out: Collects a line on each one that is left out; then the numbers of every round have to be read.

        Raises:
            LookupError: If there is none, or one that is named itself cannot be read.
        """
        from drift.runs.run_names import find

        inside = {text: inside_of(Path(text)) for text in texts}
        folders = {text: find(self.runs, text) for text in texts if not inside[text]}
        by_folder: dict[str, Run] = {}
        for text in texts:
            opened_here = self._readable(inside[text], left_out) if inside[text] else [self._opened(folders[text])]
            _ = [run.metrics() for run in opened_here if left_out is not None]
            by_folder |= {str(run.folder.resolve()): run for run in opened_here}
        return list(by_folder.values())

    def select(self, texts: Sequence[str]) -> Sequence[Run]:
        """Runs as in `open_all`; with a folder of runs or files of a campaign, `AnyOf` these with the others required.

        Raises:
            LookupError: If there is none.
        """
        folders = [text for text in texts if inside_of(Path(text)) or Path(text).is_file()]
        opened_runs = self.open_all(texts)
        if not folders:
            return opened_runs
        from figures.gallery import AnyOf

        named = {run.folder.resolve() for run in self.open_all([text for text in texts if text not in folders])}
        return AnyOf(opened_runs, [run for run in opened_runs if run.folder.resolve() in named])

    def _opened(self, folder: Path) -> Run:
        from figures.selection.open_runs import open_run

        return open_run(folder, data=self.data, task=self.task)

    def _readable(self, folders: Sequence[Path], left_out: list[str] | None) -> list[Run]:
        """The runs of a folder of runs; each one that cannot be read is named, with the reason, and left out.

        Raises:
            LookupError: If none can be read.
        """
        readable_runs = []
        for folder in folders:
            try:
                run = self._opened(folder)
                _ = run.experiment, run.rounds(), left_out is None or run.metrics()
            except (LookupError, ValueError, OSError) as reason:
                line = f"{folder.name}: left out, it cannot be read: {' '.join(str(reason).split())}"
                console.say(line)
                if left_out is not None:
                    left_out.append(line)
            else:
                readable_runs.append(run)
        if not readable_runs:
            raise LookupError(f"no run in {folders[0].parent} can be read.")
        return readable_runs


def inside_of(folder: Path) -> list[Path]:
    """The runs in a folder of runs, or the files of a campaign in a folder of files; else none."""
    runs = sorted(path.parent for path in folder.glob("*/run.json"))
    return runs or ([] if (folder / "run.json").exists() else sorted(folder.glob("*-s[0-9]*-*.json")))


HERE = RunSource()
"""The folder runs/, data and task as recorded."""
