"""Short windows of recorded rounds played again with one thing changed: what the loss would have been."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import xarray as xr

from drift.analyses.cost_estimate import Effort, effort
from drift.analyses.counterfactual.changes import UNCHANGED, changes
from drift.analyses.counterfactual.replayed_rounds import Job, Models, bounded_losses, play_again, played
from drift.analyses.counterfactual.server_memory import remembers, server_before
from drift.analyses.per_round import parameters
from drift.analyses.rounds.run_state import run_state
from drift.runs.registry import analysis
from drift.runs.run import Run

__all__ = ["interventions", "interventions_effort", "play_again", "remembers", "require_replayable", "window_length"]

LENGTH, WINDOWS = 5, 3
"""Rounds in a window, and windows."""

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

    From the recorded start of a window of rounds the same rounds are played again, unchanged and with each change, by
    the same seed:

        gain = mean over the window's last half of L(end unchanged) - L(end with the change)

    positive where the change helps. A placebo changes nothing but the seed of cohorts and batches; what it "gains" is
    how far chance alone moves a window. Windows do not overlap and are spread evenly from the first round to the last
    one; for a run that broke down, give the `starts` of windows around the break. A window is short: what pays off
    slowly shows less than it is worth, and what slows training down shows its price at once. It screens; whether a
    change is advised is for `drift.analyses.counterfactual.followed_changes` to say.

    A change that leaves the last window's models as they are, bit for bit, has no effect in this run (an option of
    another variant of the method, say) and is left out. What server and clients remember is as it was, where the
    record allows it (attribute memory: none, restored or anew). Losses are cut at ten times that of the constant
    answer. With batch normalisation, statistics are recomputed on training samples for every model.

    Args:
        length: Rounds in a window; by default 5, or a third of a run of fewer than 15 rounds.
        windows: At most so many.
        starts: First rounds of the windows, in place of those; they may overlap.
        without: Clients to be left out, one at a time; NaN in windows that they have no part in.
        split: Samples that the loss is averaged over.
        workers: Processes that share the work.

    Returns:
        Dataset with loss (round,) in nats of the unchanged rounds, changed_loss and gain (change, round), placebo
        (round, draw), the placebos' gain, first (round,), where round is the last of a window; change is the name,
        text (change,) the change in words.

    Raises:
        LookupError: If no window has its first start on record, or training is not known (an import).
        ValueError: If length or windows are below 1.
    """
    length = window_length(run) if length is None else length
    spans = _spans(run, length, windows, starts)
    tried = changes(run, without=without, broken=run_state(run).broken)
    names = [change.name for change in tried]
    late = spans[-1]
    jobs = [(UNCHANGED.name, first, length, draw) for first in spans for draw in range(DRAWS + 1)]
    jobs += [(name, late, length, 0) for name in names]
    models: dict[Job, Models] = dict(zip(jobs, played(run, jobs, workers), strict=True))
    base = models[UNCHANGED.name, late, length, 0]
    tried = [
        change
        for change in tried
        if change.name.startswith("without-") or not _same(base, models[change.name, late, length, 0])
    ] or tried
    more = [(change.name, first, length, 0) for first in spans[:-1] for change in tried]
    models |= dict(zip(more, played(run, more, workers), strict=True))

    values = bounded_losses(run, list(models.values()), [_late(job[1], length) for job in models], split)
    losses = dict(zip(models, values, strict=True))
    recorded = np.array([losses[UNCHANGED.name, first, length, 0] for first in spans])
    other = np.array([[losses[change.name, first, length, 0] for first in spans] for change in tried])
    other = other.reshape(len(tried), len(spans))
    draws = range(1, DRAWS + 1)
    again = np.array([[losses[UNCHANGED.name, first, length, draw] for draw in draws] for first in spans])
    for row, change in enumerate(tried):
        client = change.name.removeprefix("without-")
        for column, first in enumerate(spans):
            window = range(first, first + length)
            if client.isdigit() and not any(int(client) in run.trained(index) for index in window):
                other[row, column] = np.nan
    variables = {
        "loss": ("round", recorded),
        "changed_loss": (("change", "round"), other),
        "gain": (("change", "round"), recorded - other),
        "placebo": (("round", "draw"), recorded[:, None] - again),
        "first": ("round", spans),
        "text": ("change", np.array([change.text for change in tried], dtype=str)),
    }
    coords = {
        "change": np.array([change.name for change in tried], dtype=str),
        "round": [first + length - 1 for first in spans],
        "draw": list(range(1, DRAWS + 1)),
    }
    ds = xr.Dataset(variables, coords, {"analysis": "interventions", "source": "this project", "length": length})
    for name, (text, unit) in _ABOUT.items():
        ds[name].attrs.update(long_name=text, units=unit)
    return ds.assign_attrs(memory=memory(run, spans), split=split)


def interventions_effort(
    run: Run,
    *,
    length: int | None = None,
    windows: int = WINDOWS,
    starts: Sequence[int] | None = None,
    without: Sequence[int] = (),
    split: str = "test",
    workers: int = 1,
) -> Effort:
    """What `interventions` with the same options costs at most; a training is one as long as those of the record."""
    length = window_length(run) if length is None else length
    spans = _spans(run, length, windows, starts)
    tried = changes(run, without=without, broken=run_state(run).broken)
    clients = run.experiment.clients.number if run.experiment.clients.train_all else run.experiment.clients.per_round
    trainings = len(spans) * length * clients * (DRAWS + 1 + sum(change.cost for change in tried))
    forwards = len(spans) * (len(tried) + DRAWS + 1) * (length - length // 2) * len(run.task.split(split))
    memory_used = 4 * parameters(run) * length * len(spans) * (len(tried) + DRAWS + 1)
    return effort(run, trainings=round(trainings), forwards=forwards, memory=memory_used, workers=workers)


def window_length(run: Run) -> int:
    """Rounds in a window unless stated: 5, or a third of a run of fewer than 15 rounds."""
    return min(LENGTH, max(1, len(run.rounds()) // 3))


def require_replayable(run: Run) -> None:
    """Refuse a run whose training is not known.

    Raises:
        LookupError: If it was imported.
    """
    if run.about.get("unknown"):
        raise LookupError(f"run {run.name} was imported: how it was trained is not known, it cannot be replayed.")


def memory(run: Run, firsts: Sequence[int]) -> str:
    """What server and clients remember in replays from these rounds: "none", "restored" as it was, or "anew"."""
    if not remembers(run):
        return "none"
    return "restored" if all(server_before(run, first)[1] for first in firsts) else "anew"


def _same(one: Models, other: Models) -> bool:
    """Whether two replays have the same models, bit for bit."""
    return bool(one) and one.keys() == other.keys() and all(bool((one[index] == other[index]).all()) for index in one)


def _late(first: int, length: int) -> range:
    """The last half of a window, the middle round included."""
    return range(first + length // 2, first + length)


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


_ABOUT = {
    "loss": ("loss of the unchanged rounds", "nats"),
    "changed_loss": ("loss with the change", "nats"),
    "gain": ("loss gained by the change", "nats"),
    "placebo": ("loss gained by another seed alone", "nats"),
    "first": ("first round of the window", "1"),
    "text": ("the change in words", "1"),
}
