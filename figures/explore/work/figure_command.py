"""The command line and the Python lines that draw a figure of the gallery."""

from __future__ import annotations

import json
import math
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from drift.runs.run import Run

OUT = Path("out/figures")
"""Folder of the files, as `fedscape figures draw` has it."""


@dataclass(frozen=True)
class FigureCommand:
    """A named figure of some runs.

    Args:
        figure: Name in the gallery (`fedscape figures list`).
        folders: Folders of the runs.
        options: Of the figure, by name.
        data: Folder of the datasets; None: as they are found.
        own_task: Whether the runs were opened with a task of the user's own, which the command line needs too.
    """

    figure: str
    folders: tuple[Path, ...]
    options: Mapping[str, Any]
    data: Path | None = None
    own_task: bool = False

    @classmethod
    def from_runs(cls, figure: str, runs: Sequence[Run], options: Mapping[str, Any]) -> FigureCommand:
        """The figure of open runs."""
        data = next((run.context.data for run in runs if run.context.data is not None), None)
        has_own_task = any(run.context.user_task is not None for run in runs)
        return cls(figure, tuple(run.folder for run in runs), dict(options), data, has_own_task)

    def command(self) -> str:
        """The command line that draws it."""
        words = ["fedscape", "figures", "draw", self.figure, *(_short(folder) for folder in self.folders)]
        if self.options:
            words += ["--set", *(f"{name}={toml_value(value)}" for name, value in self.options.items())]
        if self.data is not None:
            words += ["--data", str(self.data)]
        if self.own_task:
            words += ["--task", "FILE.py:FUNCTION"]
        return shlex.join(words)

    def python(self) -> str:
        """The Python lines that draw it."""
        more = "" if self.data is None else f", data={str(self.data)!r}"
        more += ', task="FILE.py:FUNCTION"' if self.own_task else ""
        opened = ", ".join(f"drift.open({_short(folder)!r}{more})" for folder in self.folders)
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        call = f"figures.draw({self.figure!r}, runs, {str(OUT)!r}{options})"
        return f"import drift\nimport figures\n\nruns = [{opened}]\n{call}\n"


def toml_value(value: Any) -> str:
    """A value as --set takes it: texts as they stand unless they would be read as something else.

    Raises:
        TypeError: If it is not a number, text, or list or table of these.
    """
    if isinstance(value, str):
        return value if _is_plain_text(value) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, float) and not math.isfinite(value):
        return "nan" if math.isnan(value) else f"{'-' if value < 0 else ''}inf"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, Mapping):
        return "{" + ", ".join(f"{json.dumps(str(name))} = {_quoted(item)}" for name, item in value.items()) + "}"
    if isinstance(value, list | tuple):
        return f"[{', '.join(map(_quoted, value))}]"
    raise TypeError(f"an option is a {type(value).__name__}; give a number, a text, or a list or table of these.")


def _quoted(value: Any) -> str:
    """A value inside a list or table, where texts have quotes."""
    return json.dumps(value, ensure_ascii=False) if isinstance(value, str) else toml_value(value)


def _is_plain_text(text: str) -> bool:
    """Whether --set takes a text as it stands: it is no TOML value and has no space around it."""
    try:
        tomllib.loads(f"value = {text}")
    except tomllib.TOMLDecodeError:
        return text == text.strip() != ""
    return False


def _short(folder: Path) -> str:
    """A folder as seen from the working directory if it is inside, else in full."""
    full = folder.resolve()
    return str(full.relative_to(Path.cwd())) if full.is_relative_to(Path.cwd()) else str(full)
