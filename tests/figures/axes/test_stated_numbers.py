"""Numbers and judgements that pictures state in words, against what is drawn and against numbers by hand."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from matplotlib.figure import Figure
from scipy import stats

from figures.axes import curves, surfaces, triangles
from figures.looks import look
from figures.selection.sampling_error import sentences
from landscape.surfaces.sampling_error import over_folds


def test_the_ellipse_of_one_std_has_distance_one_from_the_mean_by_the_covariance():
    steps = np.array([[0.1, -0.06, -0.04], [0.0, 0.05, -0.05]])
    middle, covariance = np.array([0.5, 0.3, 0.2]), steps.T @ steps
    values = {"mean": ("client", middle), "covariance": (("client", "client_other"), covariance)}
    ds = xr.Dataset({**values, "best_weight": (("round", "client"), middle + steps)})
    ax = Figure().add_subplot()
    triangles.optima(ds, ax=ax)
    (line,) = [line for line in ax.lines if "one std" in str(line.get_label())]
    corners = np.array([triangles.on_triangle(*pair) for pair in ((1.0, 0.0), (0.0, 1.0), (0.0, 0.0))])
    away = line.get_xydata() - middle @ corners
    projected = corners.T @ covariance @ corners
    np.testing.assert_allclose(np.einsum("ni,ij,nj->n", away, np.linalg.inv(projected), away), 1, rtol=1e-9)


def test_dots_of_seeds_are_as_many_as_stated():
    ax, values = Figure().add_subplot(), np.array([0.2, np.nan, 0.5])
    with look.drawing(look.read()) as part:
        curves.seeds_at(values, 1.0, ax)
    assert part.notes == ["dots: each of 2 seeds"]
    assert ax.lines[0].get_ydata().tolist() == [0.2, 0.5]


def test_which_comparisons_may_be_chance_is_counted_by_hand():
    values = np.array([[0.90, 0.89], [0.90, 0.60]])  # two comparisons of two methods on 400 samples
    about = {"long_name": "accuracy", "units": "fraction"}
    coords = {"panel": ["a", "b"], "algorithm": ["fedavg", "ima"]}
    ds = xr.Dataset({"accuracy": (("panel", "algorithm"), values, about)}, coords)
    below = 1.96 * (2 * 0.89 * 0.11 / 400) ** 0.5  # 4.3 points: 1 point may be chance, 30 may not
    (said,) = sentences(ds, 400)
    assert f"differences below {100 * below:.2g} points, 95 %" in said
    assert said.startswith("which is best may be chance on 400 test samples")
    assert said.endswith("in 1 of 2 comparisons of accuracy")


def _seeds(table):
    """Accuracies (methods, seeds, rounds) as curves take them."""
    coords = {
        "algorithm": ["fedavg", "ima"][: len(table)],
        "seed": range(table.shape[1]),
        "round": range(table.shape[2]),
    }
    return xr.Dataset({"accuracy": (tuple(coords), table, {"long_name": "accuracy", "units": "fraction"})}, coords)


def _ends(band):
    """Lower and upper end of a band at each of its places."""
    x, y = band.get_paths()[0].vertices.T
    places = np.unique(x)
    return np.array([y[x == place].min() for place in places]), np.array([y[x == place].max() for place in places])


@pytest.mark.parametrize("log", [False, True])
@pytest.mark.parametrize(
    ("seeds", "asked"), [(2, ""), (4, ""), (5, ""), (7, ""), (3, "band"), (3, "interval"), (6, "lines")]
)
def test_what_a_legend_says_of_the_seeds_is_what_is_drawn_of_them(seeds, asked, log):
    table = np.random.default_rng(seeds).uniform(0.2, 0.9, (1, seeds, 4))
    ds, ax = _seeds(table), Figure().add_subplot()
    with look.drawing(look.read(seeds=asked or None)):
        curves.curve(ds, ax=ax, log=log)
        text = curves.band(ds)
    (values,) = np.log(table) if log else table
    back = np.exp if log else np.asarray
    (line,) = [line for line in ax.lines if line.get_label() == "FedAvg"]
    np.testing.assert_allclose(line.get_ydata(), back(values.mean(0)), rtol=1e-12)
    thin = [other.get_ydata() for other in ax.lines if other is not line]
    kind = next(kind for kind in ("thin", "standard deviation", "t interval") if kind in text)
    assert f"{seeds} seeds" in text and ("geometric" in text) == log
    if kind == "thin":
        assert text.startswith(f"thin lines: {seeds} seeds, thick: their mean") and not ax.collections
        np.testing.assert_array_equal(np.array(thin), table[0])
        assert line.get_linewidth() > 2 * 0.5
        return
    assert not thin
    error = values.std(0, ddof=1)
    reach = error if kind == "standard deviation" else stats.t.ppf(0.975, seeds - 1) * error / seeds**0.5
    ends = [back(values.mean(0) + sign * reach) for sign in (-1, 1)]
    assert ("intervals end at accuracy 1" in text) == (ends[1].max() > 1)
    for found, end in zip(_ends(ax.collections[0]), ends, strict=True):
        np.testing.assert_allclose(found, np.minimum(end, 1), rtol=1e-9)


def test_seeds_are_counted_by_method_where_each_has_others():
    table = np.full((2, 2, 3), np.nan)
    table[0, 0] = table[1, 1] = [0.1, 0.2, 0.3]
    ds, ax = _seeds(table), Figure().add_subplot()
    with look.drawing(look.read()):
        curves.curve(ds, ax=ax)
        assert curves.band(ds) is None, "one line per method, and no other"
    assert len(ax.lines) == 2 and not ax.collections
    assert curves.band(ds) is None
    table[0, 1] = 0.4
    assert curves.band(_seeds(table)) == "thin lines: 2 seeds, thick: their mean"


@pytest.mark.parametrize("samples", [40, 240])
def test_the_band_of_a_line_is_the_paired_error_of_differences_from_its_lowest_point(samples):
    t, rng = np.linspace(0, 1, 5), np.random.default_rng(0)
    losses = (t[:, None] - 0.6) ** 2 + rng.normal(1, 0.3, (1, samples)) + rng.normal(0, 0.1, (5, samples))
    folds = rng.permutation(samples) % 8
    grouped = np.stack([losses[:, folds == fold].mean(1) for fold in range(8)], -1)
    shares = np.bincount(folds).astype(float)
    about = {"long_name": "loss", "units": "nats"}
    ds = over_folds(xr.Dataset({"loss": (("t", "group"), grouped, about)}, {"t": t}), {"loss": shares})
    ax = Figure().add_subplot()
    surfaces.profile(ds, ax=ax, log=False)
    (said,) = sentences(ds, samples)
    assert said == f"the band is the difference from the lowest point within the error of {samples} samples (95 %)"
    mean = losses.mean(1)
    away = grouped - grouped[mean.argmin()]
    error = away.std(1, ddof=1) / 8**0.5  # folds of one size
    low, high = _ends(ax.collections[0])
    np.testing.assert_allclose((low + high) / 2, mean, rtol=1e-12)
    np.testing.assert_allclose((high - low) / 2, 1.96 * error, rtol=1e-9, atol=1e-12)
    assert (high - low)[mean.argmin()] == 0


@pytest.mark.parametrize("top", [0.5, 0.9, 1.0])
def test_the_part_of_maps_above_their_scale_is_counted(top):
    rng = np.random.default_rng(0)
    values = xr.DataArray(rng.lognormal(size=(13, 11)), {"alpha": np.arange(13.0), "beta": np.arange(11.0)})
    ds = xr.Dataset({"loss": values.assign_attrs(long_name="loss", units="nats")})
    levels = surfaces.common_levels(ds.loss, top=top)
    figure = Figure()
    ax = figure.add_subplot()
    surfaces.contour(ds, ax=ax, levels=levels, marks=False)
    surfaces.colorbar(figure, [ax], levels, "loss [nats]")
    (bar,) = [other for other in figure.axes if other.get_label() == "<colorbar>"]
    part = int((values.values > levels[-1] * (1 + 1e-9)).sum()) / values.size
    assert (" % above the scale" in bar.get_ylabel()) == (top < 1)
    if top < 1:
        assert bar.get_ylabel() == f"loss [nats]\n({100 * part:.0f} % above the scale)"


@pytest.mark.parametrize(("centre", "marker"), [((0.45, 0.35), "o"), ((-0.5, 0.2), "s")])
def test_marks_of_a_triangle_lie_where_its_weights_are_and_corners_state_their_loss(centre, marker):
    side = np.linspace(0, 1, 11)
    alpha, beta = np.meshgrid(side, side, indexing="ij")
    away = (alpha - centre[0]) ** 2 + (beta - centre[1]) ** 2
    loss = np.where(alpha + beta <= 1 + 1e-9, 1 + away, np.nan)
    weights = {
        "client 7": (1, 0),
        "client 2": (0, 1),
        "client 5": (0, 0),
        "mean": (1 / 3, 1 / 3),
        "by size": (0.6, 0.1),
    }
    first, second = np.array(list(weights.values()), float).T
    marks = {"mark_alpha": first, "mark_beta": second, "mark_loss": [1.25, 2.5, 3.75, 1, 1]}
    ds = xr.Dataset(
        {
            "loss": (("alpha", "beta"), loss, {"units": "nats"}),
            **{name: ("mark", column) for name, column in marks.items()},
        },
        {"alpha": side, "beta": side, "mark": list(weights)},
    )
    ax = triangles.triangle(ds, ax=Figure().add_subplot())
    assert [note.get_text().split("client ")[-1] for note in ax.texts] == ["7\nloss 1.2", "2\nloss 2.5", "5, loss 3.8"]
    corners = np.array([note.xy for note in ax.texts])
    np.testing.assert_allclose(np.linalg.norm(corners - np.roll(corners, 1, 0), axis=1), 1)

    def place(pair):
        return np.array([*pair, 1 - sum(pair)]) @ corners

    drawn = {line.get_label(): line.get_xydata()[0] for line in ax.lines}
    np.testing.assert_allclose(drawn["weights by size"], place(weights["by size"]))
    np.testing.assert_allclose(drawn["equal weights"], place(weights["mean"]))
    (ring,) = [line for line in ax.lines if line.get_marker() == marker and line.get_markerfacecolor() == "none"]
    lowest = np.unravel_index(np.nanargmin(loss), loss.shape)
    best = centre if marker == "o" else (side[lowest[0]], side[lowest[1]])
    np.testing.assert_allclose(ring.get_xydata()[0], place(best), atol=1e-6)
