"""A plane through three models: this project against the classic set-the-weights-and-loop code, side by side.

    python -m benchmarks.landscape [--points 21] [--samples 2000] [--rounds 2] [--model cnn_fmnist]

Random images and models (their values do not change the work), one thread, one process, A B A B; process CPU time.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections.abc import Callable

import numpy as np
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from landscape import models, planes
from landscape.samples import Samples
from landscape.surface import surface
from landscape.task import Task

SHAPES = {"cnn_fmnist": (1, 28, 28), "cnn_cifar10": (3, 32, 32), "mlp": (1, 28, 28), "simple_cnn": (3, 32, 32)}


def classic(model: nn.Module, three: Tensor, alphas: np.ndarray, betas: np.ndarray, samples: Samples) -> np.ndarray:
    """Loss on the grid the usual way: set the weights of a point, loop over batches of 128, next point."""
    shapes = [parameter.shape for parameter in model.parameters()]
    u = three[1] - three[0]
    v = (three[2] - three[0]) - (three[2] - three[0]) @ u / (u @ u) * u
    u, v = u / u.norm(), v / v.norm()
    found = np.zeros((len(alphas), len(betas)))
    model.eval()
    with torch.no_grad():
        for i, alpha in enumerate(alphas):
            for j, beta in enumerate(betas):
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


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--points", type=int, default=21, help="grid size in each direction")
    parser.add_argument("--samples", type=int, default=2000)
    parser.add_argument("--rounds", type=int, default=2, help="repetitions of A B")
    parser.add_argument("--model", choices=SHAPES, default="cnn_fmnist")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    torch.manual_seed(0)
    shape = SHAPES[chosen.model]
    model = models.build_model(chosen.model, shape, 10, seed=0)
    samples = Samples(torch.randn(chosen.samples, *shape), torch.randint(10, (chosen.samples,)))
    task = Task(model, {"test": samples})
    three = task.theta + 0.01 * torch.randn(3, task.layout.size)
    sweep = planes.plane(*three, points=chosen.points)
    grid = sweep.coords["alpha"], sweep.coords["beta"]
    ours, theirs, difference = [], [], 0.0
    for _ in range(chosen.rounds):
        found, seconds = _timed(lambda: np.asarray(surface(task, sweep).loss.values))
        ours.append(seconds)
        expected, seconds = _timed(lambda: classic(model, three, *grid, samples))
        theirs.append(seconds)
        difference = max(difference, float(np.abs(found - expected).max()))
    a, b = statistics.median(ours), statistics.median(theirs)
    print(f"{chosen.model}, {chosen.points} x {chosen.points} plane, {chosen.samples} samples, 1 thread, CPU seconds")
    print(f"ours     {a:8.2f}   ({', '.join(f'{value:.2f}' for value in ours)})")
    print(f"classic  {b:8.2f}   ({', '.join(f'{value:.2f}' for value in theirs)})")
    print(f"classic / ours {b / a:.2f}, largest difference in loss {difference:.1e}")


def _timed(function: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    begun = time.process_time()
    return function(), time.process_time() - begun


if __name__ == "__main__":
    main()
