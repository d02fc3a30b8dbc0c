"""Recover what can be recovered of a damaged run without retraining it; report the rest."""

from collections.abc import Iterable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from drift.config.experiment import Experiment
from drift.runs.context import Context
from drift.runs.run import Run
from drift.simulation.broken_rounds import broken_rounds
from drift.simulation.recompute import Inexact, Recomputed, recompute_rounds, recompute_state
from drift.simulation.verify import foreign_clients, results_of, verify
from drift.store import chain, files, links, locks, paths, round_headers, server_state
from drift.store.number_ranges import consecutive
from drift.training.server import Server
from landscape.results import netcdf_files


@dataclass(frozen=True)
class Repair:
    """The outcome for one file.

    Args:
        file: Its path inside the run's folder.
        done: Whether it is as it should be now.
        what: What was done, or what is lost and what to do.
    """

    file: str
    done: bool
    what: str

    def __str__(self) -> str:
        return f"{self.file}: {self.what}."


def repair(folder: str | Path, *, data: Path | None = None) -> list[Repair]:
    """Drop or recompute exactly what is broken in a run's folder, nothing where all is whole.

    Left-overs of stopped writes and damaged results are deleted (results are computed again when asked for). A
    damaged or missing round is computed again from the round before it, and a lost state from the last round, where
    that gives the same bits (`drift.simulation.recompute`); it is written only if it fits what follows. Nothing whole
    is deleted: what belongs elsewhere, or was computed from a round that is replaced, is set aside. Of a folder whose
    run.json is of another run, or of which nothing else says that it is its own, nothing but damaged results is
    touched.

    Args:
        folder: The run.
        data: Folder of the datasets.

    Raises:
        LookupError: If there is no such folder.
        Busy: If another process trains the run.
        OSError: If the folder cannot be written.
    """
    folder = Path(folder)
    verify(folder)
    with locks.locked(folder):
        repairs = [*_leftovers(folder), *_training(folder, data), *_results(folder)]
        files_done = {entry.file for entry in repairs}
        left = [problem for problem in verify(folder) if problem.file not in files_done]
        texts = [str(problem).removeprefix(f"{problem.file}: ").rstrip(".") for problem in left]
        return [*repairs, *(Repair(problem.file, False, text) for problem, text in zip(left, texts, strict=True))]


def _leftovers(folder: Path) -> list[Repair]:
    """Temporary files of stopped writes; the run is locked, so that no living process writes them."""
    stopped = [path for name in (".", "rounds", paths.CLIENTS) for path in (folder / name).glob(".*.part")]
    aside = dict[str, str]()
    with suppress(files.Damaged):
        if not {"run.json", files.STATE} & chain.read(folder).wrong.keys():
            run = links.identity(files.read_json(folder / "run.json"))
            unnamed = server_state.unnamed(folder, server_state.read(folder).clients)
            stopped += [path for path, whose in unnamed.items() if whose == run]
            aside = foreign_clients(folder)
    for path in stopped:
        path.unlink()
    removed = [_repaired(folder, path, "was left by a stopped write; removed") for path in sorted(stopped)]
    remaining = [Repair(file, True, f"{what}; set aside as {_aside(folder / file)}") for file, what in aside.items()]
    return [*removed, *remaining]


def _results(folder: Path) -> list[Repair]:
    """Damaged results and left-overs of stopped saves, those in use by another process excepted."""
    results, repairs = folder / "results", list[Repair]()
    names = {path.name for path in results.glob("[!.]*.nc") if path.is_file()}
    names |= {path.name[1:].rsplit(".", 2)[0] for path in results.glob(".*.nc.*.part")}
    elsewhere = _of_other_runs(folder)
    for name in sorted(names):
        try:
            with locks.lock_result(results / name, wait=False):
                repairs += _result(folder, results / name, elsewhere.get(f"results/{name}", ""))
        except locks.Busy as reason:
            repairs.append(Repair(f"results/{name}", False, str(reason).rstrip(".")))
    return repairs


def _of_other_runs(folder: Path) -> dict[str, str]:
    """Why results are not those of the run, by file; nothing where the run's description is damaged."""
    try:
        return {problem.file: problem.what for problem in results_of(folder)}
    except (files.Damaged, ValueError):
        return {}


def _result(folder: Path, path: Path, elsewhere: str) -> list[Repair]:
    repairs = []
    for leftover in path.parent.glob(f".{path.name}.*.part"):
        leftover.unlink()
        repairs.append(_repaired(folder, leftover, "was left by a stopped save; removed"))
    if path.exists() and not _loads(path):
        path.unlink()
        repairs.append(_repaired(folder, path, "was damaged; removed, it is computed again when asked for"))
    elif path.exists() and elsewhere:
        repairs.append(_repaired(folder, path, f"{elsewhere}; set aside as {_aside(path)}"))
    return repairs


