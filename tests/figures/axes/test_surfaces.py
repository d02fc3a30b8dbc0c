from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.colors import LogNorm, to_rgba
from matplotlib.figure import Figure
from small_maps import ax_alone, bowl

from figures.axes import surfaces
from figures.axes.fit import fit
from figures.axes.interpolated import interpolated
from figures.gallery import _planes
from figures.looks import style
from landscape.surfaces.minimum import fitted_minimum, label_minimum

pytestmark = pytest.mark.seconds


def _line() -> xr.Dataset:
    t = np.linspace(-0.5, 1.5, 9)
    loss = np.stack([1 + (t - 0.25) ** 2, 2 + (t - 1) ** 2])
    return xr.Dataset(
        {"loss": (("algorithm", "t"), loss, {"long_name": "loss", "units": "nats"})},
        coords={"algorithm": ["lss", "fedavg"], "t": t},
    )


def _with_sampling_error(ds):
    error = xr.full_like(ds.loss, 0.5).where(ds.loss > ds.loss.min(), 0)
    return ds.assign(loss_sampling_error=error)


def test_points_within_the_sampling_error_of_the_lowest_are_hatched():
    plain, hatched = (surfaces.contour(ds, ax=ax_alone()) for ds in (bowl(), _with_sampling_error(bowl())))
    marked = [part for part in hatched.collections if part.get_hatch() or any(getattr(part, "hatches", None) or [])]
    assert not any(getattr(part, "hatches", [None])[0] for part in plain.collections)
    (area,) = marked
    inside = np.concatenate([path.vertices for path in area.get_paths()])
    assert abs(inside[:, 0] - 3).max() == pytest.approx(0.99, abs=0.15)  # (alpha - 3)^2 = 1.96 * 0.5


def test_a_line_with_sampling_error_has_a_band():
    line = _line().isel(algorithm=0, drop=True)
    ax = surfaces.profile(_with_sampling_error(line), ax=ax_alone())
    (band,) = ax.collections
    reach = band.get_paths()[0].vertices
    assert reach[np.isclose(reach[:, 0], 1.5), 1].max() == pytest.approx(float(line.loss[-1]) + 1.96 * 0.5)
    assert not surfaces.profile(line, ax=ax_alone()).collections


def test_bars_of_an_uncertain_minimum_end_where_the_map_does():
    ds = label_minimum(fitted_minimum(bowl()), bowl())
    ds = bowl().assign(ds.data_vars).assign(minimum_alpha_error=50.0, minimum_beta_error=0.1)
    ax = surfaces.contour(ds, ax=ax_alone())
    assert (ax.get_xlim(), ax.get_ylim()) == ((-1, 5), (-1, 1))
    across, up = (bars.get_segments()[0] for bars in ax.containers[0].lines[2])
    np.testing.assert_allclose(across[:, 0], [-1, 5])
    np.testing.assert_allclose(up[:, 1], float(ds.minimum_beta) + np.array([-0.1, 0.1]))


def test_a_minimum_beyond_the_map_has_no_bar_away_from_it():
    lengths = surfaces._within(bowl().alpha, 7.0, 9.0)
    assert lengths == [[8.0], [0.0]]


def test_contour_has_alpha_across_and_beta_up_at_equal_aspect():
    ax = surfaces.contour(bowl(), ax=ax_alone())
    assert ax.get_xlim() == (-1, 5)
    assert ax.get_ylim() == (-1, 1)
    assert (ax.get_xlabel(), ax.get_ylabel()) == ("distance along u", "distance along v")
    assert ax.get_aspect() == 1
    assert isinstance(ax.collections[0].norm, LogNorm)


def test_a_bar_of_a_round_length_replaces_the_ticks_of_a_map():
    ax = _planes.scale_bar(surfaces.contour(bowl(), ax=ax_alone(), marks=False))
    (bar,) = ax.lines
    assert np.ptp(bar.get_xdata()) == pytest.approx(2.0), "the largest of 1, 2, 5 within 45 % of a width of 6"
    assert [note.get_text() for note in ax.texts] == ["2"]
    assert len(ax.get_xticks()) == len(ax.get_yticks()) == 0
    assert ax.get_xlim() == (-1, 5)


