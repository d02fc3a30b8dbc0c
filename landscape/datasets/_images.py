"""Image datasets from Parquet folders or the Hugging Face hub, decoded once into a cached uint8 file."""

from __future__ import annotations

import io
import os
import re
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch

from landscape.datasets import _cache, _source
from landscape.datasets._dataset import Dataset, Groups
from landscape.datasets._source import Files, Source
from landscape.model.samples import Samples
from landscape.results.parsed_text import json_table
from landscape.results.user_folder import cache_folder

_IMAGE_COLUMNS = ("image", "img")
_BATCH = 256  # images decoded at a time


def loader(source: Source) -> Callable[..., Dataset]:
    """The `load` of a dataset without options."""

    def dataset(folder: Path | None = None) -> Dataset:
        """The dataset from a data folder, FEDSCAPE_DATA or the hub; see `landscape.datasets._images.load`."""
        return load(source, folder)

    return dataset


def load(source: Source, folder: Path | None = None) -> Dataset:
    """The dataset with raw uint8 images (n, C, H, W).

    Read from `folder`, else from the folder FEDSCAPE_DATA, else from the hub. Decoded images are cached in a file whose
    name depends on names, sizes and times of the Parquet files. Warns if labels or pixels differ from the published set
    (`_source.difference`).

    Args:
        source: What to load.
        folder: Data folder that holds `source.name` as a sub-folder.

    Raises:
        LookupError: If there are no files, or the package that decodes them is absent.
        ValueError: If the files hold something else.
    """
    if folder is None and (data_folder := os.environ.get("FEDSCAPE_DATA")):
        folder = Path(data_folder)
    files = None if folder is None else _source.find_files(source, folder.expanduser() / source.name)
    path = cache_folder() / f"{source.name}-{_source.key(source, files)}.safetensors"
    cached = _cache.read(path)
    if cached is None or _complaint(source, cached[0]):
        content = _decode(source, _source.download(source) if files is None else files)
        if complaint := _complaint(source, content):
            where = source.repository if folder is None else folder / source.name
            raise ValueError(f"{where} does not hold {source.name}: {complaint}.")
        cached = content, _cache.write(path, content)
    content, digest = cached
    if unlike := _source.difference(source, content.train, content.test, digest):
        warnings.warn(
            f"this copy of {source.name} has {unlike}; runs on it and on the published one cannot be compared.",
            stacklevel=2,
        )
    return Dataset(
        name=source.name,
        train=content.train,
        test=content.test,
        classes=content.classes or source.classes,  # type: ignore[arg-type]  # a number only where the files have names
        shape=source.shape,
        fingerprint=digest,
        scale=source.scale,
        mean=source.mean,
        std=source.std,
        groups=content.groups,
    )


def _decode(source: Source, files: Files) -> _cache.CachedContent:
    _source.require(source, "pyarrow", "PIL")
    from pyarrow import ArrowException

    try:
        columns = _columns(files["train"][0])
        names = columns.get(source.label) or ()
        if isinstance(source.classes, tuple) and names and [*map(_plain, names)] != [*map(_plain, source.classes)]:
            raise ValueError(
                f"the Parquet files of {source.name} have the classes {', '.join(names)}; "
                f"expected are {', '.join(source.classes)}."
            )
        samples = {split: _split(source, files[split]) for split in source.splits}
        groups = {name: _groups(source, files, name, columns) for name in source.groups}
    except ArrowException as reason:
        where = files["train"][0].parent
        raise ValueError(
            f"the Parquet files of {source.name} in {where} cannot be read ({reason}); copy them again."
        ) from reason
    train = samples["train"]
    return _cache.CachedContent(
        train, samples.get("test", train[:0]), groups, names if isinstance(source.classes, int) else ()
    )


def _columns(path: Path) -> dict[str, tuple[str, ...] | None]:
    """Columns of a file, with the names of their values if the file has them."""
    from pyarrow import parquet

    schema = parquet.read_schema(path)
    try:
        features = json_table((schema.metadata or {}).get(b"huggingface", b"{}")).get("info", {}).get("features", {})
        value_names = {name: about.get("names") for name, about in features.items() if isinstance(about, dict)}
        return {name: tuple(value_names.get(name) or ()) or None for name in schema.names}
    except (ValueError, AttributeError, TypeError) as reason:
        raise ValueError(f"{path} describes its columns wrongly ({reason}); download it again.") from reason


def _split(source: Source, paths: list[Path]) -> Samples:
    from pyarrow import parquet

    columns = parquet.read_schema(paths[0]).names
    image = next((name for name in _IMAGE_COLUMNS if name in columns), None)
    needed = (source.label, *source.groups.values())
    if image is None or not set(needed) <= set(columns):
        raise ValueError(
            f"the Parquet files of {source.name} have columns {', '.join(columns)}; "
            f"{' or '.join(_IMAGE_COLUMNS)} and {', '.join(needed)} are needed."
        )
    labels = np.concatenate([_values(path, source.label) for path in paths])
    return Samples(_pixels(source, paths, image, len(labels)), torch.from_numpy(labels.astype(np.int64)))


