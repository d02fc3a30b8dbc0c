from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures import style, weights


def _ax():
    return Figure().subplots()


def test_shrink_shows_plain_averaging_as_a_line_at_one():
    ds = xr.Dataset(
        {"gamma": (("algorithm", "round"), [[0.9, 0.95, 0.97]])}, coords={"algorithm": ["fedlaw"], "round": [0, 1, 2]}
    )
    ax = weights.shrink(ds, ax=_ax())
    assert ax.lines[0].get_ydata().tolist() == [0.9, 0.95, 0.97]
    assert ax.lines[0].get_color() == style.colour("fedlaw")
    assert list(ax.lines[1].get_ydata()) == [1, 1]


def test_shares_have_rounds_across_and_clients_up_with_absent_ones_masked():
    values = np.array([[0.2, np.nan, 0.8, np.nan, np.nan], [np.nan, 0.4, np.nan, 0.6, np.nan]])
    ds = xr.Dataset({"weights": (("round", "client"), values)}, coords={"round": [0, 1], "client": range(5)})
    (mesh,) = weights.shares(ds, ax=_ax()).collections
    drawn = mesh.get_array()
    assert drawn.shape == (5, 2)
    assert np.ma.getmaskarray(drawn).sum() == 6
    assert drawn[2, 0] == 0.8
    assert mesh.get_clim() == (0, 0.8)


def test_norms_of_one_run_show_its_clients_as_pale_dots():
    ds = xr.Dataset(
        {
            "update_norm_mean": ("round", [1.5, 2.0]),
            "update_norm": (("round", "client"), [[1.0, 2.0, np.nan], [np.nan, 3.0, 1.0]]),
        },
        coords={"round": [0, 1], "client": [0, 1, 2]},
    )
    ax = weights.norms(ds, ax=_ax(), variable="update_norm_mean")
    assert [line.get_color() for line in ax.lines[:3]] == [style.CLIENT] * 3
    assert ax.lines[3].get_ydata().tolist() == [1.5, 2]


def test_balance_leaves_out_rounds_without_shrinking():
    ds = xr.Dataset(
        {"optimisation": ("round", [1.0, 2.0, 3.0]), "regularisation": ("round", [0.0, 0.1, 0.2])},
        coords={"round": [0, 1, 2]},
    )
    ax = weights.balance(ds, ax=_ax())
    assert ax.lines[1].get_linestyle() == "--"
    assert ax.lines[1].get_xdata().tolist() == [1, 2]
    assert ax.get_yscale() == "log"
