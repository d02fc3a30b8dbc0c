"""The words of a figure's look as options of the command line; `figures.looks.look` says what they mean."""

from __future__ import annotations

from dataclasses import fields, make_dataclass
from typing import TYPE_CHECKING, Annotated, Any

from cyclopts import Parameter

from figures.commands.options import flag, several
from figures.looks import look


def _single(metavar: str, text: str, kind: type = str) -> Any:
    """An option with one value."""
    return Annotated[kind | None, Parameter(metavar=metavar, help=text)]


def _some(word: str, metavar: str, text: str) -> Any:
    """An option with one value or more."""
    return Annotated[list[str] | None, several(f"--{word}", metavar, help=text)]


_LIMITS = "axes, or LABEL=LOW:HIGH of those whose label begins so. By default by the data."

OPTIONS = {
    "methods": _some("methods", "NAME", "Only runs of these methods. By default all that it shows."),
    "over": _some("over", "SETTING", "Show each value of these settings, such as local.lr. By default one setting."),
    "paired_to": _single(
        "METHOD",
        "Show the others as differences to this method, seed by seed and on the same cohorts. By default not.",
    ),
    "rounds": _single("FIRST:LAST", "Only these rounds, such as 10:50 or 10:. By default all."),
    "seeds": _single(
        "HOW",
        "Several seeds as thin lines, as a band (one standard deviation) or as an interval (95 % t interval of the "
        "mean): lines, band or interval. By default lines below five seeds, else the interval.",
    ),
    "smooth": _single("N", "Moving mean of the lines over so many rounds. By default none.", int),
    "width": _single("WIDTH", "column (3.3 inches), page (6.9), slide, or inches. By default that of the figure."),
    "style": _single(
        "STYLE",
        "ieee, neurips, icml, nature (fonts and widths of these venues), a style of matplotlib, or FILE.mplstyle. By "
        "default none.",
    ),
    "palette": _single(
        "NAME",
        "Colour map of matplotlib: of methods if it has at most 20 colours (tab10), else of maps (cividis). By default "
        "that of the figure.",
    ),
    "levels": _single("N", "Number of contour levels. By default 14.", int),
    "xlim": _some("xlim", "LOW:HIGH", f"Limits of horizontal {_LIMITS}"),
    "ylim": _some("ylim", "LOW:HIGH", f"Limits of vertical {_LIMITS}"),
    "log": Annotated[bool, flag("--log", help="Logarithmic vertical axes, where the numbers are positive.")],
    "no_log": Annotated[bool, flag("--no-log", help="No logarithmic vertical axes.")],
    "title": _single("TEXT", "Title above the figure. By default none."),
    "labels": _some(
        "labels",
        "NAME=TEXT",
        "Other texts for methods and axes: --labels ima=Ours x=rounds y=accuracy. By default none.",
    ),
    "legend": _single("PLACE", "above, below, right, inside or none. By default above."),
    "no_note": Annotated[bool, flag("--no-note", help="Leave out the small line that states what is shown.")],
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
