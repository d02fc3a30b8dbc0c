"""Description of a recorded run: the cohort of a round, and the content of run.json."""

import json
import platform
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np

from drift.plugins.reserved_names import USER_TASK
from drift.record.flat_arrays import Entry, FlatArrays, State, Vectors
from drift.record.round_arguments import KINDS, Stated

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
        weights: Mapping[Any, float] | None,
        unequal: Stated,
        origin: Callable[[Mapping[str, Any]], tuple[int, Vectors]],
    ) -> Self:
        """The cohort of `clients` in any order; `ids` are their numbers in the same order, then those of stopped ones.

        Tensors that a client did not send are those that it received, `start`. Weights are kept where they give the
        parameters `end` (d,), as of a server that shrinks the mean; others are scaled to sum 1. `unequal` states what
        is unequal, and `origin` returns the round and the model that a client of which this is stated started from.

        Raises:
            ValueError: If a model is of another layout, a client has no number of samples or no weight, `sent` lacks a
                tensor that its model has, or the weights have no finite sum above 0.
        """
        finite, excluded, partial, recorded = [], [], dict[int, tuple[list[bool], State, Any]](), dict[str, None]()
        for client_id, client in sorted(zip(ids, clients, strict=False)):
            (state, size), about = clients[client], unequal.get(client, {})
            narrow = about.get("narrow", False)
            if weights is not None and client not in weights:
                raise ValueError(f"weights gives none of client {client!r}; it has {list(weights)[:8]}.")
            try:
                begun, begin = origin(about)
                trained, buffers, absent = flat.completed(state, begin, narrow)
                theta = trained
                if "sent" in about:
                    theta, buffers, lacking = flat.completed(about["sent"], begin, narrow)
                    if more := sorted({*lacking} - {*absent}):
                        raise ValueError(f"sent lacks tensor {more[0]!r}, which its model has; give all, as decoded.")
            except ValueError as reason:
                raise ValueError(f"client {client!r}: {reason}") from reason
            if begin is not start:
                theta, trained = (start[0] + (model - begin[0]) for model in (theta, trained))
            recorded |= dict.fromkeys(absent)
            if absent or narrow:
                partial[client_id] = [name not in absent for name, _ in flat.parameters], state, narrow
            if all(np.isfinite(array).all() for array in (theta, buffers, trained)):
                weight = size if weights is None else weights[client]
                unlike = about.get("steps", np.nan), begun, trained
                finite.append((client_id, int(size), weight, theta, buffers, *unlike))
            else:
                excluded.append(client_id)
        columns = zip(*finite, strict=True) if finite else ((),) * 8
        numbers, sizes, shares, models, statistics, steps, rounds, exact = columns
        named = {name for about in unequal.values() for name, value in about.items() if value is not False}
        stated = {"steps": np.array(steps), "start_round": np.array(rounds, np.int64)}
        stated |= {"stopped": np.array(sorted(ids[len(clients) :]), np.int64)}
        stated = {name: values for name, values in stated.items() if name in named and len(values)}
        stated |= {"partial_tensors": np.array([row for row, *_ in partial.values()], np.int64)} if partial else {}
        if "narrow" in named:
            nothing = np.full_like(start[0], np.nan), np.full_like(start[1], np.nan)
            rows = [flat.completed(state, nothing, narrow)[0] for _, state, narrow in partial.values()]
            stated["partial_entries"] = ~np.isnan(rows)
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
            np.array(list(partial), np.int64),
            tuple(recorded),
            weights is not None,
            stated,
            np.stack(exact) if "sent" in named and finite else None,
            tuple(sorted({KINDS[name] for name in named})),
        )


KEEP = "tensors that clients did not send (recorded as they received them)"
"""What is unknown of a run with such clients; its description names the tensors under `kept`."""

DESCRIBED = ("name", "method", "data", "partition", "seed", "settings", "metrics")
"""Arguments of `describe_training`."""


