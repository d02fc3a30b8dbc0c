"""What clients return, checked when it arrives; their models go to the rows of one matrix, in any order.

What they return beside the model, states and reports, stays as it is, but for vectors of the model's size: where the
models of the round lie in a file, these go to rows of temporary files (`ReturnedVectors`).
"""

from collections import deque
from collections.abc import Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from dataclasses import replace
from typing import Protocol, Self

import torch
from torch import Tensor

from drift.config.method import Method
from drift.store.client_rows import ClientRows, RowFile
from drift.training.client import Update, to_cpu
from drift.training.returned_vectors import ReturnedVectors

_NONE = torch.zeros(0)

LARGE = 1 << 20
"""Bytes of a model from which an update is stored by a thread, while the next client trains."""

AHEAD = 2
"""Updates that are stored, or wait to be, at most."""


class Receive(Protocol):
    """Takes the updates of a cohort as they come back."""

    def file(self, index: int) -> tuple[RowFile, int] | None:
        """File and row that the process which trains the client at `index` may write its model to; None: it may not."""

    def __call__(self, index: int, update: Update, *, written: bool = False) -> Update:
        """The update of the client at `index`, without its model; `written` if that is in its row already."""


def as_they_are(index: int, update: Update) -> Update:
    """The update with its model, where nothing stores it."""
    return update


class Arrivals:
    """Updates of the clients that train in a round; a context at whose end all that came is stored.

    The thread ends with the context, also by an error, of which nothing that waits is stored.

    Args:
        method: The method of the run.
        start, buffers: Model (d,) and floating buffers (b,) that the clients received.
        trained: Ids of the clients that train.
        ids: Ids of the cohort among them, whose models are stored, ascending.
        rows: Rows for the models of the cohort.
        workspace: Model (d,) in which this process trains its clients; one that is returned in it is copied.
    """

    def __init__(
        self,
        method: Method,
        start: Tensor,
        buffers: Tensor,
        trained: Sequence[int],
        ids: Sequence[int],
        rows: ClientRows,
        workspace: Tensor | None = None,
    ) -> None:
        self._method, self._shapes = method, (start.shape, buffers.shape)
        self._trained, self._rows, self._workspace = trained, rows, workspace
        self._row_of = {client: row for row, client in enumerate(ids)}
        self._vectors = None if rows.file is None else ReturnedVectors(len(trained), start.shape)
        self._reports: dict[str, tuple[int, ...]] | None = None
        self.sound: set[int] = set()  # ids of clients that returned finite tensors; complete after the context
        self._beside = ThreadPoolExecutor(1, "fedscape-arrivals") if start.nbytes >= LARGE else None
        self._pending: deque[Future[None]] = deque()

    def file(self, index: int) -> tuple[RowFile, int] | None:
        """File and row for the model of the client at `index`."""
        row = self._row_of.get(self._trained[index])
        return None if self._rows.file is None or row is None else (self._rows.file, row)

    def __call__(self, index: int, update: Update, *, written: bool = False) -> Update:
        """The update without its model, which is stored.

        Raises:
            ValueError: If it has other shapes than the run, or other reports than those before.
            OSError: If the disk is full.
        """
        client, update = self._trained[index], to_cpu(update)
        self._require_shapes(client, update)
        self._wait(AHEAD - 1)
        if self._beside is None:
            self._store(client, update, written)
        else:
            stored = replace(update, theta=update.theta.clone()) if self._is_overwritten(update.theta) else update
            self._pending.append(self._beside.submit(self._store, client, stored, written))
        return replace(update if self._vectors is None else self._vectors.moved(index, update), theta=_NONE)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        """Wait for what is being stored; OSError if the disk is full."""
        if self._beside is not None:
            self._beside.shutdown(cancel_futures=error is not None)
        if error is None:
            self._wait(0)

    def models(self, ids: Sequence[int]) -> Tensor:
        """Models of sound clients of the cohort, in the order of their ids, shape (n, d); after the context."""
        return self._rows.matrix([self._row_of[client] for client in ids])

    def _wait(self, most: int) -> None:
        """Wait until at most so many updates are to be stored."""
        while len(self._pending) > most:
            self._pending.popleft().result()

    def _is_overwritten(self, model: Tensor) -> bool:
        """Whether the next client trains in the memory of a model."""
        workspace = self._workspace
        return workspace is not None and workspace.untyped_storage().data_ptr() == model.untyped_storage().data_ptr()

    def _store(self, client: int, update: Update, written: bool) -> None:
        if not _finite(self._method, update):
            return
        self.sound.add(client)
        row = self._row_of.get(client)
        if row is not None and not written:
            self._rows.write(row, update.theta)

    def _require_shapes(self, client: int, update: Update) -> None:
        for what, sent, shape in zip(("a model", "buffers"), (update.theta, update.buffers), self._shapes, strict=True):
            if sent.shape != shape:
                raise ValueError(
                    f"client {client} returned {what} of shape {tuple(sent.shape)} under {self._method.name()}, the "
                    f"run has {tuple(shape)}; correct the method's local training."
                )
        shapes = {name: tuple(value.shape) for name, value in update.report.items()}
        if self._reports not in (None, shapes):
            raise ValueError(
                f"client {client} reported {shapes} under {self._method.name()}, a client before it {self._reports}; "
                "correct the method's local training."
            )
        self._reports = shapes


def _finite(method: Method, update: Update) -> bool:
    """Whether everything that a client returned is finite: model, buffers, report and state."""
    reports = (value for name, value in update.report.items() if name not in method.gaps)
    vectors = (update.theta, update.buffers, *reports, *update.state.values())
    return all(_all_finite(vector) for vector in vectors)


def _all_finite(values: Tensor) -> bool:
    """Whether no value is NaN or infinite: in one pass, as either would be the least or the greatest."""
    if not values.is_floating_point():
        return bool(torch.isfinite(values).all())
    return values.numel() == 0 or all(bool(bound.isfinite()) for bound in torch.aminmax(values))
