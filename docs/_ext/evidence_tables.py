"""Tables of docs/results.md from the two comparisons stored as CSV files."""

from __future__ import annotations

import csv
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import fmean


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f"| {' | '.join(head)} |", f"|{'---|' * len(head)}"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def _columns(path: Path) -> dict[str, list[float]]:
    with path.open(newline="") as lines:
        rows = list(csv.DictReader(lines))
    return {name: [float(row[name]) for row in rows if row[name]] for name in rows[0] if name != "algorithm"}


def fmnist(folder: Path) -> str:
    columns = _columns(folder / "fmnist-shards2.csv")
    both = [100 * fmean(columns[f"{name}_accuracy"][-10:]) for name in ("fma", "ima")]
    first = [100 * columns[f"{name}_accuracy"][225] for name in ("fma", "ima")]
    swings = [
        100 * (max(values) - min(values)) for values in (columns["fma_accuracy"][-10:], columns["ima_accuracy"][-10:])
    ]
    rows = [
        ("last 10 of 300 rounds", *(f"{value:.2f}" for value in both), f"{both[1] - both[0]:.2f}"),
        ("round 225, the first of IMA", *(f"{value:.2f}" for value in first), f"{first[1] - first[0]:.2f}"),
        ("range within the last 10 rounds, points", *(f"{value:.2f}" for value in swings), ""),
        ("the paper's last 10 rounds", "81.17", "84.68", "3.51"),
    ]
    return table(("test accuracy, %", "FMA", "IMA", "gain"), rows)


def cifar10(folder: Path) -> str:
    columns = _columns(folder / "cifar10-dir1.csv")
    rows = []
    for title, name, factor, digits in (
        ("test accuracy, %", "accuracy", 100, 2),
        ("test loss, nats", "loss_nats", 1, 3),
    ):
        values = [factor * fmean(columns[f"{method}_{name}"][30:40]) for method in ("fedavg", "fedlaw")]
        rows.append((title, *(f"{value:.{digits}f}" for value in values)))
    loss = columns["fedavg_loss_nats"]
    rows.append(
        (
            "round of the smallest test loss",
            str(loss.index(min(loss))),
            str(columns["fedlaw_loss_nats"].index(min(columns["fedlaw_loss_nats"]))),
        )
    )
    return table(("mean over rounds 30 to 39", "FedAvg", "FedLAW"), rows)
