"""A grid evaluated coarse first, then finer, and stored as the result of its analysis."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import xarray as xr

from drift.runs.run import Run
from figures.explore.jobs import Job, Jobs
from figures.explore.places import Geometry, Grid, Values
from figures.explore.points import grid_values
from figures.explore.survey_results import opened, store

CALL_SECONDS = 0.2
"""Seconds that one call of a survey may take: urgent calls wait no longer."""

REMEMBERED = 48
"""Finished surveys in memory."""


class Survey:
    """The values of a grid: what is stored is shown at once, else every 4th point, every 2nd, then all.

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
        self.ended = self.stopped = False
        self.done = self.total = 0
        self._jobs, self._priority = jobs, priority
        self._on_change, self._on_progress = on_change, on_progress
        self._lock = threading.RLock()
        self._cancelled = False
        self._job: Job | None = None
        self._seconds: float | None = None
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
    def job(self) -> Job | None:
        """The present job: its seconds left are those of this level."""
        return self._job

    @property
    def seconds_left(self) -> float | None:
        """Seconds until all points are done; None before the first is."""
        if self._seconds is None or self.ended:
            return None
        return self._seconds * (self.total - self.done) / self._jobs.threads

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
        self.geometry = answer
        inside = np.isfinite(answer.rows).all(1)
        self._values: dict[str, np.ndarray] = {}
        self._known = np.zeros(len(answer.rows), dtype=bool)
        self._inside = inside
        self.total = int(inside.sum()) + len(answer.marks)
        self._levels = levels(answer.shape)
        self._marks()

    def _marks(self) -> None:
        """Evaluate the marks one by one, which also tells what a point costs."""
        rows = [list(mark.coefficients) for mark in self.geometry.marks]
        self._mark_values: list[Values] = [{} for _ in rows]

        def take(place: int, answer: tuple[Values, float]) -> None:
            self._mark_values[place] = answer[0]
            self._count(1, answer[1])

        self._submit([[row] for row in rows], take, self._refine)

    def _refine(self) -> None:
        """Evaluate the next level."""
        mask = next((mask for mask in self._levels if not (self._known | ~mask | ~self._inside).all()), None)
        if mask is None:
            self._complete()
            return
        cells = np.flatnonzero(mask & self._inside & ~self._known)
        parts = list(_parts(cells, self._seconds or CALL_SECONDS, self._jobs.threads))

        def take(place: int, answer: tuple[Values, float]) -> None:
            where = parts[place]
            with self._lock:
                for name, column in answer[0].items():
                    if name not in self._values:
                        self._values[name] = np.full((len(self._known), *column.shape[1:]), np.nan)
                    self._values[name][where] = column
                self._known[where] = True
            self._count(len(where), answer[1])

        def level_done() -> None:
            self.surface = self._labelled(mask)
            if not (self._known | ~self._inside).all():
                self._on_change(self)
            self._refine()

        self._submit([self.geometry.rows[part].tolist() for part in parts], take, level_done)

    def _submit(
        self, pieces: Sequence[Any], take: Callable[[int, tuple[Values, float]], None], then: Callable[[], None]
    ) -> None:
        def ended(job: Job) -> None:
            if job.state == "done" and not self._cancelled:
                then()
            else:
                self._failed(job)

        items = [(self.grid, rows) for rows in pieces]
        priority = self._priority + (0 if self.surface is None else 5)
        title = f"{self.grid.kind} of round {self.grid.place.round}"
        with self._lock:
            if not self._cancelled:
                self._job = self._jobs.quick(
                    grid_values, self.run, items, title=title, priority=priority, on_result=take, on_end=ended
                )

    def _count(self, points: int, seconds: float) -> None:
        self.done += points
        self._seconds = seconds if self._seconds is None else min(self._seconds, seconds)
        if self._on_progress is not None:
            self._on_progress(self)

    def _labelled(self, mask: np.ndarray) -> xr.Dataset:
        """The surface of a level, labelled as `landscape.surface` does it."""
        whole, grid = self.geometry, self.grid
        picked = mask.reshape(whole.shape)
        cells = np.ix_(
            *[
                np.flatnonzero(picked.any(tuple(k for k in range(picked.ndim) if k != axis)))
                for axis in range(picked.ndim)
            ]
        )
        coords = {name: whole.coords[name][cells[axis].ravel()] for axis, name in enumerate(whole.coords)}
        ds = xr.Dataset(coords=coords).assign_coords(mark=[mark.name for mark in whole.marks])
        dims = tuple(whole.coords)
        for axis, name in enumerate(dims):
            ds[name].attrs.update(long_name=name, units="1")
            ds[f"mark_{name}"] = ("mark", [mark.at[axis] for mark in whole.marks])
        for name, column in self._values.items():
            further = ("class",) if column.ndim > 1 else ()
            about = {"long_name": _WORDS.get(name, name), "units": "nats" if name == "loss" else "fraction"}
            ds[name] = ((*dims, *further), column.reshape(*whole.shape, *column.shape[1:])[cells], about)
            at_marks = np.stack([values[name][0] for values in self._mark_values])
            ds[f"mark_{name}"] = (
                ("mark", *further),
                at_marks,
                {**about, "long_name": f"{about['long_name']} at the mark"},
            )
        place = grid.place
        return ds.assign_attrs(whole.attrs, split=place.split, round=place.round)

    def _complete(self) -> None:
        surface = self.surface
        if surface is None:
            return
        self._end(surface)
        places = {tuple(row): place for place, row in enumerate(self._rows())}
        table = {name: np.concatenate([self._at_marks(name), column]) for name, column in self._values.items()}
        self._jobs.quick(store, self.run, [(self.grid, places, table)], priority=self._priority + 80)

    def _rows(self) -> list[list[float]]:
        marks = [list(mark.coefficients) for mark in self.geometry.marks]
        return [*marks, *self.geometry.rows.tolist()]

    def _at_marks(self, name: str) -> np.ndarray:
        return np.concatenate([values[name] for values in self._mark_values])

    def _end(self, surface: xr.Dataset) -> None:
        self.surface, self.ended = surface, True
        self.done = self.total = max(self.total, 1)
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


def levels(shape: tuple[int, ...]) -> list[np.ndarray]:
    """Masks over the grid points, flat: every 4th, every 2nd, all per axis; of small grids only those with five."""
    masks = []
    for step in (4, 2, 1):
        if step == 1 or all((points - 1) % step == 0 and points > 4 * step for points in shape):
            axes = [np.arange(points) % step == 0 for points in shape]
            grid = np.meshgrid(*axes, indexing="ij")
            masks.append(np.logical_and.reduce(grid).ravel())
    return masks


def _parts(cells: np.ndarray, seconds: float, threads: int) -> Iterator[np.ndarray]:
    """Cells in calls of about CALL_SECONDS, at least one per thread."""
    most = max(1, min(int(CALL_SECONDS / max(seconds, 1e-6)), 64, -(-len(cells) // threads)))
    return (cells[start : start + most] for start in range(0, len(cells), most))


def _key(run: Run, grid: Grid) -> tuple[Any, ...]:
    return run.folder.resolve(), str(run.about.get("digest")), id(run.context.user_task), run.context.metrics, grid


_FINISHED: OrderedDict[tuple[Any, ...], xr.Dataset] = OrderedDict()
_WORDS = {"class_error": "error of the class"}
