"""Digests of named arrays as they are stored: of all that a file contains, and of what is read without the models."""

import hashlib
import json
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from drift.store.file_layout import is_linked, is_small

FORMAT = "fedscape-4"
"""Format of the files that are written, and the only one that is read."""


class Content(NamedTuple):
    """A tensor as it is stored.

    Args:
        dtype, shape: Type ("float32") and shape.
        data: Its bytes.
        release: Frees the memory of bytes that lie in a mapped file; called after each piece that was read.
        begun: The file that the bytes are in already, and their place in it, if that is to become the stored file.
    """

    dtype: str
    shape: tuple[int, ...]
    data: memoryview
    release: Callable[[], object] | None = None
    begun: tuple[Path, int] | None = None

    def pieces(self) -> Iterator[memoryview]:
        """The bytes one after the other: all at once, or those of a mapped file by PIECE."""
        if self.release is None:
            yield self.data
            return
        for low in range(0, self.data.nbytes, PIECE):
            yield self.data[low : low + PIECE]
            self.release()


PIECE = 1 << 24
"""Bytes of a mapped file that are in memory at a time."""


def contents(arrays: Mapping[str, np.ndarray]) -> dict[str, Content]:
    """Arrays by name as they are stored."""
    ordered = {name: np.asarray(array, order="C") for name, array in arrays.items()}
    return {
        name: Content(array.dtype.name, array.shape, array.reshape(-1).view(np.uint8).data)
        for name, array in ordered.items()
    }


def digest_contents(tensors: Mapping[str, Content], text: str = "") -> str:
    """SHA-256 over names, types, shapes and bytes of tensors, and a text."""
    total = hashlib.sha256(text.encode())
    for name, content in sorted(tensors.items()):
        total.update(f"{name} torch.{content.dtype} {content.shape};".encode())
        for piece in content.pieces():
            total.update(piece)
    return total.hexdigest()


def metadata(tensors: Mapping[str, Content], text: str) -> dict[str, str]:
    """What a file states of its format, and the digests of its content: of all, and of what is read without models.

    Args:
        tensors: The tensors of the file, before some are compressed.
        text: Its description as JSON.
    """
    return {
        "format": FORMAT,
        "about": text,
        "digest": digest_contents(tensors, text),
        "small": small_digest(text, *small_digests(tensors)),
    }


def small_digests(tensors: Mapping[str, Content]) -> tuple[str, str]:
    """Digest of the small tensors that the link of a round is computed from, and of its other small ones."""
    groups: tuple[dict[str, Content], dict[str, Content]] = {}, {}
    for name, content in tensors.items():
        if is_small(name, (content.dtype, content.shape)):
            groups[not is_linked(name)][name] = content
    return digest_contents(groups[0]), digest_contents(groups[1])


def small_digest(text: str, *digests: str) -> str:
    """Digest of the description of a file and its small tensors, by those of `small_digests`."""
    return hashlib.sha256("\n".join([text, *digests]).encode()).hexdigest()


def json_digest(content: Any) -> str:
    """SHA-256 of what JSON can write."""
    return hashlib.sha256(json.dumps(content, sort_keys=True).encode()).hexdigest()
