"""Checkpoints in a folder by round and client, and the patterns of their paths, also of other programs."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from landscape.model.checkpoint import IN_FOLDER, INDEX, weight_files
from landscape.model.file_formats import SUFFIXES
from landscape.model.guarded_load import require_inside
from landscape.plugins import unknown

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
        return {name: place for place, name in enumerate(sorted(names, key=str))}

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
    return (
        f"Expected without a pattern are round_000/global.pt, round_000/client_0.pt and so on ({', '.join(SUFFIXES)})."
    )


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
        place = pattern[len(_without_choice(pattern)) :]
        fitting, any_end = expression(_without_choice(pattern)), pattern.endswith("*")
        for name in names:
            match = fitting.fullmatch(name)
            if match is None or name in used or (any_end and not name.endswith(SUFFIXES)):
                continue
            path = folder / f"{name}{place}"
            for file in weight_files(folder / name) if (folder / name).is_dir() else [folder / name]:
                require_inside(file, folder)
            client = match.groupdict().get("client", "")
            key = int(match["round"]), int(client) if client.isdecimal() else client
            if key in fits:
                raise ValueError(
                    f"{fits[key]} and {path} are both round {key[0]}, client {key[1]}; narrow the pattern."
                )
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


@dataclass(frozen=True)
class Patterns:
    """Paths below a folder, with `{round}` and `{client}` for numbers and names, and `*` for any part of a name.

    A path is that of a file or of a folder that `save_pretrained` wrote; keys at its end, as in
    `round{round}/client{client}.pt[ema]`, choose one of several state dicts.

    Args:
        clients: Client models; None: there are none.
        globals: Global models after the rounds; None: `global.pt` or `server.pt` in the folder of the clients.
        starts: Models that the clients of a round received; None: the global model of the previous round.

    Raises:
        ValueError: If a pattern leads out of the folder, lacks `{round}`, or has another field.
    """

    clients: str | None = None
    globals: str | None = None
    starts: str | None = None

    def __post_init__(self) -> None:
        if self.clients is None and self.globals is None:
            raise ValueError(
                "give a pattern of client models or of global models, as in round{round}/client{client}.pt."
            )
        for text, client in ((self.clients, True), (self.globals, False), (self.starts, False)):
            if text is not None:
                _require(text, client)

    def global_patterns(self) -> tuple[str, ...]:
        """Patterns of global models, in the order in which they are tried."""
        if self.globals is not None:
            return (self.globals,)
        path = PurePosixPath(self.clients or "")
        if "{round}" not in str(path.parent):
            return ()
        end = "".join(path.suffixes[-2:]) if path.suffix == ".tar" else path.suffix
        return tuple(str(path.parent / f"{name}{end}") for name in ("global", "server", "global_model"))

    def __str__(self) -> str:
        return ", ".join(text for text in (self.clients, *self.global_patterns(), self.starts) if text)


def expression(pattern: str) -> re.Pattern[str]:
    """The regular expression of a pattern; a repeated field matches the same text."""
    seen: set[str] = set()
    parts = []
    for piece in re.split(r"(\{round\}|\{client\}|\*)", pattern):
        name = piece.strip("{}")
        if piece == "*":
            parts.append("[^/]*?")
        elif piece in ("{round}", "{client}"):
            body = r"\d{1,6}" if name == "round" else "[^/]+?"
            parts.append(f"(?P={name})" if name in seen else f"(?P<{name}>{body})")
            seen.add(name)
        else:
            parts.append(re.escape(piece))
    return re.compile("".join(parts))


def _require(text: str, client: bool) -> None:
    parts = PurePosixPath(text).parts
    if text.startswith("/") or ".." in parts or "\\" in text:
        raise ValueError(f"pattern {text!r} leads out of the folder; write it below the folder that is imported.")
    fields = set(re.findall(r"\{(.*?)\}", text))
    accepted = {"round", "client"} if client else {"round"}
    if fields != accepted:
        wanted = " and ".join(f"{{{name}}}" for name in sorted(accepted, reverse=True))
        raise ValueError(
            f"pattern {text!r} has {', '.join(sorted(fields)) or 'no field'}; it takes {wanted}. Models without rounds "
            "need no import: docs/howto-checkpoints.md."
        )


SHIPPED: Mapping[str, Patterns] = {
    "fedscape": Patterns("round*{round}/client_{client}.*", "round*{round}/global.*", "round*{round}/start.*"),
    "flower": Patterns(None, "round-{round}-weights.npz"),
    "pfllib": Patterns("client_{client}_model_{round}.pt", "server_model_{round}.pt"),
    "fl-bench": Patterns(None, "*_{round}_*.pt"),
    "fedlab": Patterns("round_{round}/client_{client}.pt", "round_{round}/server.pt"),
}
"""Patterns by name of the program."""

ASSUMED: Mapping[str, str] = {
    "flower": (
        "np.savez(f'round-{server_round}-weights.npz', *arrays) in every round, as Flower's guide on checkpoints has "
        "it; arrays have no names there, so --task or --model is needed"
    ),
    "pfllib": (
        "PFLlib saves a whole module once, over the one before. Call in every round, in server and clients, "
        "save_item(model.state_dict(), f'model_{round}'), which writes server_model_3.pt and client_0_model_3.pt"
    ),
    "fl-bench": (
        "FL-bench saves DATASET_ROUNDS_MODEL.pt once, at the end (common.save_model). Call in every round, at the end "
        "of train_one_round, torch.save(self.public_model_params, self.output_dir / "
        "f'{dataset}_{self.current_epoch}_{model}.pt'); clients are not saved"
    ),
    "fedlab": (
        "FedLab writes no models and names no files. Call in every round, with a folder of your own, "
        "torch.save(handler.model_parameters, f'round_{handler.round}/server.pt') and for each client "
        "torch.save(parameters, f'round_{handler.round}/client_{id}.pt'): vectors of the whole state dict, so "
        "--task or --model is needed"
    ),
}
"""Code that a program needs to write the files of its patterns, where it does not write them by default.

Sources: github adap/flower, how-to-save-and-load-model-checkpoints.rst; TsingZ0/PFLlib, system/flcore, save_item in
serverbase.py and clientbase.py; KarhouTam/FL-bench, src/server/fedavg.py, run; SMILELab-FL/FedLab,
fedlab/utils/serialization.py and fedlab/contrib/algorithm/basic_server.py.
"""


def parse_patterns(text: str) -> Patterns:
    """Shipped patterns of a program by its name, else the pattern of client or global models.

    Raises:
        ValueError: If the text is neither; the message lists the programs.
    """
    if text in SHIPPED:
        return SHIPPED[text]
    if "{" not in text:
        raise ValueError(f"{unknown('pattern', text, SHIPPED)} Or write one, as round{{round}}/client{{client}}.pt.")
    return Patterns(text) if "{client}" in text else Patterns(None, text)
