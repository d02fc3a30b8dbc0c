"""Films over rounds: a surface with a turning camera, or the path of the global model, always beside the map."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.landscapes.planes import round_plane
from drift.analyses.landscapes.projected_plane import trajectory_plane
from drift.analyses.per_round import evenly_spaced
from drift.runs.run import Run
from figures.axes.surfaces import common_levels, contour
from figures.films.encoders import encoder, require_encoder
from figures.films.lit_surface import lit_surface
from figures.looks import style
from figures.selection.identity import add_identity, caption

KINDS = ("surface", "trajectory")
"""What a film may show."""

Progress = Callable[[int, int], None]


def film(
    run: Run,
    path: str | Path,
    *,
    kind: str = "surface",
    rounds: int = 12,
    points: int = 25,
    frames: int = 8,
    rate: float = 12.0,
    turn: float = 120.0,
    dpi: int = 110,
    progress: Progress | None = None,
) -> Path:
    """Write a film of a run as GIF, MP4 or WebM, by the suffix of the file.

    A surface is the loss on the plane through three clients of each round, lit, on one scale, from a camera that turns
    around it; a trajectory is the path of the global model, round by round, on the plane of its principal components.
    Each frame has the map beside the surface.

    Args:
        run: Its clients, or for a trajectory its global models, were kept.
        path: File to write.
        kind: "surface" or "trajectory".
        rounds: How many rounds are shown, evenly spaced among those that were kept.
        points: Grid points per axis.
        frames: Frames per round.
        rate: Frames per second.
        turn: Angle that the camera turns through, degrees.
        dpi: Pixels per inch; a frame is 6.9 inches wide.
        progress: Called with (frames done, all frames).

    Returns:
        The path.

    Raises:
        ValueError: If a number is too small, or `kind` or the suffix is none of those above.
        LookupError: If the encoder is not installed, or the run kept no such models.
    """
    path = Path(path)
    require_encoder(path)
    if kind not in KINDS:
        raise ValueError(f"kind is {kind!r}; a film shows a {' or a '.join(KINDS)}.")
    if min(rounds, frames) < 1 or points < 3 or not rate > 0:
        raise ValueError(
            f"rounds is {rounds}, frames {frames}, points {points}, rate {rate:g}; take 1, 1 and 3 or more, and a rate."
        )
    planes = _planes(run, rounds, points) if kind == "surface" else _path(run, rounds, points)
    levels = common_levels(*(plane.loss for plane in planes))
    total = len(planes) * frames
    first, last = -60.0 - turn / 2, -60.0 + turn / 2
    notes = [caption(add_identity(plane, [run], [run], {})) for plane in planes]
    with style.context():
        figure = Figure(figsize=(style.WIDE, 3.3))
        writer = encoder(path, rate)
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.stem}.new{path.suffix}")
        try:
            with writer.saving(figure, str(fresh), dpi):
                for frame in range(total):
                    place, share = frame // frames, frame / max(total - 1, 1)
                    _draw(figure, planes[place], levels, first + share * (last - first), notes[place])
                    writer.grab_frame()
                    if progress is not None:
                        progress(frame + 1, total)
            os.replace(fresh, path)
        finally:
            fresh.unlink(missing_ok=True)
    return path


def _draw(figure: Figure, plane: xr.Dataset, levels: np.ndarray, azimuth: float, note: str) -> None:
    """One frame: the surface, the map, the round and what is shown."""
    figure.clear()
    left = figure.add_axes((0.0, 0.1, 0.5, 0.82), projection="3d")
    right = figure.add_axes((0.6, 0.24, 0.26, 0.62))
    trail = plane.attrs.get("trail", 0)
    lit_surface(plane, ax=left, azimuth=azimuth, levels=levels)
    filled = contour(plane, ax=right, levels=levels, marks=not trail, bar=False).collections[0]
    if trail:
        right.plot(plane.mark_alpha, plane.mark_beta, "o-", color="black", markersize=3, markeredgecolor="white")
    figure.colorbar(filled, cax=figure.add_axes((0.89, 0.24, 0.02, 0.62)), label=style.text(plane.loss), format="%.2g")
    figure.text(0.5, 0.94, f"round {plane.attrs['round']}", ha="center", fontsize=9)
    figure.text(0.02, 0.02, note, fontsize=6, color="#444444")


def _planes(run: Run, rounds: int, points: int) -> list[xr.Dataset]:
    suited = run.kept("clients", least=3)
    if not suited:
        raise LookupError(
            f"run {run.name} kept no round with three clients or more; train it with --set keep.clients=all."
        )
    indices = evenly_spaced(suited, rounds)
    return [
        run.cached(round_plane, round=index, points=points, box="symmetric") for index in run.context.track(indices)
    ]


def _path(run: Run, rounds: int, points: int) -> list[xr.Dataset]:
    """The plane of a path with the models up to each round marked."""
    available = run.kept("globals")
    if len(available) < 3:
        raise LookupError(f"run {run.name} kept {len(available)} global models; train it with --set keep.globals=all.")
    whole = run.cached(trajectory_plane, rounds=evenly_spaced(available, rounds), points=points, clients=False)
    numbers = whole.mark_round.values.astype(int).tolist()
    return [
        whole.isel(mark=slice(place + 1)).assign_attrs(round=number, trail=1) for place, number in enumerate(numbers)
    ]
