"""States and reports of a cohort that would not fit memory: vectors of the model's size, in temporary files."""

from dataclasses import replace

import torch
from torch import Tensor

from drift.config.method_values import State
from drift.store import server_state
from drift.store.row_matrices import release
from drift.training.client import Update
from landscape.model.mapped_files import scratch_tensor


class ReturnedVectors:
    """One matrix in a temporary file for each vector (d,) that clients return beside their model, a row per client.

    A file exists as long as something returned lies in it. What clients keep is written to files of their own when the
    round is committed, if all of it is larger than `server_state.ONE_FILE`; less than that stays in memory here too.

    Args:
        number: Clients that train in the round.
        shape: Shape (d,) of a model.
    """

    def __init__(self, number: int, shape: torch.Size) -> None:
        self._number, self._shape = number, shape
        self._matrices: dict[tuple[str, torch.dtype], Tensor] = {}

    def moved(self, index: int, update: Update) -> Update:
        """The update of the client at `index`, its vectors in the files.

        Raises:
            OSError: If there is no space for a file.
        """
        return replace(
            update, state=self._rows("state", index, update.state), report=self._rows("report", index, update.report)
        )

    def _rows(self, kind: str, index: int, tensors: State) -> State:
        return {name: self._row(f"{kind}.{name}", index, value) for name, value in tensors.items()}

    def _row(self, name: str, index: int, value: Tensor) -> Tensor:
        if value.shape != self._shape or self._number * value.nbytes <= server_state.ONE_FILE:
            return value
        key = name, value.dtype
        if key not in self._matrices:
            self._matrices[key] = scratch_tensor(value.dtype, (self._number, *self._shape))
        matrix = self._matrices[key]
        matrix[index] = value
        release(matrix)
        return matrix[index]
