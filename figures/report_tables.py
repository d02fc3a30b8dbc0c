"""Tables of the report: the summary, what was set, with which versions, on which data."""

from __future__ import annotations

import json
import math
from typing import Any

from drift.run import Run
from figures.explore_curves import written_name
from figures.summary import differing, settings, summary

COLUMNS = {
    "accuracy_mean": "Accuracy",
    "loss": "Loss [nats]",
    "centre_offset": "Centre offset",
    "eigenvalue": "λ₁",
    "coherence": "Coherence",
    "period_variance": "Period-drift variance",
    "client_variance": "Client-drift variance",
}
"""Numbers of the summary table and their headings."""

ABSENT = "\u2013"
"""What stands in a cell without a value: a dash."""

Table = dict[str, Any]
"""head: headings; rows: (name of the row, cells)."""


def summary_table(grouped: dict[str, list[Run]]) -> Table:
    """One row for each method: its seeds and the numbers of `figures.summary`."""
    ds = summary([run for group in grouped.values() for run in group])
    rows = []
    for name, group in grouped.items():
        one = ds.sel(algorithm=name)
        cells = [", ".join(str(run.experiment.seed) for run in group)]
        cells += [shown(float(one[column])) for column in COLUMNS]
        cells[1] = f"{float(one.accuracy_mean):.3f}"
        if len(group) > 1:
            cells[1] += f" ± {float(one.accuracy_std):.3f}"
        rows.append((written_name(name), cells))
    return {"head": ["Method", "Seeds", *COLUMNS.values()], "rows": rows}


def configuration(grouped: dict[str, list[Run]]) -> dict[str, Table]:
    """The resolved settings: those that differ between methods, and those common to all."""
    tables = {name: settings(group[0], seed=False) for name, group in grouped.items()}
    apart = differing(list(tables.values()))
    first = next(iter(tables.values()))
    return {
        "differing": {
            "head": ["Setting", *map(written_name, tables)],
            "rows": [(name, [shown(table.get(name, "")) for table in tables.values()]) for name in apart],
        },
        "common": {
            "head": ["Setting", "Value"],
            "rows": [(name, [shown(value)]) for name, value in first.items() if name not in apart],
        },
    }


def fingerprints(grouped: dict[str, list[Run]]) -> Table:
    """Every run: seed, rounds, hash of its settings, fingerprint of its data, versions."""
    rows = []
    for group in grouped.values():
        for run in group:
            versions = ", ".join(f"{name} {version}" for name, version in run.about["versions"].items())
            done = f"{len(run.rounds())} of {run.experiment.rounds}"
            cells = [run.experiment.seed, done, run.experiment.hash, run.about.get("fingerprint", ""), versions]
            rows.append((run.name, [shown(cell) for cell in cells]))
    return {"head": ["Run", "Seed", "Rounds", "Settings", "Data", "Versions"], "rows": rows}


def shown(value: Any) -> str:
    """A value as text: numbers with four significant digits, what is absent as a dash."""
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return ABSENT
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return f"{value:.4g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(shown, value)) or ABSENT
    return json.dumps(value) if isinstance(value, dict) else str(value)
