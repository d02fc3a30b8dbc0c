"""What a folder of checkpoints holds, by patterns; no file is read."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from drift.importers.patterns import Patterns, expression
from drift.importers.programs import SHIPPED
from drift.store.foreign_tensors import SUFFIXES
from drift.store.guarded_load import require_inside

NUMBERS = 1_000_000
"""Numbers of clients below this are taken as they are; larger ones are names."""


@dataclass(frozen=True)
class Files:
    """Checkpoints of one round: global model after it, what clients received, client models by number or name."""

    end: Path | None
    start: Path | None
    clients: dict[int | str, Path]


@dataclass(frozen=True)
class Found:
    """What a folder holds, by patterns.

    Args:
        rounds: Files by round, ascending.
        averaged: Whether no global model was looked for or found, so that means of clients stand for them.
        others: Files with a suffix of checkpoints that no pattern takes.
        links: Linked folders, which are not followed.
    """

    rounds: dict[int, Files]
    averaged: bool
    others: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)

    def numbers(self) -> dict[int | str, int]:
        """Number of each client: its own where all have one, else its place among all names."""
        names = {client for one in self.rounds.values() for client in one.clients}
        if all(isinstance(name, int) and name < NUMBERS for name in names):
            return {name: int(name) for name in sorted(names)}
        return {name: place for place, name in enumerate(sorted(names, key=str))}

    def usable(self) -> dict[int, Files]:
        """Rounds of which an end is known; those with a known start among them become rounds of the run."""
        return {index: one for index, one in self.rounds.items() if one.end is not None or self.averaged}

    def started(self) -> list[int]:
        """Rounds of which start and end are known."""
        usable = self.usable()
        return [index for index, one in usable.items() if one.start is not None or index - 1 in usable]


def found(folder: str | Path, patterns: Patterns) -> Found:
    """What a folder holds; nothing is read.

    Raises:
        LookupError: If no file has a place.
        ValueError: If a file that has one is a link out of the folder, or two files claim one place.
    """
    folder = Path(folder)
    names, links = _files(folder)
    taken: set[str] = set()
    clients = _matched(folder, names, (patterns.clients,) if patterns.clients else (), taken)
    ends = _matched(folder, names, patterns.beside(), taken)
    starts = _matched(folder, names, (patterns.starts,) if patterns.starts else (), taken)
    rounds = {}
    for index in sorted({index for index, _ in (*clients, *ends)}):
        cohort = [(name, path) for (number, name), path in clients.items() if number == index]
        ordered = dict(sorted(cohort, key=lambda one: (isinstance(one[0], str), one[0])))
        rounds[index] = Files(ends.get((index, "")), starts.get((index, "")), ordered)
    if not rounds:
        shown = f"; it has {', '.join(names[:5])}" if names else ""
        raise LookupError(f"{folder} has no checkpoints that fit {patterns}{shown}. {_advice(names)}")
    return Found(rounds, not ends and patterns.globals is None, [name for name in names if name not in taken], links)


def _advice(names: list[str]) -> str:
    """The shipped patterns that files fit, else what is expected."""
    fit = [
        program
        for program, shipped in SHIPPED.items()
        for text in (shipped.clients, shipped.globals)
        if text and any(expression(text).fullmatch(name) for name in names)
    ]
    if fit:
        return f"They fit --pattern {' or '.join(dict.fromkeys(fit))}."
    return (
        f"Expected without a pattern are round_000/global.pt, round_000/client_0.pt and so on ({', '.join(SUFFIXES)})."
    )


def _files(folder: Path) -> tuple[list[str], list[str]]:
    """Paths of checkpoints below a folder, and linked folders."""
    names, links = [], []
    for place, folders, files in os.walk(folder):
        here = Path(place)
        links += [str((here / name).relative_to(folder)) for name in sorted(folders) if (here / name).is_symlink()]
        names += [(here / name).relative_to(folder).as_posix() for name in files if Path(name).suffix in SUFFIXES]
    return sorted(names), links


def _matched(
    folder: Path, names: list[str], patterns: tuple[str, ...], taken: set[str]
) -> dict[tuple[int, int | str], Path]:
    """Files by round and client; the client of a global model is "". The first pattern that fits anything counts."""
    for pattern in patterns:
        fits: dict[tuple[int, int | str], Path] = {}
        fitting = expression(pattern)
        for name in names:
            match = fitting.fullmatch(name)
            if match is None or name in taken:
                continue
            path = folder / name
            require_inside(path, folder)
            client = match.groupdict().get("client", "")
            key = int(match["round"]), int(client) if client.isdecimal() else client
            if key in fits:
                raise ValueError(
                    f"{fits[key]} and {path} are both round {key[0]}, client {key[1]}; narrow the pattern."
                )
            fits[key] = path
        if fits:
            taken |= {path.relative_to(folder).as_posix() for path in fits.values()}
            return fits
    return {}
