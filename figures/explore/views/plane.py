"""Loss and error on the plane or line through any models of a run; a point of it is evaluated whole."""

from __future__ import annotations

import time
from dataclasses import replace
from functools import partial
from html import escape
from typing import Any, ClassVar

import numpy as np
import panel as pn
import xarray as xr

from drift.runs.run import Run
from figures.explore.plane import maps
from figures.explore.plane.coefficients import coefficients, corner_places, is_another_box
from figures.explore.plane.model_choices import model_choices
from figures.explore.plane.plane_controls import PlaneControls
from figures.explore.plane.point_panel import PointPanel
from figures.explore.plane.queries import Grid
from figures.explore.plane.survey_results import minimum
from figures.explore.plane.surveys import Survey
from figures.explore.shell.as_figure import Request
from figures.explore.shell.plot import Plot
from figures.explore.shell.view import View
from figures.explore.work.job import LongJob
from figures.explore.work.versions import round_version
from landscape.surfaces.minimum import Minimum

EVERY = 0.25  # seconds between two lines of progress
HINT = "Click on the picture, or drag the ring: that point is evaluated whole."


class Plane(View):
    """The plane through three models, the line through two."""

    name = "plane"
    title = "Plane"
    follows: ClassVar[frozenset[str]] = frozenset(
        {"runs", "round", "corners", "point", "box", "quantity", "clients", "client", "split", "growth"}
        | {"plane.depth", "plane.samples", "plane.precision", "plane.points"}
    )

    def body(self) -> pn.Column:
        self.controls = PlaneControls(self)
        self.status = pn.pane.HTML("", css_classes=["muted"], sizing_mode="stretch_width", margin=(0, 8))
        self.lowest = pn.pane.HTML("", sizing_mode="stretch_width", margin=(0, 8))
        self.plot = Plot("", height=460, drag="point")
        self.point = PointPanel(self)
        self._survey: Survey | None = None
        self._grid: Grid | None = None
        self._version: Any = None
        self._minimum: Minimum | None = None
        self._minimum_job: LongJob | None = None
        self._told = 0.0
        self._plane: Any = None
        self._ids: list[int] = []
        self.plot.on("click", self.guarded(self._pointed))
        self.plot.on("drag", self.guarded(self._pointed))
        self.plot.on("zoom", self.guarded(self._zoomed))
        parts = [self.controls.panel, self.status, self.plot, self.lowest, self.point.panel]
        return pn.Column(*parts, sizing_mode="stretch_width")

    def update(self, changed: set[str]) -> None:
        selection, recorded, number = self.selection, self.explorer.recorded(), self.explorer.round()
        others = [self.explorer.runs.described(name) for name in selection.runs[1:]]
        groups = model_choices(recorded, number, others)
        names, note = self.controls.names(groups, number)
        self._ids, plane = sorted(recorded.round(number).ids.tolist()), (recorded.folder, number, names)
        if self._plane not in (None, plane) and "box" not in changed:
            self.controls.foreign_box = list(selection.box)  # a part of another plane
        self._plane = plane
        try:
            run, another = self.explorer.run(), self._look_at(names, number, note)
        finally:
            self.controls.offer(groups, names, recorded, number)
        if not another and changed - {"point", "growth", "clients", "client"}:
            self._draw()
            if self._survey is not None:
                self._tell(self._survey)
        self._show_point(run)

    def close(self) -> None:
        super().close()
        if self._body is not None and self._survey is not None:
            self._survey.cancel()

    def figures(self) -> list[Request]:
        if self._grid is None:
            raise LookupError("nothing is evaluated yet.")
        variable = "loss" if self.selection.quantity.startswith("client") else self.selection.quantity
        options = self._grid.options()
        return [Request.from_runs("plane-round", self.explorer.run(), variable=variable, **options)]

    def _look_at(self, names: list[str], number: int, note: str) -> bool:
        """Begin to evaluate what is selected, which goes on while the page changes; whether it is another grid."""
        grid, run = self.controls.grid(names, number), self.explorer.run()
        version = round_version(run, number, names)
        another = (grid, version) != (self._grid, self._version)
        if another:
            self._start(run, grid, version, note)
        return another

    def _start(self, run: Run, grid: Grid, version: Any, note: str) -> None:
        """Evaluate another grid."""
        if self._survey is not None:
            self._survey.cancel()
        if self._minimum_job is not None:
            self._minimum_job.cancel()
        same = self._grid is not None and replace(grid, box=None) == replace(self._grid, box=None)
        if not same or version != self._version:
            self.plot.show(None)
        self._version = version
        self._revision = getattr(self, "_revision", 0) + (0 if same and grid.box is not None else 1)
        self._grid, self._minimum, self._note = grid, None, note
        self.lowest.object, self.status.object = "", f"<p>{escape(note)} evaluating ...</p>"
        changed = partial(self.explorer.push, self._surveyed, view=self)
        self._survey = Survey(self.explorer.jobs, run, grid, on_change=changed, on_progress=self._progress, priority=10)

    def _progress(self, survey: Survey) -> None:
        now = time.monotonic()
        if now - self._told > EVERY:
            self._told = now
            self.explorer.push(self._tell, survey)

    def _tell(self, survey: Survey) -> None:
        if survey.cancelled or survey.grid != self._grid:
            return
        parts = [self._note] if self._note else []
        exact = "exact" if survey.grid.query.precision == "exact" else "in bfloat16"
        if survey.stopped or not survey.ended:
            left, stopped = survey.seconds_left, survey.stopped
            parts.append(maps.progress_text(survey.done, survey.total, exact, stopped=stopped, seconds=left))
        if survey.surface is not None:
            how = survey.rough or exact
            parts.append(maps.shown_text(self._shown(survey), self.selection.quantity, how))
        self.status.object = f"<p>{escape('; '.join(parts))}</p>" if parts else ""

    def _shown(self, survey: Survey) -> xr.Dataset:
        """The surface, or its evaluated points where what is shown cannot be interpolated between them."""
        surface, lattice = survey.surface, survey.lattice
        if surface is None:
            raise LookupError("nothing is evaluated yet.")
        return surface if lattice is None or maps.is_close(surface, self.selection.quantity) else lattice

    def _surveyed(self, survey: Survey) -> None:
        """A finer surface, or the end."""
        if survey.cancelled or survey.grid != self._grid:
            return
        self._survey = survey
        self._tell(survey)
        if survey.error is not None:
            self.plot.show(None)
            self.point.clear()
            self.status.object = ""
            raise survey.error
        self._draw()
        self.point.invite(HINT)
        if survey.ended and not survey.stopped:
            self._find_minimum(survey)

    def _draw(self) -> None:
        survey = self._survey
        if survey is None or survey.surface is None or self._grid is None or survey.grid != self._grid:
            return
        quantity, names = self.selection.quantity, ", ".join(self._grid.query.models)
        ds, variable = maps.quantity_of(self._shown(survey), quantity)
        loss_shown = self._minimum if variable == "loss" else None
        point = self._coordinates()
        revision = f"{self._revision} {self.selection.look('plane.depth')}"
        label = f"{ds[variable].attrs['long_name']} on the {self._grid.kind} through {names}"
        if self._grid.kind == "line":
            at = None if point is None else point[0]
            figure = maps.line_figure(ds, variable, point=at, minimum=loss_shown, revision=revision)
        else:
            deep = self.selection.look("plane.depth") == "3d"
            figure = maps.plane_figure(ds, variable, deep=deep, point=point, minimum=loss_shown, revision=revision)
        self.plot.show(figure, label)
        unit = ds[variable].attrs.get("units", "")
        self.lowest.object = f"<p>{escape(maps.minimum_text(loss_shown, unit))}</p>"

    def _find_minimum(self, survey: Survey) -> None:
        def show(result: Minimum) -> None:
            self._minimum = result
            self._draw()

        how: dict[str, Any] = {"wanted": lambda: survey is self._survey, "ended": lambda _: None, "priority": 40}
        self._minimum_job = self.ask(minimum, survey.run, (survey.grid, survey.surface), show, **how)

    def _corners(self) -> np.ndarray | None:
        """Coordinates of the corners, shape (n, dimensions); None while nothing is shown."""
        if self._survey is None or self._survey.surface is None or self._grid is None:
            return None
        return corner_places(self._survey.surface, self._grid)

    def _coordinates(self) -> tuple[float, ...] | None:
        """Where the selected point is."""
        corners, point = self._corners(), self.selection.point
        if corners is None or len(point) != len(corners):
            return None
        return tuple(float(value) for value in np.asarray(point) @ corners)

    def _coefficients(self, grid: Grid, event: dict[str, Any]) -> list[float]:
        """Coefficients of the corners at the place of an event."""
        corners = self._corners()
        if corners is None:
            raise LookupError("nothing is evaluated yet.")
        return coefficients(corners, [event["x"]] if grid.kind == "line" else [event["x"], event["y"]])

    def _pointed(self, event: dict[str, Any]) -> None:
        """Evaluate the point under the pointer, on a model's mark the model itself; once it is chosen, views follow."""
        mark, grid = (event.get("points") or [{}])[0], self._grid
        if grid is not None and grid.kind == "plane" and self.selection.look("plane.depth") == "3d":
            event = {"x": mark.get("x"), "y": mark.get("y")}
        if grid is None or event.get("x") is None:
            return
        index, corners = mark.get("index"), list(grid.query.models)
        on_mark = mark.get("trace") in ("models", "") and mark.get("z") is None and isinstance(index, int)
        if on_mark and index < len(corners):
            point = [float(other == index) for other in range(len(corners))]
        else:
            point = self._coefficients(grid, event)
        settled = event.get("done", True)  # a drag that goes on has not
        self.point.show(self.explorer.run(), grid.query, point, settled=settled, ids=self._ids)
        if settled:
            self.selection.change(corners=corners, point=point)

    def _zoomed(self, event: dict[str, Any]) -> None:
        """Evaluate the part of the plane that is looked at, on a grid of its own."""
        survey = self._survey
        if self._grid is None or self._grid.kind == "line" or survey is None or survey.surface is None:
            return
        box = [float(value) for value in (*event["x"], *event["y"])]
        if box[0] < box[1] and box[2] < box[3] and is_another_box(survey.surface, box):
            self.selection.change(box=box)

    def _show_point(self, run: Run) -> None:
        if self._grid is None:
            return
        query, point = self._grid.query, self.selection.point
        evaluated = self._survey is not None and self._survey.surface is not None
        if len(point) != len(query.models):
            self.point.clear()
            if evaluated:
                self.point.invite(HINT)
            return
        self.point.show(run, query, list(point), settled=True, ids=self._ids)
        if evaluated:
            self._draw()
