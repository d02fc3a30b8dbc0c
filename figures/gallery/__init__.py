"""Named figures, one file each; the file name, with dashes, is the public name.

A file's docstring begins with what the figure shows. It holds

    NEEDS                     what runs it takes, in words
    data(runs, **options)     computes what is drawn, or takes it from the runs' cached results
    draw(ds)                  draws that dataset
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol, cast

from landscape import plugins

if TYPE_CHECKING:
    from collections.abc import Sequence

    import xarray as xr
    from matplotlib.figure import Figure

    from drift.run import Run

__all__ = ["NamedFigure", "load", "names"]


class NamedFigure(Protocol):
    """What a file of the gallery holds."""

    NEEDS: str

    def data(self, runs: Sequence[Run], **options: Any) -> xr.Dataset:
        """What is drawn.

        Raises:
            LookupError: If no run among them suits; says how to train one.
        """

    def draw(self, ds: xr.Dataset) -> Figure:
        """The figure of a dataset that `data` gave."""


def names() -> list[str]:
    """Names of all figures, sorted."""
    return [name.replace("_", "-") for name in plugins.names(__name__)]


def load(name: str) -> NamedFigure:
    """The figure called `name`.

    Raises:
        ValueError: If there is none; lists what there is and the nearest match.
    """
    plain, known = name.replace("_", "-"), names()
    if plain not in known:
        raise ValueError(plugins.unknown("figure", plain, known) + " A new one is one file in figures/gallery/.")
    return cast(NamedFigure, plugins.load(__name__, plain, "figure"))
