"""Any number over rounds of some runs."""

from typing import Any

from figures.explore.ask import Ask
from figures.explore.work.record_numbers import number
from figures.page.scene import packed_series


def series(ask: Ask, runs: list[str], name: str) -> dict[str, Any]:
    """Values of a number, by name of the run: rounds and values (base64 float32, NaN where a round has none).

    A run that has no such number has error, a line, in their place.

    Args:
        runs: Names of runs.
        name: As `numbers` has it.
    """
    return {run: _of_run(ask, run, name) for run in runs}


def _of_run(ask: Ask, name: str, quantity: str) -> dict[str, Any]:
    ask.require_wanted()
    run = ask.runs.recorded(name)
    rounds = run.rounds()
    if not rounds:
        return {"error": ask.runs.problem(name) or f"{name} has no complete round."}
    try:
        return {"rounds": rounds, "values": packed_series(number(run, quantity), rounds)}
    except LookupError as missing:
        return {"error": str(missing)}
