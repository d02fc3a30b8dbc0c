"""fedscape sweep."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

from figures.commands.options import Cluster, Data, ExperimentName, Json, Runs, Settings, Workers, several
from figures.commands.requirements import require_folder, require_names
from figures.texts import console

if TYPE_CHECKING:
    from drift.simulation.crossed_settings import RefusedSettings
    from drift.simulation.settings_grid import Planned, Watch

COLUMNS = {
    "run": "run",
    "state": "state",
    "rounds": "rounds",
    "accuracy": "last-10 accuracy",
    "loss": "last-10 loss",
    "reason": "",
}


def sweep(
    experiment: ExperimentName,
    /,
    *,
    grid: Annotated[list[str], several("--grid", "KEY=VALUE,VALUE")],
    set: Settings = None,
    runs: Runs = Path("runs"),
    data: Data = None,
    workers: Workers = 1,
    cluster: Cluster = None,
    json: Json = False,
) -> int:
    """Train one run for each combination of settings; exit code 2 if one failed or was refused.

    Runs on disk are not trained again. If a run fails, or its method refuses the setting, the reason is shown, and the
    others train. If you stop it, the same command resumes it.

    Example: `fedscape sweep digits-shards2 --grid method=fedavg,ima seed=0,1,2 --workers 2`

    Args:
        grid: Settings and their values; one run per combination of values: --grid method=fedavg,ima seed=0,1,2.
    """
    require_names(experiment, set, grid)
    from drift.simulation.crossed_settings import cross_settings
    from drift.simulation.settings_grid import train_grid, values

    refused: list[RefusedSettings] = []
    experiments = cross_settings(experiment, values(grid), *(set or ()), hear=refused.append)
    for out in refused:
        console.say(str(out))
    require_folder(runs)
    with _live_table() as watch:
        planned = train_grid(experiments, runs=runs, data=data, workers=workers, cluster=cluster, watch=watch)
    console.table([*map(_row, planned), *map(_refused_row, refused)], COLUMNS, json=json)
    failed = [entry for entry in planned if entry.state == "failed"]
    console.say(f"{len(planned) - len(failed)} of {len(planned) + len(refused)} runs are whole; runs: {runs}")
    return 2 if failed or refused else 0


def _row(planned: Planned) -> dict[str, Any]:
    from drift.simulation.compare import mean_of_last

    done = planned.state in ("done", "on disk")
    late = {name: mean_of_last(planned.run, name) if done else None for name in ("accuracy", "loss")}
    return {**_state(planned), **late, "reason": planned.reason}


def _state(planned: Planned) -> dict[str, Any]:
    rounds = f"{planned.rounds}/{planned.experiment.rounds}"
    return {"run": planned.run.name, "state": planned.state, "rounds": rounds}


def _refused_row(refused: RefusedSettings) -> dict[str, Any]:
    """As `_row`; a combination that could not be read has settings in place of a run's name."""
    name = " ".join(f"{setting}={value}" for setting, value in refused.settings.items())
    return {"run": name, "state": "refused", "rounds": None, "accuracy": None, "loss": None, "reason": refused.reason}


@contextmanager
def _live_table() -> Iterator[Watch]:
    """A table of all runs on stderr that changes as they do; on anything but a terminal, a line for each that ends."""
    if not sys.stderr.isatty():
        yield _Lines()
        return
    from rich.live import Live

    with Live(console=console.on_stderr(), transient=True, auto_refresh=False) as live:
        yield lambda planned: live.update(console.rich_table(_board(planned), _BOARD), refresh=True)


_BOARD = {"run": "run", "state": "state", "rounds": "rounds", "reason": ""}

ROWS = 24
"""Runs of the live table; what is done gives way to what is not."""


def _board(planned: list[Planned]) -> list[dict[str, Any]]:
    order = {"training": 0, "failed": 1, "waiting": 2, "done": 3, "on disk": 4}
    listed = sorted(planned, key=lambda entry: order[entry.state])[:ROWS]
    rows = [{**_state(entry), "reason": entry.reason[:60]} for entry in listed]
    ended = sum(entry.state in ("done", "on disk", "failed") for entry in planned)
    done, total = sum(entry.rounds for entry in planned), sum(entry.experiment.rounds for entry in planned)
    return [*rows, {"run": f"{ended} of {len(planned)} runs", "state": "", "rounds": f"{done}/{total}", "reason": ""}]


class _Lines:
    """A line for each run that has ended."""

    def __init__(self) -> None:
        self.states: dict[str, str] = {}

    def __call__(self, planned: list[Planned]) -> None:
        for entry in planned:
            if entry.state in ("done", "on disk", "failed") and self.states.get(entry.run.name) != entry.state:
                self.states[entry.run.name] = entry.state
                reason = f": {entry.reason}" if entry.reason else ""
                console.say(
                    f"{entry.run.name}: {entry.state}, {entry.rounds} of {entry.experiment.rounds} rounds{reason}"
                )
