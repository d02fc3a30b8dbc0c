"""Tables as LaTeX (booktabs), Markdown and HTML."""

from __future__ import annotations

from collections.abc import Callable
from html import escape
from typing import TYPE_CHECKING

from figures.texts import latex as latex_text

if TYPE_CHECKING:
    from figures.texts.table import Cell, Table

GREY = "#6a6a6a"
"""Colour of numbers that a paper printed."""


def latex(table: Table) -> str:
    """A tabular with the rules of booktabs; \\usepackage{booktabs} is all that it needs."""
    columns = "l" + "r" * len(table.head)
    lines = [f"% {table.note}"] if table.note else []
    lines += [f"\\begin{{tabular}}{{{columns}}}", "\\toprule"]
    lines += [
        _latex_row([_latex_head(table.corner, "l"), *(_latex_head(name, "r") for name in table.head)]),
        "\\midrule",
    ]
    lines += [_latex_row([latex_text.escape(name), *map(_latex_cell, cells)]) for name, cells in table.rows]
    return "\n".join([*lines, "\\bottomrule", "\\end{tabular}"]) + "\n"


def markdown(table: Table) -> str:
    """A table in Markdown as GitHub and Pandoc read it."""
    rule = ["---", *("---:" for _ in table.head)]
    rows = [[table.corner, *table.head], rule, *([name, *map(_markdown_cell, cells)] for name, cells in table.rows)]
    texts = ["| " + " | ".join(cell.replace("|", "\\|") for cell in row) + " |" for row in rows]
    return "\n".join([*texts, *(["", sentence(table.note)] if table.note else [])]) + "\n"


def html(table: Table) -> str:
    """A table element with scopes of headings and the note as its caption."""
    head = "".join(f'<th scope="col">{escape(name)}</th>' for name in (table.corner, *table.head))
    body = "\n".join(
        f'<tr><th scope="row">{escape(name)}</th>{"".join(map(_html_cell, cells))}</tr>' for name, cells in table.rows
    )
    caption = f"<caption>{escape(sentence(table.note))}</caption>\n" if table.note else ""
    return f"<table>\n{caption}<thead><tr>{head}</tr></thead>\n<tbody>\n{body}\n</tbody>\n</table>\n"


LONGEST = 16
"""Letters of a heading beyond which LaTeX breaks it into lines."""


def _latex_head(text: str, side: str) -> str:
    """A heading; a long one in several lines, which the tabular inside aligns."""
    lines = [""]
    for word in text.split():
        start_new = lines[-1] and len(lines[-1]) + len(word) >= LONGEST
        lines = [*lines, word] if start_new else [*lines[:-1], f"{lines[-1]} {word}".strip()]
    escaped = " \\\\ ".join(latex_text.escape(line) for line in lines)
    return escaped if len(lines) == 1 else f"\\begin{{tabular}}[b]{{@{{}}{side}@{{}}}}{escaped}\\end{{tabular}}"


def _latex_row(cells: list[str]) -> str:
    return " & ".join(cells) + " \\\\"


def _latex_cell(cell: Cell) -> str:
    text = latex_text.escape(cell.text)
    return {"best": f"\\textbf{{{text}}}", "tie": f"\\textit{{{text}}}"}.get(cell.mark, text)


def _markdown_cell(cell: Cell) -> str:
    return {"best": f"**{cell.text}**", "tie": f"*{cell.text}*"}.get(cell.mark, cell.text)


def _html_cell(cell: Cell) -> str:
    text = escape(cell.text)
    look = f' style="color: {GREY}"' if cell.printed else ""
    marked = {"best": f"<b>{text}</b>", "tie": f"<i>{text}</i>"}.get(cell.mark, text)
    return f"<td{look}>{marked}</td>"


def sentence(note: str) -> str:
    return note[:1].upper() + note[1:] + "."


FORMS: dict[str, Callable[[Table], str]] = {".tex": latex, ".md": markdown, ".html": html}
"""Writers by file suffix."""
