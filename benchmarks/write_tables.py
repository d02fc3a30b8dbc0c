"""The tables of docs/performance.md and benchmarks/measured.md: what `make bench` measured, on one or more machines.

    python -m benchmarks.write_tables --machine NAME [--state quiet]    benchmarks/results, as machines/NAME-STATE.json
    python -m benchmarks.write_tables                                   the pages alone, from all of machines/

A ratio is the time of another program over that of fedscape: above 1 fedscape is faster.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections.abc import Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
RESULTS, MACHINES = HERE / "results", HERE / "machines"
PAGE, LOG = HERE.parent / "docs" / "performance.md", HERE / "measured.md"
BEGIN, END = "<!-- begin of the tables of benchmarks.write_tables -->", "<!-- end of the tables -->"

LOOPS = {
    "expert": "expert's loop",
    "compiled": "compiled",
    "better": "better of both",
    "classic": "classic loop",
    "loss-landscapes": "loss-landscapes",
}
TRAINERS = {"naive": "naive loop", "expert": "expert's loop", "compiled": "compiled", "flower": "Flower", "pfl": "pfl"}
SOLVERS = ("PyHessian", "curvlinops", "hessian-eigenthings")

EPYCS = {"25-1": "Milan (Zen 3)", "25-17": "Genoa (Zen 4)", "26-2": "Turin (Zen 5)"}
"""Generation of an AMD EPYC by its family and model."""

MEAN = "geometric mean"

Row = tuple[str, str, dict[str, str]]
"""Work, what fedscape takes, and a cell per other program."""


def main() -> None:
    """Write the file of this machine, if named, and the page."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--machine", metavar="NAME", help="short name of this machine, such as epyc-zen4")
    parser.add_argument("--state", choices=["quiet", "loaded"], default="quiet", help="what else it did meanwhile")
    parser.add_argument("--only", nargs="+", help="benchmarks whose results are new; the file keeps its other parts")
    chosen = parser.parse_args()
    if chosen.machine:
        MACHINES.mkdir(exist_ok=True)
        path = MACHINES / f"{chosen.machine}-{chosen.state}.json"
        earlier = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
        try:
            content = summary(RESULTS, chosen.state, chosen.only, earlier)
        except ValueError as reason:
            parser.exit(2, f"{reason}\n")
        path.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    machines = [json.loads(path.read_text(encoding="utf-8")) for path in sorted(MACHINES.glob("*.json"))]
    for path, text in pages(machines).items():
        head, rest = path.read_text(encoding="utf-8").split(BEGIN)
        path.write_text(f"{head}{BEGIN}\n\n{text}\n\n{END}{rest.split(END)[1]}", encoding="utf-8")
    print(tables(machines))


def pages(machines: Sequence[Mapping[str, Any]]) -> dict[Path, str]:
    """Tables of each page; those of loaded machines and of the explorer are in the files of machines alone."""
    quiet = [one for one in machines if one["state"] != "loaded"]
    return {PAGE: tables(quiet, SHOWN), LOG: tables(quiet, LOGGED)}


def summary(folder: Path, state: str, only: Sequence[str] | None, earlier: Mapping[str, Any]) -> dict[str, Any]:
    """Processor, state and rows: new ones of results in a folder, those of an earlier summary for the other parts.

    Raises:
        ValueError: If there are no results, or new ones are of another processor or torch than the earlier summary.
    """
    parts, about = dict(earlier.get("parts", {})), earlier.get("processor")
    wanted = [name for name, _ in PARTS.values()] if only is None else list(only)
    for title, (name, rows) in PARTS.items():
        path = folder / f"{name}.json"
        if not path.exists() or name not in wanted:
            continue
        content = json.loads(path.read_text(encoding="utf-8"))
        about = about or content["processor"]
        if content["processor"] != about:
            raise ValueError(f"{path.name} was measured on another machine: {content['processor']}; earlier: {about}.")
        parts[title] = rows(content)
    if not parts:
        raise ValueError(f"{folder} has no results of {', '.join(wanted)}; measure them first, by make bench.")
    return {"processor": about, "state": state, "parts": parts}


