"""Patterns of the paths of checkpoints, and those of other programs."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath

from landscape.plugins import unknown
from landscape.results.parsed_text import from_toml


@dataclass(frozen=True)
class Patterns:
    """Paths below a folder, with `{round}` and `{client}` for numbers and names, and `*` for any part of a name.

    A path is that of a file or of a folder that `save_pretrained` wrote; keys at its end, as in
    `round{round}/client{client}.pt[ema]`, choose one of several state dicts.

    Args:
        clients: Client models; None: there are none.
        globals: Global models after the rounds; None: `global.pt` or `server.pt` in the folder of the clients.
        starts: Models that the clients of a round received; None: the global model of the previous round.
        assumed: Code that a program needs to write these files, where it does not write them by default.

    Raises:
        ValueError: If a pattern leads out of the folder, lacks `{round}`, or has another field.
    """

    clients: str | None = None
    globals: str | None = None
    starts: str | None = None
    assumed: str = field(default="", compare=False)

    def __post_init__(self) -> None:
        if self.clients is None and self.globals is None:
            raise ValueError("give a pattern of client models or global models, as in round{round}/client{client}.pt.")
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
    program: Patterns(**entry)
    for program, entry in from_toml((Path(__file__).parent / "programs.toml").read_bytes()).items()
}
"""Patterns by name of the program."""


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
