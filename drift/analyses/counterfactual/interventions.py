"""Short windows of recorded rounds, repeated with one change: gain in loss."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
import xarray as xr

from drift.analyses.cost_estimate import Effort, complete_options, effort
from drift.analyses.counterfactual.changes import UNCHANGED, changes
from drift.analyses.counterfactual.replayed_rounds import (
    Job,
    Models,
    bounded_losses,
    play_again,
    remembers,
    replay_jobs,
    server_before,
)
from drift.analyses.per_round import result
from drift.analyses.rounds.run_state import run_state
from drift.runs.registry import LOSS_UNITS, analysis
from drift.runs.run import Run

__all__ = ["interventions", "interventions_effort", "play_again", "remembers", "require_replayable", "window_length"]

LENGTH, WINDOWS = 5, 3
"""Default numbers of rounds in a window, and of windows."""

DRAWS = 1
"""Placebos per window: the same rounds with nothing changed but the seed of cohorts and batches."""


@analysis("round", "change", "draw", cost="training")
def interventions(
    run: Run,
    *,
    length: int | None = None,
    windows: int = WINDOWS,
    starts: Sequence[int] | None = None,
    without: Sequence[int] = (),
    split: str = "test",
    workers: int = 1,
) -> xr.Dataset:
    """Gain in loss if a few rounds had been trained with one thing changed, for each of the `changes`.

    From the recorded start of a window the same rounds are repeated, unchanged and with each change, with the same
    seed:

        gain = mean over the window's last half of L(end unchanged) - L(end with the change)

    positive where the change helps. A placebo changes only the seed of cohorts and batches; its "gain" is the
    effect of chance alone. Windows do not overlap and are spread evenly from the first round to the last
    one; for a run that broke down, give the `starts` of windows around the break. As windows are short, slow
    gains are underestimated and slower training counts at once: windows are for screening, and
    `drift.analyses.counterfactual.followed_changes` decides whether a change is advised.

    A change that leaves the last window's models as they are, bit for bit, has no effect in this run (an option of
    another variant of the method, say) and is left out. The state of server and clients is as it was, if the record
    allows it (attribute memory: none, restored or anew). Losses are at most ten times that of the constant answer. With
    batch normalisation, statistics are recomputed on training samples for every model.

    Args:
        run: Run to analyse.
        length: Rounds in a window; by default 5, or a third of a run of fewer than 15 rounds.
        windows: Largest number of windows.
        starts: First rounds of the windows, in place of evenly spaced ones; they may overlap.
        without: Clients to be left out, one at a time; NaN in windows in which they do not train.
        split: Samples that the loss is averaged over.
        workers: Number of processes.

    Returns:
        Dataset with loss (round,) in nats of the unchanged rounds, changed_loss and gain (change, round), placebo
        (round, draw), the gain of placebos, first (round,), where round is the last of a window; change is the name,
        text (change,) the change in words.

    Raises:
        LookupError: If no window has a recorded start, or the training is not known (an import).
        ValueError: If length or windows are below 1.
    """
    length = window_length(run) if length is None else length
    spans = _spans(run, length, windows, starts)
    candidates = changes(run, without=without, broken=run_state(run).broken)
    names = [change.name for change in candidates]
    run.task.split(split)  # refused before the trainings
    last = spans[-1]
    jobs = [(UNCHANGED.name, first, length, draw) for first in spans for draw in range(DRAWS + 1)]
    jobs += [(name, last, length, 0) for name in names]
    models: dict[Job, Models] = dict(zip(jobs, replay_jobs(run, jobs, workers), strict=True))
    base = models[UNCHANGED.name, last, length, 0]
    candidates = [
        change
        for change in candidates
        if change.name.startswith("without-") or not _same(base, models[change.name, last, length, 0])
    ] or candidates
    further = [(change.name, first, length, 0) for first in spans[:-1] for change in candidates]
    models |= dict(zip(further, replay_jobs(run, further, workers), strict=True))

    late = [range(first + length // 2, first + length) for _, first, _, _ in models]  # the middle round included
    losses = dict(zip(models, bounded_losses(run, list(models.values()), late, split), strict=True))
    recorded = np.array([losses[UNCHANGED.name, first, length, 0] for first in spans])
    with_change = np.array([[losses[change.name, first, length, 0] for first in spans] for change in candidates])
    with_change = with_change.reshape(len(candidates), len(spans))
    draws = range(1, DRAWS + 1)
    placebos = np.array([[losses[UNCHANGED.name, first, length, draw] for draw in draws] for first in spans])
    for row, change in enumerate(candidates):
        client = change.name.removeprefix("without-")
        for column, first in enumerate(spans):
            window = range(first, first + length)
            if client.isdigit() and not any(int(client) in run.trained(index) for index in window):
                with_change[row, column] = np.nan
    variables = {
        "loss": ("round", recorded, "loss of the unchanged rounds", LOSS_UNITS),
        "changed_loss": (("change", "round"), with_change, "loss with the change", LOSS_UNITS),
        "gain": (("change", "round"), recorded - with_change, "loss gained by the change", LOSS_UNITS),
        "placebo": (("round", "draw"), recorded[:, None] - placebos, "loss gained by another seed alone", LOSS_UNITS),
        "first": ("round", spans, "first round of the window"),
        "text": ("change", np.array([change.text for change in candidates], dtype=str), "the change in words"),
    }
    coords = {
        "change": np.array([change.name for change in candidates], dtype=str),
        "round": [first + length - 1 for first in spans],
        "draw": list(range(1, DRAWS + 1)),
    }
    attrs = {"length": length, "memory": memory(run, spans), "split": split}
    return result(variables, None, coords, analysis="interventions", source="this project", **attrs)


def interventions_effort(run: Run, **options: Any) -> Effort:
    """Largest effort of `interventions` with the same options; a training is as long as those of the record."""
    values = complete_options(interventions, run, options)
    length = window_length(run) if values.length is None else values.length
    windows = len(_spans(run, length, values.windows, values.starts))
    candidates = changes(run, without=values.without, broken=run_state(run).broken)
    clients = run.experiment.clients.number if run.experiment.clients.train_all else run.experiment.clients.per_round
    trainings = windows * length * clients * (DRAWS + 1 + sum(change.cost for change in candidates))
    replays = windows * (len(candidates) + DRAWS + 1)
    return effort(
        run,
        trainings=round(trainings),
        forwards=replays * (length - length // 2) * len(run.task.split(values.split)),
        memory=4 * run.layout.size * length * replays,
        workers=values.workers,
    )


def window_length(run: Run) -> int:
    """Rounds in a window unless stated: 5, or a third of a run of fewer than 15 rounds."""
    return min(LENGTH, max(1, len(run.rounds()) // 3))


def require_replayable(run: Run) -> None:
    """Raise LookupError for a run whose training is not known, as it was imported."""
    if run.about.get("unknown"):
        raise LookupError(f"run {run.name} was imported: its settings are not known, so it cannot be trained again.")


def memory(run: Run, firsts: Sequence[int]) -> str:
    """State of server and clients in replays from these rounds: "none", "restored" as it was, or "anew"."""
    if not remembers(run):
        return "none"
    return "restored" if all(server_before(run, first)[1] for first in firsts) else "anew"


def _same(first: Models, second: Models) -> bool:
    """Whether two replays have the same models, bit for bit."""
    return bool(first) and first.keys() == second.keys() and all(torch.equal(first[i], second[i]) for i in first)


def _spans(run: Run, length: int, windows: int, starts: Sequence[int] | None) -> list[int]:
    """First rounds of the windows, ascending."""
    if length < 1 or windows < 1:
        raise ValueError(f"length is {length} and windows is {windows}; give 1 or more of each.")
    require_replayable(run)
    stored, count = set(run.kept("globals")), len(run.rounds())
    number = min(windows, count // length)
    if starts is None:
        evenly = np.linspace(0, count - length, number).round().astype(int).tolist() if number > 0 else []
        spans = [max((index for index in stored if index <= first), default=-1) for first in evenly]
    else:
        spans = [first if first in stored else -1 for first in list(starts)[:windows]]
    spans = sorted({first for first in spans if first >= 0})
    if not spans:
        raise LookupError(f"run {run.name} kept no global model to start from; train with --set keep.globals=all.")
    return spans
