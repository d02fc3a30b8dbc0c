"""Datasets as tables: rows are methods or whatever is compared, the best of each column is marked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import xarray as xr

from figures.axes.units import ABSENT, ranged
from figures.looks import look
from figures.selection import setting_text
from figures.selection.sampling_error import over_last_rounds
from figures.texts import table_formats
from figures.texts.best_rows import Mark, better, column_marks, deviates, meaning, range_marks, spread_text
from figures.texts.cell_text import AMOUNTS, mean_text, number_text


@dataclass(frozen=True)
class Cell:
    """A number as text, its mark, and whether a paper printed it."""

    text: str
    mark: Mark = ""
    printed: bool = False


@dataclass(frozen=True)
class Table:
    """A table as text.

    Args:
        corner: Heading of the names of the rows.
        head: Headings of the columns.
        rows: Name and cells of each row.
        note: What the numbers and marks are.
    """

    corner: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, tuple[Cell, ...]], ...]
    note: str = ""

    latex = table_formats.latex
    markdown = table_formats.markdown
    html = _repr_html_ = table_formats.html


def table(
    ds: xr.Dataset,
    *,
    variables: Sequence[str] | None = None,
    rows: str | None = None,
    samples: int | None = None,
    title: str = "",
) -> Table:
    """Any result over one or two dimensions, and perhaps seeds, as a table in LaTeX, Markdown and HTML.

        figures.table(gallery.load("accuracy-table").data(runs)).latex()

    Numbers are means over seeds, with half their 95 % t interval if all have five seeds or more, else with their
    standard deviation. Of a series over rounds, the last ten evaluated rounds are averaged. In each column where larger
    or smaller values are better (accuracy, loss, ..), the best mean is bold, and rows that cannot be told from it are
    in italics, as in the figures (`figures.texts.best_rows`).

    Args:
        ds: Such as the data of the gallery's tables, or the result of an analysis.
        variables: Columns, of variables over the rows alone; by default those of the attribute `columns`, or all. Of
            variables with a second dimension, its entries are columns.
        rows: Dimension of the rows; by default algorithm, row, mark, layer or client, else whichever comes first.
        samples: Test samples behind accuracies, from which ties of single seeds follow; by default as the data say.
        title: What the numbers are, with which the note begins; by default in the words of the data.

    Raises:
        ValueError: If a variable is absent or has too many dimensions.
        LookupError: If nothing has rows.
    """
    over = _rows(ds) if rows is None else rows
    if over not in ds.dims:
        raise ValueError(f"no dimension {over!r} for the rows; there are {', '.join(map(str, ds.dims)) or 'none'}.")
    ds = ds if samples is None else ds.assign_attrs(test_samples=samples)
    stated = [name for name in str(ds.attrs.get("columns", "")).split(", ") if name]
    names = (stated or _variables(ds, over)) if variables is None else list(variables)
    if absent := [name for name in names if name not in ds]:
        raise ValueError(f"no variable {absent[0]!r}; the result has {', '.join(map(str, ds.data_vars))}.")
    ds = ds.drop_vars([name for name in _variables(ds, over) if name not in names and "seed" in ds[name].dims])
    if rowless := [name for name in names if over not in ds[name].dims]:
        raise ValueError(f"{rowless[0]} has no {over}; give rows=, one of {', '.join(map(str, ds[rowless[0]].dims))}.")
    columns = [column for name in names for column in _columns(ds, name, over)]
    columns = [column for column in columns if any(cell.text != ABSENT for cell in column[1])]
    if not columns:
        raise LookupError(f"no number over {over}; the result has {', '.join(map(str, ds.data_vars)) or 'nothing'}.")
    written = [_row_name(over, str(value)) for value in _entries(ds, over)]
    kept_rows = [index for index in range(len(written)) if any(column[1][index].text != ABSENT for column in columns)]
    body = tuple((written[index], tuple(column[1][index] for column in columns)) for index in kept_rows)
    corner = {"algorithm": "method", "row": _corner(ds)}.get(over, over)
    return Table(corner, tuple(column[0] for column in columns), body, _note(ds, names, columns, title, over))


_Column = tuple[str, list[Cell]]


def _rows(ds: xr.Dataset) -> str:
    first = next((name for name in ("algorithm", "row", "mark", "layer", "client") if name in ds.dims), None)
    others = [str(name) for name in ds.dims if name not in ("seed", "round", "column")]
    if first is None and not others and "round" in ds.dims:
        return "round"
    if first is None and not others:
        raise LookupError("the result has no dimension for rows; select methods, models or layers that are compared.")
    return first or others[0]


def _variables(ds: xr.Dataset, over: str) -> list[str]:
    """Numbers over the rows; no counts, no ends of ranges, no places of marks."""
    hidden = ("_low", "_high", "_std")
    return [
        str(name)
        for name, values in ds.data_vars.items()
        if over in values.dims
        and values.dtype.kind in "fi"
        and not str(name).endswith(hidden)
        and name not in ("quick", "printed")
    ]


def _seeds(ds: xr.Dataset, over: str) -> np.ndarray:
    """Numbers of all cells by seed, shape (cells, seeds), of series those that `_columns` has."""
    tables = [ds[name] for name in _variables(ds, over) if "seed" in ds[name].dims]
    tables = [over_last_rounds(values) if "round" in values.dims and over != "round" else values for values in tables]
    shown = [values.transpose(..., "seed").values.reshape(-1, ds.sizes["seed"]) for values in tables]
    return np.concatenate(shown or [np.zeros((0, 1))])


def _columns(ds: xr.Dataset, name: str, over: str) -> list[_Column]:
    values = ds[name]
    if "round" in values.dims and over != "round":
        about = values.attrs
        values = over_last_rounds(values).assign_attrs(about)
    rest = [str(dim) for dim in values.dims if dim not in (over, "seed")]
    if len(rest) > 1:
        raise ValueError(f"{name} has dimensions {', '.join(map(str, values.dims))}; a table takes two and seeds.")
    entries: Sequence[str] = [str(entry) for entry in _entries(ds, rest[0])] if rest else [""]
    columns: list[_Column] = []
    for index, entry in enumerate(entries):
        selected = values.isel({rest[0]: index}) if rest else values
        columns.append((_heading(ds, values, entry), cells(ds, selected, over, entry)))
        if name == "measured" and (printed := printed_cells(ds.isel(column=index))):
            columns.append((f"{columns[-1][0]}, printed", printed))
    return columns


def printed_cells(ds: xr.Dataset) -> list[Cell]:
    """What a paper prints in one column, beside what was measured; none where it prints nothing."""
    if "printed" not in ds or not bool(ds.printed.notnull().any()):
        return []
    return [Cell(number_text(float(value), ds.measured), printed=True) for value in ds.printed.values]


def cells(ds: xr.Dataset, selected: xr.DataArray, over: str, entry: str = "") -> list[Cell]:
    """Mean and deviation of each row of a column, marked; in pictures and texts.

    Args:
        ds: The table, as `figures.texts.best_rows.column_marks` takes it.
        selected: The column.
        over: Dimension of the rows.
        entry: Name of the column.
    """
    name = str(selected.name)
    numbers = selected.transpose(over, "seed") if "seed" in selected.dims else selected.expand_dims(seed=1, axis=1)
    direction = better(selected, entry)
    states: list[Mark] = [""] * len(numbers)
    if f"{name}_low" in ds:  # measured with a range: rows whose range meets that of the best are ties
        unit = selected.attrs.get("units", "1")
        texts = [ranged(ds.isel({over: index}), name, unit).replace("\n", " ") for index in range(len(numbers))]
        states = range_marks(ds, name, direction)
    else:
        table = _seeds(ds, over)
        counted, deviation = len({*(~np.isnan(table)).sum(-1)} - {0}) > 1, deviates(table)
        texts = [mean_text(row, selected, deviation=deviation, counted=counted) for row in numbers.values]
        states = column_marks(ds, selected, over, entry)
    printed = name.endswith("_printed")
    return [Cell(text, "" if printed else state, printed) for text, state in zip(texts, states, strict=True)]


def _heading(ds: xr.Dataset, values: xr.DataArray, entry: str) -> str:
    name, unit = str(values.attrs.get("long_name", values.name)).replace("_", " "), values.attrs.get("units", "1")
    percent = "" if "digits" in values.attrs else "%"
    unit = {"fraction": percent, "1": "", "": "", "rounds": ""}.get(str(unit), str(unit))
    if values.name == "measured":
        over = [setting_text.key_label(key) for key in str(ds.attrs.get("over", "")).split(", ") if key]
        several = ds.sizes["column"] > 1  # a single setting is in the caption
        name = f"{', '.join(over)} {entry}" if over and entry else entry if several and entry else name
    elif entry:
        name = f"{name}, {entry}"
    return name if not unit or unit in AMOUNTS else f"{name} [{unit}]"


def _note(ds: xr.Dataset, names: Sequence[str], columns: Sequence[_Column], title: str, over: str) -> str:
    cells = [cell for _, column in columns for cell in column]
    seeds = ds.sizes.get("seed", 1)
    texts = [title] if title else [str(ds[name].attrs.get("long_name", "")) for name in names if name == "measured"]
    texts += ["means over the last ten evaluated rounds"] * (
        over != "round" and any("round" in ds[name].dims for name in names)
    )
    if seeds > 1 and "\u00b1" not in title:
        texts.append(spread_text(_seeds(ds, over)))
    texts += [meaning({cell.mark for cell in cells}, seeds)] * ("bold" not in title)
    if "quick" in ds and bool(ds.quick.any()):
        texts.append("quick: small variant, not to be compared with printed numbers")
    return "; ".join(filter(None, texts))


def _entries(ds: xr.Dataset, dim: str) -> np.ndarray:
    return ds[dim].values if dim in ds.coords else np.arange(ds.sizes[dim])


def _corner(ds: xr.Dataset) -> str:
    key = str(ds.attrs.get("rows", "method"))
    return "method" if key in ("method", "base", "pool") else setting_text.key_label(key)


def _row_name(over: str, value: str) -> str:
    return look.label(value) if over == "algorithm" else setting_text.row_label(value) if over == "row" else value
