"""A grid evaluated coarse first, then finer, and stored as the result of its analysis."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from typing import Any

import numpy as np
import xarray as xr

from drift.runs.run import Run
from figures.explore.grid_table import GridTable
from figures.explore.jobs import Job, Jobs
from figures.explore.levels import Stage, parts, stages
from figures.explore.places import Geometry, Grid, Values
from figures.explore.points import grid_values
from figures.explore.survey_results import opened, store

CALL_SECONDS = 1.0
"""Seconds that one call of a survey may take; short ones share too little work. Urgent calls do not wait for it."""

SOON = 2.0
"""Seconds for which no picture in bfloat16 is computed besides the first: what is asked for comes soon enough."""

REMEMBERED = 48
"""Finished surveys in memory."""


class Survey:
    """The values of a grid: what is stored is shown at once, else five points per axis, then more, then all.

    Where all of them take long, the first pictures are computed in bfloat16, and what is asked for takes their place.

    Args:
        jobs: Where it is computed.
        run: Run of the grid.
        grid: What is evaluated.
        on_change: Called, in a thread of the jobs, when a finer surface is complete, and at the end.
        on_progress: Called when points are done.
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
        self.error: Exception | None = None
        self.ended = self.stopped = self.preview = False
        self.table: GridTable | None = None
        self._jobs, self._priority = jobs, priority
        self._on_change, self._on_progress = on_change, on_progress
        self._lock = threading.RLock()
        self._cancelled = False
        self._job: Job | None = None
        if (stored_surface := _FINISHED.get(_key(run, grid))) is not None:
            self._end(stored_surface)
            return
        self._job = jobs.quick(
            opened,
            run,
            [grid],
            priority=priority,
            on_result=lambda _, answer: self._opened(answer),
            on_end=self._failed,
        )

    @property
    def done(self) -> int:
        """Points, with marks, that have their value in the precision that is asked for."""
        return 0 if self.table is None else int(self.table.final.sum())

    @property
    def total(self) -> int:
        """Points, with marks, to evaluate."""
        return 0 if self.table is None else int(self.table.inside.sum())

    @property
    def seconds_left(self) -> float | None:
        """Seconds until all points are done; None before that can be known."""
        seconds = self._seconds(self.grid.place.precision)
        return None if seconds is None or self.ended else seconds * (self.total - self.done) / self._jobs.threads

    def cancel(self) -> None:
        """Compute no more; a finished level stays."""
        with self._lock:
            self._cancelled, job = True, self._job
        if job is not None:
            job.cancel()

    def _opened(self, answer: xr.Dataset | Geometry) -> None:
        if isinstance(answer, xr.Dataset):
            self._end(answer)
            return
        self.geometry, self.table = answer, GridTable(answer)
        self._stages = stages(answer.shape, self.grid.place.precision)
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
        pieces = parts(cells, table.rows, self._seconds(stage.precision), CALL_SECONDS, self._jobs.threads)

        def take(place: int, answer: tuple[Values, float, bool]) -> None:
            values, seconds, exact = answer
            with self._lock:
                table.add(pieces[place], values, final=exact or stage.precision == self.grid.place.precision)
                _SECONDS[self._pace(stage.precision)] = seconds
                if exact:
                    _SECONDS[self._pace("exact")] = seconds
            if self._on_progress is not None:
                self._on_progress(self)

        self._submit(stage, [table.rows[piece].tolist() for piece in pieces], take)

    def _submit(self, stage: Stage, pieces: list[Any], take: Callable[[int, tuple[Values, float, bool]], None]) -> None:
        def ended(job: Job) -> None:
            if job.state == "done" and not self._cancelled:
                self._refine()
            else:
                self._failed(job)

        items = [(self.grid, rows, stage.precision) for rows in pieces]
        priority = self._priority + (0 if self.surface is None else 5)
        title = f"{self.grid.kind} of round {self.grid.place.round}"
        with self._lock:
            if not self._cancelled:
                self._job = self._jobs.quick(
                    grid_values, self.run, items, title=title, priority=priority, on_result=take, on_end=ended
                )

    def _reached(self, stage: Stage) -> None:
        """Show the points of a stage."""
        table, place = self.table, self.grid.place
        assert table is not None  # noqa: S101 - for mypy
        self._stages.pop(0)
        self.preview = not bool(table.final[table.with_marks(stage.mask, marks=False) & table.inside].all())
        attrs = {**self.geometry.attrs, "split": place.split, "round": place.round}
        self.surface = table.surface(stage.mask).assign_attrs(attrs)
        if self._stages and not table.final[table.inside].all():
            self._on_change(self)
        self._refine()

    def _missing(self, stage: Stage) -> np.ndarray:
        """Marks and points that a stage lacks; the first of several is shown without marks' values."""
        table = self.table
        assert table is not None  # noqa: S101 - for mypy
        mask = table.with_marks(stage.mask, marks=self.surface is not None or not self._several)
        has = table.final if stage.precision == self.grid.place.precision else table.known
        return np.asarray(mask & table.inside & ~has)

    def _superfluous(self, stage: Stage) -> bool:
        """Whether a stage shows nothing new, or comes too shortly before what is asked for."""
        if self.surface is None:
            return False
        table, shown = self.table, self.surface.loss.size
        if table is None or (stage.mask.sum() <= shown and stage is not self._stages[-1]):
            return True
        seconds = self._seconds(stage.precision)
        quick = seconds is not None and seconds * (self.total - self.done) / self._jobs.threads < SOON
        return stage.precision != self.grid.place.precision and (quick or bool(table.final.any()))

    def _seconds(self, precision: str) -> float | None:
        """Seconds of the processor for a point of such a grid, the last that were measured; None before that."""
        return _SECONDS.get(self._pace(precision))

    def _pace(self, precision: str) -> tuple[Any, ...]:
        place = self.grid.place
        return _identity(self.run), place.split, place.samples, precision

    def _complete(self) -> None:
        if self.surface is None or self.table is None:
            return
        self.preview = False
        self._end(self.surface)
        places, table = self.table.table()
        self._jobs.quick(store, self.run, [(self.grid, places, table)], priority=self._priority + 80)

    def _end(self, surface: xr.Dataset) -> None:
        self.surface, self.ended = surface, True
        _FINISHED[_key(self.run, self.grid)] = surface
        while len(_FINISHED) > REMEMBERED:
            _FINISHED.popitem(last=False)
        self._on_change(self)

    def _failed(self, job: Job) -> None:
        if job.state == "failed" and not self.ended:
            self.error, self.ended = job.error, True
            self._on_change(self)
        elif job.state == "cancelled" and not self._cancelled:  # by the page's list of jobs
            self.stopped = self.ended = True
            self._on_change(self)


def _identity(run: Run) -> tuple[Any, ...]:
    return run.folder.resolve(), str(run.about.get("digest")), id(run.context.user_task), run.context.metrics


def _key(run: Run, grid: Grid) -> tuple[Any, ...]:
    return *_identity(run), grid


_FINISHED: OrderedDict[tuple[Any, ...], xr.Dataset] = OrderedDict()
_SECONDS: dict[tuple[Any, ...], float] = {}
