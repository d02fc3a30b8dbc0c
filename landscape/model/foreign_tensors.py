"""`found_in`: the state dicts in a file of any program; whatever is no tensor is read as inert data."""

from __future__ import annotations

import re
import zipfile
import zlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from landscape.model.content_words import MAX_KEYS, described, one_line, short_key
from landscape.model.file_formats import file_format
from landscape.model.guarded_load import Refused, require_few, require_npz, require_room, require_stored
from landscape.model.numpy_pickles import unpickled_array
from landscape.model.state_dict_search import searched
from landscape.model.torch_files import Stored, Values, read_legacy, read_zip

IN_MEMORY = Path("the model given")
"""In place of the path of a file, of what is in memory."""

_UNREADABLE = (
    *(SafetensorError, RuntimeError, EOFError, OSError, ValueError, TypeError, LookupError),
    *(zipfile.BadZipFile, zlib.error),
)


@dataclass(frozen=True)
class FoundState:
    """A state dict in a file.

    Args:
        path: The file.
        keys: Keys under which it lies; empty for the file itself.
        entries: Tensors by name, some of them in the file.
        values: Reads those.
    """

    path: Path
    keys: tuple[Any, ...]
    entries: Mapping[str, Tensor | Stored]
    values: Values = field(repr=False)

    @property
    def name(self) -> str:
        """The path with the place, as it is chosen: `m.pt[ema]`."""
        return f"{self.path}{self.key}"

    @property
    def key(self) -> str:
        """The place alone: `[ema]`."""
        return "".join(f"[{short_key(key)}]" for key in self.keys)

    def is_in(self, keys: tuple[str, ...]) -> bool:
        """Whether its keys, and those of a place as they are chosen, are the same as far as both go."""
        pairs = zip(self.keys, keys, strict=False)
        return all(word in (short_key(key), str(getattr(key, "from_end", ""))) for key, word in pairs)

    def below(self, keys: tuple[str, ...], start: int | None = None) -> list[FoundState]:
        """The part whose names begin with the words of a place that follow its own; [] without such names."""
        words = keys[len(self.keys) if start is None else start :]
        prefix = f"{'.'.join(words)}."
        entries = {name.removeprefix(prefix): value for name, value in self.entries.items() if name.startswith(prefix)}
        return [FoundState(self.path, (*self.keys, *words), entries, self.values)] if entries else []

    def tensors(self, names: Mapping[str, str] | None = None) -> dict[str, Tensor]:
        """Tensors by name, or by the names that `names` gives some of them.

        Raises:
            ValueError: If a tensor is damaged, or states more bytes than the file has.
        """
        selected = {name: name for name in self.entries} if names is None else names
        try:
            read = {
                new: value if isinstance(value := self.entries[old], Tensor) else self.values(value)
                for old, new in selected.items()
            }
        except Refused:
            raise
        except _UNREADABLE as reason:
            raise ValueError(_unreadable(self.path, reason)) from reason
        require_stored(self.path, ((name, *_sizes(value)) for name, value in read.items()))
        return read


def found_in(path: str | Path) -> list[FoundState]:
    """State dicts in a file (torch.save, safetensors, npz), without those of optimisers; at least one.

    They may lie in tables and lists, and be those of whole modules. A single vector (of FedLab's SerializationTool) is
    called `FLAT`, arrays without names `arr_0`, `arr_1` and so on.

    Raises:
        ValueError: If the file holds none, is of another format, or damaged; the message names it.
    """
    path = Path(path)
    try:
        content, values = _READERS[file_format(path)](path)
        candidates = state_dicts(path, content, values)
    except Refused as reason:
        raise Refused(str(reason) if str(path) in str(reason) else f"{path}: {reason}.") from reason
    except _UNREADABLE as reason:
        message = str(reason)
        raise ValueError(message if str(path) in message else _unreadable(path, reason)) from reason
    for candidate in candidates:
        require_few(path, len(candidate.entries))
    return candidates


def state_dicts(path: Path, content: Any, values: Values) -> list[FoundState]:
    """State dicts in tables, lists and modules that are read already; arrays of numpy count where no tensors are.

    Raises:
        Refused: If there are none; says what there is.
    """
    states = searched(content) or searched(content, unpickled_array)
    if not states:
        verb = "give" if path == IN_MEMORY else "save"
        raise Refused(f"{path} holds {described(content)} and no tensors by name; {verb} model.state_dict().")
    return [FoundState(path, keys, entries, values) for keys, entries in states]


