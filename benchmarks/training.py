"""Local training of a cohort: this project against the naive loop and its peers, A B A B in one process.

    python -m benchmarks.training [--cases cnn_fmnist cnn_cifar10 mlp_digits] [--rounds 5]
    python -m benchmarks.training --flower VENV/bin/python      Flower's simulation, in a virtual environment of its own
    python -m benchmarks.training --pfl VENV/bin/python         pfl-research's, in one with pfl and torch
    python -m benchmarks.training --device cuda                 wall time on a GPU, 100 clients of the FMNIST CNN
    python -m benchmarks.training --start                       process start to the first committed round only

The naive loop copies the model for each client and trains it with a DataLoader and SGD. "expert" has one model and the
images in channels_last and takes batches by their indices; "compiled" is the same under `torch.compile`, without the
time of compiling, where there is a compiler. "ours" is the engine that "auto" takes. Float32, one thread, process CPU
time, medians after one round that warms up; on a GPU wall time. The limit is the forward and backward FLOPs over the
rate of float32 matrix products on one core. Results go to benchmarks/results/training.json, those of a GPU to
training_cuda.json.
"""

from __future__ import annotations

import argparse
import json
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs by its path as well

from benchmarks._cohorts import SETTINGS, Case, peer
from benchmarks.landscape import matrix_rates
from landscape.sweep.processor import processor

RESULTS = Path(__file__).resolve().parent / "results"
PEER_SECONDS = 300.0

LAYERS = (
    "aten::mkldnn_convolution",
    "aten::convolution_backward",
    "aten::mm",
    "aten::addmm",
    "aten::bmm",
    "aten::baddbmm",
    "aten::max_pool2d_with_indices",
    "aten::max_pool2d_with_indices_backward",
    "aten::native_batch_norm",
    "aten::native_batch_norm_backward",
    "aten::clamp_min",
    "aten::threshold_backward",
)
"""Torch's names of the layers of CNNs, forward and backward; `convolution_backward` calls oneDNN itself."""

TINY = """
import drift, sys
settings = {
    "rounds": 1,
    "task": {"dataset": "blobs", "model": "linear"},
    "clients": {"number": 4, "per_round": 4, "partition": "iid"},
    "local": {"epochs": 1, "batch": 10},
}
drift.simulate(drift.Experiment.model_validate(settings), runs=sys.argv[1])
"""


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="+", choices=SETTINGS)
    parser.add_argument("--rounds", type=int, default=5, help="repetitions of A B")
    parser.add_argument("--flower", help="interpreter of a virtual environment with flwr[simulation]")
    parser.add_argument("--pfl", help="interpreter of a virtual environment with pfl and torch")
    parser.add_argument("--device", default="cpu", help="cuda: measure on a GPU")
    parser.add_argument("--start", action="store_true", help="measure the start of a process only")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    on_cpu = chosen.device == "cpu"
    cases = chosen.cases or (
        ["cnn_fmnist", "cnn_cifar10", "mlp_digits", "mlp_digits_batch10"] if on_cpu else ["cnn_fmnist_100"]
    )
    found: dict[str, Any] = {"processor": processor()}
    if on_cpu:
        found["start"] = start()
    if not chosen.start:
        found["flops_per_second"] = matrix_rates() if on_cpu else {}
        tables = [table(name, chosen, found["flops_per_second"]) for name in cases]
        found["tables"] = tables
        name = "training" if on_cpu else f"training_{chosen.device}"
        RESULTS.mkdir(exist_ok=True)
        (RESULTS / f"{name}.json").write_text(json.dumps(found, indent=1) + "\n")


