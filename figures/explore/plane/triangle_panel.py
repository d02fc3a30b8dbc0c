"""The triangle of three clients' weights on the page: the loss over it, and a ring that is dragged."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
import panel as pn

from drift.analyses.landscapes.round_weights import Weights
from drift.runs.run import Run
from figures.explore.plane import triangles
from figures.explore.plane.places import Place
from figures.explore.plane.points import values
from figures.explore.shell.plot import Plot
from figures.explore.shell.view import View
from figures.explore.work.jobs import Job
from figures.explore.work.versions import round_version

PART = 6
"""Points per call: urgent calls wait no longer than for these."""


class TrianglePanel:
    """A map over the weights that three clients share, while those of the others and gamma stay.

    Args:
        view: Its view, in which errors become a line.
        on_drag: Called with (weights, done) while the ring is dragged.
    """

    def __init__(self, view: View, on_drag: Callable[[Weights, bool], Any]) -> None:
        self.view, self._on_drag = view, on_drag
        self.status = pn.pane.HTML("", sizing_mode="stretch_width", margin=(0, 8))
        self.plot = Plot("", height=360, drag="point")
        self.plot.on("drag", view.guarded(self._dragged))
        self._three: list[int] = []
        self._key: tuple[Any, ...] | None = None
        self._surface: Any = None
        self._job: Job | None = None
        self._shown = Weights(1.0, ())

    def clear(self, text: str = "") -> None:
        """Show no triangle, and why."""
        self._key = self._surface = None
        self.plot.show(None)
        self.status.object = f"<p>{escape(text)}</p>"

    def show(
        self, run: Run, place: Place, ids: Sequence[int], clients: Sequence[int], weights: Weights, *, done: bool
    ) -> None:
        """Show weights on the map; where they need another one, it is evaluated once a drag is done.

        Args:
            place: The cohort and its samples.
            ids: The cohort, ascending.
            clients: Selected clients: the first of the three corners.
        """
        self._shown = weights
        if len(ids) < 3:
            return self.clear("A triangle takes three clients.")
        if done:
            self._three = triangles.corners(weights.shares, clients, ids)
        rest = tuple(round(share, 9) for row, share in enumerate(weights.shares) if row not in self._three)
        key = (round_version(run, place.round), place, tuple(self._three), rest, round(weights.gamma, 9))
        if key == self._key:
            self._draw()
        elif done:
            self._evaluate(run, place, ids, key)
        return None

    def _evaluate(self, run: Run, place: Place, ids: Sequence[int], key: tuple[Any, ...]) -> None:
        self._key, self._surface = key, None
        if self._job is not None:
            self._job.cancel()
        weights, three, shares = self._shown, list(self._three), triangles.grid()
        rows = triangles.rows(weights.shares, weights.gamma, three, shares)
        parts = [rows[start : start + PART].tolist() for start in range(0, len(rows), PART)]
        losses: dict[int, np.ndarray] = {}

        def ready() -> None:
            if key == self._key:
                names = [f"client {ids[row]}" for row in three]
                joined = np.concatenate([losses[part] for part in range(len(parts))])
                self._surface = triangles.surface(shares, joined, names)
                self.status.object = f"<p>{_in_words(names, weights, three)}</p>"
                self._draw()

        def ended(job: Job) -> None:
            if job.state == "done":
                self.view.explorer.push(ready, view=self.view)

        self._job = self.view.explorer.jobs.quick(
            values,
            run,
            [(place, part) for part in parts],
            title=f"weights of round {place.round}",
            priority=20,
            on_result=lambda part, metrics: losses.__setitem__(part, metrics["loss"]),
            on_end=ended,
        )

    def _draw(self) -> None:
        if self._surface is not None:
            share = triangles.share_of(self._shown.shares, self._three)
            self.plot.show(triangles.figure(self._surface, share), "Loss over the weights of three clients")

    def _dragged(self, event: dict[str, Any]) -> None:
        if event.get("x") is None or len(self._three) != 3:
            return
        share = triangles.share_at(float(event["x"]), float(event["y"]))
        row = triangles.rows(self._shown.shares, 1.0, self._three, share[None])[0]
        self._on_drag(replace(self._shown, shares=tuple(row.tolist())), bool(event.get("done")))


def _in_words(names: list[str], weights: Weights, three: list[int]) -> str:
    share = sum(weights.shares[row] for row in three)
    more = "the weight" if len(names) == len(weights.shares) else f"their {share:.1%} of it; the others keep theirs"
    return f"Drag the ring: {escape(', '.join(names))} share {more}."
