"""Pictures of single runs in the report, by kind: landscapes, paths, weights, coherence, labels."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TypeVar

import plotly.graph_objects as go
import xarray as xr

from drift.analyses.landscapes.projected_plane import trajectory_plane
from drift.analyses.landscapes.weight_simplex import weight_simplex
from drift.analyses.per_round import evenly_spaced
from drift.runs.run import Run
from figures.interactive.labels import label_points
from figures.interactive.matrix import coherence_matrix
from figures.interactive.paths import trajectory_play
from figures.interactive.simplex import simplex_rounds
from figures.interactive.words import client_notes, mark_notes
from figures.page.remembered_runs import Failed, Job
from figures.page.sampled import Samples, landscape_words, options

ROUNDS = 5
"""Rounds of a landscape's slider."""

STEP = 0.1
"""Of the weights on a triangle."""

SIMPLEX, PATH = 0.3, 2.0
"""Times of a triangle and of the path, relative to a plane."""

MadePictures = TypeVar("MadePictures")
KINDS = ("trajectory", "matrix", "labels", "simplex")
"""Pictures of a run, by name."""


def pictures(run: Run, samples: Samples, failed: Failed) -> dict[str, go.Figure | str]:
    """The pictures of a run by kind, or the reason where the run kept too little for one.

    Args:
        samples: Test samples of a landscape at most.
        failed: Collects the pictures that could not be drawn.
    """
    indices = planar(run)
    notes = [mark_notes(run, index) for index in indices]
    make: dict[str, Callable[[], go.Figure]] = {
        "trajectory": lambda: _trajectory(run, samples),
        "matrix": lambda: coherence_matrix(run),
        "labels": lambda: label_points(run),
        "simplex": lambda: _stated(partial(simplex_rounds, notes=notes), _simplexes(run, indices, samples)),
    }
    return {kind: or_why(make[kind], f"{kind} of {run.name}", failed) for kind in KINDS}


def jobs(run: Run, samples: Samples) -> list[Job]:
    """The jobs that compute the results that the pictures of a run show."""
    tasks = [Job("path of the global model", PATH, partial(_path, samples=samples))] if run.kept("globals") else []
    for index in planar(run):
        simplexes = partial(_simplexes, indices=[index], samples=samples)
        tasks.append(Job(f"weights of round {index}", SIMPLEX, simplexes))
    return [*tasks, Job("labels of clients", SIMPLEX, label_points)]


def planar(run: Run) -> list[int]:
    """A few evenly spaced rounds that kept three clients or more."""
    return evenly_spaced(run.kept("clients", least=3), ROUNDS)


def _stated(draw: Callable[[Sequence[xr.Dataset]], go.Figure], landscapes: Sequence[xr.Dataset]) -> go.Figure:
    """The figure of landscapes, with a sentence about their samples for the page to show below it."""
    figure, words = draw(landscapes), landscape_words(landscapes)
    return figure.update_layout(meta={"samples": words}) if words else figure


def _simplexes(run: Run, indices: Sequence[int], samples: Samples) -> list[xr.Dataset]:
    return [run.cached(weight_simplex, round=index, step=STEP, **options(run, samples)) for index in _required(indices)]


def _trajectory(run: Run, samples: Samples) -> go.Figure:
    ds = _path(run, samples)
    rounds = [int(index) for index in ds["round"].values] if "round" in ds.dims else []
    notes = {index: client_notes(run, index) for index in rounds}
    return _stated(lambda landscapes: trajectory_play(landscapes[0], notes=notes), [ds])


def _path(run: Run, samples: Samples) -> xr.Dataset:
    """With the options of the figure trajectory-plane, so that it is computed once."""
    has_clients = bool(set(run.kept("clients")) & set(evenly_spaced(run.kept("globals"), 20)))
    return run.cached(trajectory_plane, points=21, clients=has_clients, **options(run, samples))


def _required(indices: Sequence[int]) -> Sequence[int]:
    if not indices:
        raise LookupError(
            "it kept no round with three clients or more; train with --set keep.clients=all and clients.per_round of "
            "at least 3."
        )
    return indices


def or_why(make: Callable[[], MadePictures], name: str, failed: Failed) -> MadePictures | str:
    """A figure, or the reason why there is none; an error is also added to `failed`."""
    try:
        return make()
    except LookupError as missing:
        return str(missing)
    except Exception as reason:  # noqa: BLE001 - stated in the picture's place and at the end; the page is written
        return failed.add(name, reason)
