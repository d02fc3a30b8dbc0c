"""The style of all figures: sizes, fonts, colours, layout, and files with the same bytes every time."""

from __future__ import annotations

import io
import os
import re
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
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter
from matplotlib.transforms import Bbox

from figures.palette import CLIENT, GLOBAL, METHODS, colour, label, order

__all__ = ["CLIENT", "GLOBAL", "METHODS", "NARROW", "SEQUENTIAL", "SIGNED", "WIDE", "axes", "colour", "context"]
__all__ += ["key", "label", "name_axes", "name_edges", "order", "outline", "panels", "save", "steps", "text"]

Inputs = ParamSpec("Inputs")
Result = TypeVar("Result")

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
    """Matplotlib settings for drawing and saving figures; they end with the `with` block."""
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


class RoundLayout(ConstrainedLayoutEngine):
    """Constrained layout in round numbers: the last bits of the solver vary by process, and an SVG shows them."""

    DIGITS = 9
    """Decimals of a place as a fraction of the figure: finer than a pixel, coarser than errors of the solver."""

    def execute(self, fig: Figure) -> None:
        super().execute(fig)
        for ax in fig.axes:
            in_layout = ax.get_in_layout()
            ax.set_position(Bbox(np.round(ax.get_position(original=True).get_points(), self.DIGITS)))
            ax.set_in_layout(in_layout)  # set_position takes axes out of the layout


class Picture(Figure):
    """A figure that a notebook shows as the last value of a cell, also without pyplot."""

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
        width, height: Inches; by default the height follows from the columns' width.
        options: Passed to `Figure.subplots`.
    """
    with context():
        figure = Picture(figsize=(width, rows * (width / columns * 0.6 + 0.5) + 0.5 if height is None else height))
        figure.set_layout_engine(RoundLayout())
        return figure, figure.subplots(rows, columns, squeeze=False, **options)


def styled(draw: Callable[Inputs, Result]) -> Callable[Inputs, Result]:
    """A drawing function that runs under `context`, so that all its artists, legends included, have this style."""

    @wraps(draw)
    def wrapper(*args: Inputs.args, **options: Inputs.kwargs) -> Result:
        with context():
            return draw(*args, **options)

    return wrapper


def logarithmic(ax: Axes) -> None:
    """Make the vertical axis logarithmic, with a few plain numbers; call it after drawing.

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


def name_axes(ax: Axes, x: str | None = None, y: str | None = None, *, whole: int | None = None) -> Axes:
    """Label the axes of a panel, and return the panel.

    Args:
        x, y: The labels; None leaves one as it is.
        whole: Most steps between ticks along x, which are then whole numbers.
    """
    if whole is not None:
        ax.xaxis.set_major_locator(MaxNLocator(whole, integer=True))
    if x is not None:
        ax.set_xlabel(x)
    if y is not None:
        ax.set_ylabel(y)
    return ax


def name_edges(axs: np.ndarray, count: int | None = None) -> None:
    """Keep the labels of the first panel of every row and of the lowest of every column; blank those beyond `count`."""
    total, columns = axs.size if count is None else count, axs.shape[1]
    for place, ax in enumerate(axs.flat):
        if place >= total:
            ax.set_axis_off()
        if place % columns:
            ax.set_ylabel("")
        if place < total - columns:
            ax.set_xlabel("")


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


def key(figure: Figure, axs: Iterable[Axes], *, title: str | None = None, columns: int = 6) -> None:
    """Draw one legend above all panels, with each label once."""
    handles: dict[str, Artist] = {}
    for ax in axs:
        for handle, name in zip(*ax.get_legend_handles_labels(), strict=True):
            handles.setdefault(name, handle)
    if handles:
        with context():
            place: dict[str, Any] = {"loc": "outside upper center", "ncols": columns, "columnspacing": 1.2}
            figure.legend(list(handles.values()), list(handles), title=title, **place)


def save(figure: Figure, stem: str | Path, formats: Sequence[str] = ("pdf", "png", "svg")) -> list[Path]:
    """Write a figure as `stem`.pdf, .png, ..: with fonts, without a date, the same bytes every time.

    Args:
        figure: Figure to write.
        stem: Path without suffix.
        formats: Of pdf, png and svg.

    Raises:
        ValueError: If a format is not pdf, png or svg.
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
    """The SVG with numbered clip paths; matplotlib's names depend on the last bits of places, which vary."""
    numbers: dict[str, int] = {}
    return re.sub(
        r'(id="|url\(#)(p[0-9a-f]{10})\b', lambda at: f"{at[1]}p{numbers.setdefault(at[2], len(numbers))}", svg
    )
