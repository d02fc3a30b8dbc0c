"""Whether the files of a run belong to it and follow each other.

Files name their run and the round before them (`drift.store.links`). Files of earlier versions name neither; their Gram
matrices must continue each other: |start + step| of a round is |start| of the next one, its mean update is the next
one's previous update, and the state is the last end. Only headers and small arrays are read
(`drift.store.round_headers`).
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from safetensors import SafetensorError, safe_open

from drift.config.experiment import Experiment
from drift.config.gram_chain import continues
from drift.config.load import validated
from drift.config.migrations import migrate
from drift.config.random_keys import cohort
from drift.store import files, links, round_headers
from drift.store.paths import round_file
from drift.store.round_headers import Header, round_numbers

REMEDY = "Put the run's own file in its place, or see fedscape verify --repair."


def faults(folder: Path) -> dict[str, str]:
    """Files of a run that belong to another run or to another place in it, with what is wrong with each.

    `run.json` is named where all other files agree on another run. Between files that name no run, a place where the
    chain breaks names the side with fewer files. Files that cannot be read, or were altered, are left out.
    """
    wrong = _faults(folder, frozenset())
    altered = frozenset(file for file in _near(folder, wrong) if _is_altered(folder / file))
    return _faults(folder, altered) if altered else wrong


def _near(folder: Path, wrong: Mapping[str, str]) -> list[str]:
    """Files at which the chain may break: the named ones, and those beside them."""
    files_of_run = [*map(round_file, round_numbers(folder)), files.STATE]
    at = [place for place, file in enumerate(files_of_run) if file in wrong]
    places = {place + step for place in at for step in (-1, 0, 1)}
    return [file for place, file in enumerate(files_of_run) if place in places]


def _is_altered(path: Path) -> bool:
    """Whether a file does not match its digest, so that what its header states is not to be believed."""
    try:
        files.read_tensors(path)
    except files.Newer:
        return False
    except files.Damaged:
        return True
    return False


def _faults(folder: Path, altered: Collection[str]) -> dict[str, str]:
    about = _about(folder)
    run, settings = links.identity(about), _settings(about)
    headers = [None if header is None or header.file in altered else header for header in _read_all(folder)]
    wrong = {
        header.file: f"holds round {header.index}, not {int(header.file[-18:-12])}; it was renamed or copied"
        for header in headers
        if header is not None and not header.state and header.file != round_file(header.index)
    }
    named = [header for header in headers if header is not None and header.run is not None]
    others = [header for header in named if run and header.run != run]
    if others and len(others) == len(named) and len({header.run for header in others}) == 1:
        wrong["run.json"] = f"describes run {run}, and its rounds and state are of run {others[0].run}"
    else:
        wrong |= {header.file: f"is of run {header.run}, and this is run {run}" for header in others}
    if not named:
        wrong |= _contradicted_by_name(folder, about)
    if settings.experiment is not None and not settings.foreign:
        wrong |= _cohorts([header for header in headers if header and header.file not in wrong], settings.experiment)
    remaining = [None if header is None or header.file in wrong else header for header in headers]
    return wrong | _breaks(remaining, settings)


def require_own(folder: Path, file: str) -> None:
    """Refuse a file of a run that belongs elsewhere, or all files where the run.json does.

    The result for a folder is reused while no file is added, removed or renamed and this one is unchanged.

    Raises:
        Damaged: If it belongs elsewhere.
    """
    key = (folder, *(_file_stamp(folder / name) for name in ("run.json", files.STATE, "rounds")))
    if key not in _checked or _checked[key][1].get(file) != _file_stamp(folder / file):
        if len(_checked) >= _MOST:
            _checked.pop(next(iter(_checked)), None)
        stamps = {round_file(index): _file_stamp(files.round_path(folder, index)) for index in round_numbers(folder)}
        _checked[key] = faults(folder), stamps | {files.STATE: _file_stamp(folder / files.STATE)}
    for name in ("run.json", file):
        if what := _checked[key][0].get(name):
            raise files.Damaged(folder / name, what, REMEDY)


_MOST = 64
"""Runs whose chains are remembered, at most."""

_Stamp = tuple[int, int, int] | None
_checked: dict[tuple[Path | _Stamp, ...], tuple[dict[str, str], dict[str, _Stamp]]] = {}


def _file_stamp(path: Path) -> _Stamp:
    try:
        entry = path.stat()
    except OSError:
        return None
    return entry.st_ino, entry.st_mtime_ns, entry.st_size


def require(folder: Path) -> None:
    """Raise Damaged with the first file of a run to be resumed that belongs elsewhere, or is of a later version."""
    for file, what in faults(folder).items():
        raise files.Damaged(folder / file, what, REMEDY)
    for index in round_numbers(folder):
        path = files.round_path(folder, index)
        with suppress(SafetensorError, OSError), safe_open(path, framework="numpy") as file:
            files.require_known(path, (file.metadata() or {}).get("format"))


class _Settings(NamedTuple):
    """What the content of rounds must agree with; clients of other programs (foreign) may start anywhere."""

    experiment: Experiment | None  # None where it is not accepted, as one of a later version
    engine: str
    foreign: bool


def _about(folder: Path) -> dict[str, Any]:
    try:
        return files.read_json(folder / "run.json")
    except files.Damaged:
        return {}


def _settings(about: Mapping[str, Any]) -> _Settings:
    experiment = None
    with suppress(ValueError, LookupError):
        experiment = validated(migrate(about))
    return _Settings(experiment, str(about.get("engine", "")), bool(about.get("imported")))


def _read_all(folder: Path) -> Iterator[Header | None]:
    """Headers of the rounds before the commit point, then of the state; None for an unreadable file."""
    state = round_headers.read_state(folder)
    for index in round_numbers(folder):
        if state is None or index < state.index:
            yield round_headers.read_round_file(folder, index)
    yield state


def _contradicted_by_name(folder: Path, about: Mapping[str, Any]) -> dict[str, str]:
    """A description that the folder's name contradicts, as no file of an older run names its run.

    A folder with any name but that of another run is taken as it is, so that users may rename theirs.
    """
    match = re.search(r"-s\d+-([0-9a-f]{8})$", folder.resolve().name)
    if match is None or about.get("imported") or about.get("hash") in (None, match[1]):
        return {}
    return {"run.json": f"describes run {about['hash']}, and the folder is named after run {match[1]}"}


def _cohorts(headers: Sequence[Header], experiment: Experiment) -> dict[str, str]:
    """Rounds of earlier versions whose clients are not those that the settings draw; run.json where that is all."""
    clients, seed = experiment.clients, experiment.seed
    rounds = [header for header in headers if not header.state and header.run is None]
    wrong = []
    for header in rounds:
        ids = np.concatenate([header.arrays["ids"], header.arrays.get("extras.excluded", np.zeros(0, int))])
        if not np.isin(ids, cohort(seed, header.index, clients.number, clients.per_round)).all():
            wrong.append(header.file)
    if len(wrong) == len(rounds) > 1:
        return {"run.json": "describes settings that draw other clients than the rounds record"}
    return dict.fromkeys(wrong, "records other clients than the run's settings draw; it is of another run")


def _breaks(headers: Sequence[Header | None], settings: _Settings) -> dict[str, str]:
    """Files at the breaks of a chain; an unreadable file (None) interrupts it and is not named."""
    wrong = dict[str, str]()
    stretches: list[list[Header]] = [[]]

    def end() -> None:
        for number in _foreign_stretches([len(stretch) for stretch in stretches]):
            for header in stretches[number]:
                wrong[header.file] = "does not follow from the round before it, or what follows does not from it"
        stretches[:] = [[]]

    for header in headers:
        last = stretches[-1][-1] if stretches[-1] else None
        follows = None if header is None or last is None else _follows(last, header, settings)
        if header is None or (last is not None and follows is None):
            end()
        elif follows is False:
            stretches.append([])
        if header is not None:
            stretches[-1].append(header)
    end()
    return {file: f"{what}; it is of another run" for file, what in wrong.items()}


def _foreign_stretches(sizes: Sequence[int]) -> list[int]:
    """Stretches that belong to another run: at least one of two neighbours, with the fewest files in all.

    Where several choices have equally few files, all of them are named.
    """

    def fewest(part: Sequence[int]) -> int:
        with_last, without = 0, 0
        for size in part:
            with_last, without = size + min(with_last, without), with_last
        return min(with_last, without)

    least = fewest(sizes)
    if not least:
        return []
    return [i for i, size in enumerate(sizes) if size + fewest(sizes[:i]) + fewest(sizes[i + 1 :]) == least]


def _follows(left: Header, right: Header, settings: _Settings) -> bool | None:
    """Whether a file is the next one after a round; None where that cannot be decided."""
    if right.index != left.index + 1 and not settings.foreign:
        return None
    if right.before is not None:
        return right.before == left.link if right.before else None
    if settings.experiment is None:
        return None
    return continues(left, right, settings.experiment, settings.engine, foreign=settings.foreign)
