"""Which numbers over rounds a run has."""

from dataclasses import asdict
from typing import Any

from drift.analyses.rounds.numbers import OF_RECORD, quantity
from figures.explore.ask import Ask

FIRST = ("accuracy", "loss", "error", "local_loss")
"""Recorded numbers that are offered first."""


def numbers(ask: Ask, run: str) -> list[dict[str, Any]]:
    """Of each, recorded ones first: name, words, unit, log and zero (its axis is logarithmic, or marks zero)."""
    record = ask.runs.recorded(run)
    recorded = set(record.number_names()) - OF_RECORD.keys()
    ordered = [*(name for name in FIRST if name in recorded), *sorted(recorded - set(FIRST)), *OF_RECORD]
    units = {str(name): str(values.attrs.get("units", "1")) for name, values in record.numbers().items()}
    stated = {name: {"name": name, "unit": unit} for name, unit in units.items() if unit != "1"}
    return [{**asdict(quantity(name)), **stated.get(name, {"name": name, "unit": ""})} for name in ordered]
