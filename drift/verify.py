"""What is whole in a run's folder: every file read, every damaged, missing or foreign one named."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from drift import store
from drift.experiment import Experiment
from drift.read import validated
from drift.rounds import Round
from drift.run import Run
from landscape import results

_ROUND = re.compile(r"\d{6}\.safetensors")


@dataclass(frozen=True)
class Problem:
    """One file that is not as it should be.

    Args:
        file: Its path inside the run's folder.
        what: What is wrong with it.
        usable: What can be used in spite of it, and what to do.
    """

    file: str
    what: str
    usable: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}. {self.usable[0].upper()}{self.usable[1:]}."


def verify(folder: str | Path) -> list[Problem]:
    """Problems of a run's folder, none where all is whole.

    Every file is read and its digest is compared. What a stopped process leaves behind (temporary files, a round
    after the commit point) is no problem: resuming replaces it.

    Raises:
        LookupError: If there is no such folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise LookupError(f"no folder {folder}; give the folder of a run.")
    if not any((folder / name).exists() for name in ("run.json", "rounds", "state.safetensors")):
        raise LookupError(f"{folder} is no run: it has neither run.json nor rounds. Give the folder of a run.")
    problems = _foreign(folder)
    try:
        about = store.read_json(folder / "run.json")
    except store.Damaged as reason:
        usable = (
            "the rounds are not touched by this; restore it from a copy, or delete it and train again with the same "
            "settings: it is written anew"
        )
        return [Problem("run.json", reason.what, usable), *problems]
    try:
        experiment = validated(about.get("experiment", {}))
    except ValueError as reason:
        usable = "read the run with the version of fedscape that wrote it; the rounds can be read as safetensors"
        return [Problem("run.json", f"its experiment is not accepted ({_said(reason)})", usable), *problems]
    if experiment.hash != about.get("hash", experiment.hash):  # a recorded run has none
        usable = "all rounds can be read; this version has other settings, so training starts another run"
        problems.append(Problem("run.json", f"its hash {about['hash']} is not that of its settings", usable))
    imported = bool(about.get("imported"))
    found = [*_state(folder, experiment), *_start(folder), *_rounds(folder, experiment, imported), *_results(folder)]
    return [*problems, *found]


def _foreign(folder: Path) -> list[Problem]:
    """Files that no run has; temporary ones of a stopped write excepted."""
    expected = {"run.json", "state.safetensors", "init.safetensors", "rounds", "results", ".lock"}
    found = [path for path in sorted(folder.iterdir()) if path.name not in expected and not _temporary(path)]
    rounds = [path for path in sorted((folder / "rounds").glob("*")) if not _temporary(path)]
    found += [path for path in rounds if not _ROUND.fullmatch(path.name)]
    stray = [path for path in sorted((folder / "results").glob("*")) if path.suffix != ".zarr" and path.name[0] != "."]
    usable = "nothing of the run reads it; move it elsewhere"
    return [Problem(str(path.relative_to(folder)), "no file of a run", usable) for path in [*found, *stray]]


def _temporary(path: Path) -> bool:
    return path.name.startswith(".") and path.name.endswith(".part")


def _state(folder: Path, experiment: Experiment) -> list[Problem]:
    path = folder / "state.safetensors"
    if not path.exists() and not _later(folder):
        return []  # begun, no round committed yet
    try:
        _, following = store.read_state(folder)
    except store.Damaged as reason:
        usable = f"every round file can be read by itself. {store.ANEW.rstrip('.')}"
        return [Problem(path.name, reason.what, usable)]
    if following > experiment.rounds:
        usable = store.ANEW.rstrip(".")
        return [Problem(path.name, f"it names round {following} as the next of {experiment.rounds}", usable)]
    return []


def _start(folder: Path) -> list[Problem]:
    """The checkpoint that training started from, where the run holds one."""
    path = folder / "init.safetensors"
    try:
        if path.exists():
            store.read_tensors(path)
    except store.Damaged as reason:
        usable = "every round can be read; delete it and train again: it is copied anew from where it lay"
        return [Problem(path.name, reason.what, usable)]
    return []


def _later(folder: Path) -> bool:
    """Whether there is a round after round 0, which a stopped process leaves behind before its commit."""
    names = [path.name for path in (folder / "rounds").glob("*")]
    return any(_ROUND.fullmatch(name) and int(name[:6]) > 0 for name in names)


def _rounds(folder: Path, experiment: Experiment, imported: bool) -> list[Problem]:
    problems, whole = broken_rounds(folder, experiment, imported)
    usable = f"whole rounds: {spans(whole)}. {store.ANEW.rstrip('.')}"
    return [Problem(f"rounds/{index:06d}.safetensors", what, usable) for index, what in problems.items()]


def broken_rounds(folder: Path, experiment: Experiment, imported: bool) -> tuple[dict[int, str], list[int]]:
    """What is wrong with the damaged and missing rounds of a run, by index, and the whole ones, both ascending."""
    present = sorted(int(path.stem) for path in (folder / "rounds").glob("*") if _ROUND.fullmatch(path.name))
    problems: dict[int, str] = {}
    whole, size = [], _size(folder)
    for index in present:
        try:
            record = store.read_round(folder, index)
        except store.Damaged as reason:
            problems[index] = reason.what
            continue
        if complaint := _complaint(record, experiment, size):
            problems[index] = complaint
        else:
            whole.append(index)
    missing = [] if imported else sorted(set(range(_committed(folder, present))) - set(present))
    return dict(sorted((problems | dict.fromkeys(missing, "is missing")).items())), whole


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
    try:
        return Run(folder).committed
    except store.Damaged:
        return max(present, default=-1) + 1


def _results(folder: Path) -> list[Problem]:
    problems = []
    for path in sorted((folder / "results").glob("[!.]*.zarr")):
        try:
            results.load(path)
        except LookupError as reason:
            usable = "everything else can be used; delete the folder and it is computed again when asked for"
            problems.append(Problem(str(path.relative_to(folder)), _said(reason), usable))
    return problems


def spans(numbers: list[int]) -> str:
    """Ascending numbers as ranges: "0-3, 5"; "none" for no number."""
    groups: list[list[int]] = []
    for number in numbers:
        if groups and number == groups[-1][1] + 1:
            groups[-1][1] = number
        else:
            groups.append([number, number])
    return ", ".join(f"{low}-{high}" if low < high else str(low) for low, high in groups) or "none"


def _said(reason: Exception) -> str:
    return " ".join(str(reason).split()).rstrip(".")
