"""Where tensors stand in a safetensors file: its header, and the place of each tensor. Needs the standard library only.

Source: safetensors format: length of the header (u64), JSON header padded with spaces to 8 bytes, tensors without gaps,
those of the widest type first.
"""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from math import prod
from typing import Any, BinaryIO, NamedTuple

from landscape.results.parsed_text import json_table

TYPES = {
    "float64": ("F64", 8),
    "float32": ("F32", 4),
    "float16": ("F16", 2),
    "bfloat16": ("BF16", 2),
    "int64": ("I64", 8),
    "int32": ("I32", 4),
    "int16": ("I16", 2),
    "int8": ("I8", 1),
    "uint8": ("U8", 1),
    "bool": ("BOOL", 1),
}
"""Names of types in safetensors files, and their bytes."""

Form = tuple[str, tuple[int, ...]]
"""Type ("float32") and shape of a tensor."""


@dataclass(frozen=True)
class TensorSpan:
    """A tensor in a file: type ("float32"), shape, and its first and last byte, counted from the start of the file."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


@dataclass(frozen=True)
class FileLayout:
    """A file to be written: its first bytes up to the tensors, and the tensors' places in their order."""

    head: bytes
    spans: dict[str, TensorSpan]

    @property
    def size(self) -> int:
        """Bytes of the file."""
        return max([len(self.head), *(span.end for span in self.spans.values())])


LINKED = ("gram", "ids", "sizes", "weights")
"""Arrays that every round has."""

LARGEST_EXTRA = 1 << 12
"""Count of numbers up to which what a method recorded counts as small."""

_OF_NUMBERS = ("float64", "float32", "int64", "int32", "bool")


def is_small(name: str, form: Form) -> bool:
    """Whether a tensor of a round is read without the models, and is in the digest of those: cohort, Gram matrix,
    `metric.NAME` and small `extras.NAME`."""
    dtype, shape = form
    if name in LINKED or name.startswith("metric."):
        return dtype in _OF_NUMBERS
    return name.startswith("extras.") and dtype in _OF_NUMBERS and prod(shape) <= LARGEST_EXTRA


def is_linked(name: str) -> bool:
    """Whether a small tensor has a say in the link of its round: those that every round has, and that are the same when
    it is computed again."""
    return name in LINKED or (name.startswith("metric.") and name != "metric.seconds")


IN_PLACE = "clients"
"""The tensor that may stand in a file before the others are known: the first one of its width."""


def offset_of_rows(number: int) -> int:
    """Byte from which `number` client models stand in a file that is begun with them: header, Gram matrix and other
    numbers of most rounds fit before it."""
    return -(-(8 * (number + 7) ** 2 + (1 << 16)) // 64) * 64


def layout(forms: Mapping[str, Form], metadata: Mapping[str, str], begin: int = 0) -> FileLayout:
    """The layout of a file with tensors of these forms; it depends on nothing else.

    Args:
        begin: Byte at which the client models stand already. The header is padded up to it where it fits and can be
            read; elsewhere they get another place.

    Raises:
        ValueError: If the format has no name for the type of a tensor.
    """
    for name, (dtype, _) in forms.items():
        if dtype not in TYPES:
            accepted = ", ".join(short for short, _ in TYPES.values())
            raise ValueError(f"tensor {name!r} is {dtype}; the types of files are {accepted}.")
    header: dict[str, Any] = {"__metadata__": dict(metadata)}
    spans: dict[str, tuple[int, int]] = {}
    position = 0
    for name in sorted(forms, key=lambda name: (-TYPES[forms[name][0]][1], name != IN_PLACE, name)):
        dtype, shape = forms[name]
        spans[name] = position, position + prod(shape) * TYPES[dtype][1]
        header[name] = {"dtype": TYPES[dtype][0], "shape": list(shape), "data_offsets": list(spans[name])}
        position = spans[name][1]
    text = json.dumps(header, separators=(",", ":")).encode()
    room = begin - 8 - spans.get(IN_PLACE, (0, 0))[0]
    text = text.ljust(room if len(text) <= room <= LONGEST_HEADER else -(-len(text) // 8) * 8)
    head = len(text).to_bytes(8, "little") + text
    ready = {name: TensorSpan(*forms[name], len(head) + begin, len(head) + end) for name, (begin, end) in spans.items()}
    return FileLayout(head, ready)


class Stated(NamedTuple):
    """What a file states: its metadata and the places of its tensors, and its first bytes."""

    metadata: dict[str, str]
    spans: dict[str, TensorSpan]
    piece: bytes


def read_header(file: BinaryIO) -> Stated:
    """The header of a file that is open at its start; the length of the file is compared with it.

    Raises:
        OSError, ValueError, LookupError, TypeError, AttributeError: If it is no whole safetensors file.
    """
    piece = file.read(FIRST_PIECE)
    length = int.from_bytes(piece[:8], "little")
    if len(piece) < 8 or length > LONGEST_HEADER:
        raise ValueError("its header is cut")
    if 8 + length > len(piece):
        piece += file.read(8 + length + FIRST_PIECE - len(piece))
    header = json_table(piece[8 : 8 + length])
    metadata = header.pop("__metadata__", {})
    spans = {name: _span(entry, 8 + length) for name, entry in header.items()}
    size, end = os.fstat(file.fileno()).st_size, max([8 + length, *(span.end for span in spans.values())])
    if size != end:
        raise ValueError(f"it has {size} bytes, and its header states {end}")
    return Stated(metadata, spans, piece)


FIRST_PIECE = 1 << 14
"""Bytes that are read at once; header and small arrays of most rounds are within them."""

LONGEST_HEADER = 1 << 22
"""Bytes of a header that is read; that of a model of 10,000 tensors is shorter."""


def _span(entry: Mapping[str, Any], base: int) -> TensorSpan:
    (begin, end), shape, dtype = entry["data_offsets"], tuple(entry["shape"]), _NAMES[entry["dtype"]]
    if begin < 0 or end - begin != prod(shape) * TYPES[dtype][1]:
        raise ValueError(f"a tensor of {end - begin} bytes cannot have type {dtype} and shape {shape}")
    return TensorSpan(dtype, shape, base + begin, base + end)


_NAMES = {short: dtype for dtype, (short, _) in TYPES.items()}
