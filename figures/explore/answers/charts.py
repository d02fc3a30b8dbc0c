"""The data of a figure of drift and curvature, for the charts of the stage and its map of models."""

from __future__ import annotations

from typing import Any

from figures import gallery
from figures.explore.ask import Ask
from figures.page import charts as page
from landscape.plugins import require_known


def charts(ask: Ask, figure: str, runs: list[str], stored: bool = True) -> dict[str, Any]:
    """What `figures.page.charts.charts` returns; or absent, a line, and cost, in words, where it is not computed yet.

    Args:
        figure: One of `figures.page.charts.CHARTS`, or MAP.
        runs: Names of runs: one, or those of the map.
        stored: Whether nothing is computed; else it is, in a process of its own.

    Raises:
        ValueError, LookupError: If there is no such figure, or the runs cannot answer.
    """
    require_known("figure with charts", figure, (*page.CHARTS, page.MAP))
    opened = [ask.run(name, -1) for name in runs]
    try:
        return page.stored(opened, figure)
    except page.NotStored as missing:
        if stored:
            return {"absent": str(missing), "cost": gallery.constant(figure, "COST")}
    return dict(ask.long(page.charts, opened, figure, title=f"figure {figure}"))
