"""Changes followed through a whole run, or its first and last rounds, with several seeds."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.cost_estimate import Effort, complete_options, effort
from drift.analyses.counterfactual.changes import UNCHANGED, Change, changes
from drift.analyses.counterfactual.interventions import LENGTH, memory, require_replayable
from drift.analyses.counterfactual.replayed_rounds import bounded_losses, replay_jobs
from drift.analyses.per_round import result
from drift.analyses.rounds.run_state import run_state
from drift.runs.run import Run

ROUNDS = 30
"""Default number of rounds for which a change is followed from one start; six windows."""

DRAWS = 3
"""Default number of seeds of cohorts and batches; the first is the run's own."""

LAST = 3
"""Number of last models of a replay whose losses are averaged."""

LONGER = "longer"
"""Name of the change that goes on training where the run ended."""


def followed(
    run: Run, *, names: Sequence[str], rounds: int = ROUNDS, draws: int = DRAWS, split: str = "test", workers: int = 1
) -> xr.Dataset:
    """Gain in the last loss if a change had been followed for many rounds, for the changes of these names.

    A run of at most `rounds` rounds is repeated as a whole, from its initial model. A longer one is repeated from
    two starts: its first rounds, and its last ones (those after its best round, if it broke down). Unchanged and
    changed rounds are paired by the seed of cohorts and batches:

        gain_s = L(end unchanged, seed s) - L(end with the change, seed s)

    with L the mean over the last three models. The placebo of a start is the largest difference between two seeds of
    the unchanged rounds: the gain by chance alone. The change "longer" goes on unchanged where the run ended,
    for half as many rounds again (at least three windows, at most `rounds`), by the same schedule; its gain
    is over the unchanged rounds of the last start.

    Args:
        names: Of `drift.analyses.counterfactual.changes`, or "longer".
        rounds: Rounds for which a change is followed from one start, at least three windows.
        draws: Seeds, at least 2; the first is the run's own.
        split: Samples that the loss is averaged over.
        workers: Number of processes.

    Returns:
        Dataset with loss (round, draw) of the unchanged rounds, gain (change, round, draw), placebo (round,), nats,
        first (round,), where round is the last of a replay; text (change,).

    Raises:
        LookupError: If the training is not known (an import), or the run has no complete round.
        ValueError: If draws is below 2 or rounds below 15.
    """
    if draws < 2 or rounds < 3 * LENGTH:
        raise ValueError(f"draws is {draws} and rounds is {rounds}; give 2 seeds and {3 * LENGTH} rounds or more.")
    require_replayable(run)
    run.task.split(split)  # refused before the trainings
    spans = spans_of(run, rounds)
    changed = [name for name in names if name != LONGER]
    jobs = [(name, *span, draw) for name in (UNCHANGED.name, *changed) for span in spans for draw in range(draws)]
    longer = (run.committed, longer_by(run, rounds))
    if LONGER in names:
        jobs += [(UNCHANGED.name, *longer, draw) for draw in range(draws)]
    last = [range(first + max(0, length - LAST), first + length) for _, first, length, _ in jobs]
    losses = bounded_losses(run, replay_jobs(run, jobs, workers), last, split)
    values = dict(zip(jobs, losses, strict=True))
    loss = np.array([[values[UNCHANGED.name, *span, draw] for draw in range(draws)] for span in spans])
    gain = np.full((len(names), len(spans), draws), np.nan)
    for row, name in enumerate(names):
        for column, span in enumerate(spans):
            if name != LONGER:
                gain[row, column] = loss[column] - [values[name, *span, draw] for draw in range(draws)]
            elif column == len(spans) - 1:
                gain[row, column] = loss[column] - [values[UNCHANGED.name, *longer, draw] for draw in range(draws)]
    texts = {change.name: change.text for change in _all_changes(run)}
    texts[LONGER] = f"{run.committed + longer[1]} rounds instead of {run.committed}"
    variables = {
        "loss": (("round", "draw"), loss, "loss of the unchanged rounds", "nats"),
        "gain": (("change", "round", "draw"), gain, "loss gained by the change", "nats"),
        "placebo": ("round", np.ptp(loss, axis=1), "largest difference of seeds", "nats"),
        "first": ("round", [first for first, _ in spans], "first round"),
        "text": ("change", np.array([texts[name] for name in names], dtype=str), "change in words"),
    }
    coords: dict[str, Any] = {"round": [first + length - 1 for first, length in spans], "draw": list(range(draws))}
    coords |= {"change": np.array(list(names), dtype=str)}
    attrs = {"split": split, "memory": memory(run, [first for first, _ in spans])}
    return result(variables, None, coords, analysis="followed", source="this project", **attrs)


def followed_effort(run: Run, **options: Any) -> Effort:
    """Effort of `followed` with the same options; a training is as long as those of the record."""
    values = complete_options(followed, run, options)
    names, draws = values.names, values.draws
    lengths = sum(length for _, length in spans_of(run, values.rounds))
    costs = {change.name: change.cost for change in _all_changes(run)}
    clients = run.experiment.clients.number if run.experiment.clients.train_all else run.experiment.clients.per_round
    rounds = lengths * (1 + sum(costs[name] for name in names if name != LONGER))
    rounds += longer_by(run, values.rounds) if LONGER in names else 0
    return effort(
        run,
        trainings=round(rounds * clients * draws),
        forwards=LAST * draws * (1 + len(names)) * len(run.task.split(values.split)),
        memory=4 * run.layout.size * lengths * draws * (1 + len(names)),
        workers=values.workers,
    )


def spans_of(run: Run, rounds: int = ROUNDS) -> list[tuple[int, int]]:
    """First round and number of rounds of the replays: the whole run, or its first and its last rounds.

    A run that stopped because nothing finite was left is repeated for its planned number of rounds.
    """
    state = run_state(run)
    last = run.experiment.rounds if state.name == "diverged" else len(run.rounds())
    if last <= rounds:
        return [(0, last)]
    stored = run.kept("globals")
    late = [index for index in stored if index <= (state.turn + 1 if state.broken else last - rounds)]
    return [(0, rounds), *([(late[-1], min(rounds, last - late[-1]))] if late and late[-1] > 0 else [])]


def longer_by(run: Run, rounds: int = ROUNDS) -> int:
    """Rounds that "longer" adds: half of the run's, at least three windows and at most `rounds`."""
    return min(rounds, max(3 * LENGTH, run.committed // 2))


def longest(run: Run, rounds: int = ROUNDS) -> int:
    """Rounds of a run that is trained longer."""
    return run.committed + longer_by(run, rounds)


def _all_changes(run: Run) -> list[Change]:
    return changes(run, without=range(run.experiment.clients.number)) + changes(run, broken=True)
