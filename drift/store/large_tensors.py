"""Client models of a round that do not fit the budget (`drift.store.memory_budget`): mapped, converted row by row."""

from pathlib import Path
from typing import BinaryIO

import torch
from torch import Tensor

from drift.store import memory_budget
from drift.store.file_layout import TYPES, read_header
from drift.store.numpy_files import stored_bytes
from drift.store.paths import Stamp
from drift.store.row_matrices import Rows, filled
from landscape.model.mapped_files import map_tensor

NAMES = ("clients", "client_deltas", "models")
"""Tensors that are mapped if they are large: of a round, and `models` of a method's state (`server.models`) and of what
clients received (`sent.models`)."""

CARRIED = "carried."
"""Start of the names of what the clients of a round keep, which is mapped as well."""


def read(path: Path, file: BinaryIO) -> tuple[dict[str, str], dict[str, Tensor]]:
    """Metadata and tensors of an open file; client models that are not to be in memory at once are mapped.

    Raises:
        OSError, ValueError, LookupError, TypeError, AttributeError: If the file cannot be read.
    """
    stated, tensors = read_header(file), dict[str, Tensor]()
    for name, span in stated.spans.items():
        dtype: torch.dtype = getattr(torch, span.dtype)
        fits = memory_budget.fits(dtype, span.shape) or span.begin % TYPES[span.dtype][1] > 0
        if (name.startswith(CARRIED) or name.rpartition(".")[2] in NAMES) and not fits:
            tensors[name] = map_tensor(path, dtype, span.shape, span.begin)
        else:
            tensors[name] = torch.from_numpy(stored_bytes(file, stated, span)).view(dtype).reshape(span.shape)
    return stated.metadata, tensors


def is_verified(stated: Stamp | None) -> bool:
    """Whether this process compared the file with its digest, and it has not changed since."""
    return stated in _verified


def remember(verified: Stamp | None) -> None:
    """Remember a file whose content matches its digest, as reading all of it takes long."""
    if verified is not None:
        _verified.add(verified)


_verified: set[Stamp] = set()


def rounded_updates(clients: Tensor, start: Tensor) -> Tensor:
    """Updates of client models (m, d), model minus start (d,), in bfloat16."""
    if memory_budget.fits(clients.dtype, tuple(clients.shape)):
        return (clients - start).to(torch.bfloat16)
    return filled(len(clients), start.to(torch.bfloat16), (client - start for client in Rows(clients)))


def models_of_updates(start: Tensor, updates: Tensor) -> Tensor:
    """Models (m, d) of updates from a start (d,), in its type."""
    if memory_budget.fits(start.dtype, tuple(updates.shape)):
        return start + updates.to(start)
    return filled(len(updates), start, (start + update.to(start) for update in Rows(updates)))
