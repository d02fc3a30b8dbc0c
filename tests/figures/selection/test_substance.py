"""Figures that have nothing to say: each refuses, or a remark on the picture says so."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import xarray as xr

from drift.runs.run import Run
from figures import gallery, style
from figures.commands import _draw_files
from figures.gallery import coherence_groups
from figures.selection import panels, sampling_error, substance
from landscape.results import zarr_files


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
    assert substance.remarks(figure, xr.Dataset(), needs="runs") == ["a; b show the same"]


def _accuracies(*values: float, **attrs: str) -> xr.Dataset:
    about = {"long_name": "test accuracy", "units": "fraction", **attrs}
    return xr.Dataset(
        {"accuracy": (("algorithm", "seed"), np.array(values)[:, None], about)},
        coords={"algorithm": ["fedavg", "ima", "lss"][: len(values)], "seed": [1]},
    )


def test_accuracies_within_chance_of_the_best_are_named():
    error = 1.96 * (2 * 0.8 * 0.2 / 260) ** 0.5  # by hand: 0.0687
    (told,) = sampling_error.sentences(_accuracies(0.8, 0.8 - error + 1e-3, 0.8 - error - 1e-3), 260)
    assert "the order of FedAvg, IMA by test accuracy may be chance on 260 test samples" in told
    assert "6.9 points" in told
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
    assert zarr_files.load(tmp_path / "accuracy-rounds.zarr").attrs["remarks"] == "a is b; c is d"
    assert "Note: a is b; c is d." in [text.get_text() for text in heights[0].texts]


def test_only_the_data_of_runs_that_are_drawn_is_read(runs, tmp_path, monkeypatch):
    """The data of a run that is left out of a folder may not be on this machine."""
    other = tiny.trained(tmp_path / "runs", "task.dataset_options.samples=50")
    real, read = Run.dataset, []
    monkeypatch.setattr(Run, "dataset", property(lambda run: read.append(run.folder) or real.func(run)))
    _draw_files.draw_one("accuracy-rounds", gallery.AnyOf([other, *runs]), tmp_path)
    assert read
    assert set(read) <= {run.folder for run in runs}
