"""Standard errors of estimates: bars at values, bands along densities."""

import numpy as np
import xarray as xr
from matplotlib.axes import Axes

from figures.axes.curves import split_algorithms
from figures.looks import style
from figures.looks.look import current

ERROR_BARS = "bars: one standard error of each estimate"
"""What `error_bars` draws, in words."""


def error_bars(ds: xr.Dataset, variable: str, *, ax: Axes, over: str) -> None:
    """A bar of NAME_error up and down at each estimate, of every seed; none where it is exact.

    Differences to another method have none: both estimates share their random vectors, so their errors are related.
    """
    if current().look.paired_to:
        current().remark("without the errors of the estimates")
        return
    for name, series in split_algorithms(ds[variable]):
        errors = ds[f"{variable}_error"]
        error = errors if name is None or "algorithm" not in errors.dims else errors.sel(algorithm=name)
        x, y, reach = (array.values.ravel() for array in xr.broadcast(series[over], series, error))
        if (some := reach > 0).any():
            colour = style.CLIENT if name is None else style.colour(name)
            ax.errorbar(x[some], y[some], reach[some], fmt="none", ecolor=colour, elinewidth=0.7, capsize=1.5)
            current().remark(ERROR_BARS)


def error_band(series: xr.DataArray, errors: xr.DataArray, positions: np.ndarray, ax: Axes) -> None:
    """A grey band of one standard error up and down along a density, shape (n,) like its places."""
    reach = (errors.sel(algorithm=series.algorithm) if "algorithm" in errors.dims else errors).values
    if np.isnan(reach).all():
        current().remark("one random vector: the error of the density is not known")
        return
    ends = (np.maximum(series.values - reach, 1e-300), series.values + reach)
    ax.fill_between(positions, *ends, color="black", alpha=0.25, linewidth=0)
    current().remark("grey bands: one standard error of the density")
