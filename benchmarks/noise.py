"""How near a few replays come to the exact parts in `drift.noise_or_drift`, and what they cost.

    python -m benchmarks.noise [--rounds 1 8]      writes docs/results/noise.csv
    python -m benchmarks.noise cost                processor time in rounds of common-fmnist
    python -m benchmarks.noise finding     train six runs and split their updates, for docs/findings.md
    python -m benchmarks.noise table       its table, from the stored numbers

Twelve settings, 20 clients each. The reference of a setting are 200 replays of all clients. Five times 20 further
replays, and the first 10, 3 and 2 of each, are estimates with all clients; with ten random clients the first three are
estimates of the same quantities. Stated per setting: the shares of the reference in the last round in percent. Then, of
the largest errors of the four shares in points, the median and the largest over both rounds and the five estimates.
`spread` is the relative standard deviation of one replay's mean square of the updates, the larger of both rounds, in
percent: R replays have it over the root of R. Below it is how often intervals of 95 % hold the reference.

The cost is the processor time of the analysis of one round over that of a round of training, evaluation and record.

The finding has three seeds of FedAvg on digits and on Fashion-MNIST (from FEDSCAPE_DATA), two shards per client, and
three replays of the cohort in three early and three late rounds. Its numbers go to docs/results/noise.json.
"""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs by its path as well

import drift
from drift.analyses.counterfactual.noise_replays import inner_products, plan_replays, replay
from drift.analyses.counterfactual.noise_terms import PARTS, SHARE, Replays
from drift.analyses.over_seeds import estimate
from drift.config.experiment import Experiment
from landscape.sweep.processor import processor_line

SETTINGS = (
    ("digits", 0.1, 0.05, 1, 8, 0.0),
    ("digits", 0.1, 0.05, 5, 8, 0.9),
    ("digits", 0.1, 0.3, 5, 32, 0.0),
    ("digits", 1.0, 0.05, 5, 8, 0.0),
    ("digits", 1.0, 0.3, 2, 16, 0.5),
    ("digits", 1.0, 0.01, 10, 4, 0.9),
    ("digits", 100.0, 0.05, 1, 8, 0.0),
    ("digits", 100.0, 0.05, 5, 8, 0.9),
    ("digits", 100.0, 0.3, 5, 4, 0.0),
    ("blobs", 0.3, 0.05, 1, 4, 0.0),
    ("blobs", 0.3, 0.1, 5, 8, 0.9),
    ("blobs", 100.0, 0.1, 3, 4, 0.0),
)
SETTING = ("data", "Dirichlet", "rate", "epochs", "batch", "momentum")
"""What the numbers of a setting are."""

STORED = Path(__file__).resolve().parents[1] / "docs" / "results" / "noise.json"
CHECKED = STORED.with_suffix(".csv")

COMMON = ("method=fedavg", "keep.globals=all", "rounds=30", "clients.partition=shards", "clients.partition.shards=2")
FINDING = {
    "digits": ("digits-shards2", *COMMON, "task.model=mlp", "task.model_options.hidden=[50]"),
    "Fashion-MNIST": ("common-fmnist", *COMMON, "task.model_options.hidden=[50]"),
}
"""Experiment and changes of it, by data set."""
SEEDS, EARLY, LATE = (0, 1, 2), (1, 2, 3), (27, 28, 29)

REFERENCE, TIMES, COHORT = 200, 5, 10
SHORT = 5
CLIENTS, MOST = 20, 20

KINDS = {"20": (20, False), "10": (10, False), "3": (3, False), "2": (2, False), "3 of 10 clients": (3, True)}
"""Replays, and whether of a cohort alone, by name."""


def experiment(setting: tuple, rounds: int) -> Experiment:
    """The experiment of a setting."""
    dataset, concentration, lr, epochs, batch, momentum = setting
    options = {"dataset_options": {"samples": 1500}} if dataset == "blobs" else {}
    partition = {"name": "dirichlet", "concentration": concentration, "minimum": 4}
    return Experiment(
        rounds=rounds,
        seed=1,
        task={"dataset": dataset, "model": "mlp", "model_options": {"hidden": [32]}, **options},
        clients={"number": CLIENTS, "per_round": COHORT, "partition": partition},
        local={"lr": lr, "epochs": epochs, "batch": batch, "momentum": momentum},
        keep={"globals": "all", "clients": "all"},
    )


