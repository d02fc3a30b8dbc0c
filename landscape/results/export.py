"""Datasets for other programs: surfaces for ParaView (VTK, PLY), every number as a CSV table, and netCDF."""

import re
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
import pandas as pd
import xarray as xr

from landscape.results.netcdf_files import content, sort_names

RELIEF = 0.5
"""Height of a drawn surface, as a fraction of its longer side."""


def export_bytes(ds: xr.Dataset, form: str) -> bytes:
    """A dataset as the content of a file, its variables in the order of their names.

    Args:
        form: "csv" (wide), "tidy" (long CSV), "vtk", "ply" or "nc".

    Raises:
        ValueError: If the form is unknown, or a surface is asked of what is none.
    """
    if form not in FORMS:
        raise ValueError(f"cannot export as {form!r}; the forms are {', '.join(FORMS)}.")
    return FORMS[form](ds)


def csv_wide(ds: xr.Dataset) -> bytes:
    """Every number of a dataset as a table with a column per dimension and per variable, a row per place.

    A dimension has its coordinate, else the position. A variable over a part of the dimensions is repeated along the
    others. Where no variable is over all dimensions, those over different ones stand below each other, each with the
    other columns empty. Numbers are written so that reading restores the same bits; missing ones are empty. Attributes
    and units are not in the table.
    """
    dims = [str(dim) for dim in ds.dims]
    ds = sort_names(ds)
    variables = {str(name): frozenset(ds[name].dims) for name in ds.variables if name not in ds.dims}
    widest = [key for key in dict.fromkeys(variables.values()) if not any(key < other for other in variables.values())]
    blocks = []
    for axes in widest:
        order = [dim for dim in dims if dim in axes]
        names = [
            name for name, own_table in variables.items() if next(wide for wide in widest if own_table <= wide) == axes
        ]
        shape = {dim: ds.sizes[dim] for dim in order}
        arrays = {**{dim: ds[dim] for dim in order}, **{name: ds[name] for name in names}}
        flat = {name: array.variable.set_dims(shape).transpose(*order).values for name, array in arrays.items()}
        blocks.append(
            pd.DataFrame({name: pd.Series(np.ravel(array).tolist(), dtype=object) for name, array in flat.items()})
        )
    table = pd.concat(blocks, ignore_index=True) if blocks else pd.DataFrame()
    return csv_text(table.reindex(columns=[*dims, *variables]))


def csv_tidy(ds: xr.Dataset) -> bytes:
    """Every number of a dataset as a long table: one row per value.

    Columns are variable, each dimension (its coordinate where there is one, else the position; empty where the
    variable is not over it), value and units. A dimension called as another column, such as value, is at_value. Numbers
    are written as in `csv_wide`. Attributes are not in the table.
    """
    ds = ds.rename({dim: f"at_{dim}" for dim in ds.dims if dim in ("variable", "value", "units")})
    dims = [str(dim) for dim in ds.dims]
    ds = sort_names(ds)
    units = {str(name): array.attrs.get("units", "") for name, array in ds.variables.items()}
    tables = [_rows(ds, str(name)).astype(object) for name in ds.variables if name not in ds.dims]
    table = pd.concat(tables, ignore_index=True) if tables else pd.DataFrame({"variable": []})
    table["units"] = table["variable"].map(units).fillna("")
    return csv_text(table.reindex(columns=["variable", *dims, "value", "units"]))


def csv_text(table: pd.DataFrame) -> bytes:
    """A table without its index as CSV, of which no text is a formula to a program that opens it.

    Text that begins with =, +, -, @, a tab or a line end has an apostrophe before it, but for numbers.
    """
    texts = table.select_dtypes(exclude=["number", "bool"])
    safe = {name: pd.Series([_no_formula(cell) for cell in texts[name]], texts.index, object) for name in texts}
    return table.assign(**safe).rename(columns=_no_formula).to_csv(index=False).encode()


