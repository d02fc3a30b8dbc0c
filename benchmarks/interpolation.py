"""Planes through three clients from a part of their points: interpolants against the full grid, over recorded rounds.

    python -m benchmarks.interpolation runs/*/ [--points 41] [--rounds 1 6 15] [--tolerance 0.01]

For every stored round of the runs: all points of the grid are evaluated once, and every contestant gets the values of
the points that it asks for. `smooth` is `landscape.interpolated_surface`.
Errors are the largest difference of log losses over the range of the log loss on the plane; "stated" is what the
result itself says before anything else is known. The table after it compares radial basis functions on the lattices.
`subset` is `landscape.sampled_surface` with --samples samples, its cost in passes of all samples through one model, and
`alone` the mean over the same subset at every point; both are medians over ten draws.
Writes benchmarks/results/interpolation.json.
"""

from __future__ import annotations

import argparse
import json
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import torch
import xarray as xr

from drift.analyses.landscapes.sweeps import client_sweep
from drift.runs.run import Run
from drift.runs.run import open as open_run
from landscape.surfaces.interpolated_surface import interpolated_surface
from landscape.surfaces.interpolation import interpolate
from landscape.surfaces.refinement import lattices
from landscape.surfaces.sampled_surface import sample_rows, sampled_surface
from landscape.surfaces.surface import surface
from landscape.sweep.grid import Sweep
from landscape.sweep.processor import processor_line

RESULTS = Path(__file__).parent / "results" / "interpolation.json"
KERNELS = ("thin_plate_spline", "cubic", "quintic")
DRAWS = 10
LATTICES = 5
"""First lattices that the kernels are compared on: 25 to 289 points."""


def main() -> None:
    """Measure, print, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=Path, help="folders of runs")
    parser.add_argument("--points", type=int, default=41, help="grid points per axis, 2^k m + 1")
    parser.add_argument("--rounds", type=int, nargs="+", help="stored rounds; by default all")
    parser.add_argument("--tolerance", type=float, default=0.01)
    parser.add_argument("--samples", type=int, default=400, help="samples of a subset")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    rows = []
    for folder in arguments.runs:
        run = open_run(folder)
        stored = run.kept("clients")
        for index in stored if arguments.rounds is None else [one for one in arguments.rounds if one in stored]:
            rows.append(_measured(run, index, arguments.points, arguments.tolerance, arguments.samples))
            _print(rows[-1])
    _print_kernels(rows)
    covered = sum(row["smooth"]["error"] <= row["smooth"]["stated"] for row in rows)
    print(f"\nerror at most the stated one on {covered} of {len(rows)} planes")
    RESULTS.parent.mkdir(exist_ok=True)
    about = {"processor": processor_line(), "points": arguments.points, "planes": rows}
    RESULTS.write_text(json.dumps(about, indent=1) + "\n")


def _measured(run: Run, index: int, points: int, tolerance: float, samples: int) -> dict[str, Any]:
    _, _, sweep = client_sweep(run, index, None, points=points, margin=0.3)
    full = surface(run.task, sweep)
    smooth = interpolated_surface(run.task, sweep, tolerance=tolerance, known=full)
    task = run.experiment.task
    kernels = {}
    for kernel in KERNELS:
        for mask in list(lattices((points, points)))[:LATTICES]:
            guess = interpolate(full.loss.transpose("alpha", "beta").values[None], mask, kernel)[0]
            kernels[f"{kernel} {mask.sum()}"] = _error(np.log(guess), full)
    return {
        "plane": f"{run.label}, {task.dataset}, {task.model}, round {index}",
        "smooth": {
            "evaluated": smooth.attrs["evaluated"],
            "error": _error(np.log(smooth.loss.transpose("alpha", "beta").values), full),
            "stated": float(smooth.loss_interpolation_share),
        },
        "subset": _subset(run, sweep, full, tolerance, samples),
        "all": full.loss.size,
        "kernels": kernels,
    }


def _subset(run: Run, sweep: Sweep, full: xr.Dataset, tolerance: float, samples: int) -> dict[str, Any]:
    """Errors over draws of a subset of samples; None where the run has too few samples."""
    whole = run.task.split("test")
    if samples >= len(whole):
        return {"error": None}
    found: dict[str, list[float]] = {"error": [], "alone": [], "cost": []}
    for seed in range(DRAWS):
        ds = sampled_surface(run.task, sweep, samples=samples, seed=seed, tolerance=tolerance)
        alone = surface(run.task, sweep, split=whole[sample_rows(len(whole), samples, seed)], metrics=("loss",))
        found["error"].append(_error(np.log(ds.loss.transpose("alpha", "beta").values), full))
        found["alone"].append(_error(np.log(alone.loss.transpose("alpha", "beta").values), full))
        found["cost"].append(ds.attrs["passes"] / len(whole))
    return {name: float(np.median(values)) for name, values in found.items()} | {"samples": samples}


def _error(logs: np.ndarray, full: xr.Dataset) -> float:
    exact = np.log(full.loss.transpose("alpha", "beta").values)
    return float(np.abs(logs - exact).max() / np.ptp(exact))


def _print(row: dict[str, Any]) -> None:
    smooth, subset = row["smooth"], row["subset"]
    last = (
        "too few samples"
        if subset["error"] is None
        else (f"{subset['cost']:.0f} passes, error {subset['error']:.2%} (the subset alone {subset['alone']:.2%})")
    )
    print(
        f"{row['plane']:52s} smooth {smooth['evaluated']:4d} of {row['all']}, error {smooth['error']:.2%} "
        f"(stated {smooth['stated']:.2%}); subset {last}",
        flush=True,
    )


def _print_kernels(rows: list[dict[str, Any]]) -> None:
    print("\nlargest error over the planes, by radial basis function and points")
    for name in rows[0]["kernels"] if rows else ():
        print(f"  {name:24s} {max(row['kernels'][name] for row in rows):.2%}")


if __name__ == "__main__":
    main()
