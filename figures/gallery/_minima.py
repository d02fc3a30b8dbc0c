"""Planes with their fitted minima, for figures that mark them."""

from __future__ import annotations

from typing import Any

import xarray as xr

from drift import minima, terrain
from drift.run import Run


def round_plane(run: Run, **how: Any) -> xr.Dataset:
    """`drift.terrain.round_plane` with the variables of `drift.minima.round_minimum`."""
    return run.cached(terrain.round_plane, **how).assign(run.cached(minima.round_minimum, **how).data_vars)


def global_plane(run: Run, **how: Any) -> xr.Dataset:
    """`drift.terrain.global_plane` with the variables of `drift.minima.global_minimum`."""
    return run.cached(terrain.global_plane, **how).assign(run.cached(minima.global_minimum, **how).data_vars)
