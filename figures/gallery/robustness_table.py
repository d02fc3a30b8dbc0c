"""Accuracy lost under noise on the inputs after few rounds, the paper's own numbers beside (LSS paper, Table 6)."""

from collections.abc import Callable, Sequence
from functools import partial

import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.landscapes.model_quality import noise_robustness
from drift.runs.run import Run
from figures.gallery import _table_figure, _tables
from landscape.measures.robustness import LEVELS

NEEDS = "runs of any methods in any settings, that kept the global models of the evaluated rounds"

COST = "seconds per run"


def data(
    runs: Sequence[Run],
    *,
    after: Sequence[int] = (1, 3),
    levels: Sequence[float] = LEVELS,
    draws: int = 3,
    paper: str = "",
    item: str = "",
) -> xr.Dataset:
    """measured (and printed, quick) over row, column and seed: accuracy lost, in points; NaN where rounds are fewer.

    Args:
        after: Rounds trained when the model is taken.
        levels: Amplitudes of the uniform noise, as fractions of an input's range.
        draws: Noises averaged.
        paper, item: Whose printed numbers are added, such as lss and "Table 6".
    """
    numbers: dict[str, Callable[[Run], float]] = {}
    for level in levels:
        drop = partial(_drop, level=level, levels=list(levels), draws=draws)
        numbers |= {
            f"{255 * level:.3g}/255, {name}": table for name, table in _tables.numbers_after(drop, after).items()
        }
    ds = _tables.tabulate_several(runs, numbers, paper=paper, item=item)
    ds = _tables.label_numbers(ds, "accuracy drop", "points")
    return ds.assign_attrs(draws=draws)


def draw(ds: xr.Dataset) -> Figure:
    """A table; columns of the paper are grey."""
    title = f"points of test accuracy lost under uniform noise, after R rounds, mean of {ds.attrs['draws']} draws"
    return _table_figure.draw_table(ds, title)


def _drop(run: Run, *, level: float, levels: list[float], draws: int, round: int) -> float:
    if round not in run.rounds():
        return float("nan")
    drops = run.cached(noise_robustness, round=round, levels=levels, draws=draws)
    return 100 * float(drops["drop"].sel(value=level, method="nearest", tolerance=1e-6))  # files have six digits
