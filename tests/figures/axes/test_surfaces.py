from __future__ import annotations

import re
from itertools import pairwise

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import LogNorm, to_rgba
from matplotlib.figure import Figure

from figures.axes import surfaces
from figures.axes.colour_bars import round_numbers
from figures.axes.fit import fit
from figures.axes.interpolated import interpolated
from figures.gallery import _planes
from figures.looks import style
from landscape.surfaces.minimum import fitted_minimum, label_minimum

pytestmark = pytest.mark.seconds


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


def _with_sampling_error(ds):
    error = xr.full_like(ds.loss, 0.5).where(ds.loss > ds.loss.min(), 0)
    return ds.assign(loss_sampling_error=error)


def test_points_within_the_sampling_error_of_the_lowest_are_hatched():
    plain, hatched = (surfaces.contour(ds, ax=_ax()) for ds in (_plane(), _with_sampling_error(_plane())))
    marked = [part for part in hatched.collections if part.get_hatch() or any(getattr(part, "hatches", None) or [])]
    assert not any(getattr(part, "hatches", [None])[0] for part in plain.collections)
    (area,) = marked
    inside = np.concatenate([path.vertices for path in area.get_paths()])
    assert abs(inside[:, 0] - 3).max() == pytest.approx(0.99, abs=0.15)  # (alpha - 3)^2 = 1.96 * 0.5


def test_a_line_with_sampling_error_has_a_band():
    line = _line().isel(algorithm=0, drop=True)
    ax = surfaces.profile(_with_sampling_error(line), ax=_ax())
    (band,) = ax.collections
    reach = band.get_paths()[0].vertices
    assert reach[np.isclose(reach[:, 0], 1.5), 1].max() == pytest.approx(float(line.loss[-1]) + 1.96 * 0.5)
    assert not surfaces.profile(line, ax=_ax()).collections


def test_bars_of_an_uncertain_minimum_end_where_the_map_does():
    ds = label_minimum(fitted_minimum(_plane()), _plane())
    ds = _plane().assign(ds.data_vars).assign(minimum_alpha_error=50.0, minimum_beta_error=0.1)
    ax = surfaces.contour(ds, ax=_ax())
    assert (ax.get_xlim(), ax.get_ylim()) == ((-1, 5), (-1, 1))
    across, up = (bars.get_segments()[0] for bars in ax.containers[0].lines[2])
    np.testing.assert_allclose(across[:, 0], [-1, 5])
    np.testing.assert_allclose(up[:, 1], float(ds.minimum_beta) + np.array([-0.1, 0.1]))


def test_a_minimum_beyond_the_map_has_no_bar_away_from_it():
    lengths = surfaces._within(_plane().alpha, 7.0, 9.0)
    assert lengths == [[8.0], [0.0]]


def test_contour_has_alpha_across_and_beta_up_at_equal_aspect():
    ax = surfaces.contour(_plane(), ax=_ax())
    assert ax.get_xlim() == (-1, 5)
    assert ax.get_ylim() == (-1, 1)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("distance along u", "distance along v")
    assert ax.get_aspect() == 1
    assert isinstance(ax.collections[0].norm, LogNorm)


def _bars(figure):
    return [ax for ax in figure.axes if ax.get_label() == "<colorbar>"]


@pytest.mark.parametrize("variable", ["loss", "error"])
def test_contour_has_a_colour_bar_unless_levels_are_shared(variable):
    alone = surfaces.contour(_plane(), ax=_ax(), variable=variable).figure
    (label,) = [bar.get_ylabel() for bar in _bars(alone)]
    values = _plane()[variable]
    above = float((values > surfaces.common_levels(values, log=variable == "loss")[-1]).mean())
    assert label == f"{style.text(values)}\n({100 * above:.0f} % above the scale)"
    levels = surfaces.common_levels(_plane()[variable])
    assert not _bars(surfaces.contour(_plane(), ax=_ax(), variable=variable, levels=levels).figure)
    assert len(_bars(surfaces.contour(_plane(), ax=_ax(), variable=variable, levels=levels, bar=True).figure)) == 1
    assert not _bars(surfaces.contour(_plane(), ax=_ax(), variable=variable, bar=False).figure)


