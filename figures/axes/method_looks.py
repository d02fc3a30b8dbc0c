"""How the lines, dots and bars of a method look, in every figure."""

from __future__ import annotations

from typing import Any

import matplotlib as mpl

from figures.looks import palette, style


def line_look(name: str | None, **look: Any) -> dict[str, Any]:
    """Colour, dashes and label of a method's line; its marker wherever there is one, or where all are dashed.

    A method that averages another one always has markers, which are hollow.
    """
    if name is None:
        return look
    artist = {"color": style.colour(name), "linestyle": style.dash(name), "label": style.label(name)}
    averages = bool(palette.base(name))
    if "marker" in look:
        look = {**look, "marker": style.marker(name)}
    elif averages or look.get("linestyle", "-") != "-":
        size = 3.5 if averages else 2.5
        look = {"marker": style.marker(name), "markersize": size, "markevery": 0.13, **look}
    artist |= {"markerfacecolor": mpl.rcParams["axes.facecolor"], "markeredgewidth": 0.8} if averages else {}
    return {**artist, **look}


def method_look(name: str | None) -> dict[str, Any]:
    """Colour and label of a method's lines or bars; none without a method."""
    return {} if name is None else {"color": style.colour(name), "label": style.label(name)}