def tables(machines: Sequence[Mapping[str, Any]], parts: Collection[str] | None = None) -> str:
    """Machines by number, then one table per part; the machines of a work stand one below the other."""
    titles = [title for title in PARTS if parts is None or title in parts]
    machines = [one for one in machines if any(title in one["parts"] for title in titles)]
    numbered = list(enumerate(machines, start=1))
    texts = ["\n".join(f"{number}. {_named(one)}" for number, one in numbered)]
    for title in titles:
        rows = {number: one["parts"][title] for number, one in numbered if title in one["parts"]}
        if rows:
            texts += [f"## {title}", _table(rows)]
    return "\n\n".join(texts)


def planes(content: Mapping[str, Any]) -> list[Row]:
    """Rows of benchmarks.landscape, and their geometric means."""
    rows: list[Row] = []
    ratios: dict[str, list[float]] = {}
    for table in content["tables"]:
        ratio = {name: value for name, value in table["ratio"].items() if name in LOOPS}
        if {"expert", "compiled"} <= ratio.keys():
            ratio["better"] = min(ratio["expert"], ratio["compiled"])
        for name, value in ratio.items():
            ratios.setdefault(name, []).append(value)
        seconds = f"{statistics.median(table['seconds']['ours']):.3g} s"
        rows.append((f"{table['model']}, {table['points']}^2, {table['samples']}", seconds, _cells(ratio, LOOPS)))
    means = {name: statistics.geometric_mean(values) for name, values in ratios.items() if len(values) == len(rows)}
    return [*rows, (f"{MEAN} of {len(rows)} models", "", _cells(means, LOOPS))] if len(rows) > 1 else rows


def choices(content: Mapping[str, Any]) -> list[Row]:
    """Rows of benchmarks.ablation: sweeps with another choice, by model, and shares of the sweep's own time.

    The geometric mean of a choice is that of the models that it changes.
    """
    models, ratios = content["shares"], {**content["ratios"]}
    ratios.pop("expert's loop", None)  # in the table of planes
    rows: list[Row] = []
    for model, shares in models.items():
        cells = {name: f"{row[model]:.2f}" for name, row in ratios.items() if model in row}
        cells |= {f"in {name}": f"{share:.0%}" for name, share in shares.items()}
        rows.append((model, "", {head: cells.get(head, "") for head in [*ratios, *cells]}))
    means: dict[int, dict[str, str]] = {}
    for name, row in ratios.items():
        means.setdefault(len(row), {})[name] = f"{statistics.geometric_mean(row.values()):.2f}"
    return [*rows, *((f"{MEAN} of {number} models", "", cells) for number, cells in means.items())]


def training(content: Mapping[str, Any]) -> list[Row]:
    """Rows of benchmarks.training; beside, the share of time inside torch's layers, and the bound.

    A program that spends nothing outside of torch's own layers would be 1 / share times as fast.
    """
    rows: list[Row] = []
    for table in content.get("tables", ()):
        cells = _cells(table["ratio"], TRAINERS)
        if "layers" in table:
            cells["in layers"] = f"{table['layers']:.0%}"
            cells["bound"] = f"{1 / table['layers']:.2f}"
        seconds = f"{statistics.median(table['seconds']['ours']):.3g} s"
        rows.append((f"{table['case']}, `{table['engine']}`", seconds, cells))
    return rows


def curvature(content: Mapping[str, Any]) -> list[Row]:
    """Rows of benchmarks.hessian: seconds, error and MiB of fedscape; ratios and MiB of the others."""
    rows: list[Row] = []
    for row in content["rows"]:
        own = row["programs"]["fedscape"]
        cells = {name: _solved(row["programs"][name]) for name in SOLVERS if name in row["programs"]}
        ours = f"{statistics.median(own['seconds']):.3g} s, {own['error']:.0e}, {own['peak_mib']:.0f}"
        rows.append((f"{row['model']}, {row['job']}", ours, cells))
    return rows


