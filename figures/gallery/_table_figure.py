"""The figure of a table: measured numbers, and in grey on grey those that a paper prints."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Rectangle

from figures.axes.units import ABSENT
from figures.looks import look, style
from figures.looks.layout import PAGE
from figures.selection import setting_text
from figures.texts import best_rows
from figures.texts.table import Cell, cells, printed_cells

PALE = "#6a6a6a"
"""Colour of a paper's own numbers."""

LINE = 0.76
"""Height of a further line of text in a cell or head, in rows."""


def draw_table(ds: xr.Dataset, title: str) -> Figure:
    """A table: per column the measured numbers, the best in bold, ties in italics; next to them those of a paper.

    What all of several columns have in common stands above the table once. Columns that do not fit into one block form
    another below it, with the rows that have numbers there. All numbers have half the 95 % t interval of their mean, or
    all their standard deviation (`figures.texts.best_rows.deviates`).

    Args:
        ds: As `_tables.tabulate` returns it.
        title: What the numbers are.
    """
    names = [style.literal(setting_text.row_label(str(name))) for name in ds.row.values]
    heads, common = _heads([str(column) for column in ds.column.values])
    groups = [_group(ds, index, head) for index, head in enumerate(heads)]
    stub = setting_text.key_label(str(ds.attrs.get("rows", "method")))
    return draw_groups(groups, names, _note(ds, title, common, groups), stub)


def draw_groups(groups: Sequence[Group], names: Sequence[str], note: str, stub: str = "method") -> Figure:
    """Groups of columns in blocks that fit the width, with the names of their rows, below a note.

    The figure is as wide as its widest block, and a column at least. Columns that say the same in every row are words
    of the note, unless all are.

    Args:
        stub: What the rows are.

    Raises:
        ValueError: If they do not fit a page.
    """
    equal = [group for group in groups if len(names) > 1 and group.says_the_same]
    if 0 < len(equal) < len(groups):
        groups = [group for group in groups if group not in equal]
        texts = [f"{' '.join(group.head)} {group.measured[0].text}" for group in equal]
        note = f"{note}; the same in every row: {', '.join(texts)}"
    names, letter = [stub, *names], 0.575 * style.small() / 72  # inches of small text
    blocks = _blocks(groups, names, style.width() / letter)
    first = 2.0 + max(map(len, names))
    ends = [first + sum(sum(group.widths) for group in block) for block in blocks]
    width = min(style.WIDE, max(style.NARROW, letter * max(ends)))
    letters = style.width(width) / letter
    extents = [(*_extent(block), _lift(block)) for block in blocks]
    heights = [sum(rows.values()) * 0.17 + tall * 0.13 + 0.27 + 0.15 * lift for rows, tall, lift in extents]
    lines = [line for sentence in note.splitlines() for line in textwrap.wrap(sentence, int(letters))]
    height = sum(heights) + 0.2 + 0.13 * len(lines)
    if height > PAGE and not look.current().composed:
        raise ValueError(
            f"a table of this size (rows: {len(names) - 1}, columns: {len(groups)}) does not fit a page at this width; "
            f"give fewer runs{', or a larger width' if width < style.WIDE else ''}."
        )
    figure, axs = style.panels(len(blocks), 1, width=width, height=height, height_ratios=heights)
    for ax, block, end in zip(axs[:, 0], blocks, ends, strict=True):
        _table(ax, names, block, end)
        ax.set_xlim(0, max(end, letters))
    axs[0, 0].set_title(style.literal("\n".join(lines)), fontsize=style.small(), loc="left")
    return figure


def _heads(columns: Sequence[str]) -> tuple[list[list[str]], list[str]]:
    """Lines of the head of every column, and the parts that all of several columns have."""
    words = [column.split(", ") for column in columns]
    several = len(words) > 1
    common = [word for word in words[0] if several and word and all(word in others for others in words)]
    heads = [[word for word in row if word not in common] for row in words]
    return [[line for word in row for line in textwrap.wrap(word, 20 if several else 40)] for row in heads], common


@dataclass(frozen=True)
class Group:
    """Columns under one head: its lines, and the cells of what was measured and perhaps printed, by their subheads."""

    head: list[str]
    columns: dict[str, list[Cell]]

    @property
    def widths(self) -> list[float]:
        """Letters of each column."""
        texts = ["\n".join([name, *(cell.text for cell in rows)]) for name, rows in self.columns.items()]
        inner = [max(map(len, text.split("\n"))) + 2.5 for text in texts]
        lack = max(0.0, max(map(len, self.head), default=0) + 2.0 - sum(inner))
        return [width + lack / len(inner) for width in inner]

    @property
    def says_the_same(self) -> bool:
        """Whether there is one column, with one text in all its cells."""
        return len(self.columns) == 1 and len({cell.text for cell in self.measured}) == 1

    @property
    def measured(self) -> list[Cell]:
        """The cells of the first column."""
        return next(iter(self.columns.values()))


