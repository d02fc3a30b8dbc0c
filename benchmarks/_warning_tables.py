"""The tables of docs/early-warning.md, from the numbers that `benchmarks.early_warning` stores."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from benchmarks._warning_limits import exceeds, first_alarm, fitted
from drift.analyses.over_seeds import estimate
from drift.record.early_warning import DETECTORS


def outcomes(content: dict[str, Any]) -> list[dict[str, Any]]:
    """First alarm of every tested run by family, with limits that no run of its data set was used for."""
    limits = {
        (family, data): fitted([row for row in content["healthy"] if row["data"] != data], family)
        for family in DETECTORS
        for data in {row["data"] for row in content["faulty"]}
    }
    results = []
    for row in content["faulty"]:
        columns = row["statistics"]
        rounds = [dict(zip(columns, values, strict=True)) for values in zip(*columns.values(), strict=True)]
        alarms = {family: first_alarm(rounds, limits[family, row["data"]]) for family in DETECTORS}
        results.append({key: row[key] for key in ("data", "fault", "seed")} | alarms)
    return results


def false_alarms(rows: Sequence[dict[str, Any]], family: str, key: str) -> dict[str, list[bool]]:
    """By setting, which healthy runs have an alarm with limits fitted without those of the same `key`."""
    rows, shown = [row for row in rows if "peaks" in row], dict[str, list[bool]]()
    for left_out in sorted({row[key] for row in rows}):
        limits = fitted([row for row in rows if row[key] != left_out], family)
        for row in (row for row in rows if row[key] == left_out):
            shown.setdefault(row["setting"], []).append(exceeds(row["peaks"], limits))
    return shown


NAMES = {"drift": "drift", "curve": "loss", "all": "both"}


def false_table(content: dict[str, Any]) -> str:
    """Share of healthy runs with an alarm by family, a mean over settings with its 95 % interval."""
    heads = ("false alarms in %, limits fitted without", "runs", "settings", *NAMES.values())
    lines = [f"|{'|'.join(heads)}|", f"|{'---|' * len(heads)}"]
    rows = content["healthy"]
    for words, key, kept in (
        ("the run's setting", "setting", lambda row: True),
        ("the same, recorded runs with all detectors", "setting", lambda row: row["gram"] and "seed" not in row["run"]),
        ("the run's data set", "data", lambda row: True),
    ):
        own = {row["setting"] for row in rows if "peaks" in row and kept(row)}
        cells, number = [], 0
        for family in NAMES:
            shown = {name: each for name, each in false_alarms(rows, family, key).items() if name in own}
            number = sum(map(len, shown.values()))
            cells.append(_percent([float(np.mean(each)) for each in shown.values()]))
        lines.append(f"|{'|'.join([words, str(number), str(len(own)), *cells])}|")
    fresh = [row for row in outcomes(content) if row["fault"] == "none"]
    cells = [str(100 * sum(row[family] is not None for row in fresh) / len(fresh)) for family in NAMES]
    lines.append(f"|the same, new seeds|{len(fresh)}|{len({row['data'] for row in fresh})}|{'|'.join(cells)}|")
    return "\n".join(lines)


def _percent(values: Sequence[float]) -> str:
    own = estimate(values)
    return f"{100 * own.value:.1f}[{100 * max(own.low, 0):.1f},{100 * own.high:.1f}]"


def fault_table(content: dict[str, Any]) -> str:
    """By fault: runs in which each family has an alarm, its median round, and the usual detector of the drift."""
    columns = [head for name in NAMES.values() for head in (f"{name}: runs", "round")]
    rows = [row for row in outcomes(content) if row["fault"] != "none"]
    faults = list(dict.fromkeys(row["fault"] for row in rows))
    lines = [
        f"|fault, {len(rows) // len(faults)} runs each|{'|'.join(columns)}|detector|",
        "|---" * (len(columns) + 2) + "|",
    ]
    for fault in faults:
        own = [row for row in rows if row["fault"] == fault]
        cells = []
        for family in NAMES:
            rounds = [row[family][0] for row in own if row[family]]
            cells += [str(len(rounds)), f"{np.median(rounds):.0f}" if rounds else ""]
        by = [row["drift"][1] for row in own if row["drift"]]
        lines.append(f"|{'|'.join([fault, *cells, max(by, key=by.count, default='')])}|")
    return "\n".join(lines)


def against_curve(content: dict[str, Any]) -> str:
    """Differences to the loss curve, paired: share of runs found, and rounds earlier where both find the fault."""
    rows = [row for row in outcomes(content) if row["fault"] != "none"]
    cells = sorted({(row["data"], row["fault"]) for row in rows})
    heads = ("minus the loss alone", "faults found, points", "rounds earlier", "runs that both find")
    lines = [f"|{'|'.join(heads)}|", f"|{'---|' * len(heads)}"]
    for family in ("drift", "all"):
        more, earlier, number = [], [], 0
        for data, fault in cells:
            own = [row for row in rows if (row["data"], row["fault"]) == (data, fault)]
            more.append(100 * float(np.mean([bool(row[family]) - bool(row["curve"]) for row in own])))
            if both := [row["curve"][0] - row[family][0] for row in own if row[family] and row["curve"]]:
                earlier.append(float(np.mean(both)))
                number += len(both)
        texts = [f"{one.value:+.1f}[{one.low:+.1f},{one.high:+.1f}]" for one in map(estimate, (more, earlier))]
        lines.append(f"|{'|'.join([NAMES[family], *texts, str(number)])}|")
    return "\n".join(lines)


def tables(content: dict[str, Any]) -> str:
    """All tables, from the stored numbers."""
    return "\n\n".join((false_table(content), fault_table(content), against_curve(content)))
