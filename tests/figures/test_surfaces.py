from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import LogNorm, to_rgba
from matplotlib.figure import Figure

from figures import style, surfaces


def _plane() -> xr.Dataset:
    alpha, beta = np.linspace(-1, 5, 7), np.linspace(-1, 1, 5)
    loss = 0.1 + (alpha[:, None] - 3) ** 2 + 4 * (beta - 0.5) ** 2
    return xr.Dataset(
        {
            "loss": (("alpha", "beta"), loss, {"long_name": "loss", "units": "nats"}),
            "error": (("alpha", "beta"), loss / loss.max(), {"long_name": "error", "units": "fraction"}),
            "mark_alpha": ("mark", [0.0, 4.0, 2.0, 2.0]),
            "mark_beta": ("mark", [0.0, 0.0, 0.9, 0.3]),
        },
        coords={"alpha": alpha, "beta": beta, "mark": ["client 3", "client 1", "client 7", "mean"]},
        attrs={"isometric": 1},
    )


def _line() -> xr.Dataset:
    t = np.linspace(-0.5, 1.5, 9)
    loss = np.stack([1 + (t - 0.25) ** 2, 2 + (t - 1) ** 2])
    return xr.Dataset(
        {"loss": (("algorithm", "t"), loss, {"long_name": "loss", "units": "nats"})},
        coords={"algorithm": ["lss", "fedavg"], "t": t},
    )


def _ax():
    return Figure().subplots()


def test_contour_has_alpha_across_and_beta_up_at_equal_aspect():
    ax = surfaces.contour(_plane(), ax=_ax())
    assert ax.get_xlim() == (-1, 5)
    assert ax.get_ylim() == (-1, 1)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("alpha", "beta")
    assert ax.get_aspect() == 1
    assert isinstance(ax.collections[0].norm, LogNorm)


def test_contour_marks_models_mean_and_minimum():
    ax = surfaces.contour(_plane(), ax=_ax())
    places = {line.get_marker(): [] for line in ax.lines}
    for line in ax.lines:
        places[line.get_marker()].append((line.get_xdata()[0], line.get_ydata()[0]))
    assert places["^"] == [(0, 0), (4, 0), (2, 0.9)]
    assert places["X"] == [(2, 0.3)]
    assert places["o"] == [(3, 0.5)]
    cross = next(line for line in ax.lines if line.get_marker() == "X")
    assert to_rgba(cross.get_color()) == to_rgba("white")
    assert [note.get_text() for note in ax.texts] == ["client 3", "client 1", "client 7"]
    assert all(note.get_path_effects() for note in ax.texts)


def test_contour_draws_a_partial_grid_and_refuses_an_empty_one():
    partial = _plane()
    partial["loss"][0, :] = np.nan
    surfaces.contour(partial, ax=_ax(), marks=False)
    with pytest.raises(LookupError, match="loss has no values"):
        surfaces.contour(partial * np.nan, ax=_ax())


def test_contour_refuses_a_line():
    with pytest.raises(ValueError, match="needs two"):
        surfaces.contour(_line().isel(algorithm=0), ax=_ax())


def test_common_levels_cover_all_maps_and_are_even_in_log():
    first, second = _plane().loss, _plane().loss * 3
    levels = surfaces.common_levels(first, second, top=1.0, count=9)
    np.testing.assert_allclose([levels[0], levels[-1]], [float(first.min()), float(second.max())])
    np.testing.assert_allclose(np.diff(np.log(levels)), np.log(levels[1] / levels[0]))


def test_common_levels_are_even_where_log_is_off_or_impossible():
    for levels in (surfaces.common_levels(_plane().error, log=False), surfaces.common_levels(_plane().loss - 1)):
        np.testing.assert_allclose(np.diff(levels), levels[1] - levels[0])


def test_common_levels_of_a_constant_rise():
    assert (np.diff(surfaces.common_levels(xr.DataArray(np.full((3, 5), 2.0)))) > 0).all()
    assert (np.diff(surfaces.common_levels(xr.DataArray(np.zeros((3, 5))), log=False)) > 0).all()


def test_common_levels_of_nothing_are_refused():
    with pytest.raises(LookupError, match="finite"):
        surfaces.common_levels(xr.DataArray([np.nan]))


def test_profile_puts_a_dot_at_each_minimum():
    ax = surfaces.profile(_line(), ax=_ax())
    dots = {
        line.get_color(): (line.get_xdata()[0], line.get_ydata()[0]) for line in ax.lines if len(line.get_xdata()) == 1
    }
    assert dots == {style.colour("lss"): (0.25, 1.0), style.colour("fedavg"): (1.0, 2.0)}
    assert ax.get_yscale() == "log"
    assert ax.get_ylabel() == "loss [nats]"


def test_ends_are_named_at_both_models():
    ax = surfaces.profile(_line(), ax=_ax())
    surfaces.ends(ax, "FMA", "IMA")
    assert [(note.get_text(), note.xy[0]) for note in ax.texts] == [("FMA", 0), ("IMA", 1)]


def test_colorbar_spans_the_levels():
    figure = Figure()
    levels = surfaces.common_levels(_plane().loss)
    surfaces.colorbar(figure, [figure.subplots()], levels, "loss [nats]")
    assert figure.axes[-1].get_ylabel() == "loss [nats]"
    np.testing.assert_allclose(figure.axes[-1].get_ylim(), [levels[0], levels[-1]])
