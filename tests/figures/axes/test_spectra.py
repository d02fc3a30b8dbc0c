from __future__ import annotations

import numpy as np
import xarray as xr
from matplotlib.figure import Figure

from figures.axes import spectra
from figures.axes.curves import band
from figures.looks.look import drawing, read


def _spectrum() -> xr.Dataset:
    values = np.array([[[9.0, 3.0, 1.0], [8.0, 2.0, 2.0]], [[4.0, 2.0, 1.0], [2.0, 1.0, 0.5]]])
    return xr.Dataset(
        {
            "eigenvalue": (("algorithm", "round", "rank"), values),
            "ratio": (("algorithm", "round"), values[..., 0] / values[..., 2]),
        },
        coords={"algorithm": ["fedavg", "fedlaw-gws"], "round": [0, 7], "rank": [1, 2, 3]},
    )


def _slice() -> xr.Dataset:
    t = np.linspace(-0.5, 0.5, 5)
    loss = np.stack([2 + 3 * t**2, 1 + t**2])
    return xr.Dataset(
        {
            "loss": (("algorithm", "t"), loss, {"long_name": "loss", "units": "nats"}),
            "eigenvalue": ("algorithm", [6.0, 2.0]),
        },
        coords={"algorithm": ["fedavg", "lss"], "t": t},
    )


def _ax():
    return Figure().subplots()


def test_eigenvalues_draw_the_rank_asked_for():
    ax = spectra.eigenvalues(_spectrum(), ax=_ax(), rank=2)
    means = [line for line in ax.lines if not line.get_label().startswith("_")]
    np.testing.assert_allclose([line.get_ydata() for line in means], [[3, 2], [2, 1]])
    assert ax.get_yscale() == "log"
    assert r"\lambda_{2}" in ax.get_ylabel()


def test_negative_eigenvalues_take_a_linear_axis():
    assert spectra.eigenvalues(-_spectrum(), ax=_ax()).get_yscale() == "linear"


def test_sharpest_tells_the_eigenvalue_of_each_method():
    ax = spectra.sharpest_slice(_slice(), ax=_ax())
    assert [line.get_label() for line in ax.lines] == [r"FedAvg, $\lambda_1$ = 6", r"LSS, $\lambda_1$ = 2"]
    np.testing.assert_allclose(ax.lines[1].get_ydata(), _slice().loss[1])


def test_heights_above_the_model_are_zero_at_the_model():
    ax = spectra.sharpest_slice(_slice(), ax=_ax(), above=True)
    assert [line.get_ydata()[2] for line in ax.lines] == [0, 0]
    np.testing.assert_allclose(ax.lines[0].get_ydata(), 3 * _slice().t ** 2)


def test_layers_are_not_joined_and_negative_eigenvalues_are_hollow():
    eigenvalue = np.array([[[4.0, 9.0], [2.0, 2.0], [-1.0, -1.0]]])
    ds = xr.Dataset(
        {"eigenvalue": (("algorithm", "layer", "seed"), eigenvalue)},
        coords={"algorithm": ["ima"], "layer": ["body.weight", "body.bias", "head.weight"], "seed": [1, 2]},
    )
    ax = spectra.layers(ds, ax=Figure().subplots())
    assert all(line.get_linestyle() in ("None", "") for line in ax.lines if len(line.get_xdata()) > 2)
    (dots,) = [line for line in ax.lines if line.get_label() == "IMA"]
    np.testing.assert_allclose(dots.get_ydata(), [6.0, 2.0, 1.0], err_msg="geometric means of the seeds")
    (hollow,) = [line for line in ax.lines if line.get_markerfacecolor() == "white"]
    np.testing.assert_allclose(hollow.get_ydata(), [1.0])
    assert ax.get_yscale() == "log"


def test_eigenvalues_that_did_not_converge_leave_a_gap_and_a_remark():
    ds = _spectrum()
    lost = ds.eigenvalue.copy(data=np.ones(ds.eigenvalue.shape))
    lost[0, 1, 0] = 0
    ds = ds.assign(eigenvalue=ds.eigenvalue.where(lost == 1), converged=lost)
    with drawing(read()):
        ax = spectra.eigenvalues(ds, ax=_ax())
        assert spectra.UNCONVERGED in band(ds)
    np.testing.assert_allclose(ax.lines[0].get_ydata(), [9], err_msg="the lost round has no point")
    with drawing(read()):
        spectra.eigenvalues(_spectrum(), ax=_ax())
        assert not band(_spectrum())


def test_all_batches_may_be_lost():
    ds = xr.Dataset({"eigenvalue": ("batch", [np.nan, np.nan]), "converged": ("batch", [0.0, 0.0])})
    assert not spectra.batches(ds, ax=_ax()).lines
