"""Many experiments at once: whole runs scheduled on processes or on a cluster, each on its own feet."""

from __future__ import annotations

import time
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from drift.config.experiment import Experiment
from drift.parallel.worker_pool import Workers
from drift.runs.context import Context
from drift.runs.run import Run
from drift.simulation.crossed_settings import Hear
from drift.simulation.crossed_settings import crossed as accepted
from drift.simulation.simulate import simulate

LOOK = 0.5
"""Seconds between two looks at what is on disk."""


@dataclass(frozen=True)
class Planned:
    """A run of a grid, as far as it is.

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
    source: str | Path | Experiment, crossed: Mapping[str, Sequence[Any]], *overrides: str, hear: Hear | None = None
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
    return accepted(source, crossed, *overrides, hear=hear)


def values(texts: Iterable[str]) -> dict[str, list[Any]]:
    """Values by setting from texts like method=fedavg,ima or clients.concentration=0.1,1; TOML, else text.

    Raises:
        ValueError: If a text has no equals sign or no value, or names a setting again.
    """
    found: dict[str, list[Any]] = {}
    for text in texts:
        name, _, listed = (part.strip() for part in text.partition("="))
        if not name or not listed or name in found:
            raise ValueError(f"cannot read {text!r}; write each KEY=VALUE,VALUE once, as in seed=0,1,2.")
        found[name] = _listed(listed)
    return found


def train_grid(
    experiments: Iterable[Experiment],
    *,
    runs: str | Path = "runs",
    data: str | Path | None = None,
    workers: int = 1,
    cluster: str | None = None,
    watch: Watch | None = None,
) -> list[Planned]:
    """Every experiment trained as far as it is not on disk, equal ones once; an error stops its own run alone.

    A process that dies is replaced, and its run goes on where it was.

    Args:
        runs, data: Folders of runs and of datasets; workers of a cluster have to see both under the same paths.
        workers: Processes, started afresh, one run at a time each.
        cluster: Address of a Dask scheduler, whose workers take the runs in place of these.

    Raises:
        Lost: If the cluster's scheduler cannot be reached or is gone.
    """
    folder, home = Path(runs).absolute(), None if data is None else Path(data).absolute()
    wanted = {experiment.slug: experiment for experiment in experiments}
    board = _Board([_planned(Run(folder / name, Context(home)), one) for name, one in wanted.items()], watch)
    jobs = [_Job(one.experiment.resolved(), folder, home) if one.state == "waiting" else None for one in board.planned]
    left = [place for place, job in enumerate(jobs) if job is not None]
    if left and cluster is not None:
        _on_cluster(cluster, [jobs[place] for place in left], left, board)
    elif left:
        with Workers(min(workers, len(left)), _nothing) as staff:
            found = staff.results(
                _train,
                [jobs[place] for place in left],
                watch=lambda busy: board.training({left[place] for place in busy}),
                seconds=LOOK,
            )
            with closing(found):
                for ended in found:
                    board.ended(left[ended.place], ended.error)
    return board.planned


@dataclass(frozen=True)
class _Job:
    settings: dict[str, Any]
    runs: Path
    data: Path | None


class _Board:
    """Where every run of a grid is; tells whoever watches what changed."""

    def __init__(self, planned: list[Planned], watch: Watch | None) -> None:
        self.planned, self.watch = planned, watch or (lambda planned: None)
        self.watch(list(planned))

    def training(self, places: set[int]) -> None:
        """These are being trained; how far, is read from the disk."""
        before = list(self.planned)
        for place in places:
            old = self.planned[place]
            self.planned[place] = Planned(old.run, old.experiment, "training", max(old.rounds, _written(old.run)))
        self._tell(before)

    def ended(self, place: int, error: BaseException | None) -> None:
        """One has ended."""
        before, old = list(self.planned), self.planned[place]
        state = "done" if error is None else "failed"
        reason = "" if error is None else " ".join((str(error) or type(error).__name__).split())
        self.planned[place] = Planned(old.run, old.experiment, state, _written(old.run), reason)
        self._tell(before)

    def _tell(self, before: list[Planned]) -> None:
        if before != self.planned:
            self.watch(list(self.planned))


def _planned(run: Run, experiment: Experiment) -> Planned:
    done = run.committed if (run.folder / "run.json").exists() else 0
    return Planned(run, experiment, "on disk" if done >= experiment.rounds else "waiting", done)


def _written(run: Run) -> int:
    """Whole rounds by their files, quick to count; the last one may wait for its commit."""
    return sum(1 for _ in (run.folder / "rounds").glob(f"{'[0-9]' * 6}.safetensors"))


def _nothing() -> None:
    import torch

    torch.set_num_threads(1)


def _train(begun: None, job: _Job) -> None:
    simulate(Experiment.model_validate(job.settings), runs=job.runs, data=job.data)


def _on_cluster(address: str, jobs: Sequence[_Job | None], places: list[int], board: _Board) -> None:
    from drift.engines.cluster import connected, losing

    with connected(address) as client, losing(client):
        held = {client.submit(_alone, job, pure=False): place for job, place in zip(jobs, places, strict=True)}
        pending = list(held)
        while pending:
            time.sleep(LOOK)
            ended, pending = [one for one in pending if one.done()], [one for one in pending if not one.done()]
            board.training({held[one] for one in pending if _written(board.planned[held[one]].run)})
            for future in ended:
                board.ended(held[future], future.exception())


def _alone(job: _Job) -> None:
    """On a worker of a cluster: one run at a time in a process, whatever its threads."""
    from drift.engines.cluster import ONE

    with ONE:
        _train(None, job)


def _listed(text: str) -> list[Any]:
    """Values separated by commas that lie in no bracket or quotes."""
    try:
        return list(tomllib.loads(f"values = [{text}]")["values"])
    except (tomllib.TOMLDecodeError, RecursionError):
        return [_value(part) for part in text.split(",")]


def _value(text: str) -> Any:
    try:
        return tomllib.loads(f"value = {text}")["value"]
    except (tomllib.TOMLDecodeError, RecursionError):
        return text.strip()