def _group(ds: xr.Dataset, index: int, head: list[str]) -> Group:
    column = ds.isel(column=index)
    measured = cells(ds, column.measured, "row", str(column.column.item()))
    printed = printed_cells(column)
    name = "quick" if int(column.quick) else "" if head and not printed else "measured"
    return Group(head, {name: measured, **({"paper": printed} if printed else {})})


def _blocks(groups: Sequence[Group], names: Sequence[str], letters: float) -> list[list[Group]]:
    """The groups in blocks that fit the width, of about equal numbers of groups."""
    room, blocks = letters - 2 - max(map(len, names)), list[list[Group]]()
    for group in groups:
        if blocks and sum(sum(other.widths) for other in [*blocks[-1], group]) <= room:
            blocks[-1].append(group)
        else:
            blocks.append([group])
    return blocks


def _extent(groups: Sequence[Group]) -> tuple[dict[int, float], int]:
    """Heights of the rows with a measured number in a block (of all where none has) by place; lines of its heads."""
    every = range(len(groups[0].measured))
    shown = [row for row in every if any(group.measured[row].text != ABSENT for group in groups)]
    columns = [column for group in groups for column in group.columns.values()]
    more = {row: max(column[row].text.count("\n") for column in columns) for row in shown or every}
    return {row: 1 + LINE * lines for row, lines in more.items()}, max(len(group.head) for group in groups)


def _lift(groups: Sequence[Group]) -> float:
    """Height of the line of subheads, in rows: next to none where there is no subhead."""
    return 1.0 if any(any(group.columns) for group in groups) else 0.1


def _table(ax: Axes, names: Sequence[str], groups: Sequence[Group], end: float) -> None:
    """One block, `end` letters wide: names at the left, each group under its head between thin rules."""
    ax.set_axis_off()
    shown, tall = _extent(groups)
    first = 2.0 + max(map(len, names))
    rows, lift = sum(shown.values()), _lift(groups)
    edges = rows - np.cumsum([0, *shown.values()])
    middles = dict(zip(shown, (edges[:-1] + edges[1:]) / 2, strict=True))
    top = rows + 0.1 + lift + tall * LINE
    ax.set_ylim(-0.1, top + 0.1)
    between = [(float(edge), 0.2) for edge in edges[1:-1]]
    for y, wide in ((0.0, 0.9), (rows + 0.1, 0.6), (top, 0.9), *between):
        ax.plot([0, end], [y, y], color="black", linewidth=wide, clip_on=False)
    ax.text(0, rows + 0.25, names[0], va="bottom", fontsize=style.small())
    for row, middle in middles.items():
        ax.text(0, middle, names[row + 1], va="center_baseline", fontsize=style.small())
    at = first
    for group in groups:
        right = at + sum(group.widths)
        if any(group.columns) and group.head:
            ax.plot([at + 1.5, right], [rows + 1.0, rows + 1.0], color="black", linewidth=0.4)
        for number, text in enumerate(reversed(group.head)):
            y = rows + 0.15 + lift + number * LINE
            ax.text(right, y, style.literal(text), ha="right", va="bottom", fontsize=style.small())
        for width, (subhead, column) in zip(group.widths, group.columns.items(), strict=True):
            pale = column[0].printed
            about: dict[str, Any] = {"ha": "right", "va": "center_baseline", "color": PALE if pale else "black"}
            if pale:
                ax.add_patch(Rectangle((at + 1.0, 0), width - 0.5, rows + 0.98, color="#efefef", linewidth=0))
            at += width
            ax.text(at, rows + 0.5, subhead, fontsize=style.small(), style="italic", **about)
            for row, middle in middles.items():
                cell = column[row]
                weight = "bold" if cell.mark == "best" else "normal"
                slope = "italic" if cell.mark == "tie" else "normal"
                note = ax.text(at, middle, cell.text, fontsize=style.small(), **about)
                note.set(fontweight=weight, fontstyle=slope)


def _note(ds: xr.Dataset, title: str, common: Sequence[str], groups: Sequence[Group]) -> str:
    seeds, over = ds.sizes["seed"], str(ds.attrs.get("over", "")).split(", ")
    named = ", ".join(setting_text.key_label(key) for key in over if key)
    what = best_rows.spread_text(ds.measured.transpose("row", "column", "seed").values)
    texts = [", ".join([title, *common]) + (f", by {named}" if named else "")]
    if other := ds.attrs.get("paired_to"):
        texts.append(f"minus that of {look.label(str(other))}, seed by seed")
    texts.append(what if seeds > 1 else "one seed")
    marked = {cell.mark for group in groups for cell in group.measured}
    texts += ["\n" + legend] if (legend := best_rows.meaning(marked, seeds)) else []  # in a line of its own
    if setting := ds.attrs.get("reservation"):
        texts.append(f"measured runs: {setting}")
    if bool(ds.quick.any()):
        texts.append("quick: small variant, not to be compared with the paper's numbers")
    return "; ".join(texts)
