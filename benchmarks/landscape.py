"""A plane through three models: this project against its peers on the same work, A B A B in one process.

    python -m benchmarks.landscape [--models cnn_fmnist cnn_cifar10] [--points 21] [--samples 2000] [--rounds 2]
    python -m benchmarks.landscape --models all --points 7 --only ours expert compiled --skip-memory
    python -m benchmarks.landscape --workers 2        wall time of two threads, and of two processes as their ceiling
    python -m benchmarks.landscape --device cuda      the classic loop and this project on a GPU, in wall time

Peers: the classic set-the-weights-and-loop code; the same by an expert, with model and images in channels_last and
batches of 128 cut beforehand; the expert's loop under `torch.compile`, without the time of compiling, where there is a
compiler; and the package loss-landscapes where it is installed. Float32, one thread on one core, process CPU time; peak
memory in a process of its own for each contestant. The limit is the forward FLOPs over the rate of float32 matrix
products on one core, once of torch's `left @ right` and once of oneDNN, which computes convolutions. Results go to
benchmarks/results/landscape.json, where a model measured again replaces its earlier row; of the other modes to
landscape_workers.json and landscape_cuda.json. `benchmarks.write_tables` joins the results of several machines.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs by its path as well

from benchmarks._planes import LOOPS, SHAPES, SHARE, Case, contestants, ours
from landscape.sweep.precision import relative_difference
from landscape.sweep.processor import processor

RESULTS = Path(__file__).resolve().parent / "results"
MEMORY_POINTS = 9
"""Most points an axis where memory is measured: more than the point models that this project holds at once."""


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=21, help="grid size in each direction")
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=2, help="repetitions of A B")
    parser.add_argument("--models", nargs="+", choices=[*SHAPES, "all"], default=["cnn_fmnist", "cnn_cifar10"])
    parser.add_argument("--workers", type=int, default=1, help="compare so many threads with one")
    parser.add_argument("--device", default="cpu", help="cuda: compare on a GPU")
    parser.add_argument("--only", nargs="+", default=[], help="contestants, such as ours expert compiled")
    parser.add_argument("--skip-memory", action="store_true", help="measure no peak memory")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    if "all" in chosen.models:
        chosen.models = list(SHAPES)
    if chosen.child is not None:
        _child(chosen.child, Case.of(chosen.models[0], chosen.points, chosen.samples))
        return
    mode, name = planes_table, "landscape"
    if chosen.workers > 1:
        mode, name = workers_table, "landscape_workers"
    elif chosen.device != "cpu":
        mode, name = device_table, f"landscape_{chosen.device}"
    if chosen.workers == 1 and hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {min(os.sched_getaffinity(0))})
    print(", ".join(f"{key} {value}" for key, value in processor().items() if value))
    rates = {} if chosen.device != "cpu" else matrix_rates()
    for kind, rate in rates.items():
        print(f"float32 matrix products by {kind}: {rate / 1e9:.0f} GFLOP/s on one core")
    tables = []
    for model in chosen.models:
        print(f"{model}, {chosen.points} x {chosen.points} plane, {count_of(model, chosen)} samples", flush=True)
        tables.append(mode(model, chosen, rates))
    RESULTS.mkdir(exist_ok=True)
    path = RESULTS / f"{name}.json"
    written = {"processor": processor(), "flops_per_second": rates, "tables": tables}
    if mode is planes_table and path.exists():
        written["tables"] = [*_other_tables(json.loads(path.read_text()), tables), *tables]
    path.write_text(json.dumps(written, indent=1) + "\n")


def _other_tables(earlier: dict[str, Any], tables: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows of an earlier run on the same processor and torch, of models that were not measured again."""
    again = {table["model"] for table in tables}
    same = earlier.get("processor") == processor()
    return [table for table in earlier["tables"] if table["model"] not in again] if same else []


