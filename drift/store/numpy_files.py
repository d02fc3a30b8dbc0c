"""The run format with numpy alone: the one writer of safetensors files, digests, and the JSON files of a run.

`drift.store.files` does the same for torch tensors by these functions; the recorder needs no torch.
"""

import json
import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from drift.store.digests import FORMAT, Content, contents, json_digest, metadata
from drift.store.file_layout import IN_PLACE, Stated, TensorSpan, layout, read_header
from landscape.results.atomic_write import complete, write_bytes
from landscape.results.parsed_text import from_json, json_table

RECORD_ELSEWHERE = "Record into another folder, or see the report of fedscape verify on this one."

_DESCRIBE = "Restore it from a copy, or delete it and train again with the same settings: it is written anew."


class Damaged(LookupError):
    """A file of a run that is absent, truncated, altered or foreign.

    Args:
        path: The file.
        what: What is wrong with it.
        remedy: What to do about it.
    """

    def __init__(self, path: Path, what: str, remedy: str) -> None:
        super().__init__(f"{path} {what}. {remedy}")
        self.path, self.what, self.remedy = path, what, remedy


class Newer(Damaged):
    """A file in a format of a later version: refused, and never repaired, as nothing shows that it is damaged."""

    remedy = "Read it with the version of fedscape that wrote it; keep the file as it is."


def write_contents(path: Path, tensors: Mapping[str, Content], metadata: Mapping[str, str]) -> None:
    """Write a safetensors file; the same content has the same bytes, other than with the library's own writer.

    A file in which the client models stand already, with room for what comes before them, is completed and renamed.

    Raises:
        ValueError: If the format has no name for the type of a tensor.
        OSError: If the disk is full or the folder cannot be written; the old file stays.
    """
    forms = {name: (content.dtype, content.shape) for name, content in tensors.items()}
    begun = tensors[IN_PLACE].begun if IN_PLACE in tensors else None
    target = layout(forms, metadata, 0 if begun is None else begun[1])
    if begun is None or begun[1] != target.spans[IN_PLACE].begin:
        write_bytes(path, target.head, (piece for name in target.spans for piece in tensors[name].pieces()))
        return
    others = ((span.begin, tensors[name].pieces()) for name, span in target.spans.items() if name != IN_PLACE)
    complete(path, begun[0], target.size, [(0, [target.head]), *others])


def write_tensors(path: Path, tensors: Mapping[str, np.ndarray], about: Mapping[str, Any]) -> None:
    """Write named arrays and a JSON-able description as one safetensors file with a digest in its header.

    Raises:
        OSError: If the disk is full or the folder cannot be written; the old file stays.
    """
    stored, text = contents(tensors), json.dumps(about, sort_keys=True)
    write_contents(path, stored, metadata(stored, text))


def read_tensors(path: Path) -> tuple[dict[str, np.ndarray], dict[str, Any]]:
    """Arrays and description of a file written by `write_tensors`.

    Raises:
        Damaged: If the file is absent, truncated, altered or foreign.
    """
    with reading(path, RECORD_ELSEWHERE) as file:
        stated = read_header(file)
        header, tensors = stated.metadata, arrays(file, stated, stated.spans)
    require_known(path, header.get("format"), RECORD_ELSEWHERE)
    if header != metadata(contents(tensors), header.get("about", "")):
        raise Damaged(path, "was altered, or not written by a recorder", RECORD_ELSEWHERE)
    return tensors, description(path, header, RECORD_ELSEWHERE)


UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError)
"""What reading a file raises that is not as it should be."""


@contextmanager
def reading(path: Path, remedy: str, folder: Path | None = None) -> Iterator[BinaryIO]:
    """An open file of a run; Damaged if it is absent, reading it fails, or it is a link out of the folder."""
    if folder is not None:
        require_inside(path, folder)
    require_text(path)
    try:
        with open(path, "rb") as file:
            yield file
    except Damaged:
        raise
    except FileNotFoundError as reason:
        raise Damaged(path, "is missing", remedy) from reason
    except UNREADABLE as reason:
        raise Damaged(path, f"cannot be read ({reason}); it is truncated or not a file of a run", remedy) from reason


ALIGNMENT = 64
"""Bytes that a processor reads at once, at most."""


