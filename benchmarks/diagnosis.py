"""How often `fedscape diagnose` names the fault of runs that were made to have one: the table of docs/diagnosis.md.

    python -m benchmarks.diagnosis [--seeds 1 2 21 22 23] [--settings digits blobs] [--faults ..] [--json FILE]

Seeds 1 and 2 (and 11 and 12) were looked at while the rules of `drift.causes` and these settings were made, 21 and
higher were not.
"""

from __future__ import annotations

import argparse
import json
from itertools import product
from pathlib import Path

import numpy as np

from drift.causes import breakdown
from drift.diagnosis import causes_of
from drift.experiment import Experiment
from drift.read import read, validated
from drift.run import Run
from drift.simulate import Diverged, simulate

TUNED, HELD_OUT = (1, 2), (21, 22, 23)

SETTINGS = {
    "digits": {
        "rounds": 25,
        "task": {"dataset": "digits", "model": "mlp", "model_options": {"hidden": [32]}},
        "clients": {"number": 24, "per_round": 18, "partition": {"name": "dirichlet", "concentration": 3.0}},
        "local": {"lr": 0.3, "momentum": 0.0, "epochs": 2, "batch": 16},
    },
    "blobs": {
        "rounds": 25,
        "task": {
            "dataset": "blobs",
            "model": "mlp",
            "model_options": {"hidden": [32]},
            "dataset_options": {"classes": 10, "features": 20, "samples": 800, "spread": 3.0},
        },
        "clients": {"number": 20, "per_round": 15, "partition": {"name": "dirichlet", "concentration": 3.0}},
        "local": {"lr": 0.1, "momentum": 0.0, "epochs": 2, "batch": 16},
    },
}
"""Healthy runs: many of the clients in each round, labels nearly even, little local training."""

FAULTS: dict[str, tuple[str | None, tuple[str, ...]]] = {
    "healthy": (None, ()),
    "1 client in a round": ("participation", ("clients.per_round=1",)),
    "2 clients in a round": ("participation", ("clients.per_round=2",)),
    "40 local epochs": ("epochs", ("local.epochs=40",)),
    "client 3 has two labels swapped": ("client-3", ("clients.corrupted=[3]",)),
    "one label a client": ("labels", ("clients.partition=shards", "clients.shards=1")),
    "two labels a client": ("labels", ("clients.partition=shards", "clients.shards=2")),
    "local rate 1.5": ("rate", ("local.lr=1.5",)),
    "gamma = 0.8": ("shrinking", ("method=shrink", "method.gamma=0.8")),
    "gamma = 0.9": ("shrinking", ("method=shrink", "method.gamma=0.9")),
}
"""What is changed in a healthy run, and the cause that should come first."""

DIVERGED = 1e3
"""Loss in nats beyond which a number says nothing more."""


def experiment(setting: str, fault: str, seed: int) -> Experiment:
    """A run with one known fault."""
    return read(validated({**SETTINGS[setting], "seed": seed}), *FAULTS[fault][1], f"seed={seed}")


def trained(setting: str, fault: str, seed: int, runs: Path) -> Run:
    """That run; one that diverges stays as it is."""
    made = experiment(setting, fault, seed)
    try:
        return simulate(made, runs=runs)
    except Diverged:
        return Run(runs / made.slug)


def first_cause(run: Run) -> tuple[str | None, float]:
    """Name of the first clear cause, and its gain as a part of the loss."""
    causes, _ = causes_of(run, breakdown(run), 1)
    clear = [cause for cause in causes if cause.clear]
    return (clear[0].name, clear[0].share) if clear else (None, float("nan"))


def main() -> None:
    """Train and diagnose what the file of results lacks, then print its table, a row for each setting and fault."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seeds", type=int, nargs="+", default=[*TUNED, *HELD_OUT])
    parser.add_argument("--settings", nargs="+", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--faults", nargs="+", default=list(FAULTS), choices=list(FAULTS))
    parser.add_argument("--runs", type=Path, default=Path("out/diagnosis"))
    parser.add_argument("--json", type=Path, default=Path("out/diagnosis.json"))
    given = parser.parse_args()
    rows = json.loads(given.json.read_text()) if given.json.exists() else []
    for setting, fault, seed in product(given.settings, given.faults, given.seeds):
        if any((row["setting"], row["fault"], row["seed"]) == (setting, fault, seed) for row in rows):
            continue
        run = trained(setting, fault, seed, given.runs)
        name, share = first_cause(run)
        row = {"setting": setting, "fault": fault, "seed": seed, "loss": float(run.metrics().loss[-1])}
        rows.append({**row, "first": name, "share": share if np.isfinite(share) else None})
        given.json.parent.mkdir(parents=True, exist_ok=True)
        given.json.write_text(json.dumps(rows, indent=1) + "\n")
    print("| setting | fault | loss | first cause should be | tuned | held out | gain | named instead |")
    print("|---|---|---|---|---|---|---|---|")
    for setting, fault in product(SETTINGS, FAULTS):
        of = [row for row in rows if (row["setting"], row["fault"]) == (setting, fault)]
        if of:
            print(_line(of, FAULTS[fault][0]))


def _line(rows: list[dict], wanted: str | None) -> str:
    losses = [row["loss"] for row in rows]
    counts = []
    for seeds in (TUNED, HELD_OUT):
        here = [row for row in rows if (row["seed"] in TUNED) == (seeds is TUNED)]
        counts.append(f"{sum(row['first'] == wanted for row in here)} of {len(here)}")
    wrong = sorted({f"{row['first'] or 'none'} (seed {row['seed']})" for row in rows if row["first"] != wanted})
    shares = [row["share"] for row in rows if row["first"] == wanted and row["share"]]
    gain = f"{100 * np.median(shares):.0f} %" if shares and wanted else "-"
    middle = f"{np.median(losses):.3g}" if np.isfinite(losses).all() and max(losses) < DIVERGED else "diverged"
    cells = [rows[0]["setting"], rows[0]["fault"], middle, wanted or "none", *counts, gain]
    return f"| {' | '.join([*cells, ', '.join(wrong) or '-'])} |"


if __name__ == "__main__":
    main()
