"""Hessian eigenvalues: this project against PyHessian, and against curvlinops where it is installed, side by side.

    python -m benchmarks.hessian [--models cnn_fmnist cnn_digits] [--samples 500] [--batches 20] [--rounds 3]

Real digits (from scikit-learn, enlarged where the model wants larger images), a model trained for a few steps, float32,
one thread, one process, A B A B; process CPU time. Errors are against a tight Lanczos run on autograd's products.
Writes benchmarks/results/hessian.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable
from copy import deepcopy
from importlib.util import find_spec
from pathlib import Path

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from landscape import models
from landscape.datasets import open_dataset
from landscape.hessian import hvp, pose, top_eigenvalues
from landscape.lanczos import lanczos
from landscape.minibatch import minibatch_sharpness
from landscape.samples import Samples
from landscape.task import Task

SIDES = {"cnn_fmnist": 28, "cnn_digits": 8, "lenet": 28, "lenet5": 28, "mlp": 28, "linear": 28}
RESULTS = Path(__file__).parent / "results" / "hessian.json"
BATCH = 64
TOLERANCE = 1e-2
"""Residual of the own solver, whose square is about the value's relative error: 1e-4."""

Found = tuple[list[float], int]
"""Eigenvalues (or the one median), and products spent (-1 where not counted)."""


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=SIDES, default=["cnn_fmnist", "cnn_digits"])
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--batches", type=int, default=20, help=f"minibatches of {BATCH}")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of A B")
    parser.add_argument("--steps", type=int, default=150, help="training steps before")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="Using backward.. with create_graph=True")
    rows = []
    for name in chosen.models:
        task, everything = _trained(name, chosen.samples, chosen.steps)
        rows += _measured(name, task, everything, chosen.batches, chosen.rounds)
    RESULTS.parent.mkdir(exist_ok=True)
    settings = {**vars(chosen), "batch": BATCH, "tolerance": TOLERANCE, "torch": torch.__version__}
    RESULTS.write_text(json.dumps({"settings": settings, "results": rows}, indent=1) + "\n")


def _measured(name: str, task: Task, everything: Samples, batches: int, rounds: int) -> list[dict]:
    samples, theta = task.split("train"), task.theta
    pieces = torch.randperm(len(everything), generator=torch.Generator().manual_seed(0)).split(BATCH)[:batches]
    reference = _reference(task, samples, 5)
    medians = [statistics.median(_reference(task, everything[piece], 1)[0] for piece in pieces)]
    jobs: dict[str, tuple[list[float], dict[str, Callable[[], Found]]]] = {}
    for k in (5, 1):
        solvers = {"native": lambda k=k: _own(task, theta, k), "pyhessian": lambda k=k: _pyhessian(task, samples, k)}
        if find_spec("curvlinops"):
            solvers["curvlinops"] = lambda k=k: _own(task, theta, k, backend="curvlinops")
        jobs[f"top {k}"] = reference[:k], solvers
    jobs["minibatch median"] = (
        medians,
        {
            "native": lambda: _own_median(task, everything, batches),
            "pyhessian": lambda: _pyhessian_median(task, everything, pieces),
        },
    )
    return [_compared(name, job, exact, solvers, rounds) for job, (exact, solvers) in jobs.items()]


def _compared(model: str, job: str, exact: list[float], solvers: dict[str, Callable[[], Found]], rounds: int) -> dict:
    seconds: dict[str, list[float]] = {solver: [] for solver in solvers}
    last: dict[str, Found] = {}
    for _ in range(rounds):
        for solver, run in solvers.items():
            begun = time.process_time()
            last[solver] = run()
            seconds[solver].append(time.process_time() - begun)
    medians = {solver: statistics.median(times) for solver, times in seconds.items()}
    row: dict = {"model": model, "job": job, "solvers": {}}
    print(f"\n{model}, {job}, CPU seconds (median of {rounds})")
    for solver, (values, products) in last.items():
        off = max(abs(value - true) / abs(true) for value, true in zip(values, exact, strict=True))
        ratio = medians[solver] / medians["native"]
        row["solvers"][solver] = {
            "seconds": medians[solver], "all": seconds[solver], "ratio": ratio, "products": products, "error": off
        }  # fmt: skip
        spent = f"{products:4d} products" if products >= 0 else " " * 13
        print(f"  {solver:10s} {medians[solver]:8.3f}   x {ratio:5.2f}   {spent}   largest relative error {off:.1e}")
    return row


def _trained(name: str, count: int, steps: int) -> tuple[Task, Samples]:
    """A task of `count` samples whose model has been trained, and all samples."""
    side = SIDES[name]
    digits = open_dataset("digits").train
    inputs = digits.inputs.float() / 16
    inputs = inputs if side == inputs.shape[-1] else F.interpolate(inputs, size=side, mode="bicubic")
    everything = Samples(inputs, digits.targets)
    model = models.build_model(name, tuple(inputs.shape[1:]), 10, seed=0)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9)
    generator = torch.Generator().manual_seed(0)
    for _ in range(steps):
        part = everything[torch.randint(len(everything), (32,), generator=generator)]
        optimizer.zero_grad()
        F.cross_entropy(model(part.inputs), part.targets).backward()
        optimizer.step()
    return Task(model.eval(), {"train": everything[:count]}), everything


def _reference(task: Task, samples: Samples, k: int) -> list[float]:
    posed = pose(task, task.theta, split=samples)
    found = lanczos(hvp(posed.flat, posed.theta, samples), posed.theta, k, tolerance=3e-4)
    return found.values.tolist()


def _own(task: Task, theta: Tensor, k: int, backend: str = "native") -> Found:
    ds = top_eigenvalues(task, theta, k, tolerance=TOLERANCE, backend=backend)
    return ds.eigenvalue.values.tolist(), ds.attrs["products"]


def _own_median(task: Task, everything: Samples, batches: int) -> Found:
    ds = minibatch_sharpness(task, task.theta, split=everything, batch=BATCH, batches=batches, tolerance=TOLERANCE)
    return [ds["median"].item()], ds.attrs["products"]


def _pyhessian(task: Task, samples: Samples, k: int) -> Found:
    """PyHessian with its defaults on one batch, its fastest way; it resets gradients once a product."""
    from pyhessian import hessian

    model, resets = deepcopy(task.model), [0]
    plain = model.zero_grad

    def counted(set_to_none: bool = True) -> None:
        resets[0] += 1
        plain(set_to_none)

    model.zero_grad = counted  # type: ignore[method-assign]
    torch.manual_seed(0)
    found = hessian(model, nn.CrossEntropyLoss(), data=(samples.inputs, samples.targets), cuda=False)
    values, _ = found.eigenvalues(top_n=k)
    plain(True)
    return sorted(values, key=abs, reverse=True), resets[0]


def _pyhessian_median(task: Task, everything: Samples, pieces: tuple[Tensor, ...]) -> Found:
    found = [_pyhessian(task, everything[piece], 1) for piece in pieces]
    return [statistics.median(values[0] for values, _ in found)], sum(products for _, products in found)


if __name__ == "__main__":
    main()
