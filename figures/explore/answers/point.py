"""The exact numbers of one point of a landscape."""

from typing import Any

from drift.runs.run import Run
from figures.explore.ask import Ask
from figures.explore.work.points import Query, numbers, stage_plane

Item = tuple[Query, tuple[float, float]]


def point(
    ask: Ask, run: str, round: int, spot: tuple[float, float], split: str = "test", samples: int | None = None
) -> dict[str, Any]:
    """`figures.explore.work.points.numbers` at a spot, and `weights`: coefficients of the three clients, by id.

    Args:
        run, round: Of the landscape.
        spot: Distances from the mean of its three clients, as on the stage.
        split, samples: As in `landscape`.
    """
    opened = ask.run(run, round)
    item = Query(round, "plane", split, samples), spot
    value: dict[str, Any] = ask.quick(at_spot, opened, item, round, priority=5)
    return value


def at_spot(run: Run, item: Item) -> dict[str, Any]:
    """The numbers; in the process of the jobs."""
    query, spot = item
    plane = stage_plane(run, query.round)
    row = plane.row(spot)
    weights = dict(zip(map(str, plane.clients), map(float, row[:3]), strict=True))
    off_line = len(row) > 3 and row[3] != 0  # three models on a line: the plane is through a random direction
    return {**numbers(run, query, row.tolist()), "weights": None if off_line else weights}
