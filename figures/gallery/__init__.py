"""Named figures, one file each; the file name, with dashes, is the public name.

A file's docstring begins with what the figure shows. It holds

    NEEDS                     what runs it takes, in words
    COST                      how long data() takes, one of COSTS
    data(runs, **options)     computes what is drawn, or takes it from the runs' cached results
    draw(ds)                  draws that dataset

Of one run, or of each of several, `_selected` makes `data` from what is computed of a run. `load` adds the checks: a
figure shows every run of a list or refuses, may leave out some of `AnyOf(runs)`, and states what it shows.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from drift.plugins import trust
from landscape import plugins
from landscape.plugins import outside

if TYPE_CHECKING:
    from collections.abc import Sequence

    import xarray as xr
    from matplotlib.figure import Figure

    from drift.runs.run import Run
    from figures.gallery._checked import CheckedFigure
    from figures.selection.run_selection import AnyOf

__all__ = ["COSTS", "AnyOf", "NamedFigure", "constant", "load", "names", "require"]


def __getattr__(name: str) -> Any:
    """Import `AnyOf`, which needs torch, on first use."""
    if name == "AnyOf":
        from figures.selection.run_selection import AnyOf

        return AnyOf
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


COSTS = ("seconds", "seconds per run", "a minute per run", "minutes per run")
"""Times of `data` for models of some ten thousand parameters on one core, without cached results."""


class NamedFigure(Protocol):
    """What a file of the gallery contains."""

    NEEDS: str
    COST: str

    def data(self, runs: Sequence[Run], **options: Any) -> xr.Dataset:
        """The dataset that `draw` shows.

        Raises:
            LookupError: If it can show none of the runs; the message ends in the command that trains one.
        """

    def draw(self, ds: xr.Dataset) -> Figure:
        """The figure of a dataset that `data` returned."""


def names() -> list[str]:
    """Names of all figures, sorted."""
    return [name.replace("_", "-") for name in plugins.names(__name__)]


def require(name: str) -> None:
    """Refuse the name of no figure; imports no figure of the gallery, but code of the user.

    Raises:
        ValueError: If there is no such figure, with the list and the nearest match; or if its code is not trusted.
    """
    plain, available = name.replace("_", "-"), names()
    if plain not in available and _outside(name) is None:
        raise ValueError(plugins.unknown("figure", plain, available) + " A new one is one file in figures/gallery/.")


def load(name: str) -> CheckedFigure:
    """The figure called `name`; its data and picture state what they show.

    The name of a gallery file, of an entry point, or FILE.py:NAME or module:NAME of a user's class, module or other
    object with NEEDS, COST, `data` and `draw`.

    Raises:
        ValueError: As `require`.
    """
    require(name)
    from figures.gallery._checked import check

    if (figure_code := _outside(name)) is not None:
        return check(figure_code, name=name, styled=False)
    return check(cast(NamedFigure, plugins.load(__name__, name, "figure")), name=name.replace("_", "-"), styled=True)


def constant(name: str, what: str) -> str:
    """NEEDS or COST of a figure, read from the source of its file; nothing is imported.

    Raises:
        ValueError: If there is no such figure.
    """
    if (figure_code := _outside(name)) is not None:
        return str(getattr(figure_code, what, "")) or "not stated"
    plain = plugins.require(__name__, name, "figure")
    for node in ast.parse((Path(__file__).parent / f"{plain}.py").read_text(encoding="utf-8")).body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == what:
            return str(ast.literal_eval(node.value))
    return ""


def file_stem(name: str) -> str:
    """Stem of the files that a figure is written to: its public name, with dashes."""
    plain = re.sub(r"[^\w.-]+", "-", outside.short(name)).strip("-")
    return plain.replace("_", "-")


def origin(name: str) -> dict[str, str]:
    """Name and source digest of a figure outside this package; empty for figures of the gallery."""
    recorded = plugins.recorded_name(__name__, name, "figure")
    return {"figure": outside.portable(recorded), "source_digest": outside.digest(recorded)} if _outside(name) else {}


def _outside(name: str) -> NamedFigure | None:
    """The figure outside this package with this name; None where it is a figure of the gallery, or none at all."""
    plain = name.replace("-", "_")
    if plain in plugins.names(__name__):
        return None
    if not outside.is_outside(name) and name not in outside.entry_points(__name__):
        return None
    figure = trust.load(__name__, name, "figure")
    figure = figure() if isinstance(figure, type) else figure
    if absent := [member for member in ("NEEDS", "COST", "data", "draw") if not hasattr(figure, member)]:
        raise ValueError(
            f"figure {name} has no {absent[0]}; give a class or an object with NEEDS, COST, data and draw."
        )
    return cast(NamedFigure, figure)
