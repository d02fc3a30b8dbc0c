"""Curvature at equal measured error: fedscape against PyHessian, curvlinops and hessian-eigenthings.

    python -m benchmarks.hessian [--models cnn_fmnist resnet8 transformer] [--samples 64] [--rounds 3]
    python -m benchmarks.hessian --models --spectrum small_cnn      trace and density alone, against all eigenvalues

Every program goes through its settings from cheap to dear. The first one whose error is at most the wanted one is
timed. Errors are measured: of eigenvalues, the largest relative difference from a Lanczos run in float64; of the
trace, relative to the sum of all eigenvalues, root mean square over five seeds; of the density, half the integrated
difference from all eigenvalues, smoothed by the same Gaussian. A program that does not get there within `PATIENCE`
states the least error that it had; a slow one is timed once. Float32, one thread, process CPU time in turns; peak
memory above that of the model and samples, in a process of its own. Programs that are not installed are left out.
Writes benchmarks/results/hessian.json.
"""

from __future__ import annotations

import argparse
import json
import statistics
import subprocess
import sys
import time
import warnings
from collections.abc import Callable
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import torch

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))  # so that the file runs by its path as well

from benchmarks._curvature import (
    RESULTS,
    Ladder,
    Problem,
    density_ladders,
    differentiable,
    eigenvalue_ladders,
    smoothed,
    trace_ladders,
)
from landscape.sweep.processor import processor

WANTED = {"eigenvalues": 1e-3, "trace": 0.05, "density": 0.02}
"""Largest error of a setting that is timed."""

SEEDS = range(5)
PATIENCE = 15.0
"""CPU seconds after which no dearer setting of a program is tried."""

PACKAGES = {
    "pyhessian": "PyHessian",
    "curvlinops": "curvlinops-for-pytorch",
    "hessian_eigenthings": "hessian-eigenthings",
}

Errors = Callable[[Callable[[int], Any]], float]
"""The measured error of a call."""


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    small = ["small_cnn", "small_resnet", "small_transformer"]
    parser.add_argument("--models", nargs="*", default=["cnn_fmnist", "resnet8", "transformer"])
    parser.add_argument("--spectrum", nargs="*", default=small, help="models of the trace and density, few parameters")
    parser.add_argument("--samples", type=int, help="by default those of benchmarks._curvature.SAMPLES")
    parser.add_argument("--ranks", type=int, nargs="+", default=[1, 5, 20], help="numbers of eigenvalues")
    parser.add_argument("--rounds", type=int, default=3, help="times that every program is timed, in turns")
    parser.add_argument("--steps", type=int, default=150, help="training steps before")
    parser.add_argument("--child", nargs=3, help=argparse.SUPPRESS)
    chosen = parser.parse_args()
    torch.set_num_threads(1)
    warnings.filterwarnings("ignore")
    if chosen.child:
        _child(*chosen.child, chosen)
        return
    about = processor()
    print(", ".join(f"{key} {value}" for key, value in about.items() if value))
    versions = {title: version(title) for module, title in PACKAGES.items() if find_spec(module)}
    print(", ".join(f"{title} {number}" for title, number in versions.items()))
    rows = []
    for name in chosen.models:
        problem = Problem.of(name, chosen.samples, chosen.steps)
        exact = problem.eigenvalues(max(chosen.ranks))
        for k in chosen.ranks:
            errors = _eigenvalue_errors(exact[:k])
            rows.append(
                _row(problem, f"top {k}", eigenvalue_ladders(problem, k), errors, WANTED["eigenvalues"], chosen)
            )
    for name in chosen.spectrum:
        problem = Problem.of(name, chosen.samples, chosen.steps)
        values = _spectrum(problem, chosen)
        for job, ladders, errors in (
            ("trace", trace_ladders(problem), _trace_errors(values)),
            ("density", density_ladders(problem), _density_errors(values)),
        ):
            rows.append(_row(problem, job, ladders, errors, WANTED[job], chosen))
    RESULTS.mkdir(exist_ok=True)
    written = {"processor": about, "versions": versions, "wanted": WANTED, "rows": rows}
    (RESULTS / "hessian.json").write_text(json.dumps(written, indent=1) + "\n")


