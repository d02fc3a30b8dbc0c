"""Datasets in netCDF files: written whole or not at all, verified before they are read, resumable.

A file is a netCDF-4 file as every tool reads it. Behind it stand a description as JSON, by which the dataset comes back
identical, and a digest of all bytes before it.
"""

import hashlib
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import psutil
import xarray as xr

from landscape.results import pictures
from landscape.results.atomic_write import write_bytes
from landscape.results.parsed_text import json_table

pictures.register()  # `.plot()` on results that are read

_UNREADABLE = (OSError, ValueError, LookupError, RuntimeError, TypeError, AttributeError)

_NAME = re.compile(r"[^\W_][\w +-]{0,59}")
"""Names of variables and dimensions that netCDF takes, and that are no groups."""

_LARGE = 1 << 12
"""Numbers from which a variable is compressed."""

_NO_VARIABLE = "This is a netCDF dimension but not a netCDF variable."
"""What netCDF calls the scale of a dimension without coordinates."""

_MARK = b"fedscape"
_DIGEST = 16


def save(ds: xr.Dataset, path: str | Path) -> None:
    """Write a dataset to a netCDF file, in the place of an earlier one.

    Raises:
        ValueError: If an attribute is neither text nor a number, values are neither numbers, booleans nor text, or a
            text has a character that netCDF does not take.
        OSError: If the disk is full or the folder cannot be written; the earlier file stays.
    """
    write_bytes(Path(path), content(ds))


def content(ds: xr.Dataset) -> bytes:
    """A dataset as the content of a netCDF file; the same bytes for the same dataset.

    Raises:
        ValueError: As `save`.
    """
    _check(ds)
    ds = sort_names(ds)
    names = _stored_names(ds)
    variables = [
        [str(name), names[str(name)], [str(dim) for dim in values.dims], _type(values.values), _plain(values.attrs)]
        for name, values in ds.variables.items()
    ]
    about = json.dumps({"attrs": _plain(ds.attrs), "coords": sorted(map(str, ds.coords)), "variables": variables})
    text = about.encode()
    data = _netcdf(ds, names) + text + len(text).to_bytes(8, "little")
    return data + _digest(data) + _MARK


def _type(data: np.ndarray) -> str:
    """Type of an array, of text the narrowest that holds it, as that of a selection depends on what was left out."""
    return f"<U{max(map(len, data.flat), default=1) or 1}" if data.dtype.kind == "U" else data.dtype.str


def _netcdf(ds: xr.Dataset, names: Mapping[str, str]) -> bytes:
    """A netCDF-4 file: HDF5 datasets whose dimensions are scales. xarray's own writer takes ten times as long."""
    coords = {str(name): values for name, values in ds.coords.items() if name not in ds.dims}
    with h5py.File.in_memory() as file:
        for dim, size in ds.sizes.items():
            if dim not in ds.variables:
                file.create_dataset(names[str(dim)], (size,), "f4").make_scale(f"{_NO_VARIABLE}{size:10}")
        for name, values in ds.variables.items():
            stored = _create(file, names[str(name)], values)
            if name in ds.dims:
                stored.make_scale(names[str(name)])
            shared = [names[other] for other, coord in coords.items() if {*coord.dims} <= {*values.dims}]
            if shared and name not in ds.coords:
                stored.attrs["coordinates"] = " ".join(shared)
        for name, values in ds.variables.items():
            for index, dim in enumerate(values.dims if name not in ds.dims else ()):
                file[names[str(name)]].dims[index].attach_scale(file[names[str(dim)]])
        _add_attributes(file, ds.attrs)
        if coords:
            file.attrs["coordinates"] = " ".join(names[other] for other in coords)
        file.flush()
        return bytes(file.id.get_file_image())


def _create(file: h5py.File, name: str, values: xr.Variable) -> h5py.Dataset:
    """A variable of a file, without its dimensions."""
    data, attrs = values.values, values.attrs
    if data.dtype == bool:  # netCDF has none; xarray calls it so
        data, attrs = data.astype(np.int8), {**attrs, "dtype": "bool"}
    if data.dtype.kind in "OU":
        stored = file.create_dataset(name, data.shape, h5py.string_dtype(), data.astype(object))
    elif data.size >= _LARGE:
        stored = file.create_dataset(name, data=data, compression=1, shuffle=True)
    else:
        stored = file.create_dataset(name, data=data)
    _add_attributes(stored, attrs)
    return stored


def _add_attributes(stored: h5py.File | h5py.Dataset, attrs: Mapping[Any, Any]) -> None:
    for key, value in attrs.items():
        stored.attrs[str(key)] = value if isinstance(value, str) else np.atleast_1d(value)


