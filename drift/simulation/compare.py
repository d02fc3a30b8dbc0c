"""Training of several methods and seeds of one experiment, and a summary table."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from drift.config.experiment import Experiment
from drift.parallel.job_pool import require_workers
from drift.plugins.trust import allow_named
from drift.runs.context import Context
from drift.runs.run import Run
from drift.simulation.crossed_settings import OnRefused, cross_settings, refusal, warn
from drift.simulation.settings_grid import Planned, train_grid
from drift.simulation.simulate import Diverged, simulate

RunProgress = Callable[[str, int, int], None]
"""Called with a run's name, its rounds on disk and its rounds in all."""

Errors = dict[str, ValueError | LookupError]
"""Why runs, by name, were refused when their training began."""


def compare(
    source: str | Path | Experiment,
    *,
    methods: Sequence[str],
    seeds: Sequence[int],
    runs: str | Path = "runs",
    data: str | Path | None = None,
    overrides: Sequence[str] = (),
    workers: int = 1,
    progress: RunProgress | None = None,
) -> list[Run]:
    """One run per method and seed; rounds on disk are not trained again.

        runs = drift.compare("digits-shards2", methods=["fedavg", "ima"], seeds=[8, 9])
        figures.picture("accuracy-rounds", runs)

    All see the same initial model, partition, cohorts and batches for a seed. A run that diverges is reported by a
    warning; the others continue. A method that refuses the setting is left out, by a warning too.

    Args:
        source: Preset, file or experiment; its `[variants.METHOD]` apply.
        methods, seeds: All combinations are trained, in this order.
        runs, data: Folders of runs and of datasets.
        overrides: Settings for all of them, like "rounds=10".
        workers: Processes; more than one are started afresh, one thread each.
        progress: Called in this process whenever a round was written.

    Raises:
        ValueError, LookupError: If a name is wrong or all are refused; before anything is trained.
    """
    experiments = cross_settings(source, {"method": methods, "seed": seeds}, *overrides)
    return train_all(experiments, runs=runs, data=data, workers=workers, progress=progress)


def train_all(
    experiments: Iterable[Experiment],
    *,
    runs: str | Path = "runs",
    data: str | Path | None = None,
    workers: int = 1,
    progress: RunProgress | None = None,
    hear: OnRefused | None = None,
) -> list[Run]:
    """One run for each experiment, in their order, with equal ones trained once; see `compare`.

    Args:
        hear: Called with every experiment that is refused when its training begins, as where a method does not suit
            the model; a warning for each where it is left out. The run is not among those returned.

    Raises:
        ValueError, LookupError: If all are refused: the reason of the first one.
    """
    by_name = {experiment.slug: experiment for experiment in experiments}
    if not by_name:
        raise ValueError(
            "nothing to train; give one method and one seed or more, as in --methods fedavg ima --seeds 8 9."
        )
    require_workers(workers)
    for experiment in by_name.values():
        allow_named(experiment.resolved())
    report = progress or (lambda name, done, total: None)
    opened = {name: Run(Path(runs) / name, Context(None if data is None else Path(data))) for name in by_name}
    unfinished = {name: by_name[name] for name, run in opened.items() if run.committed < by_name[name].rounds}
    for name in by_name.keys() - unfinished.keys():
        report(name, by_name[name].rounds, by_name[name].rounds)
    errors: Errors = {}
    if workers == 1 or len(unfinished) < 2:
        for name, experiment in unfinished.items():
            _serial(name, experiment, opened[name], report, errors)
    else:
        seen = dict.fromkeys(unfinished, 0)

        def watch(planned: list[Planned]) -> None:
            for entry in planned:
                if entry.rounds != seen[entry.run.name]:
                    seen[entry.run.name] = entry.rounds
                    report(entry.run.name, min(entry.rounds, entry.experiment.rounds), entry.experiment.rounds)

        for entry in train_grid(unfinished.values(), runs=runs, data=data, workers=workers, watch=watch):
            if entry.error is not None:
                _note(entry.run.name, entry.error, errors)
    if errors and len(errors) == len(by_name):
        raise next(errors[name] for name in by_name)
    for name, error in errors.items():
        about = {"method": by_name[name].method.name(), "seed": by_name[name].seed}
        (hear or warn)(refusal(about, error))
    return [run for name, run in opened.items() if name not in errors]


def summary(runs: Iterable[Run]) -> list[dict[str, Any]]:
    """One row for each group of runs that differ in their seed only.

    Accuracy is that of the last ten rounds, averaged, then its mean and sample standard deviation over seeds
    (papers.md 7).

    Returns:
        Rows with method, dataset, partition, seeds, done and rounds (fewest on disk, and in all), accuracy,
        accuracy_std and best (fractions; the highest of a round), loss (nats, last ten rounds), seconds (in all).
    """
    groups: dict[str, list[Run]] = {}
    for run in runs:
        shared = {key: value for key, value in run.experiment.resolved().items() if key != "seed"}
        groups.setdefault(json.dumps(shared, sort_keys=True), []).append(run)
    return [_summary_row(group) for group in groups.values()]


