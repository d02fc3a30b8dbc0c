"""The error for a name that does not exist: the nearest names, and the command that lists all."""

import difflib
from collections.abc import Collection, Iterable


def unknown(kind: str, name: str, known: Iterable[str], *, listed: str | None = None) -> str:
    """The error message for an unknown name: the nearest names, and all names if they are few.

    It names the command that lists all names; without such a command it lists them all.

    Args:
        kind: Kind of the name, in singular.
        listed: The command that lists every name; else that of `LISTED_BY`.
    """
    plain = {_plain(candidate): candidate for candidate in known}
    near = [plain[match] for match in difflib.get_close_matches(_plain(name), plain, n=NEAREST, cutoff=0.4)]
    likely = near if difflib.get_close_matches(_plain(name), plain, n=1) else []
    hint = f" Did you mean {likely[0]!r}?" if likely else ""
    listed = listed or LISTED_BY.get(kind)
    if not plain:
        return f"no {kind} named {name!r}; there is no {kind}."
    if len(plain) <= FEW or listed is None:
        hint_to_list = f" To list them: {listed}." if listed else ""
        return f"no {kind} named {name!r}.{hint} Known: {', '.join(plain.values())}.{hint_to_list}"
    nearest = f" Nearest: {', '.join(near)}." if near else ""
    return f"no {kind} named {name!r}.{hint}{nearest} All {len(plain)}: {listed}."


def _plain(name: str) -> str:
    """A name for comparison: dashes and underscores are the same, and so are capitals."""
    return name.replace("-", "_").strip("_").lower()


NEAREST = 5
"""Names that an error shows if there are many."""


FEW = 12
"""Names up to which an error shows all."""


_LISTED = ["analysis", "dataset", "experiment", "method", "model", "paper", "partition"]

LISTED_BY = {kind: f"fedscape list {kind.replace('sis', 'se')}s" for kind in _LISTED}
LISTED_BY |= {"figure": "fedscape figures list", "run": "fedscape runs"}
"""Commands that list every name of a kind."""


def require_known(kind: str, name: str, known: Collection[str]) -> None:
    """Raise ValueError with the message of `unknown` unless a name is known."""
    if name not in known:
        raise ValueError(unknown(kind, name, known))
