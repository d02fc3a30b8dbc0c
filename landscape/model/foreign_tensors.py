"""State dicts of other programs: read as tensors; other objects are not unpickled."""

from __future__ import annotations

import pickle
import re
import zipfile
import zlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file
from torch import Tensor

from landscape.model.guarded_load import Refused, require_few, require_npz, require_room, require_stored, require_torch

SUFFIXES = (".pt", ".pth", ".safetensors", ".npz")

FLAT = ""
"""Name of the only tensor of a file that is one vector of all parameters."""

MAX_KEYS, MAX_DEPTH = 8, 3
"""Number of keys in a message, and depth of nested tables that are searched for state dicts."""

_NO_PICKLE = (LookupError, TypeError, AssertionError)
"""Errors of torch's unpickler for bytes that are no pickle, in addition to its own error."""

_UNREADABLE = (
    *(SafetensorError, RuntimeError, EOFError, OSError, ValueError),
    *(zipfile.BadZipFile, zlib.error),
    *_NO_PICKLE,
)


def read_tensors(path: str | Path) -> dict[str, Tensor]:
    """Tensors of a state dict (.pt, .pth, .safetensors or .npz) by name; other objects are not unpickled.

    A state dict inside a table (`state_dict`, `model_state_dict`) is accepted, prefixes of wrappers are removed. A
    single vector (of FedLab's SerializationTool) is called `FLAT`. A file that states more bytes than it has is
    refused before memory is allocated.

    Args:
        path: File in safetensors, npz or PyTorch format.

    Raises:
        ValueError: If the file is no state dict, or damaged; the message names it.
    """
    path = Path(path)
    try:
        content = _content(path)
    except Refused:
        raise
    except pickle.UnpicklingError as reason:
        raise ValueError(
            f"{path} holds more than tensors, or is damaged; it is not unpickled, as that could run any code. "
            "Save it anew by torch.save(model.state_dict(), ...)."
        ) from reason
    except _UNREADABLE as reason:
        raise ValueError(f"{path} cannot be read ({one_line(reason)}); it is truncated or no checkpoint.") from reason
    for key in ("state_dict", "model_state_dict"):
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if isinstance(content, Tensor) and content.ndim == 1:
        content = {FLAT: content}
    if not isinstance(content, Mapping) or not all(isinstance(value, Tensor) for value in content.values()):
        raise ValueError(f"{path} holds {_describe(content)}, not a state dict; {_advice(path, content)}")
    require_stored(path, ((str(name), *_sizes(value)) for name, value in content.items()))
    return {re.sub(r"^(module\.|_orig_mod\.)+", "", str(name)): value for name, value in content.items()}


def one_line(reason: Exception) -> str:
    """The first 200 characters of an error's message, on one line."""
    return " ".join(str(reason).split())[:200] or type(reason).__name__


def _describe(content: Any) -> str:
    if not isinstance(content, Mapping):
        return type(content).__name__
    keys = [_quote(key) for key in content]
    return (
        f"a table of {', '.join(keys[:MAX_KEYS])}{f' and {len(keys) - MAX_KEYS} more' if len(keys) > MAX_KEYS else ''}"
    )


def _advice(path: Path, content: Any) -> str:
    """How to save a state dict of the file: by a key under which there is one."""
    places = list(_places(content))
    if not places:
        return "save model.state_dict()."
    names = ["".join(f"[{_quote(key)}]" for key in place) for place in places]
    verb = "one is" if len(names) == 1 else "some are"
    saved = f"torch.save(torch.load({path.name!r}){names[0]}, NEW)"
    return f"{verb} under {', '.join(names[:MAX_KEYS])}: save a single one in another folder, as in {saved}."


def _places(content: Any, above: tuple[Any, ...] = ()) -> Iterator[tuple[Any, ...]]:
    """Keys of the state dicts inside a table and its tables; the state of an optimiser is skipped."""
    if not isinstance(content, Mapping) or len(above) > MAX_DEPTH:
        return
    for key, value in content.items():
        if isinstance(value, Mapping) and value and all(isinstance(tensor, Tensor) for tensor in value.values()):
            if all(isinstance(name, str) for name in value):
                yield (*above, key)
        elif not (isinstance(value, Mapping) and {"state", "param_groups"} <= set(value)):
            yield from _places(value, (*above, key))


def _quote(key: Any) -> str:
    return one_line(ValueError(repr(key)))[:60]


def _content(path: Path) -> Any:
    """Content of a file, after checks of the sizes that it states."""
    if path.suffix == ".safetensors":
        require_room(path, path.stat().st_size)
        with safe_open(path, framework="pt") as file:
            require_few(path, len(file.keys()))
        return load_file(path)  # compares the shapes in the header with the length of the file
    if path.suffix == ".npz":
        require_npz(path)
        with np.load(path, allow_pickle=False) as arrays:
            return {name: torch.from_numpy(arrays[name]) for name in arrays.files}
    require_torch(path)
    return torch.load(path, map_location="cpu", weights_only=True)


def _sizes(tensor: Tensor) -> tuple[int, int]:
    """Bytes by a tensor's shape, and stored bytes."""
    if tensor.layout is not torch.strided or tensor.is_quantized:
        return 1 << 62, 0  # sparse and quantised tensors are no parameters
    return tensor.numel() * tensor.element_size(), tensor.untyped_storage().nbytes()
