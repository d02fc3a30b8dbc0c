"""Numeric settings of a run, with a smaller and a larger value to try for each."""

from collections.abc import Iterator
from operator import attrgetter
from typing import Any

from drift.config.experiment import Experiment
from drift.config.load import validated
from drift.config.method import Method

FACTOR = 4
"""Factor of a larger or smaller rate, number of epochs or field of the method."""

Values = dict[str, float]
"""Values to try, by "smaller" and "larger"; "smallest" is for runs that broke down."""


def numeric_fields(method: Method, prefix: str = "method") -> Iterator[tuple[str, Method, str]]:
    """Settings of a method that are one number: (key, method with this field, field).

    An inner method, such as the one that IMA averages, is included. Absent numbers (None), numbers that
    belong to a tuple, switches and names are left out.
    """
    for name in type(method).model_fields:
        value = getattr(method, name)
        if isinstance(value, Method):
            yield from numeric_fields(value, f"{prefix}.{name}")
        elif isinstance(value, int | float) and not isinstance(value, bool):
            yield f"{prefix}.{name}", method, name


def values_around(method: Method, name: str) -> Values:
    """A smaller and a larger value of a numeric field:

        whole numbers   half and twice; 1 in place of 0
        fractions       1 - 4 (1 - x), or x / 4 where that is not above 0, and 1 - (1 - x) / 4
        other numbers   x / 4 and 4 x; nothing for 0, which has no scale, unless the field's default gives one

    A fraction is a field with 1 as its upper bound, or one below 1 that the method marks as such.
    """
    value = getattr(method, name)
    if isinstance(value, int):
        return {"smaller": value // 2, "larger": 2 * value or 1}
    if _fraction(method, name, value):
        low = 1 - FACTOR * (1 - value) if value < 1 else 0.9
        return {"smaller": low if low > 0 else value / FACTOR, "larger": 1 - (1 - value) / FACTOR}
    if value == 0:
        default = type(method).model_fields[name].default
        return {"larger": default} if isinstance(default, float) else {}
    return {"smaller": value / FACTOR, "larger": FACTOR * value}


def local_values(spec: Experiment) -> dict[str, Values]:
    """Values to try for the settings of local training, by key.

    Momentum and the decay of the rate are the fraction that stays: the lost fraction is tenfold or a tenth (momentum),
    or fourfold or a quarter (decay; a run without decay gets one to a tenth of the rate over its rounds). A run without
    weight decay gets 0.001; one with it none, or four times as much.
    """
    local = spec.local
    epochs, count = ("local.epochs", local.epochs) if local.steps is None else ("local.steps", local.steps)
    lost, decay = 1 - local.momentum, local.lr_decay
    values: dict[str, Values] = {
        "local.lr": {"smaller": local.lr / FACTOR, "smallest": local.lr / FACTOR**2, "larger": local.lr * FACTOR},
        epochs: {"smaller": max(1, count // FACTOR), "larger": count * FACTOR},
        "local.weight_decay": {"smaller": 0.0, "larger": FACTOR * local.weight_decay or 1e-3},
    }
    if decay < 1:
        values["local.lr_decay"] = {"smaller": max(1 - FACTOR * (1 - decay), decay**FACTOR)}
        values["local.lr_decay"]["larger"] = 1 - (1 - decay) / FACTOR
    else:
        values["local.lr_decay"] = {"smaller": 0.1 ** (1 / spec.rounds)}
    if local.optimizer == "sgd":
        values["local.momentum"] = {"smaller": max(0.0, 1 - 10 * lost), "larger": 1 - lost / 10}
    return values


def knobs(spec: Experiment) -> dict[str, Values]:
    """Values to try for every numeric setting of local training and method, by key.

    Values that equal the present one, or that the experiment does not accept, are left out.
    """
    return {key: accepted for key, values in _tried(spec).items() if (accepted := _accepted(spec, key, values))}


def value_to_try(spec: Experiment, key: str, direction: str) -> float:
    """The value that `knobs` tries for one setting in one direction, accepted or not.

    Raises:
        KeyError: If there is no such setting or direction.
    """
    return _rounded(_tried(spec)[key][direction])


def with_settings(spec: Experiment, settings: dict[str, Any]) -> Experiment:
    """The experiment with settings changed, by key.

    Raises:
        ValueError: If a value is not accepted.
    """
    content = spec.resolved()
    for key, value in settings.items():
        *parents, last = key.split(".")
        table = content
        for parent in parents:
            table = table[parent]
        table[last] = {"name": value} if key == "method" else value
    return validated(content)


def present_value(spec: Experiment, key: str) -> float:
    """The present value of a numeric setting."""
    return float(attrgetter(key)(spec))


def _tried(spec: Experiment) -> dict[str, Values]:
    every = local_values(spec)
    return every | {key: values_around(owner, name) for key, owner, name in numeric_fields(spec.method)}


def _rounded(value: float) -> float:
    """A value as it is written in a command: three digits, or a whole number."""
    return value if isinstance(value, int) else float(f"{value:.3g}")


def _accepted(spec: Experiment, key: str, values: Values) -> Values:
    accepted = {}
    for direction, value in values.items():
        rounded = _rounded(value)
        if rounded == present_value(spec, key):
            continue
        try:
            with_settings(spec, {key: rounded})
        except ValueError:
            continue
        accepted[direction] = rounded
    return accepted


def _fraction(method: Method, name: str, value: float) -> bool:
    """Whether a field's values end at 1, or it is marked by json_schema_extra={"fraction": True} and is below 1."""
    field = type(method).model_fields[name]
    extra = field.json_schema_extra
    marked = isinstance(extra, dict) and bool(extra.get("fraction"))
    ends = any(getattr(limit, "lt", None) == 1 or getattr(limit, "le", None) == 1 for limit in field.metadata)
    return ends or (marked and value < 1)
