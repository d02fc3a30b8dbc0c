"""The rounds that an analysis takes."""

from __future__ import annotations

import importlib
from pathlib import Path

import numpy as np
import pytest
import tiny
from kinds import quick

import drift
import figures
from drift.analyses.per_round import ABOUT, DIMS, selected_rounds, stack_rows
from drift.runs.registry import registered

PATHS = {"global_line", "global_plane", "global_minimum"}
"""Analyses of as many different models as they name rounds."""

SPECIAL = {"domain_accuracy", "ranking_rounds", "product_gap"}
"""Analyses of other data or models."""

SECONDS = {"averaging_gap", "basin_rounds", "density_rounds", "drift_curvature", "model_map", "ntk_variance"}


def of_rounds():
    """Analyses that take a list of rounds."""
    for name, known in sorted(registered().items()):
        function = getattr(importlib.import_module(known.module), name)
        if str(function.__annotations__.get("rounds", "")).startswith("Sequence") and name not in PATHS | SPECIAL:
            yield pytest.param(known, function, id=name, marks=[pytest.mark.seconds] if name in SECONDS else [])


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("rounds"), "rounds=4", "keep.clients=all", "keep.globals=all")


@pytest.mark.parametrize(("known", "function"), list(of_rounds()))
def test_a_round_that_is_named_twice_counts_once(run, known, function):
    how = quick(known, samples=20, k=2)
    once, twice = (function(run, rounds=rounds, **how) for rounds in ([2, 3], [2, 3, -1]))
    assert twice.sizes == once.sizes
    for name, values in once.data_vars.items():
        np.testing.assert_array_equal(twice[name], values, err_msg=name)


def test_named_rounds_stay_in_their_order(run):
    assert selected_rounds(run, "clients", [2, -1, 0, 2], None) == [2, 3, 0]


def test_a_line_joins_two_different_rounds(run):
    with pytest.raises(ValueError, match=r"rounds are \[3, -1\]; a line joins the global models of two different"):
        drift.global_line(run, rounds=(3, -1))


def test_every_table_of_quantities_is_read_by_an_analysis():
    folders = [Path(str(package.__file__)).parent for package in (drift, figures)]  # the report has one of its own
    sources = "".join(path.read_text(encoding="utf-8") for folder in folders for path in folder.rglob("*.py"))
    assert [name for name in ABOUT if f'"{name}"' not in sources] == []


def test_a_quantity_has_the_dimensions_of_its_table_and_a_coordinate_is_no_variable():
    coords = {"round": [0, 1], "scale": [0.1, 0.2, 0.5]}
    rows = [{"gap": np.arange(3), "slope": 2.0}, {}]
    variables = stack_rows(rows, ABOUT["gap_scaling"], coords, DIMS["gap_scaling"])
    assert {name: dims for name, (dims, _) in variables.items()} == {
        "gap": ("round", "scale"),
        "slope": ("round",),
        "slope_smallest": ("round",),
        "locality": ("round",),
    }
    assert variables["gap"][1][0].tolist() == [0, 1, 2]
    assert np.isnan(variables["gap"][1][1]).all()
