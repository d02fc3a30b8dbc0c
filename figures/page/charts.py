"""Data of the figures of drift and curvature as plain values, of which the stage makes charts and a map of models."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import xarray as xr

from drift.runs import cache
from drift.runs.run import Run
from figures import gallery
from figures.page.packed import finite

MAP, AT_ONCE = "model-map", "early-warning"
"""The figure of several runs, and the one that is read from the record in a moment and needs no stored result."""

CHARTS = ("drift-curvature", "noise-rounds", "update-causes", "product-gap", AT_ONCE)
"""Figures of one run, over its rounds."""

ATTRS = ("run", "chosen", "samples", "split", "diverged", "explained_alpha", "explained_beta", "k", "undetermined")
"""Attributes of a figure's data that the stage shows."""


class NotStored(LookupError):
    """A result is not stored."""


class StoredRun(Run):
    """A run whose results are read, and never computed."""

    def cached(self, analysis: Callable[..., xr.Dataset], **arguments: Any) -> xr.Dataset:
        """As `Run.cached`.

        Raises:
            NotStored: If it would compute.
        """
        if (ds := cache.stored(self, analysis, arguments)) is None:
            raise NotStored("Nobody computed it: compute it in fedscape explore, then publish again.")
        return ds


def charts(runs: Sequence[Run], figure: str) -> dict[str, Any]:
    """The data of a figure, with its usual options.

    Args:
        runs: One run, or those of the map.
        figure: One of CHARTS, or MAP.

    Returns:
        values of variables and coordinates by name, None where a number is not finite: of one run, of all its local
        steps, and without what is between two models; rounds are the last dimension. units by name, and attrs.

    Raises:
        LookupError: If the runs cannot answer.
    """
    ds = gallery.load(figure).data(runs, **({"most": len(runs)} if figure == MAP else {}))
    last = dict.fromkeys({"algorithm", "seed", "fraction"} & {*ds.dims}, -1)
    ds = ds.isel(last).drop_dims("mark_other", errors="ignore").transpose(..., "round", missing_dims="ignore")
    return {
        "values": {name: _plain(values.values) for name, values in ds.variables.items()},
        "units": {name: values.attrs.get("units", "1") for name, values in ds.items()},
        "attrs": {name: _plain(np.asarray(ds.attrs[name])) for name in ATTRS if name in ds.attrs},
    }


def stored(runs: Sequence[Run], figure: str) -> dict[str, Any]:
    """As `charts`, of stored results.

    Raises:
        NotStored: If one is not stored.
        LookupError: If the runs cannot answer.
    """
    return charts(runs if figure == AT_ONCE else [StoredRun(run.folder, run.context) for run in runs], figure)


def _plain(values: np.ndarray) -> Any:
    if values.ndim:
        return [_plain(np.asarray(value)) for value in values]
    return finite(float(values)) if values.dtype.kind == "f" else values.item()