def stored_bytes(file: BinaryIO, stated: Stated, span: TensorSpan) -> np.ndarray:
    """Bytes of a tensor, at a multiple of ALIGNMENT in memory, so that products of it have the same bits everywhere."""
    size = span.end - span.begin
    memory = np.empty(size + ALIGNMENT, np.uint8)
    shift = -memory.ctypes.data % ALIGNMENT
    values = memory[shift : shift + size]
    if span.end <= len(stated.piece):
        values[:] = np.frombuffer(stated.piece, np.uint8)[span.begin : span.end]
    else:
        file.seek(span.begin)
        file.readinto(values)  # type: ignore[attr-defined]
    return values


def arrays(file: BinaryIO, stated: Stated, spans: Mapping[str, TensorSpan]) -> dict[str, np.ndarray]:
    """Arrays of a file by name."""
    return {name: stored_bytes(file, stated, span).view(span.dtype).reshape(span.shape) for name, span in spans.items()}


def description(path: Path, header: Mapping[str, str], remedy: str) -> dict[str, Any]:
    """The description in the header of a file of tensors.

    Raises:
        Damaged: If it is no JSON table.
    """
    try:
        return json_table(header.get("about", ""))
    except ValueError as reason:
        raise Damaged(path, f"was altered: its description is {reason}", remedy) from reason


def write_json(path: Path, content: Mapping[str, Any]) -> None:
    """Write a JSON file with a digest of its content.

    Raises:
        OSError: If the disk is full or the folder cannot be written; the old file stays.
    """
    body = {**content, "format": FORMAT}
    body["digest"] = json_digest(body)
    write_bytes(path, json.dumps(body, indent=1, sort_keys=True).encode())


def read_json(path: Path, remedy: str = _DESCRIBE) -> dict[str, Any]:
    """Content of a file written by `write_json`.

    Args:
        path: The file.
        remedy: What to do about a damaged file, for the message.

    Raises:
        Damaged: If the file is absent, truncated, altered, foreign, or a link out of its folder.
    """
    if not os.path.lexists(path):
        raise Damaged(path, "is missing", f"Is {path.parent} the folder of a run?")
    with reading(path, remedy, path.parent) as file:
        body = from_json(file.read())
    require_known(path, body.get("format") if isinstance(body, dict) else None, remedy)
    if body.pop("digest", None) != json_digest(body):
        raise Damaged(path, "was altered: its content does not match its digest", remedy)
    return body


def require_inside(path: Path, folder: Path) -> None:
    """Raise Damaged for a link out of the run's folder: a run from elsewhere reads its own files only."""
    parts = path.parts[len(folder.parts) :]
    if path.parts[: len(folder.parts)] == folder.parts and ".." not in parts:
        steps = ("/".join(parts[: count + 1]) for count in range(len(parts)))
        if not any(os.path.islink(f"{folder}/{step}") for step in steps):
            return
    if not path.resolve().is_relative_to(folder.resolve()):
        raise Damaged(path, f"leads out of {folder}, which is not followed", "Put the file itself in its place.")


def require_text(path: Path) -> None:
    """Raise LookupError for a path that is not valid UTF-8, by which files of tensors cannot be opened."""
    if not is_text(str(path)):
        name = escaped(str(path))
        raise LookupError(f"{name} is not opened: its path is not UTF-8. Rename the folder; do not delete it.")


def is_text(name: str) -> bool:
    """Whether a name or path can be written as UTF-8; other bytes of it arrive as lone surrogates."""
    return not any("\ud800" <= letter <= "\udfff" for letter in name)


def escaped(name: str) -> str:
    """The name with the bytes that are no UTF-8 as \\xNN."""
    return os.fsencode(name).decode("utf-8", "backslashreplace")


def require_known(path: Path, stated: Any, remedy: str) -> None:
    """Raise Damaged for another format than the present one; Newer for that of a later version."""
    if stated == FORMAT:
        return
    match = re.fullmatch(r"fedscape-(\d{1,9})", str(stated))
    if match and int(match[1]) > int(FORMAT.rpartition("-")[2]):
        raise Newer(path, f"was written by a newer version of fedscape (format {stated!r})", Newer.remedy)
    if stated is None:
        raise Damaged(
            path, "names no format of fedscape", "If fedscape did not write it, leave it out. If it did: " + remedy
        )
    raise Damaged(path, f"was not written by fedscape (format {stated!r}, and {FORMAT!r} is read)", remedy)