def _no_formula(value: Any) -> Any:
    if not isinstance(value, str) or value[:1] not in tuple("=+-@\t\r\n"):
        return value
    return value if _NUMBER.fullmatch(value) else f"'{value}"


_NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?|[+-](inf|nan)")


def vtk_grid(ds: xr.Dataset, *, height: str = "loss", log: bool = False) -> bytes:
    """A surface as a VTK structured grid (legacy text format, version 3.0), as ParaView reads it.

    Points stand at (first dimension, second dimension, relief of `height`); every variable over both dimensions is
    point data, one array for each place along a third dimension. Missing values are nan in the data and lie at the
    bottom of the relief, infinite ones at its top.

    Source: "VTK File Formats", section "Simple Legacy Formats", dataset STRUCTURED_GRID.

    Args:
        ds: With at least one variable over two grid dimensions.
        height: Variable of the relief.
        log: Heights are logarithms of it.

    Raises:
        ValueError: If there is no such surface, or its values have no logarithm.
    """
    x, y, z = _relief(ds, height, log)
    z = np.where(np.isposinf(_layers(ds[[height]], _plane(ds, height))[0][1]), np.nanmax(z), z)
    rows, columns = z.shape
    points = np.stack([x, y, np.nan_to_num(z, nan=0.0)], 2).transpose(1, 0, 2).reshape(-1, 3)  # x runs fastest
    lines = ["# vtk DataFile Version 3.0", _title(ds, height, log), "ASCII", "DATASET STRUCTURED_GRID"]
    lines += [f"DIMENSIONS {rows} {columns} 1", f"POINTS {points.shape[0]} double", *_text(points)]
    lines.append(f"POINT_DATA {points.shape[0]}")
    for name, values in _layers(ds, _plane(ds, height)):
        lines += [f"SCALARS {name} double 1", "LOOKUP_TABLE default", *_text(values.T.reshape(-1, 1))]
    return ("\n".join(lines) + "\n").encode("ascii")


def ply_mesh(ds: xr.Dataset, *, height: str = "loss", log: bool = False) -> bytes:
    """A surface as a PLY mesh of triangles (text format 1.0), as ParaView, Blender and MeshLab read it.

    Vertices stand where `vtk_grid` puts points and carry every variable over the grid as a property. Missing points
    are left out, and the triangles at them.

    Source: Turk 1994, "The PLY Polygon File Format".

    Args:
        ds, height, log: As `vtk_grid` takes them.

    Raises:
        ValueError: If there is no such surface, or its values have no logarithm.
    """
    x, y, z = _relief(ds, height, log)
    there = np.isfinite(z)
    layers = _layers(ds, _plane(ds, height))
    vertices = np.stack([x[there], y[there], z[there], *(values[there] for _, values in layers)], 1)
    number = np.full(z.shape, -1)
    number[there] = np.arange(there.sum())
    a, b, c, d = (corner.ravel() for corner in (number[:-1, :-1], number[1:, :-1], number[1:, 1:], number[:-1, 1:]))
    faces = np.concatenate([np.stack([a, b, c], 1), np.stack([a, c, d], 1)])
    faces = faces[(faces >= 0).all(1)]
    header = ["ply", "format ascii 1.0", f"comment {_title(ds, height, log)}", f"element vertex {len(vertices)}"]
    header += [f"property double {name}" for name in ("x", "y", "z", *(name for name, _ in layers))]
    header += [f"element face {len(faces)}", "property list uchar int vertex_indices", "end_header"]
    body = [*_text(vertices), *(f"3 {i} {j} {k}" for i, j, k in faces.tolist())]
    return ("\n".join([*header, *body]) + "\n").encode("ascii")


FORMS: dict[str, Callable[[xr.Dataset], bytes]] = {
    "csv": csv_wide,
    "tidy": csv_tidy,
    "vtk": vtk_grid,
    "ply": ply_mesh,
    "nc": content,
}
"""Writers by file suffix; "tidy" is the other form of CSV."""


