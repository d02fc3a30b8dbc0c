"""Runs are compared round by round, where they trained the same clients."""

import numpy as np
import xarray as xr

from drift.analyses.rounds.paired import paired_difference


def curve(values, rounds=None):
    rounds = range(len(values)) if rounds is None else rounds
    return xr.DataArray(np.array(values, float), {"round": list(rounds)}, "round", "loss", {"units": "nats"})


def test_the_difference_is_taken_in_rounds_with_the_same_cohort_only():
    difference = paired_difference(
        curve([3, 2, 1, 0.5]), curve([2, 2, 2, 2]), {0: "a", 1: "b", 2: "c", 3: "d"}, {0: "a", 1: "x", 2: "c", 3: "d"}
    )
    assert np.array_equal(difference, [1, np.nan, -1, -1.5], equal_nan=True)
    assert difference.attrs["same"] == 3 and difference.attrs["different"] == 1
    assert difference.attrs["long_name"] == "difference of loss" and difference.attrs["units"] == "nats"


def test_rounds_that_only_one_run_has_are_left_out():
    cohorts = {index: str(index) for index in range(9)}
    difference = paired_difference(curve([1, 2, 3], [2, 4, 6]), curve([5, 5, 5], [4, 6, 8]), cohorts, cohorts)
    assert difference["round"].values.tolist() == [4, 6] and difference.values.tolist() == [-3, -2]
    nothing = paired_difference(curve([1], [0]), curve([1], [1]), cohorts, cohorts)
    assert nothing.sizes["round"] == 0 and nothing.attrs["same"] == nothing.attrs["different"] == 0
