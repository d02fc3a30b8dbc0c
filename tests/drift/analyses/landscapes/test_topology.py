import numpy as np
import xarray as xr

from drift.analyses.landscapes.topology import _climb


def test_the_largest_climb_is_unknown_where_nothing_connects_two_models():
    values = np.arange(9.0).reshape(3, 3)
    values[2, 1] = values[1, 2] = np.nan  # around the last cell
    axes = {"alpha": np.arange(3.0), "beta": np.arange(3.0)}
    marks = {"mark_alpha": ("mark", [0.0, 1, 2]), "mark_beta": ("mark", [0.0, 1, 2])}
    ds = xr.Dataset({"loss": (("alpha", "beta"), values), **marks}, axes | {"mark": ["a", "b", "c"]})
    assert np.isnan(_climb(ds, 1))
    assert _climb(ds.assign(mark_alpha=("mark", [0.0, 1, 1]), mark_beta=("mark", [0.0, 1, 0])), 1) == 0
