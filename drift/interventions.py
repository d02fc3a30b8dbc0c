"""Recorded rounds played again with one thing changed: what the loss would have been."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

import numpy as np
import torch
import xarray as xr
from torch import Tensor

from drift.changes import UNCHANGED, changed, changes
from drift.effort import Effort, effort
from drift.method import Setting
from drift.play import play
from drift.processes import processes
from drift.run import Run
from drift.series import parameters
from drift.server import Server
from landscape.affine import evaluate
from landscape.batchnorm import usual_statistics

Job = tuple[str, int, int]
"""(name of a change, first round, number of rounds)."""

LENGTH, WINDOWS = 5, 5
"""Rounds in a window, and windows."""


def interventions(
    run: Run,
    *,
    length: int | None = None,
    windows: int = WINDOWS,
    starts: Sequence[int] | None = None,
    without: Sequence[int] = (),
    split: str = "test",
    workers: int = 1,
) -> xr.Dataset:
    """Gain in loss if a few rounds had been trained with one thing changed, for every change of `drift.changes`.

    From the recorded start of a window of rounds the same rounds are played again, with the same cohorts and batches
    as far as the change leaves them, and compared with the record:

        gain = mean over the window's last half of L(recorded end) - L(end with the change)

    positive where the change helps. Windows do not overlap and end at the last round that kept its models; those that
    begin in the first third of the run are left out, as everything helps or hurts there; for a run that broke down,
    give the `starts` of windows around the break. A window is short: what pays off slowly shows less than it is worth,
    and what slows training down shows its price at once.

    The server's memory is not recorded for each round. Where the method has one, or clients keep state, it begins
    anew in every window and the unchanged rounds are played again, too (attribute replayed = 1). With batch
    normalisation, statistics are recomputed on training samples for every model.

    Args:
        length: Rounds in a window; by default 5, or a third of a run of fewer than 15 rounds.
        windows: At most so many.
        starts: First rounds of the windows, in place of those; they may overlap.
        without: Clients to be left out, one at a time; NaN in windows that they have no part in.
        split: Samples that the loss is averaged over.
        workers: Processes that share the work.

    Returns:
        Dataset with loss (round,) in nats as recorded, changed_loss and gain (change, round), first (round,), where
        round is the last of a window; change is the name, text (change,) the change in words.

    Raises:
        LookupError: If no window has its first start and its last end on record, or training is not known (an import).
        ValueError: If length or windows are below 1.
    """
    length = window_length(run) if length is None else length
    spans = _spans(run, length, windows, starts)
    tried = changes(run, without=without)
    again = [UNCHANGED, *tried] if remembers(run) else tried
    jobs = [(change.name, first, length) for first, _ in spans for change in again]
    played = dict(zip(jobs, _played(run, jobs, workers), strict=True))
    loss, other = np.full(len(spans), np.nan), np.full((len(tried), len(spans)), np.nan)
    for column, (first, last) in enumerate(spans):
        late = [index for index in _late(first, last) if index in set(run.kept("globals"))]
        rows = [played[change.name, first, length] for change in again]
        if not remembers(run):
            rows = [{index: run.round(index).kept("end") for index in late}, *rows]
        values = [_loss(run, [row[index] for index in late if index in row], split) for row in rows]
        loss[column], other[:, column] = values[0], values[1:]
        for place, change in enumerate(tried):
            client = change.name.removeprefix("without-")
            if client.isdigit() and not any(int(client) in run.trained(index) for index in range(first, last + 1)):
                other[place, column] = np.nan
    found = {
        "loss": ("round", loss),
        "changed_loss": (("change", "round"), other),
        "gain": (("change", "round"), loss - other),
        "first": ("round", [first for first, _ in spans]),
        "text": ("change", [change.text for change in tried]),
    }
    coords = {"change": [change.name for change in tried], "round": [last for _, last in spans]}
    ds = xr.Dataset(found, coords, {"analysis": "interventions", "source": "this project", "length": length})
    for name, (text, unit) in _ABOUT.items():
        ds[name].attrs.update(long_name=text, units=unit)
    return ds.assign_attrs(replayed=int(remembers(run)), split=split)


def interventions_effort(
    run: Run,
    *,
    length: int | None = None,
    windows: int = WINDOWS,
    starts: Sequence[int] | None = None,
    without: Sequence[int] = (),
    split: str = "test",
    workers: int = 1,
) -> Effort:
    """What `interventions` with the same options costs; a training is one as long as those of the record."""
    length = window_length(run) if length is None else length
    spans, tried = _spans(run, length, windows, starts), changes(run, without=without)
    again = [UNCHANGED, *tried] if remembers(run) else tried
    clients = run.experiment.clients.number if run.experiment.clients.train_all else run.experiment.clients.per_round
    trainings = len(spans) * length * clients * sum(change.cost for change in again)
    forwards = len(spans) * (len(tried) + 1) * (length - length // 2) * len(run.task.split(split))
    memory = 4 * parameters(run) * length * (len(spans) * len(again) + 1)
    return effort(run, trainings=round(trainings), forwards=forwards, memory=memory, workers=workers)


def window_length(run: Run) -> int:
    """Rounds in a window unless given: 5, or a third of a run of fewer than 15 rounds."""
    return min(LENGTH, max(1, len(run.rounds()) // 3))


def remembers(run: Run) -> bool:
    """Whether server or clients keep something between rounds beside the model."""
    server = Server.of(*run.state())
    return bool(server.state or server.clients)


def play_again(run: Run, name: str, first: int, length: int) -> dict[int, Tensor]:
    """Global models (d,) after each of the rounds first, .., first + length - 1, played with a change.

    Where nothing finite is left, the rounds from there on are missing.
    """
    spec, data = changed(run, name)
    record = run.round(first)
    silent = spec.model_copy(update={"evaluate_every": spec.rounds + 1})
    setting = Setting(run.task, silent, run.task.samples.get("proxy"))
    begun = Server.fresh(setting)
    start = record.kept("start")
    server = replace(begun, theta=start, buffers=record.start_buffers, next=first)
    server = replace(server, state=silent.method.initial(setting, start))
    found = {}
    threads = torch.get_num_threads()
    torch.set_num_threads(spec.threads)
    try:
        for index in range(first, first + length):
            _, server = play(setting, data, server)
            if not bool(torch.isfinite(server.theta).all()):
                break
            found[index] = server.theta
    finally:
        torch.set_num_threads(threads)
    return found


def _late(first: int, last: int) -> range:
    """The last half of a window, the middle round included."""
    return range(first + (last - first + 1) // 2, last + 1)


def _spans(run: Run, length: int, windows: int, starts: Sequence[int] | None) -> list[tuple[int, int]]:
    """First and last rounds of the windows, ascending."""
    if length < 1 or windows < 1:
        raise ValueError(f"length is {length} and windows is {windows}; give 1 or more of each.")
    if run.about.get("unknown"):
        raise LookupError(f"run {run.name} was imported: how it was trained is not known, it cannot be replayed.")
    held, count = set(run.kept("globals")), len(run.rounds())
    least = count // 3 if count >= 3 * length else 0
    found: list[tuple[int, int]] = []
    for first in sorted(starts) if starts is not None else range(count - length, least - 1, -1):
        last = first + length - 1
        apart = starts is not None or not found or last < found[-1][0]
        if apart and {first, last} <= held and len(found) < windows:
            found.append((first, last))
    if not found:
        raise LookupError(
            f"run {run.name} kept no two global models {length - 1} rounds apart; train with --set keep.globals=all."
        )
    return sorted(found)


def _loss(run: Run, models: Sequence[Tensor], split: str) -> float:
    """Mean loss of several models; NaN without any or where one is not finite."""
    if not models:
        return float("nan")
    values = evaluate(
        run.task,
        torch.stack(list(models)),
        torch.eye(len(models)),
        split=split,
        metrics=("loss",),
        statistics=usual_statistics(run.task),
    )
    return float(values["loss"].mean())


def _played(run: Run, jobs: Sequence[Job], workers: int) -> list[dict[int, Tensor]]:
    """Models of every job, in its order."""
    told = run.progress or (lambda done, total: None)
    told(0, len(jobs))
    found: list[dict[int, Tensor]] = []
    for models in _done(run, jobs, workers):
        found.append(models)
        told(len(found), len(jobs))
    return found


def _done(run: Run, jobs: Sequence[Job], workers: int) -> Iterator[dict[int, Tensor]]:
    if workers < 1:
        raise ValueError(f"workers is {workers}; give one process or more.")
    if workers == 1:
        for job in jobs:
            yield play_again(run, *job)
        return
    with processes(min(workers, len(jobs))) as pool:
        yield from pool.map(_elsewhere, *zip(*((run.folder, run.data, job) for job in jobs), strict=True))


@lru_cache(maxsize=1)
def _opened(folder: Path, data: Path | None) -> Run:
    return Run(folder, data)


def _elsewhere(folder: Path, data: Path | None, job: Job) -> dict[int, Tensor]:
    return play_again(_opened(folder, data), *job)


_ABOUT = {
    "loss": ("loss of the recorded rounds", "nats"),
    "changed_loss": ("loss with the change", "nats"),
    "gain": ("loss gained by the change", "nats"),
    "first": ("first round of the window", "1"),
    "text": ("the change in words", "1"),
}
