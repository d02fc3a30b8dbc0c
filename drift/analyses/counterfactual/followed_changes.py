"""Advice followed for the whole of a run, or its first and last rounds, by several seeds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from drift.analyses.cost_estimate import Effort, effort
from drift.analyses.counterfactual.changes import UNCHANGED, Change, changes
from drift.analyses.counterfactual.interventions import LENGTH, memory, require_replayable
from drift.analyses.counterfactual.replayed_rounds import bounded_losses, played
from drift.analyses.per_round import parameters
from drift.analyses.rounds.run_state import run_state
from drift.runs.run import Run

ROUNDS = 30
"""Rounds for which a change is followed from one start; six windows."""

DRAWS = 3
"""Seeds of cohorts and batches; the first is the run's own."""

LAST = 3
"""Last models of a replay whose mean loss is what it comes to."""

LONGER = "longer"
"""The change that goes on training where the run ended."""


def followed(
    run: Run,
    *,
    names: Sequence[str],
    rounds: int = ROUNDS,
    draws: int = DRAWS,
    split: str = "test",
    workers: int = 1,
) -> xr.Dataset:
    """Gain in the last loss if a change had been followed for long, for the changes of these names.

    A run of at most `rounds` rounds is played again as a whole, from its initial model. A longer one is played from
    two starts: its first rounds, and its last ones (those after its best round, if it broke down). Unchanged and
    changed rounds are paired by the seed of cohorts and batches:

        gain_s = L(end unchanged, seed s) - L(end with the change, seed s)

    with L the mean over the last three models. The placebo of a start is the largest difference between two seeds of
    the unchanged rounds: what is gained by chance alone. The change "longer" goes on unchanged where the run ended,
    for half as many rounds again (at least three windows, at most `rounds`), by the schedule as it stands; its gain
    is over the unchanged rounds of the last start.

    Args:
        names: Of `drift.analyses.counterfactual.changes`, or "longer".
        rounds: Rounds for which a change is followed from one start, at least three windows.
        draws: Seeds, at least 2; the first is the run's own.
        split: Samples that the loss is averaged over.
        workers: Processes that share the work.

    Returns:
        Dataset with loss (round, draw) of the unchanged rounds, gain (change, round, draw), placebo (round,), nats,
        first (round,), where round is the last that is played; text (change,).

    Raises:
        LookupError: If training is not known (an import), or the run has no complete round.
        ValueError: If draws is below 2 or rounds below 15.
    """
    if draws < 2 or rounds < 3 * LENGTH:
        raise ValueError(f"draws is {draws} and rounds is {rounds}; give 2 seeds and {3 * LENGTH} rounds or more.")
    require_replayable(run)
    spans = spans_of(run, rounds)
    tried = [name for name in names if name != LONGER]
    jobs = [(name, *span, draw) for name in (UNCHANGED.name, *tried) for span in spans for draw in range(draws)]
    more = (run.committed, longer_by(run, rounds))
    if LONGER in names:
        jobs += [(UNCHANGED.name, *more, draw) for draw in range(draws)]
    losses = bounded_losses(run, played(run, jobs, workers), [_last(job[1], job[2]) for job in jobs], split)
    values = dict(zip(jobs, losses, strict=True))
    loss = np.array([[values[UNCHANGED.name, *span, draw] for draw in range(draws)] for span in spans])
    gain = np.full((len(names), len(spans), draws), np.nan)
    for row, name in enumerate(names):
        for column, span in enumerate(spans):
            if name != LONGER:
                gain[row, column] = loss[column] - [values[name, *span, draw] for draw in range(draws)]
            elif column == len(spans) - 1:
                gain[row, column] = loss[column] - [values[UNCHANGED.name, *more, draw] for draw in range(draws)]
    texts = {change.name: change.text for change in _known(run)}
    texts[LONGER] = f"{run.committed + more[1]} rounds instead of {run.committed}"
    variables = {
        "loss": (("round", "draw"), loss, {"long_name": "loss of the unchanged rounds", "units": "nats"}),
        "gain": (("change", "round", "draw"), gain, {"long_name": "loss gained by the change", "units": "nats"}),
        "placebo": ("round", np.ptp(loss, axis=1), {"long_name": "largest difference of seeds", "units": "nats"}),
        "first": ("round", [first for first, _ in spans], {"long_name": "first round", "units": "1"}),
        "text": ("change", np.array([texts[name] for name in names], dtype=str), {"long_name": "change in words"}),
    }
    coords = {
        "change": np.array(list(names), dtype=str),
        "round": [first + length - 1 for first, length in spans],
        "draw": list(range(draws)),
    }
    attrs = {"analysis": "followed", "source": "this project", "split": split}
    return xr.Dataset(variables, coords, {**attrs, "memory": memory(run, [first for first, _ in spans])})


def followed_effort(
    run: Run,
    *,
    names: Sequence[str],
    rounds: int = ROUNDS,
    draws: int = DRAWS,
    split: str = "test",
    workers: int = 1,
) -> Effort:
    """What `followed` with the same options costs; a training is one as long as those of the record."""
    lengths = sum(length for _, length in spans_of(run, rounds))
    costs = {change.name: change.cost for change in _known(run)}
    clients = run.experiment.clients.number if run.experiment.clients.train_all else run.experiment.clients.per_round
    whole = lengths * (1 + sum(costs[name] for name in names if name != LONGER))
    whole += longer_by(run, rounds) if LONGER in names else 0
    forwards = LAST * draws * (1 + len(names)) * len(run.task.split(split))
    memory_used = 4 * parameters(run) * lengths * draws * (1 + len(names))
    return effort(run, trainings=round(whole * clients * draws), forwards=forwards, memory=memory_used, workers=workers)


def spans_of(run: Run, rounds: int = ROUNDS) -> list[tuple[int, int]]:
    """First round and number of rounds of the replays: the whole run, or its first and its last rounds.

    A run that stopped because nothing finite was left is played for as many rounds as it was to have.
    """
    state = run_state(run)
    whole = run.experiment.rounds if state.name == "diverged" else len(run.rounds())
    if whole <= rounds:
        return [(0, whole)]
    stored = run.kept("globals")
    late = [index for index in stored if index <= (state.best + 1 if state.broken else whole - rounds)]
    return [(0, rounds), *([(late[-1], min(rounds, whole - late[-1]))] if late and late[-1] > 0 else [])]


def longer_by(run: Run, rounds: int = ROUNDS) -> int:
    """Rounds that "longer" adds: half of the run's, at least three windows and at most `rounds`."""
    return min(rounds, max(3 * LENGTH, run.committed // 2))


def longest(run: Run, rounds: int = ROUNDS) -> int:
    """Rounds of a run that is trained longer."""
    return run.committed + longer_by(run, rounds)


def _known(run: Run) -> list[Change]:
    """Every change there is."""
    return changes(run, without=range(run.experiment.clients.number)) + changes(run, broken=True)


def _last(first: int, length: int) -> range:
    return range(first + max(0, length - LAST), first + length)
