"""The figure of a table: measured numbers, and in grey on grey those that a paper prints."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from figures import style
from figures.axes.curves import deviation, mean
from figures.selection import setting_text

PALE = "#6a6a6a"
"""Colour of a paper's own numbers."""


def draw_table(ds: xr.Dataset, *, title: str, write: Callable[[float], str]) -> Figure:
    """A table: per column the measured numbers, and next to them those that the paper prints.

    Columns that do not fit into one block form another below it, with the rows that have numbers there.

    Args:
        ds: As `_tables.tabulate` returns it.
        title: What the numbers are.
        write: A number as text.
    """
    names = [setting_text.row_label(str(name)) for name in ds.row.values]
    blocks = _blocks([_group(ds.isel(column=place), write) for place in range(ds.sizes["column"])], names)
    heights = [len(rows) * 0.17 + tall * 0.13 + 0.42 for rows, tall in map(_extent, blocks)]
    note = textwrap.wrap(_note(ds, title), 125)
    height = sum(heights) + 0.29 + 0.13 * len(note)
    figure, axs = style.panels(len(blocks), 1, height=height, height_ratios=heights)
    for ax, block in zip(axs[:, 0], blocks, strict=True):
        _table(ax, names, block)
    axs[0, 0].set_title("\n".join(note), fontsize=7, loc="left")
    return figure


def percent(value: float) -> str:
    """A fraction in percent, two digits after the point."""
    return f"{100 * value:.2f}"


_Group = dict[str, Any]
"""Columns under one head: head (lines), subheads, texts (one list per subhead), pale (whether the paper's)."""


def _group(ds: xr.Dataset, write: Callable[[float], str]) -> _Group:
    middle, spread = mean(ds.measured, "seed"), deviation(ds.measured, "seed")
    spreads = np.full(middle.shape, np.nan) if spread is None else spread.values
    texts = [[_written(value, wide, write) for value, wide in zip(middle.values, spreads, strict=True)]]
    subheads, pale = ["quick" if int(ds.quick) else "measured"], [False]
    if "printed" in ds and bool(ds.printed.notnull().any()):
        texts.append([_written(value, np.nan, write) for value in ds.printed.values])
        subheads.append("paper")
        pale.append(True)
    parts = str(ds.column.item()).split(", ")
    lines = [line for part in parts for line in textwrap.wrap(part, 18)] or [""]
    return {"head": lines, "subheads": subheads, "texts": texts, "pale": pale}


_ABSENT = "-"


def _written(value: float, wide: float, write: Callable[[float], str]) -> str:
    if np.isnan(value):
        return _ABSENT
    return f"{write(value)} ± {write(wide)}" if np.isfinite(wide) and wide > 0 else write(value)


def _widths(group: _Group) -> list[float]:
    """Letters of each column of a group."""
    inner = [
        max(map(len, [subhead, *texts])) + 2.5 for subhead, texts in zip(group["subheads"], group["texts"], strict=True)
    ]
    lack = max(0.0, max(map(len, group["head"])) + 2.0 - sum(inner))
    return [width + lack / len(inner) for width in inner]


LETTERS = 112.0
"""Letters that fit side by side into a figure of two columns' width."""


def _blocks(groups: Sequence[_Group], names: Sequence[str]) -> list[list[_Group]]:
    """The groups in blocks that fit the width, of about equal numbers of groups."""
    room = LETTERS - 2 - max(map(len, names))
    count = int(np.ceil(sum(sum(_widths(group)) for group in groups) / room))
    size = int(np.ceil(len(groups) / max(count, 1)))
    return [list(groups[start : start + size]) for start in range(0, len(groups), size)]


def _extent(groups: Sequence[_Group]) -> tuple[list[int], int]:
    """Places of the rows with a measured number in a block (all where none has), and the lines of its heads."""
    count = len(groups[0]["texts"][0])
    shown = [row for row in range(count) if any(group["texts"][0][row] != _ABSENT for group in groups)]
    return shown or list(range(count)), max(len(group["head"]) for group in groups)


def _table(ax: Axes, names: Sequence[str], groups: Sequence[_Group]) -> None:
    """One block: names at the left, each group under its head between thin rules."""
    ax.set_axis_off()
    shown, tall = _extent(groups)
    first = 2.0 + max(map(len, names))
    rows, line = len(shown), 0.76
    top = rows + 1.1 + tall * line
    end = first + sum(sum(_widths(group)) for group in groups)
    ax.set(xlim=(0, max(end, LETTERS * 0.6)), ylim=(-0.1, top + 0.1))
    for place, wide in ((0.0, 0.9), (rows + 0.1, 0.6), (top, 0.9)):
        ax.plot([0, end], [place, place], color="black", linewidth=wide, clip_on=False)
    for row, place in enumerate(shown):
        ax.text(0, rows - row - 0.5, names[place], va="center", fontsize=7)
    at = first
    for group in groups:
        widths = _widths(group)
        ax.plot([at + 1.5, at + sum(widths)], [rows + 1.0, rows + 1.0], color="black", linewidth=0.4)
        for number, text in enumerate(reversed(group["head"])):
            ax.text(at + sum(widths), rows + 1.15 + number * line, text, ha="right", va="bottom", fontsize=6.5)
        for width, subhead, texts, pale in zip(widths, group["subheads"], group["texts"], group["pale"], strict=True):
            look: dict[str, Any] = {"ha": "right", "va": "center", "color": PALE if pale else "black"}
            if pale:
                ax.add_patch(Rectangle((at + 1.0, 0), width - 0.5, rows + 0.98, color="#efefef", linewidth=0))
            at += width
            ax.text(at, rows + 0.5, subhead, fontsize=6.5, style="italic", **look)
            for row, place in enumerate(shown):
                ax.text(at, rows - row - 0.5, texts[place], fontsize=7, **look)


def _note(ds: xr.Dataset, title: str) -> str:
    seeds, over = ds.sizes["seed"], str(ds.attrs.get("over", "")).split(", ")
    named = ", ".join(setting_text.key_label(key) for key in over if key)
    parts = [
        f"{title}, by {named}" if named else title,
        f"mean ± std of up to {seeds} seeds" if seeds > 1 else "one seed",
    ]
    if bool(ds.quick.any()):
        parts.append("quick: small variant, not to be compared with the paper's numbers")
    return "; ".join(parts)
