"""Every figure of the gallery: drawn once in the width of a column and once in that of a page, and looked at there."""

from __future__ import annotations

import re
from functools import cache

import numpy as np
import pytest
import xarray as xr
from gallery_runs import FEW, KINDS, QUICK, suited
from kinds import one_of_each
from matplotlib.figure import Figure
from matplotlib.text import Text
from visual_linter import lint

from drift.partitions.shards import Partition as Shards
from figures import gallery
from figures.looks import look, style
from figures.selection import substance
from figures.selection.identity import IDENTITY
from landscape.results import netcdf_files

NAMES = [name for name in gallery.names() if name != "ranking-table"]
"""All but one that is drawn from users and films, in test_gallery_fedeve."""

ABSENT = ("critical_", "offset", "minimum_", "saddle", "first_pass", "first_alarm")
"""Beginnings of names of numbers that a tiny run need not have: no clear change, no minimum inside its planes, no pass
between two, no alarm."""

TABLES = {"accuracy-after", "rounds-target", *(name for name in NAMES if name.endswith("-table"))}
"""Figures as wide as what they hold."""

ONE_PARTITION = {"accuracy-after", "accuracy-table", "gamma-table", "robustness-table", "numbers-rounds"}
"""Figures with a row or line per setting, linted of the methods on one partition: of every kind of setting at once
tables are longer than a page, and lines of linear models coincide.
"""


@pytest.fixture(scope="module")
def of_one_partition(kinds):
    """Data of a figure by its name, from the methods on one partition; computed once."""
    runs = [run for run in kinds if isinstance(run.experiment.clients.partition, Shards)]
    runs = [run for run in runs if run.experiment.task.model == "linear"]
    return cache(lambda name: gallery.load(name).data(suited(name, runs), **QUICK.get(name, {})))


def _drawn(name: str, ds: xr.Dataset, width: str, title: str = "") -> Figure:
    with look.drawing(look.read(width=width, title=title)):
        return gallery.load(name).draw(ds)


@pytest.mark.parametrize("name", one_of_each(NAMES, KINDS))
def test_every_figure_is_readable_in_a_column(name, numbers, of_one_partition):
    ds = (of_one_partition if name in ONE_PARTITION else numbers)(name)
    assert lint(_drawn(name, ds, "column")) == []


@pytest.mark.parametrize("name", NAMES)
def test_every_figure_is_readable_on_a_page_and_states_what_it_shows(name, kinds, numbers, of_one_partition, tmp_path):
    netcdf_files.save(numbers(name), tmp_path / "data.nc")
    ds, runs = netcdf_files.load(tmp_path / "data.nc"), suited(name, kinds)
    _require_numbers(ds)
    _require_told(ds, runs)
    figure = _drawn(name, ds, "page", "Methods compared")
    linted = _drawn(name, of_one_partition(name), "page", "Methods compared") if name in ONE_PARTITION else figure
    if linted is not figure:
        figure.draw_without_rendering()
    assert lint(linted) == []
    _require_panels(figure)
    _require_line(figure, ds)


def _require_numbers(ds: xr.Dataset) -> None:
    found = [values for values in ds.data_vars.values() if values.dtype.kind == "f"]
    assert found
    assert all(np.isfinite(values.values).any() for values in found if not str(values.name).startswith(ABSENT))


def _require_told(ds: xr.Dataset, runs: list) -> None:
    """The data say which runs they are of, and how many are left out."""
    drawn = [run for run in runs if run.name in ds.attrs["runs"].split(", ")]
    assert drawn
    assert all(ds.attrs[f"identity_{part}"] for part in IDENTITY)
    for run in drawn:
        assert style.label(run.label) in ds.attrs["identity_methods"] or "more" in ds.attrs["identity_methods"]
        assert str(run.experiment.seed) in ds.attrs["identity_seeds"]
    assert "blobs" in ds.attrs["identity_data"]
    assert "samples" in ds.attrs["identity_samples"]
    assert any(letter.isdigit() for letter in ds.attrs["identity_samples"])
    told = sum(int(line.partition(" of ")[0]) for line in ds.attrs["left_out"].splitlines())
    assert told == len(runs) - len(drawn)


def _require_panels(figure: Figure) -> None:
    assert isinstance(figure, Figure)
    shown = [ax for ax in figure.axes if ax.has_data()]
    assert shown
    named = [ax for ax in shown if ax.axison and ax.get_label() != "<colorbar>"]
    assert all(ax.get_xlabel() or ax.get_title() or not style.is_lowest(ax) for ax in named)


def _require_line(figure: Figure, ds: xr.Dataset) -> None:
    """The small line states what is shown, below all panels; no text shows a missing number."""
    shown = "\n".join(text.get_text() for text in figure.texts).replace("\n", " ")
    assert ds.attrs["identity"] in shown
    assert ds.attrs["left_out_brief"] in shown
    assert not [text.get_text() for text in figure.findobj(Text) if re.search(r"\bnan\b", text.get_text(), re.I)]
    below = max(
        text.get_window_extent().y1 for text in figure.texts if ds.attrs["identity_data"][:5] in text.get_text()
    )
    boxes = [ax.get_tightbbox() for ax in figure.axes]
    assert all(box is None or box.y0 >= below - 1 for box in boxes), "the small line lies on a panel"


@pytest.mark.parametrize("name", one_of_each(NAMES, FEW))
def test_every_figure_becomes_a_part_of_another_one(name, numbers, not_laid_out):
    whole = Figure(figsize=(6.9, 5.0), layout="constrained")
    _, part = whole.subfigures(1, 2)
    gallery.load(name).draw(numbers(name), subfigure=part)
    assert part.axes
    assert set(whole.axes) == set(part.axes), "something was drawn beside the part"


def _constant(ds: xr.Dataset, value: float) -> xr.Dataset:
    """Every number of a dataset replaced by one, but for the places of grids and of marks."""
    places = ("at_", "mark_", "is_")
    return ds.assign(
        {
            name: values.where(values.isnull(), value) if values.dtype.kind == "f" else values
            for name, values in ds.data_vars.items()
            if not str(name).startswith(places)
        }
    )


def _one(ds: xr.Dataset, dim: str) -> xr.Dataset:
    """The first method's numbers in place of every other's."""

    def same(values: xr.DataArray) -> xr.DataArray:
        if dim not in values.dims or values.dtype.kind != "f":
            return values
        return (xr.zeros_like(values) + values.isel({dim: 0}, drop=True)).transpose(*values.dims)

    return ds.map(same, keep_attrs=True)


def _told(name: str, ds: xr.Dataset) -> list[str]:
    """What the door says of a figure in its usual width: its refusal, or its remarks."""
    figure = gallery.load(name)
    try:
        drawn = figure.draw(ds)
        least, most = style.NARROW, style.WIDE
        assert drawn.get_figwidth() in (least, most) or (name in TABLES and least < drawn.get_figwidth() < most)
        return substance.remarks(drawn, ds, needs=figure.NEEDS)
    except LookupError as reason:
        return [str(reason)]


@pytest.mark.parametrize("name", one_of_each(NAMES, FEW))
def test_no_figure_of_empty_numbers_is_drawn_without_a_word(name, numbers, of_one_partition, not_laid_out):
    ds = (of_one_partition if name in ONE_PARTITION else numbers)(name)
    for value in (0.0, 0.5):
        assert _told(name, _constant(ds, value)), value
    for dim in {"algorithm", "row"} & set(ds.dims):
        if ds.sizes[dim] > 1:
            assert _told(name, _one(ds, dim)), dim
