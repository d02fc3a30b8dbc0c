"""The style of all figures: sizes, fonts, colours, layout, and files with the same bytes every time."""

from __future__ import annotations

import os
import re
import textwrap
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
from matplotlib import patheffects
from matplotlib.axes import Axes
from matplotlib.colors import to_hex
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

from figures.looks import look, palette
from figures.looks.layout import NARROW, WIDE, is_beside, is_first, is_lowest, is_narrow, key, name_edges, panels, width
from figures.looks.literal import literal
from figures.looks.matplotlib_style import context, keep_fonts, small
from figures.looks.palette import CLIENT, GLOBAL, METHODS, SEQUENTIAL, SIGNED, dash, marker, order
from figures.looks.recoloured import stand_out, without_transparency
from figures.looks.words import PLAIN, in_words, text, with_unit

__all__ = ["CLIENT", "GLOBAL", "METHODS", "NARROW", "SEQUENTIAL", "SIGNED", "WIDE", "axes", "colour", "context"]
__all__ += ["dash", "is_beside", "is_first", "is_lowest", "is_narrow", "keep_fonts", "key", "label", "literal"]
__all__ += ["marker", "name_axes", "name_edges", "order", "outline", "panels", "save", "sequential", "small", "steps"]
__all__ += ["in_words", "sentence", "stand_out", "text", "width", "with_unit"]


def label(name: str) -> str:
    """A method's name as text of matplotlib."""
    return literal(look.label(name))


Inputs = ParamSpec("Inputs")
Result = TypeVar("Result")


def sequential() -> str:
    """Colour map of one-sided data: that of the look, else of the user (`image.cmap`), else viridis."""
    name = palette_name(several=True)
    return name or str(mpl.rcParams["image.cmap"])


def palette_name(*, several: bool) -> str:
    """The palette that the look asks for, if it is one of maps (`several` colours) or of methods; else empty.

    Raises:
        ValueError: If matplotlib has no such colour map.
    """
    drawing = look.current()
    if not (name := drawing.look.palette):
        return ""
    if name not in mpl.colormaps:
        raise ValueError(
            f"there is no palette {name!r}; give a colour map of matplotlib, such as tab10, Set2 or cividis."
        )
    if (mpl.colormaps[name].N > MOST) is not several:
        return ""
    return str(drawing.take("palette"))


MOST = 20
"""Colours of a palette of methods; colour maps of more are those of maps."""


def colour(name: str) -> str:
    """Colour of a method: of the palette that the look asks for, else the same in every figure."""
    chosen_palette = palette_name(several=False)
    if not chosen_palette:
        return palette.colour(name)
    colours, first = mpl.colormaps[chosen_palette], list(METHODS)
    index = first.index(name) if name in first else len(first) + sum(map(ord, name))
    return str(to_hex(colours(index % colours.N)))


def steps(count: int) -> list[Any]:
    """`count` colours from dark to light for things in a sequence, such as rounds."""
    return list(mpl.colormaps[sequential()](np.linspace(0.0, 0.82, max(count, 1))))[:count]


def outline(width: float = 2.4) -> list[patheffects.AbstractPathEffect]:
    """Outline in the colour of the ground that keeps text and markers readable on a map."""
    return [patheffects.withStroke(linewidth=width, foreground=mpl.rcParams["axes.facecolor"], alpha=0.95)]


def styled(draw: Callable[Inputs, Result]) -> Callable[Inputs, Result]:
    """A drawing function that runs under `context`, so that all its artists, legends included, have this style."""

    @wraps(draw)
    def wrapper(*args: Inputs.args, **options: Inputs.kwargs) -> Result:
        drawing = look.current()
        with nullcontext(drawing) if drawing.going_on else look.drawing(drawing.look), context():
            result = draw(*args, **options)
            stand_out([result] if isinstance(result, Axes) else [])
            return result

    return wrapper


