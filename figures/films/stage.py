"""Frames of a film whose camera stands still: pictures that are drawn once, and what moves over them."""

import os
from collections.abc import Callable
from pathlib import Path

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.backend_bases import RendererBase
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from figures.films.encoders import encoder
from figures.looks import palette, style

SIZE = (9.6, 5.4)
"""Width and height of a frame, inches."""

Progress = Callable[[int, int], None]


def usual_dpi(path: Path, dpi: int | None) -> int:
    """Pixels per inch: those asked for, or 200 for 1920 x 1080 pixels, and half of it for a GIF."""
    return dpi if dpi is not None else 100 if path.suffix == ".gif" else 200


def require_least(**options: tuple[float, int | None]) -> None:
    """Refuse an option, given with its least value, that is smaller; without a least value, one that is not above 0.

    Raises:
        ValueError: For the first such option.
    """
    for name, (value, least) in options.items():
        if not (value > 0 if least is None else value >= least):
            wanted = "a number above 0" if least is None else f"{least} or more"
            raise ValueError(f"{name} is {value:g}; give {wanted}.")


def empty(ground: str, dpi: float) -> Figure:
    """A figure of the size of a frame."""
    return Figure(SIZE, dpi=dpi, facecolor=palette.GROUNDS[ground][0])


def still(figure: Figure) -> np.ndarray:
    """The picture of a figure, shape (height, width, 3), 8 bits."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()


def blended(first: np.ndarray, second: np.ndarray, share: float) -> np.ndarray:
    """A picture between two."""
    if share <= 0 or share >= 1:
        return second if share >= 1 else first
    weight = round(256 * share)
    return ((first.astype(np.uint16) * (256 - weight) + second.astype(np.uint16) * weight) >> 8).astype(np.uint8)


def eased(time: float, start: float, end: float) -> float:
    """How far a movement from `start` to `end` is, 0 to 1, slow at both ends."""
    share = min(max((time - start) / (end - start), 0.0), 1.0)
    return share * share * (3 - 2 * share)


class _Picture(Artist):
    """A picture as large as the canvas, which is copied there without being resampled."""

    def __init__(self, zorder: float) -> None:
        super().__init__()
        self.set_zorder(zorder)
        self.picture = np.zeros((1, 1, 3), np.uint8)

    def draw(self, renderer: RendererBase) -> None:
        """Copy it."""
        opaque = np.full((*self.picture.shape[:2], 1), 255, np.uint8)
        renderer.draw_image(renderer.new_gc(), 0, 0, np.concatenate([self.picture, opaque], axis=2)[::-1])


def write_frames(
    path: Path,
    draw: Callable[[int, Axes], np.ndarray],
    frames: int,
    *,
    rate: float,
    dpi: float,
    progress: Progress | None = None,
) -> Path:
    """Write a film; a stopped one leaves no file.

    Args:
        draw: Draws what moves in a frame into axes whose units are pixels, and returns the picture behind it.
        frames: How many.
        rate: Frames per second.
    """
    with style.context():
        figure = Figure(SIZE, dpi=dpi)
        ax = figure.add_axes((0, 0, 1, 1))
        wide, tall = (round(side * dpi) for side in SIZE)
        behind = _Picture(zorder=-1)
        figure.add_artist(behind)
        writer = encoder(path, rate)
        path.parent.mkdir(parents=True, exist_ok=True)
        fresh = path.with_name(f".{path.stem}.new{path.suffix}")
        try:
            with writer.saving(figure, str(fresh), dpi):
                for frame in range(frames):
                    ax.clear()
                    ax.set(xlim=(0, wide), ylim=(0, tall))
                    ax.set_axis_off()
                    behind.picture = draw(frame, ax)
                    writer.grab_frame()
                    if progress is not None:
                        progress(frame + 1, frames)
            os.replace(fresh, path)
        finally:
            fresh.unlink(missing_ok=True)
    return path
