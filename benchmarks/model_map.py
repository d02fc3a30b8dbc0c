"""Does the mean that a map chooses beat that of FedAvg, does the map find planted groups, and what does it cost?

    python -m benchmarks.model_map train           train and measure twenty runs in a temporary folder (minutes)
    python -m benchmarks.model_map planted         train three seeds, and look for them on one map
    python -m benchmarks.model_map recorded RUNS   the same as train for recorded runs, in which nothing is stored
    python -m benchmarks.model_map cost            processor time of a map of 100 models of 0.3 million parameters
    python -m benchmarks.model_map table           the tables of docs/model-map.md, from the stored numbers

Ten seeds of FedAvg on each of two data sets (digits; Fashion-MNIST from FEDSCAPE_DATA), two shards per client. A map of
a run has the clients and global models of its last three rounds. One half of the test samples chooses the mean, the
other half judges it. The planted groups are runs of three seeds, which start from different models: a map of their last
rounds has to tell them apart. 100 of its lines are evaluated at 33 points, for the bounds of their barriers. Numbers
go to docs/results/model_map.json.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from collections.abc import Sequence
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs by its path as well

import drift
import landscape
from drift.analyses.landscapes.named_models import named_models
from drift.analyses.over_seeds import estimate
from landscape.sweep.processor import processor_line

STORED = Path(__file__).resolve().parents[1] / "docs" / "results" / "model_map.json"

SEEDS = range(10)

COMMON = ("method=fedavg", "keep.clients=last 3", "keep.globals=last 3", "clients.partition=shards")
COMMON += ("clients.partition.shards=2",)

SETTINGS = {
    "digits": ("digits-shards2", *COMMON, "rounds=30"),
    "Fashion-MNIST": ("common-fmnist", *COMMON, "rounds=60", "task.model_options.hidden=[50]"),
}
"""Experiment and changes of it, by data set."""

DATA = {"digits": "digits", "fashion_mnist": "Fashion-MNIST"}
"""Data sets of recorded runs, as the table names them."""

PLANTED = 3
"""Seeds whose last rounds are on one map."""

LINES, POINTS = 100, 33
"""Lines of that map whose barrier is measured at so many points."""

REFERENCES = {"aggregate": "cohort", "round": "global"}

AGAINST = {**REFERENCES, "basin": "basin"}
"""What the chosen mean is compared with."""


def measured(run: drift.Run) -> dict[str, Any]:
    """Losses and errors of the chosen mean and of the references, on samples that no choice has seen."""
    ds = drift.model_map(run)
    names = {"chosen": ds.attrs["chosen"], "greedy soup": "greedy soup", "basin": ds.candidate.values[0]}
    names |= {key: next(name for name in ds.candidate.values if str(name).startswith(key)) for key in REFERENCES}
    row: dict[str, Any] = {"choice": ds.attrs["chosen"], "averaged": int(ds.mark_chosen.sum()), "on_map": len(ds.mark)}
    for variable in ("judged_loss", "judged_error"):
        row[variable] = {key: round(float(ds[variable].sel(candidate=name)), 6) for key, name in names.items()}
    about = {"method": run.label, "seed": run.experiment.seed, "parameters": run.layout.size}
    return {**about, **row, "basins": int(ds.mark_basin.max()), "judged_samples": ds.attrs["judged_samples"]}


def adjusted_rand(first: Sequence[Any], second: Sequence[Any]) -> float:
    """Adjusted Rand index of two partitions of the same things: 1 if equal, 0 on average for random ones."""
    table = np.array(
        [[np.sum((np.array(first) == a) & (np.array(second) == b)) for b in set(second)] for a in set(first)]
    )

    def pairs(counts: np.ndarray) -> float:
        return float((counts * (counts - 1) / 2).sum())

    rows, columns, every = pairs(table.sum(1)), pairs(table.sum(0)), pairs(np.array([len(first)]))
    expected, largest = rows * columns / every, (rows + columns) / 2
    return 1.0 if largest == expected else (pairs(table) - expected) / (largest - expected)


def planted(runs: Sequence[drift.Run]) -> dict[str, Any]:
    """How well the basins of a map of several runs are the runs, and how often the bounds of barriers hold."""
    first, *others = runs
    last = first.kept("clients")[-1]
    ds = drift.model_map(first, others=[run.name for run in others], rounds=[last])
    owners = [name.rpartition(": ")[0] for name in ds.mark.values.tolist()]
    draw, pairs = np.random.default_rng(0), list(combinations(range(len(ds.mark)), 2))
    models = named_models(first, -1, ds.mark.values.tolist()).models
    samples, _ = map_halves(first)
    high, low, full = [], [], []
    for index in draw.choice(len(pairs), min(LINES, len(pairs)), replace=False):
        i, j = pairs[index]
        line = landscape.barrier(first.task, models[i], models[j], points=POINTS, split=samples)
        full.append(float(line.barrier))
        low.append(float(ds.barrier[i, j]))
        high.append(float(ds.barrier_high[i, j]))
    above = np.array(full) - np.array(high)
    decided = (np.array(full) <= ds.attrs["margin"]) == (np.array(low) <= ds.attrs["margin"])
    between = ds.points.values[np.triu_indices(len(ds.mark), 1)]
    return {
        "models": len(ds.mark),
        "rand": round(adjusted_rand(owners, ds.mark_basin.values.tolist()), 4),
        "basins": int(ds.mark_basin.max()),
        "within": int((above <= 1e-4).sum()),
        "lines": len(above),
        "largest_excess": round(float(above.max()), 4),
        "decided_alike": int(decided.sum()),
        "points_per_line": round(float(between.mean()), 2),
        "midpoint_alone": round(float((between == 1).mean()), 3),
    }


def map_halves(run: drift.Run) -> tuple[Any, Any]:
    """The samples of a map of a run, and those that judge."""
    from drift.analyses.landscapes.model_map import halves

    return halves(run, "test", 1000)


def train() -> list[dict[str, Any]]:
    """Numbers of the runs of all seeds, by data set."""
    rows = []
    for data, (experiment, *changes) in SETTINGS.items():
        for seed in SEEDS:
            with tempfile.TemporaryDirectory() as folder:
                run = drift.simulate(drift.read(experiment, *changes, f"seed={seed}"), runs=folder)
                rows.append({"data": data, "rounds": run.committed, **measured(run)})
            print(json.dumps(rows[-1]), flush=True)
    return rows


def train_planted() -> list[dict[str, Any]]:
    """Numbers of a map of several seeds, by data set."""
    rows = []
    for data, (experiment, *changes) in SETTINGS.items():
        with tempfile.TemporaryDirectory() as folder:
            settings = [drift.read(experiment, *changes, f"seed={seed}") for seed in range(PLANTED)]
            rows.append({"data": f"{data}, planted", **planted([drift.simulate(one, runs=folder) for one in settings])})
        print(json.dumps(rows[-1]), flush=True)
    return rows


def recorded(folders: Sequence[Path]) -> list[dict[str, Any]]:
    """Numbers of recorded runs."""
    rows = []
    for folder in folders:
        run = drift.open(folder)
        rows.append(
            {"data": f"{DATA[run.experiment.task.dataset]}, recorded", "rounds": run.committed, **measured(run)}
        )
        print(json.dumps(rows[-1]), flush=True)
    return rows


def cost() -> str:
    """Processor seconds of a map of 100 clients of 0.3 million parameters, on 1000 samples by one thread."""
    lines = []
    settings = ("common-fmnist", *COMMON, "keep.clients=all", "keep.globals=none", "rounds=10", "local.epochs=1")
    for model in ("task.model_options.hidden=[300, 200]", "task.model=cnn_fmnist"):
        with tempfile.TemporaryDirectory() as folder:
            run = drift.simulate(drift.read(*settings, model), runs=folder)
            before = time.process_time()
            ds = drift.model_map(run, rounds=list(range(10)))
            used = time.process_time() - before
            lines.append(f"{model}: {len(ds.mark)} models of {run.layout.size} parameters, {used:.0f} s")
            print(lines[-1], flush=True)
    return "\n".join(lines)


def table(content: dict[str, Any]) -> str:
    """By setting: in how many runs the chosen mean has the lower loss, and both differences [95 % interval]."""
    lines = ["| runs | against | lower | loss | error |", "|---|---|---|---|---|"]
    rows = [row for row in content["rows"] if "rand" not in row]
    for data, method in dict.fromkeys((row["data"], row["method"]) for row in rows):
        own = [row for row in rows if (row["data"], row["method"]) == (data, method)]
        for key, text in AGAINST.items():
            shown = [f"{drift_label(method)}, {data}", text]
            gaps = [[row[name]["chosen"] - row[name][key] for row in own] for name in ("judged_loss", "judged_error")]
            if method == "fedavg" and key == "round":
                continue
            shown.append(f"{sum(gap < 0 for gap in gaps[0])}/{len(own)}")
            for gap in gaps:
                ahead = estimate(gap)
                shown.append(f"{ahead.value:+.3f} [{ahead.low:+.3f},{ahead.high:+.3f}]")
            lines.append(f"| {' | '.join(shown)} |")
    return "\n".join(lines)


def planted_table(content: dict[str, Any]) -> str:
    """By data set: how well three seeds are told apart, and how often bounds and decisions hold."""
    names = (
        "three seeds of",
        "models",
        "Rand index",
        "midpoint decides",
        "bound holds",
        "largest miss",
        "decided alike",
    )
    lines = [f"| {' | '.join(names)} |", f"|{'---|' * len(names)}"]
    for row in (row for row in content["rows"] if "rand" in row):
        cells = [row["data"].partition(",")[0], str(row["models"]), f"{row['rand']:.2f}"]
        cells += [f"{100 * row['midpoint_alone']:.0f} %", f"{row['within']}/{row['lines']}"]
        cells += [f"{max(row['largest_excess'], 0):.3f}", f"{row['decided_alike']}/{row['lines']}"]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def drift_label(method: str) -> str:
    """Name of a method as it is written."""
    from figures.looks.palette import label

    return label(method)


def main() -> None:
    """Train and measure, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    for name in ("train", "planted", "cost", "table"):
        commands.add_parser(name)
    commands.add_parser("recorded").add_argument("runs", type=Path, nargs="+")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    if asked.command == "cost":
        print(processor_line())
        cost()
        return
    content = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {"rows": []}
    if asked.command != "table":
        commands_of = {"train": train, "planted": train_planted, "recorded": lambda: recorded(asked.runs)}
        fresh = commands_of[asked.command]()
        content = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else content
        renewed = {row["data"] for row in fresh}
        rows = [row for row in content["rows"] if row["data"] not in renewed] + fresh
        content = {"processor": processor_line(), "torch": torch.__version__, "rows": rows}
        lines = ",\n".join(f"  {json.dumps(row)}" for row in rows)
        text = json.dumps({**content, "rows": []})
        STORED.write_text(f"{text[: -len('[]}')]}[\n{lines}\n ]}}\n", encoding="utf-8")
    print(table(content), planted_table(content), sep="\n\n")


if __name__ == "__main__":
    main()
