"""Datasets in zarr folders or zipped ones: written beside and renamed, verified when read, resumable."""

from __future__ import annotations

import hashlib
import json
import re
import shutil
import zipfile
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import xarray as xr
import zarr.errors
import zarr.storage

from landscape.results import pictures

pictures.register()  # `.plot()` on results that are read

_BROKEN = zipfile.BadZipFile, zarr.errors.BaseZarrError
_UNREADABLE = (OSError, ValueError, LookupError, RuntimeError, TypeError, *_BROKEN)

_FILE_NAME = re.compile(r"\w[\w +-]{0,59}")
"""Names of variables that every file system takes, and zarr not for a group or its own file."""


def save(ds: xr.Dataset, path: str | Path) -> None:
    """Write a dataset to the zarr folder `path`, or to the file `path` if it ends in .zip: the folder as one file.

    An earlier one is replaced once the new one is complete.

    Raises:
        ValueError: If an attribute is neither text nor a number.
    """
    path = Path(path)
    _check(ds)
    ds = _plain_missing(ds)
    fresh, old, packed = (_sibling(path, kind) for kind in ("new", "old", "packed"))
    path.parent.mkdir(parents=True, exist_ok=True)
    shutil.rmtree(fresh, ignore_errors=True)
    names = _stored_names(ds)
    about = {"digest": _digest(ds)} | ({"stored_names": json.dumps(names)} if names else {})
    try:
        sort_names(_text_as(ds, object).rename(names)).assign_attrs(about).to_zarr(
            fresh, mode="w", zarr_format=3, consolidated=False
        )
        if path.suffix == ".zip":
            _pack(fresh, packed)
    except BaseException:
        shutil.rmtree(fresh, ignore_errors=True)
        packed.unlink(missing_ok=True)
        raise
    if path.suffix == ".zip":
        shutil.rmtree(fresh)
        packed.replace(path)
        return
    if path.exists():
        shutil.rmtree(old, ignore_errors=True)
        path.rename(old)
    fresh.rename(path)
    shutil.rmtree(old, ignore_errors=True)


def load(path: str | Path) -> xr.Dataset:
    """The dataset of a zarr folder, or of a zipped one (.zip), in memory.

    Raises:
        LookupError: If there is none, or it is broken or altered.
    """
    path = Path(path)
    if not path.exists() and (old := _sibling(path, "old")).exists():
        path = old  # stopped between the two renames of `save`
    if not path.exists():
        raise LookupError(f"no result at {path}; compute it first.")
    try:
        if link := next((entry for entry in path.rglob("*") if entry.is_symlink()), None):  # to files elsewhere
            raise ValueError(f"{link.relative_to(path)} is a link, which is not followed")
        with _opened(path) as opened:
            free = psutil.virtual_memory().available
            if opened.nbytes > free:  # by the shapes that it states, before it is read
                raise ValueError(f"it states {opened.nbytes} bytes, and {free} are free")
            names = dict(json.loads(opened.attrs.get("stored_names", "{}")))
            ds = opened.load().drop_encoding().rename({stored: name for name, stored in names.items()})
    except _UNREADABLE as reason:
        raise LookupError(f"the result {path} cannot be read ({reason}); delete it and compute it again.") from reason
    digest = ds.attrs.get("digest")
    ds = _text_as(ds, np.str_)
    ds.attrs = {key: value for key, value in ds.attrs.items() if key not in ("digest", "stored_names")}
    if digest != _digest(ds):
        raise LookupError(f"the result {path} is not what was saved; delete it and compute it again.")
    return sort_names(ds)


