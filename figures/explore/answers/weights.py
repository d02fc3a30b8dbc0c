"""The aggregate of a round at any weights of its clients."""

from dataclasses import dataclass
from typing import Any

import numpy as np

from drift.analyses.landscapes.round_weights import Weights
from drift.runs.run import Run
from figures.explore.ask import Ask
from figures.explore.work.points import Query, cohort, numbers, stage_plane
from figures.page.packed import finite
from landscape.geometry.planes import combine64, project

LEAST = 1e-12
"""Absolute sum of weights below which they count as 0: their direction would be rounding."""


@dataclass(frozen=True)
class Mixture:
    """An aggregate gamma sum_k lambda_k w_k, and the samples that it is evaluated on.

    Args:
        query: The cohort.
        row: Coefficients of the clients, ids ascending.
        proxy: Whether the run has a proxy set.
    """

    query: Query
    row: tuple[float, ...]
    proxy: bool


def weights(
    ask: Ask,
    run: str,
    round: int,
    weights: dict[int, float],
    gamma: float = 1.0,
    split: str = "test",
    samples: int | None = None,
) -> dict[str, Any]:
    """Numbers of the aggregate at weights that are scaled to sum 1, times gamma.

    Args:
        run, round: A round that kept its clients.
        weights: By client; those left out have weight 0.
        gamma: Factor of the aggregate.
        split, samples: As in `landscape`.

    Returns:
        `figures.explore.work.points.numbers`; also proxy_loss (None without a proxy set), mark (u, v and away, its
        distance from the plane on the stage; None where there is none), weights (scaled to sum 1, by id) and gamma.

    Raises:
        ValueError: If a client is not in the cohort, or the weights sum to 0.
    """
    opened = ask.run(run, round)
    ids = sorted(opened.round(round).ids.tolist())
    return evaluated(ask, opened, round, from_values(round, ids, weights, gamma), split, samples)


def evaluated(
    ask: Ask, run: Run, index: int, mixture: Weights, split: str = "test", samples: int | None = None
) -> dict[str, Any]:
    """What `weights` returns, of weights of the cohort, ids ascending."""
    ids = sorted(run.round(index).ids.tolist())
    item = Mixture(Query(index, "cohort", split, samples), tuple(mixture.row), run.experiment.proxy is not None)
    value: dict[str, Any] = ask.quick(of_mixture, run, item, index, priority=5)
    return {**value, "weights": dict(zip(map(str, ids), mixture.shares, strict=True)), "gamma": mixture.gamma}


def from_values(index: int, ids: list[int], values: dict[int, float], gamma: float) -> Weights:
    """Weights of a cohort, ids ascending.

    Raises:
        ValueError: As `weights`.
    """
    if foreign := [client for client in values if client not in ids]:
        raise ValueError(f"round {index} has clients {ids}, weights are given for {foreign[0]}; leave it out.")
    listed = [values.get(client, 0.0) for client in ids]
    if not abs(sum(listed)) > LEAST:
        raise ValueError("the weights sum to 0, so that they cannot be scaled to sum 1; raise one of them.")
    return Weights(gamma, Weights.from_values(listed).shares)


def of_mixture(run: Run, item: Mixture) -> dict[str, Any]:
    """The numbers; in the process of the jobs."""
    on_proxy = Query(item.query.round, "cohort", "proxy")
    proxy_loss = numbers(run, on_proxy, item.row)["loss"] if item.proxy else None
    return {**numbers(run, item.query, item.row), "proxy_loss": proxy_loss, "mark": _mark(run, item)}


def _mark(run: Run, item: Mixture) -> dict[str, float | None] | None:
    """Where the aggregate is on the plane of the stage."""
    try:
        plane = stage_plane(run, item.query.round)
    except ValueError:  # fewer than three clients, or two equal ones
        return None
    model = combine64(cohort(run, item.query.round), np.array(item.row))
    foot = project([model], plane.sweep)
    u, v = (float(foot[f"mark_{name}"][0]) for name in ("alpha", "beta"))
    away = float(foot.distance[0])
    return {"u": finite(u - plane.centre[0]), "v": finite(v - plane.centre[1]), "away": finite(away)}
