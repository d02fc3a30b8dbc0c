"""One round, relived: the global model splits, its clients slide into their own basins, and their mean snaps back."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
import xarray as xr
from matplotlib.axes import Axes
from matplotlib.colors import to_rgb
from matplotlib.figure import Figure

from drift.runs.run import Run
from figures.axes.relief import EDGE, MEAN, MODEL
from figures.films.encoders import require_encoder
from figures.films.lit_surface import draw_surface, pixels, require_ground, write_names
from figures.films.relived_round import COSTS, RelivedRound, relived_rounds
from figures.films.stage import Progress, blended, eased, empty, require_least, still, usual_dpi, write_frames
from figures.looks import palette, style
from figures.selection.identity import add_identity

SECONDS = 8.0
"""Length of the film."""

SLIDE, SNAP, COST = (0.1, 0.5), (0.6, 0.71), (0.75, 0.92)
"""When the clients train, when their mean is taken and when the bars fill, as shares of the film."""

BARS = 0.2
"""Height of the lower end of the surface, below which the bars are, as a share of the picture."""

COLOURS = ("#ff5d5d", "#ffd23f", "#4cc9f0", "#f78cff", "#ff9f1c", "#b8f35a")
"""Of the clients, all light: they lie on a dark map."""

CHAPTERS = (
    (0.0, "the server sends its model"),
    (SLIDE[0], "each client trains on its own data"),
    (SNAP[0], "the server combines their models"),
    (COST[0], "loss due to sampling drift and to local steps"),
)
"""What happens, and from when on."""


def film_round(
    runs: Sequence[Run],
    path: str | Path,
    *,
    round: int = -1,
    points: int = 21,
    rate: float = 15.0,
    dpi: int | None = None,
    ground: str = "dark",
    progress: Progress | None = None,
) -> Path:
    """Write eight seconds of one round, as GIF, MP4 or WebM by the suffix; of two runs side by side.

        figures.film_round([run], "round.gif", points=5)

    The plane goes through the model that clients received, the new global model, and the client furthest from the line
    between both. Models are dots at the feet of their projections. Each client slides along the steps of its local
    training, which is run again from the record; where that does not give the recorded model, its way is straight and
    the caption says so. Where a client's loss on its own samples is among the lowest quarter, the surface has its
    colour. The bars are the losses that `drift.counterfactual` finds for sampling drift (`sampling`) and for local
    steps (`local`), below zero where the part helps, with their numbers once they are full; without them the caption
    says why.

    Args:
        runs: One run that kept its clients, or two whose cohorts in the round are the same.
        path: File to write.
        round: Which one; negative counts from the last one that kept its clients.
        points: Grid points per axis of the plane.
        rate: Frames per second.
        dpi: Pixels per inch of a frame of 9.6 x 5.4 inches; by default 200, which makes 1920 x 1080, for a GIF 100.
        ground: "dark" or "light".
        progress: Called with (frames done, all frames).

    Returns:
        The path.

    Raises:
        ValueError: If the suffix or ground is unknown, a number too small, or cohorts differ.
        LookupError: If the encoder is not installed, or the round kept no clients.
    """
    path = Path(path)
    require_encoder(path)
    require_ground(ground)
    require_least(points=(points, 3), rate=(rate, None))
    rounds, dpi = relived_rounds(runs, round, points, SAMPLES), usual_dpi(path, dpi)
    costs = [cost for relived in rounds for cost in relived.costs.values()]
    reach = min([0.0, *costs]), max([0.0, *costs, 1e-9])
    panels = [_Panel(relived, column, len(rounds), ground, reach) for column, relived in enumerate(rounds)]
    pictures = []
    for tinted in (False, True):
        figure = empty(ground, dpi)
        with style.context():
            for panel in panels:
                panel.paint(figure, tinted)
            pictures.append(still(figure))
    rate = 100 / max(1, int(100 / rate + 0.5)) if path.suffix == ".gif" else rate  # a GIF counts hundredths
    total = max(2, int(SECONDS * rate + 0.5))

    def draw(frame: int, ax: Axes) -> np.ndarray:
        for panel in panels:
            panel.draw(ax, frame / (total - 1))
        return blended(pictures[0], pictures[1], eased(frame / (total - 1), *SLIDE))

    return write_frames(path, draw, total, rate=rate, dpi=dpi, progress=progress)


SAMPLES = 1000
"""Samples of a loss at most."""


class _Panel:
    """The part of the picture that shows one run: the surface, drawn once, and what moves over it."""

    def __init__(self, relived: RelivedRound, column: int, count: int, ground: str, reach: tuple[float, float]) -> None:
        self.relived, self.ground, self.ink, self.reach = relived, ground, palette.GROUNDS[ground][1], reach
        self.left, self.width = column / count, 1 / count

    def paint(self, figure: Figure, tinted: bool) -> None:
        """The surface, with the basins of the clients or without, and what is written beside it."""
        scene, relived = self.relived.scene, self.relived
        colours = mpl.colormaps[style.sequential()]((scene.z - scene.levels[0]) / scene.span)[..., :3]
        if tinted:
            most, which = relived.tints.max(0)[..., None], relived.tints.argmax(0)
            colours = colours + 0.8 * np.sqrt(most) * (
                np.array([to_rgb(colour) for colour in COLOURS])[which] - colours
            )
        low = BARS if relived.costs else 0.04
        ax = figure.add_axes((self.left, low, self.width, 0.89 - low), projection="3d")
        draw_surface(scene, ax, self.ground, colours=colours)
        self.axes = ax
        label = f"{palette.label(relived.run.label)}, round {relived.index}"
        figure.text(self.left + 0.02, 0.93, label, fontsize=14, color=self.ink)
        identity = add_identity(xr.Dataset(), [relived.run], [relived.run], {}).attrs
        notes = textwrap.fill("; ".join(relived.notes), int(200 * self.width))
        text = f"{identity['identity_data']}, {identity['identity_partition']}\n{notes}"
        figure.text(self.left + 0.02, 0.015, text, fontsize=6.5, color=self.ink, alpha=0.8, va="bottom")

    def draw(self, ax: Axes, time: float) -> None:
        """What moves, at a time from 0 to 1, into axes in pixels."""
        relived, slid, back = self.relived, eased(time, *SLIDE), eased(time, *SNAP) ** 2
        places = relived.places(slid, back)
        for path, here, colour in zip(relived.passed(slid), places, COLOURS, strict=False):
            ax.plot(*self._at(path).T, color=colour, linewidth=2.2, alpha=1 - 0.7 * back, zorder=3)
            if 0 < back < 1:
                straight = path[-1] + np.linspace(0, 1, 30)[:, None] * (here - path[-1])
                ax.plot(*self._at(straight).T, color=colour, linewidth=1.4, zorder=3)
        dots: dict[str, Any] = {"marker": "o", "linestyle": "none", "markeredgecolor": EDGE}
        size = 9 if self.width > 0.6 else 7
        start, end = self._at(np.stack([relived.start, relived.end]))
        ax.plot(*start, color=MODEL, markersize=size * (1.2 - 0.4 * slid), zorder=4, **dots)
        names, points = ["global model"], [start]
        if back < 1 and slid > 0:
            for point, colour in zip(self._at(places), COLOURS, strict=False):
                ax.plot(*point, color=colour, markersize=size, zorder=5, **dots)
            names = [f"client {client}" for client in relived.clients] if back == 0 and slid > 0.3 else []
            points = list(self._at(places))
        elif back >= 1:
            names, points = ["new global model"], [end]
            wave = eased(time, SNAP[1], SNAP[1] + 0.08)
            ring: dict[str, Any] = {"markerfacecolor": "none", "markeredgecolor": MEAN, "markeredgewidth": 2}
            ax.plot(*end, marker="o", markersize=size + 60 * wave, alpha=1 - wave, zorder=6, **ring)
            ax.plot(*end, color=MEAN, markersize=1.3 * size, zorder=6, **dots)
        write_names(ax, np.array(points)[: len(names)], names, size=size)
        (_, wide), (_, tall) = ax.get_xlim(), ax.get_ylim()
        chapter = next(text for begin, text in reversed(CHAPTERS) if time >= begin)
        ax.text((self.left + 0.02) * wide, 0.905 * tall, chapter, fontsize=10, color=self.ink, va="center")
        self._bars(ax, eased(time, *COST), wide, tall)

    def _at(self, points: np.ndarray) -> np.ndarray:
        """Where points (p, 2) of the plane lie on the picture, on the surface, in pixels."""
        return pixels(self.axes, self.relived.scene.on_surface(points))

    def _bars(self, ax: Axes, filled: float, wide: float, tall: float) -> None:
        """The costs, so far filled, and full their numbers; to the left of the line where a part helps."""
        low, high = self.reach
        unit = 0.5 * self.width * wide / (high - low)
        zero, right = (self.left + 0.3 * self.width) * wide - low * unit, (self.left + 0.82 * self.width) * wide
        for row, (name, cost) in enumerate(self.relived.costs.items()):
            y, (label, colour) = (BARS - 0.035 - 0.042 * row) * tall, COSTS[name]
            ax.barh(y, filled * cost * unit, 0.026 * tall, left=zero, color=colour, zorder=3)
            look: dict[str, Any] = {"color": self.ink, "fontsize": 9, "va": "center"}
            ax.text((self.left + 0.28 * self.width) * wide, y, label, ha="right", **look)
            if filled == 1:
                ax.text(right, y, f"{cost:+.3f} nats", **look)
            ax.plot([zero, zero], [y - 0.02 * tall, y + 0.02 * tall], color=self.ink, linewidth=0.8, zorder=4)
