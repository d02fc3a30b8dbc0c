"""Headers of the files of a run: what they state, and their small arrays, read in one piece without the models.

The writer puts the widest types first (`drift.store.numpy_files.write_contents`), so small arrays stand at the start of
a file. Their names and places are checked, their digest is not: it covers the models as well. Files name their run and
the round before them (`drift.store.links`); files of earlier versions name neither. `drift.config.chain` checks them
against each other.
"""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from math import prod
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from drift.store import links, paths
from drift.store.file_layout import Place, Stated, read_header
from drift.store.numpy_files import FORMAT, PIECE, SEPARATE, Damaged, description, form_text, require_known

ROUND_FILE = re.compile(r"\d{6}\.safetensors")
"""Names of round files."""

LARGEST_EXTRA = 1 << 12
"""Count of numbers up to which what a method recorded counts as small."""

ALIGNMENT = 64
"""Bytes that a processor reads at once, at most."""

_UNREADABLE = (OSError, ValueError, LookupError, TypeError, AttributeError)
_TYPES = ("float64", "float32", "int64", "int32", "bool")
_ANEW = "See fedscape verify --repair."


@dataclass(frozen=True)
class Header:
    """What a file states beside its models.

    Args:
        file: Its path inside the run's folder.
        index: Number of the round; of the state, the next round.
        run, before: Identity of its run and link of the round before it; None in files of earlier versions.
        arrays: `ids`, `sizes`, `weights` (m,), `gram` (m + 3, m + 3), `metric.NAME` () and small `extras.NAME`; of a
            state without `before`, squares of its vectors.
    """

    file: str
    index: int
    run: str | None
    before: str | None
    arrays: Mapping[str, np.ndarray] = field(repr=False)

    @property
    def state(self) -> bool:
        """Whether it is the run's state."""
        return self.file == paths.STATE

    @property
    def link(self) -> str:
        """Link of the round, by which the next file names it."""
        return links.link(self.index, self.arrays)

    def numbers(self) -> dict[str, float]:
        """Metrics by name, and what the method recorded as one number."""
        named = {name.partition(".")[2]: value for name, value in self.arrays.items() if value.ndim == 0}
        return {name: float(value) for name, value in named.items()}


def read_small_arrays(path: Path) -> Header:
    """Header and small arrays of a round file.

    Raises:
        Damaged: If it is absent, truncated, no round file, or of a later version.
    """
    try:
        if path.is_symlink():
            paths.require_inside(path, path.parent.parent)
        with open(path, "rb", buffering=0) as file:
            stated = read_header(file)
            require_known(path, stated.metadata.get("format"))
            small = {name: place for name, place in stated.places.items() if _is_small(name, place)}
            arrays = _arrays(file, stated, small)
        if not set(links.LINKED) <= set(arrays):
            raise ValueError("it has no cohort")
        about = description(path, stated.metadata, _ANEW)
        return Header(f"{path.parent.name}/{path.name}", int(about["round"]), *_names(about), arrays)
    except FileNotFoundError as reason:
        raise Damaged(path, "is missing", _ANEW) from reason
    except _UNREADABLE as reason:
        if isinstance(reason, Damaged):
            raise
        raise Damaged(path, f"cannot be read ({reason}); it is truncated or no round of a run", _ANEW) from reason


def read_round_file(folder: Path, index: int) -> Header | None:
    """Header and small arrays of the file at the place of a round, whichever round it states; None if unreadable."""
    with suppress(Damaged):
        return read_small_arrays(paths.round_path(folder, index))
    return None


def read_round(folder: Path, index: int) -> Header | None:
    """Header and small arrays of a round; None where they cannot be read, or state another number."""
    header = read_round_file(folder, index)
    return None if header is None or header.index != index else header


