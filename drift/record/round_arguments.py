"""What a recorder and its rounds are given: refused where it is of another kind, by the name of the argument."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from drift.record.flat_arrays import MODELS, FlatArrays, Vectors, array, is_model

Stated = Mapping[Any, Mapping[str, Any]]
"""What is stated of unequal clients, by client and `KINDS`."""

KINDS = {"steps": "steps", "start_round": "late", "start": "own start", "sent": "sent", "stopped": "stopped"}
KINDS["narrow"] = "partial"
"""What a round may state of a client, and the word for it in the description of the run."""

STATED = "{client: {'start_round': 2, 'start': model, 'steps': 4, 'sent': model, 'stopped': True, 'narrow': True}}, any"

CLIENTS = "{client: (model, number of samples)}"
NUMBERS = "numbers by name, as in {'accuracy': 0.9}, NaN where there is none"
FRACTIONS = ("accuracy", "own_accuracy", "error")
"""Numbers that are fractions of samples, in tables and pictures too."""


def whole_training(name: str, rounds: int | None) -> int | None:
    """A number of rounds of a training, or None, which is not known.

    Raises:
        ValueError: If it is no whole number from 1 on; states its name.
    """
    if rounds is None or (isinstance(rounds, int | np.integer) and not isinstance(rounds, bool) and rounds > 0):
        return None if rounds is None else int(rounds)
    raise ValueError(f"{name} is {rounds!r}; give the number of rounds of the whole training, 1 or more.")


def round_numbers(clients: Any, end: Any, start: Any, metrics: Any) -> dict[str, np.ndarray]:
    """Numbers () of a round by the names of their arrays.

    Raises:
        ValueError: If one is no number or has no name, a client no (model, number of samples), or a global model none.
    """
    for name, model in (("end", end), ("start", end if start is None else start)):
        if not is_model(model):
            raise ValueError(f"{name} is a {type(model).__name__}; give {MODELS}.")
    if not isinstance(clients, Mapping):
        raise ValueError(f"clients is a {type(clients).__name__}; give {CLIENTS}, {{}} where none is recorded.")
    for client, entry in clients.items():
        if not isinstance(entry, tuple | list) or len(entry) != 2:
            raise ValueError(f"clients[{client!r}] is a {type(entry).__name__}; give a pair, as in {CLIENTS}.")
        size = entry[1].item() if np.ndim(entry[1]) == 0 and hasattr(entry[1], "item") else entry[1]
        if not isinstance(size, int | float) or not 0 <= size < 1 << 63 or size != int(size):
            raise ValueError(f"client {client!r} has {size!r} samples; give a whole number from 0 on, as in {CLIENTS}.")

    if metrics is not None and not isinstance(metrics, Mapping):
        raise ValueError(f"metrics is a {type(metrics).__name__}; give {NUMBERS}.")
    numbers = {name: array(value) for name, value in (metrics or {}).items()}
    for name, number in numbers.items():
        if not isinstance(name, str) or not name or number.size != 1 or number.dtype.kind not in "biuf":
            raise ValueError(f"metrics has {name!r}: {number.tolist()!r:.60}; give {NUMBERS}.")
        if name in FRACTIONS and not np.isnan(number.item()) and not 0 <= number.item() <= 1:
            raise ValueError(f"{name} is {number.item():g}; give a fraction between 0 and 1, as 0.853 for 85.3 %.")
    return {f"metric.{name}": np.array(float(number.item())) for name, number in numbers.items()}


def require_unequal(unequal: Any, clients: Mapping[Any, Any], number: int) -> Stated:
    """What is stated of the clients of round `number`, checked but for the models.

    Raises:
        ValueError: If it names an unknown client or field, or a value is of another kind; names the client.
    """
    if not isinstance(unequal, Mapping) or not all(isinstance(about, Mapping) for about in unequal.values()):
        raise ValueError(f"unequal is {unequal!r:.60}; give {STATED}.")
    for client, about in unequal.items():
        if unknown := [name for name in about if name not in KINDS]:
            raise ValueError(f"unequal[{client!r}] has {unknown[0]!r}; give {STATED}.")
        stopped = about.get("stopped", False)
        flags = isinstance(stopped, bool) and isinstance(about.get("narrow", False), bool | Mapping)
        if not flags or (client in clients) == stopped or (stopped and len(about) > 1):
            what = "clients has it" if client in clients else "clients lacks it; only {'stopped': True} says so"
            raise ValueError(f"unequal[{client!r}] is {dict(about)!r:.60}, and {what}; give {STATED}.")
        for name, most in {"steps": np.inf, "start_round": number}.items():
            value = about.get(name, 0)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value <= most:
                raise ValueError(f"{name} of client {client!r} is {value!r}; give a whole number from 0 to {most:g}.")
    return dict(unequal)


def origin_of(
    number: int, start: Vectors, flat: FlatArrays, recorded: Callable[[int], Vectors | None], about: Mapping[str, Any]
) -> tuple[int, Vectors]:
    """The round and the model that a client of round `number` started from: as stated, of an earlier round, or `start`.

    Args:
        number, start: The round, and its start.
        flat: Layout of the models.
        recorded: Start and buffers of an earlier round; None where it has none.
        about: What is stated of the client.

    Raises:
        ValueError: If the round has none and no model is stated, or that is of another layout or not the round's.
    """
    begun = about.get("start_round", number)
    origin = start if begun == number else recorded(begun)
    stated = flat.vectors(about["start"]) if "start" in about else origin
    if stated is None:
        raise ValueError(f"it started from round {begun}, whose start is not recorded; state it: {{'start': model}}.")
    if origin is not None and "start_round" in about and not np.allclose(stated[0], origin[0]):
        raise ValueError(f"start is not the recorded start of round {begun}, its start_round; state one of both.")
    return begun, stated


def number_clients(
    clients: Mapping[Any, Any], names: Sequence[str] | None, *, fresh: bool
) -> tuple[list[int], list[str] | None]:
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
        raise ValueError(f"client {other!r} is not a number below 2^31, as in earlier rounds.")
    every, texts = list(names or ()), [str(client) for client in clients]
    if len(set(texts)) < len(texts):
        twice = next(text for text in texts if texts.count(text) > 1)
        raise ValueError(f"two clients have the name {twice!r}, as a text and as a number; give each its own.")
    every += sorted(set(texts) - set(every))
    return [every.index(str(client)) for client in clients], every
