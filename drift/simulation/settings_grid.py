"""Settings grids: many runs, trained independently by processes or a cluster."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drift.config.experiment import Experiment
from drift.config.load import toml_value
from drift.parallel.threads import one_thread
from drift.parallel.worker_pool import Workers
from drift.runs.context import Context
from drift.runs.run import Run
from drift.simulation.crossed_settings import OnRefused, cross_settings
from drift.simulation.simulate import simulate

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
        reason: Why it failed.
    """

    run: Run
    experiment: Experiment
    state: str = "waiting"
    rounds: int = 0
    reason: str = ""


Watch = Callable[[list[Planned]], None]
"""Called with all runs of a grid, in their order, when one begins, ends or has written a round."""


def grid(
    source: str | Path | Experiment,
    crossed: Mapping[str, Sequence[Any]],
    *overrides: str,
    hear: OnRefused | None = None,
) -> list[Experiment]:
    """One experiment for each combination of the settings' values; the last setting changes fastest.

    Args:
        crossed: Values by setting, such as {"method": ["fedavg", "ima"], "seed": [0, 1, 2]}.
        overrides: Settings of all of them, like "rounds=10".
        hear: Called with every combination that is refused, as where a method does not suit the setting; a warning for
            each where it is left out.

    Raises:
        ValueError, LookupError: If there is no combination, a name is wrong, or every combination is refused.
    """
    if not crossed or not all(crossed.values()):
        raise ValueError("nothing to cross; give settings with one value or more, as in method=fedavg,ima seed=0,1,2.")
    return cross_settings(source, crossed, *overrides, hear=hear)


def values(texts: Iterable[str]) -> dict[str, list[Any]]:
    """Values per setting, from texts like method=fedavg,ima or clients.concentration=0.1,1; TOML, else text.

    Raises:
        ValueError: If a text has no equals sign or no value, or names a setting again.
    """
    values_of: dict[str, list[Any]] = {}
    for text in texts:
        name, _, listed = (part.strip() for part in text.partition("="))
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
    board = _Board([_plan_run(runs_of[name], experiment) for name, experiment in by_name.items()], watch)
    waiting = [place for place, planned in enumerate(board.planned) if planned.state == "waiting"]
    jobs = [Training(board.planned[place].experiment.resolved(), folder, home) for place in waiting]
    if jobs and cluster is not None:
        _on_cluster(cluster, jobs, waiting, board)
    elif jobs:
        with Workers(min(workers, len(jobs)), one_thread) as pool:
            results = pool.results(
                train, jobs, watch=lambda busy: board.training({waiting[place] for place in busy}), seconds=LOOK
            )
            with closing(results):
                for result in results:
                    board.ended(waiting[result.place], result.error)
    return board.planned


@dataclass(frozen=True)
class Training:
    """A run to train: its resolved settings, and the folders of runs and of datasets."""

    settings: dict[str, Any]
    runs: Path
    data: Path | None


class _Board:
    """The progress of all runs of a grid; calls `watch` when it changes."""

    def __init__(self, planned: list[Planned], watch: Watch | None) -> None:
        self.planned, self.watch = planned, watch or (lambda planned: None)
        self.watch(list(planned))

    def training(self, places: set[int]) -> None:
        """Mark these runs as training; their rounds are counted on disk."""
        before = list(self.planned)
        for place in places:
            old = self.planned[place]
            self.planned[place] = Planned(old.run, old.experiment, "training", max(old.rounds, written_rounds(old.run)))
        self._notify(before)

    def ended(self, place: int, error: BaseException | None) -> None:
        """Mark a run as done, or as failed with its reason."""
        before, old = list(self.planned), self.planned[place]
        state = "done" if error is None else "failed"
        reason = "" if error is None else " ".join((str(error) or type(error).__name__).split())
        self.planned[place] = Planned(old.run, old.experiment, state, written_rounds(old.run), reason)
        self._notify(before)

    def _notify(self, before: list[Planned]) -> None:
        if before != self.planned:
            self.watch(list(self.planned))


def _plan_run(run: Run, experiment: Experiment) -> Planned:
    done = run.committed if (run.folder / "run.json").exists() else 0
    return Planned(run, experiment, "on disk" if done >= experiment.rounds else "waiting", done)


def written_rounds(run: Run) -> int:
    """Whole rounds by their files, quick to count; the last one may wait for its commit."""
    return sum(1 for _ in (run.folder / "rounds").glob(f"{'[0-9]' * 6}.safetensors"))


def train(started: None, job: Training) -> None:
    """In a worker: train the run of a job."""
    simulate(Experiment.model_validate(job.settings), runs=job.runs, data=job.data)


def _on_cluster(address: str, jobs: Sequence[Training], places: list[int], board: _Board) -> None:
    from drift.engines.cluster import connected, losing

    with connected(address) as client, losing(client):
        futures = [client.submit(_train_locked, job, pure=False) for job in jobs]
        pending = dict(zip(places, futures, strict=True))
        while pending:
            time.sleep(LOOK)
            done = {place: future for place, future in pending.items() if future.done()}
            pending = {place: future for place, future in pending.items() if place not in done}
            board.training({place for place in pending if written_rounds(board.planned[place].run)})
            for place, future in done.items():
                board.ended(place, future.exception())


def _train_locked(job: Training) -> None:
    """On a worker of a cluster: one run at a time per process, whatever its threads."""
    from drift.engines.cluster import TORCH_LOCK

    with TORCH_LOCK:
        train(None, job)


def _split_values(text: str) -> list[Any]:
    """Values separated by commas that lie in no bracket or quotes."""
    try:
        return list(tomllib.loads(f"values = [{text}]")["values"])
    except (tomllib.TOMLDecodeError, RecursionError):
        return [toml_value(part) for part in text.split(",")]
