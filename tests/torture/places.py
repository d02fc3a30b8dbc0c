"""Two processes on one run, clocks that jump, folders and caches that cannot be written, memory that ends."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torture.compared import difference
from torture.outcome import LOST, SURVIVED, Budget, Outcome
from torture.result_digest import values_digest
from torture.settings import DIGITS, environment

from drift.analyses.landscapes.planes import global_line
from drift.config.load import read, validated
from drift.runs.run import Run
from drift.simulation.run_index import index
from drift.simulation.simulate import simulate
from drift.simulation.verify import verify

TRAIN = """
import json, sys
from drift.config.load import validated
from drift.simulation.simulate import simulate
simulate(validated(json.loads(sys.argv[1])), runs=sys.argv[2])
"""
ANALYSE = """
import sys
from pathlib import Path
from drift.runs.run import Run
from drift.analyses.landscapes.planes import global_line
Run(Path(sys.argv[1])).cached(global_line, points=101)
"""
LIMITED = """
import resource, sys
import numpy as np, torch
from landscape.sweep.evaluate import evaluate
from landscape.out_of_memory import OutOfMemory
from landscape.model.samples import Samples
from landscape.model.task import Task
torch.set_num_threads(1)
width = int(sys.argv[1])
model = torch.nn.Sequential(torch.nn.Linear(64, width), torch.nn.Linear(width, 10))
task = Task(model, {"test": Samples(torch.randn(40, 64), torch.randint(10, (40,)))})
basis = torch.stack([task.theta, task.theta + 0.01])
rows = np.stack([np.linspace(1, 0, 64), np.linspace(0, 1, 64)], axis=1)
evaluate(task, basis, rows[:2])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + int(float(sys.argv[2]) * basis[0].nbytes),) * 2)
try:
    found = evaluate(task, basis, rows)["loss"]
except OutOfMemory as error:
    print("told:", error)
else:
    print("done", found.numpy().tobytes().hex())