def _rows(ds: xr.Dataset, name: str) -> pd.DataFrame:
    """The values of one variable in long form."""
    array = ds[name]
    ticks = (ds[dim].values if dim in ds.coords else np.arange(ds.sizes[dim]) for dim in array.dims)
    places = pd.DataFrame(product(*(values.tolist() for values in ticks)), columns=list(map(str, array.dims)))
    return places.assign(value=pd.Series(array.values.ravel().tolist(), dtype=object), variable=name)


def _plane(ds: xr.Dataset, height: str) -> tuple[str, str]:
    """The two grid dimensions of the variable `height`."""
    if height not in ds or len(ds[height].dims) < 2:
        description = (
            f"{height} over {', '.join(map(str, ds[height].dims)) or 'nothing'}" if height in ds else f"no {height}"
        )
        raise ValueError(
            f"the dataset has {description}; VTK and PLY take a surface over two dimensions: export it as CSV."
        )
    first, second = map(str, ds[height].dims[-2:])
    return first, second


def _relief(ds: xr.Dataset, height: str, log: bool) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """x, y and z of every grid point; z runs from 0 to RELIEF of the longer side."""
    dims = _plane(ds, height)
    ticks = [ds[dim].values.astype(float) if dim in ds.coords else np.arange(float(ds.sizes[dim])) for dim in dims]
    x, y = np.meshgrid(*ticks, indexing="ij")
    z = _layers(ds[[height]], dims)[0][1].astype(float)
    z = np.where(np.isfinite(z), z, np.nan)
    if log:
        if np.nanmin(z) <= 0:
            raise ValueError(f"{height} falls to {np.nanmin(z):.3g}; only values above 0 have a logarithm.")
        z = np.log(z)
    if np.isnan(z).all():
        raise ValueError(f"{height} has no finite value; there is nothing to export.")
    z = z - np.nanmin(z)
    return x, y, z * (RELIEF * max(np.ptp(x), np.ptp(y)) / np.nanmax(z) if np.nanmax(z) > 0 else 1)


def _layers(ds: xr.Dataset, dims: Sequence[str]) -> list[tuple[str, np.ndarray]]:
    """Names of ASCII letters, each once, and values (rows, columns) of every number over the two dimensions."""
    layers = [
        (name, np.asarray(slab.transpose(*dims).values, dtype=float))
        for key, array in sort_names(ds).items()
        if {*dims} <= {*array.dims} and array.dtype.kind in "fiub"
        for name, slab in _split(str(key), array, [str(dim) for dim in array.dims if dim not in dims])
    ]
    names: list[str] = []
    for name, _ in layers:
        letters = unicodedata.normalize("NFKD", name)
        plain = re.sub(r"[^A-Za-z0-9]", "_", "".join(letter for letter in letters if not unicodedata.combining(letter)))
        while plain in (*names, "x", "y", "z"):
            plain += "_"
        names.append(plain)
    return [(name, values) for name, (_, values) in zip(names, layers, strict=True)]


def _split(name: str, array: xr.DataArray, others: list[str]) -> Iterator[tuple[str, xr.DataArray]]:
    """A variable place by place along its other dimensions."""
    if not others:
        yield name, array
        return
    for index in range(array.sizes[others[0]]):
        slab = array.isel({others[0]: index})
        coordinate = slab[others[0]].item() if others[0] in slab.coords else index
        yield from _split(f"{name}_{others[0]}_{coordinate}", slab, others[1:])


def _title(ds: xr.Dataset, height: str, log: bool) -> str:
    """One line about the surface, of at most 255 characters."""
    what = f"log {height}" if log else height
    text = f"fedscape {ds.attrs.get('analysis', 'surface')} {ds.attrs.get('run', '')}: z is {what}, scaled"
    return " ".join(text.encode("ascii", "replace").decode().split())[:255]


def _text(rows: np.ndarray) -> list[str]:
    """Rows of numbers as text that reads back to the same bits."""
    return [" ".join(map(repr, row)) for row in rows.tolist()]
