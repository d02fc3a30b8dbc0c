"""Stored results: which runs and rounds they are of."""

import inspect
import os

import numpy as np
import pytest
import tiny
import xarray as xr

import drift
from drift.runs.registry import registered
from drift.runs.run_names import NAMING, named_in


def asked(kind, other):
    """Arguments of an analysis that name another run: its models, its folder, its name or the beginning of that."""
    name = f"{other.name}: round 2"
    return {
        "plane": (drift.models_plane, {"models": ["start", "end", name], "points": 3}),
        "line": (drift.models_line, {"models": ["start", f"0.5 * {name} + 0.5 * end"], "points": 3}),
        "samples": (drift.confusion, {"models": [name]}),
        "folder": (drift.aligned_barrier, {"other": str(other.folder), "points": 3}),
        "relative": (drift.aligned_barrier, {"other": os.path.relpath(other.folder), "points": 3}),
    }[kind]


@pytest.mark.parametrize("kind", ["plane", "line", "samples", "folder", "relative"])
def test_a_result_of_two_runs_is_computed_anew_once_the_other_one_was_replaced(tmp_path, kind):
    run, other = tiny.trained(tmp_path), tiny.trained(tmp_path, "seed=6")
    analysis, arguments = asked(kind, other)
    first = run.cached(analysis, **arguments)
    assert run.cached(analysis, **arguments).identical(first)
    tiny.replaced(other, "seed=6", "local.lr=2.0")
    found, right = run.cached(analysis, **arguments), analysis(run, **arguments)
    assert not right.equals(first)
    for name, values in right.data_vars.items():
        np.testing.assert_array_equal(found[name], values)


def test_a_decomposition_over_runs_is_computed_anew_once_one_of_them_was_replaced(tmp_path):
    settings = ["clients.partition_seed=1", "clients.per_round=4"]
    run, other = tiny.trained(tmp_path, *settings), tiny.trained(tmp_path, *settings, "seed=6")
    arguments = {"estimator": "runs", "others": [other.name[:-2]]}
    first = run.cached(drift.decomposition, **arguments)
    tiny.trained(tmp_path, *settings, "seed=7").folder.rename(tmp_path / "seven")
    other.folder.rename(tmp_path / "six")
    (tmp_path / "seven").rename(other.folder)
    found, right = run.cached(drift.decomposition, **arguments), drift.decomposition(run, **arguments)
    assert not right.equals(first) and found.drop_attrs().equals(right.drop_attrs())


def test_functions_of_ones_own_have_results_of_their_own(tmp_path):
    run = tiny.trained(tmp_path)

    def asked(source, **names):  # as a cell of a notebook that is changed and run again
        exec(source, names)
        return float(run.cached(names["own"]).value)

    define = "def own(run): return Dataset({'value': scale * %d})"
    wanted = [
        asked(define % number, scale=scale, Dataset=xr.Dataset, __name__=__name__)
        for number, scale in ((1, 1), (2, 1), (2, 3))
    ]
    assert wanted == [1, 2, 6]
    lambdas = [lambda run: xr.Dataset({"value": 1}), lambda run: xr.Dataset({"value": 2})]
    assert [int(run.cached(function).value) for function in lambdas] == [1, 2]
    assert [int(run.cached(own).value) for own in lambdas] == [1, 2]
    assert len(list((run.folder / "results").glob("*.nc"))) == 5


@pytest.mark.parametrize("name", sorted(registered()))
def test_arguments_that_may_name_other_runs_are_part_of_what_names_a_result(name):
    for argument in inspect.signature(getattr(drift, name)).parameters.values():
        assert "Sequence[str]" not in str(argument.annotation) or argument.name in NAMING


def test_runs_that_arguments_name(tmp_path):
    for name in ("a + b", "b", "seed=6"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "run.json").touch()
    models = ["start", "a + b: round 3", "0.5 * seed=6: round 1 + 0.5 * client 3", "gone: round 1"]
    assert set(named_in(tmp_path, {"models": models, "split": "b"})) == {"a + b", "seed=6"}
    assert set(named_in(tmp_path, {"other": "b", "others": ()})) == {"b"}
    assert named_in(tmp_path, {"other": None, "models": "clients"}) == {}
