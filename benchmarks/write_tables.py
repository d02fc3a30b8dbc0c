"""The results of one or several machines as tables in Markdown, the machines of a row one below the other.

    python -m benchmarks.write_tables [FOLDER ...]

Each FOLDER holds the results of a machine, as `make bench` writes them to benchmarks/results (the default): copy those
of another machine beside it. Ratios are times of a contestant over ours: above 1 ours is faster.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Iterable
from pathlib import Path
from typing import Any

RESULTS = Path(__file__).resolve().parent / "results"

LOOPS = ("classic", "loss-landscapes", "expert", "compiled", "ours, default", "ours, fast")
PEERS = ("naive", "expert", "compiled", "flower", "pfl")
SOLVERS = ("pyhessian", "curvlinops")

Rows = dict[str, list[str]]
"""Cells of a machine by the work that they are of."""


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="*", type=Path, default=[RESULTS], metavar="FOLDER")
    folders = parser.parse_args().folders
    if absent := [str(folder) for folder in folders if not folder.is_dir()]:
        parser.error(f"no folder of results: {', '.join(absent)}; `make bench` writes {RESULTS}.")
    print(tables(folders))


def tables(folders: Iterable[Path]) -> str:
    """Machines by number, then tables of planes, training and the Hessian, as far as there are results."""
    machines = {str(number): folder for number, folder in enumerate(folders, start=1)}
    parts = []
    for title, name, heads, rows_of in (
        ("Planes", "landscape", ["ours: s", *LOOPS, "of `@`", "of oneDNN"], planes),
        ("Training", "training", ["ours: s", *PEERS, "of `@`", "of oneDNN"], training),
        ("Hessian", "hessian", ["ours: s, error", *(f"{solver}, error" for solver in SOLVERS)], curvature),
    ):
        held = {number: _read(folder / f"{name}.json") for number, folder in machines.items()}
        found = {number: content for number, content in held.items() if content}
        if found:
            about = [f"- {number}: {_named(content)}" for number, content in found.items()]
            rows = {number: rows_of(content) for number, content in found.items()}
            parts += [f"## {title}", "\n".join(about), _table(heads, rows)]
    return "\n\n".join(parts) or "no results of planes, training or the Hessian in these folders"


def planes(content: dict[str, Any]) -> Rows:
    """Rows of benchmarks.landscape."""
    rows = {}
    for table in content["tables"]:
        limits = [_percent(part) for part in table["of_limit"]["ours"].values()]
        seconds = statistics.median(table["seconds"]["ours"])
        cells = [f"{seconds:.3g}", *_ratios(table["ratio"], LOOPS), *limits]
        rows[f"{table['model']}, {table['points']}^2 x {table['samples']}"] = cells
    return rows


def training(content: dict[str, Any]) -> Rows:
    """Rows of benchmarks.training."""
    rows = {}
    for table in content["tables"]:
        seconds = statistics.median(table["seconds"]["ours"])
        limits = [_percent(limit / seconds) for limit in table["limit"].values()]
        rows[f"{table['case']}, {table['engine']}"] = [f"{seconds:.3g}", *_ratios(table["ratio"], PEERS), *limits]
    return rows


def curvature(content: dict[str, Any]) -> Rows:
    """Rows of benchmarks.hessian; runs of other settings are other work."""
    rows, settings = {}, content["settings"]
    sizes = ", ".join(f"{name} {settings[name]}" for name in ("samples", "batch", "steps", "change"))
    for row in content["results"]:
        solvers = row["solvers"]
        own = solvers["native"]
        others = [solvers.get(name) for name in SOLVERS]
        cells = [f"{own['seconds']:.3g}, {own['error']:.1e}"]
        cells += ["" if other is None else f"{other['ratio']:.2f}, {other['error']:.1e}" for other in others]
        rows[f"{row['model']}, {row['job']} ({sizes})"] = cells
    return rows


def _read(path: Path) -> dict[str, Any]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _named(content: dict[str, Any]) -> str:
    """The processor of results; those of earlier versions name none, or its name alone."""
    about = content.get("processor", "not stated")
    if isinstance(about, str):
        return about
    return " ".join(filter(None, (about["name"], about["number"], f"({about['flags']})", f"torch {about['torch']}")))


def _table(heads: list[str], machines: dict[str, Rows]) -> str:
    works = dict.fromkeys(work for rows in machines.values() for work in rows)
    lines = [["work", "machine", *heads], ["---"] * (2 + len(heads))]
    lines += [[work, number, *rows[work]] for work in works for number, rows in machines.items() if work in rows]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def _ratios(found: dict[str, float], names: Iterable[str]) -> list[str]:
    return [f"{found[name]:.2f}" if name in found else "" for name in names]


def _percent(part: float) -> str:
    return f"{100 * part:.0f} %"


if __name__ == "__main__":
    main()
