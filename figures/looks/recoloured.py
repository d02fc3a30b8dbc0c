"""Colours of a drawn figure on its ground: seen on a dark one, and opaque for formats without transparency."""

import logging
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.collections import Collection, QuadMesh
from matplotlib.colors import to_rgb, to_rgba_array
from matplotlib.contour import ContourSet
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import FancyBboxPatch, Patch
from matplotlib.text import Text

from figures.looks.palette import GROUNDS

SEEN, DARK = 3.0, 0.2
"""Contrast from which on a colour is seen, as in the report; brightness up to which a ground is dark."""

MARKER = ("markerfacecolor", "markeredgecolor")


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
    for artist in {part for root in shown for part in root.findobj() if not isinstance(part, FancyBboxPatch)} - behind:
        for name in [name for name in _names(artist) if name not in MARKER]:
            if name != "edgecolor" or not _colours(artist, "facecolor")[:, 3].any():  # an area is seen without its edge
                _paint(artist, name, [_seen(colour, ground) for colour in _colours(artist, name)])
        marker = [colour for name in MARKER for colour in _colours(artist, name) if colour[3]]
        if not any(_contrast(colour, ground) >= SEEN for colour in marker):  # one of face and edge is enough
            for name in MARKER:
                _paint(artist, name, [_seen(colour, ground) for colour in _colours(artist, name)])


@contextmanager
def without_transparency(figure: Figure) -> Iterator[None]:
    """For the time of the block, a figure in the colours that it has on its paper, none of them transparent."""
    paper, before = np.array(to_rgb(figure.get_facecolor())), list[tuple[Artist, dict[str, Any]]]()
    for artist in figure.findobj():
        colours = {name: _colours(artist, name) for name in _names(artist)}
        if any(((shown[:, 3] > 0) & (shown[:, 3] < 1)).any() for shown in colours.values()):
            before.append((artist, {name: getattr(artist, f"get_{name}")() for name in ("alpha", *colours)}))
            artist.set_alpha(None)
            for name, shown in colours.items():
                _paint(artist, name, [np.append(paper + one[3] * (one[:3] - paper), one[3] > 0) for one in shown])
    log = logging.getLogger("matplotlib.backends.backend_ps")
    told, log.disabled = log.disabled, True  # pale outlines of texts are left, nearly opaque
    try:
        yield
    finally:
        log.disabled = told
        for artist, given in before:
            artist.set(**given)


def _is_map(root: Artist) -> bool:
    """Whether a panel is filled by coloured areas."""
    if not isinstance(root, Axes):
        return False
    filled = [isinstance(part, QuadMesh) or (isinstance(part, ContourSet) and part.filled) for part in root.collections]
    return any(filled) or bool(root.images)


def _names(artist: Artist) -> tuple[str, ...]:
    """What matplotlib calls the colours of an artist; none of one whose colours follow from numbers."""
    if isinstance(artist, Line2D):
        return ("color", *MARKER)
    if isinstance(artist, Text):
        return ("color",)
    is_area = isinstance(artist, Patch) or (isinstance(artist, Collection) and artist.get_array() is None)
    return ("facecolor", "edgecolor") if is_area else ()


def _colours(artist: Artist, name: str) -> np.ndarray:
    """Its colours with their opacity, shape (n, 4); none that it does not have."""
    colours = to_rgba_array(getattr(artist, f"get_{name}")()) if name in _names(artist) else np.zeros((0, 4))
    if isinstance(artist, Line2D | Text) and (alpha := artist.get_alpha()) is not None:
        colours[:, 3] *= alpha
    return colours


def _paint(artist: Artist, name: str, colours: Sequence[np.ndarray]) -> None:
    if colours:
        artist.set(**{name: colours if isinstance(artist, Collection) else tuple(colours[0])})


def _seen(colour: np.ndarray, ground: np.ndarray) -> np.ndarray:
    """A colour with its opacity, as it is seen on a dark ground."""
    parts, opacity = colour[:3], colour[3:]
    if _contrast(parts, ground) < SEEN and np.ptp(parts) < 0.05:  # a grey
        parts = ground + (1 - parts.mean()) * (np.array(to_rgb(GROUNDS["dark"][1])) - ground)
    while _contrast(parts, ground) < SEEN:
        parts = parts + 0.1 * (1 - parts)
    return np.concatenate([parts, opacity])


def _contrast(colour: np.ndarray, ground: np.ndarray) -> float:
    """Ratio of brightness, as the Web Content Accessibility Guidelines have it."""
    low, high = sorted((_brightness(colour), _brightness(ground)))
    return (high + 0.05) / (low + 0.05)


def _brightness(colour: np.ndarray) -> float:
    parts = np.asarray(colour)[:3]
    return float(np.where(parts > 0.04045, ((parts + 0.055) / 1.055) ** 2.4, parts / 12.92) @ (0.2126, 0.7152, 0.0722))
