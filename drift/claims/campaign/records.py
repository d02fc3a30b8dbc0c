"""One small file per finished run: settings, numbers of every round, and the results that claims read."""

import json
import math
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import xarray as xr

from drift.claims.campaign import series
from drift.claims.campaign.plan import portable
from drift.claims.campaign.recorded_run import RecordedRun, stored_key
from drift.runs.run import Run
from landscape.results.atomic_write import write_bytes
from landscape.results.parsed_text import json_table
from landscape.sweep.processor import processor_line

FORMAT = 2
"""Of the files, and the only one that is read."""

PARTS = {"name", "label", "hash", "experiment", "rounds", "block", "measured", "blocks", "points", "results"}
"""What every file has beside its format."""

DIGITS = 6
"""Significant digits of stored numbers."""

LARGEST = 300
"""Numbers in a variable of a result over rounds and something else; a larger one is left out of the file."""


class Observed:
    """A run that records which cached results are read, and which claims it has no number for (`judge.ask`).

    Args:
        run: The run on disk, or as its file keeps it.
    """

    def __init__(self, run: Run | RecordedRun) -> None:
        self.run = run
        self.results: dict[str, xr.Dataset] = {}
        self.lacking: set[str] = set()
        self.absent = self.partial = self.filled = False

    def __getattr__(self, name: str) -> Any:
        return getattr(self.run, name)

    def cached(self, analysis: Callable[..., xr.Dataset], **arguments: Any) -> xr.Dataset:
        """The run's own result, remembered; if `filled`, with 1 in place of its missing values."""
        try:
            result = self.run.cached(analysis, **arguments)
        except LookupError:
            self.absent = True
            raise
        stored = bool(arguments) or analysis not in series.SOURCES  # the series have rounds without a number
        self.partial |= stored and any(bool(values.isnull().any()) for values in result.data_vars.values())
        self.results[stored_key(self, analysis, arguments)] = result
        return result.fillna(1.0) if stored and self.filled else result


def write(folder: Path, run: Run, results: Mapping[str, xr.Dataset], diverged: bool = False, plan: str = "") -> Path:
    """Write the file of a finished run, or of one that diverged.

    Args:
        results: As `Observed.results`; merged with those in the file. Those that the series hold are left out, and so
            are variables over rounds and more with over 300 numbers.
        diverged: Whether it ended before its last round, without a finite model.
        plan: Digest of the item that it was trained for (`PlanItem.digest`); a file keeps the first that it had.
    """
    path = folder / f"{run.name}.json"
    earlier: Mapping[str, Any] = read(path).content if path.exists() else {"results": {}, "plan": plan}
    in_series = {stored_key(run, analysis, {}) for analysis in series.SOURCES}
    stored = {key: _stored(result) for key, result in results.items() if key not in in_series}
    content = {
        "format": FORMAT,
        "name": run.name,
        "label": run.label,
        "hash": run.experiment.hash,
        "experiment": portable(run.experiment),
        "versions": run.about["versions"],
        "processor": processor_line(gpu=run.about.get("device") == "cuda"),
        **({"plan": earlier["plan"]} if earlier.get("plan") else {}),
        **({"diverged": True} if diverged else {}),
        **series.recorded_series(run),
        "results": {**earlier["results"], **stored},
    }
    return _put(path, content)


def read(path: Path) -> RecordedRun:
    """The run of a file.

    Raises:
        ValueError: If it is no such file, of a later format, or lacks a part, or settings, name, label or number of
            rounds were edited.
    """
    try:
        content = json_table(path.read_bytes())
        number = content["format"]
    except (ValueError, KeyError, TypeError, AttributeError, OSError) as reason:
        why = "it states no format" if isinstance(reason, KeyError) else "it cannot be read as a table in JSON"
        raise ValueError(f"{path} is not a campaign file ({why}); restore or delete it.") from None
    if number != FORMAT:
        raise ValueError(f"{path} has format {number}, this version reads {FORMAT}; read it with another fedscape.")
    if absent := PARTS - {*content}:
        raise ValueError(f"{path} is damaged (it lacks {min(absent)}); restore or delete it.")
    run = RecordedRun(content, path)
    if run.experiment.hash != content["hash"]:
        raise ValueError(f"the settings of {path} are not those of its hash; restore or delete it.")
    stated, rounds = run.experiment, content["rounds"]
    short = run.diverged and type(rounds) is int and 0 < rounds < stated.rounds
    expected = {"name": stated.slug, "label": stated.method.label, "rounds": rounds if short else stated.rounds}
    for key, value in expected.items():
        if content[key] != value:
            raise ValueError(
                f"{path} has the {key} {content[key]!r}, its settings say {value!r}; restore or delete it."
            )
    return run


def read_all(folder: Path) -> Iterator[RecordedRun]:
    """Every recorded run of a folder, by name."""
    for path in sorted(folder.glob("*.json")):
        yield read(path)


def _put(path: Path, content: Mapping[str, Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    write_bytes(path, _text(content).encode())
    return path


def _stored(result: xr.Dataset) -> dict[str, Any]:
    """A dataset as JSON: dimensions, values and attributes of each variable; coordinates by name."""
    small = [name for name, values in result.data_vars.items() if "round" not in values.dims or values.size <= LARGEST]
    variables = {
        str(name): {"dims": list(values.dims), "values": values.values.tolist(), "attrs": dict(values.attrs)}
        for name, values in sorted(result[small].variables.items(), key=lambda entry: str(entry[0]))
    }
    return {"variables": variables, "coords": sorted(map(str, result[small].coords))}


def _short(value: Any) -> Any:
    """Numbers to DIGITS significant digits, not finite ones as null."""
    if isinstance(value, float):
        return float(f"{value:.{DIGITS}g}") if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {str(key): _short(inner) for key, inner in value.items()}
    if isinstance(value, list | tuple):
        return [_short(inner) for inner in value]
    return value.item() if isinstance(value, np.generic) else value


def _text(content: Mapping[str, Any]) -> str:
    """JSON with one line per setting, series or result, so that a changed number changes one line."""
    lines = []
    for name, value in content.items():
        short = _short(value)
        if name in ("blocks", "results"):
            inner = ",\n  ".join(f"{json.dumps(key)}: {_compact(entry)}" for key, entry in short.items())
            lines.append(f'"{name}": {{\n  {inner}\n }}' if inner else f'"{name}": {{}}')
        else:
            lines.append(f"{json.dumps(name)}: {_compact(short)}")
    return "{\n " + ",\n ".join(lines) + "\n}\n"


def _compact(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"), allow_nan=False)
