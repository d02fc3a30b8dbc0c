"""A plane through three models: this project against its peers on the same work, A B A B in one process.

    python -m benchmarks.landscape [--models cnn_fmnist cnn_cifar10] [--points 21] [--samples 2000] [--rounds 2]

Peers: the classic set-the-weights-and-loop code (here), and the package loss-landscapes where it is installed.
Random images and models (their values do not change the work), float32, one thread, process CPU time. The limit is
the forward FLOPs over the single-core rate of matrix products, the faster of torch's two libraries. Results go to
benchmarks/results/landscape.json.
"""

from __future__ import annotations

import argparse
import importlib.util
import json
import platform
import resource
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.utils.flop_counter import FlopCounterMode

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs by its path as well

from landscape import models, planes
from landscape.affine import evaluate
from landscape.samples import Samples
from landscape.task import Task

SHAPES = {"cnn_fmnist": (1, 28, 28), "cnn_cifar10": (3, 32, 32), "mlp": (1, 28, 28), "simple_cnn": (3, 32, 32)}
RESULTS = Path(__file__).resolve().parent / "results" / "landscape.json"
Grid = tuple[np.ndarray, np.ndarray]


def classic(model: nn.Module, three: Tensor, grid: Grid, samples: Samples) -> np.ndarray:
    """Loss on the grid the usual way: set the weights of a point, loop over batches of 128, next point."""
    shapes = [parameter.shape for parameter in model.parameters()]
    u = three[1] - three[0]
    v = (three[2] - three[0]) - (three[2] - three[0]) @ u / (u @ u) * u
    u, v = u / u.norm(), v / v.norm()
    found = np.zeros((len(grid[0]), len(grid[1])))
    model.eval()
    with torch.no_grad():
        for i, alpha in enumerate(grid[0]):
            for j, beta in enumerate(grid[1]):
                theta = three[0] + float(alpha) * u + float(beta) * v
                parts = theta.split([shape.numel() for shape in shapes])
                for parameter, part, shape in zip(model.parameters(), parts, shapes, strict=True):
                    parameter.data.copy_(part.view(shape))
                total, right = 0.0, 0
                for start in range(0, len(samples), 128):
                    batch = samples[start : start + 128]
                    outputs = model(batch.inputs)
                    total += F.cross_entropy(outputs, batch.targets, reduction="sum").item()
                    right += (outputs.argmax(1) == batch.targets).sum().item()
                found[i, j] = total / len(samples)
    return found


def package(model: nn.Module, points: int, samples: Samples) -> np.ndarray:
    """Loss on a random plane of as many points by loss-landscapes, all samples as one batch as its examples do."""
    import loss_landscapes
    import loss_landscapes.metrics

    metric = loss_landscapes.metrics.Loss(nn.CrossEntropyLoss(), samples.inputs, samples.targets)
    with torch.no_grad():
        return loss_landscapes.random_plane(model, metric, distance=1, steps=points)


def matrix_rate(size: int = 1024, seconds: float = 1.0) -> float:
    """Best FLOP/s of float32 matrix products on this core."""
    left, right = torch.randn(size, size), torch.randn(size, size)
    kinds: list[Callable[[], Tensor]] = [lambda: left @ right]
    if hasattr(torch.ops.mkldnn, "_linear_pointwise"):
        kinds.append(lambda: torch.ops.mkldnn._linear_pointwise(left, right, None, "none", [], ""))
    best, end = np.inf, time.perf_counter() + seconds
    while time.perf_counter() < end:
        best = min(best, *(_timed(kind)[1] for kind in kinds))
    return 2 * size**3 / best


def measured(name: str, points: int, count: int, rounds: int, rate: float) -> dict[str, Any]:
    """Times of every contestant on one model, and what follows from them."""
    torch.manual_seed(0)
    shape = SHAPES[name]
    model = models.build_model(name, shape, 10, seed=0)
    samples = Samples(torch.randn(count, *shape), torch.randint(10, (count,)))
    task = Task(model, {"test": samples})
    three = task.theta + 0.01 * torch.randn(3, task.layout.size)
    sweep = planes.plane(*three, points=points)
    grid = sweep.coords["alpha"], sweep.coords["beta"]

    def ours() -> np.ndarray:
        return evaluate(task, sweep.basis, sweep.coefficients)["loss"].reshape(sweep.shape).numpy()

    runs: dict[str, Callable[[], np.ndarray]] = {"ours": ours, "classic": lambda: classic(model, three, grid, samples)}
    if importlib.util.find_spec("loss_landscapes"):
        runs["loss-landscapes"] = lambda: package(model, points, samples)
    seconds: dict[str, list[float]] = {run: [] for run in runs}
    found: dict[str, np.ndarray] = {}
    peak: dict[str, float] = {}
    for _ in range(rounds):
        for run, function in runs.items():
            found[run], spent = _timed(function)
            seconds[run].append(spent)
            peak.setdefault(run, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024)
    with FlopCounterMode(display=False) as counter:
        model(samples.inputs[:2])
    limit = counter.get_total_flops() / 2 * count * points**2 / rate
    medians = {run: statistics.median(times) for run, times in seconds.items()}
    return {
        "model": name,
        "points": points,
        "samples": count,
        "seconds": seconds,
        "ratio": {run: median / medians["ours"] for run, median in medians.items()},
        "of_limit": {run: limit / median for run, median in medians.items()},
        "peak_mib_so_far": peak,
        "largest_difference": float(np.abs(found["ours"] - found["classic"]).max()),
    }


def main() -> None:
    """Measure, print, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=21, help="grid size in each direction")
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=2, help="repetitions of A B")
    parser.add_argument("--models", nargs="+", choices=SHAPES, default=["cnn_fmnist", "cnn_cifar10"])
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    rate = matrix_rate()
    print(f"matrix products {rate / 1e9:.0f} GFLOP/s, torch {torch.__version__}, 1 thread, CPU seconds")
    tables = []
    for name in chosen.models:
        table = measured(name, chosen.points, chosen.samples, chosen.rounds, rate)
        tables.append(table)
        print(f"{name}, {chosen.points} x {chosen.points} plane, {chosen.samples} samples")
        for run, times in table["seconds"].items():
            every = ", ".join(f"{value:.2f}" for value in times)
            print(
                f"  {run:16}{statistics.median(times):8.2f} s  {table['ratio'][run]:5.2f} x ours"
                f"  {100 * table['of_limit'][run]:4.0f} % of the limit  ({every})"
            )
        print(f"  largest difference in loss {table['largest_difference']:.1e}")
    RESULTS.parent.mkdir(exist_ok=True)
    machine = {"processor": platform.processor() or platform.machine(), "torch": torch.__version__}
    RESULTS.write_text(json.dumps({**machine, "flops_per_second": rate, "tables": tables}, indent=1) + "\n")


def _timed(function: Callable[[], Any]) -> tuple[Any, float]:
    begun = time.process_time()
    return function(), time.process_time() - begun


if __name__ == "__main__":
    main()
