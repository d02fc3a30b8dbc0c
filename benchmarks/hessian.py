"""Hessian eigenvalues: this project against PyHessian, and against curvlinops where it is installed, side by side.

    python -m benchmarks.hessian [--models cnn_fmnist cnn_digits] [--samples 500] [--batches 20] [--rounds 3]
    python -m benchmarks.hessian --models all --samples 32 --batches 2 --batch 16 --rounds 1 --steps 20

Real digits (enlarged and repeated over channels where the model wants that), a model trained for a
few steps, float32, one thread, one process, A B A B; process CPU time. Errors are the largest over the eigenvalues or
batches asked for, against a tight Lanczos run in float64. Writes benchmarks/results/hessian.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import time
import warnings
from collections.abc import Callable
from copy import deepcopy
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from landscape import models
from landscape.curvature.hessian import pose, top_eigenvalues
from landscape.curvature.hessian_products import hvp
from landscape.curvature.krylov import extreme, starting
from landscape.curvature.minibatch_sharpness import minibatch_sharpness
from landscape.datasets import open_dataset
from landscape.model.samples import Samples
from landscape.model.task import Task
from landscape.sweep.processor import processor

GREY = {"cnn_fmnist": 28, "cnn_digits": 8, "lenet": 28, "lenet5": 28, "mlp": 28, "linear": 28}
"""Sides of grey images, by model; all others take colour images of 32 x 32."""

RESULTS = Path(__file__).parent / "results" / "hessian.json"
TOLERANCE = 1e-2
"""Of the own solver, whose square is the expected relative error: 1e-4."""

Found = tuple[list[float], int]
"""Eigenvalues (of all data, or the largest of each batch), and products spent (-1 where not counted)."""


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--models", nargs="+", choices=["all", *models.names()], default=["cnn_fmnist", "cnn_digits"])
    parser.add_argument("--samples", type=int, default=500)
    parser.add_argument("--batches", type=int, default=20, help="minibatches")
    parser.add_argument("--batch", type=int, default=64, help="samples in a minibatch")
    parser.add_argument("--rounds", type=int, default=3, help="repetitions of A B")
    parser.add_argument("--steps", type=int, default=150, help="training steps before")
    parser.add_argument("--ranks", type=int, nargs="+", default=[5, 1], help="numbers of eigenvalues of all data")
    parser.add_argument("--change", type=float, default=1e-3, help="PyHessian's tol: change of a value at its end")
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore", message="Using backward.. with create_graph=True")
    rows = []
    for name in models.names() if "all" in chosen.models else chosen.models:
        task, everything = _trained(name, chosen.samples, chosen.steps)
        pieces = torch.randperm(len(everything), generator=torch.Generator().manual_seed(0)).split(chosen.batch)
        rows += _measured(name, task, everything, pieces[: chosen.batches], chosen)
    RESULTS.parent.mkdir(exist_ok=True)
    settings = {**vars(chosen), "tolerance": TOLERANCE}
    RESULTS.write_text(json.dumps({"processor": processor(), "settings": settings, "results": rows}, indent=1) + "\n")


def _measured(
    name: str, task: Task, everything: Samples, pieces: tuple[Tensor, ...], chosen: argparse.Namespace
) -> list[dict]:
    samples, theta, change = task.split("train"), task.theta, chosen.change
    reference = _reference(task, samples, max(chosen.ranks))
    each = [_reference(task, everything[piece], 1)[0] for piece in pieces]
    jobs: dict[str, tuple[list[float], dict[str, Callable[[], Found]]]] = {}
    for k in chosen.ranks:
        solvers: dict[str, Callable[[], Found]] = {
            "native": partial(_own, task, theta, k),
            "pyhessian": partial(_pyhessian, task, samples, k, change),
        }
        if find_spec("curvlinops"):
            solvers["curvlinops"] = partial(_own, task, theta, k, backend="curvlinops")
        jobs[f"top {k}"] = reference[:k], solvers
    jobs["minibatches"] = (
        each,
        {
            "native": partial(_own_batches, task, everything, pieces),
            "pyhessian": partial(_pyhessian_batches, task, everything, pieces, change),
        },
    )
    return [_compared(name, job, exact, solvers, chosen.rounds) for job, (exact, solvers) in jobs.items()]


def _compared(model: str, job: str, exact: list[float], solvers: dict[str, Callable[[], Found]], rounds: int) -> dict:
    seconds: dict[str, list[float]] = {solver: [] for solver in solvers}
    last: dict[str, Found] = {}
    for _ in range(rounds):
        for solver, run in solvers.items():
            begun = time.process_time()
            try:
                last[solver] = run()
            except ValueError as reason:
                print(f"{model}, {job}: {reason}")
                continue
            seconds[solver].append(time.process_time() - begun)
    medians = {solver: statistics.median(times) for solver, times in seconds.items() if times}
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
    digits = open_dataset("digits").train
    side = GREY.get(name, 32)
    inputs: Any = digits.inputs
    inputs = inputs if side == 8 else F.interpolate(inputs, size=side, mode="bicubic")
    inputs = inputs if name in GREY else inputs.repeat(1, 3, 1, 1)
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
    posed = pose(task, task.theta.double(), split=samples)
    product = hvp(posed.flat, posed.theta, samples)
    return extreme(product, starting(posed.theta, 1), k, tolerance=1e-3).values.tolist()


def _own(task: Task, theta: Tensor, k: int, backend: str = "native") -> Found:
    ds = top_eigenvalues(task, theta, k, tolerance=TOLERANCE, backend=backend)
    return ds.eigenvalue.values.tolist(), ds.attrs["products"]


def _own_batches(task: Task, everything: Samples, pieces: tuple[Tensor, ...]) -> Found:
    sizes: dict[str, Any] = {"batch": len(pieces[0]), "batches": len(pieces)}
    ds = minibatch_sharpness(task, task.theta, split=everything, tolerance=TOLERANCE, **sizes)
    return ds.eigenvalue.values.tolist(), ds.attrs["products"]


def _pyhessian(task: Task, samples: Samples, k: int, change: float) -> Found:
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
    values, _ = found.eigenvalues(top_n=k, tol=change)
    plain(True)
    return sorted(values, key=abs, reverse=True), resets[0]


def _pyhessian_batches(task: Task, everything: Samples, pieces: tuple[Tensor, ...], change: float) -> Found:
    found = [_pyhessian(task, everything[piece], 1, change) for piece in pieces]
    return [values[0] for values, _ in found], sum(products for _, products in found)


if __name__ == "__main__":
    main()
