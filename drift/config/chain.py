"""Whether the files of a run belong to it and follow each other.

Files name their run and the round before them (`drift.store.links`). Files of earlier versions name neither; their Gram
matrices must continue each other: |start + step| of a round is |start| of the next one, its mean update is the next
one's previous update, and the state is the last end. Only headers and small arrays are read here.
"""

from __future__ import annotations

import math
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from drift.config.experiment import Experiment
from drift.config.load import validated
from drift.config.method import Method
from drift.config.random_keys import cohort
from drift.store import files, links
from drift.store.gram import CLIENTS, PREVIOUS, START, STEP
from landscape.results.parsed_text import json_table

NUMBERED = re.compile(r"\d{6}\.safetensors")
"""Names of round files."""

REMEDY = "Put the run's own file in its place, or see fedscape verify --repair."


@dataclass(frozen=True)
class Piece:
    """What the chain needs of a file.

    Args:
        file: Its path inside the run's folder.
        index: Number of the round; of the state, the next round.
        run, before: What its header names; None in files of earlier versions.
        arrays: `drift.store.links.LINKED` of a round, and `excluded`; of a state without `before`, squares of its
        vectors.
    """

    file: str
    index: int
    run: str | None
    before: str | None
    arrays: Mapping[str, np.ndarray] = field(repr=False)

    @property
    def state(self) -> bool:
        """Whether it is the run's state."""
        return self.file == files.STATE

    @property
    def link(self) -> str:
        """What the next file names this round by."""
        return links.link(self.index, self.arrays)


def faults(folder: Path) -> dict[str, str]:
    """What is wrong with the files of a run that belong to another run or another place in it, by file.

    `run.json` is named where all other files agree on another run. Between files that name no run, a place where the
    chain breaks names the fewer files of its two sides. Files that cannot be read are no matter of the chain.
    """
    return _checked(folder)


def require_own(folder: Path, file: str) -> None:
    """Refuse a file of a run that belongs elsewhere, or all files where the run.json does.

    What the other files say is remembered as long as none is added, removed or renamed and this one stays as it was.

    Raises:
        Damaged: If it does.
    """
    key = (folder, *(_fact(folder / name) for name in ("run.json", files.STATE, "rounds")))
    if key not in _known or _known[key][1].get(file) != _fact(folder / file):
        if len(_known) >= _REMEMBERED:
            _known.pop(next(iter(_known)), None)
        facts = {_file(index): _fact(files.round_path(folder, index)) for index in numbers(folder)}
        _known[key] = _checked(folder), facts | {files.STATE: _fact(folder / files.STATE)}
    for name in ("run.json", file):
        if what := _known[key][0].get(name):
            raise files.Damaged(folder / name, what, REMEDY)


_REMEMBERED = 64
"""Runs whose chains are remembered, at most."""

_Fact = tuple[int, int, int] | None
_known: dict[tuple[Path | _Fact, ...], tuple[dict[str, str], dict[str, _Fact]]] = {}


def _fact(path: Path) -> _Fact:
    try:
        found = path.stat()
    except OSError:
        return None
    return found.st_ino, found.st_mtime_ns, found.st_size


def require(folder: Path) -> None:
    """Refuse to go on with a run some files of which belong elsewhere, or are of a later version.

    Raises:
        Damaged: With the first such file.
    """
    for file, what in faults(folder).items():
        raise files.Damaged(folder / file, what, REMEDY)
    for index in numbers(folder):
        path = files.round_path(folder, index)
        with suppress(SafetensorError, OSError), safe_open(path, framework="numpy") as file:
            files.require_known(path, (file.metadata() or {}).get("format"))


def last_link(folder: Path, following: int) -> str:
    """Link of the last round before round `following`, as the state names it; "" where there is none."""
    state = read_state(folder)
    if state is not None and state.before is not None and state.index == following:
        return state.before
    before = [index for index in numbers(folder) if index < following]
    piece = read_round(folder, before[-1]) if before else None
    return "" if piece is None else piece.link


def heads(folder: Path) -> set[str]:
    """Links of all rounds of a run, as their files give them and as the files after them name them."""
    pieces = [
        piece for piece in (*(read_round(folder, index) for index in numbers(folder)), read_state(folder)) if piece
    ]
    return {""} | {piece.before or "" for piece in pieces} | {piece.link for piece in pieces if not piece.state}


def numbers(folder: Path) -> list[int]:
    """Numbers of the round files, ascending."""
    rounds = folder / "rounds"
    names = os.listdir(rounds) if rounds.is_dir() else []
    return sorted(int(name.partition(".")[0]) for name in names if NUMBERED.fullmatch(name))


def read_round(folder: Path, index: int) -> Piece | None:
    """Header and small arrays of a round; None where they cannot be read, or another round's number is stated."""
    piece = _stated(folder, index)
    return None if piece is None or piece.index != index else piece


