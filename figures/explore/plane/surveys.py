"""A grid evaluated coarse first, then finer, and stored as the result of its analysis."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import replace
from typing import Any

import numpy as np
import xarray as xr

from drift.runs.run import Run
from figures.explore.plane.levels import Stage, groups, is_regular, refinement, stage_surface, stages
from figures.explore.plane.points import grid_values
from figures.explore.plane.queries import Grid, GridValues
from figures.explore.plane.survey_results import opened, store
from figures.explore.work.job import LongJob
from figures.explore.work.jobs import Jobs
from figures.explore.work.versions import heads, replaced, version
from landscape.surfaces.point_table import PointTable

CALL_SECONDS = 1.0
"""Seconds that one call of a survey may take; short ones share too little work. Urgent calls do not wait for it."""

SOON = 2.0
"""Seconds for which no picture is shown besides the first: all points come soon enough."""

TOLERANCE = 0.01
"""Error of the interpolated loss, as a share of its range, at which no further lattice is shown before all points."""

REMEMBERED = 48
"""Finished surveys in memory."""


class Survey:
    """The values of a grid: what is stored is shown at once, else five points per axis, then more, then all.

    The first picture is in bfloat16 on few samples (`rough`). Where points take long, a map is interpolated, with its
    error; `lattice` then has the evaluated points that form a grid.

    Args:
        jobs: Where it is computed.
        run: Run of the grid.
        grid: What is evaluated.
        on_change, on_progress: Called, in a thread of the jobs, with a finer surface and at the end; with each point.
        priority: Among quick jobs; finer levels come after it.
    """

    def __init__(
        self,
        jobs: Jobs,
        run: Run,
        grid: Grid,
        *,
        on_change: Callable[[Survey], None],
        on_progress: Callable[[Survey], None] | None = None,
        priority: int = 10,
    ) -> None:
        self.run, self.grid = run, grid
        self.surface: xr.Dataset | None = None
        self.lattice: xr.Dataset | None = None
        self.error: Exception | None = None
        self.ended = self.stopped = self.cancelled = False
        self.rough = self._how = ""
        self.table: PointTable | None = None
        self._final = np.zeros(0, dtype=bool)
        self._jobs, self._priority = jobs, priority
        self._on_change, self._on_progress = on_change, on_progress
        self._lock = threading.RLock()
        self._shown, self._regular = 0, np.zeros(0, dtype=bool)
        self._job: LongJob | None = None
        self._heads, self._key = heads(run, grid.query.models), (version(run, grid.query.models), grid)
        if (stored_surface := _FINISHED.get(self._key)) is not None:
            self._end(stored_surface)
            return
        take = lambda _, answer: self._opened(answer)  # noqa: E731
        self._job = jobs.quick(opened, run, [grid], priority=priority, on_result=take, on_end=self._failed)

    @property
    def done(self) -> int:
        """Points, with marks, that have their value in the precision that is asked for."""
        return int(self._final.sum())

    @property
    def total(self) -> int:
        """Points, with marks, to evaluate."""
        return 0 if self.table is None else int(self.table.inside.sum())

    @property
    def seconds_left(self) -> float | None:
        """Seconds until all points are done; None before that can be known."""
        seconds = self._seconds(self.grid.query.precision)
        return None if seconds is None or self.ended else seconds * (self.total - self.done) / self._jobs.threads

    def cancel(self) -> None:
        """Compute no more; a finished level stays."""
        with self._lock:
            self.cancelled, job = True, self._job
        if job is not None:
            job.cancel()

    def _opened(self, answer: xr.Dataset | PointTable) -> None:
        if isinstance(answer, xr.Dataset):
            self._end(answer)
            return
        self.table, self._final = answer, np.zeros(len(answer.rows), dtype=bool)
        self._stages = stages(answer.shape, self.grid.query.precision)
        self._refinement = refinement(answer.shape, TOLERANCE)
        self._several = len(self._stages) > 1
        self._refine()

    def _refine(self) -> None:
        """Evaluate what the next stage lacks."""
        table = self.table
        assert table is not None  # noqa: S101 - for mypy: it was opened
        while self._stages and self._superfluous(self._stages[0]):
            self._stages.pop(0)
        if not self._stages:
            self._complete()
            return
        stage = self._stages[0]
        cells = np.flatnonzero(self._missing(stage))
        if not len(cells):
            self._reached(stage)
            return
        seconds = self._seconds(stage.precision) if self.surface is not None or not self._several else 0.0
        pieces = groups(cells, table.rows, seconds, CALL_SECONDS, self._jobs.threads)

        def take(index: int, answer: GridValues) -> None:
            with self._lock:
                final = answer.complete and (answer.exact or stage.precision == self.grid.query.precision)
                for name, column in answer.values.items():
                    table.values[name][pieces[index]] = column
                self._final[pieces[index]] |= final
                self._how = answer.how
                _SECONDS[self._pace(stage.precision)] = answer.seconds
                if answer.exact:
                    _SECONDS[self._pace("exact")] = answer.seconds
            if self._on_progress is not None:
                self._on_progress(self)

        self._submit(stage, [table.rows[piece].tolist() for piece in pieces], take)

    def _submit(self, stage: Stage, pieces: list[Any], take: Callable[[int, GridValues], None]) -> None:
        def ended(job: LongJob) -> None:
            if job.state == "done" and not self.cancelled:
                self._refine()
            else:
                self._failed(job)

        items = [(self.grid, rows, stage.precision, stage.samples) for rows in pieces]
        priority = self._priority + (0 if self.surface is None else 5)
        title = f"{self.grid.kind} of round {self.grid.query.round}"
        with self._lock:
            if not self.cancelled:
                self._job = self._jobs.quick(
                    grid_values, self.run, items, title=title, priority=priority, on_result=take, on_end=ended
                )

    def _reached(self, stage: Stage) -> None:
        """Show the points of a stage, or the whole map that they give."""
        table = self.table
        assert table is not None  # noqa: S101 - for mypy
        self._stages.pop(0)
        last = not self._stages
        try:
            surface = stage_surface(table, stage)
        except ValueError:  # an infinite loss: the points alone are shown once all are there
            self._refine()
            return
        wanted = table.on_grid(stage.mask, marks=False) & table.inside
        self.rough = "" if last or self._final[wanted].all() else self._how
        self.surface, self._shown = surface, int(stage.mask.sum())
        if is_regular(stage.mask):
            self._regular = stage.mask
        if stage.trials is not None:
            self.lattice = stage_surface(table, replace(stage, mask=self._regular, trials=None))
        share, finer = float(surface.get("loss_interpolation_share", np.nan)), self._refinement
        if not last and finer is not None and finer.advance(share) and not finer.requested.all():
            asked = self.grid.query.precision
            self._stages.insert(0, Stage(finer.requested, asked, trials=tuple(finer.trials)))
        if not last and not self._final[table.inside].all():
            self._on_change(self)
        self._refine()

    def _missing(self, stage: Stage) -> np.ndarray:
        """Marks and points that a stage lacks; the first of several is shown without marks' values."""
        table = self.table
        assert table is not None  # noqa: S101 - for mypy
        mask = table.on_grid(stage.mask, marks=self.surface is not None or not self._several)
        as_asked = stage.samples is None and stage.precision == self.grid.query.precision
        has = self._final if as_asked else ~table.missing
        return np.asarray(mask & table.inside & ~has)

    def _superfluous(self, stage: Stage) -> bool:
        """Whether a stage shows nothing new, or comes too shortly before all points."""
        table = self.table
        if self.surface is None or table is None or stage is self._stages[-1]:
            return False
        seconds = self._seconds(stage.precision)
        quick = seconds is not None and seconds * (self.total - self.done) / self._jobs.threads < SOON
        return (stage.trials is not None and quick) or int(stage.mask.sum()) <= self._shown

    def _seconds(self, precision: str) -> float | None:
        """Seconds of the processor for a point of such a grid, the last that were measured; None before that."""
        return _SECONDS.get(self._pace(precision))

    def _pace(self, precision: str) -> tuple[Any, ...]:
        query = self.grid.query
        return self.run.folder, query.split, query.samples, precision

    def _complete(self) -> None:
        self.rough = ""
        if self.surface is None or self.table is None:
            return
        if not (others := replaced(self._heads)):
            self._end(self.surface)
            item, late = (self.grid, self.table, self._heads), self._priority + 80
            self._jobs.quick(store, self.run, [item], priority=late, on_result=self._stored)
        else:
            self.surface, self.lattice, self.ended = None, None, True
            self.error = LookupError(f"run {', '.join(others)} was replaced meanwhile; select the models again.")
            self._on_change(self)

    def _stored(self, _: int, ds: xr.Dataset | None) -> None:
        if ds is not None and "precision_error" in ds.attrs and not self.cancelled:
            self._end(ds)

    def _end(self, surface: xr.Dataset) -> None:
        self.surface, self.ended = surface, True
        _FINISHED[self._key] = surface
        while len(_FINISHED) > REMEMBERED:
            _FINISHED.popitem(last=False)
        self._on_change(self)

    def _failed(self, job: LongJob) -> None:
        by_list = job.state == "cancelled" and not self.cancelled  # the page's list of jobs
        if by_list or (job.state == "failed" and not self.ended):
            self.error, self.ended, self.stopped = job.error, True, by_list
            self._on_change(self)


_FINISHED = OrderedDict[Hashable, xr.Dataset]()
_SECONDS: dict[tuple[Any, ...], float] = {}