"""


def places(budget: Budget) -> list[Outcome]:
    """Everything that is not a kill, a damaged file, a full disk or a client."""
    found: list[Outcome] = []
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder)
        short = read(validated(DIGITS), "rounds=4")
        whole = simulate(short, runs=place / "whole")
        for number, step in enumerate((_two_trainings, _two_analyses, _clocks, _folders, _caches)):
            if not budget.over:
                own = place / str(number)
                own.mkdir()
                found += step(short, whole, own, budget)
        found += _memory(budget)
    return found


def _two_trainings(short: Any, whole: Run, place: Path, budget: Budget) -> list[Outcome]:
    """Two processes train one run: one is refused, or finds it done; the bits are those of one alone."""
    found = []
    for _ in range(max(1, budget.places // 10)):
        arguments = [sys.executable, "-c", TRAIN, json.dumps({**DIGITS, "rounds": 4}), str(place / "runs")]
        both = [subprocess.Popen(arguments, stdout=-3, stderr=-1, env=environment()) for _ in range(2)]
        told = [child.communicate()[1].decode() for child in both]
        problem = "" if any(child.returncode == 0 for child in both) else f"neither came through: {told}"
        for child, text in zip(both, told, strict=True):
            if child.returncode and "another process" not in text:
                problem = problem or text[-300:]
        problem = problem or difference(Run(place / "runs" / whole.name), whole)
        found.append(Outcome("two processes train one run", LOST if problem else SURVIVED, problem))
        shutil.rmtree(place / "runs")
    return found


def _two_analyses(short: Any, whole: Run, place: Path, budget: Budget) -> list[Outcome]:
    """Two processes compute one result: the second waits and reads it."""
    shutil.copytree(whole.folder, place / whole.name)
    both = [
        subprocess.Popen([sys.executable, "-c", ANALYSE, str(place / whole.name)], stderr=-1, env=environment())
        for _ in range(2)
    ]
    told = [child.communicate()[1].decode() for child in both]
    problem = "" if all(child.returncode == 0 for child in both) else str(told)[-300:]
    problem = problem or "; ".join(map(str, verify(place / whole.name)))
    same = values_digest(Run(place / whole.name).cached(global_line, points=101))
    problem = problem or ("" if same == values_digest(global_line(whole, points=101)) else "other values")
    return [Outcome("two processes compute one result", LOST if problem else SURVIVED, problem)]


def _clocks(short: Any, whole: Run, place: Path, budget: Budget) -> list[Outcome]:
    """Clocks that jump while training, and files from the past and the future."""
    source = np.random.default_rng(budget.seed)
    real, real_ns = time.time, time.time_ns
    time.time = lambda: real() + float(source.uniform(-1e9, 1e9))
    time.time_ns = lambda: real_ns() + int(source.integers(-(10**18), 10**18))
    try:
        run = simulate(short, runs=place)
        run.cached(global_line, points=5)
        problem = difference(run, whole) or "; ".join(map(str, verify(run.folder)))
    finally:
        time.time, time.time_ns = real, real_ns
    found = [Outcome("clock jumps while training", LOST if problem else SURVIVED, problem)]
    right = [{key: row[key] for key in row if key != "updated"} for row in index(place)]
    for moment in (0, 1, 4_000_000_000, 30_000_000_000):
        for path in run.folder.rglob("*"):
            os.utime(path, (moment, moment))
        rows = [{key: row[key] for key in row if key != "updated"} for row in index(place)]
        problem = difference(simulate(short, runs=place), whole) or ("" if rows == right else f"rows {rows}")
        found.append(Outcome("files of another time", LOST if problem else SURVIVED, problem))
    return found


def _folders(short: Any, whole: Run, place: Path, budget: Budget) -> list[Outcome]:
    """Folders that cannot be made or written: one line that names them, and what is there can be read."""
    found = []
    (place / "file").write_text("mine")
    found.append(_refused("runs below a file", lambda: simulate(short, runs=place / "file" / "runs"), "file"))
    shutil.copytree(whole.folder, place / "run" / whole.name)
    run = Run(place / "run" / whole.name)
    (run.folder / "results").write_text("mine")
    right = Run(whole.folder).cached(global_line, points=5)
    same = run.cached(global_line, points=5).equals(right) and (run.folder / "results").read_text() == "mine"
    found.append(Outcome("results is a file", SURVIVED if same else LOST, "" if same else "another result"))
    problem = difference(run, whole)
    found.append(Outcome("results is a file: reading", LOST if problem else SURVIVED, problem))
    if os.geteuid() != 0:  # root may write anywhere
        (run.folder / "results").unlink()
        for path in [run.folder, run.folder / "rounds"]:
            path.chmod(0o555)
        same = run.cached(global_line, points=5).equals(right)
        found.append(Outcome("read-only run: analysis", SURVIVED if same else LOST, "" if same else "another result"))
        begun = read(short, "seed=6")
        (place / "run").chmod(0o555)
        found.append(_refused("read-only runs: training", lambda: simulate(begun, runs=place / "run"), "ermission"))
        problem = difference(run, whole) or ("" if index(place / "run") else "no rows")
        found.append(Outcome("read-only run: reading", LOST if problem else SURVIVED, problem))
        for path in [place / "run", run.folder, run.folder / "rounds"]:
            path.chmod(0o755)
    return found


def _refused(fault: str, work: Any, word: str) -> Outcome:
    try:
        work()
    except OSError as error:
        named = word in str(error)
        return Outcome(fault, SURVIVED if named else LOST, str(error))
    except Exception as error:  # noqa: BLE001 - whatever else comes out is a finding
        return Outcome(fault, LOST, f"{type(error).__name__}: {error}")
    return Outcome(fault, LOST, "was not refused")


def _caches(short: Any, whole: Run, place: Path, budget: Budget) -> list[Outcome]:
    """Caches that cannot be written cost time and nothing else."""
    from landscape.datasets import _cache
    from landscape.model.samples import Samples

    found = []
    (place / "file").write_text("mine")
    images = Samples(torch.zeros(4, 2), torch.zeros(4, dtype=torch.int64))
    code = (
        "import warnings, torch; from pathlib import Path; from landscape.datasets import _cache;"
        "from landscape.model.samples import Samples;"
        "s = Samples(torch.zeros(4, 2), torch.zeros(4, dtype=torch.int64));"
        f"print(_cache.write(Path({str(place / 'file' / 'cache' / 'x.safetensors')!r}), _cache.Content(s, s)))"
    )
    child = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, env=environment())
    told = child.returncode == 0 and _cache.CachedContent(images, images).fingerprint in child.stdout
    named = "FEDSCAPE_CACHE" in child.stderr
    found.append(Outcome("cache of images below a file", SURVIVED if told and named else LOST, child.stderr[-300:]))
    shutil.copytree(whole.folder, place / "runs" / whole.name)
    return found


def _memory(budget: Budget) -> list[Outcome]:
    """An address space with room for ever fewer models: chunks shrink with the same bits, or one line is told."""
    found, right = [], ""
    width = 20_000  # 1.5 million parameters, 6 MB a model
    rooms = (200.0, 40.0, 12.0, 6.0, 3.0, 0.5) if budget.places > 4 else (200.0, 3.0)
    for room in rooms:
        if budget.over:
            break
        child = subprocess.run(
            [sys.executable, "-c", "import torch; torch.manual_seed(0)\n" + LIMITED, str(width), str(room)],
            capture_output=True,
            text=True,
            env={**environment(), "MALLOC_ARENA_MAX": "1"},
        )
        said = child.stdout.strip()
        right = right or said
        fine = (said == right and said.startswith("done")) or ("lower" in said and said.startswith("told:"))
        found.append(Outcome(f"room for {room:g} models", SURVIVED if fine else LOST, said[:90] + child.stderr[-300:]))
    return found
