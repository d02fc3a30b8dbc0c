"""What is selected on the stage, for code: its address is text after a #, as `figures/page/stage/address.js` has it."""

import json
import math
import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, unquote

from drift.runs.run import Run
from figures.explore.answers.run_entry import able
from figures.explore.work.open_runs import OpenRuns
from figures.page.front_end import STAGE
from landscape.plugins import unknown

ACCEPTED = json.loads((STAGE / "fields.json").read_text(encoding="utf-8"))
"""What the page accepts: fields of one word or number each, most landscapes, largest weight, least sum of weights."""

FIELDS = (*ACCEPTED["fields"], "runs", "point", "weights", "gamma")


def selection_of(address: str) -> dict[str, Any]:
    """Fields that an address states: whole numbers, texts, names of runs, a point (u, v), weights by client."""
    words = _words(address)
    known = {name: unquote(text) for name, text in words.items() if name in FIELDS}
    stated: dict[str, Any] = {name: int(text) if text.isdecimal() else text for name, text in known.items()}
    if "runs" in words:
        stated["runs"] = [unquote(text) for text in words["runs"].split(",")]
    if "at" in words:
        stated["point"] = [float(text) for text in unquote(words["at"]).split(",")]
    if "mix" in words:
        _, _, gamma, *pairs = words["mix"].split(",")
        weights = (unquote(pair).split(":") for pair in pairs)
        stated["weights"], stated["gamma"] = {int(client): float(weight) for client, weight in weights}, float(gamma)
    return {name: stated[name] for name in FIELDS if name in stated}


def address_of(before: str, fields: Mapping[str, Any], runs: OpenRuns) -> str:
    """An address with some fields changed.

    Args:
        before: The address before.
        fields: Values by name; None takes a field back. Weights are those of the clients of `round` and `look`. A
            negative round counts from the last one of the runs on the stage.
        runs: All runs.

    Raises:
        ValueError: If there is no such field, it does not accept the value, or the runs on the stage have no such
            round or client; the page says the same of its address.
    """
    words = _words(before)
    if isinstance(index := fields.get("round"), int) and index < 0:
        on_stage = {name: fields[name] for name in ("runs", "look") if name in fields}
        shown = selection_of(address_of(before, on_stage, runs)).get("runs", runs.names)
        number = max((1 + max(runs.recorded(name).rounds(), default=-1) for name in shown), default=0)
        fields = {**fields, "round": number + index if number + index >= 0 else index}
    for name, value in fields.items():
        if name not in FIELDS:
            raise ValueError(unknown("field of the selection", name, FIELDS))
        word = {"point": "at", "weights": "mix"}.get(name, name)
        words.pop(word, None)
        if value is None or name in ("weights", "gamma"):
            continue
        several = name in ("runs", "point") and not isinstance(value, str | Run)
        texts = [_text(name, item, runs.names) for item in (value if several else [value])]
        if name == "point" and len(texts) != 2:
            raise ValueError(f"point is {value!r}; give two numbers: u and v, distances on the plane.")
        if name == "runs" and not 0 < len(texts) <= ACCEPTED["most"]:
            raise ValueError(f"runs are {', '.join(texts) or 'none'}; give 1 to {ACCEPTED['most']}.")
        words[word] = ",".join(quote(text, safe="") for text in texts)
    shown = words.get("runs", "").split(",")
    if fields.get("look") is not None and "runs" not in fields and shown != [""] and words["look"] not in shown:
        words["runs"] = ",".join([*shown[-ACCEPTED["most"] + 1 :], words["look"]])
    _require_there(words, fields, runs)
    if fields.get("weights") is not None:
        words["mix"] = _mix(words, fields["weights"], fields.get("gamma", 1), runs)
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
    if about := ACCEPTED["fields"].get(name):
        choices = about.get("one", [])
        if text not in choices and not re.fullmatch(about.get("pattern", "(?!)"), text):
            raise ValueError(f"{name} is {value!r}; give {about.get('words') or ', '.join(choices)}.")
    return text


def _require_there(words: Mapping[str, str], fields: Mapping[str, Any], runs: OpenRuns) -> None:
    """See that the runs on the stage, all where none are stated, have what is given.

    Raises:
        ValueError: If they have no such round or client, or the run that is looked at is not among them.
    """
    stated = [unquote(text) for text in words.get("runs", "").split(",") if text]
    if stated and "look" in words and (look := unquote(words["look"])) not in stated:
        raise ValueError(f"look is {look!r}; give a run on the stage: {', '.join(stated)}.")
    records = {name: runs.recorded(name) for name in stated or runs.names if {"round", "client"} & fields.keys()}
    shown = [run for name, run in records.items() if not runs.problem(name)]
    rounds = sorted({index for run in shown if fields.get("round") is not None for index in able(run)})
    if fields.get("round") is not None and int(words["round"]) not in rounds:
        there = f"give one that has a landscape: {rounds[0]} to {rounds[-1]}" if rounds else "none has a landscape"
        raise ValueError(f"round is {fields['round']!r}; {there}.")
    number = max((run.experiment.clients.number for run in shown), default=0)
    if fields.get("client") is not None and int(words["client"]) >= number > 0:
        raise ValueError(f"client is {fields['client']!r}; give 0 to {number - 1}.")


def _number(name: str, value: Any, most: float = 1e30) -> str:
    try:
        number = float(value)
    except (TypeError, ValueError):
        number = math.nan
    if not abs(number) <= most:
        raise ValueError(f"{name} is {value!r}; give a number of at most {most:g}.")
    return f"{number:.6g}"


def _mix(words: Mapping[str, str], weights: Any, gamma: Any, runs: OpenRuns) -> str:
    """Weights of the clients of a run and round, as an address has them.

    Raises:
        ValueError: If run and round are not known, a weight is not a number, or they are those of other clients.
    """
    if not {"look", "round"} <= words.keys():
        raise ValueError("weights belong to a run and a round; give look= and round= with them.")
    if not isinstance(weights, Mapping) or not weights:
        raise ValueError(f"weights is {weights!r}; give a number by client, such as {{3: 0.4, 9: 0.6}}.")
    ids = list(map(str, sorted(runs.recorded(unquote(words["look"])).round(int(words["round"])).ids.tolist())))
    if sorted(map(str, weights)) != sorted(ids):
        raise ValueError(f"weights are of clients {', '.join(map(str, weights))}; give those of {', '.join(ids)}.")
    factor = _number("gamma", gamma, ACCEPTED["largest"])
    texts = {client: _number("weights", weight, ACCEPTED["largest"]) for client, weight in weights.items()}
    if not min(abs(float(factor)), abs(math.fsum(map(float, texts.values())))) > ACCEPTED["least"]:
        raise ValueError("neither gamma nor the sum of the weights may be 0; give another number.")
    return ",".join([words["look"], words["round"], factor, *(f"{client}:{text}" for client, text in texts.items())])
