"""Image datasets from Parquet folders or the Hugging Face hub, decoded once into a cached uint8 file."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import torch

from landscape.datasets import _cache
from landscape.datasets._dataset import Dataset
from landscape.samples import Samples

Files = dict[str, list[Path]]
"""Parquet files by split name."""

_IMAGE_COLUMNS = ("image", "img")
_LABEL_COLUMN = "label"
_SPLITS = ("train", "test")


@dataclass(frozen=True)
class Source:
    """Where an image dataset is found and what it must hold.

    Args:
        name: Public name; also the name of its sub-folder in a data folder.
        repository: Name on the Hugging Face hub.
        shape: (channels, height, width) of one image; 1 channel is grey, 3 are RGB.
        classes: Class names in label order.
        train, test: Number of images in each split.
        scale, mean, std: See `Dataset`.
    """

    name: str
    repository: str
    shape: tuple[int, int, int]
    classes: tuple[str, ...]
    train: int
    test: int
    scale: str = "unit"
    mean: tuple[float, ...] = ()
    std: tuple[float, ...] = ()


def load(source: Source, folder: Path | None = None) -> Dataset:
    """The dataset with raw uint8 images (n, C, H, W).

    Looked for in one place: `folder`, else the folder that FEDSCAPE_DATA names, else the hub. Decoded images are
    kept in a cache file that depends on names, sizes and times of the Parquet files.

    Args:
        source: What to load.
        folder: Data folder that holds `source.name` as a sub-folder.

    Raises:
        LookupError: If there are no files, or the package that decodes them is absent.
        ValueError: If the files hold something else.
    """
    if folder is None and (given := os.environ.get("FEDSCAPE_DATA")):
        folder = Path(given)
    files = None if folder is None else _files(source, folder.expanduser() / source.name)
    path = _cache.directory() / f"{source.name}-{_key(source, files)}.safetensors"
    kept = _cache.read(path)
    if kept is None or _complaint(source, *kept[:2]):
        train, test = _decoded(source, _downloaded(source) if files is None else files)
        if complaint := _complaint(source, train, test):
            where = source.repository if folder is None else folder / source.name
            raise ValueError(f"{where} does not hold {source.name}: {complaint}.")
        kept = train, test, _cache.write(path, train, test)
    train, test, digest = kept
    return Dataset(
        name=source.name,
        train=train,
        test=test,
        classes=source.classes,
        shape=source.shape,
        fingerprint=digest,
        scale=source.scale,
        mean=source.mean,
        std=source.std,
    )


def _files(source: Source, folder: Path) -> Files:
    found = {split: sorted(folder.rglob(f"{split}*.parquet")) for split in _SPLITS}
    if absent := [split for split in _SPLITS if not found[split]]:
        raise LookupError(
            f"no {absent[0]}*.parquet of {source.name} in {folder}. "
            f"Put the Parquet files of {source.repository} there, or give another folder with one sub-folder a dataset "
            "(--data DIR or FEDSCAPE_DATA=DIR), or give none to fetch them from the Hugging Face hub."
        )
    return found


def _key(source: Source, files: Files | None) -> str:
    parts = [source.repository] if files is None else []
    for split, paths in (files or {}).items():
        for path in paths:
            facts = path.stat()
            parts.append(f"{split} {path.name} {facts.st_size} {facts.st_mtime_ns}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:12]


def _downloaded(source: Source) -> Files:
    _require_datasets(source)
    import httpx
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HfHubHTTPError

    try:
        folder = snapshot_download(source.repository, repo_type="dataset", allow_patterns=["*.parquet"], etag_timeout=5)
    except (OSError, HfHubHTTPError, httpx.HTTPError) as reason:
        raise LookupError(
            f"{source.name} was looked for on the Hugging Face hub ({source.repository}), which did not answer "
            f"({type(reason.__cause__ or reason).__name__}). Give a folder that holds {source.name}/train*.parquet and "
            f"{source.name}/test*.parquet: --data DIR or FEDSCAPE_DATA=DIR."
        ) from reason
    return _files(source, Path(folder))


def _decoded(source: Source, files: Files) -> tuple[Samples, Samples]:
    _require_datasets(source)
    from datasets import load_dataset
    from datasets.exceptions import DatasetsError
    from pyarrow import ArrowException

    names = {split: [str(path) for path in paths] for split, paths in files.items()}
    # The Arrow copy lives as long as the decoding; the cache file replaces it.
    with TemporaryDirectory(prefix="fedscape-", ignore_cleanup_errors=True) as scratch, _quiet():
        try:
            table = load_dataset("parquet", data_files=names, cache_dir=scratch)
        except (DatasetsError, ArrowException) as reason:
            where = files["train"][0].parent
            raise ValueError(
                f"the Parquet files of {source.name} in {where} cannot be read ({reason}); copy them there anew."
            ) from reason
        return _split(source, table["train"]), _split(source, table["test"])


def _split(source: Source, table: Any) -> Samples:
    image = next((name for name in _IMAGE_COLUMNS if name in table.column_names), None)
    if image is None or _LABEL_COLUMN not in table.column_names:
        raise ValueError(
            f"the Parquet files of {source.name} have columns {', '.join(table.column_names)}; "
            f"{' or '.join(_IMAGE_COLUMNS)} and {_LABEL_COLUMN} are needed."
        )
    names = getattr(table.features[_LABEL_COLUMN], "names", None)
    if names is not None and [_plain(name) for name in names] != [_plain(name) for name in source.classes]:
        raise ValueError(
            f"the Parquet files of {source.name} have the classes {', '.join(names)}; "
            f"expected are {', '.join(source.classes)}."
        )
    return Samples(_pixels(source, table, image), torch.tensor(table[_LABEL_COLUMN][:], dtype=torch.int64))


def _pixels(source: Source, table: Any, column: str) -> torch.Tensor:
    import datasets

    channels, height, width = source.shape
    mode = "L" if channels == 1 else "RGB"
    pixels = np.empty((len(table), height, width, channels), np.uint8)
    done = 0
    for batch in table.select_columns([column]).cast_column(column, datasets.Image()).iter(batch_size=1000):
        for picture in batch[column]:
            if picture.size != (width, height):
                raise ValueError(
                    f"image {done} of {source.name} is {picture.size[0]}x{picture.size[1]} pixels; "
                    f"expected is {width}x{height}."
                )
            pixels[done] = np.asarray(picture.convert(mode)).reshape(height, width, channels)
            done += 1
    return torch.from_numpy(np.ascontiguousarray(pixels.transpose(0, 3, 1, 2)))


def _complaint(source: Source, train: Samples, test: Samples) -> str:
    for split, samples, count in (("train", train, source.train), ("test", test, source.test)):
        if len(samples) != count:
            return f"{len(samples)} {split} images, expected are {count}"
        if tuple(samples.inputs.shape[1:]) != source.shape:  # type: ignore[union-attr]
            return f"{split} images of shape {tuple(samples.inputs.shape[1:])}, expected is {source.shape}"  # type: ignore[union-attr]
        low, high = int(samples.targets.min()), int(samples.targets.max())
        if low < 0 or high >= len(source.classes):
            return f"{split} labels from {low} to {high}, expected are 0 to {len(source.classes) - 1}"
    return ""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())


def _require_datasets(source: Source) -> None:
    try:
        import datasets  # noqa: F401 (is it there?)
        import PIL  # noqa: F401
    except ModuleNotFoundError as reason:
        raise LookupError(
            f"{source.name} is decoded by the package {reason.name!r}, which is not installed; "
            'install it with pip install "fedscape[data]".'
        ) from reason


@contextmanager
def _quiet() -> Iterator[None]:
    import datasets

    shown, level = not datasets.are_progress_bars_disabled(), datasets.logging.get_verbosity()
    datasets.disable_progress_bars()
    datasets.logging.set_verbosity(datasets.logging.CRITICAL)
    try:
        yield
    finally:
        datasets.logging.set_verbosity(level)
        if shown:
            datasets.enable_progress_bars()
