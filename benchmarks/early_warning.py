"""How early do sequential tests on the drift of a training warn of its failure, and do they beat its loss curve?

    python -m benchmarks.early_warning calibrate [--runs FOLDER]   statistics of healthy runs, and the limits (minutes)
    python -m benchmarks.early_warning test                        train and test runs with planted faults (minutes)
    python -m benchmarks.early_warning table                       the tables of docs/early-warning.md

Healthy are the recorded runs of docs/results/data that learned and kept it, and runs of 36 rounds that are trained here
in a temporary folder. A file of a recorded run has no Gram matrices, so that it has the statistics coherence, rate,
rise and stall alone; --runs gives the folders of some of these runs, which have all. The limits are fitted so that the
detectors of a family together give an alarm in 5 % of the runs of a new setting: data, model, partition, cohort, rate
and local epochs. Every alarm that is reported uses limits that were fitted without the setting of its run (healthy
runs), or without any run of its data set (planted faults). Numbers go to docs/results/early_warning.json, limits to
drift/record/early_warning.json.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from math import log, nan
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs by its path as well

import drift
from benchmarks._warning_limits import LEVEL, limits_of
from benchmarks._warning_tables import tables
from benchmarks.diagnosis import SETTINGS as DIAGNOSED
from drift.claims.campaign import records
from drift.claims.campaign.recorded_run import RecordedRun
from drift.config.experiment import Experiment
from drift.config.load import read, validated
from drift.record.early_warning import DETECTORS, LIMITS, Watch
from drift.runs.run import Run
from drift.simulation.simulate import Diverged
from landscape.sweep.processor import processor_line

ROOT = Path(__file__).resolve().parents[1]
STORED = ROOT / "docs" / "results" / "early_warning.json"
FILES = ROOT / "docs" / "results" / "data"

ROUNDS = 36

LARGEST = 1e6
"""What stands for an infinite statistic in the file of numbers."""

SEEDS, HELD_OUT = range(3), range(41, 46)
"""Seeds of the healthy runs that the limits are fitted to, and of the runs with planted faults."""

_MEAN = "method=benchmarks/_warning_faults.py:Faulty"

BASES: dict[str, Any] = {
    **DIAGNOSED,
    "fashion_mnist": {
        **DIAGNOSED["digits"],
        "task": {
            "dataset": "fashion_mnist",
            "model": "mlp",
            "model_options": {"hidden": [50]},
            "train_samples": 2000,
            "test_samples": 1000,
        },
        "local": {**DIAGNOSED["digits"]["local"], "lr": 0.1},
    },
}
"""Settings without a fault: those of `benchmarks.diagnosis`, and the same on Fashion-MNIST."""

HEALTHY: dict[str, tuple[str, ...]] = {
    "none": (),
    "even labels, 8 epochs": ("clients.partition=iid", "local.epochs=8"),
    "two labels per client": ("clients.partition=shards", "clients.shards=2"),
    "Dirichlet(0.1)": ("clients.concentration=0.1",),
    "all clients": ("clients.per_round=10",),
    "1 epoch": ("local.epochs=1",),
    "IMA": ("method=ima", "method.window=5"),
    "FedAdam": ("method=fedadam", "method.server_lr=0.01"),
}
"""Changes that leave a healthy run."""

FAULTS: dict[str, tuple[str, ...]] = {
    "rate x10": ("local.lr*10",),
    "rate x10 later": (_MEAN, "method.fault=rate"),
    "momentum 0.98": ("local.momentum=0.98",),
    "server rate 2.5": ("method.server_lr=2.5",),
    "FedAdam, rate 0.3": ("method=fedadam", "method.server_lr=0.3"),
    "client x10": (_MEAN, "method.factor=10"),
    "client grows": (_MEAN, "method.fault=grows", "method.factor=3"),
    "client turned": (_MEAN, "method.factor=-1"),
    "client's labels shifted": (_MEAN, "method.fault=labels"),
    "half turned": (_MEAN, "method.factor=-1", "method.clients=[0,1,2,3,4]"),
    "all copy one": (_MEAN, "method.fault=copies"),
    "rate /30": ("local.lr/30",),
}
"""Planted faults; those of single clients and of the rate in the middle begin in round 4."""


def experiment(data: str, changes: Sequence[str], seed: int) -> Experiment:
    """A run with some changes; `local.lr*10` multiplies the rate of the setting."""
    rate = BASES[data]["local"]["lr"]
    known = {"local.lr*10": f"local.lr={rate * 10}", "local.lr/30": f"local.lr={rate / 30}"}
    common = (f"seed={seed}", f"rounds={ROUNDS}", "keep.clients=none", "keep.globals=none")
    return read(validated(BASES[data]), *(known.get(change, change) for change in changes), *common)


def trained(data: str, changes: Sequence[str], seed: int) -> list[dict[str, float]]:
    """The statistics of a run that is trained to the end of the watched rounds, round by round."""
    spec = experiment(data, changes, seed)
    watched = Watch(ROUNDS).last
    with tempfile.TemporaryDirectory() as folder:
        try:
            return statistics(drift.simulate(spec, runs=folder, until=watched))
        except Diverged:  # which nobody overlooks: an alarm of both families in the round that is not recorded
            ended = dict.fromkeys(DETECTORS["all"], nan) | {"client": LARGEST, "rise": LARGEST}
            return [*statistics(Run(Path(folder) / spec.slug)), ended]


def statistics(run: Run) -> list[dict[str, float]]:
    """Of a run on disk: the statistic of every detector in every watched round."""
    table = drift.early_warning(run).statistic
    return [dict(zip(table.detector.values.tolist(), row.tolist(), strict=True)) for row in table.values]


def statistics_of_file(run: RecordedRun) -> list[dict[str, float]]:
    """Of a recorded run as its file keeps it: a value per block of rounds, NaN where Gram matrices are needed."""
    series, metrics = run.series(), run.metrics()
    watch, rows = Watch(len(series["round"])), []
    norms = [nan, *series.end_norm.values[:-1].tolist()]
    losses = {
        int(index) // series.block: float(value)
        for index, value in zip(metrics["round"].values, metrics.loss.values, strict=True)
    }
    columns = series.mean_cosine.values, series.step_norm.values, norms
    for place, (cosine, step, before) in enumerate(zip(*columns, strict=True)):
        numbers = {"cosine": float(cosine), "step": log(step / before) if before > 0 and step > 0 else nan}
        numbers |= {"rank": nan, "gap": nan, "negative": nan, "loss": losses.get(place, nan)}
        rows.append(watch.add(place, numbers))
    return [row for row in rows if row]


def peaks(rows: Sequence[dict[str, float]]) -> dict[str, float]:
    """Largest value of each detector that has any."""
    return {
        name: round(max(values), 4)
        for name in DETECTORS["all"]
        if (values := [row[name] for row in rows if not np.isnan(row[name])])
    }


def setting_of(spec: Experiment) -> str:
    """What the runs of a setting share; the method and the number of rounds may differ."""
    clients, local = spec.clients, spec.local
    parts = json.dumps(clients.partition.model_dump(mode="json"), sort_keys=True)
    values = (spec.task.dataset, spec.task.model, parts, clients.per_round, local.lr, local.epochs, local.momentum)
    return f"{spec.task.dataset} {hashlib.sha256(repr(values).encode()).hexdigest()[:8]}"


def unhealthy(run: RecordedRun) -> str:
    """Why a recorded run is not healthy; "" if it is: its mean accuracy late is over twice chance and near its best."""
    accuracy = run.metrics().accuracy.dropna("round").values
    smooth = np.convolve(accuracy, np.ones(5) / 5, "valid") if len(accuracy) > 5 else accuracy
    if run.diverged:
        return "diverged"
    return "" if smooth[-1] > max(0.2, 0.8 * smooth.max()) else "lost or never reached its accuracy"


def healthy_rows(folders: Path | None) -> Iterator[dict[str, Any]]:
    """Largest statistics of every healthy run."""
    for run in records.read_all(FILES):
        about = {"run": run.name, "setting": setting_of(run.experiment), "data": run.experiment.task.dataset}
        if reason := unhealthy(run):
            yield {**about, "left_out": reason}
            continue
        folder = None if folders is None else folders / run.name
        full = folder is not None and (folder / "rounds").is_dir() and Run(folder).committed == run.committed
        yield {**about, "gram": full, "peaks": peaks(statistics(Run(folder)) if full else statistics_of_file(run))}
    for data in BASES:
        for name, changes in HEALTHY.items():
            for seed in SEEDS:
                spec = experiment(data, changes, seed)
                about = {"run": f"{data}, {name}, seed {seed}", "setting": setting_of(spec), "data": data}
                yield {**about, "gram": True, "peaks": peaks(trained(data, changes, seed))}


def faulty_rows() -> Iterator[dict[str, Any]]:
    """The statistics, round by round, of runs with planted faults and of runs without, of seeds not used before."""
    for data in BASES:
        for fault, changes in {"none": (), **FAULTS}.items():
            for seed in HELD_OUT:
                rows = trained(data, changes, seed)
                values = {name: [_short(row[name]) for row in rows] for name in DETECTORS["all"]}
                yield {"data": data, "fault": fault, "seed": seed, "statistics": values}


def _short(value: float) -> float | None:
    return None if np.isnan(value) else round(min(value, LARGEST), 3)


def store(content: dict[str, Any]) -> None:
    """Write the numbers, one run a line."""
    lists = {
        name: ",\n  ".join(json.dumps(row, separators=(",", ":")) for row in content.get(name, ()))
        for name in ("healthy", "faulty")
    }
    about = {"processor": processor_line(), "torch": torch.__version__, "level": LEVEL, "rounds": ROUNDS}
    body = "".join(f', "{name}": [\n  {text}\n ]' for name, text in lists.items())
    STORED.write_text(f"{json.dumps(about)[:-1]}{body}}}\n", encoding="utf-8")


def write_limits(content: dict[str, Any]) -> None:
    """Fit the limits to all healthy runs, and write them where the library reads them."""
    LIMITS.write_text(json.dumps(limits_of(content), indent=1) + "\n", encoding="utf-8")


def main() -> None:
    """Calibrate, test, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    commands = parser.add_subparsers(dest="command", required=True)
    commands.add_parser("calibrate").add_argument("--runs", type=Path, help="folder of recorded runs")
    commands.add_parser("test")
    commands.add_parser("table")
    asked = parser.parse_args()
    torch.set_num_threads(1)
    content = json.loads(STORED.read_text(encoding="utf-8")) if STORED.exists() else {}
    begun = time.process_time()
    if asked.command == "calibrate":
        content["healthy"] = list(healthy_rows(asked.runs))
        write_limits(content)
    if asked.command == "test":
        content["faulty"] = list(faulty_rows())
    if asked.command != "table":
        store(content)
        print(f"{time.process_time() - begun:.0f} s of one core")
    print(tables(content))


if __name__ == "__main__":
    main()
