"""Description of a recorded run: numbers of its clients, and the content of run.json."""

from __future__ import annotations

import json
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from drift.plugins.reserved_names import USER_TASK
from drift.record.flat_arrays import Entry, FlatArrays
from drift.record.recorded_cohort import Clients, RecordedCohort


def number_clients(clients: Clients, names: Sequence[str] | None, *, fresh: bool) -> tuple[list[int], list[str] | None]:
    """Numbers of clients in their order, and all names so far where clients have names.

    New names are numbered in ascending order, so that the order of `clients` does not matter.

    Args:
        clients: Clients by whole number or by name.
        names: Names so far; None in a run whose clients have numbers.
        fresh: Whether no round is recorded yet, so that clients may have numbers or names.

    Raises:
        ValueError: If the clients of the run have numbers, and a client has a name; if two have the same.
    """
    plain = all(isinstance(client, int | np.integer) and 0 <= client < 1 << 31 for client in clients)
    if names is None and plain:
        return [int(client) for client in clients], None
    if names is None and not fresh:
        other = next(client for client in clients if not isinstance(client, int) or not 0 <= client < 1 << 31)
        raise ValueError(f"client {other!r} is no number below 2^31 as those of the rounds before are.")
    every, texts = list(names or ()), [str(client) for client in clients]
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise ValueError(f"two clients have the name {twice!r}, as a text and as a number; give each its own.")
    every += sorted(set(texts) - set(every))
    return [every.index(str(client)) for client in clients], every


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
