"""What contiguous images cost: one network with `view` (they stay contiguous) and with `flatten` (channels last).

python -m benchmarks.contiguous
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings

import numpy as np
import torch
from torch import Tensor, nn

from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.sweep.evaluate import evaluate


class Network(nn.Module):
    """Two 5 x 5 convolutions of 32 and 64 channels and a dense layer, on 3 x 32 x 32 images."""

    def __init__(self, view: bool) -> None:
        super().__init__()
        self.first, self.second, self.pool = nn.Conv2d(3, 32, 5), nn.Conv2d(32, 64, 5), nn.MaxPool2d(2)
        self.head, self.view = nn.Linear(64 * 25, 10), view

    def forward(self, x: Tensor) -> Tensor:
        x = self.pool(torch.relu(self.first(x)))
        x = self.pool(torch.relu(self.second(x)))
        return self.head(x.view(x.size(0), -1) if self.view else x.flatten(1))


def main() -> None:
    """Print seconds of a training step of 50 samples and of a point of a sweep of 512, and their ratios."""
    argparse.ArgumentParser(description=__doc__).parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    source = torch.Generator().manual_seed(0)
    samples = Samples(torch.randn(512, 3, 32, 32, generator=source), torch.randint(10, (512,), generator=source))
    rows = np.stack([np.linspace(0, 1, 11), 1 - np.linspace(0, 1, 11)], 1)
    spent: dict[str, list[list[float]]] = {"step": [[], []], "point": [[], []]}
    tasks = []
    for view in (False, True):
        torch.manual_seed(0)
        tasks.append(Task(Network(view), {"train": samples}))
    flats = [task.flat(task.theta) for task in tasks]
    for _ in range(7):
        for place, (task, flat) in enumerate(zip(tasks, flats, strict=True)):
            basis = torch.stack([task.theta, task.theta * 1.1])
            begun = time.perf_counter()
            flat.gradient(samples[:50])
            spent["step"][place].append(time.perf_counter() - begun)
            begun = time.perf_counter()
            evaluate(task, basis, rows, split="train", metrics=("loss",))
            spent["point"][place].append((time.perf_counter() - begun) / len(rows))
    for name, (last, contiguous) in spent.items():
        fast, slow = statistics.median(last), statistics.median(contiguous)
        print(f"{name}: {1e3 * fast:.1f} ms channels last, {1e3 * slow:.1f} ms contiguous, ratio {slow / fast:.2f}")


if __name__ == "__main__":
    main()