def sort_names(ds: xr.Dataset) -> xr.Dataset:
    """The dataset with its coordinates, then its variables, and all attributes in the order of their names.

    Reading from zarr, and xarray where it takes some variables of a dataset, leave them in any order.
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
        path = Path(self.path)
        return load(path) if path.exists() or _sibling(path, "old").exists() else None

    def checkpoint(self, ds: xr.Dataset) -> None:
        """Store the result so far."""
        save(ds, self.path)


@contextmanager
def _opened(path: Path) -> Iterator[xr.Dataset]:
    """The dataset of a zarr folder or of a zipped one, not yet in memory; closed behind it."""
    how: dict[str, Any] = {"consolidated": False, "chunks": None, "zarr_format": 3}
    if path.suffix != ".zip":
        with xr.open_zarr(path, **how) as opened:
            yield opened
        return
    with zipfile.ZipFile(path):  # refused here, since a store that did not open cannot be closed
        pass
    with zarr.storage.ZipStore(path, mode="r") as store, xr.open_zarr(store, **how) as opened:
        yield opened


def _pack(folder: Path, path: Path) -> None:
    """A folder as one file, the same bytes for the same content."""
    with zipfile.ZipFile(path, "w") as packed:
        for file in sorted(folder.rglob("*")):
            if file.is_file():
                packed.writestr(zipfile.ZipInfo(file.relative_to(folder).as_posix()), file.read_bytes())


def _sibling(path: Path, kind: str) -> Path:
    return path.with_name(f".{path.name}.{kind}")


def _check(ds: xr.Dataset) -> None:
    for name, attrs in {"the dataset": ds.attrs, **{str(k): v.attrs for k, v in ds.variables.items()}}.items():
        for key, value in attrs.items():
            if not isinstance(value, str | int | float | np.integer | np.floating):
                raise ValueError(
                    f"attribute {key!r} of {name} is a {type(value).__name__}; attributes are text or numbers, "
                    "things with length are variables."
                )


def _stored_names(ds: xr.Dataset) -> dict[str, str]:
    """Numbers in place of the names that are no file name, or the same one where "a" and "A" are."""
    names = sorted(map(str, ds.variables))
    same = Counter(name.casefold() for name in names)
    odd = [name for name in names if same[name.casefold()] > 1 or not _FILE_NAME.fullmatch(name)]
    return {name: f"@{place}" for place, name in enumerate(odd)}


def _plain_missing(ds: xr.Dataset) -> xr.Dataset:
    """The dataset with one kind of NaN: zarr omits chunks that are all missing and restores that kind."""
    result = ds.copy()
    for name, variable in ds.variables.items():
        if variable.dtype.kind == "f":
            values = np.where(np.isnan(variable.values), variable.dtype.type(np.nan), variable.values)
            result[name] = (variable.dims, values, variable.attrs)
    return result


def _text_as(ds: xr.Dataset, kind: type) -> xr.Dataset:
    """The dataset with its text as `kind`: fixed-width text has no zarr v3 specification, objects have."""
    result = ds.copy()
    for name, variable in ds.variables.items():
        if variable.dtype.kind in "OUT":
            values: np.ndarray = np.array(variable.values.tolist(), dtype=kind).reshape(variable.shape)
            result[name] = (variable.dims, values, variable.attrs)
    return result


def _digest(ds: xr.Dataset) -> str:
    """Digest of names, dimensions, values, attributes, and of what is a coordinate."""
    attrs = {str(name): _plain(variable.attrs) for name, variable in ds.variables.items()}
    rest = {key: value for key, value in _plain(ds.attrs).items() if key != "digest"}
    text = json.dumps([_values_digest(ds), attrs, rest, sorted(map(str, ds.coords))], sort_keys=True)
    return hashlib.blake2b(text.encode(), digest_size=16).hexdigest()


def _plain(attrs: Mapping[Any, Any]) -> dict[str, Any]:
    """Attributes as JSON restores them."""
    return {str(key): value.item() if isinstance(value, np.generic) else value for key, value in attrs.items()}


def _values_digest(ds: xr.Dataset) -> str:
    """Digest of names, dimensions and values."""
    digest = hashlib.blake2b(digest_size=16)
    for name, variable in sorted(ds.variables.items(), key=lambda item: str(item[0])):
        values = variable.values
        digest.update(f"{name}{variable.dims}{variable.shape}".encode())
        if values.dtype.kind in "OUT":
            digest.update("\0".join(map(str, values.ravel())).encode())
        else:
            digest.update(values.dtype.str.encode() + np.ascontiguousarray(values).tobytes())
    return digest.hexdigest()
