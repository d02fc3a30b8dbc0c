"""The checks around each figure: it shows every run that was named, and its data and picture state what they show."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import wraps
from typing import TYPE_CHECKING, Any

import xarray as xr
from matplotlib.figure import Figure

from drift.runs.run import Run
from figures import style
from figures.axes.footnote import footnote
from figures.selection.identity import add_identity, caption
from figures.selection.run_selection import describe_difference, join_names, refusal, required_runs, select_runs
from landscape.results.zarr_files import sort_names

if TYPE_CHECKING:
    from figures.gallery import NamedFigure


@dataclass(frozen=True)
class CheckedFigure:
    """A figure of the gallery whose runs are checked and whose data and picture carry their identity.

    Args:
        NEEDS, COST: As in its file.
        data: As in its file, with the identity of what is shown in the attributes of its result. Of a list of runs
            all are drawn; of `AnyOf` runs a part may be. Raises ValueError if a run that was named is not drawn,
            LookupError if no run is of a method or seed that an option asks for.
        draw: As in its file, with the identity in a small line below.
    """

    NEEDS: str
    COST: str
    data: Callable[..., xr.Dataset]
    draw: Callable[[xr.Dataset], Figure]


def check(module: NamedFigure, *, styled: bool) -> CheckedFigure:
    """The figure of a file, with these checks.

    Args:
        styled: Whether it is drawn in the style of this project; others draw in their own.
    """
    drawing = style.styled(module.draw) if styled else module.draw

    @wraps(module.data)
    def data(runs: Sequence[Run], **options: Any) -> xr.Dataset:
        wanted = _wanted(module.data, runs, options)
        ds = module.data(runs, **options)
        shown = runs_of(ds, wanted)
        places = {run.folder for run in shown}
        if out := [run for run in required_runs(wanted) if run.folder not in places]:
            why = f"this figure cannot show them with {join_names([run.name for run in shown])}; they differ in"
            raise ValueError(refusal(out, f"{why} {describe_difference(out[0], shown)}"))
        bound = inspect.signature(module.data).bind(runs, **options)
        bound.apply_defaults()
        _, *rest = bound.arguments.items()
        return sort_names(add_identity(ds, shown, wanted, dict(rest)))

    @wraps(module.draw)
    def draw(ds: xr.Dataset) -> Figure:
        figure = drawing(ds)
        footnote(figure, caption(ds))
        return figure

    return CheckedFigure(module.NEEDS, module.COST, data, draw)


def _wanted(figure: Callable[..., Any], runs: Sequence[Run], options: Mapping[str, Any]) -> Sequence[Run]:
    """The runs that the figure's options method, methods, reference and seed select."""
    accepted = inspect.signature(figure).parameters
    methods = options.get("methods", options.get("method"))
    if {"method", "reference"} <= accepted.keys() and {"method", "reference"} & options.keys():
        methods = [options.get(name, accepted[name].default) for name in ("method", "reference")]
    return select_runs(runs, methods, options.get("seed") if "method" in accepted else None)


def runs_of(ds: xr.Dataset, runs: Sequence[Run]) -> list[Run]:
    """The runs that a figure's data name in the attribute `runs`; all where it is absent."""
    if "runs" not in ds.attrs:
        return list(runs)
    rest, shown = f", {ds.attrs['runs']}, ", []
    for run in runs:
        if (name := f", {run.name}, ") in rest:
            shown.append(run)
            rest = rest.replace(name, ", ", 1)
    return shown
