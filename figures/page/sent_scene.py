"""What a page that is sent has of each run: landscapes of some rounds, curves and events."""

from functools import partial
from typing import Any

import xarray as xr

from drift.analyses.landscapes.round_weights import by_size, own_weights
from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.numbers import OF_RECORD
from drift.analyses.rounds.run_state import run_state
from drift.runs.run import Run
from drift.simulation.compare import mean_of_last
from figures.interactive.curves import number
from figures.page.best_weights import best_weights
from figures.page.packed import finite
from figures.page.path_value import path_value
from figures.page.pictures import global_path, or_why
from figures.page.remembered_runs import Failed, Job, Remembered
from figures.page.sampled import Samples, landscape_words
from figures.page.scene import LAST, Detail, curves, events, missing
from figures.page.shown_rounds import shown_rounds
from figures.page.stage_round import stage_round
from figures.page.start import Start
from figures.page.why import lowest_words
from figures.selection.identity import seed_text


def sent(start: Start, failed: Failed) -> Detail:
    """The detail of a page that is sent, with landscapes of some rounds.

    Args:
        start: Which landscapes it has.
        failed: Collects the landscapes that could not be computed.
    """

    def detail(name: str, group: list[Run]) -> dict[str, Any]:
        run, state = group[0], run_state(group[0])
        shown = {index: partial(_landscape, run, index, start) for index in start.rounds(run)}
        title = f"landscape of {run.name}, round"
        lost = state.best if state.name == "diverged" else None
        return {
            "accuracies": [finite(mean_of_last(member, last=LAST)) for member in group],
            **curves(group, _number),
            "events": events(run, run.cached(coherence).coherence, lost),
            "note": missing(run),
            "state": "complete" if lost is None else "diverged",
            "names": [{"name": member.name, "seed": seed_text(member)} for member in group],
            "path": or_why(partial(_path, run, start.how["samples"]), f"path of {run.name}", failed),
            "shown": {index: or_why(compute, f"{title} {index}", failed) for index, compute in shown.items()},
        }

    return detail


def _number(run: Run, name: str) -> xr.DataArray | None:
    return number(run, name) if name in OF_RECORD or name in run.metrics() else None


def _path(run: Run, samples: Samples) -> dict[str, Any]:
    ds = global_path(run, samples)
    return path_value(ds, landscape_words([ds]))


def stage_jobs(run: Run, start: Start) -> list[Job]:
    """The jobs that compute the landscapes of a run on the stage."""
    compute = partial(_landscape, start=start)
    return [Job(f"landscape of round {index}", 1, partial(compute, index=index)) for index in start.rounds(run)]


def _landscape(run: Run, index: int, start: Start) -> dict[str, Any]:
    """The value of `stage_round`, and weights; a run that remembers evaluates its models once."""

    compute = lambda: {**stage_round(run, index, **start.how), "weights": _weights(run, index, start)}  # noqa: E731
    return run.once(f"stage {index}", compute) if isinstance(run, Remembered) else compute()


LIGHT = 1e6
"""Parameters times samples up to which the best weights of every round are sought, not only of the first one shown."""


def _weights(run: Run, index: int, start: Start) -> dict[str, Any]:
    """Weights of the clients of a round by rule.

    Returns:
        own (of the round) and size (by data size), and best: gamma and weights by id; best also has loss, own (the loss
        at the round's own weights) and words. Without best, lacks: why there are none, in one line.
    """
    record, first = run.round(index), start.first(shown_rounds(run))
    ids = sorted(record.ids.tolist())
    listed = lambda item: {"gamma": item.gamma, "weights": dict(zip(map(str, ids), item.shares, strict=True))}  # noqa: E731
    value: dict[str, Any] = {"own": listed(own_weights(record)), "size": listed(by_size(run, record))}
    if index != first and start.work(run) > LIGHT:
        return value | {
            "lacks": f"A file has best weights of a larger model in one round ({first}); fedscape explore has all."
        }
    try:
        lowest = best_weights(run, index, start.how["split"], start.how["samples"])
    except ValueError as reason:  # no finite loss, or none of single samples
        return {**value, "lacks": f"No best weights: {reason}"}
    numbers = {"loss": lowest.loss, "own": finite(lowest.recorded_loss), "words": lowest_words(run, lowest)}
    return {**value, "best": listed(lowest.weights) | numbers}
