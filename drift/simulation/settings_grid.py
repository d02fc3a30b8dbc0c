"""Settings grids: many runs, trained independently by processes or a cluster."""

import tomllib
from collections.abc import Callable, Iterable
from contextlib import closing
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from drift.config.experiment import Experiment
from drift.engines import job_pool
from drift.parallel.job_pool import JobWatch
from drift.runs.context import Context
from drift.runs.run import Run
from drift.simulation.simulate import simulate
from landscape.results.parsed_text import toml_value

LOOK = 0.5
"""Seconds between two checks of the files on disk."""


@dataclass(frozen=True)
class Planned:
    """A run of a grid, and its progress.

    Args:
        run: Its folder.
        experiment: What it trains.
        state: "waiting", "training", "done", "on disk" (before the grid began) or "failed".
        rounds: Whole rounds on disk.
        error: Why it failed.
    """

    run: Run
    experiment: Experiment
    state: str = "waiting"
    rounds: int = 0
    error: Exception | None = None

    @property
    def reason(self) -> str:
        """Why it failed, in one line; "" if it did not."""
        return "" if self.error is None else " ".join((str(self.error) or type(self.error).__name__).split())


Watch = Callable[[list[Planned]], None]
"""Called with all runs of a grid, in their order, when one begins, ends or has written a round."""


def values(texts: Iterable[str]) -> dict[str, list[Any]]:
    """Values per setting, from texts like method=fedavg,ima or clients.concentration=0.1,1; TOML, else text.

    Raises:
        ValueError: If a text has no equals sign or no value, or names a setting again.
    """
    values_of: dict[str, list[Any]] = {}
    for text in texts:
        name, _, listed = (word.strip() for word in text.partition("="))
        if not name or not listed or name in values_of:
            raise ValueError(f"cannot read {text!r}; write each KEY=VALUE,VALUE once, as in seed=0,1,2.")
        values_of[name] = _split_values(listed)
    return values_of


def train_grid(
    experiments: Iterable[Experiment],
    *,
    runs: str | Path = "runs",
    data: str | Path | None = None,
    workers: int = 1,
    cluster: str | None = None,
    watch: Watch | None = None,
) -> list[Planned]:
    """Train every experiment, equal ones once; rounds on disk are not trained again, and an error stops one run only.

    A process that dies is replaced, and its run goes on where it was.

    Args:
        runs, data: Folders of runs and of datasets; workers of a cluster have to see both under the same paths.
        workers: Processes, started afresh, one run at a time each.
        cluster: Address of a Dask scheduler, whose workers take the runs in place of these.

    Raises:
        Lost: If the cluster's scheduler cannot be reached or is gone.
    """
    folder, home = Path(runs).absolute(), None if data is None else Path(data).absolute()
    by_name = {experiment.slug: experiment for experiment in experiments}
    runs_of = {name: Run(folder / name, Context(home)) for name in by_name}
    planned = [_plan_run(runs_of[name], experiment) for name, experiment in by_name.items()]
    waiting = [index for index, entry in enumerate(planned) if entry.state == "waiting"]
    jobs = [Training(planned[index].experiment.resolved(), folder, home) for index in waiting]
    report = watch or (lambda planned: None)
    report(list(planned))

    def mark(job: int, state: str, error: Exception | None = None) -> None:
        before = planned[waiting[job]]
        written = (before.run.folder / "rounds").glob(f"{'[0-9]' * 6}.safetensors")  # the last may wait for its commit
        rounds = max(before.rounds, len([*written]))
        if state != "training" or rounds or cluster is None:  # a cluster does not say which runs have begun
            planned[waiting[job]] = replace(before, state=state, rounds=rounds, error=error)
        if before != planned[waiting[job]]:
            report(list(planned))

    def mark_busy(busy: set[int]) -> None:
        for job in busy:
            mark(job, "training")

    if jobs:
        with (
            job_pool(min(workers, len(jobs)), cluster) as pool,
            closing(pool.results(train, jobs, watch=JobWatch(mark_busy, LOOK))) as results,
        ):
            for result in results:
                mark(result.index, "done" if result.error is None else "failed", result.error)
    return planned


@dataclass(frozen=True)
class Training:
    """A run to train: its resolved settings, and the folders of runs and of datasets."""

    settings: dict[str, Any]
    runs: Path
    data: Path | None


def _plan_run(run: Run, experiment: Experiment) -> Planned:
    done = run.committed if (run.folder / "run.json").exists() else 0
    return Planned(run, experiment, "on disk" if done >= experiment.rounds else "waiting", done)


def train(started: None, job: Training) -> None:
    """In a worker: train the run of a job."""
    simulate(Experiment.model_validate(job.settings), runs=job.runs, data=job.data)


def _split_values(text: str) -> list[Any]:
    """Values separated by commas that lie in no bracket or quotes."""
    try:
        return list(tomllib.loads(f"values = [{text}]")["values"])
    except (tomllib.TOMLDecodeError, RecursionError):
        return [toml_value(word) for word in text.split(",")]
