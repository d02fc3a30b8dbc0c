"""Everything that reads a run: what each of them makes of a folder, compared with what it makes of the whole one."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from torture.result_digest import values_digest
from xarray import Dataset

from drift.analyses.decomposition.client_models import read_models
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.export_table import table
from drift.analyses.rounds.variance import drift_variances
from drift.config.initial_model import read_initial_model
from drift.runs.growing_run import GrowingRun
from drift.runs.run import Run
from drift.runs.run_summary import summary
from drift.simulation.run_index import index
from drift.simulation.simulate import simulate
from drift.store import files


def _values(ds: Dataset) -> str:
    """Without the seconds that rounds took, which a round that is computed again does not have."""
    return values_digest(ds.drop_vars("seconds", errors="ignore"))


def _records(run: Run) -> str:
    found = [[record.gram, record.weights, record.ids, record.sizes] for record in run.without_models(run.rounds())]
    return files.digest({f"{i} {j}": part for i, parts in enumerate(found) for j, part in enumerate(parts)})


def _whole(run: Run) -> str:
    names = ("gram", "weights", "ids", "sizes", "start", "end", "clients")
    records = [run.round(index) for index in run.rounds()]
    return files.digest({f"{record.index} {name}": getattr(record, name) for record in records for name in names})


def _growing(run: Run) -> str:
    growing = GrowingRun(run.folder)
    growing.update()
    return f"{_values(growing.numbers())} {growing.head}"


def _one_by_one(run: Run) -> str:
    rows = [read_models(run, index)[1](0)[0] for index in run.rounds()]
    return files.digest({str(place): row for place, row in enumerate(rows)})


def _listed(run: Run) -> str:
    (row,) = [row for row in index(run.folder.parent) if row["name"] == run.name]
    if row["problem"]:
        raise LookupError(row["problem"])
    return str([row[key] for key in ("method", "dataset", "seed", "done", "rounds", "accuracy")])


def _summary(run: Run) -> str:
    if (found := summary(run.folder, check=True)) is None:
        raise LookupError("it has to be opened")
    numbers = {name: value for name, value in found.metrics.items() if name != "seconds"}
    return str((found.label, found.seed, found.done, numbers))


def _resumed(run: Run) -> str:
    return str(simulate(run.experiment, runs=run.folder.parent).rounds())


READERS: dict[str, Callable[[Run], str]] = {
    "without_models": _records,
    "metrics": lambda run: _values(run.metrics()),
    "coherence": lambda run: _values(coherence(run)),
    "stored result": lambda run: _values(run.cached(drift_variances)),
    "export": lambda run: table(run).drop(columns="seconds", errors="ignore").to_csv(),
    "growing": _growing,
    "round": _whole,
    "client models": _one_by_one,
    "list": _listed,
    "summary": _summary,
    "initial model": lambda run: read_initial_model(run.folder).digest,
    "state": lambda run: files.digest(run.state()[0]),
    "resume": _resumed,
    "head": lambda run: run.head,
}


def right(folder: Path) -> dict[str, str]:
    """What every reader makes of a whole run."""
    return {name: read(Run(folder)) for name, read in READERS.items() if not _refuses(read, folder)}


def _refuses(read: Callable[[Run], str], folder: Path) -> bool:
    """Whether a reader is not for this run, as the summary is not for a compressed one."""
    try:
        read(Run(folder))
    except LookupError:
        return True
    return False


def wrong(folder: Path, expected: dict[str, str]) -> str:
    """Readers that make something else of a folder than expected, and do not refuse it by LookupError."""
    told = []
    for name, value in expected.items():
        try:
            found = READERS[name](Run(folder))
        except (LookupError, ValueError):
            continue
        except Exception as reason:  # noqa: BLE001 - whatever else comes out is a finding
            told.append(f"{name}: {type(reason).__name__}: {reason}")
            continue
        if found != value:
            told.append(f"{name} read something else")
    return "; ".join(told)