def _row(
    problem: Problem, job: str, ladders: dict[str, Ladder], errors: Errors, wanted: float, chosen: argparse.Namespace
) -> dict[str, Any]:
    """What every program takes for the wanted error."""
    found: dict[str, dict[str, Any]] = {}
    calls: dict[str, Callable[[int], Any]] = {}
    with differentiable():
        for program, ladder in ladders.items():
            tried = []
            begun = time.process_time()
            for number, (words, call) in enumerate(ladder):
                if time.process_time() - begun > PATIENCE:
                    break
                try:
                    trial = time.process_time()
                    tried.append((errors(call), number, words, call, time.process_time() - trial))
                except Exception as problem_of_program:  # noqa: BLE001 - another program's: stated
                    found[program] = {"failed": f"{type(problem_of_program).__name__}: {problem_of_program}"}
                    break
                if tried[-1][0] <= wanted:
                    break
            if program in found:
                continue
            error, number, words, call, took = min(tried, key=lambda one: one[0])
            found[program] = {"setting": words, "error": error, "reached": error <= wanted, "seconds": []}
            if took > PATIENCE / 2 and program != "fedscape" and job.startswith("top"):
                found[program]["seconds"].append(took)
            else:
                calls[program] = call
            found[program]["peak_mib"] = _peak(problem.name, job, f"{program}:{number}", chosen)
        for round_number in range(chosen.rounds):
            for program, call in calls.items():
                begun = time.process_time()
                call(round_number)
                found[program]["seconds"].append(time.process_time() - begun)
    own = statistics.median(found["fedscape"]["seconds"])
    print(f"\n{problem.name}, {job}: error at most {wanted:g}; CPU seconds, median of {chosen.rounds}")
    for program, one in found.items():
        if "failed" in one:
            print(f"  {program:20} {one['failed']}")
            continue
        one["ratio"] = statistics.median(one["seconds"]) / own
        reached = "" if one["reached"] else "  NOT REACHED"
        print(
            f"  {program:20}{statistics.median(one['seconds']):9.3f} x {one['ratio']:6.2f}  error {one['error']:.1e}  "
            f"{one['peak_mib']:6.0f} MiB  {one['setting']}{reached}",
            flush=True,
        )
    return {"model": problem.name, "job": job, "wanted": wanted, "programs": found}


def _eigenvalue_errors(exact: np.ndarray) -> Errors:
    def errors(call: Callable[[int], Any]) -> float:
        return float(np.abs(call(0) / exact - 1).max())

    return errors


def _trace_errors(values: np.ndarray) -> Errors:
    def errors(call: Callable[[int], Any]) -> float:
        return float(np.sqrt(np.mean([(call(seed) / values.sum() - 1) ** 2 for seed in SEEDS])))

    return errors


def _density_errors(values: np.ndarray) -> Errors:
    def error(result: tuple[np.ndarray, np.ndarray, float]) -> float:
        grid, heights, sigma = result
        exact = smoothed(grid, values, np.full(len(values), 1 / len(values)), sigma)
        return float(np.trapezoid(np.abs(heights - exact), grid)) / 2

    def errors(call: Callable[[int], Any]) -> float:
        return float(np.sqrt(np.mean([error(call(seed)) ** 2 for seed in SEEDS])))

    return errors


def _spectrum(problem: Problem, chosen: argparse.Namespace) -> np.ndarray:
    """All eigenvalues; computed once, as it takes minutes."""
    count = len(problem.task.split("train"))
    path = RESULTS / f"spectrum-{problem.name}-{count}-{chosen.steps}-{torch.__version__}.npy"
    if not path.exists():
        RESULTS.mkdir(exist_ok=True)
        np.save(path, problem.spectrum())
    return np.load(path)


def _peak(model: str, job: str, which: str, chosen: argparse.Namespace) -> float:
    """MiB that one call adds to the peak of a process that has model and samples."""
    settings = ["--steps", str(chosen.steps), *(["--samples", str(chosen.samples)] if chosen.samples else [])]
    command = [sys.executable, str(Path(__file__).resolve()), *settings, "--child", model, job, which]
    return float(subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout.split()[-1])


def _child(model: str, job: str, which: str, chosen: argparse.Namespace) -> None:
    program, number = which.split(":")
    problem = Problem.of(model, chosen.samples, chosen.steps)
    kinds = {"trace": trace_ladders, "density": density_ladders}
    ladders = kinds[job](problem) if job in kinds else eigenvalue_ladders(problem, int(job.split()[1]))
    Path("/proc/self/clear_refs").write_text("5")  # the peak starts anew
    before = _memory("VmRSS")
    with differentiable():
        ladders[program][int(number)][1](0)
    print(_memory("VmHWM") - before)


def _memory(name: str) -> float:
    """Of this process, in MiB, as Linux names it."""
    return int(Path("/proc/self/status").read_text().split(f"{name}:")[1].split()[0]) / 1024


if __name__ == "__main__":
    main()