def start(repeats: int = 3) -> dict[str, list[float]]:
    """Seconds from the start of a process to the end of a first round of a tiny model, which is then on disk."""
    spent: dict[str, list[float]] = {"wall": [], "cpu": []}
    for _ in range(repeats):
        with tempfile.TemporaryDirectory() as folder:
            used, begun = _children(), time.perf_counter()
            subprocess.run([sys.executable, "-c", TINY, folder], check=True)
            spent["wall"].append(time.perf_counter() - begun)
            spent["cpu"].append(_children() - used)
    print(f"start to first committed round: {_said(spent['cpu'])} CPU, {_said(spent['wall'])} wall", flush=True)
    return spent


def table(name: str, chosen: argparse.Namespace, rates: dict[str, float]) -> dict[str, Any]:
    """Seconds a round of every contestant on one setting, and what follows from them."""
    case = Case(SETTINGS[name], chosen.device)
    print(f"{name}: {case.setting}", flush=True)
    print(f"  engine {case.choice.name} ({case.choice.reason})")
    clock = time.process_time if chosen.device == "cpu" else time.perf_counter
    runs = case.contestants()
    seconds: dict[str, list[float]] = {run: [] for run in runs}
    for turn in range(chosen.rounds + 1):
        for run, function in runs.items():
            spent = _timed(function, clock, chosen.device)
            if turn:  # the first round warms up
                seconds[run].append(spent)
    notes = {}
    if chosen.device == "cpu":
        seconds["flower"], notes["flower"] = peer("_flower", chosen.flower, name, PEER_SECONDS)
        seconds["pfl"], notes["pfl"] = peer("_pfl", chosen.pfl, name, PEER_SECONDS)
    medians = {run: statistics.median(times) for run, times in seconds.items() if times}
    result = {
        "case": name,
        "engine": case.choice.name,
        "reason": case.choice.reason,
        "seconds": seconds,
        "missing": {run: note for run, note in notes.items() if note},
        "ratio": {run: median / medians["ours"] for run, median in medians.items()},
        "flops": case.flops,
        "limit": {kind: case.flops / rate for kind, rate in rates.items()},
    }
    for run, median in medians.items():
        limits = ", ".join(f"{100 * limit / median:.0f} % of {kind}" for kind, limit in result["limit"].items())
        rate = case.flops / median / 1e9
        print(f"  {run:14}{median:8.4f} s {result['ratio'][run]:7.2f} x ours, {rate:.0f} GFLOP/s  {limits}", flush=True)
    for run, note in result["missing"].items():
        print(f"  {run:14}{note}")
    if chosen.device == "cpu":
        result["layers"] = time_share(runs["ours"], LAYERS)
        bound = f"without the rest it would be {1 / result['layers']:.2f} times as fast"
        print(f"  {result['layers']:.0%} of ours is inside torch's layers: {bound}")
    if chosen.device.startswith("cuda"):
        result["device"] = torch.cuda.get_device_name()
        result["peak_mib"] = torch.cuda.max_memory_allocated() / 2**20
        result["utilisation_percent"] = _utilisation(runs["ours"])
        print(f"  peak {result['peak_mib']:.0f} MiB, utilisation in ours {result['utilisation_percent']}")
    return result


def time_share(work: Callable[[], Any], names: Sequence[str]) -> float:
    """Share of its time that work spends inside operations of torch, by their names."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]) as profile:
        work()
    spent = {event.key: event.self_cpu_time_total for event in profile.key_averages()}
    return sum(spent.get(name, 0.0) for name in names) / sum(spent.values())


def _utilisation(work: Callable[[], Any]) -> float | str:
    """What the driver says right after some rounds of work, in percent."""
    try:
        for _ in range(3):
            work()
        return float(torch.cuda.utilization())
    except ModuleNotFoundError as missing:
        return str(missing)


def _timed(function: Callable[[], Any], clock: Callable[[], float], device: str) -> float:
    wait = torch.cuda.synchronize if device.startswith("cuda") else lambda: None
    wait()
    begun = clock()
    function()
    wait()
    return clock() - begun


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _said(values: list[float]) -> str:
    return f"{statistics.median(values):.2f} s"


if __name__ == "__main__":
    main()
