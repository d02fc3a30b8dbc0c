"""Whether the files of a run belong to it and follow each other.

Files name their run and the round before them (`drift.store.links`). Only headers and small arrays are read
(`drift.store.round_headers`), whose digest is compared. Needs no torch.
"""

import re
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from pathlib import Path
from typing import Any

from drift.store import links, numpy_files, round_headers
from drift.store.numpy_files import Damaged
from drift.store.paths import STATE, Stamp, round_file, stamp
from drift.store.round_headers import Header, round_numbers

REMEDY = "Put the run's own file in its place, or see fedscape verify --repair."


@dataclass(frozen=True)
class Chain:
    """What the files of a run state of themselves and of each other.

    Args:
        folder: Folder of the run.
        following: Number of the round after the last complete one, by the state; 0 without a state.
        wrong: Files that were altered, or belong to another run or to another place in it, with what is wrong.
            `run.json` is among them where most of the other files agree on another run, or the name of the folder
            contradicts it. A place where the chain breaks names the side with fewer files.
        links: Links of the rounds by number, "" where none is known. That of a round that cannot be read is the one by
            which the next file names it.
        names: What names the rounds up to each (`drift.store.links.head`), after "" for none.
        runs: Identities of the runs that the other files name.
    """

    folder: Path
    following: int
    wrong: dict[str, Damaged]
    links: dict[int, str]
    names: list[str]
    runs: frozenset[str]

    @property
    def faults(self) -> dict[str, str]:
        """What is wrong with files, in words."""
        return {file: fault.what for file, fault in self.wrong.items()}

    @property
    def heads(self) -> list[str]:
        """What names the rounds up to each, after "" for none; nothing where one is lost."""
        return self.names if all(self.links.values()) else []

    def head(self) -> str:
        """What names all complete rounds; "" for none.

        Raises:
            Damaged: If the state, or one of them, was altered or belongs elsewhere.
        """
        self.require(STATE, *(map(round_file, self.links) if self.following else ()))
        return self.names[-1] if self.following else ""

    def link_before(self, following: int) -> str:
        """Link of the last round before round `following`; "" where there is none."""
        return self.links.get(max((index for index in self.links if index < following), default=-1), "")

    def require(self, *files: str) -> None:
        """Raise Damaged for the first of run.json and the files that is not as it should be."""
        for fault in (self.wrong[name] for name in ("run.json", *files) if name in self.wrong):
            raise type(fault)(fault.path, fault.what, fault.remedy)


def is_known(folder: Path) -> bool:
    """Whether the name of the folder says that the run.json in it is its own, or another file where it says nothing."""
    about, named = _about(folder), _named_after(folder)
    return links.identity(about) in read(folder).runs if named is None else named == about.get("hash")


def remembered(folder: Path, *files: str, check: bool = False) -> Chain:
    """The chain of a run; that of an earlier call while no file was added, removed or renamed.

    Args:
        files: Files in addition to run.json and state that must be unchanged.
        check: Every round must be unchanged.
    """
    key = (folder, *(stamp(folder / name) for name in ("run.json", STATE, "rounds")))
    _, known = _cache.get(key, (None, {}))
    if not known or any(known.get(file) != stamp(folder / file) for file in (known if check else files)):
        if len(_cache) >= _MOST:
            _cache.pop(next(iter(_cache)), None)
        stamps = {name: stamp(folder / name) for name in (STATE, *map(round_file, round_numbers(folder)))}
        _cache[key] = read(folder), stamps
    return _cache[key][0]


_MOST = 64
"""Runs whose chains are remembered, at most."""

_cache: dict[tuple[Path | Stamp | None, ...], tuple[Chain, dict[str, Stamp | None]]] = {}


def read(folder: Path) -> Chain:
    """The chain of a run, by the headers of all its files."""
    about, headers, wrong = _about(folder), list[Header | None](), dict[str, Damaged]()
    run = links.identity(about)
    for file, header in _read_all(folder):
        if isinstance(header, Damaged):
            wrong[file] = header
        elif not header.state and (what := header.misplaced(int(file[-18:-12]))):
            wrong[file] = _elsewhere(folder, file, what)
        headers.append(None if isinstance(header, Damaged) else header)
    named = [header for header in headers if header is not None]
    if what := _contradicted(folder, about, Counter(header.run for header in named)):
        wrong["run.json"] = _elsewhere(folder, "run.json", what)
    elif about:
        foreign = {header.file: header.foreign(run) for header in named}
        wrong |= {file: _elsewhere(folder, file, what) for file, what in foreign.items() if what}
    remaining = [None if header is None or header.file in wrong else header for header in headers]
    gaps = bool(about.get("imported"))
    for file in _breaks(remaining, gaps=gaps):
        what = "does not follow from the round before it, or what follows does not from it; it is of another run"
        wrong[file] = _elsewhere(folder, file, what)
    usable = [header for header in named if header.file not in wrong]
    following = next((header.index for header in named if header.state), 0)
    known = _links(usable, round_numbers(folder), gaps=gaps)
    names = list(accumulate(known.values(), links.head, initial=""))
    return Chain(folder, following, wrong, known, names, frozenset(header.run for header in named))


