"""The matrix of the client models of a round, filled row by row as clients come back: in memory, or in a file.

It is in a file where it would not fit the budget (`drift.store.memory_budget`): in that of the round, which is
completed when all else is known, so that each model is written once; else in a temporary one.
"""

from __future__ import annotations

import os
import tempfile
import weakref
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import torch
from torch import Tensor

from drift.store import memory_budget
from drift.store.file_layout import offset_of_rows
from landscape.model.mapped_files import map_tensor
from landscape.results.atomic_write import temporary_name


class ClientRows(Protocol):
    """Rows for the models (d,) of m clients."""

    @property
    def file(self) -> RowFile | None:
        """The file that other processes may write the rows to; None for rows in memory."""

    def write(self, row: int, model: Tensor) -> None:
        """Store a model; rows may be written in any order, and again."""

    def matrix(self, rows: Sequence[int]) -> Tensor:
        """The models of the rows (ascending), shape (n, d); nothing may be written after that."""


def client_rows(number: int, start: Tensor, path: Path | None = None) -> ClientRows:
    """Rows for the models of a round: in memory if they fit the budget, else in a file.

    Args:
        number: Clients of the round.
        start: The model that they receive, shape (d,).
        path: File of the round, which is begun with the rows; None: a temporary one.
    """
    if memory_budget.fits(start.dtype, (number, len(start))):
        return MemoryRows(number)
    if path is None:
        descriptor, name = tempfile.mkstemp(prefix="fedscape-", suffix=".part")
        os.close(descriptor)
        return FileRows(RowFile(Path(name), 0, start.nbytes), number, start)
    begun = temporary_name(path)
    begun.parent.mkdir(parents=True, exist_ok=True)
    begun.unlink(missing_ok=True)  # left by a stopped process
    begun.touch(exist_ok=False)
    return FileRows(RowFile(begun, offset_of_rows(number), start.nbytes), number, start)


class MemoryRows:
    """Rows in memory, of the type of the models."""

    file = None

    def __init__(self, number: int) -> None:
        self._number = number
        self._models = torch.zeros(0, 0)

    def write(self, row: int, model: Tensor) -> None:
        """Store a copy of a model."""
        if not self._models.numel():
            self._models = model.new_empty(self._number, len(model))
        self._models[row] = model

    def matrix(self, rows: Sequence[int]) -> Tensor:
        """The models of the rows, shape (n, d)."""
        return self._models if len(rows) == len(self._models) else self._models[list(rows)]


@dataclass(frozen=True)
class RowFile:
    """Where rows stand in a file.

    Args:
        path: The file.
        offset: Byte at which the first row begins.
        width: Bytes of a row.
    """

    path: Path
    offset: int
    width: int

    def write(self, row: int, model: Tensor) -> None:
        """Write a model (d,) to its row.

        Raises:
            OSError: If the disk is full.
        """
        data = model.detach().contiguous().view(torch.uint8).numpy().data
        try:
            with open(self.path, "r+b", buffering=0) as file:
                file.seek(self.offset + row * self.width)
                while data.nbytes:
                    data = data[file.write(data) :]
        except OSError as reason:
            reason.filename = reason.filename or str(self.path)
            raise
        memory_budget.return_free_memory()

    def read(self, row: int, like: Tensor) -> Tensor:
        """The model (d,) of a row, of the type of another one.

        Raises:
            OSError: If the file ends before the row does.
        """
        model = torch.empty_like(like)
        with open(self.path, "rb", buffering=0) as file:
            file.seek(self.offset + row * self.width)
            data = model.view(torch.uint8).numpy().data
            while data.nbytes:
                count = file.readinto(data)
                if not count:
                    raise OSError(f"{self.path} ends within row {row}; it was changed while it was read.")
                data = data[count:]
        return model

    def move(self, row: int, target: int) -> None:
        """Copy a row over another one."""
        with open(self.path, "r+b") as file:
            file.seek(self.offset + row * self.width)
            model = file.read(self.width)
            file.seek(self.offset + target * self.width)
            file.write(model)


class FileRows:
    """Rows in a file, which exists and is removed with them, or with their matrix, unless it is completed before.

    Args:
        file: Their place.
        number: Number of rows.
        model: The model that clients receive, shape (d,).
    """

    def __init__(self, file: RowFile, number: int, model: Tensor) -> None:
        self.file, self._like = file, model[:0]
        self._removal = weakref.finalize(self, file.path.unlink, missing_ok=True)
        os.truncate(file.path, file.offset + number * file.width)

    def write(self, row: int, model: Tensor) -> None:
        """Write a model to its row.

        Raises:
            ValueError: If it is of another type than the model that clients receive.
            OSError: If the disk is full.
        """
        if model.dtype != self._like.dtype:
            raise ValueError(f"a client returned {model.dtype}, the model is {self._like.dtype}; correct the method.")
        self.file.write(row, model)

    def matrix(self, rows: Sequence[int]) -> Tensor:
        """The models of the rows, shape (n, d), mapped; they are moved together where others are left out."""
        for index, row in enumerate(rows):
            if index != row:
                self.file.move(row, index)
        shape = len(rows), self.file.width // self._like.element_size()
        models = map_tensor(self.file.path, self._like.dtype, shape, self.file.offset, temporary=True)
        self._removal.detach()
        return models
