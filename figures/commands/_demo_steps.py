"""The demo: four methods on real images, figures that suit these runs, and the report; the first picture soon.

Trainings, analyses and figures are jobs of one pool of processes, in four stages.
"""

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from drift.config.experiment import Experiment
from drift.config.load import read
from drift.parallel.worker_pool import Workers
from drift.runs.run import Run
from figures.commands._draw_files import Outcome, attempt
from figures.pictures import draw_files
from figures.texts import console

METHODS = ("fedavg", "ima", "fedlaw", "fedeve")
"""The first two are trained first. LSS takes as long as three of them; it is left to the user."""

SHORTER = ("seed=8", "rounds=20")
"""Of the preset `demo`, one seed and fewer rounds."""

SETTINGS = ("iid", "period", "client", "both")
"""Partitions with neither drift, one of them, or both."""

PARTITION = 'clients.partition={{name="drift", setting="{}", concentration=0.05}}'

FIRST = "planes-clients"
"""The first picture."""

FIGURES: dict[str, tuple[tuple[str, ...], dict[str, Any]]] = {
    FIRST: (("fedavg",), {}),
    "accuracy-rounds": (METHODS, {}),
    "planes-overlay": (("fedavg",), {}),
    "settings-rounds": (SETTINGS, {}),
    "trajectory-plane": (("fedavg",), {}),
    "variance-rounds": (METHODS, {}),
    "clients-round": (("fedavg",), {}),
}
"""Figures in the order in which they appear: the runs of each, and its options."""

LONGER = ("planes-clients", "lines-fma-ima")
"""Figures of runs of 300 rounds on Fashion-MNIST, from numbers that come with fedscape."""

POINTS = 9
"""Grid points per axis of the report's landscapes."""

COLUMNS = {
    "method": "method",
    "accuracy_mean": "last-10 accuracy",
    "centre_offset": "centre offset",
    "centre_offset_error": "its error",
    "eigenvalue": "lambda_1",
    "coherence": "coherence",
    "drift_ratio": "update change/client drift",
}


@dataclass(frozen=True)
class Demo:
    """Results of the demo: table, folders and files, figures and those left out, seconds."""

    table: list[dict[str, Any]]
    runs: Path
    figures: Path
    report: Path
    names: list[str] = field(default_factory=list)
    left_out: dict[str, str] = field(default_factory=dict)
    seconds: float = 0.0


def demo(out: str | Path = Path("out/demo"), *, workers: int = 2, overrides: tuple[str, ...] = ()) -> Demo:
    """Train the runs, draw their figures and write the report; existing files stay.

    Args:
        out: Folder for runs/, figures/ and report.html.
        workers: Processes, one core each.
        overrides: Changed settings for every run, as in `drift.read`.
    """
    out, begun = Path(out), time.monotonic()
    experiments, figures = planned(overrides), out / "figures"
    folders = {name: out / "runs" / experiment.slug for name, experiment in experiments.items()}
    methods = [folders[name] for name in METHODS]
    trained = [(_train, experiment, out / "runs") for experiment in experiments.values()]
    pictures: dict[str, _Job] = {
        name: (attempt, None, (name, [folders[run] for run in runs], None, figures, options, None))
        for name, (runs, options) in FIGURES.items()
    }
    first, longer = pictures.pop(FIRST), [(_longer, name, figures) for name in LONGER]
    remembered: list[Any] = [None] * len(METHODS)
    stages: list[list[_Job]] = [
        [*trained[:2]],
        [first, *trained[2:]],
        [(_analyse, folder) for folder in methods],
        [(_page, methods, remembered, out / "report.html"), *longer, *pictures.values()],
    ]
    results: list[list[Any]] = []
    total, done = sum(map(len, stages)), 0
    with Workers(workers) as pool, console.progress("training, analysing, drawing", total) as step:
        for stage in stages:
            results.append(remembered if stage is stages[-2] else [None] * len(stage))
            for index, result in pool.as_completed(_work, stage):
                results[-1][index] = result
                done += 1
                step(done, str(stage[index][0].__name__).strip("_"))
                if stage[index] is first:
                    _tell(result, time.monotonic() - begun)
    table, *rest = results[-1]
    outcomes: dict[str, Outcome] = {FIRST: results[1][0], **dict(zip(pictures, rest[len(longer) :], strict=True))}
    names = [name for name, outcome in outcomes.items() if not isinstance(outcome, str)]
    left_out = {name: outcome for name, outcome in outcomes.items() if isinstance(outcome, str)}
    return Demo(table, out / "runs", figures, out / "report.html", names, left_out, time.monotonic() - begun)


def planned(overrides: tuple[str, ...] = ()) -> dict[str, Experiment]:
    """Experiments of the demo by method, or by setting of the partition, in the order in which they are trained."""
    methods = {name: read("demo", *SHORTER, *overrides, method=name) for name in METHODS}
    changes = {name: ("method=fedavg", PARTITION.format(name), *SHORTER, *overrides) for name in SETTINGS}
    return methods | {name: read("demo", *changed) for name, changed in changes.items()}


_Job = tuple[Any, ...]
"""A function and its arguments, for a worker."""


def _work(state: None, job: _Job) -> Any:
    function, *arguments = job
    return function(*arguments)


def _tell(outcome: Outcome, seconds: float) -> None:
    if not isinstance(outcome, str):
        picture = next(path for path in outcome if path.suffix == ".png")
        console.say(f"the first picture is {picture} (after {seconds:.0f} s); more follow in {picture.parent}")


def _longer(name: str, folder: Path) -> list[Path]:
    """A picture of stored numbers; in a worker."""
    numbers = Path(draw_files.__file__).parent / "stored" / f"{name}.nc"
    return draw_files.draw(name, numbers, folder, stem=f"{name}-300-rounds")


def _train(experiment: Experiment, runs: Path) -> None:
    """One run; in a worker."""
    from drift.simulation.simulate import simulate

    simulate(experiment, runs=runs)


def _analyse(folder: Path) -> dict[str, Any]:
    """What the report shows of a run, stored in the run's folder, and remembered for `_page`; in a worker."""
    from figures.page.remembered_runs import Remembered, attempt
    from figures.page.report_jobs import jobs_of
    from figures.page.sampled import SAMPLES
    from figures.page.start import Start

    run = Remembered.wrap(Run(folder))
    for job in jobs_of(run, Start.read("", POINTS, SAMPLES), SAMPLES):
        attempt(run, job)
    return run.memory


def _page(folders: list[Path], remembered: list[dict[str, Any]], path: Path) -> list[dict[str, Any]]:
    """Write the report of the runs in `folders`, and return one row of numbers per method; in a worker."""
    from figures.page.remembered_runs import Remembered
    from figures.page.report import report
    from figures.page.sampled import SAMPLES
    from figures.page.summary import summary

    runs = [Remembered(folder, memory=memory) for folder, memory in zip(folders, remembered, strict=True)]
    report(runs, path, points=POINTS)
    numbers = summary(runs, samples=SAMPLES)
    numbers["drift_ratio"] = numbers.change_variance / numbers.client_variance
    return [
        {"method": str(name), **{column: float(numbers[column].sel(algorithm=name)) for column in list(COLUMNS)[1:]}}
        for name in numbers.algorithm.values
    ]
