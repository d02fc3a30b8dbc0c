"""The path of the global model on the plane in which it moves most."""

from typing import Any

from drift.analyses.landscapes.projected_plane import trajectory_plane
from drift.analyses.landscapes.trajectory_points import trajectory_points
from drift.analyses.per_round import evenly_spaced
from drift.runs.run import Run
from figures.explore.ask import Ask
from figures.explore.work import stopping
from figures.explore.work.addresses import share_data
from figures.page.path_value import path_value
from figures.page.sampled import SAMPLES, landscape_words, options

POINTS, NUMBERS, FEWEST = 21, 4_000_000, 20
"""Grid points per axis; parameters of all models in memory, of longer runs evenly spaced rounds are shown, and how many
at least."""

QUICK = 20_000_000
"""Parameters times test samples up to which a model is evaluated in a moment, without a process of its own."""

Item = tuple[list[int], int, int | None]


def path(ask: Ask, run: str, points: int = POINTS, samples: int | None = SAMPLES) -> dict[str, Any]:
    """The path with a map of the loss; before it, as a rough value, the path without a map.

    Returns:
        As `figures.page.path_value.path_value`; losses are on the samples of the map, in the rough value the recorded
        test losses.

    Raises:
        LookupError: If the run kept fewer than two global models.
    """
    opened = ask.run(run)
    rounds = evenly_spaced(opened.kept("globals"), max(FEWEST, NUMBERS // max(opened.layout.size, 1)))
    if len(rounds) < 2:
        models, more = "one" if rounds else "no", "keep.globals=all" if opened.experiment.rounds > 1 else "rounds=2"
        raise LookupError(f"{run} kept {models} global model so far; a path takes two. Train with --set {more}.")
    item, title = (rounds, points, samples), f"path of {run}"
    ask.rough(ask.quick(places, opened, item, rounds[-1], priority=15))
    if opened.without_data:
        raise LookupError(f"{run} was recorded without its data: its path has no map. --task FILE.py:FUNCTION adds it.")
    if _is_small(opened):
        return dict(ask.quick(mapped, opened, item, rounds[-1], title=title, priority=25))
    return dict(ask.long(mapped, opened, item, title=title))


def _is_small(run: Run) -> bool:
    """Whether models of a run are evaluated in a moment."""
    samples = run.about.get("samples", {}).get("test", 0)
    return 0 < run.layout.size * samples < QUICK


def places(run: Run, item: Item) -> dict[str, Any]:
    """The path without a map; in the process of the jobs."""
    ds = trajectory_points(stopping.stoppable(run), rounds=item[0])
    return path_value(ds, "The path without a map; losses are the recorded ones of all test samples.")


def mapped(run: Run, item: Item) -> dict[str, Any]:
    """The path with its map; in a process of the jobs."""
    rounds, points, samples = item
    share_data(run)
    watched = run if run.context.progress is not None else stopping.stoppable(run)
    ds = watched.cached(trajectory_plane, rounds=rounds, points=points, **options(run, samples))
    return path_value(ds, landscape_words([ds]))
