"""Decoded images in one safetensors file a dataset: verified when read, written whole or not at all."""

import hashlib
import json
import os
import threading
import warnings
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import save_file

from landscape.datasets._dataset import Groups, fingerprint
from landscape.model.samples import Samples
from landscape.results.parsed_text import json_table


@dataclass(frozen=True)
class CachedContent:
    """Content of a cache file.

    Args:
        train, test: Raw samples.
        groups: Further labels by name.
        classes: Class names as the source files give them; may be empty.
    """

    train: Samples
    test: Samples
    groups: Mapping[str, Groups] = field(default_factory=dict)
    classes: tuple[str, ...] = ()

    @property
    def fingerprint(self) -> str:
        """Short hash of samples and groups."""
        return fingerprint(self.train, self.test, self.groups)


def read(path: Path) -> tuple[CachedContent, str] | None:
    """Content of a cache file and its fingerprint; None if there is no valid file.

    A truncated, altered or foreign file is reported by a warning.
    """
    if not path.is_file():
        return None
    try:
        with safe_open(path, framework="pt") as file:
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (a method, not a dict)
            about = file.metadata() or {}
        text = about.get("names", "{}")
        if about.get("names_digest") != _digest(text):
            raise ValueError("its names differ from their digest")
        names = json_table(text)
        groups = {
            name: Groups(tuple(group_names), tensors[f"train.{name}"], tensors[f"test.{name}"])
            for name, group_names in names.get("groups", {}).items()
        }
        content = CachedContent(
            _samples(tensors, "train"), _samples(tensors, "test"), groups, tuple(names.get("classes", ()))
        )
        if (actual := content.fingerprint) == about.get("fingerprint"):
            return content, actual
        reason = "its content differs from its fingerprint"
    except (SafetensorError, OSError, KeyError, ValueError) as error:
        reason = str(error)
    warnings.warn(f"cache file {path} is damaged ({reason}); it is decoded again.", stacklevel=2)
    return None


def write(path: Path, content: CachedContent) -> str:
    """Store samples in a cache file, under a temporary name until complete, and return their fingerprint.

    Warns if the folder cannot be written.
    """
    stated = content.fingerprint
    names = {"classes": content.classes, "groups": {name: group.names for name, group in content.groups.items()}}
    text = json.dumps(names if content.classes or content.groups else {})
    about = {"fingerprint": stated, "names": text, "names_digest": _digest(text)}
    tensors: dict[str, torch.Tensor] = {}
    for split, samples in (("train", content.train), ("test", content.test)):
        tensors |= {f"{split}.inputs": samples.inputs, f"{split}.targets": samples.targets}  # type: ignore[dict-item]
        tensors |= {f"{split}.{name}": getattr(group, split) for name, group in content.groups.items()}
    partial = path.with_name(f"{path.name}.{os.getpid()}-{threading.get_ident()}.partial")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        save_file(tensors, partial, metadata=about)
        os.replace(partial, path)
    except (SafetensorError, OSError) as error:
        warnings.warn(
            f"decoded samples cannot be stored in {path.parent} ({error}); the next start decodes them again. "
            "FEDSCAPE_CACHE names another folder.",
            stacklevel=2,
        )
        if path.parent.is_dir():
            partial.unlink(missing_ok=True)
    return stated


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def _samples(tensors: dict[str, torch.Tensor], split: str) -> Samples:
    return Samples(tensors[f"{split}.inputs"], tensors[f"{split}.targets"])