def read_state(folder: Path) -> Header | None:
    """Header of the state, with squares of its model and mean update if it names no round; None if unreadable."""
    path = folder / paths.STATE
    with suppress(*_UNREADABLE):
        paths.require_inside(path, folder)
        with open(path, "rb", buffering=0) as file:
            stated = read_header(file)
            about = description(path, stated.metadata, _ANEW)
            run, before = _names(about)
            names = {"theta", "previous"} & set(stated.places) if before is None else set[str]()
            vectors = _arrays(file, stated, {name: stated.places[name] for name in names})
        squares = {name: np.square(vector, dtype=np.float64).sum() for name, vector in vectors.items()}
        return Header(paths.STATE, int(about["next"]), run, before, squares)
    return None


def is_whole(path: Path) -> bool:
    """Whether a file that is not compressed has the content that was written; False also where that is not known.

    False is no verdict: compressed files are decompressed by `drift.store.files.read_tensors`, which names the damage.
    """
    with suppress(*_UNREADABLE), open(path, "rb", buffering=0) as file:
        metadata, places, _ = read_header(file)
        if metadata.get("format") not in (FORMAT, SEPARATE):
            return False
        total = hashlib.sha256(metadata.get("about", "").encode())
        for name, place in sorted(places.items()):
            total.update(form_text(name, place.dtype, place.shape))
            file.seek(place.begin)
            for begin in range(place.begin, place.end, PIECE):
                total.update(file.read(min(PIECE, place.end - begin)))
        return total.hexdigest() == metadata.get("digest")
    return False


def round_numbers(folder: Path) -> list[int]:
    """Numbers of the round files, ascending."""
    rounds = folder / "rounds"
    names = os.listdir(rounds) if rounds.is_dir() else []
    return sorted(int(name.partition(".")[0]) for name in names if ROUND_FILE.fullmatch(name))


def last_link(folder: Path, following: int) -> str:
    """Link of the last round before round `following`; "" where there is none."""
    state = read_state(folder)
    if state is not None and state.before is not None and state.index == following:
        return state.before
    return link_before(folder, following)


def link_before(folder: Path, following: int) -> str:
    """The same, from the file of that round."""
    before = [index for index in round_numbers(folder) if index < following]
    header = read_round(folder, before[-1]) if before else None
    return "" if header is None else header.link


def all_links(folder: Path) -> set[str]:
    """Links of all rounds of a run, as their files give them and as the files after them name them."""
    headers = (*(read_round(folder, index) for index in round_numbers(folder)), read_state(folder))
    readable = [header for header in headers if header is not None]
    return (
        {""} | {header.before or "" for header in readable} | {header.link for header in readable if not header.state}
    )


def _names(about: Mapping[str, Any]) -> tuple[str | None, str | None]:
    run, before = about.get("run"), about.get("before")
    return None if run is None else str(run), None if before is None else str(before)


def _is_small(name: str, place: Place) -> bool:
    if name in links.LINKED or name.startswith("metric."):
        return place.dtype in _TYPES
    return name.startswith("extras.") and place.dtype in _TYPES and prod(place.shape) <= LARGEST_EXTRA


def _arrays(file: BinaryIO, stated: Stated, places: Mapping[str, Place]) -> dict[str, np.ndarray]:
    """Arrays, as far from a multiple of ALIGNMENT as in a mapped file, so that products of them have the same bits."""
    piece, end = stated.piece, max((place.end for place in places.values()), default=0)
    if end > len(piece):
        piece += file.read(end - len(piece))
    return {name: _array(piece, place) for name, place in places.items()}


def _array(piece: bytes, place: Place) -> np.ndarray:
    memory = np.empty(place.end - place.begin + ALIGNMENT, np.uint8)
    shift = (place.begin - memory.ctypes.data) % ALIGNMENT
    values = memory[shift : shift + place.end - place.begin]
    values[:] = np.frombuffer(piece, np.uint8, place.end - place.begin, place.begin)
    return values.view(place.dtype).reshape(place.shape)
