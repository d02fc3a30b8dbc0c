"""Names and values as text of matplotlib, which reads `$` as mathematics, and the way back to plain text."""

import re


def literal(text: object) -> str:
    """A name or value as text of matplotlib, set as it stands: `$` begins no mathematics, `_` hides it in no legend."""
    escaped = str(text).replace("$", r"\$")
    return f" {escaped}" if escaped.startswith("_") else escaped


def plain(text: str) -> str:
    """A text of matplotlib in plain characters: those of `literal` again, and mathematics without its commands."""
    return _DOLLARS.sub(_without_commands, text)


def _without_commands(match: re.Match[str]) -> str:
    return "$" if match[1] is None else re.sub(r"[\\{}]", "", match[1].replace(r"\,", " "))


_DOLLARS = re.compile(r"\\\$|\$((?:[^$\\]|\\[^$])*)\$")
