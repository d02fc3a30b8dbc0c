"""What is selected on the stage, for code: its address is text after a #, as `figures/page/stage/address.js` has it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from drift.runs.run import Run
from landscape.plugins import unknown

WORDS = {
    "round": r"\d+",
    "look": ".+",
    "view": "map|relief|difference|path|models",
    "metric": r"loss|error|class \d+",
    "axes": "same|own",
    "split": r"test|train|proxy|client \d+",
    "points": "9|15|25|41",
    "samples": "200|1000|5000|all",
    "client": r"\d+",
    "top": ".+",
    "below": ".+",
    "smooth": "1|3|5|9|21",
    "model": ".+",
    "figure": ".+",
    "charts": ".+",
}
"""Fields that are one word or number each, and what they accept (regular expressions)."""

FIELDS = (*WORDS, "runs", "point", "weights", "gamma")


def selection_of(address: str) -> dict[str, Any]:
    """Fields that an address states: whole numbers, texts, names of runs, a point (u, v), weights by client."""
    words = _words(address)
    stated: dict[str, Any] = {name: unquote(text) for name, text in words.items() if name in WORDS}
    stated = {name: int(text) if text.isdecimal() else text for name, text in stated.items()}
    if "runs" in words:
        stated["runs"] = [unquote(text) for text in words["runs"].split(",")]
    if "at" in words:
        stated["point"] = [float(text) for text in unquote(words["at"]).split(",")]
    if "mix" in words:
        _, _, gamma, *pairs = words["mix"].split(",")
        weights = dict(unquote(pair).split(":") for pair in pairs)
        stated["weights"] = {int(client): float(weight) for client, weight in weights.items()}
        stated["gamma"] = float(gamma)
    return {name: stated[name] for name in FIELDS if name in stated}


def address_of(before: str, fields: Mapping[str, Any], runs: Sequence[str]) -> str:
    """An address with some fields changed.

    Args:
        before: The address before.
        fields: Values by name; None takes a field back. Weights are those of the clients of `round` and `look`.
        runs: Names of all runs.

    Raises:
        ValueError: If there is no such field, or it does not accept the value.
    """
    words = _words(before)
    for name, value in fields.items():
        if name not in FIELDS:
            raise ValueError(unknown("field of the selection", name, FIELDS))
        word = {"point": "at", "weights": "mix"}.get(name, name)
        words.pop(word, None)
        if value is None or name in ("weights", "gamma"):
            continue
        several = name in ("runs", "point") and not isinstance(value, str | Run)
        texts = [_text(name, item, runs) for item in (value if several else [value])]
        if name == "point" and len(texts) != 2:
            raise ValueError(f"point is {value!r}; give two numbers: u and v, distances on the plane.")
        words[word] = ",".join(quote(text, safe="") for text in texts)
    if fields.get("weights") is not None:
        words["mix"] = _mix(words, fields["weights"], fields.get("gamma", 1))
    return "#" + "&".join(f"{name}={text}" for name, text in words.items()) if words else ""


def _words(address: str) -> dict[str, str]:
    return dict(pair.split("=", 1) for pair in address.removeprefix("#").split("&") if "=" in pair)


def _text(name: str, value: Any, runs: Sequence[str]) -> str:
    """A value, or one of several, as text.

    Raises:
        ValueError: If the field does not accept it.
    """
    if name == "point":
        return _number(name, value)
    text = str(value.folder.name if isinstance(value, Run) else value)
    if name in ("runs", "look") and text not in runs:
        raise ValueError(unknown("run of this explorer", text, runs))
    if name in WORDS and not re.fullmatch(WORDS[name], text):
        raise ValueError(f"{name} is {value!r}; it takes {WORDS[name]}.")
    return text


def _number(name: str, value: Any) -> str:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not math.isfinite(number):
        raise ValueError(f"{name} is {value!r}; give a finite number.")
    return f"{number:.6g}"


def _mix(words: Mapping[str, str], weights: Any, gamma: Any) -> str:
    """Weights of the clients of a run and round, as an address has them.

    Raises:
        ValueError: If run and round are not known, or a weight is no number.
    """
    if not {"look", "round"} <= words.keys():
        raise ValueError("weights belong to a run and a round; give look= and round= with them.")
    if not isinstance(weights, Mapping) or not weights:
        raise ValueError(f"weights is {weights!r}; give a number by client, such as {{3: 0.4, 9: 0.6}}.")
    pairs = [f"{int(client)}:{_number('weights', weight)}" for client, weight in weights.items()]
    return ",".join([words["look"], words["round"], _number("gamma", gamma), *pairs])
