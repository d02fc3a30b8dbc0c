"""A figure of the gallery of some runs, as a file, with the command line and the Python lines that draw it."""

import base64
import tempfile
from collections.abc import Sequence
from typing import Any

from drift.runs.run import Run
from figures import gallery
from figures.explore.ask import Ask
from figures.explore.work.figure_command import FigureCommand

FORMATS = ("svg", "pdf", "png", "csv")


def draw(
    ask: Ask, figure: str, runs: list[str], options: dict[str, Any] | None = None, format: str = "svg"
) -> dict[str, Any]:
    """Draw a figure.

    Args:
        figure: Name in the gallery.
        runs: Names of runs.
        options: Of the figure, as `fedscape figures draw --set` takes them.
        format: svg, pdf, png, or csv for its numbers.

    Returns:
        svg (text), or base64 of the file; name of the file, alt, caption, command and python.

    Raises:
        ValueError, LookupError: If there is no such figure or format, or the runs do not allow it.
    """
    if figure not in gallery.names():
        gallery.require(figure)
        raise ValueError(f"{figure} is code of its own; draw it by fedscape figures draw.")
    if format not in FORMATS:
        raise ValueError(f"format is {format!r}; give {', '.join(FORMATS)}.")
    if reserved := sorted({"folder", "stem", "formats", "name", "runs"} & {*(options or {})}):
        raise ValueError(f"{reserved[0]} is not an option of a figure.")
    opened = [ask.run(name) for name in runs]
    if not opened:
        raise LookupError("no run is given; tick one.")
    about = FigureCommand.from_runs(figure, opened, options or {})
    value: dict[str, Any] = ask.long(draw_file, opened, figure, options or {}, format, title=f"figure {figure}")
    return {**value, "command": about.command(), "python": about.python()}


def draw_file(runs: Sequence[Run], figure: str, options: dict[str, Any], format: str) -> dict[str, Any]:
    """The file; in a process of its own."""
    from figures.pictures.draw_files import draw as draw_files

    with tempfile.TemporaryDirectory() as folder:
        paths = draw_files(figure, runs, folder, formats=("svg",) if format == "csv" else (format,), **options)
        stem = gallery.file_stem(figure)
        read = lambda name: next((path.read_text(encoding="utf-8") for path in paths if path.name == name), "")  # noqa: E731
        (file,) = (path for path in paths if path.name == f"{stem}.{format}")
        content = file.read_bytes()
        texts = {"caption": read(f"{stem}.txt").strip(), "alt": read(f"{stem}.alt.txt").strip(), "name": file.name}
    shown = {"svg": content.decode()} if format == "svg" else {"base64": base64.b64encode(content).decode("ascii")}
    return {**texts, **shown}
