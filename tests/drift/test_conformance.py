"""Every analysis on a run of every method, to files and back: a new file of either kind is tested unasked."""

from __future__ import annotations

import csv
import importlib
import io
from pathlib import Path

import numpy as np
import pytest
import tiny
import xarray as xr
from kinds import METHODS, quick

from drift.config import method as methods
from drift.runs.registry import registered
from landscape.results.export import export_bytes

ANALYSES = registered()

EXTRA = {
    "ima": ["method.window=2", "method.start=0.4"],
    "fedlaw": ["method.server_epochs=3"],
    "feddf": ["method.server_epochs=3"],
    "fedbe": ["method.server_epochs=3"],
    "fedbabu": ["task.model=mlp"],
    "fedbn": [
        "task.dataset=digits",
        "task.dataset_options={}",
        "task.train_samples=60",
        "task.test_samples=30",
        "task.model=resnet8",
        "clients.concentration=10.0",
    ],
    "fedlora": ["task.model=adapted:build"],
    "scaffold": ["local.momentum=0.0"],
    "swad": ["clients.valid_ratio=0.2", "method.patience_end=2"],
    "fedfomo": ["clients.valid_ratio=0.2"],
    "soups": ["clients.valid_ratio=0.2", "method.candidates=2"],
    "diwa": ["clients.valid_ratio=0.2", "method.candidates=2"],
}
SPECIAL = {
    "pool_barriers": ("lss",),
    "server_epochs": ("fedlaw",),
    "personal_accuracy": ("swad", "fedfomo", "soups", "diwa"),
    "domain_accuracy": (),
    "product_gap": ("fedlora",),
    "ranking_rounds": (),
}
"""Analyses of what only some methods have, or only some datasets."""

PLAIN = {
    *(
        "fedadagrad",
        "fedadam",
        "fedavg",
        "fedavgm",
        "fedbe",
        "fedbuff",
        "feddf",
        "fedeve",
        "fedgma",
        "fedlaw",
    ),
    *("fedlora", "fednova", "fedprox", "fedyogi", "ima", "server_ft", "shrink"),
}
"""Methods whose clients train by plain SGD on their own loss, which `noise_or_drift` splits."""

REFUSED = {("fedbn", "aligned_barrier"): "alignment reorders", ("fedlora", "aligned_barrier"): "alignment takes stacks"}
REFUSED |= {(name, "noise_or_drift"): "noise_or_drift needs SGD" for name in methods.names() if name not in PLAIN}
"""What an analysis says of a method's model, where it cannot take it."""

QUICK = [name for name in METHODS if name != "fedbn"]
"""Methods that share the analyses; FedBN, whose models are the largest, has those alone that tell it from others."""


def _sample(name: str) -> list[str]:
    """A method's share of all analyses, those that only some methods have, and those that refuse it."""
    share = list(ANALYSES)[QUICK.index(name) :: len(QUICK)] if name in QUICK else ["layer_drift"]
    own = [one for one, having in SPECIAL.items() if name in having] + [one for of, one in REFUSED if of == name]
    return sorted({*own, *share})


def test_the_samples_reach_every_analysis():
    assert {one for name in METHODS for one in _sample(name)} == set(ANALYSES)


@pytest.mark.parametrize("name", METHODS)
def test_a_method_has_what_analyses_read(name, tmp_path):
    _require_works(name, _sample(name), tmp_path, coarse=True)


@pytest.mark.slow  # 30 methods times 60 analyses
@pytest.mark.parametrize("name", methods.names())
def test_every_analysis_works_on_every_method(name, tmp_path):
    _require_works(name, list(ANALYSES), tmp_path)


def _require_works(name: str, wanted: list[str], folder: Path, coarse: bool = False) -> None:
    run = tiny.trained(folder, f"method={name}", *EXTRA.get(name, []))
    for analysis in (ANALYSES[one] for one in wanted):
        function = getattr(importlib.import_module(analysis.module), analysis.name)
        if name not in SPECIAL.get(analysis.name, (name,)):
            with pytest.raises(LookupError, match=run.name):
                run.cached(function)
            continue
        if (name, analysis.name) in REFUSED:
            with pytest.raises(ValueError, match=REFUSED[name, analysis.name]):
                run.cached(function)
            continue
        found = run.cached(function, **quick(analysis)) if coarse else function(run)
        if coarse:
            assert found.attrs["run"] == run.name
            _require_equal_from_files(found)
        assert {"analysis", "source"} <= set(found.attrs), analysis.name
        numbers = [values for values in found.data_vars.values() if values.dtype.kind == "f"]
        finite = any(bool(np.isfinite(values.values).any()) for values in numbers)
        none = "minimum_state" in found and found["minimum_state"].item() != "inside"
        assert finite or none, analysis.name  # a plane may hold no minimum, and says so
        for values in found.data_vars.values():
            assert {"long_name", "units"} <= set(values.attrs), (analysis.name, values.name)


def _require_equal_from_files(result: xr.Dataset) -> None:
    """A result comes back equal from netCDF, CSV and pandas."""
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
