"""Every kind of file flipped or cut in every kind of place: noticed and named, never used; then repaired."""

from __future__ import annotations

import json
import re
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import patch

import numpy as np
import torch
from torture import readers
from torture.outcome import HARMLESS, LOST, SURVIVED, Budget, Outcome
from torture.result_digest import digest
from torture.settings import DIGITS

from drift.analyses.landscapes.planes import global_line
from drift.config.load import read, validated
from drift.runs.run import Run
from drift.simulation.repair import repair
from drift.simulation.run_index import _table, index
from drift.simulation.simulate import simulate
from drift.simulation.verify import verify
from drift.store import files, server_state
from landscape.datasets import _cache
from landscape.model.samples import Samples
from landscape.results import netcdf_files

Change = tuple[str, bytes]
"""(what was done, the new content)."""


def damage(budget: Budget) -> list[Outcome]:
    """Each file kind, packed rounds included; a copy of the run is damaged, looked at and repaired each time."""
    source = np.random.default_rng(budget.seed)
    found: list[Outcome] = []
    with tempfile.TemporaryDirectory() as place:
        small = read(validated(DIGITS), "rounds=3", "local.epochs=1", "keep.compress=true")
        packed = simulate(small, runs=Path(place) / "packed")
        plain = simulate(read(small, "keep.compress=false", f"init={packed.folder}"), runs=Path(place) / "plain")
        plain.cached(global_line, points=5)
        with patch.object(server_state, "ONE_FILE", 0):  # as if the states of clients were large
            stateful = simulate(read(small, "method=scaffold", "local.momentum=0.0"), runs=Path(place) / "stateful")
        for run, names in (
            (packed, ["rounds/000001.safetensors"]),
            (plain, ["rounds/000001.safetensors", "state.safetensors", "init.safetensors", "run.json"]),
            (stateful, ["state.safetensors", f"clients/{server_state.client_files(stateful.folder)[0].name}"]),
        ):
            for name in names:
                found += _of_file(run, name, f"{name.split('/')[0]} of {run.folder.parent.name} run", source, budget)
        (stored,) = (plain.folder / "results").glob("global_line-*.nc")
        found += _of_result(plain, stored, source, budget)
        found += _of_index(plain, source, budget)
        found += _of_cache(Path(place) / "cache.safetensors", source, budget)
    return found


def _of_file(run: Run, name: str, kind: str, source: np.random.Generator, budget: Budget) -> Iterator[Outcome]:
    path = run.folder / name
    whole = path.read_bytes()
    right, expected = {found: _content(found) for found in _readable(run.folder)}, readers.right(run.folder)
    for what, content in _changes(whole, source, budget.places, name.endswith(".safetensors")):
        if budget.over:
            return
        _put(path, content)
        problems = [problem.file for problem in verify(run.folder)]
        if told := readers.wrong(run.folder, expected):
            yield Outcome(f"{kind}: {what}", LOST, told)
        elif problems == [name]:
            yield _repaired(run, path, whole, f"{kind}: {what}")
        elif not problems and all(_content(found) == content for found, content in right.items()):
            yield Outcome(f"{kind}: {what}", HARMLESS)
        else:
            yield Outcome(f"{kind}: {what}", LOST, f"verify named {problems}")
        _put(path, whole)


def _repaired(run: Run, path: Path, whole: bytes, fault: str) -> Outcome:
    """What `repair` makes of it: the same content again, or an honest no and nothing touched."""
    others = {name: _content(name) for name in _readable(run.folder) if name != path}
    damaged = path.read_bytes()
    done = [entry for entry in repair(run.folder) if entry.done]
    touched = [name.name for name, content in others.items() if _content(name) != content]
    if touched:
        return Outcome(fault, LOST, f"repair changed {touched}")
    if not done:
        unchanged = path.read_bytes() == damaged
        return Outcome(fault, SURVIVED if unchanged else LOST, "named, not repairable" if unchanged else "was changed")
    now = _timeless(path)
    _put(path, whole)
    return Outcome(fault, SURVIVED if now == _timeless(path) else LOST, "repaired")