def logarithmic(ax: Axes) -> None:
    """Make the vertical axis logarithmic, with a few plain numbers; call it after drawing.

    An axis without a positive number stays as it is, and so does one of differences.
    """
    drawing = look.current()
    if ax.dataLim.y1 <= 0 or drawing.look.paired_to:
        return
    if drawing.look.log is False:
        drawing.take("log")
        return
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    decades = float(np.log10(high / low))
    if decades < 0.4:
        ax.yaxis.set_major_locator(MaxNLocator(4, steps=(1, 2, 2.5, 5, 10)))
    else:
        subs = (1, 1.5, 2, 3, 5, 7) if decades < 0.9 else (1, 2, 5) if decades < 2 else (1,)
        ax.yaxis.set_major_locator(LogLocator(subs=subs, numticks=9))
    if PLAIN[0] < low and high < PLAIN[1]:
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


def name_axes(ax: Axes, x: str | None = None, y: str | None = None, *, integers: int | None = None) -> Axes:
    """Label the axes of a drawn panel, make all in it seen on a dark ground, and return the panel.

    Args:
        x, y: The labels; None leaves one as it is.
        integers: Most steps between ticks along x, which are then whole numbers.
    """
    if integers is not None:
        ax.xaxis.set_major_locator(MaxNLocator(integers, integer=True, steps=(1, 2, 2.5, 5, 10), min_n_ticks=1))
    if x is not None:
        ax.set_xlabel(x)
    if y is not None:
        ax.set_ylabel(y)
    stand_out([ax])
    return ax


def sentence(ax: Axes, text: str) -> None:
    """Write a sentence in place of a panel that would show nothing."""
    ax.set_axis_off()
    ax.text(0.5, 0.5, textwrap.fill(text, 22), transform=ax.transAxes, fontsize=small(), ha="center", va="center")


def same_range(*axs: Axes) -> None:
    """Set one vertical range on all panels, which covers each of theirs."""
    limits = np.array([ax.get_ylim() for ax in axs])
    for ax in axs:
        ax.set_ylim(limits[:, 0].min(), limits[:, 1].max())


def axes(ax: Axes | None) -> Axes:
    """These axes, or pyplot's current ones where they are None."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    with context():
        return pyplot.gca()


_EMPTY: dict[str, dict[str, Any]] = {
    "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
    "png": {"Software": None},
    "svg": {"Date": None, "Creator": None},
    "eps": {"Creator": "fedscape"},
}
"""Formats of pictures, and what is left out of them."""


def require_formats(formats: Sequence[str]) -> None:
    """Refuse formats that pictures are not saved in.

    Raises:
        ValueError: With those that there are.
    """
    if unknown := [name for name in formats if name not in _EMPTY]:
        raise ValueError(f"cannot save a figure as {unknown[0]!r}; the formats are {', '.join(_EMPTY)}.")


def save(figure: Figure, stem: str | Path, formats: Sequence[str] = ("pdf", "png", "svg")) -> list[Path]:
    """Write a figure as `stem`.pdf, .png, ..: with fonts, without a date, the same bytes every time.

        figure = drift.round_plane(run, points=5).plot().figure
        figures.save(figure, "plane", formats=["png"])

    It is laid out for the first format; the others have its panels at the same places.

    Args:
        figure: Figure to write.
        stem: Path without suffix.
        formats: Of pdf, png, svg and eps.

    Raises:
        ValueError: If a format is none of these.
    """
    require_formats(formats)
    engine = figure.get_layout_engine()
    try:
        for name in formats:
            path = Path(f"{stem}.{name}")
            path.parent.mkdir(parents=True, exist_ok=True)
            aside = path.with_name(f".{path.name}.new")
            with context(), without_transparency(figure) if name == "eps" else nullcontext():
                figure.savefig(aside, format=name, metadata=_EMPTY[name])
            figure.set_layout_engine("none")
            if name in ("svg", "eps"):
                aside.write_text(_reproducible(aside.read_text(encoding="utf-8")), encoding="utf-8")
            os.replace(aside, path)
    finally:
        figure.set_layout_engine(engine or "none")
    return [Path(f"{stem}.{name}") for name in formats]


def _reproducible(text: str) -> str:
    """An SVG with numbered clip paths, as matplotlib's names depend on last bits of places; an EPS without a date."""
    numbers: dict[str, int] = {}
    text = re.sub(r"%%(Title|CreationDate):.*\n", "", text)
    return re.sub(
        r'(id="|url\(#)(p[0-9a-f]{10})\b', lambda at: f"{at[1]}p{numbers.setdefault(at[2], len(numbers))}", text
    )
