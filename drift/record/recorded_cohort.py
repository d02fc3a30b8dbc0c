"""The cohort of a recorded round: finite models with what is stated of them, and the numbers of the other clients."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Any

import numpy as np

from drift.record.flat_arrays import FlatArrays, State, Vectors
from drift.record.unequal_clients import KINDS

Clients = Mapping[Any, tuple[State, int]]
"""Model after local training and number of samples, by client."""

SAME = 1e-5
"""Largest difference, as a part of the largest parameter, of a global model and the weighted sum that it is."""


@dataclass(frozen=True)
class RecordedCohort:
    """Clients of a round with finite models, ascending by number, and the numbers of the others.

    Args:
        ids, sizes, weights: Client numbers, samples, and aggregation weights, shape (m,).
        models, buffers: Parameters (m, d) and floating buffers (m, b).
        excluded: Numbers of the clients with models that are not finite.
        partial: Numbers of the clients that sent a part of the tensors.
        recorded: Names of the tensors that one of them did not send, and which stay as they were.
        weighted: Whether the weights are stated, instead of following from the samples.
        stated: Arrays of what is stated of unequal clients, by name.
        trained: Models as trained, shape (m, d), where a client sent another one; None if none did.
        kinds: Words for what is unequal.
    """

    ids: np.ndarray
    sizes: np.ndarray
    weights: np.ndarray
    models: np.ndarray
    buffers: np.ndarray
    excluded: np.ndarray
    partial: np.ndarray
    recorded: tuple[str, ...] = ()
    weighted: bool = False
    stated: Mapping[str, np.ndarray] = field(default_factory=dict)
    trained: np.ndarray | None = None
    kinds: tuple[str, ...] = ()

    @property
    def shares(self) -> np.ndarray:
        """Weights by samples, which sum to 1, shape (m,); equal where no client has samples."""
        sizes = self.sizes.astype(np.float64) if self.sizes.any() else np.ones(len(self.sizes))
        return sizes / sizes.sum()

    def numbers(self) -> dict[str, np.ndarray]:
        """Arrays of its record, without the models."""
        arrays = {"ids": self.ids, "sizes": self.sizes, "weights": self.weights}
        arrays |= {f"extras.{name}": values for name, values in self.stated.items()}
        noted = {"extras.excluded": self.excluded, "extras.partial": self.partial}
        return arrays | {name: numbers for name, numbers in noted.items() if len(numbers)}

    @classmethod
    def from_clients(
        cls,
        flat: FlatArrays,
        clients: Clients,
        ids: Sequence[int],
        start: tuple[np.ndarray, np.ndarray],
        end: np.ndarray,
        weights: Mapping[Any, float] | None = None,
        number: int = 0,
        unequal: Mapping[Any, Mapping[str, Any]] = MappingProxyType({}),
        origins: Mapping[Any, Vectors] = MappingProxyType({}),
    ) -> RecordedCohort:
        """The cohort of `clients` in any order; `ids` are their numbers in the same order, then those of stopped ones.

        Tensors that a client did not send are those that it received, `start`. Weights are kept where they give the
        parameters `end` (d,), as of a server that shrinks the mean; others are scaled to sum 1. `unequal` states what
        is unequal in round `number`, and `origins` has the models that late clients started from.

        Raises:
            ValueError: If a model is of another layout, a client has no number of samples or no weight, or the weights
                have no finite sum above 0.
        """
        finite, excluded, partial, recorded = [], [], [], dict[str, None]()
        steps, begun, names = list[float](), list[int](), [name for name, _ in flat.parameters]
        whole, masks = list[np.ndarray](), list[list[bool]]()
        for client_id, client in sorted(zip(ids, clients, strict=False)):
            about, own = unequal.get(client, {}), origins.get(client, start)
            state, size = clients[client]
            if weights is not None and client not in weights:
                raise ValueError(f"weights gives none of client {client!r}; it has {list(weights)[:8]}.")
            try:
                theta, buffers, absent = flat.completed(state, own)
                trained = start[0] + (theta - own[0]) if client in origins else theta
                if "sent" in about:
                    theta, buffers, _ = flat.completed(about["sent"], own)
            except ValueError as reason:
                raise ValueError(f"client {client!r}: {reason}") from reason
            theta = start[0] + (theta - own[0]) if client in origins else theta
            recorded |= dict.fromkeys(absent)
            if absent:
                partial.append(client_id)
                masks.append([name not in absent for name in names])
            if all(np.isfinite(array).all() for array in (theta, buffers, trained)):
                finite.append((client_id, int(size), size if weights is None else weights[client], theta, buffers))
                steps.append(about.get("steps", np.nan))
                begun.append(about.get("start_round", number))
                whole.append(trained)
            else:
                excluded.append(client_id)
        said = {name for about in unequal.values() for name in about}
        stopped = np.array(sorted(ids[len(clients) :]), np.int64)
        stated = {"steps": np.array(steps, np.float64), "start_round": np.array(begun, np.int64), "stopped": stopped}
        stated = {name: values for name, values in stated.items() if name in said and len(values)}
        stated |= {"partial_tensors": np.array(masks, np.int64)} if masks else {}
        numbers, sizes, shares, models, statistics = zip(*finite, strict=True) if finite else ((),) * 5
        share = np.array(shares, np.float64)
        share = share if weights is not None or share.any() else np.ones(len(finite))  # no client has samples
        empty, total = flat.vectors_of(0), share.sum()
        stacked = np.stack(models) if finite else empty[0]
        if finite and not 0 < total < np.inf:
            raise ValueError(f"the weights {dict(weights or {})} sum to {total:g}; give a finite sum above 0.")
        if weights is not None:
            away = np.abs(share.astype(stacked.dtype) @ stacked - end).max()
            total = 1.0 if away <= SAME * np.abs(end).max() else total
        return cls(
            np.array(numbers, np.int64),
            np.array(sizes, np.int64),
            share / total if finite else share,
            stacked,
            np.stack(statistics) if finite else empty[1],
            np.array(excluded, np.int64),
            np.array(partial, np.int64),
            tuple(recorded),
            weights is not None,
            stated,
            np.stack(whole) if "sent" in said and finite else None,
            tuple(sorted({KINDS[name] for name in said})),
        )
