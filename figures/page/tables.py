"""Tables of the report: summary, cost, versions and data."""

import math

import xarray as xr

from drift.analyses.rounds.cost import training_cost
from drift.runs.run import Run
from drift.store.files import digest
from figures.axes.units import ABSENT, amount, ranged
from figures.gallery.cost_table import COLUMNS as cost_columns
from figures.looks.style import with_unit
from figures.page.configuration import Table
from figures.page.summary import summary
from figures.selection.groups import written_name
from figures.selection.identity import seed_text

COLUMNS = {
    "accuracy_mean": "Accuracy",
    "loss": "Loss",
    "centre_offset": "Centre offset",
    "eigenvalue": "λ₁",
    "coherence": "Coherence",
    "change_variance": "Update change",
    "client_variance": "Client-drift variance",
}
"""Numbers of the summary table and their headings."""


def summary_table(grouped: dict[str, list[Run]], samples: int | None = None) -> Table:
    """One row for each method: the seeds of its runs and the numbers of `figures.page.summary`."""
    ds = summary([run for group in grouped.values() for run in group], samples=samples)
    rows = []
    for name, group in grouped.items():
        row = ds.sel(algorithm=name)
        cells = [f"seed{'s' * (len(group) > 1)} {', '.join(map(seed_text, group))}"]
        numbers = [float(row[column]) for column in COLUMNS]
        cells += [ABSENT if math.isnan(number) else f"{number:.4g}" for number in numbers]
        cells[1 + list(COLUMNS).index("centre_offset")] = _offset(row)
        cells[1] = f"{float(row.accuracy_mean):.3f}"
        if len(group) > 1:
            cells[1] += f" ± {float(row.accuracy_std):.3f}"
        rows.append((written_name(name), cells))
    heads = {**COLUMNS, "loss": with_unit(COLUMNS["loss"], ds.loss)}
    return {"head": ["Method", "Runs", *heads.values()], "rows": rows}


def _offset(row: xr.Dataset) -> str:
    """The centre offset of a method with its standard error, and the number of seeds where some have none."""
    inside, seeds = float(row.centre_offset_seeds), int(row.seeds)
    if math.isnan(inside):
        return ABSENT
    if inside == 0:
        return "minimum not inside the plane"
    more = f" ({inside:.0f} of {seeds} seeds)" if inside < seeds else ""
    return f"{float(row.centre_offset):.2g} ± {float(row.centre_offset_error):.1g}{more}"


def cost_table(grouped: dict[str, list[Run]]) -> Table:
    """Cost of one run per method: counted and measured on one client of its last round, and as recorded.

    Measured seconds are a median with the range of the repeats; methods compare by their ratio to plain training.
    """
    rows = []
    for name, group in grouped.items():
        run, seconds = group[0], group[0].metrics().get("seconds")
        try:
            measured = run.cached(training_cost)
        except LookupError:  # imported, or it kept no start to train from
            measured = None
        cells = [
            ABSENT if measured is None else ranged(measured, key, unit).replace("\n", " ")
            for key, unit in _COSTS.values()
        ]
        if seconds is None or not bool(seconds.notnull().any()):
            cells += [ABSENT, ABSENT]
        else:
            cells += [amount(float(seconds.mean()), "s"), amount(float(seconds.sum()), "s")]
        rows.append((written_name(name), cells))
    return {"head": ["Method", *_COSTS, "A round, recorded", "The run, recorded"], "rows": rows}


_COSTS = {
    text.replace("\n", " ").capitalize(): (name, unit)
    for name, (text, unit) in cost_columns.items()
    if name != "macs_training"
}
"""Columns of the table of costs: variables of `drift.training_cost` and their units."""


def fingerprints(grouped: dict[str, list[Run]]) -> Table:
    """Every run: seed, rounds, hash of its settings, fingerprint of its data, digest of its last model, versions."""
    rows = []
    for group in grouped.values():
        for run in group:
            versions = ", ".join(f"{name} {version}" for name, version in run.about["versions"].items())
            done, data = f"{len(run.rounds())} of {run.experiment.rounds}", run.about.get("fingerprint", "")
            stored = run.kept("globals")
            last = digest({"end": run.round(stored[-1]).kept("end")})[:16] if stored else None
            cells = [seed_text(run), done, run.experiment.hash, data, last, versions]
            rows.append((run.name, [ABSENT if cell is None else str(cell) for cell in cells]))
    return {"head": ["Run", "Seed", "Rounds", "Settings", "Data", "Last model", "Versions"], "rows": rows}
