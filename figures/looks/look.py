"""How a figure looks: the words of `fedscape figures draw` and of `figures.draw`, which all figures read in one place.

A look is set for the time of a drawing (`drawing`); layouts, lines, maps and legends ask for their word by `take`. What
was asked for and taken by nothing is refused, never ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from figures.looks import palette
from figures.looks.look_values import WIDTHS, Range, read_labels, read_limits, read_range, read_width
from landscape.results.parsed_text import from_toml

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import SubFigure

SEEDS = ("lines", "band", "interval")
"""How several seeds are shown: a thin line per seed, mean and standard deviation, mean and t interval."""

LEGENDS = ("above", "below", "right", "inside", "none")


VENUES = {
    "ieee": {"column": 3.5, "page": 7.16},
    "neurips": {"column": 2.65, "page": 5.5},
    "icml": {"column": 3.25, "page": 6.75},
    "nature": {"column": 3.5, "page": 7.2},
}
"""Widths, in inches, of a column and of a page of venues; their fonts are in figures/looks/styles."""


@dataclass(frozen=True)
class Look:
    """What is asked of a figure beside its data; an empty field leaves a choice to the figure.

    Args:
        methods: Labels of the methods that are shown, such as fedavg and ima.
        over: Settings that are compared, such as local.lr: each value is a line of its own.
        paired_to: Label of a method; others are shown as differences to it, seed by seed and on the same cohorts.
        rounds: First and last round of the axes over rounds.
        seeds: One of SEEDS.
        smooth: Rounds in a moving mean of the drawn lines, centred.
        width: One of WIDTHS, or inches.
        style: A venue, a style of matplotlib, or the path of a style sheet.
        palette: A colour map of matplotlib: of methods if it has at most 20 colours, else of maps and of sequences.
        levels: Number of contour levels.
        xlim, ylim: Lower and upper limit by the beginning of an axis label; "" stands for the axes of all panels.
        log: Whether vertical axes are logarithmic.
        title: Above the figure.
        labels: Texts in place of those of a method (in legends), or of the axes "x" and "y".
        legend: One of LEGENDS.
        note: Whether the small line below the figure states what it shows.
    """

    methods: tuple[str, ...] = ()
    over: tuple[str, ...] = ()
    paired_to: str = ""
    rounds: Range | None = None
    seeds: str = ""
    smooth: int = 0
    width: str | float = ""
    style: str = ""
    palette: str = ""
    levels: int = 0
    xlim: Mapping[str, Range] = field(default_factory=dict)
    ylim: Mapping[str, Range] = field(default_factory=dict)
    log: bool | None = None
    title: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    legend: str = ""
    note: bool = True

    def asked(self) -> list[str]:
        """Names of the fields that differ from their defaults."""
        plain = Look()
        return [field.name for field in fields(self) if getattr(self, field.name) != getattr(plain, field.name)]


TEXTS = from_toml((Path(__file__).parent / "words.toml").read_bytes())
"""By word, its option on the command line (takes, value, help), and why a figure did not take it (refused)."""

WORDS = tuple(field.name for field in fields(Look))
"""Names of all words."""


def read(**words: Any) -> Look:
    """The look that words describe, as Python or the command line give them.

    Args:
        words: Fields of `Look`; None stands for the default. Ranges are pairs or texts such as "10:50" or ":0.9",
            limits also mappings or texts such as "test accuracy=0.5:1"; labels a mapping or texts such as "ima=Ours".

    Raises:
        ValueError: If there is no such word, or a value is not accepted; says what is.
    """
    if unknown := sorted(set(words) - set(WORDS)):
        raise ValueError(f"no option of a look is called {unknown[0]!r}; accepted: {', '.join(WORDS)}.")
    wanted = {name: value for name, value in words.items() if value is not None}
    for name, values in (("seeds", SEEDS), ("legend", LEGENDS)):
        if wanted.get(name, "") not in ("", *values):
            raise ValueError(f"{name} is {wanted[name]!r}; give {', '.join(values[:-1])} or {values[-1]}.")
    for name, least in (("smooth", 1), ("levels", 2)):
        if name in wanted and (isinstance(wanted[name], bool) or wanted[name] < least):
            raise ValueError(f"{name} is {wanted[name]}; give a whole number from {least} on.")
    if "methods" in wanted:
        wanted["methods"] = (wanted["methods"],) if isinstance(wanted["methods"], str) else tuple(wanted["methods"])
    if "over" in wanted:
        keys = wanted["over"].split(",") if isinstance(wanted["over"], str) else wanted["over"]
        wanted["over"] = tuple(key.strip() for key in keys if key.strip())
    names = ("rounds", "xlim", "ylim", "labels", "width")
    readers = (read_range, read_limits, read_limits, read_labels, read_width)
    wanted |= {name: reader(wanted[name], name) for name, reader in zip(names, readers, strict=True) if name in wanted}
    return Look(**wanted)


_SEEDS = re.compile(r"\d+(?= seeds)")


class Drawing:
    """A drawing that goes on: its look, what of it was taken, and what was drawn of the seeds.

    Args:
        look: What is asked for.
        ax, subfigure: Where a figure is drawn into another one.
    """

    def __init__(self, look: Look, *, ax: Axes | None = None, subfigure: SubFigure | None = None) -> None:
        self.look, self.ax, self.subfigure = look, ax, subfigure
        self.taken: set[str] = set()
        self.going_on = True
        self.notes: list[str] = []

    @property
    def composed(self) -> bool:
        """Whether it is a part of a figure of the user."""
        return self.ax is not None or self.subfigure is not None

    def take(self, word: str) -> Any:
        """Value of a word, which counts as honoured by this; falsy where it was not asked for."""
        self.taken.add(word)
        return getattr(self.look, word)

    def remark(self, text: str) -> None:
        """Remember how the seeds are drawn, once."""
        if text not in self.notes:
            self.notes.append(text)

    def noted(self) -> str:
        """What is remembered, one text for all counts of seeds."""
        counts: dict[str, set[str]] = {}
        for text in self.notes:
            counts.setdefault(_SEEDS.sub("#", text), set()).update(_SEEDS.findall(text))
        return "; ".join(text.replace("#", " or ".join(sorted(numbers, key=int))) for text, numbers in counts.items())

    def inches(self, usual: float) -> float:
        """Width of the figure, `usual` where none is asked for.

        Raises:
            ValueError: If the width is none of those of the venue.
        """
        width = self.take("width")
        if not width:
            return usual
        if isinstance(width, int | float):
            return float(width)
        return VENUES.get(self.look.style, {}).get(width, WIDTHS[width])

    def require_taken(self, name: str) -> None:
        """Refuse what nothing in the figure could honour.

        Raises:
            ValueError: With the word and the reason.
        """
        for word in self.look.asked():
            if word not in self.taken:
                raise ValueError(f"figure {name} cannot apply {word}: {TEXTS[word]['refused']}. Leave it out.")


_CURRENT: ContextVar[Drawing | None] = ContextVar("drawing", default=None)


def current() -> Drawing:
    """The drawing that goes on; outside of any, one of the usual look."""
    drawing = _CURRENT.get()
    if drawing is None:
        drawing = Drawing(Look())
        drawing.going_on = False
    return drawing


def label(name: str) -> str:
    """A method's name as its paper writes it, or as the look asks for."""
    drawing = current()
    if name in drawing.look.labels:
        drawing.take("labels")
        return str(drawing.look.labels[name])
    method, comma, rest = name.partition(", ")  # of one value of an option
    return f"{label(method)}{comma}{rest}" if comma else palette.label(name)


@contextmanager
def drawing(look: Look, *, ax: Axes | None = None, subfigure: SubFigure | None = None) -> Iterator[Drawing]:
    """A drawing with this look, for the time of the `with` block."""
    token = _CURRENT.set(Drawing(look, ax=ax, subfigure=subfigure))
    try:
        yield current()
    finally:
        _CURRENT.reset(token)
