"""What a recorded run holds beside its models: who took part in a round, and the content of run.json."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from drift.plugins.reserved_names import GIVEN
from drift.record.flat_arrays import Entry, FlatArrays, State

Clients = Mapping[Any, tuple[State, int]]
"""Model after local training and number of samples, by client."""


@dataclass(frozen=True)
class Cohort:
    """Clients of a round whose models are finite, ascending by number, and the numbers of the others.

    Args:
        ids, sizes, weights: Numbers, samples, and what they were averaged by, summing to 1, shape (m,).
        models, buffers: Parameters (m, d) and floating buffers (m, b).
        excluded: Numbers of the clients that are left out.
    """

    ids: np.ndarray
    sizes: np.ndarray
    weights: np.ndarray
    models: np.ndarray
    buffers: np.ndarray
    excluded: np.ndarray

    @classmethod
    def of(
        cls, flat: FlatArrays, clients: Clients, ids: Sequence[int], weights: Mapping[Any, float] | None = None
    ) -> Cohort:
        """The cohort of `clients`, numbered `ids` in their order, in whatever order they come.

        Raises:
            ValueError: If a model is of another layout, or a client has no number of samples or no weight.
        """
        held, excluded = [], []
        for number, client in sorted(zip(ids, clients, strict=True)):
            state, size = clients[client]
            if size != int(size) or size < 0:
                raise ValueError(f"client {client!r} has {size} samples; give a whole number, 0 or more.")
            if weights is not None and client not in weights:
                raise ValueError(f"weights gives none of client {client!r}; it has {list(weights)[:8]}.")
            theta, buffers = flat.vectors(state)
            if np.isfinite(theta).all() and np.isfinite(buffers).all():
                held.append((number, int(size), size if weights is None else weights[client], theta, buffers))
            else:
                excluded.append(number)
        numbers, sizes, shares, models, statistics = zip(*held, strict=True) if held else ((),) * 5
        share = np.array(shares, np.float64)
        share = share if share.any() else np.ones(len(held))  # clients without samples count the same
        empty = flat.vectors_of(0)
        return cls(
            np.array(numbers, np.int64),
            np.array(sizes, np.int64),
            share / share.sum() if held else share,
            np.stack(models) if held else empty[0],
            np.stack(statistics) if held else empty[1],
            np.array(excluded, np.int64),
        )


def numbered(clients: Clients, names: Sequence[str] | None, *, fresh: bool) -> tuple[list[int], list[str] | None]:
    """Numbers of clients in their order, and all names so far where clients are called by names.

    New names are numbered in ascending order, so that the order of `clients` does not matter.

    Args:
        clients: By whole number or by anything else.
        names: Names so far; None in a run whose clients have numbers.
        fresh: Whether no round is recorded yet, so that either may begin.

    Raises:
        ValueError: If a run whose clients have numbers gets names.
    """
    plain = all(isinstance(client, int | np.integer) and 0 <= client < 1 << 31 for client in clients)
    if names is None and plain:
        return [int(client) for client in clients], None
    if names is None and not fresh:
        other = next(client for client in clients if not isinstance(client, int) or not 0 <= client < 1 << 31)
        raise ValueError(f"client {other!r} is no number below 2^31 as those of the rounds before are.")
    known = list(names or ())
    known += sorted({str(client) for client in clients} - set(known))
    return [known.index(str(client)) for client in clients], known


SAYABLE = ("name", "method", "data", "partition", "seed", "settings")
"""What somebody may say of a training."""


def said(
    name: str | None,
    method: str | None,
    data: str | None,
    partition: str | None,
    seed: int | None,
    settings: Mapping[str, Any] | None,
) -> dict[str, Any]:
    """What somebody says of a training, without what nobody says.

    Raises:
        ValueError: If the seed is no whole number, or a setting is nothing that JSON has.
    """
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise ValueError(f"seed is {seed!r}; give a whole number, 0 or more.")
    texts = {"name": name, "method": method, "data": data, "partition": partition}
    for key, value in texts.items():
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise ValueError(f"{key} is {value!r}; give a text.")
    try:
        own = None if settings is None else json.loads(json.dumps(dict(settings)))
    except (TypeError, ValueError) as reason:
        raise ValueError(f"settings cannot be recorded ({reason}); give numbers, texts, lists and tables.") from reason
    told = {**texts, "seed": seed, "settings": own}
    return {key: value for key, value in told.items() if value is not None}


def described(
    before: Mapping[str, Any] | None,
    flat: FlatArrays,
    ids: Sequence[int],
    names: Sequence[str] | None,
    *,
    rounds: int,
    keep: Mapping[str, str],
    weighted: bool,
    told: Mapping[str, Any],
) -> dict[str, Any]:
    """Content of run.json.

    Args:
        before: The experiment so far; None before the first round.
        flat: Layout of the models.
        ids, names: Numbers of a round's clients; names of all clients, where they have names.
        rounds: Rounds recorded or announced.
        keep: Policies by what they keep.
        weighted: Whether the aggregation weights are known.
        told: What is said of the training, as `said` gives it.
    """
    before = before or {"rounds": 1, "clients": {"number": 1, "per_round": 1}}
    unknown = [] if "method" in told else ["method"]
    unknown += [] if "settings" in told else ["local settings"]
    unknown += [part for part in ("partition", "seed") if part not in told]
    unknown += ["dataset and model" if "data" not in told else "model"]
    about = {
        "experiment": {
            "rounds": max(before["rounds"], rounds),
            "task": {"dataset": GIVEN, "model": GIVEN},
            "clients": {
                "number": max(before["clients"]["number"], max(ids, default=0) + 1),
                "per_round": max(before["clients"]["per_round"], len(ids)),
                "partition": {"name": "iid"},
            },
            "keep": dict(keep),
        },
        "fingerprint": GIVEN,
        "classes": [],
        "layout": listed(flat.parameters),
        "buffers": listed(flat.buffers),
        "engine": "recorded",
        "imported": True,
        "unknown": [*unknown, *([] if weighted else ["aggregation weights"])],
        **({"told": dict(told)} if told else {}),
        "versions": {"python": platform.python_version(), "numpy": np.__version__, "machine": platform.machine()},
    }
    return about if names is None else {**about, "names": list(names)}


def listed(entries: Sequence[Entry]) -> list[list[Any]]:
    """Names and shapes, fit for JSON."""
    return [[name, list(shape)] for name, shape in entries]
