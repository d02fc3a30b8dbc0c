"""How every picture looks: sizes, fonts, one colour a method, and files that are the same bytes every time."""

from __future__ import annotations

import io
import os
import re
import textwrap
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from functools import wraps
from pathlib import Path
from typing import Any, ParamSpec, TypeVar

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib import patheffects
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine, TightLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from matplotlib.transforms import ScaledTranslation

from figures.layout import RoundLayout
from figures.palette import CLIENT, GLOBAL, METHODS, colour, label, order

__all__ = ["CLIENT", "GLOBAL", "METHODS", "NARROW", "SEQUENTIAL", "SIGNED", "WIDE", "axes", "colour", "context"]
__all__ += ["footnote", "key", "label", "order", "outline", "panels", "save", "steps", "text"]

Inputs = ParamSpec("Inputs")
Drawn = TypeVar("Drawn")

NARROW, WIDE = 3.3, 6.9
"""Widths of a figure in one and in two columns, inches."""

SEQUENTIAL, SIGNED = "viridis", "RdBu_r"
"""Colour maps for one-sided and for signed data."""

_RC: dict[str, Any] = {
    "font.family": "sans-serif",
    "font.sans-serif": ["DejaVu Sans"],
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "legend.title_fontsize": 7,
    "legend.frameon": False,
    "legend.handlelength": 1.6,
    "axes.linewidth": 0.6,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.grid": True,
    "axes.axisbelow": True,
    "grid.color": "#e6e6e6",
    "grid.linewidth": 0.5,
    "xtick.major.width": 0.6,
    "ytick.major.width": 0.6,
    "lines.linewidth": 1.3,
    "image.cmap": SEQUENTIAL,
    "figure.dpi": 120,
    "savefig.dpi": 220,
    "pdf.fonttype": 42,
    "ps.fonttype": 42,
    "svg.fonttype": "path",
    "svg.hashsalt": "fedscape",
}


def context() -> AbstractContextManager[None]:
    """Settings under which figures are made and saved; they end with the `with` block."""
    return mpl.rc_context(_RC)  # type: ignore[arg-type]  # newer stubs list every key


def steps(count: int) -> list[Any]:
    """`count` colours from dark to light for things in a sequence, such as rounds."""
    return list(mpl.colormaps[SEQUENTIAL](np.linspace(0.0, 0.82, max(count, 1))))[:count]


def outline(width: float = 1.6) -> list[patheffects.AbstractPathEffect]:
    """Pale outline that keeps text and markers readable on a map."""
    return [patheffects.withStroke(linewidth=width, foreground="white", alpha=0.85)]


def text(values: xr.DataArray) -> str:
    """Axis label of a variable, `name [unit]`; numbers without unit have none."""
    name, unit = values.attrs.get("long_name", str(values.name).replace("_", " ")), values.attrs.get("units", "1")
    return str(name) if unit in ("1", "fraction", "") else f"{name} [{unit}]"


class Picture(Figure):
    """A figure that a notebook shows where it stands last in a cell, also before pyplot was asked for one."""

    def _repr_png_(self) -> bytes:
        written = io.BytesIO()
        with context():
            self.savefig(written, format="png", dpi=self.dpi, bbox_inches="tight")
        return written.getvalue()


def panels(
    rows: int = 1, columns: int = 1, *, width: float = WIDE, height: float | None = None, **options: Any
) -> tuple[Figure, np.ndarray]:
    """A figure in this style and its axes, shape (rows, columns).

    Args:
        width, height: Inches; the height follows from the columns' width where not given.
        options: As `Figure.subplots` takes them.
    """
    with context():
        figure = Picture(figsize=(width, rows * (width / columns * 0.6 + 0.5) + 0.5 if height is None else height))
        figure.set_layout_engine(RoundLayout())
        return figure, figure.subplots(rows, columns, squeeze=False, **options)


def styled(draw: Callable[Inputs, Drawn]) -> Callable[Inputs, Drawn]:
    """A drawing function whose every artist, legends included, is made in this style."""

    @wraps(draw)
    def drawn(*args: Inputs.args, **options: Inputs.kwargs) -> Drawn:
        with context():
            return draw(*args, **options)

    return drawn


def logarithmic(ax: Axes) -> None:
    """Logarithmic vertical axis with a handful of plain numbers; call it when everything is drawn.

    An axis without a positive number stays as it is.
    """
    if ax.dataLim.y1 <= 0:
        return
    ax.set_yscale("log")
    low, high = ax.get_ylim()
    decades = float(np.log10(high / low))
    if decades < 0.4:
        ax.yaxis.set_major_locator(MaxNLocator(4))
    else:
        subs = (1, 1.5, 2, 3, 5, 7) if decades < 0.9 else (1, 2, 5) if decades < 2 else (1,)
        ax.yaxis.set_major_locator(LogLocator(subs=subs, numticks=9))
    if low > 1e-3 and high < 1e4:
        ax.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    ax.yaxis.set_minor_formatter(NullFormatter())


def same_range(*axs: Axes) -> None:
    """Give panels the vertical range of all of them together."""
    limits = np.array([ax.get_ylim() for ax in axs])
    for ax in axs:
        ax.set_ylim(limits[:, 0].min(), limits[:, 1].max())


