"""`.plot()` and `.plotly()` on datasets: the picture that belongs to a result, in one call.

xarray's own `Dataset.plot` has methods (`.plot.scatter`), which stay; called, it refuses every dataset. Here the call
draws. The drawing is that of the module `DRAWN_BY`, which is named and imported at the first call, so that nothing here
depends on a plotting package.
"""

import importlib
import warnings
from typing import Any

import xarray as xr

DRAWN_BY = "figures.pictures.result_picture"
"""Module with `plot(ds, **look)` and `plotly(ds, **look)`."""


_XARRAY_PLOT: Any = xr.Dataset.plot
"""Makes the methods for plots of a dataset."""


class Picture:
    """xarray's methods for plots of a dataset; called, the picture of a result of landscape or drift."""

    def __init__(self, ds: xr.Dataset) -> None:
        self._ds = ds

    def __getattr__(self, name: str) -> Any:
        return getattr(_XARRAY_PLOT(self._ds), name)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *dir(_XARRAY_PLOT)]

    def __call__(self, **look: Any) -> Any:
        """Draw the result with matplotlib: maps of planes with their marks and colour bar, profiles of lines, spectra.

        Args:
            look: `ax` to draw into (by default a new figure), `variable` (by default the loss), and what the drawing
                function of this kind of result takes.

        Returns:
            Axes; `.figure.savefig("plane.png")` writes them.

        Raises:
            ValueError: If the dataset is no result that has a usual picture.
            LookupError: If the package that draws is not installed.
        """
        return _drawing().plot(self._ds, **look)


class Interactive:
    """The interactive picture of a result, by a call."""

    def __init__(self, ds: xr.Dataset) -> None:
        self._ds = ds

    def __call__(self, **look: Any) -> Any:
        """Draw the result with plotly; arguments and errors as `Picture`.

        Returns:
            A figure of plotly; `.show()` opens it, `.write_html("plane.html")` writes it.
        """
        return _drawing().plotly(self._ds, **look)


def _drawing() -> Any:
    try:
        return importlib.import_module(DRAWN_BY)
    except ModuleNotFoundError as reason:
        raise LookupError(f"pictures need the package {reason.name!r}; install fedscape, which has it.") from reason


def register() -> None:
    """Add both calls to xarray's datasets; again and again is once."""
    if hasattr(xr.Dataset, "plotly"):
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # `plot` is xarray's own, whose methods stay
        xr.register_dataset_accessor("plot")(Picture)
        xr.register_dataset_accessor("plotly")(Interactive)
