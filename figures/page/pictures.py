"""The path of the global model of a run, as the report plays it."""

from collections.abc import Callable
from typing import TypeVar

import plotly.graph_objects as go
import xarray as xr

from drift.analyses.landscapes.projected_plane import trajectory_plane
from drift.analyses.per_round import evenly_spaced
from drift.runs.run import Run
from drift.store.numpy_files import Damaged
from figures.interactive.paths import trajectory_play
from figures.interactive.words import client_notes
from figures.page.remembered_runs import Failed, Job
from figures.page.sampled import Samples, landscape_words, options
from figures.selection.advised import without_advice

PATH = 2.0
"""Time of the path, relative to a plane."""

MadePictures = TypeVar("MadePictures")


def trajectory(run: Run, samples: Samples) -> go.Figure:
    """The path and its clients on a plane, with a sentence about its samples for the page to show below it.

    Args:
        samples: Test samples of the plane at most.

    Raises:
        LookupError: If the run kept too little.
    """
    ds = global_path(run, samples)
    rounds = [int(index) for index in ds["round"].values] if "round" in ds.dims else []
    figure = trajectory_play(ds, notes={index: client_notes(run, index) for index in rounds})
    words = landscape_words([ds])
    return figure.update_layout(meta={"samples": words}) if words else figure


def jobs(run: Run, samples: Samples) -> list[Job]:
    """The job that computes the path of a run, where it has one."""
    path = Job("path of the global model", PATH, lambda run: global_path(run, samples))
    return [path] if len(run.kept("globals")) > 1 else []


def global_path(run: Run, samples: Samples) -> xr.Dataset:
    """The path, with the options of the figure trajectory-plane, so that it is computed once."""
    has_clients = bool(set(run.kept("clients")) & set(evenly_spaced(run.kept("globals"), 20)))
    return run.cached(trajectory_plane, points=21, clients=has_clients, **options(run, samples))


def or_why(
    make: Callable[[], MadePictures], name: str, failed: Failed, refused: type[Exception] = LookupError
) -> MadePictures | str:
    """A figure, or the reason why there is none; damage and an error that is not `refused` are added to `failed`."""
    try:
        return make()
    except (LookupError, refused) as missing:
        return failed.add(name, missing) if isinstance(missing, Damaged) else without_advice(missing)
    except Exception as reason:  # noqa: BLE001 - stated in the picture's place and at the end; the page is written
        return failed.add(name, reason)