def _links(usable: Sequence[Header], present: Sequence[int], *, gaps: bool) -> dict[int, str]:
    """Links of the rounds before the commit point; of those that cannot be read, as the next file names them."""
    following = next((header.index for header in usable if header.state), max(present, default=-1) + 1)
    numbers = [index for index in present if index < following] if gaps else range(following)
    broken = dict.fromkeys(numbers, "")
    for header in usable:
        if (at := bisect_left(numbers, header.index)) > 0:
            broken[numbers[at - 1]] = header.before
    return broken | {header.index: header.link for header in usable if not header.state}


def _elsewhere(folder: Path, file: str, what: str) -> Damaged:
    return Damaged(folder / file, what, REMEDY)


def _about(folder: Path) -> dict[str, Any]:
    try:
        return numpy_files.read_json(folder / "run.json")
    except Damaged:
        return {}


def _read_all(folder: Path) -> Iterator[tuple[str, Header | Damaged]]:
    """The rounds before the commit point, then the state: file, and its header or what is wrong with it."""
    state = _read(folder, STATE) if (folder / STATE).exists() else None
    for index in round_numbers(folder):
        if not isinstance(state, Header) or index < state.index:
            yield round_file(index), _read(folder, round_file(index))
    if state is not None:
        yield STATE, state


def _read(folder: Path, file: str) -> Header | Damaged:
    try:
        return round_headers.read_state(folder) if file == STATE else round_headers.read_small_arrays(folder / file)
    except Damaged as reason:
        return reason


def _named_after(folder: Path) -> str | None:
    """The hash of the settings in the name of a folder, as training gives it; users may rename it."""
    match = re.search(r"-s\d+-([0-9a-f]{8})$", folder.resolve().name)
    return match[1] if match else None


def _contradicted(folder: Path, about: Mapping[str, Any], runs: Counter[str]) -> str:
    """Why a description is not that of the files beside it; "" if it is, or nothing says so."""
    run, named = links.identity(about), _named_after(folder)
    most, count = runs.most_common(1)[0] if runs else ("", 0)
    if about and runs and most != run and (count > runs[run] or (count == runs[run] and named != about.get("hash"))):
        return f"describes run {run}, and {count} of {runs.total()} files beside it are of run {most or 'no name'}"
    if about.get("hash") and not about.get("imported") and not runs[run] and named not in (None, about["hash"]):
        return f"describes run {about['hash']}, and the folder is named after run {named}"
    return ""


def _breaks(headers: Sequence[Header | None], *, gaps: bool) -> list[str]:
    """Files at the breaks of a chain; an unreadable file (None) interrupts it and is not named."""
    wrong = list[str]()
    stretches: list[list[Header]] = [[]]

    def end() -> None:
        for number in _foreign_stretches([len(stretch) for stretch in stretches]):
            wrong.extend(header.file for header in stretches[number])
        stretches[:] = [[]]

    for header in headers:
        last = stretches[-1][-1] if stretches[-1] else None
        if header is None or (last is not None and header.index != last.index + 1 and not gaps):
            end()
        elif last is not None and header.before != last.link:
            stretches.append([])
        if header is not None:
            stretches[-1].append(header)
    end()
    return wrong


def _foreign_stretches(sizes: Sequence[int]) -> list[int]:
    """Stretches that belong to another run: at least one of two neighbours, with the fewest files in all.

    Where several choices have equally few files, all of them are named.
    """

    def fewest(numbers: Sequence[int]) -> int:
        with_last, without = 0, 0
        for size in numbers:
            with_last, without = size + min(with_last, without), with_last
        return min(with_last, without)

    least = fewest(sizes)
    if not least:
        return []
    return [i for i, size in enumerate(sizes) if size + fewest(sizes[:i]) + fewest(sizes[i + 1 :]) == least]
