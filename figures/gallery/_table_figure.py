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

from figures.axes.curves import mean
from figures.looks import look, style
from figures.selection import setting_text
from figures.texts import best_rows

PALE = "#6a6a6a"
"""Colour of a paper's own numbers."""


def draw_table(ds: xr.Dataset, *, title: str, write: Callable[[float], str]) -> Figure:
    """A table: per column the measured numbers, the best in bold, ties in italics; next to them those of a paper.

    What all of several columns have in common stands above the table once. Columns that do not fit into one block form
    another below it, with the rows that have numbers there. Numbers of five seeds or more have the 95 % t interval of
    their mean; fewer have their standard deviation.

    Args:
        ds: As `_tables.tabulate` returns it.
        title: What the numbers are.
        write: A number as text.
    """
    names = [style.literal(setting_text.row_label(str(name))) for name in ds.row.values]
    heads, common = _heads([str(column) for column in ds.column.values])
    groups = [_group(ds.isel(column=place), head, write) for place, head in enumerate(heads)]
    letters = _letters()
    blocks = _blocks(groups, names, letters)
    extents = [(*_extent(block), _lift(block)) for block in blocks]
    heights = [len(rows) * 0.17 + tall * 0.13 + 0.27 + 0.15 * lift for rows, tall, lift in extents]
    note = textwrap.wrap(_note(ds, title, common), int(letters))
    height = sum(heights) + 0.2 + 0.13 * len(note)
    figure, axs = style.panels(len(blocks), 1, height=height, height_ratios=heights)
    for ax, block in zip(axs[:, 0], blocks, strict=True):
        _table(ax, names, block, letters)
    axs[0, 0].set_title(style.literal("\n".join(note)), fontsize=style.small(), loc="left")
    return figure


def _letters() -> float:
    """Letters of small text that fit side by side into the figure."""
    return style.width() / (0.575 * style.small() / 72)


def _heads(columns: Sequence[str]) -> tuple[list[list[str]], list[str]]:
    """Lines of the head of every column, and the parts that all of several columns have."""
    parts = [column.split(", ") for column in columns]
    several = len(parts) > 1
    common = [part for part in parts[0] if several and part and all(part in others for others in parts)]
    heads = [[part for part in own if part not in common] for own in parts]
    return [[line for part in own for line in textwrap.wrap(part, 18 if several else 40)] for own in heads], common


def percent(value: float) -> str:
    """A fraction in percent, two digits after the point."""
    return f"{100 * value:.2f}"


_Group = dict[str, Any]
"""Columns under one head: head (lines), subheads, texts (one list per subhead), pale (the paper's), marks (rows)."""


def _group(ds: xr.Dataset, head: list[str], write: Callable[[float], str]) -> _Group:
    middle, reach = mean(ds.measured, "seed"), map(best_rows.spread, ds.measured.transpose("row", "seed").values)
    texts = [[_written(value, wide, write) for value, wide in zip(middle.values, reach, strict=True)]]
    subheads, pale = ["quick" if int(ds.quick) else "" if head else "measured"], [False]
    if "printed" in ds and bool(ds.printed.notnull().any()):
        subheads[0] = subheads[0] or "measured"
        texts.append([_written(value, np.nan, write) for value in ds.printed.values])
        subheads.append("paper")
        pale.append(True)
    return {"head": head, "subheads": subheads, "texts": texts, "pale": pale, "marks": _marks(ds)}


def _marks(ds: xr.Dataset) -> list[best_rows.Mark]:
    return best_rows.column_marks(ds, ds.measured, "row", str(ds.column.item()))


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
    lack = max(0.0, max(map(len, group["head"]), default=0) + 2.0 - sum(inner))
    return [width + lack / len(inner) for width in inner]


def _blocks(groups: Sequence[_Group], names: Sequence[str], letters: float) -> list[list[_Group]]:
    """The groups in blocks that fit the width, of about equal numbers of groups."""
    room, blocks = letters - 2 - max(map(len, names)), list[list[_Group]]()
    for group in groups:
        if blocks and sum(sum(_widths(other)) for other in [*blocks[-1], group]) <= room:
            blocks[-1].append(group)
        else:
            blocks.append([group])
    return blocks


