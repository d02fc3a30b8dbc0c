"""Processes killed by SIGKILL at random moments of training, recording and analysis; then resumed and compared."""

from __future__ import annotations

import importlib
import shutil
import signal
import tempfile
import time
from collections.abc import Callable
from multiprocessing.process import BaseProcess
from multiprocessing.synchronize import Event as Begun
from pathlib import Path

import numpy as np
import torch
from torture.compared import difference
from torture.outcome import LOST, SURVIVED, Budget, Outcome
from torture.result_digest import values_digest
from torture.settings import DIGITS
from warm import PROCESSES, Warm, warm  # so that kills fall into the work and not into imports

from drift.analyses.landscapes.planes import global_line
from drift.config.load import validated
from drift.runs.run import Run
from drift.simulation.recompute import server_after
from drift.simulation.simulate import simulate
from drift.simulation.verify import verify
from drift.store import files, locks
from drift.store.links import origin

POINTS = 201


def train(begun: Begun, runs: Path) -> None:
    """The whole experiment."""
    torch.set_num_threads(1)
    begun.set()
    simulate(validated(DIGITS), runs=runs)


def record(begun: Begun, source: Path, target: Path) -> None:
    """The rounds of a run written anew, packed, without training in between: nearly every kill falls into a write."""
    run = Run(source)
    keep = run.experiment.keep.model_copy(update={"compress": True})
    rounds = [run.round(index) for index in run.rounds()]
    states = [server_after(run, record.index, run.rounds()).tensors() for record in rounds]
    begun.set()
    with locks.locked(target):
        done = files.read_state(target)[1] if (target / "state.safetensors").exists() else 0
        for index in range(done, len(rounds)):
            before = files.link(rounds[index - 1]) if index else ""
            files.write_round(target, rounds[index], keep, len(rounds), origin(run.identity, before))
            files.write_state(target, states[index], index + 1, origin(run.identity, files.link(rounds[index])))


def analyse(begun: Begun, folder: Path) -> None:
    """A line of many points, kept after every chunk."""
    torch.set_num_threads(1)
    importlib.import_module("landscape.surfaces.surface").CHECKPOINT_SECONDS = 0.0  # type: ignore[attr-defined]
    run = Run(folder)
    _ = run.task
    begun.set()
    run.cached(global_line, points=POINTS)


def kills(budget: Budget) -> list[Outcome]:
    """A third of the kills each in training, in recording and in analysis, as far as the time goes."""
    source = np.random.default_rng(budget.seed)
    found: list[Outcome] = []
    warm()
    with tempfile.TemporaryDirectory() as place:
        whole = simulate(validated(DIGITS), runs=Path(place) / "whole")
        for number, kind in enumerate((_training, _recording, _analysis)):
            share = (budget.kills + 2 - number) // 3
            stop = time.monotonic() + (budget.until - time.monotonic()) / (3 - number)
            found += kind(whole, Path(place), source, share, stop)
    return found


def _training(whole: Run, place: Path, source: np.random.Generator, count: int, stop: float) -> list[Outcome]:
    found: list[Outcome] = []
    runs = place / "training"
    length = _length(train, place / "timed")
    while len(found) < count and time.monotonic() < stop:
        stopped = killed(source.uniform(0, length), train, runs)
        folder = runs / whole.name
        begun = any(folder.glob("rounds/*.safetensors"))  # before, there is nothing to lose, as verify says
        problem = "; ".join(map(str, verify(folder))) if begun else ""
        if problem or not stopped or len(found) % 4 == 3 or len(found) == count - 1:
            problem = problem or difference(simulate(validated(DIGITS), runs=runs), whole)
            shutil.rmtree(runs)
        if stopped or problem:
            found.append(Outcome("kill -9 in training", LOST if problem else SURVIVED, problem))
    return found


def _recording(whole: Run, place: Path, source: np.random.Generator, count: int, stop: float) -> list[Outcome]:
    found: list[Outcome] = []
    target = place / "recording"
    length = _length(record, whole.folder, place / "timed")
    while len(found) < count and time.monotonic() < stop:
        target.mkdir(exist_ok=True)
        shutil.copy(whole.folder / "run.json", target / "run.json")
        stopped = killed(source.uniform(0, length / 2), record, whole.folder, target)
        problem = "; ".join(map(str, verify(target))) if any(target.glob("rounds/*.safetensors")) else ""
        done = Run(target).committed
        if not problem and (done == len(whole.rounds()) or len(found) % 4 == 3):
            record(PROCESSES.Event(), whole.folder, target)
            problem = difference(Run(target), whole)
            done = len(whole.rounds())
        if stopped or problem:
            found.append(Outcome("kill -9 in recording", LOST if problem else SURVIVED, problem))
        if done == len(whole.rounds()) or problem:
            shutil.rmtree(target)
    return found


def _analysis(whole: Run, place: Path, source: np.random.Generator, count: int, stop: float) -> list[Outcome]:
    found: list[Outcome] = []
    expected = values_digest(whole.cached(global_line, points=POINTS))
    folder = place / "analysis" / whole.name

    def fresh() -> None:
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(whole.folder, folder, ignore=shutil.ignore_patterns("results"))

    fresh()
    length = _length(analyse, folder)
    fresh()
    while len(found) < count and time.monotonic() < stop:
        stopped = killed(source.uniform(0, length), analyse, folder)
        problem = "; ".join(map(str, verify(folder)))
        if problem or not stopped or len(found) % 3 == 2 or len(found) == count - 1:
            if not problem:
                again = values_digest(Run(folder).cached(global_line, points=POINTS))
                problem = "" if again == expected else "the result differs"
            fresh()
        if stopped or problem:
            found.append(Outcome("kill -9 in analysis", LOST if problem else SURVIVED, problem))
    return found


def killed(moment: float, work: Callable[..., None], *given: object) -> bool:
    """Have a process work until a moment in seconds after it has begun; whether it was killed before its end."""
    child = begun(work, *given)
    child.join(moment)
    alive = child.is_alive()
    child.kill()
    child.join()
    return alive and child.exitcode == -signal.SIGKILL


def _length(work: Callable[..., None], *given: object) -> float:
    """Seconds that undisturbed work takes, once begun."""
    child = begun(work, *given)
    first = time.monotonic()
    child.join()
    return time.monotonic() - first


def begun(work: Callable[..., None], *given: object) -> BaseProcess:
    """A process that has begun its work, or ended before it could."""
    event = PROCESSES.Event()
    child: BaseProcess = Warm.Process(target=work, args=(event, *given))
    child.start()
    while not event.wait(0.05) and child.is_alive():
        pass
    return child