def count_of(model: str, chosen: argparse.Namespace) -> int:
    """Samples that a model is measured on."""
    return max(1, round(chosen.samples * SHARE.get(model, 1)))


def planes_table(name: str, chosen: argparse.Namespace, rates: dict[str, float]) -> dict[str, Any]:
    """CPU seconds of every contestant on one model, and what follows from them."""
    case = Case.of(name, chosen.points, count_of(name, chosen))
    runs = contestants(case, chosen.only)
    seconds: dict[str, list[float]] = {run: [] for run in runs}
    found: dict[str, np.ndarray] = {}
    for _ in range(chosen.rounds):
        for run, function in runs.items():
            found[run], spent = _timed(function, time.process_time)
            seconds[run].append(spent)
    medians = {run: statistics.median(times) for run, times in seconds.items()}
    table = {
        "model": name,
        "points": chosen.points,
        "samples": len(case.samples),
        "seconds": seconds,
        "ratio": {run: median / medians["ours"] for run, median in medians.items()},
        "of_limit": {
            run: {kind: case.flops / rate / median for kind, rate in rates.items()} for run, median in medians.items()
        },
        "peak_mib": {} if chosen.skip_memory else {run: _peak(run, case) for run in runs},
        "largest_difference": max(float(np.abs(found["ours"] - found[run]).max()) for run in found if run in LOOPS),
    }
    for run, median in medians.items():
        limits = ", ".join(f"{100 * part:4.0f} % of {kind}" for kind, part in table["of_limit"][run].items())
        every = ", ".join(f"{value:.2f}" for value in seconds[run])
        print(f"  {run:16}{median:8.2f} s {table['ratio'][run]:6.2f} x ours  {limits}  ", end="")
        memory = f"{table['peak_mib'][run]:5.0f} MiB" if run in table["peak_mib"] else ""
        print(f"{memory}  ({every})", flush=True)
    print(f"  largest difference in loss from the loops {table['largest_difference']:.1e}")
    if "ours, fast" in found:
        pair = torch.from_numpy(found["ours, fast"]), torch.from_numpy(found["ours"])
        table["fast_error"] = relative_difference(*pair)
        print(f"  largest relative difference of fast from ours {table['fast_error']:.1e}")
    return table


def workers_table(name: str, chosen: argparse.Namespace, rates: dict[str, float]) -> dict[str, Any]:
    """Wall time of one and several workers, and of as many processes side by side, each doing all of the work."""
    case, workers = Case.of(name, chosen.points, chosen.samples), chosen.workers
    seconds: dict[str, list[float]] = {"one": [], "workers": [], "processes": []}
    for _ in range(chosen.rounds):
        seconds["one"].append(_timed(lambda: ours(case), time.perf_counter)[1])
        seconds["workers"].append(_timed(lambda: ours(case, workers=workers), time.perf_counter)[1])
        seconds["processes"].append(max(_side_by_side(case, workers)))
    medians = {kind: statistics.median(times) for kind, times in seconds.items()}
    ratio, ceiling = medians["one"] / medians["workers"], workers * medians["one"] / medians["processes"]
    print(f"  {workers} workers {ratio:.2f} x one; {workers} independent processes do {ceiling:.2f} x the work of one")
    print(f"  seconds: {seconds}")
    return {"model": name, "workers": workers, "seconds": seconds, "ratio": ratio, "ceiling": ceiling}