def _stated(folder: Path, index: int) -> Piece | None:
    """What a round's file states, whatever round that is; None where it cannot be read."""
    path = files.round_path(folder, index)
    try:
        files.require_inside(path, folder)
        with safe_open(path, framework="numpy") as file:
            about = json_table((file.metadata() or {}).get("about", "{}"))
            names = [*links.LINKED, *({"extras.excluded"} & set(file.keys()))]
            arrays = {name: file.get_tensor(name) for name in names}
        return Piece(_file(index), int(about["round"]), *_named(about), arrays)
    except _UNREADABLE:
        return None


def read_state(folder: Path) -> Piece | None:
    """Header of the state, and without one the squares of its model and mean update; None where it cannot be read."""
    path = folder / files.STATE
    try:
        files.require_inside(path, folder)
        with safe_open(path, framework="numpy") as file:
            about = json_table((file.metadata() or {}).get("about", "{}"))
            run, before = _named(about)
            names = {"theta", "previous"} & set(file.keys()) if before is None else set[str]()
            squares = {name: _square(file.get_tensor(name)) for name in names}
        return Piece(files.STATE, int(about["next"]), run, before, squares)
    except _UNREADABLE:
        return None


def _file(index: int) -> str:
    """Path of a round's file inside the run's folder."""
    return f"rounds/{index:06d}.safetensors"


_UNREADABLE = (SafetensorError, OSError, LookupError, ValueError, TypeError, AttributeError)


def _named(about: Mapping[str, Any]) -> tuple[str | None, str | None]:
    run, before = about.get("run"), about.get("before")
    return None if run is None else str(run), None if before is None else str(before)


def _square(vector: np.ndarray) -> np.ndarray:
    return np.square(vector, dtype=np.float64).sum()


def _checked(folder: Path) -> dict[str, str]:
    about = _about(folder)
    run, settings = links.identity(about), _settings(about)
    pieces = list(_pieces(folder))
    found = {
        piece.file: f"holds round {piece.index}, not {int(piece.file[-18:-12])}; it was renamed or copied"
        for piece in pieces
        if piece is not None and not piece.state and piece.file != _file(piece.index)
    }
    named = [piece for piece in pieces if piece is not None and piece.run is not None]
    others = [piece for piece in named if run and piece.run != run]
    if others and len(others) == len(named) and len({piece.run for piece in others}) == 1:
        found["run.json"] = f"describes run {run}, and its rounds and state are of run {others[0].run}"
    else:
        found |= {piece.file: f"is of run {piece.run}, and this is run {run}" for piece in others}
    if not named:
        found |= _misplaced(folder, about)
    if settings.experiment is not None and not settings.foreign:
        found |= _cohorts([piece for piece in pieces if piece and piece.file not in found], settings.experiment)
    remaining = [None if piece is None or piece.file in found else piece for piece in pieces]
    return found | _breaks(remaining, settings)


@dataclass(frozen=True)
class _Settings:
    """What the content of rounds must agree with.

    Args:
        experiment: The settings; None where they are not accepted, as those of a later version.
        engine: serial, batched, recorded or imported.
        foreign: Whether another program trained the run, whose clients may start anywhere.
    """

    experiment: Experiment | None
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
        experiment = validated(about.get("experiment", {}))
    return _Settings(experiment, str(about.get("engine", "")), bool(about.get("imported")))


def _pieces(folder: Path) -> Iterator[Piece | None]:
    """Rounds before the commit point, then the state; None for what cannot be read."""
    state = read_state(folder)
    for index in numbers(folder):
        if state is None or index < state.index:
            yield _stated(folder, index)
    yield state


def _misplaced(folder: Path, about: Mapping[str, Any]) -> dict[str, str]:
    """A description that the folder's name contradicts, as no file of an older run names its run.

    A folder with any name but that of another run is taken as it is, so that users may rename theirs.
    """
    match = re.search(r"-s\d+-([0-9a-f]{8})$", folder.resolve().name)
    if match is None or about.get("imported") or about.get("hash") in (None, match[1]):
        return {}
    return {"run.json": f"describes run {about['hash']}, and the folder is named after run {match[1]}"}


def _cohorts(pieces: Sequence[Piece], experiment: Experiment) -> dict[str, str]:
    """Rounds of earlier versions whose clients are not those that the settings draw; run.json where that is all."""
    clients, seed = experiment.clients, experiment.seed
    rounds = [piece for piece in pieces if not piece.state and piece.run is None]
    wrong = []
    for piece in rounds:
        ids = np.concatenate([piece.arrays["ids"], piece.arrays.get("extras.excluded", np.zeros(0, int))])
        if not np.isin(ids, cohort(seed, piece.index, clients.number, clients.per_round)).all():
            wrong.append(piece.file)
    if len(wrong) == len(rounds) > 1:
        return {"run.json": "describes settings that draw other clients than the rounds record"}
    return dict.fromkeys(wrong, "records other clients than the run's settings draw; it is of another run")


