"""State dicts that other programs wrote: read as tensors, never unpickled."""

from __future__ import annotations

import pickle
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file
from torch import Tensor

SUFFIXES = (".pt", ".pth", ".safetensors")

_NO_PICKLE = (LookupError, TypeError, AssertionError)
"""What torch's unpickler raises for bytes that are no pickle, beside its own error."""


def read_tensors(path: Path) -> dict[str, Tensor]:
    """Tensors of a state dict (.pt, .pth or .safetensors) by name; nothing else is unpickled.

    A state dict inside a table (`state_dict`, `model_state_dict`) is found, prefixes of wrappers are taken off.

    Raises:
        ValueError: If the file is none, or damaged; it is named.
    """
    try:
        content: Any
        if path.suffix == ".safetensors":
            content = load_file(path)
        else:
            content = torch.load(path, map_location="cpu", weights_only=True)
    except pickle.UnpicklingError as reason:
        raise ValueError(
            f"{path} holds more than tensors, or is damaged; it is not unpickled, as that could run any code. "
            "Save it anew by torch.save(model.state_dict(), ...)."
        ) from reason
    except (SafetensorError, RuntimeError, EOFError, OSError, ValueError, *_NO_PICKLE) as reason:
        raise ValueError(f"{path} cannot be read ({one_line(reason)}); it is truncated or no checkpoint.") from reason
    for key in ("state_dict", "model_state_dict"):
        if isinstance(content, Mapping) and isinstance(content.get(key), Mapping):
            content = content[key]
    if not isinstance(content, Mapping) or not all(isinstance(value, Tensor) for value in content.values()):
        raise ValueError(f"{path} holds {type(content).__name__}, not a state dict; save model.state_dict().")
    return {re.sub(r"^(module\.|_orig_mod\.)+", "", name): value for name, value in content.items()}


def one_line(reason: Exception) -> str:
    """The first 200 characters of an error's message, on one line."""
    return " ".join(str(reason).split())[:200] or type(reason).__name__
