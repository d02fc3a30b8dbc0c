"""The landscape of a round: a rough one at once, then the one that is asked for."""

import contextlib
from dataclasses import dataclass, replace
from typing import Any

from drift.runs.run import Run
from figures.explore.ask import Ask
from figures.explore.work import stopping
from figures.explore.work.addresses import share_data
from figures.explore.work.open_runs import PROBLEMS
from figures.explore.work.shelf import Shelf
from figures.explore.work.versions import round_version
from figures.explore.work.workspace import Workspace
from figures.page.sampled import ROUGH_POINTS, ROUGH_SAMPLES, SAMPLES
from figures.page.shown_rounds import least_clients, shown_rounds

POINTS = 15
"""Grid points per axis of a landscape."""


@dataclass(frozen=True)
class LandscapeQuery:
    """A landscape, as `stage_round` takes it."""

    index: int
    points: int
    samples: int | None
    split: str
    quantity: str
    rough: bool = False


def landscape(
    ask: Ask,
    run: str,
    round: int,
    points: int = POINTS,
    samples: int | None = SAMPLES,
    split: str = "test",
    quantity: str = "loss",
) -> dict[str, Any]:
    """The value of `stage_round`, after a rough one where it takes longer.

    Raises:
        LookupError: If the run has no landscape of the round.
    """
    opened = ask.run(run, round)
    wanted, title = LandscapeQuery(round, points, samples, split, quantity), f"landscape of {run}, round {round}"
    if points**2 > ROUGH_POINTS and least_clients(opened) > 2:
        with contextlib.suppress(ValueError):  # infinite values are not interpolated; what else is wrong is said below
            ask.rough(ask.quick(of_round, opened, _rough(wanted), round, priority=10))
    value: dict[str, Any] = ask.quick(of_round, opened, wanted, round, title=title, priority=20)
    return value


def begin(workspace: Workspace) -> None:
    """Compute the first picture of the run that a page begins with, and read its data, before a page asks for it."""
    for name in workspace.runs.suggested[:1]:
        with contextlib.suppress(*PROBLEMS):  # the page says what is wrong with it
            run = workspace.runs.run(name)
            if least_clients(run) > 2 and (rounds := shown_rounds(run)):
                wanted = LandscapeQuery(rounds[-1], POINTS, SAMPLES, "test", "loss")
                workspace.jobs.quick(of_round, run, _rough(wanted), priority=10)


def _rough(wanted: LandscapeQuery) -> LandscapeQuery:
    return replace(wanted, samples=min(ROUGH_SAMPLES, wanted.samples or ROUGH_SAMPLES), rough=True)


def of_round(run: Run, wanted: LandscapeQuery) -> dict[str, Any]:
    """The landscape, which is kept in memory too; in the process of the jobs."""
    share_data(run)
    _ = run.task  # made and tried once, not for each landscape

    from figures.page.stage_round import stage_round  # only the process of the jobs needs it

    def make() -> dict[str, Any]:
        how: dict[str, Any] = {"split": wanted.split, "quantity": wanted.quantity, "rough": wanted.rough}
        return stage_round(stopping.stoppable(run), wanted.index, wanted.points, wanted.samples, **how)

    known = round_version(run, wanted.index), run.committed, id(run.context.user_task)
    value: dict[str, Any] = _SHOWN.get((known, wanted), make)
    return value


_SHOWN = Shelf(64)
