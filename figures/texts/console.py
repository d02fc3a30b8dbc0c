"""Output of the command line: data and tables on stdout, progress and messages on stderr."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

UNWRAPPED = 1_000_000
"""Columns of a pipe: more than any pair of texts has, so that each stays one line."""

Step = Callable[[float, str], None]
"""(steps done, note next to the bar) -> None."""

Stages = Callable[[int, int], None]
"""(done, total) of the current part of the work -> None."""


def say(text: str) -> None:
    """Print a message on stderr; a closed stderr is ignored."""
    try:
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def put(text: str) -> None:
    """Print a line of data on stdout."""
    sys.stdout.write(f"{printable(text)}\n")


def put_json(content: Any) -> None:
    """Print data as JSON on stdout; a number that is not finite becomes null."""
    put(json.dumps(_plain(content), indent=2))


def answer(lines: Iterable[object], content: Any, *, json: bool) -> None:
    """Print lines of data on stdout; for programs what they say, as JSON."""
    if json:
        put_json(content)
    for line in () if json else lines:
        put(str(line))


def table(
    rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], *, json: bool = False, empty: str = ""
) -> None:
    """Print rows as a table on stdout, or as JSON; in a pipe, each row is one line.

    Args:
        rows: One mapping per row.
        columns: Heading of each key shown; JSON has every key.
        json: Whether to write JSON instead.
        empty: Message on stderr if there is no row.
    """
    if json:
        put_json(list(rows))
    elif rows and (len(rows) >= MANY or not sys.stdout.isatty()):
        put("\n".join(_lines(rows, columns)))
    elif rows:
        _console(sys.stdout).print(rich_table(rows, columns))
    elif empty:
        say(empty)


MANY, WIDEST = 300, 120
"""Rows from which rich, which takes half a millisecond a row, writes no table; columns of a table aligned in a pipe."""


def _lines(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> list[str]:
    """The lines of `rich_table` as a pipe gets them; cells of wide ones with tabs between them."""
    from rich.cells import cell_len

    texts = [list(map(as_text, columns.values()))] + [[as_text(row.get(key)) for key in columns] for row in rows]
    widths = [max(map(cell_len, column)) for column in zip(*texts, strict=True)]
    if sum(widths) + 3 * len(widths) > WIDEST and not sys.stdout.isatty():
        return ["\t".join(cell.replace("\t", " ") for cell in cells) for cells in texts]
    numeric = [_numeric(rows, key) for key in columns]

    def line(cells: Sequence[str]) -> str:
        gaps = [" " * (width - cell_len(cell)) for width, cell in zip(widths, cells, strict=True)]
        padded = zip(gaps, cells, numeric, strict=True)
        return "   ".join(gap + cell if right else cell + gap for gap, cell, right in padded)

    rule = "\u2500" * (sum(widths) + 3 * (len(widths) - 1))
    return [line(texts[0]), rule, *map(line, texts[1:])]


def _numeric(rows: Sequence[Mapping[str, Any]], key: str) -> bool:
    return all(isinstance(row.get(key), int | float | None) for row in rows)


def rich_table(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> Table:
    """Rows as a table of rich."""
    from rich import box
    from rich.table import Table

    rows_table = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for key, heading in columns.items():
        justify: Literal["left", "right"] = "right" if _numeric(rows, key) else "left"
        rows_table.add_column(as_text(heading), justify=justify, overflow="fold")
    for row in rows:
        rows_table.add_row(*(as_text(row.get(key)) for key in columns))
    return rows_table


def on_stderr() -> Console:
    """A rich console on stderr."""
    return _console(sys.stderr)


def pairs(content: Mapping[str, Any]) -> None:
    """Print names and values on stdout, one pair per line; a pipe gets no space at their ends."""
    from rich.table import Table

    texts = {as_text(name): as_text(value) for name, value in content.items()}
    if not sys.stdout.isatty():
        width = max(map(len, texts), default=0)
        put("\n".join(f"{name:<{width}}  {value}".rstrip() for name, value in texts.items()))
        return
    grid = Table.grid(padding=(0, 2))
    for name, value in texts.items():
        grid.add_row(name, value)
    _console(sys.stdout).print(grid)


def as_text(value: Any) -> str:
    """A value as text for a table: lists joined by commas, missing values as a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(as_text, value))
    return printable(str(value)).replace("\n", "\N{REPLACEMENT CHARACTER}")


_STEERING = (
    *range(9),
    *range(11, 32),
    *range(127, 160),
    *range(0x200E, 0x2010),  # these and the next two turn the direction of what is read
    *range(0x202A, 0x202F),
    *range(0x2066, 0x206A),
    *(0x061C, 0x2028, 0x2029),
    *range(0xD800, 0xE000),  # bytes of a name that are no UTF-8, which cannot be written either
)
_CONTROLS = dict.fromkeys(_STEERING, "\N{REPLACEMENT CHARACTER}")


def printable(text: str) -> str:
    """A text without characters that control the terminal, as in names of files; line breaks and tabs stay."""
    return text.translate(_CONTROLS)


@contextmanager
def progress(label: str, total: float | None = None) -> Iterator[Step]:
    """Show a bar with the remaining time on stderr, if that is a terminal.

    Args:
        label: Name of the work.
        total: Number of steps; None if unknown: the bar then only shows activity.
    """
    with bars() as shown_bars:
        task = shown_bars.add_task(as_text(label), total=total, note="")

        def step(done: float, note: str = "") -> None:
            shown_bars.update(task, completed=done, note=as_text(note[:16]))

        yield step


@contextmanager
def stages(label: str) -> Iterator[Stages]:
    """Show a bar as `progress` does, for work whose parts report their sizes as they begin; it restarts with each part.

    Elapsed and remaining time are those of the part; the note numbers the parts from the second on.

    Args:
        label: Name of the work.
    """
    with bars() as shown_bars:
        task = shown_bars.add_task(as_text(label), total=None, note="")
        number, ended = 0, True

        def stage(done: int, total: int) -> None:
            nonlocal number, ended
            if ended:
                number += 1
                shown_bars.reset(task, total=total, note=f"part {number}" if number > 1 else "")
            shown_bars.update(task, completed=done, total=total)
            ended = done == total

        yield stage


@contextmanager
def bars() -> Iterator[Progress]:
    """Several bars at once; columns: label, bar, done of total, elapsed time, remaining time, note."""
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    console = _console(sys.stderr)
    columns = (
        TextColumn("{task.description}", markup=False),
        BarColumn(bar_width=12),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("left"),
        TimeRemainingColumn(compact=True),
        TextColumn("{task.fields[note]}", markup=False),
    )
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress_bars:
        yield progress_bars


def _console(stream: Any) -> Console:
    """A rich console; rich respects NO_COLOR, and lines are not wrapped in a pipe."""
    from rich.console import Console

    width = None if stream.isatty() else UNWRAPPED
    return Console(file=stream, highlight=False, markup=False, width=width, soft_wrap=False)


def _plain(value: Any) -> Any:
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if isinstance(value, Mapping):
        return {str(key): _plain(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(inner) for inner in value]
    if hasattr(value, "tolist"):
        return _plain(value.tolist())
    return value if isinstance(value, str | int | float | bool | None) else str(value)
