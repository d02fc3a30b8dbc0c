"""What an import understands of a folder, before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from drift.importers.found import Found, found
from drift.importers.models import read_sizes
from drift.importers.patterns import Patterns
from drift.importers.programs import ASSUMED, SHIPPED
from drift.importers.unnamed import without_names
from drift.record.flat_arrays import FlatArrays, named
from drift.simulation.verify import spans
from drift.store.foreign_tensors import read_tensors


def understood(folder: str | Path, patterns: Patterns | None = None) -> dict[str, Any]:
    """What a folder holds and what is missing, as text and numbers by name; one checkpoint is read.

    Raises:
        LookupError: If no file has a place.
        ValueError: If a file leads out of the folder, or the first checkpoint cannot be read.
    """
    folder, patterns = Path(folder), patterns or SHIPPED["fedscape"]
    files = found(folder, patterns)
    cohorts = [len(one.clients) for one in files.rounds.values()]
    held = [path for one in files.rounds.values() for path in (one.end, one.start, *one.clients.values()) if path]
    first = read_tensors(held[0])
    flat = FlatArrays.of(first)
    known = files.started()
    program = next((name for name, shipped in SHIPPED.items() if shipped == patterns), "")
    return {
        "patterns": str(patterns),
        **({"assumed": ASSUMED[program]} if program in ASSUMED else {}),
        "files": len(held),
        "bytes": sum(path.stat().st_size for path in held),
        "rounds found": spans(list(files.rounds)),
        "rounds of the run": spans(known) if known else "none",
        "clients": len(files.numbers()),
        "clients a round": f"{min(cohorts)} to {max(cohorts)}" if min(cohorts) < max(cohorts) else str(min(cohorts)),
        "first file": held[0].relative_to(folder).as_posix(),
        "parameters": flat.size,
        "tensors": [f"{name} {list(shape)}" for name, shape in (*flat.parameters, *flat.buffers)],
        "left out": [name for name in named(first) if name not in _entries(flat)],
        "missing": [
            *(["names of the tensors: --task or --model tells whose they are"] if without_names(first) else []),
            *_missing(folder, files),
        ],
        "not used": [*files.others, *(f"{name}/ (a link; not followed)" for name in files.links)],
    }


def _entries(flat: FlatArrays) -> set[str]:
    return {name for name, _ in (*flat.parameters, *flat.buffers)}


def _missing(folder: Path, files: Found) -> list[str]:
    """What an import has to do without, one line each."""
    told = []
    known = set(files.started())
    usable = set(files.usable())
    if files.averaged:
        told.append("global models: means of the clients by size stand for them")
    told += [f"global model of round {index}: the round is left out" for index in files.rounds if index not in usable]
    told += [f"start of round {index}: it only serves as the start of round {index + 1}" for index in usable - known]
    if not any(one.clients for one in files.rounds.values()):
        told.append("client models: there is no drift between clients to see")
    if not read_sizes(folder, files):
        told.append("sizes.json: all clients count the same")
    return told
