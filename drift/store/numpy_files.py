"""The run format written and read with numpy alone, byte by byte as `drift.store.files` has it."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from drift.store.atomic_write import write_bytes
from landscape.results.parsed_text import from_json, json_table

FORMAT = "fedscape-1"


class Damaged(LookupError):
    """A file of a run that is truncated, altered or foreign."""


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
    """Write named arrays and a JSON-able description as one safetensors file with a digest in its header.

    Raises:
        OSError: If the disk is full or the folder cannot be written; the old file stays.
    """
    held = {name: np.asarray(array, order="C") for name, array in tensors.items()}
    text = json.dumps(about, sort_keys=True)
    write_bytes(path, *_pieces(held, {"format": FORMAT, "about": text, "digest": digest(held, text)}))


def read_tensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and description of a file written by `write_tensors`.

    Raises:
        Damaged: If the file is absent, truncated, altered or foreign.
    """
    try:
        with safe_open(path, framework="numpy") as file:
            header = file.metadata() or {}
            tensors = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118 (not a mapping)
    except (SafetensorError, OSError, ValueError, TypeError) as reason:
        raise Damaged(f"{path} cannot be read ({reason}). {_ELSEWHERE}") from reason
    _require_known(path, header.get("format"))
    if header.get("format") != FORMAT or header.get("digest") != digest(tensors, header.get("about", "")):
        raise Damaged(f"{path} was altered, or not written by fedscape. {_ELSEWHERE}")
    try:
        return tensors, json_table(header.get("about", ""))
    except ValueError as reason:
        raise Damaged(f"{path} was altered: its description is {reason}. {_ELSEWHERE}") from reason


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file with a digest of its content.

    Raises:
        OSError: If the disk is full or the folder cannot be written; the old file stays.
    """
    body = {**content, "format": FORMAT}
    body["digest"] = _json_digest(body)
    write_bytes(path, json.dumps(body, indent=1, sort_keys=True).encode())


def read_json(path: Path) -> dict[str, Any]:
    """Content of a file written by `write_json`.

    Raises:
        Damaged: If the file is truncated, altered or foreign.
    """
    try:
        body = from_json(path.read_bytes())
    except (ValueError, OSError) as reason:
        raise Damaged(f"{path} cannot be read ({reason}). {_ELSEWHERE}") from reason
    if isinstance(body, dict):
        _require_known(path, body.get("format"))
    if not isinstance(body, dict) or body.pop("digest", None) != _json_digest(body) or body.get("format") != FORMAT:
        raise Damaged(f"{path} was altered, or not written by fedscape. {_ELSEWHERE}")
    return body


def digest(tensors: Mapping[str, np.ndarray], text: str = "") -> str:
    """SHA-256 over names, types, shapes and bytes of arrays, and a text; types are called as torch calls them."""
    total = hashlib.sha256(text.encode())
    for name in sorted(tensors):
        array = np.asarray(tensors[name], order="C")
        total.update(f"{name} torch.{array.dtype.name} {array.shape};".encode())
        total.update(array.reshape(-1).view(np.uint8).data)
    return total.hexdigest()


def _require_known(path: Path, stated: Any) -> None:
    """Refuse a format that later versions, or the store with torch, write."""
    if str(stated).startswith("fedscape-") and stated != FORMAT:
        raise Damaged(
            f"{path} is of format {stated!r}, which this recorder does not write; record into another folder."
        )


_ELSEWHERE = "Record into another folder, or see what fedscape verify says of this one."


_TYPES = {"float64": "F64", "float32": "F32", "int64": "I64"}
"""Types that a record has, as safetensors calls them."""


def _pieces(tensors: Mapping[str, np.ndarray], metadata: Mapping[str, str]) -> list[bytes | memoryview]:
    """A safetensors file in pieces: length and text of the header, then the arrays, those of the widest type first.

    The library's own writer orders the header by chance; this one gives the same bytes for the same content.
    """
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    parts, position = [], 0
    for name, array in sorted(tensors.items(), key=lambda item: (-item[1].itemsize, item[0])):
        span = [position, position + array.nbytes]
        header[name] = {"dtype": _TYPES[array.dtype.name], "shape": list(array.shape), "data_offsets": span}
        parts.append(array.reshape(-1).view(np.uint8).data)
        position += array.nbytes
    text = json.dumps(header, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return [len(text).to_bytes(8, "little"), text, *parts]


def _json_digest(body: Mapping[str, Any]) -> str:
    return hashlib.sha256(json.dumps(body, sort_keys=True).encode()).hexdigest()
