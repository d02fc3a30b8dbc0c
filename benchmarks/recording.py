"""What recording every client model costs the trainer, and how small client models become when packed.

    python -m benchmarks.recording [--rounds 6] [--runs FOLDER ...]

Trains the FMNIST CNN of the IMA paper (10 clients of 600 samples, batches of 50) with one local epoch, the shortest
round that such runs have, three ways: recorded in the training thread, in the background, in the background and packed.
Per round: seconds of training; seconds in which the trainer did nothing but hand over or wait; CPU seconds of writing.
With five local epochs, as in the paper, all shares are a fifth. One torch thread, medians over rounds, round 0 left
out. With --runs, client models of recorded runs are packed: the size of the files that hold them beside the unpacked
ones. Results go to benchmarks/results/recording.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs by its path as well

from drift.config.load import read
from drift.runs.run import Run
from drift.simulation.background_writer import Writer
from drift.simulation.simulate import simulate
from drift.store import files
from drift.store.keep import Keep

RESULTS = Path(__file__).resolve().parent / "results" / "recording.json"


def timed(rounds: int, keep: str, *, wait: bool) -> dict[str, float]:
    """Medians of a run's rounds: seconds of training, seconds the trainer waited, CPU seconds of writing."""
    trained, waited, wrote = [], [], []
    real_put, real_committed, real_write = Writer.put, Writer.committed, Writer._write

    def put(self: Writer, record: Any, server: Any) -> None:
        begun = time.perf_counter()
        real_put(self, record, server)
        if wait:
            self.flush()
        waited.append(time.perf_counter() - begun)
        trained.append(record.metrics["seconds"])

    def committed(self: Writer, seconds: float = 0.0) -> Any:
        begun = time.perf_counter()
        found = real_committed(self, seconds)
        waited[-1] += time.perf_counter() - begun
        return found

    def write(self: Writer, job: Any) -> None:
        begun = time.thread_time()
        real_write(self, job)
        wrote.append(time.thread_time() - begun)

    changes = {"put": put, "committed": committed, "_write": write}
    before: dict[str, Callable[..., Any]] = {"put": real_put, "committed": real_committed, "_write": real_write}
    for name, function in changes.items():
        setattr(Writer, name, function)
    try:
        with tempfile.TemporaryDirectory() as folder:
            simulate("ima-fmnist-shards2", f"rounds={rounds}", "method=fedavg", "local.epochs=1", keep, runs=folder)
    finally:
        for name, function in before.items():
            setattr(Writer, name, function)
    found = {"train": trained, "wait": waited[: len(trained)], "write_cpu": wrote}
    return {name: statistics.median(values[1:]) for name, values in found.items()}


def sizes(folder: Path) -> list[dict[str, Any]]:
    """Files of the first, middle and last round that kept clients: bytes unpacked and packed, CPU seconds."""
    run, rows = Run(folder), []
    kept = run.kept("clients")
    for index in sorted({kept[0], kept[len(kept) // 2], kept[-1]}):
        record = run.round(index)
        found: dict[str, Any] = {"run": run.name, "round": index}
        for name, keep in {
            "raw": Keep(),
            "packed": Keep(compress=True),
            "bfloat16": Keep(dtype="bfloat16 deltas"),
            "bfloat16_packed": Keep(dtype="bfloat16 deltas", compress=True),
        }.items():
            with tempfile.TemporaryDirectory() as place:
                costs = []
                for _ in range(3):
                    begun = time.process_time()
                    files.write_round(Path(place), record, keep, run.experiment.rounds)
                    costs.append(time.process_time() - begun)
                found[name] = files.round_path(Path(place), index).stat().st_size
                found[f"{name}_seconds"] = statistics.median(costs)
        rows.append(found)
        print(
            f"{run.name} round {index}: packed {found['packed'] / found['raw']:.3f}, bfloat16 "
            f"{found['bfloat16'] / found['raw']:.3f}, both {found['bfloat16_packed'] / found['raw']:.3f} of raw; CPU "
            f"{1e3 * found['raw_seconds']:.1f} ms raw, {1e3 * found['packed_seconds']:.1f} ms packed"
        )
    return rows


def main() -> None:
    """Measure, print and keep."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--runs", type=Path, nargs="*", default=[])
    given = parser.parse_args()
    read("ima-fmnist-shards2")
    results: dict[str, Any] = {"rounds": []}
    for name, keep, wait in [
        ("in the trainer", "keep.clients=all", True),
        ("background", "keep.clients=all", False),
        ("background, packed", "keep.compress=true", False),
        ("background, numbers only", "keep.clients=none", False),
    ]:
        found = timed(given.rounds, keep, wait=wait)
        results["rounds"].append({"how": name, **found})
        print(
            f"{name}: round {found['train']:.3f} s, trainer waits {1e3 * found['wait']:.1f} ms "
            f"({100 * found['wait'] / found['train']:.2f} %), writing {1e3 * found['write_cpu']:.1f} ms CPU "
            f"({100 * found['write_cpu'] / found['train']:.2f} %)",
            flush=True,
        )
    results["sizes"] = [row for folder in given.runs for row in sizes(folder)]
    RESULTS.parent.mkdir(exist_ok=True)
    RESULTS.write_text(json.dumps(results, indent=1) + "\n")


if __name__ == "__main__":
    main()
