"""The words of a figure's look as options of the command line; `figures.looks.look` says what they mean."""

from dataclasses import fields, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from figures.commands.options import Integer, flag, several
from figures.looks import look


def _option(word: str, takes: str, text: str, value: str = "") -> Any:
    """The option of a word: a flag, or one with a value, a number or several values, named by `value` in its help."""
    if takes == "flag":
        return Annotated[bool, flag(f"--{word.replace('_', '-')}", help=text)]
    kind: Any = {"text": str, "number": Integer, "several": list[str]}[takes]
    parameter = several(f"--{word}", value, help=text) if takes == "several" else Parameter(metavar=value, help=text)
    return Annotated[kind | None, parameter]


OPTIONS = {
    word: _option(word, entry["takes"], entry["help"], entry.get("value", ""))
    for word, entry in look.TEXTS.items()
    if "help" in entry
}
"""Kind and help of each option; all are unset by default."""


class _Words:
    """How the figure looks."""

    def words(self) -> dict[str, Any]:
        """The words that were given.

        Raises:
            ValueError: If a value is not accepted.
        """
        values = {field.name: getattr(self, field.name) for field in fields(self)}  # type: ignore[arg-type]  # see below
        no_note, no_log = values.pop("no_note"), values.pop("no_log")
        values |= {"note": False if no_note else None, "log": False if no_log else values["log"] or None}
        words = {name: value for name, value in values.items() if value is not None}
        look.read(**words)  # refused here, before any run is opened
        return words


if TYPE_CHECKING:
    LookOptions = _Words
else:
    _WITH_DEFAULTS = [(name, kind, False if kind.__origin__ is bool else None) for name, kind in OPTIONS.items()]
    LookOptions = make_dataclass("LookOptions", _WITH_DEFAULTS, bases=(_Words,), frozen=True)
    LookOptions.__module__ = __name__
    LookOptions = Parameter(name="*")(LookOptions)