def distinct(candidates: list[FoundState]) -> list[FoundState]:
    """State dicts without those that another place has too."""
    first: dict[int, FoundState] = {}
    return [candidate for candidate in candidates if first.setdefault(id(candidate.entries), candidate) is candidate]


def split_choice(path: str | Path) -> tuple[Path, tuple[str, ...]]:
    """The file, and the keys in brackets after its name: `m.pt[net][ema]`; a file of that name has none."""
    path = Path(path)
    match = re.fullmatch(r"(.*?)((?:\[[^\[\]]*\])+)", path.name)
    if match is None or path.exists():
        return path, ()
    return path.with_name(match[1]), tuple(re.findall(r"\[([^\[\]]*)\]", match[2]))


def selected(candidates: list[FoundState], keys: tuple[str, ...]) -> list[FoundState]:
    """State dicts under a place; also the part of the names that begins with it, as in `m.ckpt[net]`.

    Raises:
        ValueError: If there is none; the message lists those that there are.
    """
    if not keys:
        return candidates
    under = [candidate for candidate in candidates if len(candidate.keys) >= len(keys) and candidate.is_in(keys)]
    inside = [state for candidate in candidates if candidate.is_in(keys) for state in candidate.below(keys)]
    if states := under or inside or [state for candidate in candidates for state in candidate.below(keys, start=0)]:
        return states
    key = "".join(f"[{name}]" for name in keys)
    raise ValueError(f"{candidates[0].path} has nothing under {key}; it has {listed(candidates)}.")


def only(candidates: list[FoundState]) -> FoundState:
    """The only state dict; tensors beside state dicts, such as class weights, are none.

    Raises:
        ValueError: If there are more; the message says how to choose.
    """
    all_keys = [candidate.keys for candidate in candidates]
    inner = [
        candidate
        for candidate in candidates
        if not any(candidate.keys == keys[: len(candidate.keys)] != keys for keys in all_keys)
    ]
    if len(distinct(inner)) > 1:
        raise ValueError(choice(inner))
    return inner[0]


def choice(candidates: list[FoundState]) -> str:
    """How to choose one of several state dicts."""
    first, last = candidates[0], candidates[-1]
    how = "give one of them" if first.path == IN_MEMORY else f"choose one, as in '{last.name}'"
    return f"{first.path} has {len(candidates)} state dicts: {listed(candidates)}; {how}."


def listed(candidates: list[FoundState]) -> str:
    """State dicts by their places, with the number of their tensors."""
    texts = [
        f"{candidate.key or 'one at its top'} ({len(candidate.entries)} tensors)" for candidate in candidates[:MAX_KEYS]
    ]
    return ", ".join(texts) + (f" and {len(candidates) - MAX_KEYS} more" if len(candidates) > MAX_KEYS else "")


def _unreadable(path: Path, reason: Exception) -> str:
    return f"{path} cannot be read ({one_line(reason)}); it is truncated or damaged: copy it again."


def _read_safetensors(path: Path) -> tuple[Any, Values]:
    require_room(path, path.stat().st_size)
    with safe_open(path, framework="pt") as file:
        require_few(path, len(file.keys()))
    return load_file(path), in_memory  # compares the shapes in the header with the length of the file


def _read_npz(path: Path) -> tuple[Any, Values]:
    names = require_npz(path)
    with np.load(path, allow_pickle=False) as arrays:
        return {name: torch.from_numpy(arrays[name]) if name in names else None for name in arrays.files}, in_memory


def in_memory(stored: Stored) -> Tensor:
    """Values where all tensors are in memory: no other can be read."""
    raise ValueError("a tensor without a file")


_READERS: dict[str, Callable[[Path], tuple[Any, Values]]] = {
    "safetensors": _read_safetensors,
    "npz": _read_npz,
    "zip": read_zip,
    "legacy": read_legacy,
}


def _sizes(tensor: Tensor) -> tuple[int, int]:
    """Bytes by a tensor's shape, and stored bytes."""
    return tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes()
