"""Headers of the files of a run: which run, round and previous round they name; small arrays are read, no models.

Files name their run and the round before them (`drift.store.links`); files of earlier versions name neither.
`drift.config.chain` checks them against each other.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open

from drift.store import links, paths
from landscape.results.parsed_text import json_table

ROUND_FILE = re.compile(r"\d{6}\.safetensors")
"""Names of round files."""

_UNREADABLE = (SafetensorError, OSError, LookupError, ValueError, TypeError, AttributeError)


@dataclass(frozen=True)
class Header:
    """What the header and the small arrays of a file state.

    Args:
        file: Its path inside the run's folder.
        index: Number of the round; of the state, the next round.
        run, before: What its header names; None in files of earlier versions.
        arrays: `drift.store.links.LINKED` of a round, and `excluded`; of a state without `before`, squares of its
        vectors.
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


def read_round(folder: Path, index: int) -> Header | None:
    """Header and small arrays of a round; None where they cannot be read, or state another number."""
    header = read_round_file(folder, index)
    return None if header is None or header.index != index else header


def read_round_file(folder: Path, index: int) -> Header | None:
    """Header and small arrays of the file at the place of a round, whichever round it states; None if unreadable."""
    path = paths.round_path(folder, index)
    try:
        paths.require_inside(path, folder)
        with safe_open(path, framework="numpy") as file:
            about = json_table((file.metadata() or {}).get("about", "{}"))
            names = [*links.LINKED, *({"extras.excluded"} & set(file.keys()))]
            arrays = {name: file.get_tensor(name) for name in names}
        return Header(paths.round_file(index), int(about["round"]), *_names(about), arrays)
    except _UNREADABLE:
        return None


def read_state(folder: Path) -> Header | None:
    """Header of the state, with squares of its model and mean update if it names no round; None if unreadable."""
    path = folder / paths.STATE
    try:
        paths.require_inside(path, folder)
        with safe_open(path, framework="numpy") as file:
            about = json_table((file.metadata() or {}).get("about", "{}"))
            run, before = _names(about)
            names = {"theta", "previous"} & set(file.keys()) if before is None else set[str]()
            squares = {name: _square(file.get_tensor(name)) for name in names}
        return Header(paths.STATE, int(about["next"]), run, before, squares)
    except _UNREADABLE:
        return None


def _names(about: Mapping[str, Any]) -> tuple[str | None, str | None]:
    run, before = about.get("run"), about.get("before")
    return None if run is None else str(run), None if before is None else str(before)


def _square(vector: np.ndarray) -> np.ndarray:
    return np.square(vector, dtype=np.float64).sum()
