"""Clients of a recorded round that are late, stopped, trained other numbers of steps, or sent another model."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from drift.record.flat_arrays import MODELS, FlatArrays, Vectors, is_model

KINDS = {
    "steps": "steps",
    "start_round": "late",
    "start": "late",
    "sent": "sent",
    "stopped": "stopped",
}
"""What a round may state of a client, and the word for it in the description of the run."""

STATED = "{client: {'start_round': 2, 'start': model, 'steps': 40, 'sent': model, 'stopped': True}}, any of them"


def require_unequal(unequal: Any, clients: Mapping[Any, Any], number: int) -> dict[Any, dict[str, Any]]:
    """What is stated of the clients of round `number`, checked.

    Raises:
        ValueError: If it names an unknown client or field, or a value is of another kind; names the client.
    """
    if not isinstance(unequal, Mapping) or not all(isinstance(stated, Mapping) for stated in unequal.values()):
        raise ValueError(f"unequal is {unequal!r:.60}; give {STATED}.")
    for client, stated in unequal.items():
        if unknown := [name for name in stated if name not in KINDS]:
            raise ValueError(f"unequal[{client!r}] has {unknown[0]!r}; give {STATED}.")
        stopped = stated.get("stopped", False)
        if not isinstance(stopped, bool) or (client in clients) == stopped or (stopped and "sent" in stated):
            has = "a model" if client in clients else "no model"
            raise ValueError(
                f"client {client!r} has {has} in clients and stopped is {stopped!r}; one that stopped sends nothing "
                "and is named in unequal alone, all others are in clients."
            )
        if "start" in stated and "start_round" not in stated:
            raise ValueError(f"client {client!r} has a start and no start_round; give the number of its round as well.")
        for name, most in {"steps": np.inf, "start_round": number}.items():
            value = stated.get(name, 0)
            if isinstance(value, bool) or not isinstance(value, int | np.integer) or not 0 <= value <= most:
                most_text = f" to {number}, the number of the round" if name == "start_round" else " or more"
                raise ValueError(f"{name} of client {client!r} is {value!r}; give a whole number, 0{most_text}.")
        for name in ("start", "sent"):
            if name in stated and not is_model(stated[name]):
                raise ValueError(f"{name} of client {client!r} is a {type(stated[name]).__name__}; give {MODELS}.")
    return {client: dict(stated) for client, stated in unequal.items()}


def origins_of(
    unequal: Mapping[Any, Mapping[str, Any]], number: int, flat: FlatArrays, recorded: Callable[[int], Vectors | None]
) -> dict[Any, Vectors]:
    """Models that late clients of round `number` started from: those stated, else the starts of their rounds.

    Args:
        unequal: What is stated, by client.
        number: Number of the round.
        flat: Layout of the models.
        recorded: Start and buffers of an earlier round; None where it has none.

    Raises:
        ValueError: If a round has none and no model is stated, or a model is of another layout; names the client.
    """
    origins = dict[Any, Vectors]()
    for client, stated in unequal.items():
        begun = stated.get("start_round", number)
        try:
            origin = (
                flat.vectors(stated["start"]) if "start" in stated else None if begun == number else recorded(begun)
            )
        except ValueError as reason:
            raise ValueError(f"start of client {client!r}: {reason}") from reason
        if origin is None and begun != number:
            raise ValueError(
                f"client {client!r} started from round {begun}, whose start is not recorded; state the model as well: "
                f"unequal={{{client!r}: {{'start_round': {begun}, 'start': model}}}}."
            )
        if origin is not None:
            origins[client] = origin
    return origins
