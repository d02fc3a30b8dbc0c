"""Check a run's folder: read every file and report each damaged, missing or foreign one."""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from drift.config.experiment import Experiment
from drift.config.external_run import complete_experiment
from drift.config.load import validated
from drift.config.without_code import readable, stand_ins
from drift.plugins.trust import names_in
from drift.runs.cache import complaint
from drift.simulation.broken_rounds import broken_rounds
from drift.store import chain, files, links, paths, round_headers, server_state
from drift.store.number_ranges import spans
from landscape.results import netcdf_files


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

    Every file is read and its digest compared, and the chain of the rounds is followed (`drift.store.chain`). Files
    of a stopped process (temporary ones, a round after the commit point) are no problem, as resuming replaces them;
    nor are files that repair has set aside.

    Raises:
        LookupError: If there is no such folder.
    """
    folder = Path(folder)
    if not folder.is_dir():
        raise LookupError(f"no folder {folder}; give the folder of a run.")
    if not any((folder / name).exists() for name in ("run.json", "rounds", files.STATE)):
        raise LookupError(f"{folder} is not a run: it has neither run.json nor rounds. Give the folder of a run.")
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
        experiment = validated(complete_experiment(about))
    except ValueError as reason:
        usable = "read the run with the version of fedscape that wrote it; the rounds can be read as safetensors"
        return [Problem("run.json", f"its experiment is not accepted ({_one_line(reason)})", usable), *problems]
    by_name = list(names_in(experiment.resolved())) == list(names_in(about["experiment"]))
    known = by_name and not any(stand_ins(experiment.method, experiment.clients.partition))
    written = validated(readable(about["experiment"], about.get("hooks")))  # without what an importer was told
    if known and written.hash != about.get("hash", written.hash):  # a recorded run has none
        usable = "all rounds can be read; this version has other settings, so training starts another run"
        problems.append(Problem("run.json", f"its hash {about['hash']} is not that of its settings", usable))
    faults = chain.read(folder).faults
    if what := faults.get("run.json"):
        usable = "the rounds are not touched by this; put the run's own run.json in its place, or rename the folder"
        problems.append(Problem("run.json", what, usable))
    if not (folder / files.STATE).exists() and not round_headers.round_numbers(folder):
        usable = "train or record again with the same settings"
        problems.append(Problem("rounds", "no round is recorded, and there is no state", usable))
    imported = bool(about.get("imported"))
    problems += [*_state(folder, experiment, faults), *_start(folder), *_rounds(folder, experiment, imported)]
    return [*problems, *results_of(folder)]


def _foreign(folder: Path) -> list[Problem]:
    """Files that no run has; temporary ones of a stopped write and what repair has set aside excepted."""
    expected = {"run.json", files.STATE, "init.safetensors", "rounds", paths.CLIENTS, "results", ".lock"}
    foreign = [path for path in _visible(folder) if path.name not in expected]
    named = {"rounds": round_headers.ROUND_FILE, paths.CLIENTS: server_state.CLIENT_FILE}
    for folder_name, names in named.items():
        foreign += [path for path in _visible(folder / folder_name) if not names.fullmatch(path.name)]
    foreign += [path for path in _visible(folder / "results") if path.suffix != ".nc" and path.name[0] != "."]
    usable = "nothing of the run reads it; move it elsewhere"
    return [Problem(path.relative_to(folder).as_posix(), "no file of a run", usable) for path in foreign]


def _visible(folder: Path) -> list[Path]:
    """Files and folders in a folder, those excepted that fedscape leaves there."""
    temporary = re.compile(r"\..*\.part")
    return [
        path
        for path in sorted(folder.glob("*"))
        if not temporary.fullmatch(path.name) and not ASIDE.search(path.name.removeprefix("."))
    ]


ASIDE = re.compile(r"\.(safetensors|nc)\.aside\d*$")
"""Ends of the names that repair gives to whole files that belong elsewhere."""


def _state(folder: Path, experiment: Experiment, faults: Mapping[str, str]) -> list[Problem]:
    path = folder / files.STATE
    if not path.exists() and not round_headers.lacks_state(folder):
        return []  # begun, no round committed yet
    usable = files.ANEW.rstrip(".")
    try:
        if not path.exists():
            round_headers.following_round(folder)
        _, following = files.read_state(folder)
    except files.Newer as reason:
        return [Problem(path.name, reason.what, _lower(reason.remedy))]
    except files.Damaged as reason:
        remedy = usable if path.exists() else reason.remedy.rstrip(".")
        return [Problem(path.name, reason.what, f"every round file can be read by itself. {remedy}")]
    if what := faults.get(path.name):
        return [Problem(path.name, what, usable)]
    if following > experiment.rounds:
        return [Problem(path.name, f"it names round {following} as the next of {experiment.rounds}", usable)]
    clients = server_state.damaged_clients(folder)
    problems = [Problem(fault.path.relative_to(folder).as_posix(), fault.what, usable) for fault in clients]
    if problems:
        return problems
    usable = "nothing of the run reads it; move it elsewhere"
    return [Problem(file, what, usable) for file, what in foreign_clients(folder).items()]


def foreign_clients(folder: Path) -> dict[str, str]:
    """Files of clients that the state does not name and that are not of this run, with what is wrong with each."""
    run, wrong = links.identity(files.read_json(folder / "run.json")), {}
    for path, whose in server_state.unnamed(folder, server_state.read(folder).clients).items():
        if whose != run:
            what = (
                "cannot be read, and the state does not name it" if whose is None else f"is of run {whose or 'no name'}"
            )
            wrong[path.relative_to(folder).as_posix()] = what
    return wrong


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


def _rounds(folder: Path, experiment: Experiment, imported: bool) -> list[Problem]:
    faults, intact = broken_rounds(folder, experiment, imported)
    usable = {
        "lost": f"whole rounds: {spans(intact)}. {files.ANEW.rstrip('.')}",
        "newer": _lower(files.Newer.remedy),
        "extra": "nothing of the run reads it; move it elsewhere",
    }
    return [Problem(paths.round_file(index), fault.what, usable[fault.kind]) for index, fault in faults.items()]


def results_of(folder: Path) -> list[Problem]:
    """Results that cannot be read, are of another run or other rounds, or are not those that their names say."""
    known, problems = chain.read(folder), list[Problem]()
    if "run.json" in known.wrong:
        return []  # their run is unknown
    run = links.identity(files.read_json(folder / "run.json"))
    for path in sorted((folder / "results").glob("[!.]*.nc")):
        try:
            stored = netcdf_files.load(path)
        except LookupError as reason:
            what = _one_line(reason)
            usable = "everything else can be used; delete the file and it is computed again when asked for"
        else:
            what = complaint(stored, path, run, known.heads)
            usable = "everything else can be used; nothing of the run reads it, move it elsewhere"
        if what:
            problems.append(Problem(path.relative_to(folder).as_posix(), what, usable))
    return problems


def _lower(text: str) -> str:
    """A sentence without capital and full stop."""
    return text[0].lower() + text[1:].rstrip(".")


def _one_line(reason: Exception) -> str:
    return " ".join(str(reason).split()).rstrip(".")