def describe_training(
    name: str | None,
    method: str | None,
    data: str | None,
    partition: str | None,
    seed: int | None,
    settings: Mapping[str, Any] | None,
    metrics: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """Description of a training without the parts that are None.

    Raises:
        ValueError: If the seed is no whole number, a name no text, or a setting cannot be written as JSON.
    """
    if seed is not None and (isinstance(seed, bool) or not isinstance(seed, int) or seed < 0):
        raise ValueError(f"seed is {seed!r}; give a whole number, 0 or more.")
    texts = {"name": name, "method": method, "data": data, "partition": partition}
    for key, value in texts.items():
        if value is not None and (not isinstance(value, str) or not value.strip()):
            raise ValueError(f"{key} is {value!r}; give a text.")
    try:
        plain = None if settings is None else json.loads(json.dumps(dict(settings)))
    except (TypeError, ValueError) as reason:
        raise ValueError(f"settings cannot be recorded ({reason}); give numbers, texts, lists and tables.") from reason
    for usual, other in (metrics or {}).items():
        if not isinstance(usual, str) or not isinstance(other, str):
            raise ValueError(f"metrics has {usual!r}: {other!r}; give names by name, as in {{'accuracy': 'test_acc'}}.")
    values = {**texts, "seed": seed, "settings": plain, "metrics": dict(metrics) if metrics else None}
    return {key: value for key, value in values.items() if value is not None}


def describe_run(
    before: Mapping[str, Any],
    flat: FlatArrays,
    cohort: RecordedCohort,
    ids: Sequence[int],
    names: Sequence[str] | None,
    *,
    rounds: int,
    keep: Mapping[str, str],
    training: Mapping[str, Any],
) -> dict[str, Any]:
    """Content of run.json.

    Args:
        before: The content so far; empty before the first round.
        flat: Layout of the models.
        cohort: The clients of a round.
        ids, names: Client numbers of a round; names of all clients, where they have names.
        rounds: Number of rounds, recorded or announced.
        keep: Policies "clients" and "globals".
        training: Description of the training, as `describe_training` returns it.
    """
    experiment = before.get("experiment", {"rounds": 1, "clients": {"number": 1, "per_round": 1}})
    recorded = list(dict.fromkeys((*before.get("kept", ()), *cohort.recorded)))
    unequal = sorted({*before.get("unequal", ()), *cohort.kinds})
    unknown = [] if "method" in training else ["method"]
    unknown += [] if "settings" in training else ["local settings"]
    unknown += [word for word in ("partition", "seed") if word not in training]
    unknown += ["dataset and model" if "data" not in training else "model"]
    about = {
        "experiment": {
            "rounds": max(experiment["rounds"], rounds),
            "task": {"dataset": USER_TASK, "model": USER_TASK},
            "clients": {
                "number": max(experiment["clients"]["number"], max(ids, default=0) + 1),
                "per_round": max(experiment["clients"]["per_round"], len(ids)),
                "partition": {"name": "iid"},
            },
            "keep": dict(keep),
        },
        "fingerprint": USER_TASK,
        "classes": [],
        "layout": layout_entries(flat.parameters),
        "buffers": layout_entries(flat.buffers),
        "engine": "recorded",
        "imported": True,
        "unknown": [*unknown, *([] if cohort.weighted else ["aggregation weights"]), *([KEEP] if recorded else [])],
        **({"kept": recorded} if recorded else {}),
        **({"unequal": unequal} if unequal else {}),
        **({"told": dict(training)} if training else {}),
        "versions": {"python": platform.python_version(), "numpy": np.__version__, "machine": platform.machine()},
    }
    return about if names is None else {**about, "names": list(names)}


def layout_entries(entries: Sequence[Entry]) -> list[list[Any]]:
    """Names and shapes of tensors, for JSON."""
    return [[name, list(shape)] for name, shape in entries]