def device_table(name: str, chosen: argparse.Namespace, rates: dict[str, float]) -> dict[str, Any]:
    """Wall time of the classic loop and of this project on a device, with what torch can tell of its use."""
    case = Case.of(name, chosen.points, chosen.samples, chosen.device)
    wait = torch.cuda.synchronize if chosen.device.startswith("cuda") else lambda: None
    runs = {run: function for run, function in contestants(case).items() if run in ("ours", "classic")}

    def waited(function: Callable[[], np.ndarray]) -> np.ndarray:
        found = function()
        wait()
        return found

    seconds: dict[str, list[float]] = {run: [] for run in runs}
    found = {}
    for _ in range(chosen.rounds + 1):
        for run, function in runs.items():
            found[run], spent = _timed(lambda function=function: waited(function), time.perf_counter)
            seconds[run].append(spent)
    medians = {run: statistics.median(times[1:]) for run, times in seconds.items()}  # the first starts the device
    table = {"model": name, "seconds": seconds, "ratio": medians["classic"] / medians["ours"]}
    table["flops_per_second"] = case.flops / medians["ours"]
    table["largest_difference"] = float(np.abs(found["ours"] - found["classic"]).max())
    print(f"  ours {medians['ours']:.3f} s, classic {medians['classic']:.3f} s: {table['ratio']:.1f} x")
    print(f"  ours {table['flops_per_second'] / 1e9:.0f} GFLOP/s, difference {table['largest_difference']:.1e}")
    if chosen.device.startswith("cuda"):
        table["peak_mib"] = torch.cuda.max_memory_allocated() / 2**20
        try:
            table["utilisation_percent"] = torch.cuda.utilization()
        except ModuleNotFoundError as missing:
            table["utilisation_percent"] = str(missing)
        print(f"  peak {table['peak_mib']:.0f} MiB, utilisation {table['utilisation_percent']}")
    return table


def matrix_rates(size: int = 1024, seconds: float = 2.0) -> dict[str, float]:
    """Best FLOP/s of float32 matrix products on this core, by torch's `@` and by oneDNN's convolution."""
    left, right = torch.randn(size, size), torch.randn(size, size)
    image = left.T.reshape(1, size, size // 32, 32)
    kinds: dict[str, Callable[[], Any]] = {
        "left @ right": lambda: left @ right,
        "oneDNN": lambda: F.conv2d(image, right[:, :, None, None]),
    }
    best, end = dict.fromkeys(kinds, np.inf), time.perf_counter() + seconds
    while time.perf_counter() < end:
        for kind, function in kinds.items():
            best[kind] = min(best[kind], _timed(function, time.process_time)[1])
    return {kind: 2 * size**3 / spent for kind, spent in best.items()}


def _timed(function: Callable[[], Any], clock: Callable[[], float]) -> tuple[Any, float]:
    begun = clock()
    return function(), clock() - begun


def _peak(run: str, case: Case) -> float:
    """Most memory in MiB of a process that does nothing but build the case and let one contestant run."""
    points = min(case.points, MEMORY_POINTS if run.startswith("ours") else 2)
    child = _started(run, case, points)
    return float(child.communicate()[0].split()[-1])


def _own_peak() -> float:
    """Peak resident memory of this process in MiB; `getrusage` alone would count what its parent had, too, on Linux."""
    status = Path("/proc/self/status")
    if status.exists():
        return int(status.read_text().split("VmHWM:")[1].split()[0]) / 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / (2**20 if sys.platform == "darwin" else 1024)


def _side_by_side(case: Case, count: int) -> list[float]:
    """Wall seconds of independent processes that start together."""
    children = [_started("alone", case, case.points) for _ in range(count)]
    for child in children:
        child.stdout.readline()  # it is ready
    for child in children:
        child.stdin.write("\n")
        child.stdin.flush()
    return [float(child.communicate()[0].split()[-1]) for child in children]


def _started(what: str, case: Case, points: int) -> subprocess.Popen[str]:
    settings = ["--points", str(points), "--samples", str(len(case.samples)), "--models", case.name, "--child", what]
    command = [sys.executable, str(Path(__file__).resolve()), *settings]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def _child(what: str, case: Case) -> None:
    """In a process of its own: the peak memory of a contestant, or the seconds of this project's sweep."""
    if what != "alone":
        contestants(case)[what]()
        print(_own_peak())
        return
    print("ready", flush=True)
    sys.stdin.readline()
    print(_timed(lambda: ours(case), time.perf_counter)[1])


if __name__ == "__main__":
    main()