def axes(ax: Axes | None) -> Axes:
    """The given axes, or pyplot's current ones."""
    if ax is not None:
        return ax
    from matplotlib import pyplot

    with context():
        return pyplot.gca()


def key(figure: Figure, axs: Iterable[Axes], *, title: str | None = None, columns: int = 6) -> None:
    """One legend above all panels, each label once."""
    found: dict[str, Artist] = {}
    for ax in axs:
        for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
            found.setdefault(name, handle)
    if found:
        with context():
            place: dict[str, Any] = {"loc": "outside upper center", "ncols": columns, "columnspacing": 1.2}
            figure.legend(list(found.values()), list(found), title=title, **place)


def footnote(figure: Figure, text: str) -> None:
    """Small text below a figure, which grows by its height; a second one stands above the first.

    Args:
        figure: In any layout.
        text: Lines are broken where they are longer than the figure is wide.
    """
    width = figure.get_figwidth()
    lines = [line for part in text.splitlines() for line in textwrap.wrap(part, int(22 * width))]
    if not lines:
        return
    below = sum(_tall(note.get_text()) for note in figure.texts if note.get_label() == _NOTE)
    note = "\n".join(lines)
    spilled = 0.0 if below or figure.get_layout_engine() else max(0.0, -float(figure.get_tightbbox().y0))
    _grow(figure, _tall(note) + spilled)
    look: dict[str, Any] = {"fontsize": 6, "color": "#444444", "va": "bottom", "linespacing": 1.25}
    with context():
        figure.text(0.04, below + 0.03, note, transform=figure.dpi_scale_trans, label=_NOTE, **look)


_NOTE = "footnote"


def _tall(note: str) -> float:
    """Inches that a footnote takes."""
    return 0.115 * len(note.splitlines()) + 0.04


def _grow(figure: Figure, more: float) -> None:
    """Make a figure taller by so many inches, below; what it shows keeps its size and its distance from the top."""
    width, height = (float(size) for size in figure.get_size_inches())
    taller = height + more
    if figure.subfigs and figure.get_layout_engine() is None:
        figure.set_layout_engine("constrained")  # nothing else moves subfigures

    def up(y: float) -> float:
        return (y * height + more) / taller

    engine = figure.get_layout_engine()
    texts = [text for text in figure.texts if text.get_transform() == figure.transFigure]
    boxes = [legend.get_bbox_to_anchor().transformed(figure.transFigure.inverted()) for legend in figure.legends]
    figure.set_size_inches(width, taller)
    if isinstance(engine, ConstrainedLayoutEngine):  # which places legends and titles of the figure too
        for text in figure.texts:
            if text.get_text() == figure.get_supxlabel():  # which it places at the lower edge of the figure
                text.set_transform(text.get_transform() + ScaledTranslation(0, more, figure.dpi_scale_trans))
        left, low, wide, high = engine.get()["rect"]
        engine.set(rect=(left, up(low), wide, high * height / taller))
        return
    if isinstance(engine, TightLayoutEngine):
        left, low, right, high = engine.get()["rect"]
        engine.set(rect=(left, up(low), right, up(high)))
    else:
        for ax in figure.axes:
            place = ax.get_position(original=True)
            ax.set_position((place.x0, up(place.y0), place.width, place.height * height / taller))
    for text in texts:
        text.set_y(up(text.get_position()[1]))
    for legend, box in zip(figure.legends, boxes, strict=True):
        anchor = (box.x0, up(box.y0), box.width, box.height * height / taller)
        legend.set_bbox_to_anchor(anchor, transform=figure.transFigure)


def save(figure: Figure, stem: str | Path, formats: Sequence[str] = ("pdf", "png", "svg")) -> list[Path]:
    """Write a figure as `stem`.pdf, .png, ..: fonts embedded, no date inside, the same bytes every time.

    Raises:
        ValueError: If a format is none of pdf, png, svg.
    """
    empty: dict[str, dict[str, Any]] = {
        "pdf": {"CreationDate": None, "Producer": None, "Creator": None},
        "png": {"Software": None},
        "svg": {"Date": None, "Creator": None},
    }
    if unknown := [name for name in formats if name not in empty]:
        raise ValueError(f"cannot save a figure as {unknown[0]!r}; the formats are {', '.join(empty)}.")
    paths = []
    for name in formats:
        path = Path(f"{stem}.{name}")
        path.parent.mkdir(parents=True, exist_ok=True)
        aside = path.with_name(f".{path.name}.new")
        with context():
            figure.savefig(aside, format=name, metadata=empty[name])
        if name == "svg":
            aside.write_text(_numbered(aside.read_text(encoding="utf-8")), encoding="utf-8")
        os.replace(aside, path)
        paths.append(path)
    return paths


def _numbered(svg: str) -> str:
    """An SVG whose clip paths are numbered: matplotlib names them after the last bits of places, which vary."""
    numbers: dict[str, int] = {}
    return re.sub(
        r'(id="|url\(#)(p[0-9a-f]{10})\b', lambda at: f"{at[1]}p{numbers.setdefault(at[2], len(numbers))}", svg
    )
