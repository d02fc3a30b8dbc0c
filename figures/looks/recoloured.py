"""Colours of a drawn figure on its ground: seen on a dark one, and opaque for formats without transparency."""

import logging
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection, QuadMesh
from matplotlib.colors import to_rgb, to_rgba_array
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch
from matplotlib.text import Text

from figures.looks.palette import GROUNDS

SEEN, DARK = 3.0, 0.1
"""Contrast from which on a colour is seen, as in the report; brightness up to which a ground is dark."""

MARKER, AREA = {"markerfacecolor", "markeredgecolor"}, {"facecolor", "edgecolor"}
"""One of both is enough to see a marker; an area is seen by its face."""


def stand_out(roots: Iterable[Artist]) -> None:
    """On a dark ground, turn greys that are not seen into pale ones, and make other colours paler until they are seen.

    Maps and what is drawn on them stay as they are, and so does all on a light ground.

    Args:
        roots: Panels, legends and texts; with all that they contain.
    """
    ground = np.array(to_rgb(mpl.rcParams["axes.facecolor"]))
    if _brightness(ground) > DARK:
        return
    shown = [root for root in roots if not _is_map(root)]
    behind = {ax.patch for root in shown for ax in root.findobj(Axes)}
    for artist in {artist for root in shown for artist in root.findobj()} - behind:
        colours = _colours(artist)
        seen = {name: np.array([_seen(row, ground) for row in rows]) for name, rows in colours.items()}
        if seen.keys() >= MARKER and (colours["markerfacecolor"][:, :3] == ground).any():
            seen["markerfacecolor"] = colours["markerfacecolor"]  # hollow ones stay so
        elif any(len(colours[name]) and (colours[name] == seen[name]).all() for name in MARKER & seen.keys()):
            seen = {"color": seen["color"]}
        elif seen.keys() == AREA and colours["facecolor"][:, 3:].any():
            del seen["edgecolor"]
        _paint(artist, seen)


@contextmanager
def without_transparency(figure: Figure) -> Iterator[None]:
    """For the time of the block, a figure in the colours that it has on its paper, none of them transparent."""
    paper, before = np.array(to_rgb(figure.get_facecolor())), list[tuple[Artist, dict[str, Any]]]()
    for artist in figure.findobj():
        colours = _colours(artist)
        if any(0 < row[3] < 1 for rows in colours.values() for row in rows):
            before.append((artist, {name: getattr(artist, f"get_{name}")() for name in ("alpha", *colours)}))
            artist.set_alpha(None)
            for rows in colours.values():
                rows[:, :3], rows[:, 3] = paper + rows[:, 3:] * (rows[:, :3] - paper), rows[:, 3] > 0
            _paint(artist, colours)
    log = logging.getLogger("matplotlib.backends.backend_ps")
    log.disabled = True  # pale outlines of texts are left, nearly opaque
    try:
        yield
    finally:
        log.disabled = False
        for artist, was in before:
            artist.set(**was)


def _is_map(root: Artist) -> bool:
    """Whether a panel is filled by coloured areas."""
    layers = [*root.images, *root.collections] if isinstance(root, Axes) else []
    return any(isinstance(layer, AxesImage | QuadMesh) or getattr(layer, "filled", False) for layer in layers)


def _colours(artist: Artist) -> dict[str, np.ndarray]:
    """Its colours with their opacity, shape (n, 4), by what matplotlib calls them; n is 0 of no colour."""
    names = {"color", *MARKER} if isinstance(artist, Line2D) else {"color"} if isinstance(artist, Text) else set()
    if isinstance(artist, Patch | Collection) and not isinstance(artist, FancyBboxPatch):  # the box of a legend
        names = AREA
    colours = {name: to_rgba_array(getattr(artist, f"get_{name}")()) for name in names}
    for rows in colours.values() if names != AREA else ():
        rows[:, 3] *= 1 if artist.get_alpha() is None else artist.get_alpha()
    return colours


def _paint(artist: Artist, colours: Mapping[str, np.ndarray]) -> None:
    several = isinstance(artist, Collection)
    artist.set(**{name: rows if several else tuple(rows[0]) for name, rows in colours.items() if len(rows)})


def _seen(colour: np.ndarray, ground: np.ndarray) -> np.ndarray:
    """A colour with its opacity, as it is seen on a dark ground."""
    paler = colour[:3]
    if _contrast(paler, ground) < SEEN and np.ptp(paler) < 0.05:  # a grey
        paler = ground + (1 - paler.mean()) * (np.array(to_rgb(GROUNDS["dark"][1])) - ground)
    while _contrast(paler, ground) < SEEN:
        paler = paler + 0.1 * (1 - paler)
    return np.append(paler, colour[3])


def _contrast(colour: np.ndarray, ground: np.ndarray) -> float:
    """With a darker ground, as the Web Content Accessibility Guidelines have it."""
    return (_brightness(colour) + 0.05) / (_brightness(ground) + 0.05)


def _brightness(colour: np.ndarray) -> float:
    linear = np.where(colour > 0.04045, ((colour + 0.055) / 1.055) ** 2.4, colour / 12.92)
    return float(linear @ (0.2126, 0.7152, 0.0722))
