"""fedscape analyse of several rounds or runs: their choice, their table and their files."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures.texts import console

if TYPE_CHECKING:
    import xarray as xr

    from drift.runs.run import Run
    from drift.runs.user_task import UserMetric

MOST = 4
"""Numbers of a result that the table shows."""


@dataclass(frozen=True)
class RunRound:
    """One result: its run, and its round (None: the analysis takes none)."""

    run: Run
    round: int | None

    @property
    def options(self) -> dict[str, int]:
        """The option that says the round."""
        return {} if self.round is None else {"round": self.round}

    def measured(self, measures: Sequence[UserMetric]) -> RunRound:
        """The same with further metrics."""
        return RunRound(self.run.with_measures(measures), self.round)

    def path(self, pattern: Path) -> Path:
        """The file of this result, by a name with {run} and {round}."""
        return Path(str(pattern).replace("{run}", self.run.name).replace("{round}", str(self.round)))


def result_addresses(runs: Sequence[Run], rounds: Sequence[str] | None, function: Callable[..., Any]) -> list[RunRound]:
    """The results that were asked for.

    Args:
        runs: The runs.
        rounds: "all", "kept" (rounds with client models), numbers, or FIRST:LAST; None: the analysis says which.
        function: The analysis.

    Raises:
        ValueError: If the analysis takes no round, or a text is none of these.
        LookupError: If a run has no such round, or none at all.
    """
    if rounds is None:
        return [RunRound(run, None) for run in runs]
    name, accepted = function.__name__, inspect.signature(function).parameters
    if "round" not in accepted:
        several = "choose its rounds by --set rounds=[0,5]" if "rounds" in accepted else "it covers the whole run"
        raise ValueError(f"{name} is not an analysis of one round; leave --rounds out: {several}.")
    return [RunRound(run, index) for run in runs for index in _indices(run, rounds)]


def _indices(run: Run, texts: Sequence[str]) -> list[int]:
    indices: set[int] = set()
    for text in texts:
        first, colon, last = text.partition(":")
        if text == "all":
            indices |= set(run.rounds())
        elif text == "kept":
            indices |= set(run.kept("clients"))
        elif colon:
            low, high = (_number(end, text) if end else None for end in (first, last))
            every = run.rounds()
            indices |= {index for index in every if (low or 0) <= index <= (every[-1] if high is None else high)}
        else:
            indices.add(run.require_round(_number(text, text)))
    if not indices:
        rounds, with_clients = run.rounds(), len(run.kept("clients"))
        has = f"{rounds[0]} to {rounds[-1]}, and client models of {with_clients or 'none'}" if rounds else "no rounds"
        raise LookupError(f"--rounds {' '.join(texts)} chooses no round of run {run.name}; it has {has}.")
    return sorted(indices)


def _number(text: str, asked: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise ValueError(
            f"--rounds {asked} cannot be read; give all, kept (rounds whose client models are stored), numbers such as "
            "0 10 -1, or FIRST:LAST."
        ) from None


def require_names(asked: Sequence[RunRound], out: Path) -> None:
    """Refuse a name of files that several results would share.

    Raises:
        ValueError: If {run} or {round} is missing in the name.
    """
    if len({address.path(out) for address in asked}) == len(asked):
        return
    several = len({address.run.name for address in asked}) > 1
    words = ["{run}"] * several + ["{round}"] * (len({address.round for address in asked}) > 1)
    example = out.with_name(f"{'-'.join([out.stem, *words])}{out.suffix}")
    raise ValueError(f"{len(asked)} results cannot share the file {out}; name it by {' and '.join(words)}: {example}.")


def row(address: RunRound, result: xr.Dataset | None, error: Exception | None) -> dict[str, Any]:
    """A line of the table: run, round, the first numbers of the result, or why there is none."""
    line: dict[str, Any] = {"run": address.run.name, "round": address.round}
    for name, values in (result.data_vars if result is not None else {}).items():
        if not values.ndim and len(line) < MOST + 2 and values.dtype.kind in "fiub":
            line[str(name)] = values.item()
    line |= {} if result is None else {name: result.attrs[name] for name in ("excluded",) if name in result.attrs}
    return line | {"reason": "" if error is None else " ".join((str(error) or type(error).__name__).split())}


def put_table(rows: Sequence[dict[str, Any]]) -> None:
    """Print the lines; a column without any value is left out."""
    names = list(dict.fromkeys(name for line in rows for name in line if name != "reason"))
    shown = [name for name in [*names, "reason"] if any(line.get(name) not in (None, "") for line in rows)]
    console.table(rows, {name: "" if name == "reason" else name for name in shown})
