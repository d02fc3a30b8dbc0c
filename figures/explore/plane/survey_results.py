"""Results of grids in the run's folder, and their minima: functions that jobs call in their process."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import torch
import xarray as xr

from drift.analyses.landscapes.minima import locate_minimum
from drift.analyses.landscapes.models_plane import models_line, models_plane
from drift.analyses.selected_samples import selected_samples
from drift.runs import cache
from drift.runs.run import Run
from figures.explore.plane.points import empty_table, swept
from figures.explore.plane.queries import Grid
from figures.explore.work.addresses import share_data
from figures.explore.work.versions import replaced
from landscape.surfaces.minimum import Minimum
from landscape.surfaces.point_table import PointTable
from landscape.sweep.worker import Points, Values, Work


@dataclass(frozen=True)
class Analysis:
    """The analysis that computes a grid, and its arguments: what `run.cached` stores the result under."""

    function: Callable[..., xr.Dataset]
    arguments: dict[str, Any]

    @classmethod
    def from_grid(cls, grid: Grid) -> Analysis:
        """The analysis of a plane or line."""
        if grid.kind == "line":
            return cls(models_line, grid.options())
        return cls(models_plane, {"box": None, **grid.options(), "margin": grid.margin})


def opened(run: Run, grid: Grid) -> xr.Dataset | PointTable:
    """The stored surface of a grid, or its points without values where there is none."""
    analysis = Analysis.from_grid(grid)
    stored_surface = cache.stored(run, analysis.function, analysis.arguments)
    return empty_table(run, grid) if stored_surface is None else stored_surface


def store(run: Run, item: tuple[Grid, PointTable, dict[Path, str]]) -> xr.Dataset | None:
    """Store the values of a grid as the result of its analysis, which evaluates a few again for the error of bfloat16.

    Args:
        run: The run; where it or another one is no longer the one that was evaluated, nothing is stored.
        item: The grid, its values, and the heads of the runs that they are of.
    """
    grid, table, heads = item
    if replaced(heads):
        return None
    analysis = Analysis.from_grid(grid)
    share_data(run)
    return run.with_crew(_Known(table)).cached(analysis.function, **analysis.arguments)


def minimum(run: Run, item: tuple[Grid, xr.Dataset]) -> Minimum:
    """The fitted minimum of a plane, its error that of the fit and of the samples."""
    grid, surface = item
    query = grid.query
    share_data(run)
    sweep = swept(run, grid)
    samples = selected_samples(run, query.round, query.split, query.samples)
    located = locate_minimum(run, surface, sweep, split=samples)
    return replace(located, fit=None)


class _Known:
    """A pool (`landscape.sweep.threads.PointPool`) of points that are known already."""

    def __init__(self, table: PointTable) -> None:
        self._indices = {tuple(row): index for index, row in enumerate(table.rows.tolist())}
        self._values = table.values

    def evaluate_points(self, work: Work, points: Points, most: int) -> Iterator[tuple[slice, Values]]:
        """All points at once."""
        rows = [self._indices[tuple(row)] for row in points]
        yield slice(0, len(points)), {name: torch.from_numpy(self._values[name][rows]) for name in work.measures}