@pytest.mark.parametrize(
    ("corners", "right", "up"), [((), 0, 1), (((-0.5, 0.7),), 1, 1), (((-0.5, 0.7), (4, 0.8)), 0, 0)]
)
def test_the_bar_of_a_map_lies_at_the_first_corner_without_a_model(corners, right, up):
    ax = surfaces.contour(bowl(), ax=ax_alone(), marks=False)
    for place in corners:
        ax.plot(*place, "^")
    bar = _planes.scale_bar(ax).lines[-1]
    assert (float(np.mean(bar.get_xdata())) > 2, bar.get_ydata()[0] > 0) == (bool(right), bool(up))


@pytest.mark.parametrize("place", [None, (-0.5, 0.7)])
def test_the_length_of_a_bar_stands_inside_of_a_narrow_map(place):
    ax = surfaces.contour(bowl(), ax=ax_alone(), marks=False)
    ax.set_position((0.4, 0.4, 0.08, 0.08))
    ax.set_xlim(-1, 1.3)
    if place:
        ax.plot(*place, "^")
    (note,) = _planes.scale_bar(ax).texts
    figure = ax.get_figure()
    figure.draw_without_rendering()
    side = ax.get_window_extent().x0 if place is None else ax.get_window_extent().x1
    assert (note.get_window_extent().x0 >= side) if place is None else (note.get_window_extent().x1 <= side)


def test_contour_marks_models_mean_and_minimum():
    ax = surfaces.contour(bowl(), ax=ax_alone())
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
    partial = bowl()
    partial["loss"][0, :] = np.nan
    surfaces.contour(partial, ax=ax_alone(), marks=False)
    with pytest.raises(LookupError, match="loss has no values"):
        surfaces.contour(partial * np.nan, ax=ax_alone())


def test_contour_refuses_a_line():
    with pytest.raises(ValueError, match="needs two"):
        surfaces.contour(_line().isel(algorithm=0), ax=ax_alone())


@pytest.mark.parametrize("variable", ["loss", "error"])
def test_contour_rings_the_fitted_minimum_of_what_it_shows_or_says_why_not(variable):
    alpha, beta = np.linspace(-1, 2, 7), np.linspace(0, 3, 9)
    x, y = np.meshgrid(alpha, beta, indexing="ij")
    ds = xr.Dataset(
        {"loss": (("alpha", "beta"), 2 + x), "error": (("alpha", "beta"), 0.1 + 0 * x)},
        coords={"alpha": alpha, "beta": beta},
    )
    ds[variable].values[:] = 1 + (x - 0.3) ** 2 + (y - 1.3) ** 2
    ax = surfaces.contour(ds, ax=ax_alone(), variable=variable)
    (ring,) = [line for line in ax.lines if line.get_marker() == "o"]
    np.testing.assert_allclose(ring.get_xydata()[0], (0.3, 1.3))
    for values, note in ((1 + x + y, "minimum at or beyond the edge"), (1 + (x - 0.3) ** 2 * 0, "no minimum located")):
        ds[variable].values[:] = values
        ds[variable].values[3, 4] -= 1e-9 if "no" in note[:2] else 0
        ax = surfaces.contour(ds, ax=ax_alone(), variable=variable)
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
    ax = surfaces.contour(bowl().assign(**told, minimum_state="inside"), ax=ax_alone(), marks=True)
    segments = sorted(map(tuple, np.concatenate([bar.get_segments()[0] for bar in ax.collections[-2:]]).round(6)))
    assert segments == [(0.8, 0.5), (1.0, 0.4), (1.0, 0.6), (1.2, 0.5)]


def test_profile_puts_a_dot_at_each_minimum():
    ax = surfaces.profile(_line(), ax=ax_alone())
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
    ax = surfaces.profile(_line(), ax=ax_alone())
    surfaces.ends(ax, "FMA", "IMA")
    assert [(note.get_text(), note.xy[0]) for note in ax.texts] == [("FMA", 0), ("IMA", 1)]


def test_the_name_of_a_model_over_the_minimum_stands_clear_of_it():
    ds = bowl().assign(mark_beta=("mark", [-0.5, -0.5, 0.9, 0.3]))
    ds["loss"] = 0.1 + (ds.alpha - 3.9) ** 2 + 4 * (ds.beta + 0.7) ** 2
    sides = {note.get_text(): note.get_verticalalignment() for note in surfaces.contour(ds, ax=ax_alone()).texts}
    assert sides == {"client 3": "top", "client 1": "bottom", "client 7": "bottom"}


def test_names_of_models_near_the_edge_stay_inside_of_the_map():
    ds = bowl().assign(mark_beta=("mark", [-0.95, -0.95, 0.95, 0.3]))
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