@pytest.mark.parametrize("top", [0.431, 0.4301, 430.0])
def test_ticks_of_a_colour_bar_are_told_apart(top):
    figure = Figure()
    surfaces.colorbar(figure, [figure.subplots()], np.geomspace(0.43, top, 14), "loss")
    (bar,) = _bars(figure)
    texts = [tick.get_text() for tick in bar.get_yticklabels()]
    assert len(set(texts)) == len(texts) > 2
    assert [float(text) for text in texts] == pytest.approx(bar.get_yticks().tolist())


@pytest.mark.parametrize("columns", [1, 3])
@pytest.mark.parametrize("layout", ["constrained", None])
def test_a_colour_bar_is_as_tall_as_its_maps_are_drawn(layout, columns):
    figure = Figure(figsize=(6.9, 4), layout=layout)
    axs = figure.subplots(1, columns, squeeze=False)[0]
    levels = surfaces.common_levels(_plane()["loss"])
    for ax in axs:
        surfaces.contour(_plane(), ax=ax, levels=levels)
    surfaces.colorbar(figure, axs, levels, "loss")
    figure.draw_without_rendering()
    (bar,), drawn, cell = _bars(figure), axs[-1].get_position(), axs[-1].get_position(original=True)
    tip = 1.05  # the triangle above the bar takes a twentieth of its height
    assert drawn.height < 0.7 * cell.height
    assert (bar.get_position().y0, bar.get_position().height * tip) == pytest.approx((drawn.y0, drawn.height))
    assert 0 < bar.get_position().x0 - drawn.x1 < 0.1


@pytest.mark.parametrize("height", [0.4, 0.6, 4.0])
def test_labels_of_a_colour_bar_do_not_touch(height):
    figure = Figure(figsize=(4, height))
    surfaces.colorbar(figure, [figure.add_axes((0, 0, 0.8, 1))], np.geomspace(0.43, 2.4, 14), "loss")
    figure.draw_without_rendering()
    (bar,) = _bars(figure)
    boxes = [label.get_window_extent() for label in bar.get_yticklabels()]
    assert all(low.y1 <= high.y0 for low, high in pairwise(boxes))
    every = round_numbers(0.43, 2.4, log=True)
    assert (len(boxes) == len(every)) == (height > 0.5)


@pytest.mark.parametrize(
    ("low", "high", "log", "ticks"),
    [
        (0.39, 4.1, True, [0.5, 0.7, 1, 1.5, 2, 3]),
        (0.001, 100, True, [0.001, 0.01, 0.1, 1, 10, 100]),
        (0.0, 0.87, False, [0, 0.2, 0.4, 0.6, 0.8]),
    ],
)
def test_ticks_of_a_colour_bar_are_round(low, high, log, ticks):
    assert round_numbers(low, high, log=log) == pytest.approx(ticks)


def test_a_colour_bar_stands_beside_maps_without_axes_and_not_beside_empty_cells():
    figure = Figure(figsize=(6.9, 4), layout="constrained")
    (first, second), (third, rest) = figure.subplots(2, 2)
    levels = surfaces.common_levels(_plane()["loss"])
    for ax in (first, second, third):
        surfaces.contour(_plane(), ax=ax, levels=levels)
        ax.set_axis_off()
    rest.set_axis_off()
    surfaces.colorbar(figure, [first, second, third, rest], levels, "loss")
    figure.draw_without_rendering()
    (bar,) = _bars(figure)
    assert bar.get_position().y0 == pytest.approx(third.get_position().y0)
    assert bar.get_position().x0 > second.get_position().x1


@pytest.mark.parametrize("variable", ["loss", "error"])
def test_maps_of_global_models_are_never_one_colour_beside_those_of_clients(variable):
    clients = _plane().assign_attrs(analysis="round_plane")
    globals_ = _plane().assign_attrs(analysis="global_plane")
    globals_[variable] = 0.1 + globals_[variable] / 1000
    figure = Figure()
    axs = figure.subplots(1, 3)
    _planes.maps(figure, axs, [clients, clients, globals_], variable)
    maps = [ax.collections[0] for ax in axs]
    assert tuple(maps[0].levels) == tuple(maps[1].levels) != tuple(maps[2].levels)
    low, high = float(globals_[variable].min()), float(globals_[variable].max())
    assert sum(low <= level <= high for level in maps[2].levels) >= len(maps[2].levels) - 1
    assert len(_bars(figure)) == 2


