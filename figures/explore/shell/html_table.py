"""Tables and lines of text as HTML, escaped."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape

import numpy as np
import panel as pn
from bokeh.models.widgets.tables import StringFormatter

from figures.axes.units import ABSENT


def pane(label: str = "") -> pn.pane.HTML:
    """An empty place for tables and lines.

    Args:
        label: What stands in it, as a class of the page, for tests and styles.
    """
    classes = [label] if label else []
    return pn.pane.HTML("", sizing_mode="stretch_width", css_classes=classes)


def table(head: Sequence[str], rows: Iterable[Sequence[str]], *, caption: str = "") -> str:
    """A table; the first cell of each row is its heading.

    Args:
        head: Headings of the columns.
        rows: Texts of the cells.
        caption: What it shows.
    """
    top = "".join(f"<th scope='col'>{escape(text)}</th>" for text in head)
    lines = "".join(_row(cells) for cells in rows)
    about = f"<caption>{escape(caption)}</caption>" if caption else ""
    html = f"<table class='numbers'>{about}<thead><tr>{top}</tr></thead><tbody>{lines}</tbody></table>"
    return f"<div class='wide'>{html}</div>"


def _row(cells: Sequence[str]) -> str:
    first, *rest = (escape(cell) for cell in cells)
    return f"<tr><th scope='row'>{first}</th>{''.join(f'<td>{cell}</td>' for cell in rest)}</tr>"


def rounded(values: np.ndarray) -> list[float] | list[int]:
    """Numbers for a table that is sorted: whole ones without decimals, others with four digits."""
    integral = np.isfinite(values).all() and (values == np.round(values)).all() and (abs(values) > 1).any()
    return values.astype(int).tolist() if integral else [float(f"{value:.4g}") for value in values]


def as_written() -> StringFormatter:
    """Format of a column of rounded numbers, whose digits all stand on the page; a dash where there is none."""
    return StringFormatter(nan_format=ABSENT, null_format=ABSENT)


def lines(texts: Iterable[str]) -> str:
    """A paragraph per text."""
    return "".join(f"<p class='remark'>{escape(text)}</p>" for text in texts)


def folded(summary: str, content: str) -> str:
    """Content that opens by a click on its summary.

    Args:
        summary: Text.
        content: HTML.
    """
    return f"<details><summary>{escape(summary)}</summary>{content}</details>"
