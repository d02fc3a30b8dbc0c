"""Pictures of single runs in the report, by kind: landscapes, paths, weights, coherence, labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial

import plotly.graph_objects as go
import xarray as xr

from drift.analyses.landscapes.planes import round_plane
from drift.analyses.landscapes.projected_plane import trajectory_plane
from drift.analyses.landscapes.weight_simplex import weight_simplex
from drift.analyses.per_round import evenly_spaced
from drift.runs.run import Run
from figures.interactive.labels import label_points
from figures.interactive.matrix import coherence_matrix
from figures.interactive.paths import trajectory_play
from figures.interactive.simplex import simplex_rounds
from figures.interactive.surfaces import surface_rounds
from figures.interactive.words import client_notes, mark_notes
from figures.page.remembered_runs import Failed, Job

ROUNDS = 5
"""Rounds of a landscape's slider."""

STEP = 0.1
"""Of the weights on a triangle."""

KINDS = ("surface", "contour", "trajectory", "matrix", "labels", "simplex")
"""Pictures of a run, by name."""


def pictures(run: Run, points: int, failed: Failed) -> dict[str, go.Figure | str]:
    """The pictures of a run by kind, or the reason where the run kept too little for one.

    Args:
        points: Grid points per axis of a landscape.
        failed: Collects the pictures that could not be drawn.
    """
    indices = planar(run)
    notes = [mark_notes(run, index) for index in indices]
    make: dict[str, Callable[[], go.Figure]] = {
        "surface": lambda: surface_rounds(_planes(run, indices, points), notes=notes),
        "contour": lambda: surface_rounds(_planes(run, indices, points), flat=True, notes=notes),
        "trajectory": lambda: _trajectory(run),
        "matrix": lambda: coherence_matrix(run),
        "labels": lambda: label_points(run),
        "simplex": lambda: simplex_rounds(_simplexes(run, indices), notes=notes),
    }
    return {kind: or_why(make[kind], f"{kind} of {run.name}", failed) for kind in KINDS}


def jobs(run: Run, points: int) -> list[Job]:
    """The jobs that compute the results that the pictures of a run show."""
    indices = planar(run)
    tasks: list[Job] = [(1, partial(_planes, indices=[index], points=points)) for index in indices]
    return [*tasks, (1, partial(_simplexes, indices=indices)), (2, _path), (1, label_points)]


def planar(run: Run) -> list[int]:
    """A few evenly spaced rounds that kept three clients or more."""
    return evenly_spaced(run.kept("clients", least=3), ROUNDS)


def _planes(run: Run, indices: Sequence[int], points: int) -> list[xr.Dataset]:
    return [run.cached(round_plane, round=index, points=points) for index in _required(indices)]


def _simplexes(run: Run, indices: Sequence[int]) -> list[xr.Dataset]:
    return [run.cached(weight_simplex, round=index, step=STEP) for index in _required(indices)]


def _trajectory(run: Run) -> go.Figure:
    ds = _path(run)
    rounds = [int(index) for index in ds["round"].values] if "round" in ds.dims else []
    return trajectory_play(ds, notes={index: client_notes(run, index) for index in rounds})


def _path(run: Run) -> xr.Dataset:
    """With the options of the figure trajectory-plane, so that it is computed once."""
    has_clients = bool(set(run.kept("clients")) & set(evenly_spaced(run.kept("globals"), 20)))
    return run.cached(trajectory_plane, points=21, clients=has_clients)


def _required(indices: Sequence[int]) -> Sequence[int]:
    if not indices:
        raise LookupError(
            "it kept no round with three clients or more; train with --set keep.clients=all and clients.per_round of "
            "at least 3."
        )
    return indices


def or_why(make: Callable[[], go.Figure], name: str, failed: Failed) -> go.Figure | str:
    """A figure, or the reason why there is none; an error is also added to `failed`."""
    try:
        return make()
    except LookupError as missing:
        return str(missing)
    except Exception as reason:  # noqa: BLE001 - stated in the picture's place and at the end; the page is written
        return failed.add(name, reason)