def test_a_bar_of_a_round_length_replaces_the_ticks_of_a_map():
    ax = _planes.scale_bar(surfaces.contour(_plane(), ax=_ax(), marks=False))
    (bar,) = ax.lines
    assert np.ptp(bar.get_xdata()) == pytest.approx(2.0), "the largest of 1, 2, 5 within 45 % of a width of 6"
    assert [note.get_text() for note in ax.texts] == ["2"]
    assert len(ax.get_xticks()) == len(ax.get_yticks()) == 0
    assert ax.get_xlim() == (-1, 5)


def test_bars_of_a_row_lie_below_the_maps_of_their_kind():
    figure = Figure(figsize=(7, 3), layout="constrained")
    axs = figure.subplots(1, 3)
    clients, globals_ = (_plane().assign_attrs(analysis=name) for name in ("round_plane", "global_plane"))
    _planes.maps(figure, axs, [clients, clients, globals_], "loss")
    figure.draw_without_rendering()
    boxes = [bar.get_position() for bar in _bars(figure)]
    assert all(box.y1 < axs[0].get_position().y0 for box in boxes)
    assert boxes[0].x1 < axs[2].get_position().x0 <= boxes[1].x0 + 0.05


@pytest.mark.parametrize(("top", "told"), [(0.9, ["above each scale", ""]), (1.0, ["", ""])])
def test_the_first_bar_of_a_row_says_of_all_what_lies_above_their_scales(top, told):
    figure = Figure(figsize=(7, 3), layout="constrained")
    axs = figure.subplots(1, 4)
    clients, globals_ = (_plane().assign_attrs(analysis=name) for name in ("round_plane", "global_plane"))
    _planes.maps(figure, axs, [clients, clients, clients, globals_], "loss", top=top)
    figure.draw_without_rendering()
    bars = _bars(figure)
    assert [re.sub(r".*%|[)]|loss|\[nats\]", "", bar.get_xlabel()).strip() for bar in bars] == told
    high = [bar.get_window_extent().height for bar in bars]
    assert high[0] == pytest.approx(high[1], rel=0.02), "a short bar is as thick as a long one"


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