def _breaks(pieces: Sequence[Piece | None], settings: _Settings) -> dict[str, str]:
    """Files at the breaks of a chain, where None interrupts it without a word."""
    found = dict[str, str]()
    stretches: list[list[Piece]] = [[]]

    def end() -> None:
        for number in _blamed([len(stretch) for stretch in stretches]):
            for piece in stretches[number]:
                found[piece.file] = "does not follow from the round before it, or what follows does not from it"
        stretches[:] = [[]]

    for piece in pieces:
        last = stretches[-1][-1] if stretches[-1] else None
        follows = None if piece is None or last is None else _follows(last, piece, settings)
        if piece is None or (last is not None and follows is None):
            end()
        elif follows is False:
            stretches.append([])
        if piece is not None:
            stretches[-1].append(piece)
    end()
    return {file: f"{what}; it is of another run" for file, what in found.items()}


def _blamed(sizes: Sequence[int]) -> list[int]:
    """Stretches that are not the run's own: of two neighbours one at least, with the fewest files in all.

    Where several choices have as few files, all of them are named.
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


def _follows(left: Piece, right: Piece, settings: _Settings) -> bool | None:
    """Whether a file is the next one after a round; None where nothing tells."""
    if right.index != left.index + 1 and not settings.foreign:
        return None
    if right.before is not None:
        return right.before == left.link if right.before else None
    return None if settings.experiment is None else _continues(left, right, settings.experiment, settings)


def _continues(left: Piece, right: Piece, experiment: Experiment, settings: _Settings) -> bool | None:
    """Whether the Gram matrix of a round leads to the next one, or to the state; to rounding of float32."""
    matrix, weights = left.arrays["gram"], _weights(left, experiment, settings.engine)
    if matrix.shape != (len(weights) + CLIENTS,) * 2:
        return None
    size = math.sqrt(abs(matrix[START, START]))
    end = matrix[START, START] + 2 * matrix[START, STEP] + matrix[STEP, STEP]
    slack_end = 1e-6 * math.sqrt(abs(matrix[STEP, STEP])) + 1e-7 * size
    spread = float(weights @ np.sqrt(np.abs(np.diagonal(matrix)[CLIENTS:])))
    mean, slack_mean = float(weights @ matrix[CLIENTS:, CLIENTS:] @ weights), 1e-6 * spread + 5e-7 * size
    pairs = list[tuple[float, float, float]]()
    if right.state:
        pairs += [(end, float(right.arrays["theta"]), slack_end)] if "theta" in right.arrays else []
        if len(weights) and "previous" in right.arrays:
            pairs.append((mean, float(right.arrays["previous"]), slack_mean))
    else:
        other = right.arrays["gram"]
        if min(other.shape) < CLIENTS:
            return None
        ahead_by, expects = lead(experiment.method), _expects_mean(experiment.method)
        if ahead_by is not None and not settings.foreign:
            square = (
                other[START, START] - 2 * ahead_by * other[START, PREVIOUS] + ahead_by**2 * other[PREVIOUS, PREVIOUS]
            )
            pairs.append((end, float(square), slack_end))
        if expects and len(weights):
            pairs.append((mean, float(other[PREVIOUS, PREVIOUS]), slack_mean))
    known = [pair for pair in pairs if all(map(math.isfinite, pair))]
    return all(_same_square(*pair) for pair in known) if known else None


def _same_square(one: float, two: float, slack: float) -> bool:
    """Whether two squared lengths are equal, where the vectors differ by `slack` at most."""
    return abs(one - two) <= 2 * math.sqrt(max(abs(one), abs(two))) * slack + slack**2


def _weights(piece: Piece, experiment: Experiment, engine: str) -> np.ndarray:
    """What the mean update of a round was weighted by, shape (m,)."""
    import torch

    from drift.config.cohort_weights import cohort_weights

    if engine == "recorded":
        return np.asarray(piece.arrays["weights"], np.float64)
    return cohort_weights(experiment, torch.from_numpy(piece.arrays["sizes"])).numpy()


def lead(method: Method) -> float | None:
    """Multiple of the expected update by which clients start ahead of the global model; None: not known."""
    base = getattr(method, "base", None)
    if isinstance(base, Method):  # a wrapper sends what its base sends, from the global model where that is fed back
        return lead(base) if getattr(method, "feedback", True) else None
    if type(method).broadcast is Method.broadcast:
        return 0.0
    if hasattr(method, "predict") and hasattr(method, "server_lr"):
        return float(method.server_lr) if method.predict else 0.0
    return None


def _expects_mean(method: Method) -> bool:
    """Whether the previous update that a round records is the mean of the round before."""
    base = getattr(method, "base", None)
    return _expects_mean(base) if isinstance(base, Method) else type(method).momentum is Method.momentum
