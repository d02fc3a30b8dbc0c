"""A round of 1,000 clients on Dask workers of this machine: seconds, and the bytes that cross its loopback device."""

from __future__ import annotations

import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

COHORT, ROUNDS = 1_000, 3

SETTINGS = [
    "ima-fmnist-shards2",
    "method=fedavg",
    f"rounds={ROUNDS}",
    f"clients.number={COHORT}",
    f"clients.per_round={COHORT}",
    "local.epochs=1",
]
"""The FMNIST CNN (274,026 parameters, 1.1 GB for the cohort), 60 samples per client, all client models kept."""

MEMORY = {"models are sent": "16GB", "models are written by workers": "1GB"}
"""Budgets by which a round is held by the server, or lies in its file while it trains."""


def measure(numbers: Sequence[int]) -> list[dict[str, Any]]:
    """Seconds of the last round, and MB over the loopback in it, by one process and by each number of workers."""
    from distributed import Client, LocalCluster

    results = [_measured("models are sent", 0, None)]
    for number in numbers:
        options = {"n_workers": number, "threads_per_worker": 1, "memory_limit": 0, "dashboard_address": None}
        with LocalCluster(**options) as cluster, Client(cluster):
            results += [_measured(kind, number, cluster.scheduler_address) for kind in MEMORY]
    return results


def _measured(kind: str, workers: int, address: str | None) -> dict[str, Any]:
    from drift.simulation.simulate import simulate
    from drift.store.memory_budget import limited

    crossed = []
    with tempfile.TemporaryDirectory() as place, limited(MEMORY[kind]):
        run = simulate(*SETTINGS, runs=place, cluster=address, progress=lambda record: crossed.append(_loopback()))
        seconds = float(run.metrics()["seconds"].values[-1])
    megabytes = (crossed[-2] - crossed[-3]) / 1e6  # a record comes when the next round has been trained
    who = f"{workers} workers, {kind}" if workers else "one process"
    print(f"{who:45} {seconds:7.2f} s a round  {megabytes:8.0f} MB over the loopback", flush=True)
    return {"workers": workers, "kind": kind, "seconds": seconds, "megabytes": megabytes}


def _loopback() -> int:
    """Bytes that the loopback device has received."""
    (line,) = (line for line in Path("/proc/net/dev").read_text().splitlines() if line.strip().startswith("lo:"))
    return int(line.split(":")[1].split()[0])
