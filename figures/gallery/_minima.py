"""Planes with their fitted minima, for figures that mark them."""

from __future__ import annotations

from typing import Any

import xarray as xr

from drift.analyses.landscapes import minima, planes
from drift.runs.run import Run


def round_plane(run: Run, **how: Any) -> xr.Dataset:
    """`drift.round_plane` of a run, with its fitted minimum."""
    return run.cached(planes.round_plane, **how).assign(run.cached(minima.round_minimum, **how).data_vars)


def global_plane(run: Run, **how: Any) -> xr.Dataset:
    """`drift.global_plane` of a run, with its fitted minimum."""
    return run.cached(planes.global_plane, **how).assign(run.cached(minima.global_minimum, **how).data_vars)
