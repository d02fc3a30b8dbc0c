"""Damaged, missing and foreign rounds of a run's folder."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import torch

from drift.config.experiment import Experiment
from drift.config.method import Method
from drift.runs.run import Run
from drift.store import chain, files, paths, round_headers
from drift.store.round_record import Round


@dataclass(frozen=True)
class Fault:
    """What is wrong with a round.

    Args:
        what: In words.
        kind: lost: damaged, missing or of another run; newer: in a format of a later version; extra: the run has no
            such round.
    """

    what: str
    kind: Literal["lost", "newer", "extra"] = "lost"


def broken_rounds(folder: Path, experiment: Experiment, imported: bool) -> tuple[dict[int, Fault], list[int]]:
    """What is wrong with the rounds of a run, by index, and the whole ones, both ascending."""
    present = round_headers.round_numbers(folder)
    known, size = chain.read(folder), Run(folder).layout.size
    done, faults = _committed(known, present), known.faults
    problems: dict[int, Fault] = {}
    intact, previous = [], None
    for index in present:
        fault, record = _fault(folder, index, experiment, size, faults)
        if index >= experiment.rounds:
            fault = Fault(f"the run has {experiment.rounds} rounds, no round {index}", "extra")
        elif index >= done and fault is None:
            fault = _uncommitted(known, index, done, imported)
        elif index >= done and fault is not None and fault.kind == "lost":
            fault = Fault(fault.what, "extra")
        if fault is None and previous is not None and record is not None:
            fault = _broken(previous, record, experiment, imported)
        previous = record if fault is None else None
        if fault is None:
            intact.append(index)
        else:
            problems[index] = fault
    missing = [] if imported else sorted(set(range(done)) - set(present))
    return dict(sorted((problems | dict.fromkeys(missing, Fault("is missing"))).items())), intact


def _fault(
    folder: Path, index: int, experiment: Experiment, size: int, faults: Mapping[str, str]
) -> tuple[Fault | None, Round | None]:
    """What is wrong with one round by itself, and its record where it can be read."""
    try:
        record = files.read_round(folder, index)
    except files.Newer as reason:
        return Fault(reason.what, "newer"), None
    except files.Damaged as reason:
        return Fault(reason.what), None
    what = _complaint(record, experiment, size) or faults.get(paths.round_file(index))
    return (Fault(what) if what else None), record


def _uncommitted(known: chain.Chain, index: int, done: int, imported: bool) -> Fault | None:
    """What is wrong with a whole round after the commit point, as a stopped process leaves one."""
    if index > done and not imported:
        return Fault(f"{done} rounds are complete, and the next one is round {done}", "extra")
    piece, run = round_headers.read_round(known.folder, index), Run(known.folder).identity
    what = "" if piece is None else piece.foreign(run) or piece.broken(known.link_before(done))
    return Fault(what, "extra") if what else None


def _broken(before: Round, after: Round, experiment: Experiment, imported: bool) -> Fault | None:
    """Whether a round starts where the one before it ended, entry by entry, where the method has it so."""
    if imported or after.index != before.index + 1 or before.end is None or after.start is None:
        return None
    if not _starts_at_end(experiment.method) or torch.equal(before.end, after.start):
        return None
    return Fault(f"does not start where round {before.index} ended; one of the two is of another run")


def _starts_at_end(method: Method) -> bool:
    """Whether the clients of a round are known to start at the global model."""
    if (base := method.unwrapped) is not method:  # sends what its base sends, from the global model if that is fed back
        return getattr(method, "feedback", True) and _starts_at_end(base)
    return type(method).broadcast is Method.broadcast or not getattr(method, "predict", True)


def _complaint(record: Round, experiment: Experiment, size: int | None) -> str:
    """What does not fit the run in a record whose digest is right."""
    m = len(record.ids)
    shapes = {"sizes": record.sizes.shape, "weights": record.weights.shape}
    if wrong := [name for name, shape in shapes.items() if shape != (m,)]:
        return f"{wrong[0]} has shape {tuple(shapes[wrong[0]])}, the cohort has {m} clients"
    if record.gram.shape != (m + 3, m + 3):
        return f"gram has shape {tuple(record.gram.shape)}, expected is {(m + 3, m + 3)}"
    if experiment.keep.keeps_globals(record.index, experiment.rounds) and record.end is None:
        return "it holds no global model, which the run was to keep"
    if experiment.keep.keeps_clients(record.index, experiment.rounds) and record.clients is None:
        return "it holds no clients, which the run was to keep"
    if record.clients is not None and len(record.clients) != m:
        return f"it holds {len(record.clients)} client models of a cohort of {m}"
    if record.end is not None and size is not None and record.end.numel() != size:
        return f"its model has {record.end.numel()} parameters, the run has {size}"
    return ""


def _committed(known: chain.Chain, present: list[int]) -> int:
    """Rounds before the commit point; all that are there where the state is lost or of another run."""
    if not round_headers.lacks_state(known.folder) and not {"run.json", files.STATE} & known.wrong.keys():
        return known.following
    return max(present, default=-1) + 1
