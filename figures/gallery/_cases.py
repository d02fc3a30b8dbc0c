"""Figures with a row of panels per value of a setting."""

from collections.abc import Callable, Sequence

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from drift.runs.run import Run
from figures.gallery import _runs, _stack
from figures.looks import style
from figures.selection import setting_text


def stack_cases(runs: Sequence[Run], by: str, compute: Callable[[Sequence[Run]], xr.Dataset]) -> xr.Dataset:
    """Results of `compute` on the runs of each value of a setting, along `case`; on all runs without a setting.

    Args:
        by: The setting by key, such as local.lr_decay; "" for none.

    Raises:
        LookupError: If no run has this setting.
    """
    if not by:
        return compute(runs)
    selected = _runs.select_comparable(runs, [by])
    values = sorted({setting_text.value(run, by) for run in selected} - {None})
    if not values:
        raise LookupError(f"no run has a setting {by}; name one as fedscape sweep --grid does, such as local.lr_decay.")
    results = [compute([run for run in selected if setting_text.value(run, by) == value]) for value in values]
    bare = [result.drop_attrs(deep=False) for result in results]
    joined = xr.concat(bare, "case", join="outer", data_vars="all", coords="minimal", compat="equals")
    joined = joined.assign_coords(case=("case", np.array(values), {"long_name": setting_text.key_label(by)}))
    return _stack.name_runs(joined.assign_attrs({**results[0].attrs, "by": by}), selected)


def split_cases(ds: xr.Dataset) -> list[tuple[str, xr.Dataset]]:
    """Title and dataset of each case; the title is empty where there is one dataset."""
    if "case" not in ds.dims:
        return [("", ds)]
    name = style.text(ds.case)
    return [(f"{name}: {setting_text.value_text(value.item())}", ds.sel(case=value)) for value in ds.case.values]


def share_ranges(axs: np.ndarray) -> None:
    """Set one vertical range per column of panels; only the lowest panel keeps its horizontal label."""
    for column in axs.T:
        style.same_range(*column)
        for ax in column[:-1]:
            ax.set_xlabel("")


def set_title(ax: Axes, text: str) -> None:
    """Write the title of a case above its first panel."""
    if text:
        ax.set_title(text, fontsize=style.small(), loc="left")
