"""The demo: five methods on real images, every figure, and the report."""

from __future__ import annotations

import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import numpy as np

from drift.compare import last_ten, train_all
from drift.experiment import Experiment
from drift.read import read
from drift.run import Run
from figures import console, gallery
from figures.commands.train import progress_of_all
from figures.drawing import Job, draw_all

METHODS = ("fedavg", "ima", "fedlaw", "fedeve", "lss")
SEEDS = (8, 9)

EXTRAS: dict[str, tuple[tuple[str, ...], ...]] = {
    "gws": tuple(("method=fedlaw", "method.variant=gws", f"seed={seed}") for seed in SEEDS),
    "concentrations": tuple(
        ("method=fedeve", f'clients.partition={{name="dirichlet", concentration={value}}}')
        for value in (0.1, 1.0, 10.0)
    ),
}
"""Further runs that some figures need, by group: settings of each; the seed is the first one unless it is set."""

GROUPS: dict[str, tuple[str, ...]] = {
    "balance-rounds": ("methods", "gws"),
    "coherence-rounds": ("methods", "gws"),
    "weights-learned": ("methods", "gws"),
    "gain-alpha": ("concentrations",),
}
"""Groups of runs that a figure gets; "methods" (all methods and seeds) where it is not named."""

COLUMNS = {
    "method": "method",
    "accuracy": "last-10 accuracy",
    "centre_offset": "centre offset",
    "lambda_1": "lambda_1",
    "coherence": "coherence",
    "drift_ratio": "period/client drift",
}


@dataclass(frozen=True)
class Demo:
    """What the demo made: its table, folders and files, figures drawn and left out, seconds it took."""

    table: list[dict[str, Any]]
    runs: Path
    figures: Path
    report: Path
    drawn: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def demo(out: str | Path = Path("out/demo"), *, workers: int = 2, overrides: tuple[str, ...] = ()) -> Demo:
    """Train five methods with two seeds, draw every figure and write the report; what is there is not made again.

    Args:
        out: Folder for runs/, figures/ and report.html.
        workers: Processes, one core each.
        overrides: Changed settings for every run, as in `drift.read`.
    """
    out, begun = Path(out), time.monotonic()
    groups = planned(overrides)
    wanted = [experiment for group in groups.values() for experiment in group]
    with progress_of_all(len(wanted), sum(one.rounds for one in wanted)) as report:
        train_all(wanted, runs=out / "runs", workers=workers, progress=report)
    trained = {name: [Run(out / "runs" / one.slug) for one in group] for name, group in groups.items()}
    console.say(f"trained {len(wanted)} runs ({time.monotonic() - begun:.0f} s)")
    table = _rows(trained["methods"], workers)
    drawn = _drawn(trained, out / "figures", workers)
    page = _report(trained["methods"], out / "report.html")
    return Demo(
        table,
        out / "runs",
        out / "figures",
        page,
        [name for name, outcome in drawn.items() if not isinstance(outcome, str)],
        {name: outcome for name, outcome in drawn.items() if isinstance(outcome, str)},
        time.monotonic() - begun,
    )


def planned(overrides: tuple[str, ...] = ()) -> dict[str, list[Experiment]]:
    """Experiments of the demo by group; "methods" holds every method with every seed."""
    groups = {"methods": [read("demo", *overrides, method=name, seed=seed) for name in METHODS for seed in SEEDS]}
    for group, members in EXTRAS.items():
        groups[group] = [read("demo", f"seed={SEEDS[0]}", *settings, *overrides) for settings in members]
    return groups


def row(folders: list[Path]) -> dict[str, Any]:
    """The demo's row of one method, from the runs of its seeds, averaged.

    Centre offset (parameter-space length) is on the plane through three clients of the last round; coherence and
    the ratio of period-drift to client-drift variance are means over rounds.
    """
    runs = [Run(folder) for folder in folders]
    columns = {name: [measure(run) for run in runs] for name, measure in _MEASURES.items()}
    return {"method": runs[0].label, **{name: float(np.nanmean(values)) for name, values in columns.items()}}


def _rows(runs: list[Run], workers: int) -> list[dict[str, Any]]:
    by_method: dict[str, list[Path]] = {}
    for run in runs:
        by_method.setdefault(run.label, []).append(run.folder)
    found = []
    with (
        ProcessPoolExecutor(max(1, workers), mp_context=get_context("spawn"), initializer=_one_thread) as pool,
        console.progress("analysing", len(by_method)) as step,
    ):
        for one in pool.map(row, by_method.values()):
            found.append(one)
            step(len(found), one["method"])
    return found


def _drawn(trained: dict[str, list[Run]], folder: Path, workers: int) -> dict[str, Any]:
    jobs: dict[str, Job] = {}
    for name in gallery.names():
        runs = [run for group in GROUPS.get(name, ("methods",)) for run in trained[group]]
        jobs[name] = (runs, {})
    with console.progress("drawing", len(jobs)) as step:
        return draw_all(jobs, folder, workers=workers, progress=step)


def _report(runs: list[Run], path: Path) -> Path:
    from figures.report import report

    with console.progress("writing the report"):
        report(runs, path)
    return path


def _one_thread() -> None:
    import torch

    torch.set_num_threads(1)


def _centre_offset(run: Run) -> float:
    from drift.terrain import round_plane
    from landscape.basin import centre_offset

    return centre_offset(run.cached(round_plane, round=-1))


def _lambda_1(run: Run) -> float:
    from drift.terrain import eigen_rounds

    return float(run.cached(eigen_rounds).eigenvalue.isel(round=-1, rank=0))


def _coherence(run: Run) -> float:
    from drift.coherence import coherence

    return float(run.cached(coherence).coherence.mean("round"))


def _drift_ratio(run: Run) -> float:
    from drift.variance import drift_variances

    found = run.cached(drift_variances)
    return float(found.period_variance.mean("round") / found.client_variance.mean("round"))


_MEASURES: dict[str, Callable[[Run], float]] = {
    "accuracy": last_ten,
    "centre_offset": _centre_offset,
    "lambda_1": _lambda_1,
    "coherence": _coherence,
    "drift_ratio": _drift_ratio,
}
