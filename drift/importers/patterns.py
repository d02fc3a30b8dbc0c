"""Patterns of the paths of models in a folder, like `round{round}/client{client}.pt`."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import PurePosixPath


@dataclass(frozen=True)
class Patterns:
    """Paths below a folder, with `{round}` and `{client}` for numbers and names, and `*` for any part of a name.

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
        return tuple(str(path.parent / f"{name}{path.suffix}") for name in ("global", "server", "global_model"))

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
