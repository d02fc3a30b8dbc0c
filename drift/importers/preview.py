"""Preview of an import: what a folder of checkpoints contains and lacks, before anything is written."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from drift.importers.checkpoint_files import CheckpointFiles, find_checkpoints
from drift.importers.models import read_sizes
from drift.importers.patterns import Patterns
from drift.importers.programs import ASSUMED, SHIPPED
from drift.record.flat_arrays import FlatArrays, arrays_by_name
from drift.simulation.verify import spans
from landscape.model.foreign_tensors import read_tensors
from landscape.model.unnamed_tensors import are_unnamed


def preview_import(folder: str | Path, patterns: Patterns | None = None) -> dict[str, Any]:
    """Contents of a folder of checkpoints and what is missing, by name; only the first checkpoint is read.

    Raises:
        LookupError: If no file fits a pattern.
        ValueError: If a file leads out of the folder, or the first checkpoint cannot be read.
    """
    folder, patterns = Path(folder), patterns or SHIPPED["fedscape"]
    files = find_checkpoints(folder, patterns)
    cohorts = [len(paths.clients) for paths in files.rounds.values()]
    paths = [path for one_round in files.rounds.values() for path in one_round.paths()]
    first = read_tensors(paths[0])
    flat = FlatArrays.of(first)
    started = files.started()
    program = next((name for name, shipped in SHIPPED.items() if shipped == patterns), "")
    return {
        "patterns": str(patterns),
        **({"assumed": ASSUMED[program]} if program in ASSUMED else {}),
        "files": len(paths),
        "bytes": sum(path.stat().st_size for path in paths),
        "rounds found": spans(list(files.rounds)),
        "rounds of the run": spans(started) if started else "none",
        "clients": len(files.numbers()),
        "clients a round": f"{min(cohorts)} to {max(cohorts)}" if min(cohorts) < max(cohorts) else str(min(cohorts)),
        "first file": paths[0].relative_to(folder).as_posix(),
        "parameters": flat.size,
        "tensors": [f"{name} {list(shape)}" for name, shape in (*flat.parameters, *flat.buffers)],
        "left out": [name for name in arrays_by_name(first) if name not in _entries(flat)],
        "missing": [
            *(["names of the tensors: give the model by --task or --model"] if are_unnamed(first) else []),
            *_missing(folder, files),
        ],
        "not used": [*files.others, *(f"{name}/ (a link; not followed)" for name in files.links)],
    }


def _entries(flat: FlatArrays) -> set[str]:
    return {name for name, _ in (*flat.parameters, *flat.buffers)}


def _missing(folder: Path, files: CheckpointFiles) -> list[str]:
    """What an import lacks, one line per lack."""
    lines = []
    started, usable = set(files.started()), set(files.usable())
    if files.averaged:
        lines.append("global models: means of the clients by size replace them")
    lines += [f"global model of round {index}: the round is left out" for index in files.rounds if index not in usable]
    lines += [f"start of round {index}: it only serves as the start of round {index + 1}" for index in usable - started]
    if not any(paths.clients for paths in files.rounds.values()):
        lines.append("client models: client drift cannot be computed")
    if not read_sizes(folder, files):
        lines.append("sizes.json: all clients count the same")
    return lines
