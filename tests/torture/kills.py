"""Processes killed by SIGKILL at random moments of training, recording and analysis; then resumed and compared."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
from torture.compared import difference
from torture.outcome import LOST, SURVIVED, Budget, Outcome
from torture.settings import DIGITS

from drift.read import validated
from drift.run import Run
from drift.simulate import simulate
from drift.terrain import global_line
from drift.verify import verify
from landscape import results

TRAIN = """
import json, sys
from drift.read import validated
from drift.simulate import simulate
print("begun", flush=True)
simulate(validated(json.loads(sys.argv[1])), runs=sys.argv[2])
"""
RECORD = """
import sys
from pathlib import Path
from drift import store
from drift.run import Run
source = Run(Path(sys.argv[1]))
folder, keep = Path(sys.argv[2]), source.experiment.keep.model_copy(update={"compress": True})
state = source.state()[0]
folder.mkdir(parents=True, exist_ok=True)
print("begun", flush=True)
with store.locked(folder):
    begun = store.read_state(folder)[1] if (folder / "state.safetensors").exists() else 0
    for index in range(begun, len(source.rounds())):
        store.write_round(folder, source.round(index), keep, len(source.rounds()))
        store.write_tensors(folder / "state.safetensors", state, {"next": index + 1})
"""
ANALYSE = """
import sys
from pathlib import Path
from landscape import surface
surface.CHECKPOINT_SECONDS = 0.0
from drift.run import Run
from drift.terrain import global_line
run = Run(Path(sys.argv[1]))
run.task
print("begun", flush=True)
run.cached(global_line, points=401)
"""


def kills(budget: Budget) -> list[Outcome]:
    """A third of the kills each in training, in recording and in analysis, as far as the time goes."""
    source = np.random.default_rng(budget.seed)
    found: list[Outcome] = []
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
    while len(found) < count and time.monotonic() < stop:
        killed = _killed(TRAIN, [json.dumps(DIGITS), str(runs)], source)
        run = Run(runs / whole.name)
        problem = "; ".join(map(str, verify(run.folder))) if (run.folder / "run.json").exists() else ""
        if killed and not problem and len(found) % 4 != 3:  # killed up to four times before it may get through
            found.append(Outcome("kill -9 in training", SURVIVED))
            continue
        again = simulate(validated(DIGITS), runs=runs)
        problem = problem or difference(again, whole)
        found.append(Outcome("kill -9 in training", LOST if problem else SURVIVED, problem))
        shutil.rmtree(runs)
    if runs.exists():
        problem = difference(simulate(validated(DIGITS), runs=runs), whole)
        found[-1] = Outcome("kill -9 in training", LOST if problem else SURVIVED, problem)
    return found


def _recording(whole: Run, place: Path, source: np.random.Generator, count: int, stop: float) -> list[Outcome]:
    """Written without training in between, so that nearly every kill falls into a write."""
    found: list[Outcome] = []
    target = place / "recording"
    while len(found) < count and time.monotonic() < stop:
        _killed(RECORD, [str(whole.folder), str(target)], source, most=0.12)
        shutil.copy(whole.folder / "run.json", target / "run.json")
        problem = "; ".join(map(str, verify(target)))
        done = Run(target).committed
        if not problem and done == len(whole.rounds()):
            problem = difference(Run(target), whole)
        found.append(Outcome("kill -9 in recording", LOST if problem else SURVIVED, problem))
        if done == len(whole.rounds()) or problem:
            shutil.rmtree(target)
    return found


def _analysis(whole: Run, place: Path, source: np.random.Generator, count: int, stop: float) -> list[Outcome]:
    found: list[Outcome] = []
    right = whole.cached(global_line, points=401)
    (path,) = (whole.folder / "results").glob("*.zarr")
    expected = results._values_digest(right)
    while len(found) < count and time.monotonic() < stop:
        folder = place / "analysis" / whole.name
        if not folder.exists():
            shutil.copytree(whole.folder, folder, ignore=shutil.ignore_patterns("results"))
        killed = _killed(ANALYSE, [str(folder)], source, most=0.8)
        problem = "; ".join(map(str, verify(folder)))
        if not problem and (not killed or len(found) % 3 == 2):
            again = Run(folder).cached(global_line, points=401)
            problem = "" if results._values_digest(again) == expected else "the result differs"
            shutil.rmtree(folder)
        found.append(Outcome("kill -9 in analysis", LOST if problem else SURVIVED, problem))
    shutil.rmtree(path)
    return found


def _killed(script: str, arguments: list[str], source: np.random.Generator, *, most: float = 1.0) -> bool:
    """Run a script until a random moment after its first word; whether it was killed before its end."""
    child = subprocess.Popen(
        [sys.executable, "-c", script, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert child.stdout is not None
    child.stdout.readline()
    time.sleep(float(source.uniform(0, most)))
    running = child.poll() is None
    child.send_signal(signal.SIGKILL)
    child.communicate()
    return running
