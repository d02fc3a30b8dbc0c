"""Replays of recorded rounds with a change or another seed, and the losses of their models."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import lru_cache
from math import isfinite
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from drift.analyses.counterfactual.changes import changed
from drift.analyses.counterfactual.server_memory import server_before
from drift.analyses.rounds.run_state import chance
from drift.config.method import Setting
from drift.config.random_keys import key
from drift.parallel.process_pool import processes
from drift.runs.context import Context
from drift.runs.run import Run
from drift.simulation.one_round import run_round
from landscape.model.batchnorm import usual_statistics
from landscape.sweep.evaluate import evaluate

Job = tuple[str, int, int, int]
"""(name of a change, first round, number of rounds, draw of the seed)."""

Models = dict[int, Tensor]
"""Global models (d,) after rounds, by round."""

BEYOND = 10.0
"""Largest loss that is distinguished, as a multiple of the constant answer's loss."""


def play_again(run: Run, name: str, first: int, length: int, draw: int = 0) -> Models:
    """Global models (d,) after each of the rounds first, .., first + length - 1, trained with a change.

    The state of server and clients is as it was if the record allows it (`server_before`), and new if the method
    changes. Rounds without a finite model are missing.

    Args:
        draw: 0 for the cohorts and batches of the record; others take another seed.
    """
    spec, data = changed(run, name)
    seed = spec.seed if draw == 0 else key(spec.seed, "placebo", draw)
    silent = spec.model_copy(update={"evaluate_every": first + length + spec.rounds + 1, "seed": seed})
    setting = Setting(run.task, silent, run.task.samples.get("proxy"), run.setting.engine)
    server, _ = server_before(run, first)
    if type(silent.method) is not type(run.method):
        server = replace(server, state=silent.method.initial(setting, server.theta), clients={})
    models: Models = {}
    threads = torch.get_num_threads()
    torch.set_num_threads(spec.threads)
    try:
        for index in range(first, first + length):
            _, server = run_round(setting, data, server)
            if not bool(torch.isfinite(server.theta).all()):
                break
            models[index] = server.theta
    finally:
        torch.set_num_threads(threads)
    return models


def replay_jobs(run: Run, jobs: Sequence[Job], workers: int) -> list[Models]:
    """Models of every job, in its order; `run.context.progress` is called after each of them.

    Raises:
        ValueError: If workers is below 1.
    """
    if workers < 1:
        raise ValueError(f"workers is {workers}; give one process or more.")
    report = run.context.progress or (lambda done, total: None)
    report(0, len(jobs))
    results: list[Models] = []
    for models in _replay_each(run, jobs, workers):
        results.append(models)
        report(len(results), len(jobs))
    return results


def bounded_losses(run: Run, replays: Sequence[Models], rounds: Sequence[Sequence[int]], split: str) -> np.ndarray:
    """Mean loss of each replay's models after its rounds, at most ten times that of the constant answer; shape (n,).

    It is that bound where a model is missing, so that models that diverged have the largest loss, which stays finite.
    """
    constant = chance(run)
    most = BEYOND * constant if isfinite(constant) else float("nan")
    losses = np.full(len(replays), most)
    whole = [place for place, indices in enumerate(rounds) if all(index in replays[place] for index in indices)]
    if not whole:
        return losses
    models = torch.stack([replays[place][index] for place in whole for index in rounds[place]])
    values = evaluate(
        run.task,
        models,
        torch.eye(len(models)),
        split=split,
        metrics=("loss",),
        statistics=usual_statistics(run.task),
        workers=run.context.pool or 1,
    )["loss"].double()
    values = values.nan_to_num(most).clamp(max=most) if isfinite(most) else values
    for place, part in zip(whole, values.split([len(rounds[place]) for place in whole]), strict=True):
        losses[place] = float(part.mean())
    return losses


def _replay_each(run: Run, jobs: Sequence[Job], workers: int) -> Iterator[Models]:
    if workers == 1 or len(jobs) < 2:
        for job in jobs:
            yield play_again(run, *job)
        return
    with processes(min(workers, len(jobs))) as pool:
        yield from pool.map(_play_in_process, *zip(*((run.folder, run.context.data, job) for job in jobs), strict=True))


@lru_cache(maxsize=1)
def _opened(folder: Path, data: Path | None) -> Run:
    return Run(folder, Context(data))


def _play_in_process(folder: Path, data: Path | None, job: Job) -> Models:
    return play_again(_opened(folder, data), *job)