def _of_result(run: Run, stored: Path, source: np.random.Generator, budget: Budget) -> Iterator[Outcome]:
    whole, right = stored.read_bytes(), digest(netcdf_files.load(stored))
    name = str(stored.relative_to(run.folder))
    for what, content in _changes(whole, source, max(1, budget.places // 4), tensors=False):
        if budget.over:
            return
        stored.write_bytes(content)
        problems = [problem.file for problem in verify(run.folder)]
        fault = f"result: {what}"
        if problems == [name]:
            found = repair(run.folder)
            gone = not stored.exists() and [entry.file for entry in found if entry.done] == [name]
            yield Outcome(fault, SURVIVED if gone else LOST, "removed" if gone else str(found))
        elif not problems and digest(netcdf_files.load(stored)) == right:
            yield Outcome(fault, HARMLESS)
        else:
            yield Outcome(fault, LOST, f"verify named {problems}")
        stored.write_bytes(whole)


def _of_index(run: Run, source: np.random.Generator, budget: Budget) -> Iterator[Outcome]:
    """The table of runs is a cache: whatever happens to it, the rows are those of the folders."""
    runs = run.folder.parent
    right = index(runs)
    path = _table(runs)
    whole = path.read_bytes()
    for place in source.integers(0, len(whole), 4 * budget.places).tolist():
        path.write_bytes(_flipped(whole, int(place), 1))
        rows = index(runs)
        yield Outcome("table of runs: flipped", SURVIVED if rows == right else LOST, "" if rows == right else str(rows))
    for share in (0.0, 0.3, 0.9):
        path.write_bytes(whole[: int(share * len(whole))])
        yield Outcome("table of runs: cut", SURVIVED if index(runs) == right else LOST)


def _of_cache(path: Path, source: np.random.Generator, budget: Budget) -> Iterator[Outcome]:
    """Decoded images: a damaged file is reported by a warning and made anew."""
    images = Samples(torch.arange(24.0).reshape(6, 4), torch.arange(6) % 3)
    right = _cache.CachedContent(images, images[torch.tensor([4, 1])], classes=("ant", "bee", "cow"))
    _cache.write(path, right)
    whole = path.read_bytes()
    for what, content in _changes(whole, source, budget.places, tensors=True):
        _put(path, content)
        with warnings.catch_warnings(record=True) as told:
            warnings.simplefilter("always")
            found = _cache.read(path)
        if found is None:
            named = any(str(path) in str(warning.message) for warning in told)
            yield Outcome(f"cache of images: {what}", SURVIVED if named else LOST, "" if named else "no warning")
        else:
            same = found[0].fingerprint == right.fingerprint and found[0].classes == right.classes
            yield Outcome(f"cache of images: {what}", HARMLESS if same else LOST, "" if same else str(found[0].classes))


def _changes(whole: bytes, source: np.random.Generator, count: int, tensors: bool) -> Iterator[Change]:
    """Flips of one bit and of one byte in each region of a file, and cuts."""
    for region, low, high in _regions(whole, tensors):
        edges = [low, high - 1] if count > 1 else []
        for place in sorted({*source.integers(low, high, count).tolist(), *edges}):
            mask = int(source.choice([1 << int(source.integers(0, 8)), int(source.integers(1, 256))]))
            yield f"{region} flipped", _flipped(whole, place, mask)
    for length in {0, 1, 7, len(whole) // 2, len(whole) - 1}:
        if length < len(whole):
            yield "cut", whole[:length]
    yield "other bytes appended", whole + b"\0"
    yield "all zero", bytes(len(whole))


def _regions(whole: bytes, tensors: bool) -> list[tuple[str, int, int]]:
    if not tensors:
        return [("bytes", 0, len(whole))] if whole else []
    end = 8 + int.from_bytes(whole[:8], "little")
    text = whole[8:end]
    found = [("length of header", 0, 8), ("header", 8, end), ("data", end, len(whole))]
    for word in (b"digest", b"format", b"about", b"packed", b"data_offsets", b"shape", b"dtype"):
        for match in list(re.finditer(re.escape(word), text))[:2]:
            found.append((f"header, {word.decode()}", 8 + match.start(), min(end, 8 + match.end() + 24)))
    return found


def _flipped(whole: bytes, place: int, mask: int) -> bytes:
    return whole[:place] + bytes([whole[place] ^ mask]) + whole[place + 1 :]


def _put(path: Path, content: bytes) -> None:
    """Replace a file; what was read of the old one lies in its memory map."""
    fresh = path.with_name(f".{path.name}.0.part")
    fresh.write_bytes(content)
    fresh.replace(path)


def _readable(folder: Path) -> list[Path]:
    return [path for path in sorted(folder.rglob("*")) if path.suffix in (".safetensors", ".json")]


def _content(path: Path) -> str:
    """What a file means to a reader."""
    if path.suffix == ".json":
        return json.dumps(files.read_json(path), sort_keys=True)
    tensors, about = files.read_tensors(path)
    return files.digest(tensors, json.dumps(about, sort_keys=True))


def _timeless(path: Path) -> str:
    """What a file means, but for the seconds that a round took."""
    tensors, about = files.read_tensors(path)
    return files.digest({name: value for name, value in tensors.items() if name != "metric.seconds"}, json.dumps(about))
