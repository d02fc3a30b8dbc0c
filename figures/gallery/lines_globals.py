"""Loss and error on lines between successive global models, early to late (IMA paper, Fig. 5b)."""

from collections.abc import Sequence

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses import per_round
from drift.analyses.landscapes import planes
from drift.runs.run import Run
from figures.axes import surfaces
from figures.gallery import _runs, _selected, _stack
from figures.looks import style

NEEDS = "one run that kept the global models of two rounds or more"

COST = "seconds per run"


@_selected.one_run
def data(
    run: Run, *, gap: int = 1, lines: int = 4, points: int = 41, rounds: Sequence[int] | None = None
) -> xr.Dataset:
    """loss (nats) and error (fraction) over round and t; t = 0 is that round's global model, t = 1 one `gap` later.

    Args:
        method, seed: Whose run is shown; by default that of FedAvg, or of the first method, with the smallest seed.
        gap: Kept rounds between the two ends.
        lines: How many, evenly spread over the run.
        points: Evaluations on a line.
        rounds: Rounds at which lines start, whatever `lines`; each kept its global model, as did that `gap` later.
    """
    stored = run.kept("globals")
    if len(stored) <= gap:
        raise _runs.missing(
            f"run {run.name} kept {len(stored)} global models, but the lines need {gap + 1}", _runs.KEEP_GLOBALS
        )
    seconds = dict(zip(stored, stored[gap:], strict=False))
    firsts = per_round.evenly_spaced([*seconds], lines) if rounds is None else list(rounds)
    if absent := [index for index in firsts if index not in seconds]:
        raise LookupError(f"no line of run {run.name} starts at round {absent[0]}; name rounds that kept the globals.")
    pairs = [(first, seconds[first]) for first in firsts]
    results = [run.cached(planes.global_line, rounds=pair, points=points).drop_attrs(deep=False) for pair in pairs]
    ends = {"round": [first for first, _ in pairs], "second": ("round", [second for _, second in pairs])}
    joined = xr.concat([line[_stack.measured(line)] for line in results], "round", join="exact")
    return joined.assign_coords(ends)


def draw(ds: xr.Dataset) -> Figure:
    """Loss and error, one line per pair of rounds."""
    variables = _stack.measured(ds)
    figure, axs = style.panels(1, len(variables), height=2.4)
    colours = style.steps(ds.sizes["round"])
    for ax, variable in zip(axs.flat, variables, strict=True):
        for index, colour in enumerate(colours):
            line = ds.isel(round=index)
            label = f"rounds {int(line['round'])} to {int(line.second)}"
            surfaces.profile(line, ax=ax, variable=variable, log=variable == "loss", color=colour, label=label)
        surfaces.ends(ax, "earlier", "later")
    return style.key(figure, axs.flat, columns=4)
