"""Datasets by name; each file of this folder is one, and its file name is its public name.

A plug-in has a one-line docstring with its source and `load(folder=None, **options) -> Dataset`, whose `Dataset`
holds the values as they were published. `_dataset` defines `Dataset` and scalings, `_images` reads Parquet folders
and the hub, `_cache` keeps decoded images.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from landscape import plugins
from landscape.plugins import outside

if TYPE_CHECKING:
    from landscape.datasets._dataset import Dataset as Dataset

__all__ = ["Dataset", "describe", "names", "open_dataset"]


def names() -> list[str]:
    """Public names of all datasets, sorted."""
    return plugins.names(__name__)


def describe(name: str) -> str:
    """One line about a dataset, with its source; nothing is imported or read."""
    return plugins.describe(__name__, name)


def open_dataset(name: str, *, data: Path | str | None = None, scale: str = "default", **options: Any) -> Dataset:
    """A dataset with float32 inputs, ready for training.

        digits = landscape.open_dataset("digits")
        digits.train.inputs.shape, digits.test.targets

    Args:
        name: File name of the plug-in, an entry point, or FILE.py:FUNCTION or module:FUNCTION of a user, called like
            the `load` of a plug-in.
        data: Folder with one sub-folder of Parquet files per dataset; else FEDSCAPE_DATA, else the Hugging Face hub.
            Datasets that need no files ignore it.
        scale: "unit" ([0, 1]), "half" ((x - 0.5) / 0.5), "standard" (x minus mean, over std, for each channel, as the
            dataset states them, else of its training samples) or "default" (the one that the dataset prefers).
        options: Further arguments of the plug-in's `load`.

    Raises:
        ValueError: If the name, an option or the scale is unknown, or the files hold something else.
        LookupError: If the files do not exist.
    """
    from landscape.datasets._dataset import scale_inputs

    recorded = plugins.recorded_name(__name__, name, "dataset")
    is_foreign = outside.is_outside(recorded)
    load = outside.load(recorded) if is_foreign else plugins.load(__name__, name, "dataset").load
    if not callable(load):
        raise ValueError(
            f"dataset {name!r} is a {type(load).__name__}, not a function like load(folder=None) -> Dataset."
        )
    plugins.require_options(f"dataset {name!r}", load, options)
    return scale_inputs(load(None if data is None else Path(data), **options), scale)


def __getattr__(name: str) -> Any:
    if name == "Dataset":  # torch is imported when it is needed, not for a listing
        from landscape.datasets._dataset import Dataset

        return Dataset
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