def all_replays(run: drift.Run, index: int) -> list[Replays]:
    """Inner products of the replays of all clients: of each estimate, and last of the reference."""
    plan = plan_replays(run, index, clients="all", replays=2, fractions=(1.0,))
    every = range(MOST * TIMES + REFERENCE)
    plan = replace(plan, recorded={}, jobs=[(*job[:2], dict.fromkeys(job[2], every)) for job in plan.jobs])
    done = [one for job in plan.jobs for one in replay(run, job)]
    blocks = [slice(begin, begin + MOST) for begin in range(0, MOST * TIMES, MOST)] + [slice(MOST * TIMES, None)]
    return [inner_products(plan, [replace(one, updates=one.updates[block]) for one in done])[1][0] for block in blocks]


def few(products: Replays, replays: Sequence[int], clients: Sequence[int]) -> Replays:
    """Some replays of some clients."""
    rows, columns = np.array(clients), np.array(replays)
    mixed = products.mixed[np.ix_(rows, columns, rows)]
    updates = products.updates[np.ix_(rows, columns, rows, columns)]
    return replace(
        products,
        frozen=products.frozen[np.ix_(rows, rows)],
        mixed=mixed,
        updates=updates,
        shares=products.shares[rows],
    )


def measure(run: drift.Run, rounds: Sequence[int]) -> dict[str, np.ndarray]:
    """The reference's shares (rounds, 4) and spread (rounds,); errors in points, hits of intervals by kind (n, 4)."""
    rows: dict[str, list[np.ndarray]] = {}
    draw = np.random.default_rng(0)
    for index in rounds:
        *estimates, reference = all_replays(run, index)
        truth, squares = reference.estimate()[SHARE], np.einsum("krkr->kr", reference.updates)
        everyone, q = np.arange(len(reference.shares)), reference.shares
        spread = np.sqrt(q**2 @ squares.var(1, ddof=1)) / (q @ squares.mean(1))
        rows.setdefault("share", []).append(truth)
        rows.setdefault("spread", []).append(spread)
        for products in estimates:
            cohort = np.sort(draw.choice(len(everyone), COHORT, replace=False))
            for kind, (replays, sampled) in KINDS.items():
                one = few(products, range(replays), cohort if sampled else everyone)
                error = np.abs(one.estimate()[SHARE] - truth)
                rows.setdefault(f"{kind} error", []).append(100 * error)
                if replays <= 3:
                    rows.setdefault(f"{kind} hits", []).append(error <= one.estimated().half[SHARE])
    return {name: np.array(values) for name, values in rows.items()}


def cost(turns: int, cases: Sequence[dict[str, Any]], name: str, *settings: str) -> str:
    """Processor time of the analysis of a round with options over that of a round; medians of runs in turn."""
    rounds, used = [], []
    for seed in range(turns):
        with tempfile.TemporaryDirectory() as folder:
            seconds = []
            for number in (1, 1, SHORT):  # the first loads modules
                before = time.process_time()
                run = drift.simulate(drift.read(name, *settings, f"seed={seed}", f"rounds={number}"), runs=folder)
                seconds.append(time.process_time() - before)
                shutil.rmtree(run.folder) if number == 1 else None
            rounds.append((seconds[2] - seconds[1]) / (SHORT - 1))  # without what a run costs beside its rounds
            drift.noise_or_drift(run, rounds=[0], replays=2)  # loads modules and reads the data
            used.append([])
            for case in cases:
                before = time.process_time()
                drift.noise_or_drift(run, rounds=[run.committed - 1], **case)
                used[-1].append(time.process_time() - before)
    over = np.median(np.array(used) / np.array(rounds)[:, None], axis=0)
    parts = [f"{case} {one:.2f} rounds" for case, one in zip(cases, over, strict=True)]
    return f"{name} {' '.join(settings[:-4])}: round {np.median(rounds):.2f} s; {'; '.join(parts)}"


def finding(name: str, seed: int) -> dict[str, Any]:
    """Shares of the four parts and mean squares of the mean update's error in the early and late rounds of a run."""
    with tempfile.TemporaryDirectory() as folder:
        experiment, *changes = FINDING[name]
        run = drift.simulate(drift.read(experiment, *changes, f"seed={seed}"), runs=folder)
        ds = drift.noise_or_drift(run, rounds=[*EARLY, *LATE]).sel(fraction=1)
    row: dict[str, Any] = {"data": name, "seed": seed, "cohort": int(ds.cohort[0])}
    row["clients"] = run.experiment.clients.number
    for key, dim in (("share", "part"), ("mean_square", "cause")):
        row[key] = {str(one): [float(f"{value:.5g}") for value in ds[key].sel({dim: one})] for one in ds[dim].values}
    return row


