"""Digests by which the torture compares results."""

from __future__ import annotations

import hashlib

import xarray as xr

from landscape.results.netcdf_files import content


def digest(ds: xr.Dataset) -> str:
    """Of names, values and attributes."""
    return hashlib.blake2b(content(ds), digest_size=16).hexdigest()


def values_digest(ds: xr.Dataset) -> str:
    """Of names and values."""
    return digest(ds.drop_attrs())
