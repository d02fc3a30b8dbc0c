"""Does the drift in sharp directions say more about the cost of client drift than its length does?

    python -m benchmarks.sharp_drift train FOLDER     train and measure nine runs (minutes on one core)
    python -m benchmarks.sharp_drift table            the table of docs/findings.md, from the stored numbers

Three data sets (digits; Fashion-MNIST and CIFAR-10 from FEDSCAPE_DATA) and three seeds of FedAvg. In every second round
the mean cost L(w_k) - L(mean) of client drift is compared over rounds with the mean length of the drifts, and with
their length within the ten sharpest directions, by Spearman's rank correlation (`drift.drift_curvature`). Both
correlations of a seed are of the same rounds; their difference has Student's 95 % interval over the seeds. The numbers
go to docs/results/sharp_drift.json. The folder of runs can be deleted afterwards.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs by its path as well

import drift
from drift.analyses.over_seeds import estimate
from landscape.sweep.processor import processor_line

STORED = Path(__file__).resolve().parents[1] / "docs" / "results" / "sharp_drift.json"

SEEDS = (0, 1, 2)

COMMON = ("method=fedavg", "keep.clients=every 2", "keep.globals=all", "rounds=60", "clients.partition=shards")
COMMON += ("clients.partition.shards=2",)

SETTINGS = {
    "digits": ("digits-shards2", *COMMON),
    "Fashion-MNIST": ("common-fmnist", *COMMON, "task.model_options.hidden=[50]"),
    "CIFAR-10": ("common-cifar10", *COMMON, "task.model=mlp", "task.model_options.hidden=[50]"),
}
"""Experiment and changes of it, by data set."""

FEW = 6
"""Rounds at which the span of the clients and the gap of averaging are measured, at least."""

COLUMNS = {
    "norm": "length of client drift",
    "sharp": "length in the sharp directions, Hessian at the mean",
    "sharp_start": "the same, Hessian at the start",
    "quadratic": "second-order cost",
}
"""What is correlated with the cost."""


def measured(name: str, seed: int, folder: Path) -> dict[str, Any]:
    """Train a run, and its numbers over rounds."""
    experiment, *changes = SETTINGS[name]
    run = drift.simulate(drift.read(experiment, *changes, f"seed={seed}"), runs=folder)
    rounds = run.kept("clients")[1:]
    ds = run.cached(drift.drift_curvature, rounds=rounds, kinds=["client", "random"])
    start = run.cached(drift.drift_curvature, rounds=rounds, kinds=["client"], at="start")
    few = rounds[:: len(rounds) // FEW]
    span = run.cached(drift.client_span, rounds=few)
    gap = run.cached(drift.averaging_gap, rounds=few)
    client, random = ds.sel(kind="client"), ds.sel(kind="random")
    row = {key: client[key].values for key in ("cost", "norm", "sharp", "quadratic", "share", "broken", "cut")}
    row |= {
        "share_random": random.share.values,
        "cost_random": random.cost.values,
        "sharp_start": start.sharp.values[:, 0],
    }
    row |= {key: span[key].values for key in ("captured", "captured_random", "sharpness", "gradient_share")}
    row |= {key: span[key].values for key in ("directions", "search_products")}
    row |= {key: gap[key].values for key in ("gap", "low", "high", "holds", "removed_sharp", "removed_rest")}
    row["gap_quadratic"] = gap.quadratic.values
    numbers = {key: [_short(value) for value in values] for key, values in row.items()}
    about = {"data": name, "seed": seed, "parameters": run.layout.size, "rounds": rounds}
    return {**about, "undetermined": ds.attrs["undetermined"], "numbers": numbers}


def _short(value: float) -> float | None:
    return float(f"{value:.6g}") if np.isfinite(value) else None


def correlations(run: dict[str, Any]) -> dict[str, float]:
    """Rank correlation of each of `COLUMNS` with the cost, over the rounds of a run that have all of them."""
    numbers = {name: np.array(run["numbers"][name], dtype=float) for name in ("cost", *COLUMNS)}
    shared = np.isfinite(list(numbers.values())).all(0)
    return {name: float(stats.spearmanr(numbers[name][shared], numbers["cost"][shared]).statistic) for name in COLUMNS}


def table(content: dict[str, Any]) -> str:
    """Mean correlations over the seeds, and their difference to that of the length with its interval."""
    lines = ["|data|rank correlation with the cost of|mean|minus that of the length [95 % interval]|"]
    lines.append("|---|---|---|---|")
    for data in SETTINGS:
        by_seed = [correlations(run) for run in content["runs"] if run["data"] == data]
        for place, (name, text) in enumerate(COLUMNS.items()):
            values = [row[name] for row in by_seed]
            ahead = estimate([row[name] - row["norm"] for row in by_seed])
            shown = "" if name == "norm" else f"{ahead.value:+.3f} [{ahead.low:+.3f}, {ahead.high:+.3f}]"
            lines.append(f"|{data if place == 0 else ''}|{text}|{np.mean(values):.3f}|{shown}|")
    return "\n".join(lines)


def main() -> None:
    """Train and measure, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("train").add_argument("folder", type=Path)
    commands.add_parser("table")
    chosen = parser.parse_args()
    if chosen.command == "train":
        torch.set_num_threads(1)
        runs = []
        for name in SETTINGS:
            for seed in SEEDS:
                runs.append(measured(name, seed, chosen.folder))
                print(name, seed, correlations(runs[-1]), flush=True)
        machine = {"processor": processor_line(), "torch": torch.__version__}
        lines = ",\n".join(f"  {json.dumps(run)}" for run in runs)
        STORED.write_text(f'{json.dumps(machine)[:-1]},\n "runs": [\n{lines}\n ]}}\n', encoding="utf-8")
    print(table(json.loads(STORED.read_text(encoding="utf-8"))))


if __name__ == "__main__":
    main()