def _extent(groups: Sequence[_Group]) -> tuple[list[int], int]:
    """Places of the rows with a measured number in a block (all where none has), and the lines of its heads."""
    count = len(groups[0]["texts"][0])
    shown = [row for row in range(count) if any(group["texts"][0][row] != _ABSENT for group in groups)]
    return shown or list(range(count)), max(len(group["head"]) for group in groups)


def _lift(groups: Sequence[_Group]) -> float:
    """Height of the line of subheads, in rows: next to none where there is no subhead."""
    return 1.0 if any(any(group["subheads"]) for group in groups) else 0.1


def _table(ax: Axes, names: Sequence[str], groups: Sequence[_Group], letters: float) -> None:
    """One block: names at the left, each group under its head between thin rules."""
    ax.set_axis_off()
    shown, tall = _extent(groups)
    first = 2.0 + max(map(len, names))
    rows, line, lift = len(shown), 0.76, _lift(groups)
    top = rows + 0.1 + lift + tall * line
    end = first + sum(sum(_widths(group)) for group in groups)
    ax.set(xlim=(0, max(end, letters)), ylim=(-0.1, top + 0.1))
    for place, wide in ((0.0, 0.9), (rows + 0.1, 0.6), (top, 0.9)):
        ax.plot([0, end], [place, place], color="black", linewidth=wide, clip_on=False)
    for row, place in enumerate(shown):
        ax.text(0, rows - row - 0.5, names[place], va="center", fontsize=style.small())
    at = first
    for group in groups:
        widths = _widths(group)
        if any(group["subheads"]) and group["head"]:
            ax.plot([at + 1.5, at + sum(widths)], [rows + 1.0, rows + 1.0], color="black", linewidth=0.4)
        for number, text in enumerate(reversed(group["head"])):
            ax.text(
                at + sum(widths),
                rows + 0.15 + lift + number * line,
                style.literal(text),
                ha="right",
                va="bottom",
                fontsize=style.small(),
            )
        for width, subhead, texts, pale in zip(widths, group["subheads"], group["texts"], group["pale"], strict=True):
            about: dict[str, Any] = {"ha": "right", "va": "center", "color": PALE if pale else "black"}
            if pale:
                ax.add_patch(Rectangle((at + 1.0, 0), width - 0.5, rows + 0.98, color="#efefef", linewidth=0))
            at += width
            ax.text(at, rows + 0.5, subhead, fontsize=style.small(), style="italic", **about)
            for row, place in enumerate(shown):
                mark = "" if pale else group["marks"][place]
                weight, slope = "bold" if mark == "best" else "normal", "italic" if mark == "tie" else "normal"
                cell = ax.text(at, rows - row - 0.5, texts[place], fontsize=style.small(), **about)
                cell.set(fontweight=weight, fontstyle=slope)


def _note(ds: xr.Dataset, title: str, common: Sequence[str]) -> str:
    seeds, over = ds.sizes["seed"], str(ds.attrs.get("over", "")).split(", ")
    named = ", ".join(setting_text.key_label(key) for key in over if key)
    what = best_rows.spread_text(ds.measured.transpose("row", "column", "seed").values)
    parts = [", ".join([title, *common]) + (f", by {named}" if named else "")]
    if other := ds.attrs.get("paired_to"):
        parts.append(f"minus that of {look.label(str(other))}, seed by seed")
    parts.append(f"{what} of up to {seeds} seeds" if seeds > 1 else "one seed")
    marked = {mark for place in range(ds.sizes["column"]) for mark in _marks(ds.isel(column=place))}
    if "best" in marked:
        parts.append("bold: best" + f"; {best_rows.MEANING}" * ("tie" in marked))
    if bool(ds.quick.any()):
        parts.append("quick: small variant, not to be compared with the paper's numbers")
    return "; ".join(parts)
