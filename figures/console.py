"""What the command line says: data and tables on stdout, progress and messages on stderr."""

from __future__ import annotations

import json
import math
import os
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.console import Console
    from rich.progress import Progress
    from rich.table import Table

UNWRAPPED = 1_000_000
"""Columns of a pipe: more than any table has, so that each row stays one line."""

Step = Callable[[float, str], None]
"""(steps done, what to say beside the bar) -> None."""

Parts = Callable[[int, int], None]
"""(done, total) of the part of the work that goes on -> None."""


def say(text: str) -> None:
    """A message on stderr; where its reader has left, the work goes on without."""
    try:
        sys.stderr.write(f"{printable(text)}\n")
        sys.stderr.flush()
    except BrokenPipeError:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stderr.fileno())


def put(text: str) -> None:
    """A line of data on stdout."""
    sys.stdout.write(f"{printable(text)}\n")


def put_json(content: Any) -> None:
    """Data as JSON on stdout; a number that is not finite becomes null."""
    put(json.dumps(_plain(content), indent=2))


def table(
    rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str], *, json: bool = False, empty: str = ""
) -> None:
    """Rows as a table on stdout, or as JSON.

    Args:
        rows: One mapping a row.
        columns: Heading of each key shown; JSON has every key.
        json: Whether to write JSON instead.
        empty: What to say (on stderr) when there is no row.
    """
    if json:
        put_json(list(rows))
        return
    if not rows:
        if empty:
            say(empty)
        return
    _console(sys.stdout).print(drawn(rows, columns))


def drawn(rows: Sequence[Mapping[str, Any]], columns: Mapping[str, str]) -> Table:
    """Rows as a table that rich draws."""
    from rich import box
    from rich.table import Table

    found = Table(box=box.SIMPLE_HEAD, pad_edge=False, show_edge=False)
    for key, heading in columns.items():
        numeric = all(isinstance(row.get(key), int | float | None) for row in rows)
        found.add_column(shown(heading), justify="right" if numeric else "left", overflow="fold")
    for row in rows:
        found.add_row(*(shown(row.get(key)) for key in columns))
    return found


def on_stderr() -> Console:
    """A rich console on stderr."""
    return _console(sys.stderr)


def pairs(content: Mapping[str, Any]) -> None:
    """Names and values, one pair a line, on stdout."""
    from rich.table import Table

    drawn = Table.grid(padding=(0, 2))
    for name, value in content.items():
        drawn.add_row(shown(name), shown(value))
    _console(sys.stdout).print(drawn)


def shown(value: Any) -> str:
    """A value as text for a table; lists joined by commas, what is absent as a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return "-"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value))
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
    """A text in which names of files, runs and clients cannot steer the terminal; line breaks and tabs stay."""
    return text.translate(_CONTROLS)


@contextmanager
def progress(label: str, total: float | None = None) -> Iterator[Step]:
    """A bar on stderr with time left; on anything but a terminal, silence.

    Args:
        label: What is being done.
        total: Steps in all; None when it cannot be known: the bar only shows that something happens.
    """
    with bars() as shown_bars:
        task = shown_bars.add_task(shown(label), total=total, note="")

        def step(done: float, note: str = "") -> None:
            shown_bars.update(task, completed=done, note=shown(note[:16]))

        yield step


@contextmanager
def parts(label: str) -> Iterator[Parts]:
    """A bar like `progress` for work whose parts tell their size when they begin; it starts anew with each.

    Time spent and time left are those of the part; the note numbers the parts from the second on.

    Args:
        label: What is being done.
    """
    with bars() as shown_bars:
        task = shown_bars.add_task(shown(label), total=None, note="")
        number, whole = 0, True

        def part(done: int, total: int) -> None:
            nonlocal number, whole
            if whole:
                number += 1
                shown_bars.reset(task, total=total, note=f"part {number}" if number > 1 else "")
            shown_bars.update(task, completed=done, total=total)
            whole = done == total

        yield part


@contextmanager
def bars() -> Iterator[Progress]:
    """Several bars at once; columns: label, bar, done of total, time spent, time left, note."""
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
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as drawn:
        yield drawn


def _console(stream: Any) -> Console:
    """A rich console; NO_COLOR is honoured by rich, and a pipe gets lines of any length unwrapped."""
    from rich.console import Console

    terminal = stream.isatty()
    return Console(file=stream, highlight=False, markup=False, width=None if terminal else UNWRAPPED, soft_wrap=False)


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
