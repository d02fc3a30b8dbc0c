"""The demo: five methods on real images, their figures, and the report."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from drift.config.experiment import Experiment
from drift.config.load import read
from drift.parallel.threads import one_thread
from drift.parallel.worker_pool import Workers
from drift.runs.run import Run
from drift.simulation.compare import train_all
from figures import console, gallery
from figures.commands._draw_files import Outcome, Request, attempt
from figures.commands.train import progress_of_all

METHODS = ("fedavg", "ima", "fedlaw", "fedeve", "lss")
SEEDS = (8, 9)


def _dirichlet(concentration: float) -> str:
    return f'clients.partition={{name="dirichlet", concentration={concentration}}}'


_HYBRID = ('clients.partition={name="hybrid_dirichlet"}', "clients.per_round=10")

EXTRAS: dict[str, tuple[tuple[str, ...], ...]] = {
    "gws": tuple(("method=fedlaw", "method.variant=gws", f"seed={seed}") for seed in SEEDS),
    "hybrid": (("method=fedavg", *_HYBRID), ("method=fedlaw", "method.variant=gws", *_HYBRID)),
    "decay": tuple(("method=fedavg", f"local.lr_decay={value}") for value in (1.0, 0.95)),
    "concentrations": tuple(("method=fedeve", _dirichlet(value)) for value in (0.1, 1.0, 10.0)),
    "epochs": tuple(("method=fedeve", _dirichlet(value), "local.epochs=1") for value in (0.1, 1.0, 10.0)),
    "settings": tuple(
        ("method=fedavg", f'clients.partition={{name="drift", setting="{setting}", concentration=0.05}}')
        for setting in ("iid", "period", "client", "both")
    ),
    "normalised": (("method=fedavg", "task.model=resnet8", "rounds=6", "local.epochs=1"),),
}
"""Further runs that some figures need, by group: settings of each; the seed is the first one unless it is set."""

GROUPS: dict[str, tuple[str, ...]] = {
    "accuracy-setting": ("concentrations",),
    "balance-rounds": ("methods", "gws"),
    "bias-rounds": ("decay",),
    "coherence-groups": ("hybrid",),
    "coherence-rounds": ("hybrid",),
    "error-averaged": ("decay",),
    "gain-alpha": ("concentrations", "epochs"),
    "labels-scatter": ("concentrations",),
    "locality-rounds": ("decay",),
    "planes-statistics": ("normalised",),
    "settings-rounds": ("settings",),
    "simplex-optima": ("hybrid",),
    "weights-learned": ("methods", "gws"),
}
"""Groups of runs per figure; "methods" (all methods and seeds) for all others."""

BEYOND = {
    *("accuracies-models", "gws-setting", "ranking-table", "sharpness-models"),
    *("shrink-rounds", "simplex-settings", "topology-directions", "topology-rounds", "weights-corrupted"),
}
"""Figures that need runs of other kinds, or more models evaluated, than the demo's minutes allow."""

MUTE = {
    "balance-histogram": "four runs make no histogram",
    "barriers-clients": "no two clients have a barrier between them",
    "barriers-pool": "no two members of a pool have a barrier between them",
    "noise-robustness": "the effect of noise is less than one of 260 test images",
    "robustness-table": "the effect of noise is less than one of 260 test images",
}
"""Figures that cannot show anything on such small images, with the reason."""

OPTIONS: dict[str, dict[str, Any]] = {
    "basin-rounds": {"points": 13, "rounds": 4},
    "bias-rounds": {"by": "local.lr_decay"},
    "decomposition-rounds": {"rounds": 3},
    "eigen-rounds": {"rounds": 5, "split": "train"},
    "error-averaged": {"by": "local.lr_decay"},
    "gap-scaling": {"rounds": 3},
    "locality-rounds": {"by": "local.lr_decay"},
    "trace-rounds": {"products": 30, "rounds": 3},
}
"""Options that reduce the cost of the most expensive figures, and the settings that figures compare."""

COLUMNS = {
    "method": "method",
    "accuracy_mean": "last-10 accuracy",
    "accuracy_std": "std over seeds",
    "centre_offset": "centre offset",
    "centre_offset_error": "its error",
    "centre_offset_seeds": "of seeds",
    "eigenvalue": "lambda_1",
    "coherence": "coherence",
    "drift_ratio": "period/client drift",
}


