"""Check a run's folder: read every file and report each damaged, missing or foreign one."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import numpy as np
import torch

from drift.config import chain
from drift.config.experiment import Experiment
from drift.config.load import validated
from drift.runs.cache import complaint
from drift.runs.run import Run
from drift.store import files, round_headers
from drift.store.round_record import Round
from landscape.results import zarr_files


@dataclass(frozen=True)
class Problem:
    """One file that is not as it should be.

    Args:
        file: Its path inside the run's folder.
        what: What is wrong with it.
        usable: What can still be used, and what to do.
    """

    file: str
    what: str
    usable: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}. {self.usable[0].upper()}{self.usable[1:]}."


def verify(folder: str | Path) -> list[Problem]:
    """Problems of a run's folder, none where all is whole.

    Every file is read and its digest compared, and the chain of the rounds is followed (`drift.config.chain`). Files
    of a stopped process (temporary ones, a round after the commit point) are no problem, as resuming replaces them;
    nor are files that repair has set aside.

    Raises:
        LookupError: If there is no such folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise LookupError(f"no folder {folder}; give the folder of a run.")
    if not any((folder / name).exists() for name in ("run.json", "rounds", files.STATE)):
        raise LookupError(f"{folder} is no run: it has neither run.json nor rounds. Give the folder of a run.")
    problems = _foreign(folder)
    try:
        about = files.read_json(folder / "run.json")
    except files.Newer as reason:
        return [Problem("run.json", reason.what, _lower(reason.remedy)), *problems]
    except files.Damaged as reason:
        usable = (
            "the rounds are not touched by this; restore it from a copy, or delete it and train again with the same "
            "settings: it is written anew"
        )
        return [Problem("run.json", reason.what, usable), *problems]
    try:
        experiment = validated(about.get("experiment", {}))
    except ValueError as reason:
        usable = "read the run with the version of fedscape that wrote it; the rounds can be read as safetensors"
        return [Problem("run.json", f"its experiment is not accepted ({_one_line(reason)})", usable), *problems]
    if experiment.hash != about.get("hash", experiment.hash):  # a recorded run has none
        usable = "all rounds can be read; this version has other settings, so training starts another run"
        problems.append(Problem("run.json", f"its hash {about['hash']} is not that of its settings", usable))
    if what := chain.faults(folder).get("run.json"):
        usable = "the rounds are not touched by this; put the run's own run.json in its place, or rename the folder"
        problems.append(Problem("run.json", what, usable))
    if not (folder / files.STATE).exists() and not round_headers.round_numbers(folder):
        usable = "train or record again with the same settings"
        problems.append(Problem("rounds", "no round is recorded, and there is no state", usable))
    imported = bool(about.get("imported"))
    problems += [*_state(folder, experiment), *_start(folder), *_rounds(folder, experiment, imported)]
    return [*problems, *results_of(folder)]


def _foreign(folder: Path) -> list[Problem]:
    """Files that no run has; temporary ones of a stopped write and what repair has set aside excepted."""
    expected = {"run.json", files.STATE, "init.safetensors", "rounds", "results", ".lock"}
    paths = [path for path in _visible(folder) if path.name not in expected]
    paths += [path for path in _visible(folder / "rounds") if not round_headers.ROUND_FILE.fullmatch(path.name)]
    paths += [path for path in _visible(folder / "results") if path.suffix != ".zarr" and path.name[0] != "."]
    usable = "nothing of the run reads it; move it elsewhere"
    return [Problem(str(path.relative_to(folder)), "no file of a run", usable) for path in paths]


def _visible(folder: Path) -> list[Path]:
    """Files and folders in a folder, those excepted that fedscape leaves there."""
    temporary = re.compile(r"\..*\.part")
    return [
        path
        for path in sorted(folder.glob("*"))
        if not temporary.fullmatch(path.name) and not ASIDE.search(path.name.removeprefix("."))
    ]


ASIDE = re.compile(r"\.(safetensors|zarr)\.aside\d*$")
"""Ends of the names that repair gives to whole files that belong elsewhere."""


def _state(folder: Path, experiment: Experiment) -> list[Problem]:
    path = folder / files.STATE
    if not path.exists() and not _later(folder):
        return []  # begun, no round committed yet
    try:
        _, following = files.read_state(folder)
    except files.Newer as reason:
        return [Problem(path.name, reason.what, _lower(reason.remedy))]
    except files.Damaged as reason:
        usable = f"every round file can be read by itself. {files.ANEW.rstrip('.')}"
        return [Problem(path.name, reason.what, usable)]
    usable = files.ANEW.rstrip(".")
    if what := chain.faults(folder).get(path.name):
        return [Problem(path.name, what, usable)]
    if following > experiment.rounds:
        return [Problem(path.name, f"it names round {following} as the next of {experiment.rounds}", usable)]
    return []


def _start(folder: Path) -> list[Problem]:
    """The checkpoint that training started from, where the run holds one."""
    path = folder / "init.safetensors"
    try:
        if path.exists():
            files.read_tensors(path)
    except files.Damaged as reason:
        usable = "every round can be read; delete it and train again: it is copied anew from where it lay"
        return [Problem(path.name, reason.what, usable)]
    return []