def _values(path: Path, column: str) -> np.ndarray:
    from pyarrow import parquet

    return parquet.read_table(path, columns=[column]).column(column).to_numpy()


def _pixels(source: Source, paths: list[Path], column: str, count: int) -> torch.Tensor:
    from pyarrow import parquet

    channels, height, width = source.shape
    pixels = np.empty((count, channels, height, width), np.uint8)
    done = 0
    for path in paths:
        with parquet.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=_BATCH, columns=[column]):
                for value in batch.column(0).to_pylist():
                    pixels[done] = _picture(source, value, done)
                    done += 1
    return torch.from_numpy(pixels)


def _picture(source: Source, value: Any, number: int) -> np.ndarray:
    """An image (C, H, W) from its file's bytes."""
    from PIL import Image

    content = value.get("bytes") if isinstance(value, dict) else value
    if not content:
        raise ValueError(f"image {number} of {source.name} is not in the Parquet file; store images with their bytes.")
    channels, height, width = source.shape
    with Image.open(io.BytesIO(content)) as opened:
        picture = opened.convert("L" if channels == 1 else "RGB")
    if picture.size != (width, height) or source.fit == "crop":
        picture = _fit(source, picture, number)
    return np.asarray(picture).reshape(height, width, channels).transpose(2, 0, 1)


def _fit(source: Source, picture: Any, number: int) -> Any:
    from PIL import Image

    _, height, width = source.shape
    if source.fit == "exact":
        raise ValueError(
            f"image {number} of {source.name} is {picture.size[0]}x{picture.size[1]} pixels; "
            f"expected is {width}x{height}."
        )
    if source.fit == "squash":
        return picture.resize((width, height), Image.Resampling.BILINEAR)
    ratio = round(height * 8 / 7) / min(picture.size)
    larger = picture.resize([max(height, round(side * ratio)) for side in picture.size], Image.Resampling.BILINEAR)
    left, top = (larger.size[0] - width) // 2, (larger.size[1] - height) // 2
    return larger.crop((left, top, left + width, top + height))


def _groups(source: Source, files: Files, name: str, columns: dict[str, tuple[str, ...] | None]) -> Groups:
    """A further label of both splits, numbered in the order of its names."""
    column = source.groups[name]
    values = {split: np.concatenate([_values(path, column) for path in paths]) for split, paths in files.items()}
    values.setdefault("test", values["train"][:0])
    names, value_names = source.group_names.get(name), columns[column]
    if values["train"].dtype.kind in "iu" and (value_names or names):
        names, numbers = value_names or names or (), values
    else:
        texts = {split: column_values.astype(str).tolist() for split, column_values in values.items()}
        names = names or tuple(sorted({*texts["train"], *texts["test"]}))
        number_of = {text: number for number, text in enumerate(names)}
        if unknown := sorted({*texts["train"], *texts["test"]} - {*number_of}):
            raise ValueError(f"column {column} of {source.name} holds {unknown[0]!r}; expected are {', '.join(names)}.")
        numbers = {
            split: np.array([number_of[text] for text in split_texts], np.int64) for split, split_texts in texts.items()
        }
    for split, labels in numbers.items():
        if len(labels) and not 0 <= labels.min() <= labels.max() < len(names):
            raise ValueError(
                f"column {column} of {source.name} runs from {labels.min()} to {labels.max()} in {split}; there are "
                f"{len(names)} names for it."
            )
    train, test = (torch.from_numpy(numbers[split].astype(np.int64)) for split in ("train", "test"))
    return Groups(names, train, test)


def _complaint(source: Source, content: _cache.CachedContent) -> str:
    counts = len(content.train), len(content.test)
    if counts not in source.counts:
        (train, test), few = source.counts[0], "".join(f" or {smaller[0]} + {smaller[1]}" for smaller in source.smaller)
        for split, count, expected in (("train", counts[0], train), ("test", counts[1], test)):
            if count != expected:
                return f"{count} {split} images, expected are {expected}{few and f' ({train} + {test}{few})'}"
    classes = source.classes if isinstance(source.classes, int) else len(source.classes)
    if isinstance(source.classes, int) and len(content.classes) != classes:
        return f"names of {len(content.classes)} classes, expected are {classes}"
    for split, samples in (("train", content.train), ("test", content.test)):
        if tuple(samples.inputs.shape[1:]) != source.shape:  # type: ignore[union-attr]
            return f"{split} images of shape {tuple(samples.inputs.shape[1:])}, expected is {source.shape}"  # type: ignore[union-attr]
        if len(samples) and not 0 <= int(samples.targets.min()) <= int(samples.targets.max()) < classes:
            low, high = int(samples.targets.min()), int(samples.targets.max())
            return f"{split} labels from {low} to {high}, expected are 0 to {classes - 1}"
    return ""


def _plain(name: str) -> str:
    return re.sub(r"[^a-z0-9]", "", name.lower())