def mean_of_last(run: Run, metric: str = "accuracy", last: int = 10) -> float:
    """Mean of a metric over a run's last rounds that recorded it (`last_recorded`), NaN where none did.

    Raises:
        ValueError: If `last` is not a number of rounds.
    """
    if last < 1:
        raise ValueError(f"last is {last}; give the number of rounds that are averaged, 1 or more.")
    values, _ = _last_values(run, metric, last)
    return float(np.mean(values)) if values else float("nan")


def last_recorded(
    rounds: Sequence[int], recorded: Callable[[Sequence[int]], list[float]], last: int
) -> tuple[list[float], bool]:
    """Numbers of the last rounds that have one, as many as `last`; and whether a later round has none.

    Where fewer have one, they are those among the last rounds by number: two of ten if every fifth one has.

    Args:
        rounds: Ascending.
        recorded: Numbers of those of some rounds that have one.
    """
    near = recorded([index for index in rounds if index > rounds[-1] - last])
    values, size = near, last
    while len(values) < last and size < len(rounds):
        size *= 2
        values = recorded(rounds[-size:])
    return (values[-last:], True) if len(near) < last <= len(values) else (near, False)


def _last_values(run: Run, metric: str, last: int) -> tuple[list[float], bool]:
    def recorded(indices: Sequence[int]) -> list[float]:
        return [numbers[metric] for numbers in run.numbers_of(indices) if metric in numbers]

    return last_recorded(run.rounds(), recorded, last)


def last_words(runs: Sequence[Run], last: int, metric: str = "accuracy") -> str:
    """What `mean_of_last` averages, in words."""
    return mean_words([(run.rounds(), _last_values(run, metric, last)) for run in runs], last)


def mean_words(runs: Sequence[tuple[Sequence[int], tuple[list[float], bool]]], last: int) -> str:
    """What a mean over the last rounds averages, in words.

    Args:
        runs: Of each run its rounds, and what `last_recorded` returns.
        last: Number of rounds that are averaged.
    """
    lengths = [rounds[-1] - rounds[0] + 1 if rounds else 0 for rounds, _ in runs]
    counts, sparse_runs = [len(values) for _, (values, _) in runs], any(sparse for _, (_, sparse) in runs)
    which = (
        f"last {'evaluated ' * sparse_runs}round"
        if last == 1
        else f"mean of the last {last} {'evaluated ' * sparse_runs}rounds"
    )
    if last == 1 or min(counts) == last:
        return which
    if sparse_runs or min(lengths) < last:
        same = not sparse_runs and len({*lengths}) == 1
        return f"mean of all {lengths[0]} rounds" if same else f"{which} at most"
    number = " to ".join(map(str, dict.fromkeys((min(counts), max(counts)))))
    return f"mean of the {number} evaluated among the last {last} rounds" if min(counts) else which


def _summary_row(group: list[Run]) -> dict[str, Any]:
    experiment = group[0].experiment
    accuracy = np.array([mean_of_last(run) for run in group])
    metrics = [run.round(index).metrics for run in group for index in run.rounds()]
    return {
        "method": group[0].label,
        "dataset": experiment.task.dataset,
        "partition": experiment.resolved()["clients"]["partition"]["name"],
        "seeds": [run.experiment.seed for run in group],
        "done": min(len(run.rounds()) for run in group),
        "rounds": experiment.rounds,
        "accuracy": float(accuracy.mean()),
        "accuracy_std": float(accuracy.std(ddof=1)) if len(group) > 1 else float("nan"),
        "best": max((row["accuracy"] for row in metrics if "accuracy" in row), default=float("nan")),
        "loss": float(np.mean([mean_of_last(run, "loss") for run in group])),
        "seconds": sum(row.get("seconds", 0.0) for row in metrics),
    }


def _serial(name: str, experiment: Experiment, run: Run, report: RunProgress, errors: Errors) -> None:
    try:
        simulate(
            experiment,
            runs=run.folder.parent,
            data=run.context.data,
            progress=lambda record: report(name, record.index + 1, experiment.rounds),
        )
    except (Diverged, ValueError, LookupError) as error:
        _note(name, error, errors)


def _note(name: str, error: Exception, errors: Errors) -> None:
    """Warn of a run that diverged, and collect the reason of one that was refused; other errors are raised."""
    if isinstance(error, Diverged):
        warnings.warn(f"{name} stopped early: {error}", stacklevel=2)
    elif isinstance(error, ValueError | LookupError):
        errors[name] = error
    else:
        raise error