@dataclass(frozen=True)
class Demo:
    """Results of the demo: table, folders and files, figures drawn and left out, seconds."""

    table: list[dict[str, Any]]
    runs: Path
    figures: Path
    report: Path
    names: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def demo(out: str | Path = Path("out/demo"), *, workers: int = 2, overrides: tuple[str, ...] = ()) -> Demo:
    """Train five methods with two seeds, draw their figures and write the report; existing files stay.

    Args:
        out: Folder for runs/, figures/ and report.html.
        workers: Processes, one core each.
        overrides: Changed settings for every run, as in `drift.read`.
    """
    out, begun = Path(out), time.monotonic()
    groups = planned(overrides)
    experiments = [experiment for group in groups.values() for experiment in group]
    with progress_of_all(len(experiments), sum(experiment.rounds for experiment in experiments)) as report:
        train_all(experiments, runs=out / "runs", workers=workers, progress=report)
    console.say(f"trained {len(experiments)} runs in {time.monotonic() - begun:.0f} s; now analysing and drawing")
    folders = {name: [out / "runs" / experiment.slug for experiment in group] for name, group in groups.items()}
    outcomes = _pictures(folders, out, workers)
    return Demo(
        table=_table(folders["methods"]),
        runs=out / "runs",
        figures=out / "figures",
        report=out / "report.html",
        names=[name for name, outcome in outcomes.items() if not isinstance(outcome, str)],
        left_out={name: outcome for name, outcome in outcomes.items() if isinstance(outcome, str)},
        seconds=time.monotonic() - begun,
    )


def planned(overrides: tuple[str, ...] = ()) -> dict[str, list[Experiment]]:
    """Experiments of the demo by group; "methods" holds every method with every seed."""
    groups = {"methods": [read("demo", *overrides, method=name, seed=seed) for name in METHODS for seed in SEEDS]}
    for group, members in EXTRAS.items():
        groups[group] = [read("demo", f"seed={SEEDS[0]}", *settings, *overrides) for settings in members]
    return groups


def figure_names() -> list[str]:
    """Names of the figures that the demo draws."""
    return [name for name in gallery.names() if name not in BEYOND and name not in MUTE]


def _pictures(folders: dict[str, list[Path]], out: Path, workers: int) -> dict[str, Outcome]:
    """Outcomes of all figures by name; the report is written in parallel, as it takes longest."""
    names, pictures = figure_names(), out / "figures"
    jobs: list[_Page | Request] = [_Page(folders["methods"], out / "report.html")]
    for name in names:
        runs = [folder for group in GROUPS.get(name, ("methods",)) for folder in folders[group]]
        jobs.append((name, runs, None, pictures, OPTIONS.get(name, {}), None))
    outcomes: dict[str, Outcome] = {}
    with Workers(workers, one_thread) as pool, console.progress("analysing and drawing", len(jobs)) as step:
        for done, (place, outcome) in enumerate(pool.as_completed(_draw, jobs), 1):
            name = ["report", *names][place]
            outcomes[name] = outcome
            step(done, name)
    return {name: outcomes[name] for name in names}


class _Page(NamedTuple):
    """The report, as a job."""

    folders: list[Path]
    path: Path


def _draw(state: None, job: _Page | Request) -> Outcome:
    """The report or a figure; in a worker."""
    if not isinstance(job, _Page):
        return attempt(state, job)
    from figures.page.report import report

    report([Run(folder) for folder in job.folders], job.path)
    return [job.path]


def _table(folders: list[Path]) -> list[dict[str, Any]]:
    """One row per method, from results that the figures stored in the runs' folders."""
    from figures.page.summary import summary

    numbers = summary([Run(folder) for folder in folders])
    numbers["drift_ratio"] = numbers.period_variance / numbers.client_variance
    names = [name for name in COLUMNS if name != "method"]
    return [
        {"method": str(name), **{column: float(numbers[column].sel(algorithm=name)) for column in names}}
        for name in numbers.algorithm.values
    ]
