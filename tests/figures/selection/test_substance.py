"""Figures that have nothing to say: each refuses, or a remark on the picture says so."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import xarray as xr

from drift.runs.run import Run
from figures import gallery
from figures.axes import surfaces
from figures.commands import _draw_files
from figures.gallery import coherence_groups
from figures.looks import style
from figures.selection import panels, sampling_error, substance
from landscape.results import netcdf_files


def _drawn(*series: np.ndarray, label: str = "loss", across: str = "round"):
    figure, axs = style.panels(1, 1)
    for index, values in enumerate(series):
        axs[0, 0].plot(np.arange(len(values)), values, label=f"method {index}")
    axs[0, 0].axhline(0)
    axs[0, 0].set(ylabel=label, xlabel=across)
    return figure


def test_lines_that_differ_get_no_remark():
    figure = _drawn(np.arange(5.0), np.arange(5.0) ** 2)
    assert substance.remarks(figure, xr.Dataset(), needs="runs") == []


def test_a_table_taller_than_a_page_is_said_to_be():
    figure = _drawn(np.arange(5.0))
    figure.set_figheight(20.3)
    (remark,) = substance.remarks(figure, xr.Dataset(), needs="runs")
    assert remark == "taller than a page, 20 inches; wider, or of fewer runs, it is lower"


def test_dots_in_a_row_are_compared_by_their_horizontal_places():
    figure, axs = style.panels(1, 2)
    for ax, places in zip(axs[0], ([0.7, 0.8, 0.9, 0.1], [0.1, 0.2, 0.4, 0.3]), strict=True):
        ax.plot(places, np.zeros(4), "o")
    assert substance.remarks(figure, xr.Dataset(), needs="runs") == []
    for ax in axs[0]:
        ax.set_ylabel("a number, and no names of rows")
    with pytest.raises(LookupError, match="0 throughout"):
        substance.remarks(figure, xr.Dataset(), needs="runs")


@pytest.mark.parametrize("count", [2, 5])
def test_series_that_are_one_are_refused_alone_and_named_beside_others(count):
    same = [np.arange(5.0)] * count
    with pytest.raises(LookupError, match=rf"loss: method 0.* and method {count - 1} coincide.*takes runs"):
        substance.remarks(_drawn(*same), xr.Dataset(), needs="runs")
    (told,) = substance.remarks(_drawn(*same, np.ones(5)), xr.Dataset(), needs="runs")
    assert told.startswith("loss: method 0")


@pytest.mark.parametrize("value", [0.0, 0.25])
def test_matrices_and_maps_of_one_value_are_refused(value):
    values = np.full((4, 5), value)
    figure, axs = style.panels(1, 2)
    axs[0, 0].pcolormesh(values, vmin=0, vmax=1)
    axs[0, 1].contourf(values, levels=[-1, -0.5, 2, 3])
    for ax, title in zip(axs[0], ("barriers", "plane"), strict=True):
        ax.set_title(title)
    with pytest.raises(LookupError, match=rf"barriers; plane: {value:g} throughout"):
        substance.remarks(figure, xr.Dataset(), needs="runs")
    axs[0, 0].clear()
    axs[0, 0].pcolormesh(np.arange(20.0).reshape(4, 5))
    assert substance.remarks(figure, xr.Dataset(), needs="runs") == [f"plane: {value:g} throughout"]


def test_numbers_that_no_run_recorded_are_refused():
    ds = xr.Dataset({"measured": ("seed", [np.nan, np.nan], {"long_name": "accuracy"}), "quick": ("seed", [0, 0])})
    figure, _ = style.panels(1, 1)
    with pytest.raises(LookupError, match=r"these runs have no accuracy\. The figure takes runs\."):
        substance.remarks(figure, ds, needs="runs")
    ds.measured[1] = 0.5
    assert substance.remarks(figure, ds, needs="runs") == []


def test_two_rounds_joined_over_many_are_told():
    figure, axs = style.panels(1, 1)
    axs[0, 0].plot([3, 49], [1, 2])
    axs[0, 0].set(xlabel="round", ylabel="loss")
    told = substance.remarks(figure, xr.Dataset(), needs="runs")
    assert told == ["loss: lines join two rounds, 3 and 49, and nothing between"]
    axs[0, 0].plot([4, 5], [1, 2])
    axs[0, 0].set_xlabel("clients averaged")
    assert substance.remarks(figure, xr.Dataset(), needs="runs") == []


def test_panels_that_show_the_same_are_told():
    figure, axs = style.panels(1, 3)
    for ax, values, title in zip(axs[0], (np.arange(5), np.arange(5), np.arange(5) ** 2), "abc", strict=True):
        ax.plot(values)
        ax.set_title(title)
    assert panels.equal_panels(panels.panels(figure)) == [["a", "b"]]
    assert substance.remarks(figure, xr.Dataset(), needs="runs") == ['the panels "a", "b" show the same']


def test_panels_of_one_title_that_show_the_same_are_counted():
    figure, axs = style.panels(2, 1)
    for ax in axs.flat:
        ax.plot(np.arange(5))
        ax.set_title("clients,\nround 2\nbarrier 0 → 0 nats")
    assert substance.remarks(figure, xr.Dataset(), needs="runs") == ['the 2 panels "clients, round 2" show the same']


def test_a_panel_of_a_grid_is_named_by_its_row_and_column():
    figure, axs = style.panels(2, 2)
    for place, ax in enumerate(axs.flat):
        ax.plot(np.arange(6) ** (1 + place % 3))  # the first and the last are alike
        ax.set_title(f"round {place}" if place < 2 else "")
        ax.set_ylabel("" if place % 2 else ("FedAvg", "IMA")[place // 2], rotation=0)
    (told,) = substance.remarks(figure, xr.Dataset(), needs="runs")
    assert told == 'the panels "FedAvg, round 0", "IMA, round 1" show the same'


def test_marks_with_other_statistics_than_the_points_are_told():
    figure, axs = style.panels(1, 1)
    axs[0, 0].plot([1, 3, 2])
    ds = xr.Dataset(attrs={"statistics": "recomputed", "mark_statistics": "own"})
    (told,) = substance.remarks(figure, ds, needs="runs")
    assert told.startswith("points have recomputed statistics of batch normalisation, marks their own")
    assert substance.remarks(figure, ds.assign_attrs(mark_statistics="recomputed"), needs="runs") == []


def _accuracies(*values: float, **attrs: str) -> xr.Dataset:
    about = {"long_name": "test accuracy", "units": "fraction", **attrs}
    return xr.Dataset(
        {"accuracy": (("algorithm", "seed"), np.array(values)[:, None], about)},
        coords={"algorithm": ["fedavg", "ima", "lss"][: len(values)], "seed": [1]},
    )


def test_accuracies_within_chance_of_the_best_are_named():
    error = 0.0769  # by hand: 0.7231 is nearer to 1/2 than 0.8, and 1.96 * sqrt(2 * 0.7231 * 0.2769 / 260) = 0.0769
    (told,) = sampling_error.sentences(_accuracies(0.8, 0.8 - error + 1e-3, 0.8 - error - 1e-3), 260)
    assert "the order of FedAvg, IMA by test accuracy may be chance on 260 test samples" in told
    assert "7.7 points" in told
    assert sampling_error.sentences(_accuracies(0.8, 0.7), 260) == []
    assert sampling_error.sentences(_accuracies(0.8, 0.79), 60_000) == []
    assert sampling_error.sentences(_accuracies(1.0, 1.0 - 0.5 / 260), 260), "less than one test sample"


def test_accuracies_lost_below_one_test_sample_are_told():
    small = _accuracies(0.5 / 260, 0.2 / 260, long_name="accuracy drop")
    (told,) = sampling_error.sentences(small, 260)
    assert told == "every accuracy lost is below one of 260 test samples (0.38 points)"
    assert sampling_error.sentences(_accuracies(1.5 / 260, 0.0, long_name="accuracy drop"), 260) == []
    points = small * 100
    points.accuracy.attrs = {"long_name": "accuracy drop", "units": "points"}
    assert sampling_error.sentences(points, 260)


def test_groups_of_equal_entropy_are_refused():
    even = np.array([0.301] * 7 + [0.2, 0.4, 0.0])
    ds = xr.Dataset({"evenness": (("seed", "client"), even[None])})
    with pytest.raises(LookupError, match=r"as evenly as each other \(0.30\).*fedscape train"):
        coherence_groups._require_groups(ds)
    coherence_groups._require_groups(xr.Dataset({"evenness": ("client", np.linspace(0, 1, 10))}))


def test_remarks_stand_below_the_picture_and_in_its_numbers(runs, tmp_path, monkeypatch):
    monkeypatch.setattr(substance, "remarks", lambda *_, **__: ["a is b", "c is d"])
    heights = []
    monkeypatch.setattr(style, "save", lambda figure, stem, formats: heights.append(figure) or [])
    _draw_files.draw_one("accuracy-rounds", runs[:2], tmp_path)
    assert netcdf_files.load(tmp_path / "accuracy-rounds.nc").attrs["remarks"] == "a is b; c is d"
    assert "Note: a is b; c is d." in [text.get_text() for text in heights[0].texts]


def test_only_the_data_of_runs_that_are_drawn_is_read(runs, tmp_path, monkeypatch):
    """The data of a run that is left out of a folder may not be on this machine."""
    other = tiny.trained(tmp_path / "runs", "task.dataset_options.samples=50")
    real, read = Run.dataset, []
    monkeypatch.setattr(Run, "dataset", property(lambda run: read.append(run.folder) or real.func(run)))
    _draw_files.draw_one("accuracy-rounds", gallery.AnyOf([other, *runs]), tmp_path)
    assert other.folder not in read


def test_an_accuracy_that_is_no_mean_over_the_test_samples_has_no_such_sentence():
    ds = _accuracies(0.8, 0.79)
    assert sampling_error.sentences(ds, 260)
    ds.accuracy.attrs["test_samples"] = 0
    assert sampling_error.sentences(ds, 260) == []


@pytest.mark.parametrize(("lost", "told"), [(0.5, True), (1.0, False), (2.0, False)])
def test_a_lost_sample_of_any_seed_counts(lost, told):
    drop = xr.DataArray([[0.0, lost / 260], [0.0, 0.0]], dims=("algorithm", "seed"))
    ds = xr.Dataset({"drop": drop.assign_attrs(long_name="accuracy drop", units="fraction")})
    said = any("every accuracy lost is below one of 260" in text for text in sampling_error.sentences(ds, 260))
    assert said == told


def _plane_of_errors(classes: int = 0):
    """A plane with loss and error, and of classes with errors that are multiples of one sample."""
    rng = np.random.default_rng(0)
    coords = {"alpha": np.arange(5.0), "beta": np.arange(4.0), **({"class": np.arange(classes)} if classes else {})}
    shape = tuple(map(len, coords.values()))
    counts = np.array([26, 10, 0])[:classes]
    errors = rng.integers(0, np.maximum(counts, 1), shape) / np.maximum(counts, 1) if classes else rng.random(shape)
    name, long = ("class_error", "error of the class") if classes else ("error", "error")
    ds = xr.Dataset({name: (tuple(coords), errors, {"long_name": long, "units": "fraction"})}, coords, {"samples": 260})
    ds["loss"] = (("alpha", "beta"), rng.random(shape[:2]) + 1, {"long_name": "loss", "units": "nats"})
    return ds.assign(class_samples=("class", counts)) if classes else ds


@pytest.mark.parametrize(("variable", "told"), [("loss", False), ("error", True)])
def test_chance_of_an_error_is_told_on_maps_of_the_error_alone(variable, told):
    ds = _plane_of_errors()
    figure, axs = style.panels(1, 1)
    surfaces.contour(ds, ax=axs[0, 0], variable=variable, marks=False)
    middle = float(ds.error.values.ravel()[abs(ds.error.values - 0.5).argmin()])
    points = 100 * 1.96 * (2 * middle * (1 - middle) / 260) ** 0.5
    sentence = (
        f"differences of error of up to {points:.2g} points between two points of a map may be chance on 260 samples"
    )
    assert (f"{sentence} (95 %)" in substance.remarks(figure, ds, needs="a run", samples=260)) == told


def test_hatches_are_told_where_they_are_drawn_with_the_samples_of_the_surface():
    ds = _plane_of_errors()
    ds["error_sampling_error"] = ds.error * 0 + 0.1
    for variable, told in (("loss", False), ("error", True)):
        figure, axs = style.panels(1, 1)
        surfaces.contour(ds, ax=axs[0, 0], variable=variable, marks=False)
        hatched = any(artist.hatches[0] for artist in axs[0, 0].collections if getattr(artist, "hatches", [None])[0])
        found = substance.remarks(figure, ds, needs="a run", samples=10_000)
        sentence = "hatched points may be as low as the lowest one within the error of 260 samples (95 %)"
        assert hatched == (sentence in found) == told


def test_an_error_of_a_class_is_a_mean_over_the_samples_of_the_class():
    ds = _plane_of_errors(3)
    (told,) = sampling_error.sentences(ds, 260)
    by_class = [ds.class_error.isel({"class": place}).values.ravel() for place in (0, 1)]
    middles = [values[abs(values - 0.5).argmin()] for values in by_class]
    points = [
        100 * max(1.96 * (2 * p * (1 - p) / count) ** 0.5, 1 / count)
        for p, count in zip(middles, (26, 10), strict=True)
    ]
    assert min(points) > 100 / 26, "never less than one sample of the class"
    assert f"differences of error of the class of up to {min(points):.2g} to {max(points):.2g} points" in told
    assert "may be chance on 10 to 26 samples of the class (95 %)" in told
    assert sampling_error.sentences(ds.drop_vars("class_samples"), 260) == []


def test_the_gallery_counts_the_samples_of_each_class(runs):
    ds = gallery.load("planes-classes").data(runs[:1], points=5)
    targets = runs[0].dataset.samples["test"].targets.numpy()
    assert ds.class_samples.values.tolist() == np.bincount(targets)[:10].tolist()


def _table(held: np.ndarray) -> xr.Dataset:
    about = {"long_name": "test accuracy", "units": "fraction"}
    rows = ["fedavg", "ima", "lss"][: len(held)]
    coords = {"row": rows, "column": ["a", "b"], "seed": range(held.shape[2])}
    return xr.Dataset({"measured": (("row", "column", "seed"), held, about)}, coords)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (lambda held: held, ["FedAvg", "FedAvg+IMA", "LSS"]),
        (lambda held: held[:, :, ::-1], ["FedAvg", "FedAvg+IMA", "LSS"]),
        (lambda held: held + np.array([-0.05, 0.05]) * np.eye(3)[1][:, None, None], None),  # the mean stays
        (lambda held: held + 1e-9 * np.eye(3)[1][:, None, None], None),
        (lambda held: np.where(np.eye(3)[2][:, None, None] > 0, np.nan, held), ["FedAvg", "FedAvg+IMA"]),
        (lambda held: np.where(np.eye(3)[2][:, None, None] * [[1], [0]] > 0, np.nan, held), None),
    ],
)
def test_rows_with_the_same_numbers_have_the_same_mean_and_spread_in_every_column(change, same):
    row = np.array([[0.5, 0.7], [0.2, 0.3]])
    ds = _table(change(np.stack([row] * 3)))
    ds = ds.assign(quick=("column", [0, 0])).assign_attrs(metric="x", last=1, rounds="last round")
    figure = gallery.load("accuracy-table").draw(ds)
    told = [text for text in substance.remarks(figure, ds, needs="runs") if "have the same numbers" in text]
    assert told == ([f"{', '.join(same)} have the same numbers"] if same else [])
    middle, spread = (getattr(ds.measured, name)("seed", skipna=True) for name in ("mean", "std"))
    written = [(*map(float, middle[place]), *map(float, spread[place])) for place in range(3)]
    known = [place for place in range(3) if np.isfinite(written[place]).any()]
    assert bool(same) == bool(np.allclose(np.array(written)[known], written[0], rtol=1e-12, atol=1e-12, equal_nan=True))
