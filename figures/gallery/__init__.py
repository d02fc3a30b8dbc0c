"""Named figures, one file each; the file name, with dashes, is the public name.

A file's docstring begins with what the figure shows. It holds

    NEEDS                     what runs it takes, in words
    COST                      how long data() takes, one of COSTS
    data(runs, **options)     computes what is drawn, or takes it from the runs' cached results
    draw(ds)                  draws that dataset
"""

from __future__ import annotations

import ast
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from landscape import plugins

if TYPE_CHECKING:
    from collections.abc import Sequence

    import xarray as xr
    from matplotlib.figure import Figure

    from drift.run import Run

__all__ = ["COSTS", "NamedFigure", "constant", "load", "names"]

COSTS = ("seconds", "seconds a run", "a minute a run", "minutes a run")
"""What a figure costs for models of some ten thousand parameters on one core; what is cached costs nothing again."""


class NamedFigure(Protocol):
    """What a file of the gallery holds."""

    NEEDS: str
    COST: str

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


def constant(name: str, what: str) -> str:
    """NEEDS or COST of a figure, read from the source of its file; nothing is imported.

    Raises:
        ValueError: If there is no such figure.
    """
    plain = plugins.require(__name__, name, "figure")
    for node in ast.parse((Path(__file__).parent / f"{plain}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == what:
            return str(ast.literal_eval(node.value))
    return ""
