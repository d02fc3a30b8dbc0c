"""Topology of the surfaces of a run: minima, passes and smoothness, over rounds and by the number of directions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import xarray as xr

from drift.analyses.evaluate_on import evaluate_on
from drift.analyses.landscapes.planes import round_plane
from drift.analyses.per_round import ABOUT, evenly_spaced, global_model, result, selected_rounds
from drift.runs.registry import analysis
from drift.runs.run import Run
from landscape.geometry.directions import random_directions
from landscape.surfaces.merge_tree import merge_tree
from landscape.surfaces.passes import passes


@analysis("round", "value", cost="evaluations")
def topology_rounds(
    run: Run,
    *,
    rounds: Sequence[int] | None = None,
    points: int = 25,
    margin: float = 0.3,
    strides: Sequence[int] = (1, 2, 4),
    split: str = "test",
) -> xr.Dataset:
    """Minima, lowest passes and smoothness of the planes through three clients, over rounds, at several resolutions.

    Minima that a coarser grid does not have are smaller than its cells, and no basins.

    Source: Edelsbrunner and Harer 2010, section VII.1; Landscaper (Vis4SciML) for SMAD.

    Args:
        run: Run to analyse.
        rounds: Rounds of the planes; by default five with three clients, evenly spaced.
        points: Grid points per axis.
        margin: How far the grid extends beyond the models on each side, as a fraction of the box's width.
        strides: Resolutions: every cell, every second one, and so on.
        split: Samples that the loss is averaged over.

    Returns:
        Dataset over round and value (the stride): minima, their number; second, the persistence of the second most
        persistent one, 0 with one alone; smad and climb (the largest climb over a lowest pass between two of the
        clients) in nats; roughness, the share of the variance that is not quadratic.

    Raises:
        LookupError: If no round kept its clients.
        ValueError: If no round has three clients.
    """
    indices = selected_rounds(run, "clients", rounds, None)
    if rounds is None:  # a round without three is taken where all are, to say which clients it lacks
        suited = [record.index for record in run.without_models(indices) if len(record.ids) >= 3]
        indices = evenly_spaced(suited or indices[-1:], 5)
    options: dict[str, Any] = {"points": points, "margin": margin, "split": split}
    tables = np.full((len(ABOUT["topology"]), len(indices), len(strides)), np.nan)
    for row, index in enumerate(indices):  # each plane states its own progress
        plane = run.cached(round_plane, round=index, **options)
        for column, stride in enumerate(strides):
            tables[:, row, column] = [*_numbers(plane, stride).values(), _climb(plane, stride)]
    variables = {name: (("round", "value"), table) for name, table in zip(ABOUT["topology"], tables, strict=True)}
    coords = {"round": indices, "value": list(strides)}
    about = {**ABOUT["topology"], "value": ("stride of the grid", "1")}
    return result(variables, about, coords, analysis="topology_rounds", source=_SOURCE, split=split, points=points)


_SOURCE = "Edelsbrunner and Harer 2010, section VII.1"


def _numbers(surface: xr.Dataset, stride: int) -> dict[str, float]:
    tree = merge_tree(surface, stride=stride)
    several = tree.sizes["rank"] > 1
    return {
        "minima": tree.sizes["rank"],
        "second": float(tree.persistence[1]) if several else 0.0,
        "smad": float(tree.smad),
        "roughness": float(tree.roughness),
    }


def _climb(plane: xr.Dataset, stride: int) -> float:
    """Largest climb between two of the three models, NaN if two are not connected; 0 on the diagonal."""
    return float(passes(plane.isel(mark=slice(3)), stride=stride).climb.values.max())


@analysis("rank", "seed", cost="evaluations")
def topology_directions(
    run: Run,
    *,
    round: int = -1,
    directions: Sequence[int] = (1, 2, 3),
    points: int = 7,
    radius: float = 1.0,
    draws: int = 3,
    split: str = "test",
) -> xr.Dataset:
    """Minima and smoothness around a global model along one, two, three or four random directions.

    Two directions are often too few: minima and passes of the loss that a plane misses appear along a third. All grids
    have the same spacing, and fewer directions are the first ones of more.

    Source: Landscaper (Vis4SciML); Li et al. 2018, section 4 (filter-normalised directions).

    Args:
        run: Run to analyse.
        round: Round of the global model; negative counts from the last one that kept it.
        directions: Numbers of directions, 1 to 4; the grid has `points` to this power.
        points, radius: Grid points per direction, and the largest coordinate in filter norms.
        draws: Sets of random directions.
        split: Samples that the loss is averaged over.

    Returns:
        Dataset over rank (directions) and seed (of the directions): minima, second, smad and roughness as in
        `topology_rounds`.

    Raises:
        LookupError: If the round kept no global model.
    """
    model = global_model(run, round)
    tables = np.full((4, len(directions), draws), np.nan)
    cells = [(index, seed) for index in range(len(directions)) for seed in range(draws)]
    for row, seed in cells:  # of different sizes: each states its own progress
        options: dict[str, Any] = {"count": directions[row], "points": points, "radius": radius, "seed": seed}
        sweep = random_directions(run.task, model.theta, **options)
        surface = evaluate_on(run, sweep, split=split, metrics=("loss",))
        tables[:, row, seed] = list(_numbers(surface, 1).values())
    variables = {name: (("rank", "seed"), table) for name, table in zip(ABOUT["topology"], tables, strict=False)}
    about = {name: ABOUT["topology"][name] for name in variables} | {"rank": ("directions", "1"), "seed": ("draw", "1")}
    coords = {"rank": list(directions), "seed": list(range(draws))}
    attrs = {"round": model.index, "split": split, "points": points, "radius": radius}
    return result(variables, about, coords, analysis="topology_directions", source=_SOURCE, **attrs)