def load(path: str | Path) -> xr.Dataset:
    """The dataset of a file that `save` wrote, in memory.

    Raises:
        LookupError: If there is none, or it is broken or altered.
    """
    path = Path(path)
    if not path.exists():
        raise LookupError(f"no result at {path}; compute it first.")
    try:
        data = memoryview(path.read_bytes())
        end = len(data) - _DIGEST - len(_MARK)
        if data[-len(_MARK) :] != _MARK or data[end : end + _DIGEST] != _digest(data[:end]):
            raise ValueError("it is not what was saved")
        begin = end - 8 - int.from_bytes(data[end - 8 : end], "little")
        return _dataset(data[:begin], json_table(bytes(data[begin : end - 8])))
    except _UNREADABLE as reason:
        raise LookupError(f"the result {path} cannot be read ({reason}); delete it and compute it again.") from reason


def sort_names(ds: xr.Dataset) -> xr.Dataset:
    """The dataset with its coordinates, then its variables, and all attributes in the order of their names.

    xarray leaves them in any order where it takes some variables of a dataset.
    """
    fixed = ds.copy()[[*sorted(ds.coords, key=str), *sorted(ds.data_vars, key=str)]]
    for variable in fixed.variables.values():
        variable.attrs = dict(sorted(variable.attrs.items()))
    fixed.attrs = dict(sorted(ds.attrs.items()))
    return fixed


@dataclass(frozen=True)
class Partial:
    """A resumable result, for `surface(known=.., checkpoint=..)`.

        partial = Partial(path)
        ds = surface(task, sweep, known=partial.known(), checkpoint=partial.checkpoint)
        partial.checkpoint(ds)

    An unfinished result is stored at `path` too, with missing cells.
    """

    path: str | Path

    def known(self) -> xr.Dataset | None:
        """The result of the last computation so far, or None.

        Raises:
            LookupError: If the stored result is broken.
        """
        return load(self.path) if Path(self.path).exists() else None

    def checkpoint(self, ds: xr.Dataset) -> None:
        """Store the result so far."""
        save(ds, self.path)


def _dataset(data: memoryview, about: Mapping[str, Any]) -> xr.Dataset:
    """The dataset of a netCDF file's bytes, as its description has it."""
    with h5py.File.in_memory(data) as file:
        stored = {name: _stored(file, stored_name) for name, stored_name, *_ in about["variables"]}
        size, free = sum(values.nbytes for values in stored.values()), psutil.virtual_memory().available
        if size > free:  # by the shapes that it states, before it is read
            raise ValueError(f"it states {size} bytes, and {free} are free")
        variables = {
            name: (dims, _values(stored[name], np.dtype(dtype)), attrs)
            for name, _, dims, dtype, attrs in about["variables"]
        }
    return xr.Dataset(variables, attrs=about["attrs"]).set_coords(about["coords"])


def _stored(file: h5py.File, name: str) -> h5py.Dataset:
    """A variable whose values are in the file itself; others could be any file of this machine."""
    stored = file[name] if isinstance(file.get(name, getlink=True), h5py.HardLink) else None
    if not isinstance(stored, h5py.Dataset) or stored.external or stored.is_virtual:
        raise ValueError(f"{name} is a link, which is not followed")
    return stored


def _values(stored: h5py.Dataset, dtype: np.dtype[Any]) -> np.ndarray:
    """Values in their type; text in the shortest type that holds it."""
    if dtype.kind in "OU":
        return np.array(np.asarray(stored.asstr()[()]).tolist(), dtype=np.str_).reshape(stored.shape)
    return np.asarray(stored[()], dtype=dtype)


def _digest(data: bytes | memoryview) -> bytes:
    return hashlib.blake2b(data, digest_size=_DIGEST).digest()


def _check(ds: xr.Dataset) -> None:
    for name, attrs in {"the dataset": ds.attrs, **{str(k): v.attrs for k, v in ds.variables.items()}}.items():
        for key, value in attrs.items():
            if not isinstance(value, str | int | float | np.integer | np.floating):
                raise ValueError(
                    f"attribute {key!r} of {name} is a {type(value).__name__}; attributes are text or numbers, "
                    "things with length are variables."
                )
    for named, values in ds.variables.items():
        objects = values.values.ravel().tolist() if values.dtype.kind == "O" else []
        if values.dtype.kind in "MmSV" or not all(isinstance(value, str) for value in objects):
            raise ValueError(
                f"{named} holds values of type {values.dtype}; a stored result has numbers, booleans and text, so turn "
                "times into numbers and state their unit."
            )
        if values.dtype.kind in "OU" and any("\0" in str(text) for text in values.values.ravel()):
            raise ValueError(f"{named} has a text with the character \\0, which ends a text in netCDF; leave it out.")


def _stored_names(ds: xr.Dataset) -> dict[str, str]:
    """Names in the file by name: numbers for those that netCDF does not take."""
    names = sorted({*map(str, ds.variables), *map(str, ds.dims)})
    return {name: name if _NAME.fullmatch(name) else f"_{index}" for index, name in enumerate(names)}


def _plain(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """Attributes as JSON restores them."""
    return {str(key): value.item() if isinstance(value, np.generic) else value for key, value in attrs.items()}
