"""Replays of recorded rounds with a change or another seed, from the server as it was, and losses of their models."""

from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from math import isfinite

import numpy as np
import torch
from torch import Tensor

from drift.analyses.counterfactual.changes import changed
from drift.analyses.evaluate_on import evaluate_models
from drift.analyses.rounds.run_state import BEYOND, chance
from drift.config.method_values import Setting, State
from drift.config.random_keys import key
from drift.parallel.threads import torch_threads
from drift.runs.client_of_round import client_state, past_starts, recorded_cohort
from drift.runs.run import Run
from drift.simulation.one_round import train_round
from drift.simulation.retrain import share_jobs
from drift.training.server import Server

Job = tuple[str, int, int, int]
"""(name of a change, first round, number of rounds, draw of the seed)."""

Models = dict[int, Tensor]
"""Global models (d,) after rounds, by round."""


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
    with torch_threads(spec.threads):
        for index in range(first, first + length):
            _, server = train_round(setting, data, server)
            if not bool(torch.isfinite(server.theta).all()):
                break
            models[index] = server.theta
    return models


def replay_jobs(run: Run, jobs: Sequence[Job], workers: int) -> list[Models]:
    """Models of every job, in its order; `run.context.progress` is called after each of them."""
    return share_jobs(run, _play_job, jobs, workers=workers, progress=run.context.progress)


def bounded_losses(run: Run, replays: Sequence[Models], rounds: Sequence[Sequence[int]], split: str) -> np.ndarray:
    """Mean loss of each replay's models after its rounds, at most ten times that of the constant answer; shape (n,).

    It is that bound where a model is missing, so that models that diverged have the largest loss, which stays finite.
    """
    constant = chance(run)
    most = BEYOND * constant if isfinite(constant) else float("nan")
    losses = np.full(len(replays), most)
    measured = [row for row, indices in enumerate(rounds) if all(index in replays[row] for index in indices)]
    if not measured:
        return losses
    models = torch.stack([replays[row][index] for row in measured for index in rounds[row]])
    values = evaluate_models(run, models, split)["loss"].double()
    values = values.nan_to_num(most).clamp(max=most) if isfinite(most) else values
    for row, block in zip(measured, values.split([len(rounds[row]) for row in measured]), strict=True):
        losses[row] = float(block.mean())
    return losses


def _play_job(run: Run, job: Job) -> Models:
    return play_again(run, *job)


NEAR = 1e-5
"""Largest difference of a model that was aggregated again from the recorded one, over the largest entry."""


def remembers(run: Run) -> bool:
    """Whether server or clients have a state besides the model."""
    server = Server.from_stored(run.stored_state())
    return bool(server.state or server.clients)


@lru_cache(maxsize=8)
def server_before(run: Run, first: int) -> tuple[Server, bool]:
    """The server before round `first`, and whether its state and that of its clients are as they were.

    Before round 0 it is fresh, after the last round it is stored. In between, the record holds the model, what clients
    receive beside it, and their state. The rest of the server's state, such as the moments of FedAdam, follows from
    aggregating the recorded clients of all earlier rounds again, without training; it counts only if every global
    model is as recorded. If that is impossible (clients were not kept, or the server used what is not recorded) the
    state is new.

    Raises:
        LookupError: If the round kept no start.
    """
    setting = run.setting
    if first == 0:
        return Server.fresh(setting), True
    if first == run.committed:
        return Server.from_stored(run.stored_state()), True
    record, method = run.round(first), run.method
    anew = replace(Server.fresh(setting), theta=record.kept("start"), buffers=record.start_buffers, next=first)
    anew = replace(anew, past=past_starts(run, first, run.experiment.clients.late))
    anew = replace(anew, state=method.initial(setting, anew.theta))
    last = Server.from_stored(run.stored_state())
    if not last.state and not last.clients:
        return anew, True
    state = record.sent if set(record.sent) >= set(last.state) else _aggregated(run, setting, first)
    try:
        clients = _carried(run, first)
    except LookupError:
        return anew, False
    if state is None:
        return replace(anew, clients=clients), False
    return replace(anew, theta=_theta(run, first), state=state, clients=clients), True


def _theta(run: Run, first: int) -> torch.Tensor:
    """The server's own model before a round; the model that clients received may be ahead of it."""
    before = run.round(first - 1)
    return run.round(first).kept("start") if before.end is None else before.end


def _carried(run: Run, first: int) -> dict[int, State]:
    if not (run.method.stateful or run.experiment.local.persist_optimizer):
        return {}
    clients = ((client, client_state(run, first, client)) for client in range(run.experiment.clients.number))
    return {client: state for client, state in clients if state}


def _aggregated(run: Run, setting: Setting, first: int) -> State | None:
    """The server's state before a round, from the recorded clients of all rounds before; None where that fails."""
    state = run.method.initial(setting, setting.task.theta)
    for index in range(first):
        if index not in run.rounds():
            return None
        record = run.round(index)
        if record.clients is None or record.end is None or record.start is None:
            return None
        theta = setting.task.theta if index == 0 else _theta(run, index)
        try:
            outcome = run.method.aggregate(setting, state, recorded_cohort(run, record, theta))
        except KeyError:  # of a client report, which is not recorded
            return None
        if not torch.allclose(outcome.end, record.end, rtol=0, atol=NEAR * float(record.end.abs().max())):
            return None
        state = outcome.state
    return state