def _training(folder: Path, data: Path | None) -> list[Repair]:
    try:
        about = files.read_json(folder / "run.json")
        experiment = Experiment.model_validate(about["experiment"])
    except (files.Damaged, ValueError):
        return []  # without the settings nothing is recomputed; the problem states what to do
    if "run.json" in chain.read(folder).wrong:
        return []  # of a run.json of another run nothing is recomputed, moved or set aside
    imported = bool(about.get("imported"))
    moved = _put_back(folder, broken_rounds(folder, experiment, imported)[0])
    faults, intact = broken_rounds(folder, experiment, imported)
    extra = {files.round_path(folder, index): fault.what for index, fault in faults.items() if fault.kind == "extra"}
    moved += [_repaired(folder, path, f"{what}; set aside as {_aside(path)}") for path, what in extra.items()]
    problems = {index: fault.what for index, fault in faults.items() if fault.kind == "lost"}
    lost = bool(problems or intact) and _state_is_lost(folder)
    if imported or not (problems or lost):
        return moved
    if not chain.is_known(folder):
        reason = "no whole file, nor the name of the folder, says that run.json is of the run that lies here"
        return [*moved, *(_lost(paths.round_file(index), what, ValueError(reason)) for index, what in problems.items())]
    run, repairs = Run(folder, Context(data)), moved
    for group in consecutive(problems):
        try:
            for recomputed in recompute_rounds(run, group, intact):
                repairs.append(_written(run, recomputed, problems[recomputed.record.index]))
                intact.append(recomputed.record.index)
        except (Inexact, LookupError, ValueError) as reason:
            repairs += [_lost(paths.round_file(index), problems[index], reason) for index in group]
    if lost:
        try:
            server = recompute_state(run, sorted(intact))
        except (Inexact, LookupError, ValueError) as reason:
            repairs.append(_lost(files.STATE, "lost", reason))
        else:
            repairs.append(_written_state(run, server))
    return repairs


def _state_is_lost(folder: Path) -> bool:
    """Whether the state is damaged, missing or of another run; one of a later version is not."""
    try:
        files.read_state(folder)
    except files.Newer:
        return False
    except files.Damaged:
        pass
    return any(problem.file == files.STATE for problem in verify(folder))


def _aside(path: Path) -> str:
    """Rename a file or a result so that nothing reads it; the new name."""
    number, names = 1, {other.name for other in path.parent.iterdir()}
    while (name := f"{path.name}.aside{number if number > 1 else ''}") in names:
        number += 1
    path.rename(path.with_name(name))
    return name


def _put_back(folder: Path, problems: Iterable[int]) -> list[Repair]:
    """Rounds that lie whole under another round's name, renamed where their own place is free."""
    repairs = []
    for index in problems:
        path = files.round_path(folder, index)
        try:
            number = files.read_tensors(path)[1].get("round")
        except files.Damaged:
            continue
        if isinstance(number, int) and number != index and not files.round_path(folder, number).exists():
            path.rename(files.round_path(folder, number))
            repairs.append(_repaired(folder, path, f"held round {number}, which was missing; renamed"))
    return repairs


def _written(run: Run, recomputed: Recomputed, problem: str) -> Repair:
    index, experiment = recomputed.record.index, run.experiment
    path = files.round_path(run.folder, index)
    moved = _room(path)
    files.write_round(run.folder, recomputed.record, experiment.keep, experiment.rounds, _origin(run, index))
    return _repaired(run.folder, path, f"{problem}; trained again from {recomputed.source}, {recomputed.proof}{moved}")


def _written_state(run: Run, server: Server) -> Repair:
    path = run.folder / files.STATE
    moved = _room(path)
    server_state.write(run.folder, server.tensors(), server.clients, server.next, _origin(run, server.next))
    return _repaired(run.folder, path, f"was lost; made again from round {server.next - 1}{moved}")


def _origin(run: Run, following: int) -> dict[str, str]:
    """Origin by the round before: what a file that is to be replaced states is not believed."""
    return links.origin(run.identity, round_headers.link_before(run.folder, following))


def _room(path: Path) -> str:
    """Rename an intact file in the place of one to be written; returns a clause for the report."""
    try:
        files.read_tensors(path)
    except files.Damaged:
        return ""
    return f"; what lay there is whole and kept as {_aside(path)}"


def _lost(file: str, problem: str, reason: Exception) -> Repair:
    return Repair(file, False, f"{problem}, and not recomputed: {str(reason).rstrip('.')}. {files.ANEW.rstrip('.')}")


def _repaired(folder: Path, path: Path, what: str) -> Repair:
    return Repair(path.relative_to(folder).as_posix(), True, what)


def _loads(path: Path) -> bool:
    try:
        netcdf_files.load(path)
    except LookupError:
        return False
    return True
