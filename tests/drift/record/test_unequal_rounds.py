"""Recorded rounds that differ in their number of clients, down to none: analyses work, or say why not in one line."""

from __future__ import annotations

import kinds
import numpy as np
import pytest
import recordings

import drift
from drift.runs import registry
from drift.runs.run import Run


@pytest.fixture(scope="module")
def run(tmp_path_factory) -> Run:
    return recordings.unequal(tmp_path_factory.mktemp("unequal") / "run")


def test_a_round_without_clients_kept_none(run):
    assert run.kept("globals") == [0, 1, 2, 3, 4, 5, 6]
    assert run.kept("clients") == [0, 1, 2, 3, 5]
    assert run.kept("clients", least=3) == [0, 1, 5]
    assert drift.round_plane(run, points=3).attrs["round"] == 5  # the last one that kept its clients


@pytest.mark.parametrize(
    ("index", "words"),
    [
        (3, r"round 3 of run run has clients \[2\], and three are needed. Rounds with three or more: 0-1, 5."),
        (4, r"run run kept no clients in round 4; kept: 0, 1, 2, 3, 5. Name one of these."),
    ],
)
def test_a_plane_says_which_rounds_have_enough_clients(run, index, words):
    with pytest.raises((ValueError, LookupError), match=words):
        drift.round_plane(run, round=index)


KNOWN = registry.registered()


@pytest.mark.parametrize("name", KNOWN)
def test_an_analysis_works_or_says_why_not(run, name):
    """A reason is an error that the analysis raises itself, not one of xarray, numpy or torch about shapes."""
    options = kinds.quick(KNOWN[name], points=3, steps=2, subsets=2, replicates=2)
    try:
        assert getattr(drift, name)(run, **options).data_vars
    except (LookupError, ValueError) as reason:
        recordings.require_stated(reason)


def test_averages_of_a_small_round_are_those_of_the_round_alone(run):
    joint, single = (drift.error_averaged(run, rounds=rounds, subsets=3) for rounds in ([0, 5], [5]))
    assert joint.sizes["models"] == 4 and single.sizes["models"] == 3
    last = joint.error.sel(round=5)
    np.testing.assert_array_equal(last.sel(models=[1, 2, 3]).values[:, :3], single.error.sel(round=5).values)
    assert last.sel(models=4).isnull().all() and joint.error.sel(round=0, models=4).notnull().any()


@pytest.mark.parametrize("analysis", [drift.client_deviations, drift.weight_factors])
def test_a_client_that_never_took_part_has_samples_and_no_updates(run, analysis):
    ds = analysis(run)
    assert ds.sizes["client"] == 6
    assert np.isnan(ds.weight.values[5]) and np.isfinite(ds.weight.values[:5]).any()