def _later(folder: Path) -> bool:
    """Whether there is a round after round 0, which a stopped process leaves behind before its commit."""
    return any(index > 0 for index in round_headers.round_numbers(folder))


def _rounds(folder: Path, experiment: Experiment, imported: bool) -> list[Problem]:
    faults, whole = broken_rounds(folder, experiment, imported)
    usable = {
        "lost": f"whole rounds: {spans(whole)}. {files.ANEW.rstrip('.')}",
        "newer": _lower(files.Newer.remedy),
        "extra": "nothing of the run reads it; move it elsewhere",
    }
    return [
        Problem(f"rounds/{index:06d}.safetensors", fault.what, usable[fault.kind]) for index, fault in faults.items()
    ]


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
    done, faults, size = _committed(folder, present), chain.faults(folder), _size(folder)
    problems: dict[int, Fault] = {}
    whole, previous = [], None
    for index in present:
        fault, record = _fault(folder, index, experiment, size, faults)
        if index >= experiment.rounds:
            fault = Fault(f"the run has {experiment.rounds} rounds, no round {index}", "extra")
        elif index >= done and fault is None:
            fault = _uncommitted(folder, index, done, imported)
        elif index >= done and fault is not None and fault.kind == "lost":
            fault = Fault(fault.what, "extra")
        if fault is None and previous is not None and record is not None:
            fault = _broken(previous, record, experiment, imported)
        previous = record if fault is None else None
        if fault is None:
            whole.append(index)
        else:
            problems[index] = fault
    missing = [] if imported else sorted(set(range(done)) - set(present))
    return dict(sorted((problems | dict.fromkeys(missing, Fault("is missing"))).items())), whole


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
    what = _complaint(record, experiment, size) or faults.get(f"rounds/{index:06d}.safetensors")
    return (Fault(what) if what else None), record


def _uncommitted(folder: Path, index: int, done: int, imported: bool) -> Fault | None:
    """What is wrong with a whole round after the commit point, as a stopped process leaves one."""
    if index > done and not imported:
        return Fault(f"{done} rounds are complete, and the next one is round {done}", "extra")
    piece, run = round_headers.read_round(folder, index), Run(folder).identity
    if piece is not None and run and piece.run not in (None, run):
        return Fault(f"is of run {piece.run}, and this is run {run}", "extra")
    if piece is not None and piece.before and piece.before != round_headers.last_link(folder, done):
        return Fault(f"does not follow round {done - 1}; it is of another run", "extra")
    return None


def _broken(before: Round, after: Round, experiment: Experiment, imported: bool) -> Fault | None:
    """Whether a round starts where the one before it ended, entry by entry, where the method has it so."""
    if imported or after.index != before.index + 1 or before.end is None or after.start is None:
        return None
    if chain.lead(experiment.method) != 0.0 or torch.equal(before.end, after.start):
        return None
    return Fault(f"does not start where round {before.index} ended; one of the two is of another run")


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


def _size(folder: Path) -> int:
    layout = Run(folder).about["layout"]
    return sum(int(np.prod(shape)) for _, shape in layout)


def _committed(folder: Path, present: list[int]) -> int:
    """Rounds before the commit point; all that are there where the state is lost or of another run."""
    if (folder / files.STATE).exists() or not _later(folder):
        with suppress(files.Damaged):
            return Run(folder).committed
    return max(present, default=-1) + 1


def results_of(folder: Path) -> list[Problem]:
    """Results that cannot be read, or are of another run."""
    problems, run = [], Run(folder)
    if "run.json" in chain.faults(folder):
        return []  # their run is unknown
    heads = round_headers.all_links(folder)
    for path in sorted((folder / "results").glob("[!.]*.zarr")):
        try:
            stored = zarr_files.load(path)
        except LookupError as reason:
            what = _one_line(reason)
            usable = "everything else can be used; delete the folder and it is computed again when asked for"
        else:
            what = complaint(stored, run, heads)
            usable = "everything else can be used; nothing of the run reads it, move it elsewhere"
        if what:
            problems.append(Problem(str(path.relative_to(folder)), what, usable))
    return problems


def spans(numbers: list[int]) -> str:
    """Ascending numbers as ranges: "0-3, 5"; "none" for no number."""
    texts = [str(group[0]) if len(group) == 1 else f"{group[0]}-{group[-1]}" for group in consecutive(numbers)]
    return ", ".join(texts) or "none"


def consecutive(numbers: Iterable[int]) -> list[list[int]]:
    """Ascending numbers in groups without gaps."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number == groups[-1][-1] + 1:
            groups[-1].append(number)
        else:
            groups.append([number])
    return groups


def _lower(text: str) -> str:
    """A sentence without capital and full stop."""
    return text[0].lower() + text[1:].rstrip(".")


def _one_line(reason: Exception) -> str:
    return " ".join(str(reason).split()).rstrip(".")
