"""Writes the texts of a picture beside it: caption, text for readers who cannot see it, and of tables the table."""

from pathlib import Path

import xarray as xr
from matplotlib.figure import Figure

from figures.looks.literal import plain
from figures.texts.alt_text import LONGEST, alt_text, shorten
from figures.texts.caption import caption, caption_latex, shown_in
from figures.texts.finding import finding, is_table
from figures.texts.table import Table, table
from figures.texts.table_formats import sentence
from landscape.results.atomic_write import write_bytes


def write(stem: Path, headline: str, ds: xr.Dataset, figure: Figure, *, samples: int | None = None) -> list[Path]:
    """Write STEM.tex (\\caption and \\label), STEM.txt and STEM.alt.txt; of tables also STEM.table.tex, .md and .html.

    Args:
        stem: Path of the picture without its suffix.
        headline: What the figure shows.
        ds: As the figure's data() returns it.
        figure: Drawn from it.
        samples: Test samples behind its accuracies.

    Returns:
        Paths of the files.
    """
    rows = table(ds, samples=samples, title=_title(figure)) if is_table(ds) else None
    shown = shown_in(headline, ds)
    text = caption(headline, ds, figure) + (f" {sentence(rows.note)}" if rows is not None and rows.note else "")
    texts = {
        "tex": caption_latex(text, stem.name, kind="fig" if rows is None else "tab"),
        "txt": text + "\n",
        "alt.txt": (alt_text(_first(shown, ds, figure), figure) if rows is None else _as_text(shown, rows)) + "\n",
    }
    if rows is not None:
        texts |= {"table.tex": rows.latex(), "table.md": rows.markdown(), "table.html": rows.html()}
    paths = [stem.with_name(f"{stem.name}.{suffix}") for suffix in texts]
    for path, content in zip(paths, texts.values(), strict=True):
        write_bytes(path, content.encode())
    return paths


def _first(shown: str, ds: xr.Dataset, figure: Figure) -> str:
    """The headline of a caption and what is seen."""
    seen = finding(ds, figure)
    return ". ".join(filter(None, [shown.rstrip("."), seen[:1].upper() + seen[1:]]))


def _title(figure: Figure) -> str:
    """What the numbers of a drawn table are: the title of its first panel."""
    first = figure.get_axes()[0]
    return plain(" ".join((first.get_title(loc="left") or first.get_title()).split()))


def _as_text(shown: str, rows: Table) -> str:
    """A table in sentences, a row in each; a long one by its rows and columns, and the best of each column."""
    named = [(name, list(zip(rows.head, cells, strict=True))) for name, cells in rows.rows]
    lines = [f"{name}: {', '.join(f'{head} {cell.text}' for head, cell in cells)}." for name, cells in named]
    if len(text := " ".join([f"{shown.rstrip('.')}.", *lines])) <= LONGEST:
        return text
    names = f"{len(named)} rows: {', '.join(name for name, _ in named)}."
    best = [
        f"best in {head}: {name}, {cell.text}" for name, cells in named for head, cell in cells if cell.mark == "best"
    ]
    return shorten(f"{shown.rstrip('.')}. {names}", best or list(rows.head), "column")
