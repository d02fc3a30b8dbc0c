"""What recording adds to a training round: the Gram matrix of its updates and the series that follow from it.

    python -m benchmarks.series [--models cnn_fmnist resnet18_gn] [--clients 10 100] [--rounds 3]

The clients' updates, the previous mean update and the Gram matrix are what `drift.simulation.one_round` computes for
the record; the
series are coherence, mean cosine, drift variances and locality of that round. A round is the local training of all its
clients alone: a few real steps of one client, timed and scaled to the paper's number of steps (cnn_fmnist: 600 samples,
5 epochs of batches of 50, IMA; resnet18_gn: 500 samples, 1 epoch of batches of 20, FedEve) and to the number of
clients. "tight" is one epoch with the same samples and batches. Aggregation and evaluation would make the share
smaller. One thread, process CPU time, medians. Results go to benchmarks/results/series.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import torch
from torch import Tensor

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs by its path as well

from drift.analyses.rounds.coherence import cohort_coherence, cosines, mean_cosine
from drift.analyses.rounds.norms_and_weights import distances
from drift.analyses.rounds.variance import change_variance, client_variance
from drift.store.round_record import gram
from landscape import models
from landscape.model.bound_model import Flat
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.sweep.processor import processor_line

RESULTS = Path(__file__).resolve().parent / "results" / "series.json"


@dataclass(frozen=True)
class Local:
    """Local training of one client: shape of an input, samples, epochs, batch size."""

    shape: tuple[int, ...]
    samples: int
    epochs: int
    batch: int


SETTINGS = {
    "cnn_fmnist": Local((1, 28, 28), 600, 5, 50),
    "resnet18_gn": Local((3, 32, 32), 500, 1, 20),
}


def seconds_of_a_client(task: Task, local: Local, steps: int) -> float:
    """CPU seconds of one epoch of a client, from `steps` steps of plain SGD after one that warms up."""
    flat = Flat(task.model, task.layout, task.loss, dtype=torch.float32, device=torch.device("cpu"))
    flat.load(task.theta)
    flat.training(True)
    batch = Samples(torch.randn(local.batch, *local.shape), torch.randint(10, (local.batch,)))

    def step() -> None:
        flat.gradient(batch)
        with torch.no_grad():
            flat.theta.sub_(flat.grad, alpha=0.01)

    step()
    each = statistics.median(_timed(step)[1] for _ in range(steps))
    return each * local.samples / local.batch


def recorded(start: Tensor, clients: Tensor, end: Tensor, weights: Tensor) -> tuple[Tensor, Tensor]:
    """The Gram matrix and the mean update (d,), as `drift.simulation.one_round` makes them."""
    deltas = clients - start
    matrix = gram(start, torch.zeros_like(start), end - start, deltas)
    return matrix, weights.to(deltas) @ deltas


def series(matrix: Tensor, weights: Tensor, d: int) -> tuple[float, ...]:
    """The numbers of one round that its Gram matrix gives."""
    cosine = cosines(matrix)
    return (
        cohort_coherence(cosine, weights),
        mean_cosine(cosine, weights),
        change_variance(matrix, weights, d),
        client_variance(matrix, weights, d),
        float(distances(matrix, weights).max()),
    )


def seconds_of_recording(start: Tensor, m: int, rounds: int) -> dict[str, list[float]]:
    """CPU seconds of the record and of the series, each so many times, for m random clients around start (d,)."""
    clients = start.expand(m, len(start)).clone()
    for row in clients:
        row.add_(torch.randn(len(start)), alpha=0.01)
    weights = torch.full((m,), 1 / m, dtype=torch.float64)
    end = weights.float() @ clients
    spent: dict[str, list[float]] = {"record": [], "series": []}
    for _ in range(rounds):
        (matrix, _), seconds = _timed(partial(recorded, start, clients, end, weights))
        spent["record"].append(seconds)
        spent["series"].append(_timed(partial(series, matrix, weights, len(start)))[1])
    return spent


def measured(name: str, counts: list[int], rounds: int, steps: int) -> list[dict[str, Any]]:
    """One table row for each number of clients."""
    torch.manual_seed(0)
    local, tables = SETTINGS[name], []
    model = models.build_model(name, local.shape, 10, seed=0)
    task = Task(model, {"train": Samples(torch.zeros(1, *local.shape), torch.zeros(1, dtype=torch.int64))})
    epoch, d = seconds_of_a_client(task, local, steps), task.layout.size
    start = task.theta
    for m in counts:
        spent = seconds_of_recording(start, m, rounds)
        added = sum(map(statistics.median, spent.values()))
        shares = {"paper": added / (m * local.epochs * epoch), "tight": added / (m * epoch)}
        tables.append({"model": name, "d": d, "clients": m, "epoch_seconds": epoch, "seconds": spent, "shares": shares})
    return tables


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=SETTINGS, default=list(SETTINGS))
    parser.add_argument("--clients", nargs="+", type=int, default=[10, 100])
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of the recording")
    parser.add_argument("--steps", type=int, default=5, help="training steps that are timed")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    found = []
    for name in chosen.models:
        for row in measured(name, chosen.clients, chosen.rounds, chosen.steps):
            found.append(row)
            record, numbers = (statistics.median(row["seconds"][part]) for part in ("record", "series"))
            print(
                f"{name} d = {row['d']}, {row['clients']} clients: one epoch of a client {row['epoch_seconds']:.2f} s, "
                f"record {record:.3f} s, series {numbers * 1e3:.1f} ms; "
                + ", ".join(f"{kind} {100 * share:.2f} % of the round" for kind, share in row["shares"].items()),
                flush=True,
            )
    RESULTS.parent.mkdir(exist_ok=True)
    machine = {"processor": processor_line(), "torch": torch.__version__}
    RESULTS.write_text(json.dumps({**machine, "tables": found}, indent=1) + "\n")


def _timed(function: Callable[[], Any]) -> tuple[Any, float]:
    begun = time.process_time()
    return function(), time.process_time() - begun


if __name__ == "__main__":
    main()
