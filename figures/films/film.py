"""Films over rounds: the global model and its clients on one plane, before a camera that stands still."""

from __future__ import annotations

from pathlib import Path
from typing import Any, cast

import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from mpl_toolkits.mplot3d import Axes3D

from drift.analyses.landscapes.projected_plane import trajectory_plane
from drift.analyses.per_round import evenly_spaced
from drift.runs.run import Run
from figures.axes.colour_bars import common_levels
from figures.axes.relief import EDGE, MEAN, MODEL, Relief, relief
from figures.films.encoders import require_encoder
from figures.films.lit_surface import draw_surface, pixels, require_ground, scale_bar
from figures.films.stage import Progress, eased, empty, require_least, still, usual_dpi, write_frames
from figures.looks import palette, style
from figures.selection.identity import add_identity, caption

FINE = 160
"""Cells along each axis of the surface in a frame."""

STEPS = 60
"""Points of the way between two rounds."""


def film(
    run: Run,
    path: str | Path,
    *,
    rounds: int = 12,
    points: int = 25,
    frames: int = 8,
    rate: float = 15.0,
    dpi: int | None = None,
    ground: str = "dark",
    progress: Progress | None = None,
) -> Path:
    """Write a film of a run as GIF, MP4 or WebM, by the suffix of the file.

        figures.film(run, "run.gif", rounds=3, points=5, frames=2)

    The plane is that of the principal components of the global models. The global model walks over it round by round,
    and the clients of each round, where they were kept, fan out to the feet of their projections. Plane, scale and
    camera stand still; the map is below the surface.

    Args:
        run: It kept three global models or more.
        path: File to write.
        rounds: How many rounds are shown, evenly spaced among those that were kept.
        points: Grid points per axis.
        frames: Frames per round.
        rate: Frames per second.
        dpi: Pixels per inch of a frame of 9.6 x 5.4 inches; by default 200, which makes 1920 x 1080, for a GIF 100.
        ground: "dark" or "light".
        progress: Called with (frames done, all frames).

    Returns:
        The path.

    Raises:
        ValueError: If a number is too small, or the ground or the suffix is unknown.
        LookupError: If the encoder is not installed, or the run kept fewer models.
    """
    path = Path(path)
    require_encoder(path)
    require_ground(ground)
    require_least(rounds=(rounds, 3), frames=(frames, 1), points=(points, 3), rate=(rate, None))
    dpi = usual_dpi(path, dpi)
    plane = _path(run, rounds, points)
    levels = common_levels(plane.loss, top=1.0)
    figure, ax = _canvas(plane, run, levels, ground, dpi)
    scene = relief(plane.assign_attrs(trail=1), levels=levels, fine=FINE)
    with style.context():
        draw_surface(scene, ax, ground)
        picture = still(figure)
    numbers = plane.mark_round.values.astype(int).tolist()
    way = pixels(ax, np.concatenate([scene.places[:1], *scene.paths]))
    clients = [_clients(plane, number, scene, ax) for number in numbers]

    def draw(frame: int, over: Axes) -> np.ndarray:
        index, share = frame // frames, frame % frames / frames
        moved = eased(share, 0, 1) if index < len(numbers) - 1 else 0.0
        until = 1 + round(STEPS * (index + moved))
        here, ink = way[until - 1], palette.GROUNDS[ground][1]
        dots: dict[str, Any] = {"marker": "o", "linestyle": "none", "markeredgecolor": EDGE}
        for point in clients[index]:
            spread = eased(share, 0, 0.4)
            there = way[STEPS * index] + spread * (point - way[STEPS * index])
            over.plot(*np.stack([way[STEPS * index], there]).T, color=MODEL, linewidth=1, alpha=0.6 * (1 - share))
            over.plot(*there, color=MODEL, markersize=4, alpha=1 - share, **dots)
        over.plot(*way[:until].T, color=MODEL, linewidth=2, solid_capstyle="round")
        over.plot(*here, color=MEAN, markersize=10, zorder=5, **dots)
        over.annotate(f"round {numbers[index]}", (0.02, 0.93), xycoords="axes fraction", fontsize=13, color=ink)
        return picture

    return write_frames(path, draw, len(numbers) * frames, rate=rate, dpi=dpi, progress=progress)


def _canvas(plane: xr.Dataset, run: Run, levels: np.ndarray, ground: str, dpi: float) -> tuple[Figure, Axes3D]:
    """A frame with its scale, its round and what it shows, and the axes of the surface."""
    ink = palette.GROUNDS[ground][1]
    with style.context():
        figure = empty(ground, dpi)
        scale_bar(figure, plane.loss, levels, ground, (0.92, 0.25, 0.012, 0.5))
        note = caption(add_identity(plane, [run], [run], {}))
        figure.text(0.02, 0.02, note, fontsize=6, color=ink, alpha=0.7)
        return figure, cast(Axes3D, figure.add_axes((0.0, 0.03, 0.92, 0.97), projection="3d"))


def _clients(plane: xr.Dataset, number: int, scene: Relief, ax: Axes3D) -> np.ndarray:
    """Where the clients of a round are on the picture, pixels; none where they were not kept."""
    if "client_alpha" not in plane or number not in plane["round"].values:
        return np.zeros((0, 2))
    there = plane[["client_alpha", "client_beta"]].sel(round=number).dropna("client")
    points = np.stack([there.client_alpha.values, there.client_beta.values], axis=1)
    return pixels(ax, scene.on_surface(points))


def _path(run: Run, rounds: int, points: int) -> xr.Dataset:
    """The plane of a path, with the clients of its rounds where they were kept."""
    available = run.kept("globals")
    if len(available) < 3:
        raise LookupError(f"run {run.name} kept {len(available)} global models; train it with --set keep.globals=all.")
    indices = evenly_spaced(available, rounds)
    clients = bool(set(run.kept("clients")) & set(indices))
    return run.cached(trajectory_plane, rounds=indices, points=points, clients=clients)
