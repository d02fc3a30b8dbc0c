"""Whole files put in the place of others: of another run, of the same run, of the same settings by other versions."""

from __future__ import annotations

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

from torture.compared import difference
from torture.outcome import LOST, SURVIVED, Budget, Outcome
from torture.readers import right, wrong
from torture.settings import DIGITS

from drift.analyses.landscapes.planes import global_line
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.variance import drift_variances
from drift.config.experiment import Experiment
from drift.config.load import read, validated
from drift.runs.run import Run
from drift.simulation import description
from drift.simulation import simulate as loop
from drift.simulation.repair import repair
from drift.simulation.verify import verify
from drift.store import files, round_headers, server_state

OTHERS = {"seed": ["seed=6"], "rate": ["local.lr=0.06"], "data": ["task.train_samples=190"], "versions": []}
"""Runs that files are exchanged with."""


def exchanges(budget: Budget) -> list[Outcome]:
    """Each file of each other run in the place of the own one, then the own files and results among themselves."""
    found: list[Outcome] = []
    with tempfile.TemporaryDirectory() as place, patch.object(server_state, "ONE_FILE", 0):
        small = read(validated(DIGITS), "rounds=4", "local.epochs=1", "method=scaffold", "local.momentum=0.0")
        own = _trained(small, Path(place) / "own", "")
        results = _results(own)
        expected = right(own.folder)
        for name, changes in list(OTHERS.items())[:: 1 if budget.places > 4 else 3]:
            other = _trained(read(small, *changes), Path(place) / name, name)
            for target, source in _between(own, other):
                if not budget.over:
                    found.append(_tried(own, expected, source, target, f"{_kind(target)} of another {name}"))
        for target, source, what in _within(own, results):
            if not budget.over:
                found.append(_tried(own, expected, source, target, what))
    return found


def _trained(experiment: Experiment, runs: Path, name: str) -> Run:
    if name != "versions":
        return loop.simulate(experiment, runs=runs)
    other = description.versions() | {"torch": "1.0"}
    with patch.object(description, "versions", lambda: other):
        return loop.simulate(experiment, runs=runs)


def _results(run: Run) -> list[tuple[Path, Path]]:
    """Pairs of results that differ in points, and in the analysis."""
    paths, asked = list[Path](), [(global_line, {"points": 3}), (global_line, {"points": 5})]
    for analysis, arguments in [*asked, (coherence, {}), (drift_variances, {})]:
        before = set((run.folder / "results").glob("*.nc"))
        run.cached(analysis, **arguments)
        paths += sorted(set((run.folder / "results").glob("*.nc")) - before)
    return [(paths[0], paths[1]), (paths[2], paths[3]), (paths[3], paths[2])]


def _between(own: Run, other: Run) -> Iterator[tuple[str, Path]]:
    clients = zip(server_state.client_files(own.folder), server_state.client_files(other.folder), strict=False)
    names = ["run.json", files.STATE, "rounds", *(f"rounds/{index:06d}.safetensors" for index in own.rounds())]
    yield from ((name, other.folder / name) for name in names)
    yield from ((f"clients/{mine.name}", theirs) for mine, theirs in list(clients)[:2])
    yield "clients/000002-000777.safetensors", server_state.client_files(other.folder)[0]


def _within(own: Run, results: list[tuple[Path, Path]]) -> Iterator[tuple[str, Path, str]]:
    numbers = round_headers.round_numbers(own.folder)
    for target, source in [(a, b) for a in numbers for b in numbers if a != b]:
        yield f"rounds/{target:06d}.safetensors", files.round_path(own.folder, source), "another round of the run"
    clients = server_state.client_files(own.folder)
    yield f"clients/{clients[0].name}", clients[1], "another client of the run"
    for target, source in results:
        yield f"results/{target.name}", source, "another result of the run"


def _tried(own: Run, expected: dict[str, str], source: Path, target: str, what: str) -> Outcome:
    """What becomes of a copy of the run with one file exchanged."""
    with tempfile.TemporaryDirectory() as place:
        folder = Path(shutil.copytree(own.folder, Path(place) / own.name))
        path = folder / target
        if source.is_dir():
            shutil.rmtree(path)
            shutil.copytree(source, path)
        else:
            shutil.copyfile(source, path)
        fault = f"exchange: {what}"
        named = [problem.file for problem in verify(folder)]
        if target not in named and not (target == "rounds" and named):
            return Outcome(fault, LOST, f"verify named {named}, not {target}")
        if told := wrong(folder, expected):
            return Outcome(fault, LOST, f"{target}: {told}")
        return Outcome(fault, *_repaired(own, expected, folder, path))


def _repaired(own: Run, expected: dict[str, str], folder: Path, path: Path) -> tuple[str, str]:
    """The run as it was, or what belongs elsewhere left alone."""
    content = path.read_bytes() if path.is_file() else b""
    entries = repair(folder)
    if told := wrong(folder, expected):
        return LOST, f"after repair: {told}"
    if not all(entry.done for entry in entries):
        kept = path.is_dir() or content in (path.read_bytes(), *(p.read_bytes() for p in path.parent.glob("*.aside*")))
        return (SURVIVED if kept else LOST), "named, not repaired"
    problem = "; ".join(map(str, verify(folder))) or difference(Run(folder), own)
    return (LOST if problem else SURVIVED), problem


def _kind(target: str) -> str:
    return target.split("/")[0]
