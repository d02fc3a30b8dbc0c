"""The triangle of three clients' weights, while those of the others and gamma stay: its map, and a ring to drag."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
import panel as pn
import plotly.graph_objects as go
import xarray as xr

from drift.analyses.landscapes.round_weights import Weights
from drift.runs.run import Run
from figures.explore.plane.maps import POINT
from figures.explore.plane.points import values as values_of
from figures.explore.plane.queries import PointQuery
from figures.explore.shell.plot import Plot
from figures.explore.shell.view import View
from figures.explore.work.job import LongJob
from figures.explore.work.versions import round_version
from figures.interactive.simplex import simplex
from landscape.geometry.simplex import on_triangle

STEPS = 10
"""Steps of the grid from one corner to another."""


def corners(weights: Sequence[float], clients: Sequence[int], ids: Sequence[int]) -> list[int]:
    """Places in the cohort of three clients: the selected ones first, then those with the largest weights."""
    selected = [ids.index(client) for client in dict.fromkeys(clients) if client in ids]
    rest = [row for row in np.argsort(-np.asarray(weights), kind="stable").tolist() if row not in selected]
    return [*selected, *rest][:3]


def grid() -> np.ndarray:
    """Barycentric coordinates of the grid points, shape (P, 3)."""
    ticks = range(STEPS + 1)
    return np.array([(a, b, STEPS - a - b) for a in ticks for b in ticks if a + b <= STEPS]) / STEPS


def rows(weights: Sequence[float], gamma: float, three: Sequence[int], shares: np.ndarray) -> np.ndarray:
    """Coefficients of the cohort, shape (P, m), where three clients share their weight as `shares` (P, 3) says."""
    base = np.tile(np.asarray(weights, dtype=float), (len(shares), 1))
    base[:, list(three)] = base[0, list(three)].sum() * shares
    return gamma * base


def share_of(weights: Sequence[float], three: Sequence[int]) -> np.ndarray:
    """How three clients share their weight now, shape (3,); equally where it is 0."""
    three_weights = np.asarray(weights, dtype=float)[list(three)]
    return three_weights / three_weights.sum() if three_weights.sum() > 1e-12 else np.full(3, 1 / 3)


def surface(shares: np.ndarray, losses: np.ndarray, names: Sequence[str], units: str) -> xr.Dataset:
    """Losses (P,), in these units, at barycentric coordinates (P, 3), as `drift.weight_simplex` labels them."""
    ticks = np.arange(STEPS + 1) / STEPS
    values = np.full((STEPS + 1, STEPS + 1), np.nan)
    cells = np.rint(shares[:, :2] * STEPS).astype(int)
    values[cells[:, 0], cells[:, 1]] = losses
    at_corner = np.array([values[-1, 0], values[0, -1], values[0, 0]])
    about = {"long_name": "loss", "units": units}
    return xr.Dataset(
        {
            "loss": (("alpha", "beta"), values, about),
            "mark_alpha": ("mark", [1.0, 0.0, 0.0]),
            "mark_beta": ("mark", [0.0, 1.0, 0.0]),
            "mark_loss": ("mark", at_corner, about),
        },
        coords={"alpha": ticks, "beta": ticks, "mark": list(names)},
    )


def figure(ds: xr.Dataset, share: np.ndarray) -> go.Figure:
    """The map on the triangle, with the point that is dragged."""
    picture = simplex(ds)
    x, y = on_triangle(share[:1], share[1:2])
    marker = {"size": 17, "symbol": "circle-open", "color": POINT, "line": {"width": 4}}
    picture.add_trace(go.Scatter(x=x, y=y, mode="markers", marker=marker, name="point", hoverinfo="skip"))
    return picture.update_layout(showlegend=False, uirevision="triangle", dragmode=False)


def share_at(x: float, y: float) -> np.ndarray:
    """Barycentric coordinates (3,) of a place on the picture, moved into the triangle."""
    third = 2 * y / 3**0.5
    second = x - third / 2
    shares = np.clip([1 - second - third, second, third], 0, 1)
    return shares / shares.sum()


AT_ONCE = 6
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
        self._job: LongJob | None = None
        self._shown = Weights(1.0, ())

    def clear(self, text: str = "") -> None:
        """Show no triangle, and why."""
        self._key = self._surface = None
        self.plot.show(None)
        self.status.object = f"<p>{escape(text)}</p>"

    def show(
        self, run: Run, query: PointQuery, ids: Sequence[int], clients: Sequence[int], weights: Weights, *, done: bool
    ) -> None:
        """Show weights on the map; where they need another one, it is evaluated once a drag is done.

        Args:
            query: The cohort and its samples.
            ids: The cohort, ascending.
            clients: Selected clients: the first of the three corners.
        """
        self._shown = weights
        if len(ids) < 3:
            return self.clear("A triangle takes three clients.")
        if done:
            self._three = corners(weights.shares, clients, ids)
        rest = tuple(round(share, 9) for row, share in enumerate(weights.shares) if row not in self._three)
        key = (round_version(run, query.round), query, tuple(self._three), rest, round(weights.gamma, 9))
        if key == self._key:
            self._draw()
        elif done:
            self._evaluate(run, query, ids, key)
        return None

    def _evaluate(self, run: Run, query: PointQuery, ids: Sequence[int], key: tuple[Any, ...]) -> None:
        if self._job is not None:
            self._job.cancel()
        self.clear("evaluating ...")
        self._key = key
        weights, three, shares = self._shown, list(self._three), grid()
        points = rows(weights.shares, weights.gamma, three, shares)
        blocks = [points[start : start + AT_ONCE].tolist() for start in range(0, len(points), AT_ONCE)]
        losses: dict[int, np.ndarray] = {}

        def ready() -> None:
            names = [f"client {ids[row]}" for row in three]
            joined = np.concatenate([losses[index] for index in range(len(blocks))])
            self._surface = surface(shares, joined, names, run.loss_units)
            self.status.object = f"<p>{_in_words(names, weights, three)}</p>"
            self._draw()

        def ended(job: LongJob) -> None:
            if job.state != "cancelled":
                act = ready if job.error is None else lambda: self.clear(str(job.error))
                self.view.explorer.push(act, view=self.view, wanted=lambda: key == self._key)

        self._job = self.view.explorer.jobs.quick(
            values_of,
            run,
            [(query, block) for block in blocks],
            title=f"weights of round {query.round}",
            priority=20,
            on_result=lambda index, metrics: losses.__setitem__(index, metrics["loss"]),
            on_end=ended,
        )

    def _draw(self) -> None:
        if self._surface is not None:
            share = share_of(self._shown.shares, self._three)
            self.plot.show(figure(self._surface, share), "Loss over the weights of three clients")

    def _dragged(self, event: dict[str, Any]) -> None:
        if event.get("x") is None or len(self._three) != 3:
            return
        share = share_at(float(event["x"]), float(event["y"]))
        row = rows(self._shown.shares, 1.0, self._three, share[None])[0]
        self._on_drag(replace(self._shown, shares=tuple(row.tolist())), bool(event.get("done")))


def _in_words(names: list[str], weights: Weights, three: list[int]) -> str:
    share = sum(weights.shares[row] for row in three)
    more = "the weight" if len(names) == len(weights.shares) else f"their {share:.1%} of it; the others keep theirs"
    return f"Drag the ring: {escape(', '.join(names))} share {more}."
