"""Named figures, one file each; the file name, with dashes, is the public name.

A file's docstring begins with what the figure shows. It holds

    NEEDS                     what runs it takes, in words
    COST                      how long data() takes, one of COSTS
    data(runs, **options)     computes what is drawn, or takes it from the runs' cached results
    draw(ds)                  draws that dataset

`load` checks both: a figure draws every run of a list or refuses, of `AnyOf(runs)` a part, and states what it shows.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol, cast

from drift.plugins import trust
from landscape import outside, plugins

if TYPE_CHECKING:
    from collections.abc import Sequence

    import xarray as xr
    from matplotlib.figure import Figure

    from drift.runs.run import Run
    from figures.gallery._checked import CheckedFigure
    from figures.selection.run_selection import AnyOf

__all__ = ["COSTS", "AnyOf", "NamedFigure", "constant", "load", "names", "require"]


def __getattr__(name: str) -> Any:
    """`AnyOf`, which needs torch, where it is asked for; a list of figures does without."""
    if name == "AnyOf":
        from figures.selection.run_selection import AnyOf

        return AnyOf
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


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


def require(name: str) -> None:
    """Refuse a name that no figure has; no figure of the gallery is imported, code of one's own is.

    Raises:
        ValueError: If there is none; lists what there is and the nearest match. Or if it is code that is not trusted.
    """
    plain, available = name.replace("_", "-"), names()
    if plain not in available and _own(name) is None:
        raise ValueError(plugins.unknown("figure", plain, available) + " A new one is one file in figures/gallery/.")


def load(name: str) -> CheckedFigure:
    """The figure called `name`, whose data and picture state what they show.

    It is one of the gallery, an entry point, or FILE.py:NAME or module:NAME of one's own: a class, module or other
    object with NEEDS, COST, `data` and `draw`, as a file of the gallery has them.

    Raises:
        ValueError: As `require`.
    """
    require(name)
    from figures.gallery._checked import check

    own = _own(name)
    return check(cast(NamedFigure, plugins.load(__name__, name, "figure")) if own is None else own)


def constant(name: str, what: str) -> str:
    """NEEDS or COST of a figure, read from the source of its file; nothing is imported.

    Raises:
        ValueError: If there is no such figure.
    """
    if (own := _own(name)) is not None:
        return str(getattr(own, what, "")) or "not said"
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
    """Name and digest of the source of a figure that is none of this package; nothing for one that is."""
    recorded = plugins.recorded_name(__name__, name, "figure")
    return {"figure": outside.portable(recorded), "source_digest": outside.digest(recorded)} if _own(name) else {}


def _own(name: str) -> NamedFigure | None:
    """A figure that is none of this package; None where the name is one of it, or of none."""
    plain = name.replace("-", "_")
    if plain in plugins.names(__name__):
        return None
    if not outside.is_outside(name) and name not in outside.entry_points(__name__):
        return None
    figure = trust.load(__name__, name, "figure")
    figure = figure() if isinstance(figure, type) else figure
    if absent := [part for part in ("NEEDS", "COST", "data", "draw") if not hasattr(figure, part)]:
        raise ValueError(
            f"figure {name} has no {absent[0]}; give a class or an object with NEEDS, COST, data and draw."
        )
    return cast(NamedFigure, figure)
