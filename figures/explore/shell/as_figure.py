"""What a view shows as a named figure: the command line and the Python lines that draw it, and its files."""

from __future__ import annotations

import json
import math
import shlex
import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drift.runs.run import Run
from figures import gallery

OUT = Path("out/figures")
"""Folder of the files, as `fedscape figures draw` has it."""


@dataclass(frozen=True)
class Request:
    """A named figure of some runs.

    Args:
        figure: Name in the gallery (`fedscape figures list`).
        folders: Folders of the runs.
        options: Of the figure, by name; those that are None are left out.
        data: Folder of the datasets; None: as they are found.
        own_task: Whether the runs were opened with a task of the user's own, which the command line needs too.
        title: What it shows, in words; by default the figure's name.
        opened: The runs themselves, where they are open.
    """

    figure: str
    folders: tuple[Path, ...]
    options: Mapping[str, Any] = field(default_factory=dict)
    data: Path | None = None
    own_task: bool = False
    title: str = ""
    opened: tuple[Run, ...] = field(default=(), compare=False, repr=False)

    @classmethod
    def from_runs(cls, figure: str, runs: Run | Sequence[Run], *, title: str = "", **options: Any) -> Request:
        """The figure of open runs.

        Args:
            figure: Name in the gallery.
            runs: One run or several.
            title: What it shows, in words.
            options: Of the figure; None for its default.
        """
        several = [runs] if isinstance(runs, Run) else list(runs)
        stated = {name: _plain(value) for name, value in options.items() if value is not None}
        data = next((run.context.data for run in several if run.context.data is not None), None)
        has_own_task = any(run.context.user_task is not None for run in several)
        return cls(figure, tuple(run.folder for run in several), stated, data, has_own_task, title, tuple(several))

    @property
    def stem(self) -> str:
        """What its files are called, without suffix."""
        return gallery.file_stem(self.figure)

    def command(self, out: Path = OUT) -> str:
        """The command line that draws it."""
        words = ["fedscape", "figures", "draw", self.figure, *(_short(folder) for folder in self.folders)]
        if self.options:
            words += ["--set", *(f"{name}={toml_value(value)}" for name, value in self.options.items())]
        if self.data is not None:
            words += ["--data", str(self.data)]
        if self.own_task:
            words += ["--task", "FILE.py:FUNCTION"]
        if out != OUT:
            words += ["--out", str(out)]
        return shlex.join(words)

    def python(self, out: Path = OUT) -> str:
        """The Python lines that draw it."""
        more = "" if self.data is None else f", data={str(self.data)!r}"
        more += ', task="FILE.py:FUNCTION"' if self.own_task else ""
        opened = ", ".join(f"drift.open({_short(folder)!r}{more})" for folder in self.folders)
        options = "".join(f", {name}={value!r}" for name, value in self.options.items())
        lines = [
            "import drift",
            "import figures",
            "",
            f"runs = [{opened}]",
            f"figures.draw({self.figure!r}, runs, {str(out)!r}{options})",
        ]
        return "\n".join(lines) + "\n"


def draw(runs: Sequence[Run], request: Request, folder: Path) -> list[Path]:
    """Files of a figure, of runs that are open; a function of a module, for worker processes.

    Raises:
        ValueError, LookupError: If the runs do not allow the figure.
    """
    from figures.pictures.draw_files import draw as draw_files

    return draw_files(request.figure, runs, folder, **request.options)


def toml_value(value: Any) -> str:
    """A value as --set takes it: texts as they stand unless they would be read as something else.

    Raises:
        TypeError: If it is no number, text, or list or table of these.
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


def _plain(value: Any) -> Any:
    """Numbers of numpy as those of Python, tuples and arrays as lists."""
    value = value.tolist() if hasattr(value, "tolist") else value
    return [_plain(item) for item in value] if isinstance(value, list | tuple) else value


def _short(folder: Path) -> str:
    """A folder as seen from the working directory if it is inside, else in full."""
    full = folder.resolve()
    return str(full.relative_to(Path.cwd())) if full.is_relative_to(Path.cwd()) else str(full)
