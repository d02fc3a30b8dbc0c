"""Every analysis' result goes to netCDF, CSV and pandas and comes back equal: a new file is tested unasked."""

from __future__ import annotations

import csv
import importlib
import io

import kinds
import numpy as np
import pytest
import tiny
import xarray as xr

from figures.commands.analyse import analyses
from landscape.results.export import export_bytes

ANALYSES = analyses()

OPTIONS = {
    "pool_barriers": ["method=lss"],
    "server_epochs": ["method=fedlaw", "method.server_epochs=3"],
    "personal_accuracy": ["method=soups", "clients.valid_ratio=0.2", "method.candidates=2"],
}
"""Settings of the run that an analysis takes, where it does not take that of FedAvg."""

ELSEWHERE = ("domain_accuracy", "ranking_rounds")
"""Analyses of data sets with domains or films."""


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.mark.parametrize("name", sorted(set(ANALYSES) - set(ELSEWHERE)))
def test_a_result_comes_back_equal_from_netcdf_csv_and_pandas(name, runs):
    analysis = ANALYSES[name]
    run = tiny.trained(runs, *OPTIONS.get(analysis.name, []))
    result = run.cached(getattr(importlib.import_module(analysis.module), analysis.name), **kinds.quick(analysis))
    assert result.attrs["run"] == run.name
    xr.testing.assert_identical(xr.load_dataset(io.BytesIO(export_bytes(result, "nc")), engine="h5netcdf"), result)
    for array in result.data_vars.values():
        if array.dims:
            back = array.to_series().to_xarray()  # sorts the coordinates
            places = {dim: array[dim].values for dim in array.dims if dim in array.coords}
            np.testing.assert_array_equal(back.sel(places).transpose(*array.dims).values, array.values)
    for form in ("csv", "tidy"):
        rows = list(csv.DictReader(io.StringIO(export_bytes(result, form).decode())))
        assert not any(cell.startswith("attribute:") for row in rows for cell in row.values())
        for label, array in result.data_vars.items():
            assert _from_rows(rows, array, str(label), form) == _texts(array), (label, form)


def _from_rows(rows: list[dict[str, str]], array: xr.DataArray, name: str, form: str) -> dict[tuple[str, ...], str]:
    """Texts of one variable by place, from the rows of a table that have its dimensions."""
    dims = [f"at_{dim}" if form == "tidy" and dim == "value" else str(dim) for dim in array.dims]
    own = [row for row in rows if all(row[dim] for dim in dims)]
    if form == "tidy":
        own = [row for row in own if row["variable"] == name]
    column = "value" if form == "tidy" else name
    found: dict[tuple[str, ...], str] = {}
    for row in own:
        place = tuple(row[dim] for dim in dims)
        found[place] = found.get(place) or row[column]  # empty in the rows of other dimensions
    return found


def _texts(array: xr.DataArray) -> dict[tuple[str, ...], str]:
    """What stands in a table for each value: numbers so that they read back to the bit, missing ones empty."""
    places = [array[dim].values.tolist() if dim in array.coords else range(array.sizes[dim]) for dim in array.dims]
    return {
        tuple(str(place[at]) for place, at in zip(places, index, strict=True)): "" if value != value else str(value)
        for index in np.ndindex(array.shape)
        for value in [array.values[index].item()]
    }
