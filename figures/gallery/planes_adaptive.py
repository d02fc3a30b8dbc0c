"""A plane through three clients from a part of its points, and where they lie (a plane as in IMA paper, Fig. 1)."""

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from drift.analyses.landscapes.planes import round_plane
from drift.runs.run import Run
from figures.axes import surfaces
from figures.gallery import _planes, _selected
from figures.looks import style

NEEDS = "one run with three or more clients per round, that kept the clients of some round"

COST = "seconds per run"


@_selected.one_run
def data(run: Run, *, points: int = 33, tolerance: float = 0.01) -> xr.Dataset:
    """loss (nats) over alpha and beta, which points are interpolated, and the error of these.

    Args:
        method, seed: Whose run is shown, in the last round that kept its clients; by default that of FedAvg, or of the
            first method, with the smallest seed.
        points: Grid points per axis.
        tolerance: Largest accepted error of the log loss at interpolated points, as a share of its range.
    """
    how = {"points": points, "tolerance": tolerance, "box": "symmetric"}
    return run.cached(round_plane, **_planes.of_round(run, None), **how)


def draw(ds: xr.Dataset) -> Figure:
    """The map, with a dot at each evaluated point."""
    figure, axs = style.panels(width=style.NARROW, height=3.4)
    levels = surfaces.common_levels(ds.loss)
    surfaces.contour(ds, ax=axs[0, 0], levels=levels, names=False)
    i, j = np.nonzero(~ds.interpolated.transpose("alpha", "beta").values)
    every, interpolated, error = ds.interpolated.size, int(ds.interpolated.sum()), ds.loss_interpolation_error
    off = f"{float(error):.2g} {error.attrs['units']} (root mean square)" if np.isfinite(error) else "an unknown amount"
    some = f"{every - interpolated} of {every} points evaluated;\nothers off by {off}"
    label = some if interpolated else f"every point evaluated ({every})"
    axs[0, 0].plot(ds.alpha.values[i], ds.beta.values[j], ".", color="black", markersize=1.4, label=label)
    style.key(figure, axs[0])
    surfaces.colorbar(figure, axs[0], levels, style.text(ds.loss))
    return figure
