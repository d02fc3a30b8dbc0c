"""The checks around each figure: it shows every run that was named, and its data and picture state what they show."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial, wraps
from typing import TYPE_CHECKING, Any

import xarray as xr
from matplotlib.axes import Axes
from matplotlib.figure import Figure, SubFigure

from drift.runs.run import Run
from figures.axes.finish import finish
from figures.axes.fit import fit, lay_out
from figures.axes.footnote import footnote
from figures.axes.map_heights import fit_heights
from figures.gallery._paired import cut, paired
from figures.looks import look, style
from figures.looks.layout import PAGE
from figures.selection.identity import add_identity, caption
from figures.selection.run_selection import count_differences, join_names, refusal, required_runs, select_runs
from landscape.results import stated
from landscape.results.netcdf_files import sort_names

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
        draw: As in its file, with the identity in a small line below. It also takes the words of a look
            (`figures.looks.look.Look`), but those of the data (methods, paired_to, rounds), and as `ax` or `subfigure`
            a part of another figure, into which it is drawn without that line.
    """

    NEEDS: str
    COST: str
    data: Callable[..., xr.Dataset]
    draw: Callable[..., Figure]


def check(module: NamedFigure, *, name: str, styled: bool) -> CheckedFigure:
    """The figure of a file, with these checks.

    Args:
        name: What refusals call it.
        styled: Whether it is drawn in the style of this project; others draw in their own.
    """
    drawing = style.styled(module.draw) if styled else module.draw

    @partial(stated.states_statistics, statistics=False)
    @wraps(module.data)
    def data(runs: Sequence[Run], **options: Any) -> xr.Dataset:
        drawing = look.current()
        if (methods := drawing.take("methods")) and not options.keys() & {"methods", "method"}:
            runs = select_runs(runs, methods)
        wanted = _wanted(module.data, runs, options)
        with _named_by_record(wanted):
            ds = module.data(runs, **options)
        shown = runs_of(ds, wanted)
        if absent := [name for name in methods or () if name not in {run.label for run in shown}]:
            what = join_names(list(dict.fromkeys(run.label for run in shown)))
            raise ValueError(
                f"figure {name} shows only {what} of these runs, not {join_names(absent)}; name one method."
            )
        if (reference := drawing.take("paired_to")) and "reference" not in options:
            ds = paired(ds, name, reference, shown)
        if rounds := drawing.take("rounds"):
            ds = cut(ds, name, rounds)
        shown_folders = {run.folder for run in shown}
        if out := [run for run in required_runs(wanted) if run.folder not in shown_folders]:
            why = f"this figure cannot show them with {join_names([run.name for run in shown])}; they differ in"
            raise refusal(out, f"{why} {join_names(list(count_differences(out[:1], shown)), 3)}")
        bound = inspect.signature(module.data).bind(runs, **options)
        bound.apply_defaults()
        _, *rest = bound.arguments.items()
        return sort_names(add_identity(ds, shown, wanted, dict(rest)))

    @wraps(module.draw)
    def draw(ds: xr.Dataset, *, ax: Axes | None = None, subfigure: SubFigure | None = None, **words: Any) -> Figure:
        with _going_on(ds, ax, subfigure, words) as begun:
            root = None if ax is None else ax.get_figure(root=True)
            before = [] if root is None else [other for other in root.axes if other is not ax]
            figure = drawing(ds)
            if styled:
                with style.context():
                    _complete(figure, [other for other in figure.axes if other not in before], ds, begun)
            else:
                footnote(figure, caption(ds))
            begun.require_taken(name)
        return figure

    return CheckedFigure(module.NEEDS, module.COST, data, draw)


@contextmanager
def _named_by_record(runs: Sequence[Run]) -> Iterator[None]:
    """Name what the file of a recorded run, which has some variables of a result, does not have."""
    try:
        yield
    except KeyError as absent:
        if not (files := [run for run in runs if run.folder.is_file()]):
            raise
        variable = next(iter(re.findall(r"'(\w+)'", repr(absent.args[0]))), "such result")
        raise LookupError(
            f"{join_names([run.folder.name for run in files])}: no {variable} is stored; give the run's folder."
        ) from None


@contextmanager
def _going_on(
    ds: xr.Dataset, ax: Axes | None, subfigure: SubFigure | None, words: Mapping[str, Any]
) -> Iterator[look.Drawing]:
    """The drawing that data and picture share, or one of its own where the picture has words or a place of its own."""
    asked = look.read(**words) if words else look.current().look
    if ds.attrs.get("paired_to"):
        asked = replace(asked, paired_to=str(ds.attrs["paired_to"]))
    if look.current().going_on and not words and ax is None and subfigure is None and asked == look.current().look:
        yield look.current()
        return
    taken = look.current().taken
    with look.drawing(asked, ax=ax, subfigure=subfigure) as drawing:
        drawing.taken |= taken | ({"paired_to"} if ds.attrs.get("paired_to") else set())
        yield drawing


def _complete(figure: Figure, axs: Sequence[Axes], ds: xr.Dataset, drawing: look.Drawing) -> None:
    """What a look asks of all panels, texts that fit, and the line that states what is shown."""
    if not drawing.composed:
        fit_heights(figure, axs)
    finish(figure, axs, drawing)
    fit(figure, axs)
    if not drawing.composed:
        fit_heights(figure, axs, again=True)
        if style.is_narrow() or figure.get_figheight() >= PAGE:
            _require_room(figure, axs)
    style.stand_out([*axs, *(figure.legends if drawing.ax is None else ())])
    if drawing.take("note") and not drawing.composed:
        footnote(figure, caption(ds))


LEAST = 0.3
"""Height from which on a panel other than a map can be read, inches."""


def _require_room(figure: Figure, axs: Sequence[Axes]) -> None:
    """Refuse panels that are too low to be read, or whose labels leave none of them any room.

    Raises:
        ValueError: With what to do.
    """
    with warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        lay_out(figure)
    panels = [ax for ax in axs if ax.axison and ax.has_data() and ax.get_label() != "<colorbar>"]
    heights = [ax.get_position().height for ax in panels if ax.get_aspect() == "auto"]
    low = min(heights, default=1.0) * figure.get_figheight()
    if low < LEAST or any("constrained_layout" in str(warning.message) for warning in warned):
        raise ValueError(
            f"{len(panels)} panels do not fit a page at this width; give fewer runs or settings, or a larger width."
        )


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
