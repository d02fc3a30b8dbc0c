"""Checkpoints in a folder by round and client, and the patterns of their paths, also of other programs."""

import os
import re
from dataclasses import dataclass, field
from pathlib import Path

from drift.importers.path_patterns import SHIPPED, Patterns, expression
from landscape.model.checkpoint import IN_FOLDER, INDEX, weight_files
from landscape.model.file_formats import SUFFIXES
from landscape.model.guarded_load import require_inside

NUMBERS = 1_000_000
"""Client numbers from this one on are treated as names."""


@dataclass(frozen=True)
class RoundFiles:
    """Checkpoints of a round: global model after it, start of the clients, client models by number or name."""

    end: Path | None
    start: Path | None
    clients: dict[int | str, Path]

    def paths(self) -> list[Path]:
        """All files: end, start, clients."""
        return [path for path in (self.end, self.start, *self.clients.values()) if path]


@dataclass(frozen=True)
class CheckpointFiles:
    """Checkpoints of a folder.

    Args:
        rounds: Files by round, ascending.
        averaged: Whether there are no global models, so that means of the clients replace them.
        others: Checkpoint files that fit no pattern.
        links: Linked folders, which are not followed.
    """

    rounds: dict[int, RoundFiles]
    averaged: bool
    others: list[str] = field(default_factory=list)
    links: list[str] = field(default_factory=list)

    def numbers(self) -> dict[int | str, int]:
        """Number of each client: its own if all clients have one, else its place among all names."""
        names = {client for files in self.rounds.values() for client in files.clients}
        if all(isinstance(name, int) and name < NUMBERS for name in names):
            return {name: int(name) for name in sorted(names)}
        return {name: index for index, name in enumerate(sorted(names, key=str))}

    def usable(self) -> dict[int, RoundFiles]:
        """Rounds with a known end; those with a known start become rounds of the run."""
        return {index: files for index, files in self.rounds.items() if files.end is not None or self.averaged}

    def started(self) -> list[int]:
        """Rounds with known start and end."""
        usable = self.usable()
        return [index for index, files in usable.items() if files.start is not None or index - 1 in usable]


def find_checkpoints(folder: str | Path, patterns: Patterns) -> CheckpointFiles:
    """Checkpoints of a folder, by the patterns of their paths; no file is read.

    Raises:
        LookupError: If no file fits a pattern.
        ValueError: If a fitting file is a link out of the folder, or two files are the same model of a round.
    """
    folder = Path(folder)
    names, links = _list_files(folder)
    used: set[str] = set()
    clients = _match(folder, names, (patterns.clients,) if patterns.clients else (), used)
    ends = _match(folder, names, patterns.global_patterns(), used)
    starts = _match(folder, names, (patterns.starts,) if patterns.starts else (), used)
    rounds = {}
    for index in sorted({index for index, _ in (*clients, *ends)}):
        cohort = [(name, path) for (number, name), path in clients.items() if number == index]
        ordered = dict(sorted(cohort, key=lambda entry: (isinstance(entry[0], str), entry[0])))
        rounds[index] = RoundFiles(ends.get((index, "")), starts.get((index, "")), ordered)
    if not rounds:
        shown = sorted(names, key=lambda name: not name.endswith(SUFFIXES))[:5]
        examples = f"; it has {', '.join(shown)}" if shown else ""
        raise LookupError(f"{folder} has no checkpoints that fit {patterns}{examples}. {_advice(names)}")
    inside = tuple(f"{name}/" for name in used)
    others = [name for name in names if name.endswith(SUFFIXES) and name not in used and not name.startswith(inside)]
    return CheckpointFiles(rounds, not ends and patterns.globals is None, others, links)


def _advice(names: list[str]) -> str:
    """The shipped patterns that the files fit, else the expected names."""
    programs = [
        program
        for program, shipped in SHIPPED.items()
        for text in (shipped.clients, shipped.globals)
        if text and any(expression(text).fullmatch(name) for name in names)
    ]
    if programs:
        return f"They fit --pattern {' or '.join(dict.fromkeys(programs))}."
    return f"Expected without pattern: round_000/global.pt, round_000/client_0.pt and so on ({', '.join(SUFFIXES)})."


def _list_files(folder: Path) -> tuple[list[str], list[str]]:
    """Paths of files and of folders with weights below a folder, and linked folders."""
    names, links = [], []
    for parent, folders, files in os.walk(folder):
        base = Path(parent)
        links += [
            (base / name).relative_to(folder).as_posix() for name in sorted(folders) if (base / name).is_symlink()
        ]
        names += [(base / name).relative_to(folder).as_posix() for name in files]
        if base != folder and _WEIGHTS & set(files):
            names.append(base.relative_to(folder).as_posix())
    return sorted(names), links


def _match(
    folder: Path, names: list[str], patterns: tuple[str, ...], used: set[str]
) -> dict[tuple[int, int | str], Path]:
    """Files of the first pattern that fits any, by round and client; the client of a global model is ""."""
    for pattern in patterns:
        fits: dict[tuple[int, int | str], Path] = {}
        choice = pattern[len(_without_choice(pattern)) :]
        fitting, any_end = expression(_without_choice(pattern)), pattern.endswith("*")
        for name in names:
            match = fitting.fullmatch(name)
            if match is None or name in used or (any_end and not name.endswith(SUFFIXES)):
                continue
            path = folder / f"{name}{choice}"
            for file in weight_files(folder / name) if (folder / name).is_dir() else [folder / name]:
                require_inside(file, folder)
            client = match.groupdict().get("client", "")
            key = int(match["round"]), int(client) if client.isdecimal() else client
            if key in fits:
                raise ValueError(f"{fits[key]} and {path} are both round {key[0]}, client {key[1]}; narrow it.")
            fits[key] = path
        if fits:
            used |= {_without_choice(path.relative_to(folder).as_posix()) for path in fits.values()}
            return fits
    return {}


_WEIGHTS = {*IN_FOLDER, *(f"{name}{INDEX}" for name in IN_FOLDER)}
"""Names by which a folder is a checkpoint."""


def _without_choice(text: str) -> str:
    """A path or pattern without the keys at its end, `[ema]`."""
    return re.sub(r"(\[[^\[\]]*\])+$", "", text)
