"""Films over rounds: a surface with a turning camera, or the path of the global model, always beside the map."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
import xarray as xr
from matplotlib.cm import ScalarMappable
from matplotlib.figure import Figure

from drift.analyses.landscapes.planes import round_plane
from drift.analyses.landscapes.projected_plane import trajectory_plane
from drift.analyses.per_round import evenly_spaced
from drift.runs.run import Run
from figures.axes.colour_bars import norm, round_ticks
from figures.axes.surfaces import common_levels
from figures.films.encoders import encoder, require_encoder
from figures.films.lit_surface import GROUNDS, lit_surface
from figures.looks import style
from figures.selection.identity import add_identity, caption

SIZE = (9.6, 5.4)
"""Width and height of a frame, inches."""

FINE = 160
"""Cells along each axis of the surface in a frame."""

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
    turn: float = 60.0,
    dpi: int = 200,
    ground: str = "dark",
    progress: Progress | None = None,
) -> Path:
    """Write a film of a run as GIF, MP4 or WebM, by the suffix of the file.

    A surface is the loss on the plane through three clients of each round, lit, on one scale, from a camera that turns
    around it; a trajectory is the path of the global model, round by round, on the plane of its principal components.
    Each frame has the map below the surface.

    Args:
        run: Its clients, or for a trajectory its global models, were kept.
        path: File to write.
        kind: "surface" or "trajectory".
        rounds: How many rounds are shown, evenly spaced among those that were kept.
        points: Grid points per axis.
        frames: Frames per round.
        rate: Frames per second.
        turn: Angle that the camera turns through, degrees.
        dpi: Pixels per inch of a frame of 9.6 x 5.4 inches; 200 makes 1920 x 1080 pixels.
        ground: "dark" or "light".
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
    if ground not in GROUNDS:
        raise ValueError(f"ground is {ground!r}; accepted: {', '.join(GROUNDS)}.")
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
        figure = Figure(figsize=SIZE)
        writer = encoder(path, rate)
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.stem}.new{path.suffix}")
        try:
            with writer.saving(figure, str(fresh), dpi):
                for frame in range(total):
                    place, share = frame // frames, frame / max(total - 1, 1)
                    _draw(figure, planes[place], levels, first + share * (last - first), ground, notes[place])
                    writer.grab_frame()
                    if progress is not None:
                        progress(frame + 1, total)
            os.replace(fresh, path)
        finally:
            fresh.unlink(missing_ok=True)
    return path


def _draw(figure: Figure, plane: xr.Dataset, levels: np.ndarray, azimuth: float, ground: str, note: str) -> None:
    """One frame: the surface over its map, the scale, the round and what is shown."""
    figure.clear()
    paper, ink = GROUNDS[ground]
    figure.set_facecolor(paper)
    scene = figure.add_axes((0.0, 0.03, 0.92, 0.97), projection="3d")
    lit_surface(plane, ax=scene, azimuth=azimuth, levels=levels, ground=ground, fine=FINE)
    scale = ScalarMappable(norm(levels), style.sequential())
    bar = figure.colorbar(scale, cax=figure.add_axes((0.92, 0.25, 0.012, 0.5)))
    round_ticks(bar, levels, tall=True)
    bar.set_label(style.text(plane.loss), color=ink)
    bar.ax.tick_params(which="both", colors=ink)
    figure.text(0.02, 0.93, f"round {plane.attrs['round']}", fontsize=13, color=ink)
    figure.text(0.02, 0.02, note, fontsize=6, color=ink, alpha=0.7)


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