def table(content: dict[str, Any]) -> str:
    """By data set and rounds: shares of the updates, then of the error of their mean; ± half the interval."""
    shown = ("signal", "data", "drift", "noise", "drift minus noise")
    shown += ("error: drift", "error: sampling", "error: noise")
    lines = [f"|data, rounds|{'|'.join(shown)}|", f"|{'---|' * (1 + len(shown))}"]
    for name in FINDING:
        rows = [row for row in content["runs"] if row["data"] == name]
        for words, places in (("early", slice(0, len(EARLY))), ("late", slice(len(EARLY), None))):
            rows_of = [[100 * np.mean(row["share"][part][places]) for part in PARTS] for row in rows]
            errors = [[100 * np.mean(one[places]) for one in error_shares(row).values()] for row in rows]
            parts, causes = np.array(rows_of).T, np.array(errors).T
            ends = [estimate(values) for values in (*parts, parts[2] - parts[3], *causes)]
            cells = "|".join(f"{one.value:.0f}±{one.high - one.value:.0f}" for one in ends)
            lines.append(f"|{name}, {words}|{cells}|")
    return "\n".join(lines)


def error_shares(row: dict[str, Any]) -> dict[str, np.ndarray]:
    """Shares of drift, sampling and noise in the error of the recorded cohort's mean update, by round."""
    squares = {name: np.array(values) for name, values in row["mean_square"].items()}
    m, clients = row["cohort"], row["clients"]
    parts = {"drift": squares["drift"], "sampling": squares["sampling"] * (1 / m - 1 / clients)}
    parts["noise"] = squares["noise"] / m
    return {name: values / sum(parts.values()) for name, values in parts.items()}


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, nargs="+", default=[1, 8])
    parser.add_argument("what", nargs="?", choices=("check", "cost", "finding", "table"), default="check")
    options = parser.parse_args()
    if options.what == "finding":
        runs = [finding(name, seed) for name in FINDING for seed in SEEDS]
        lines = ",\n".join(f"  {json.dumps(run)}" for run in runs)
        about = json.dumps({"processor": processor_line(), "torch": torch.__version__})
        STORED.write_text(f'{about[:-1]},\n "runs": [\n{lines}\n ]}}\n', encoding="utf-8")
    if options.what in ("finding", "table"):
        print(table(json.loads(STORED.read_text(encoding="utf-8"))))
        return
    print(processor_line())
    if options.what == "cost":
        short = ("keep.globals=all", "keep.clients=all", "clients.partition=shards")
        short += ("clients.partition.shards=2",)
        cases: list[dict[str, Any]] = [{"replays": 2}, {"replays": 3}]
        cases += [{**case, "clients": 5} for case in cases] + [{"replays": 3, "fractions": (0.125, 0.25, 0.5, 1.0)}]
        for epochs in (1, 5):
            print(cost(5, [*cases, {"replays": 10}], "common-fmnist", f"local.epochs={epochs}", *short), flush=True)
        print(cost(2, cases, "common-fmnist", "local.epochs=5", "task.model=cnn_fmnist", *short), flush=True)
        return
    names = [*SETTING, *(f"{part} %" for part in PARTS), "spread %"]
    names += [f"{which} error {kind}" for kind in KINDS for which in ("median", "largest")]
    lines = [",".join(names)]
    every: dict[str, list[np.ndarray]] = {}
    for setting in SETTINGS:
        with tempfile.TemporaryDirectory() as folder:
            run = drift.simulate(experiment(setting, max(options.rounds) + 1), runs=folder)
            measured = measure(run, options.rounds)
        for name, values in measured.items():
            every.setdefault(name, []).append(values)
        cells = [*map(str, setting), *(f"{100 * share:.0f}" for share in measured["share"][-1])]
        cells.append(f"{100 * measured['spread'].max():.0f}")
        for kind in KINDS:
            largest = measured[f"{kind} error"].max(1)  # of the parts
            cells += [f"{np.median(largest):.1f}", f"{largest.max():.1f}"]
        lines.append(",".join(cells))
        print(lines[-1], flush=True)
    CHECKED.write_text("\n".join(lines) + "\n", encoding="utf-8")
    for kind in KINDS:
        errors = np.concatenate(every[f"{kind} error"]).max(1)
        hits = every.get(f"{kind} hits")
        held = "" if hits is None else f"; intervals hold {np.round(100 * np.concatenate(hits).mean(0)).tolist()} %"
        print(f"{kind}: median {np.median(errors):.1f}, 95 % below {np.quantile(errors, 0.95):.1f}{held}")


if __name__ == "__main__":
    main()