def starts(content: Mapping[str, Any]) -> list[Row]:
    """Rows of benchmarks.start."""
    return [(row["work"], f"{row['seconds']:.2f} s", {"CPU": f"{row['cpu']:.2f} s"}) for row in content["rows"]]


def explorer(content: Mapping[str, Any]) -> list[Row]:
    """Rows of benchmarks.explore: medians, 90th percentiles, and aims."""
    rows: list[Row] = []
    for name, row in content["milliseconds"].items():
        aim = {"aim": f"{row['aim'] / 1000:.2f} s"} if row["aim"] else {}
        rows.append((name, f"{row['p50'] / 1000:.2f} s", {"90 % within": f"{row['p90'] / 1000:.2f} s", **aim}))
    return rows


def cards(content: Mapping[str, Any]) -> list[Row]:
    """Rows of benchmarks.gpu: points per second."""
    rows: list[Row] = []
    for row in content.get("planes", ()):
        per_second = row["per_second"]
        chunks = [value for name, value in per_second.items() if name.startswith("vmap")]
        found = {"expert's loop": per_second["expert"]} | ({"expert's `vmap`": max(chunks)} if chunks else {})
        cells = {title: f"{value:,.0f}" for title, value in found.items()}
        rows.append((row["model"], f"{per_second['ours']:,.0f}", cells))
    return rows


PARTS: dict[str, tuple[str, Callable[[Mapping[str, Any]], list[Row]]]] = {
    "Planes": ("landscape", planes),
    "Choices of a sweep, each alone": ("ablation", choices),
    "Curvature": ("hessian", curvature),
    "Training, an epoch of ten clients": ("training", training),
    "Start": ("start", starts),
    "Explorer": ("explore", explorer),
    "Planes on a GPU, points a second": ("gpu", cards),
}
"""Title of a table: file of its results, and its rows."""

SHOWN = ("Planes", "Curvature", "Training, an epoch of ten clients", "Start")
"""Tables that users read."""

LOGGED = ("Choices of a sweep, each alone", "Planes on a GPU, points a second")
"""Tables of the log."""


def _solved(found: Mapping[str, Any]) -> str:
    if "failed" in found:
        return "fails"
    missed = "" if found["reached"] else f", error {found['error']:.0e}"
    return f"{found['ratio']:.2f}, {found['peak_mib']:.0f}{missed}"


def _named(machine: Mapping[str, Any]) -> str:
    about = machine["processor"]
    number = about.get("number", "")
    name = " ".join(filter(None, (about["name"], EPYCS.get(number.rpartition("-")[0], number))))
    return f"{name}, torch {about['torch']}, {machine['state']}"


def _table(machines: Mapping[int, Sequence[Sequence[Any]]]) -> str:
    works = sorted(
        dict.fromkeys(row[0] for rows in machines.values() for row in rows), key=lambda work: work.startswith(MEAN)
    )  # a mean stands below the models of its machine
    heads = list(dict.fromkeys(head for rows in machines.values() for row in rows for head in row[2]))
    lines = [["work", "machine", "fedscape", *heads], ["---"] * (3 + len(heads))]
    for work in works:
        for number, rows in machines.items():
            lines += [
                [work, str(number), ours, *(cells.get(head, "") for head in heads)]
                for name, ours, cells in rows
                if name == work
            ]
    return "\n".join(f"|{'|'.join(line)}|" for line in lines)


def _cells(ratios: Mapping[str, float], names: Mapping[str, str]) -> dict[str, str]:
    return {title: f"{ratios[name]:.2f}" for name, title in names.items() if name in ratios}


if __name__ == "__main__":
    main()