@pytest.mark.parametrize("variable", ["loss", "error"])
def test_contour_rings_the_fitted_minimum_of_what_it_shows_or_says_why_not(variable):
    alpha, beta = np.linspace(-1, 2, 7), np.linspace(0, 3, 9)
    x, y = np.meshgrid(alpha, beta, indexing="ij")
    ds = xr.Dataset(
        {"loss": (("alpha", "beta"), 2 + x), "error": (("alpha", "beta"), 0.1 + 0 * x)},
        coords={"alpha": alpha, "beta": beta},
    )
    ds[variable].values[:] = 1 + (x - 0.3) ** 2 + (y - 1.3) ** 2
    ax = surfaces.contour(ds, ax=_ax(), variable=variable)
    (ring,) = [line for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(ring.get_xydata()[0], (0.3, 1.3))
    for values, note in ((1 + x + y, "minimum at or beyond the edge"), (1 + (x - 0.3) ** 2 * 0, "no minimum located")):
        ds[variable].values[:] = values
        ds[variable].values[3, 4] -= 1e-9 if "no" in note[:2] else 0
        ax = surfaces.contour(ds, ax=_ax(), variable=variable)
        assert not [line for line in ax.lines if line.get_marker() == "o"]
        assert [" ".join(text.get_text().split()) for text in ax.texts] == [note]


@pytest.mark.parametrize("wide", [1, 3, 10, 30])
def test_the_note_of_a_minimum_lies_below_the_map_however_flat_it_is(wide):
    alpha, beta = np.linspace(-wide, wide, 7), np.linspace(-1, 1, 7)
    marks = {"mark_alpha": ("mark", [-wide / 2, 0, wide / 2]), "mark_beta": ("mark", [-0.9, 0.9, -0.9])}
    loss = (("alpha", "beta"), 2 + np.add.outer(alpha, beta) / wide / 4)
    coords = {"alpha": alpha, "beta": beta, "mark": ["client 1", "client 2", "client 3"]}
    ds = xr.Dataset({"loss": loss, **marks}, coords=coords, attrs={"isometric": 1})
    figure, axs = style.panels(1, 2, height=2.5)
    for ax, label in zip(axs[0], ("", "alpha"), strict=True):
        surfaces.contour(ds, ax=ax, names=False, bar=False)
        ax.set_xlabel(label)
    figure.draw_without_rendering()
    for ax in axs[0]:
        (note,) = ax.texts
        box, below = note.get_window_extent(), ax.xaxis.get_tightbbox()
        assert box.y1 <= min(ax.get_window_extent().y0, below.y0) + 1
        assert box.y0 >= 0


def test_contour_draws_the_errors_that_the_dataset_tells():
    told = {"minimum_alpha": 1.0, "minimum_beta": 0.5, "minimum_alpha_error": 0.2, "minimum_beta_error": 0.1}
    ax = surfaces.contour(_plane().assign(**told, minimum_state="inside"), ax=_ax(), marks=True)
    segments = sorted(map(tuple, np.concatenate([bar.get_segments()[0] for bar in ax.collections[-2:]]).round(6)))
    assert segments == [(0.8, 0.5), (1.0, 0.4), (1.0, 0.6), (1.2, 0.5)]


def test_common_levels_of_nothing_are_refused():
    with pytest.raises(LookupError, match="finite"):
        surfaces.common_levels(xr.DataArray([np.nan]))


def test_profile_puts_a_dot_at_each_minimum():
    ax = surfaces.profile(_line(), ax=_ax())
    dots = {
        line.get_color(): (line.get_xdata()[0], line.get_ydata()[0]) for line in ax.lines if len(line.get_xdata()) == 1
    }
    assert dots.keys() == {style.colour("lss"), style.colour("fedavg")}
    assert ax.get_legend_handles_labels()[1] == ["FedAvg", "LSS", "minimum"]
    assert dots[style.colour("lss")] == pytest.approx((0.25, 1.0))
    assert dots[style.colour("fedavg")] == pytest.approx((1.0, 2.0))
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


def test_the_name_of_a_model_over_the_minimum_stands_clear_of_it():
    ds = _plane().assign(mark_beta=("mark", [-0.5, -0.5, 0.9, 0.3]))
    ds["loss"] = 0.1 + (ds.alpha - 3.9) ** 2 + 4 * (ds.beta + 0.7) ** 2
    sides = {note.get_text(): note.get_verticalalignment() for note in surfaces.contour(ds, ax=_ax()).texts}
    assert sides == {"client 3": "top", "client 1": "bottom", "client 7": "bottom"}


def test_names_of_models_near_the_edge_stay_inside_of_the_map():
    ds = _plane().assign(mark_beta=("mark", [-0.95, -0.95, 0.95, 0.3]))
    figure = Figure(figsize=(3.0, 1.4), layout="constrained")
    ax = surfaces.contour(ds, ax=figure.subplots(), bar=False)
    fit(figure, [ax])
    figure.draw_without_rendering()
    box, names = ax.get_window_extent(), [note for note in ax.texts if note.get_text() in ds.mark.values]
    assert len(names) == 3
    for extent in (note.get_window_extent() for note in names):
        assert box.y0 <= extent.y0 and extent.y1 <= box.y1


def test_a_triangle_is_filled_up_to_its_long_side():
    coarse, fine = np.linspace(0, 1, 6), np.linspace(0, 1, 41)
    there, wanted = np.add.outer(range(6), range(6)) < 6, 1 + 2 * fine[:, None] + 3 * fine
    filled = interpolated(coarse, coarse, np.where(there, 1 + 2 * coarse[:, None] + 3 * coarse, np.nan), fine, fine)
    assert (np.isfinite(filled) == (np.add.outer(range(41), range(41)) < 41)).all()
    np.testing.assert_allclose(filled[np.isfinite(filled)], wanted[np.isfinite(filled)], atol=0.05)
