"""The models that a plane may go through, by name, grouped for a list."""

from __future__ import annotations

from collections.abc import Sequence

from drift.runs.growing_run import GrowingRun
from drift.runs.run import Run

ROUNDS = 40
"""Global models of other rounds in a list; others are named in the address."""

OTHERS = 12
"""Other runs in a list."""

WRITTEN = {"end": "round's end", "start": "round's start", "aggregate": "cohort's aggregate"}
"""Names of models in words; others are called by their names."""


def model_choices(run: GrowingRun, round: int, others: Sequence[GrowingRun] = ()) -> dict[str, list[str]]:
    """Names of models by group: this round, global models of the run, those of other runs beside it.

    Only models that the runs kept; `others` of another model, or in another folder of runs, are left out. Rounds of the
    others are listed, not read.
    """
    ids = sorted(run.round(round).ids.tolist())
    keep, planned = run.experiment.keep, run.experiment.rounds
    choices = ["start", "end"] if keep.keeps_globals(round, planned) else []
    if keep.keeps_clients(round, planned) and ids:
        choices += ["aggregate", *[f"client {client}" for client in ids]]
    rounds = [index for index in _globals(run, run.rounds()) if index != round]
    groups = {f"round {round}": choices, "global model after": [f"round {index}" for index in _spread(rounds)]}
    parent, layout = run.folder.resolve().parent, run.about.get("layout")
    for other in [other for other in others if other.name != run.name][:OTHERS]:
        if other.folder.resolve().parent != parent or other.about.get("layout") != layout:
            continue
        stored = _globals(other, other.listed_rounds())
        last = [index for index in (round, stored[-1] if stored else -1) if index in stored]
        groups[other.name] = [f"{other.name}: round {index}" for index in dict.fromkeys(last)]
    return {group: names for group, names in groups.items() if names}


def default_corners(groups: dict[str, list[str]], clients: Sequence[int] = ()) -> list[str]:
    """Three models to begin with: the selected clients first, then the others of the cohort, else what there is.

    Raises:
        LookupError: If there are not three.
    """
    names = [name for group in groups.values() for name in group]
    mine = [f"client {client}" for client in clients if f"client {client}" in names]
    cohort = [name for name in names if name.startswith("client ") and name not in mine]
    rest = [name for name in names if not name.startswith("client ") and name != "aggregate"]
    selected = [*mine, *cohort][:3] if len(mine) + len(cohort) >= 3 else [*mine, *cohort, *rest][:3]
    if len(selected) < 3:
        raise LookupError(
            f"a plane goes through three models, and this round kept {', '.join(names) or 'none'}; train with "
            "--set keep.clients=all."
        )
    return selected


def _globals(run: Run, rounds: Sequence[int]) -> list[int]:
    """Those of the rounds whose global model the run kept."""
    return [index for index in rounds if run.experiment.keep.keeps_globals(index, run.experiment.rounds)]


def _spread(rounds: list[int]) -> list[int]:
    """At most ROUNDS of them, evenly spaced, first and last included."""
    if len(rounds) <= ROUNDS:
        return rounds
    return [rounds[round(index * (len(rounds) - 1) / (ROUNDS - 1))] for index in range(ROUNDS)]
