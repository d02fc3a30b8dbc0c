"""The words of a figure's look as options of the command line; `figures.looks.look` says what they mean."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import Annotated, Any

from cyclopts import Parameter

from figures.commands.options import flag, several
from figures.looks import look


@Parameter(name="*")
@dataclass(frozen=True)
class LookOptions:
    """How the figure looks."""

    methods: Annotated[
        list[str] | None, several("--methods", "NAME", "Only runs of these methods. By default all that it shows.")
    ] = None
    over: Annotated[
        list[str] | None,
        several("--over", "SETTING", "Show each value of these settings, such as local.lr. By default one setting."),
    ] = None
    paired_to: Annotated[
        str | None,
        Parameter(
            metavar="METHOD",
            help="Show the others as differences to this method, seed by seed and on the same cohorts. By default not.",
        ),
    ] = None
    rounds: Annotated[
        str | None, Parameter(metavar="FIRST:LAST", help="Only these rounds, such as 10:50 or 10:. By default all.")
    ] = None
    seeds: Annotated[
        str | None,
        Parameter(
            metavar="HOW",
            help="Several seeds as thin lines, as a band (one standard deviation) or as an interval (95 % t interval "
            "of the mean): lines, band or interval. By default lines below five seeds, else the interval.",
        ),
    ] = None
    smooth: Annotated[
        int | None, Parameter(metavar="N", help="Moving mean of the lines over so many rounds. By default none.")
    ] = None
    width: Annotated[
        str | None,
        Parameter(
            metavar="WIDTH", help="column (3.3 inches), page (6.9), slide, or inches. By default that of the figure."
        ),
    ] = None
    style: Annotated[
        str | None,
        Parameter(
            metavar="STYLE",
            help="ieee, neurips, icml, nature (fonts and widths of these venues), a style of matplotlib, or "
            "FILE.mplstyle. By default none.",
        ),
    ] = None
    palette: Annotated[
        str | None,
        Parameter(
            metavar="NAME",
            help="Colour map of matplotlib: of methods if it has at most 20 colours (tab10), else of maps "
            "(cividis). By default that of the figure.",
        ),
    ] = None
    levels: Annotated[int | None, Parameter(metavar="N", help="Number of contour levels. By default 14.")] = None
    xlim: Annotated[
        list[str] | None,
        several(
            "--xlim",
            "LOW:HIGH",
            "Limits of horizontal axes, or LABEL=LOW:HIGH of those whose label begins so. By default by the data.",
        ),
    ] = None
    ylim: Annotated[
        list[str] | None,
        several(
            "--ylim",
            "LOW:HIGH",
            "Limits of vertical axes, or LABEL=LOW:HIGH of those whose label begins so. By default by the data.",
        ),
    ] = None
    log: Annotated[bool, flag("--log", "Logarithmic vertical axes, where the numbers are positive.")] = False
    no_log: Annotated[bool, flag("--no-log", "No logarithmic vertical axes.")] = False
    title: Annotated[str | None, Parameter(metavar="TEXT", help="Title above the figure. By default none.")] = None
    labels: Annotated[
        list[str] | None,
        several(
            "--labels",
            "NAME=TEXT",
            "Other texts for methods and axes: --labels ima=Ours x=rounds y=accuracy. By default none.",
        ),
    ] = None
    legend: Annotated[
        str | None,
        Parameter(metavar="PLACE", help="above, below, right, inside or none. By default above."),
    ] = None
    no_note: Annotated[bool, flag("--no-note", "Leave out the small line that states what is shown.")] = False

    def words(self) -> dict[str, Any]:
        """The words that were given.

        Raises:
            ValueError: If a value is not accepted.
        """
        values = {part.name: getattr(self, part.name) for part in fields(self)}
        values["note"] = None if not values.pop("no_note") else False
        if values.pop("no_log"):
            values["log"] = False
        elif not values["log"]:
            values["log"] = None
        words = {name: value for name, value in values.items() if value is not None}
        look.read(**words)  # refused here, before any run is opened
        return words
