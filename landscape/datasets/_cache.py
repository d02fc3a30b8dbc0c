"""Decoded images in one safetensors file a dataset: verified when read, written whole or not at all."""

from __future__ import annotations

import os
import sys
import threading
import warnings
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from landscape.datasets._dataset import fingerprint
from landscape.samples import Samples


def directory() -> Path:
    """FEDSCAPE_CACHE, else `fedscape` in the platform's cache folder of the user."""
    if given := os.environ.get("FEDSCAPE_CACHE"):
        return Path(given).expanduser()
    if sys.platform == "darwin":
        return Path.home() / "Library" / "Caches" / "fedscape"
    variable, otherwise = ("LOCALAPPDATA", "AppData/Local") if os.name == "nt" else ("XDG_CACHE_HOME", ".cache")
    return Path(os.environ.get(variable) or Path.home() / otherwise) / "fedscape"


def read(path: Path) -> tuple[Samples, Samples, str] | None:
    """Train and test samples of a cache file and their fingerprint; None where there is no sound file.

    A truncated, altered or foreign file is reported by a warning.
    """
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (a method, not a dict)
            stated = (file.metadata() or {}).get("fingerprint")
        train, test = _samples(tensors, "train"), _samples(tensors, "test")
        if fingerprint(train, test) == stated:
            return train, test, stated
        reason = "its content differs from its fingerprint"
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        reason = str(error)
    warnings.warn(f"cache file {path} is damaged ({reason}); it is made anew.", stacklevel=2)
    return None


def write(path: Path, train: Samples, test: Samples) -> str:
    """Keep samples in a cache file, under a temporary name until complete, and return their fingerprint.

    Where the folder cannot be written, a warning says so and nothing is kept.
    """
    stated = fingerprint(train, test)
    partial = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(_tensors(train, "train") | _tensors(test, "test"), partial, metadata={"fingerprint": stated})
        os.replace(partial, path)
    except (SafetensorError, OSError) as error:
        warnings.warn(
            f"decoded images cannot be kept in {path.parent} ({error}); the next start decodes them again. "
            "FEDSCAPE_CACHE names another folder.",
            stacklevel=2,
        )
        if path.parent.is_dir():
            partial.unlink(missing_ok=True)
    return stated


def _samples(tensors: dict[str, torch.Tensor], split: str) -> Samples:
    return Samples(tensors[f"{split}.inputs"], tensors[f"{split}.targets"])


def _tensors(samples: Samples, split: str) -> dict[str, torch.Tensor]:
    return {f"{split}.inputs": samples.inputs, f"{split}.targets": samples.targets}  # type: ignore[dict-item]
