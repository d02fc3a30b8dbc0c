"""Figures of several panels in the column of a paper, printed in grey: low, each line named close to it, none alike."""

from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from visual_linter import lint

from drift.analyses.counterfactual.step_terms import TERMS
from figures import gallery
from figures.axes.footnote import footnote
from figures.looks.layout import TEXT_BLOCK

ROUNDS = list(range(0, 40, 5))

SAID = {"identity": "FedAvg \N{MIDDLE DOT} digits \N{MIDDLE DOT} seeds 0, 1", "left_out_brief": ""}


def _array(*dims: str, **coords: list) -> xr.DataArray:
    """Numbers above 0 that fall over rounds, other ones at each place."""
    sizes = [len(coords[name]) for name in dims]
    values = 0.05 + np.random.default_rng(0).uniform(0.2, 1.0, sizes)
    array = xr.DataArray(values, {name: coords[name] for name in dims}, dims, attrs={"units": "nats"})
    return array / (1 + array["round"] / 10)


def _of_method(**more: list) -> xr.DataArray:
    return _array("algorithm", "seed", "round", *more, algorithm=["fedavg"], seed=[0, 1], round=ROUNDS, **more)


def _counterfactual() -> xr.Dataset:
    parts, single = _of_method(part=list(TERMS)), _of_method()
    names = ("client_norm", "expected_sampling", "sampling_variance", "client_variance", "sampling_estimate")
    singles = {name: single * 1.2**index for index, name in enumerate((*names, "client_estimate"))}
    return xr.Dataset({"norm": parts, "loss_cost": parts - 0.1, **singles})


def _what_if() -> xr.Dataset:
    variants = ["end", "fma", "uniform", "ima-3", "ima-5", "ima-9", "gamma", "weights"]
    gain = _of_method(variant=variants) - 0.3
    return xr.Dataset({"gain": gain, "error_gain": gain / 9, "gamma": _of_method()}, attrs={"samples": 950})


def _drift_curvature() -> xr.Dataset:
    kinds = _array("round", "kind", round=ROUNDS, kind=["client", "step", "random"])
    removed = _array("round", round=ROUNDS)
    about = {"label": "fedavg", "k": 10, "undetermined": "0"}
    names = dict.fromkeys(("share", "cost", "quadratic"), kinds)
    return xr.Dataset({**names, "removed_sharp": removed, "removed_rest": 1 - removed}, attrs=about)


def _coherence() -> xr.Dataset:
    rounds = list(range(40))
    values = _array("algorithm", "round", algorithm=["fedavg", "fedlaw-gws"], round=rounds)
    ds = xr.Dataset(dict.fromkeys(("coherence", "coherence_smooth", "mean_cosine", "accuracy"), values))
    for end in ("critical_point", "critical_low", "critical_high"):
        ds[end] = ("algorithm", [np.nan, np.nan])
    return ds


def _settings() -> xr.Dataset:
    coords = {"epochs": [1], "concentration": [0.01], "setting": ["iid", "client", "period", "both"]}
    sizes = {**coords, "seed": list(range(5)), "round": list(range(0, 1500, 5))}
    values = 1 - _array(*sizes, **sizes) / 2
    return xr.Dataset({"accuracy": values.where(values["round"] % 20 == 0)}, attrs={"method": "fedavg"})


def _labels() -> xr.Dataset:
    """The classes of clothes, whose names are long, in three partitions."""
    names = ["T-shirt/top", "Trouser", "Pullover", "Dress", "Coat", "Sandal", "Shirt", "Sneaker", "Bag", "Boot"]
    coords = {"panel": ["Dir(0.1)", "Dir(1)", "Dir(10)"], "round": ROUNDS, "place": [0, 1], "class": names}
    apart = _array("panel", "round", **coords)
    count = (9 * _array(*coords, **coords)).round()
    return xr.Dataset({"count": count, "within_divergence": apart, "between_divergence": apart / 3})


def _factors() -> xr.Dataset:
    names = [f"FedLAW (attentive), fashion_mnist, E = {epochs}, seed 0" for epochs in (1, 5)]
    r = xr.DataArray(np.linspace(-0.8, 0.8, 6).reshape(2, 3), dims=("sample", "factor"))
    ds = xr.Dataset({"pearson": r, "low": r - 0.1, "high": r + 0.1}, {"factor": ["size", "balance", "product"]})
    return ds.assign_coords(name=("sample", names)).assign_attrs(confidence=0.95)


DATA = {
    "counterfactual-rounds": (_counterfactual, 1.35),
    "what-if-rounds": (_what_if, 1.25),
    "drift-curvature": (_drift_curvature, 1.25),
    "coherence-rounds": (_coherence, 1.25),
    "settings-rounds": (_settings, 1.0),
    "labels-scatter": (_labels, 2.5),
    "weight-factors": (_factors, 1.9),
}
"""Numbers of a figure, and its largest height as a part of its width."""


@pytest.mark.parametrize(("name", "venue"), [*((name, "") for name in DATA), ("counterfactual-rounds", "neurips")])
def test_a_figure_is_low_in_a_column_and_nothing_of_it_overlaps_or_is_alike_in_grey(name, venue):
    data, tall = DATA[name]
    figure = gallery.load(name).draw(data().assign_attrs(data().attrs | SAID), width="column", style=venue)
    assert lint(figure) == []
    wide, high = figure.get_size_inches()
    assert high <= tall * wide
    assert min(ax.get_window_extent().height for ax in figure.axes) > 0.14 * figure.bbox.width, "panels can be read"


def _accuracies(count: int) -> xr.Dataset:
    coords = {
        "panel": [f"data {i}, Dir({i}), {i} of 100 clients, local rate {i}, local epochs {i}" for i in range(count)],
        "seed": [0],
    }
    coords |= {"algorithm": ["fedavg", "fedprox", "scaffold", "fedadam", "ima"], "round": ROUNDS}
    return xr.Dataset({"accuracy": 1 - _array(*coords, **coords) / 2}, attrs=SAID)


def test_panels_of_a_column_with_their_texts_are_no_taller_than_a_page_and_too_many_are_refused():
    figure = gallery.load("accuracy-panels").draw(_accuracies(9), width="column", style="neurips")
    assert lint(figure) == [] and figure.get_figheight() < TEXT_BLOCK
    footnote(figure, "Note: of many words. " * 20)
    assert lint(figure) == [] and figure.get_figheight() == TEXT_BLOCK
    with pytest.raises(ValueError, match="18 panels do not fit a page at this width; give fewer runs"):
        gallery.load("accuracy-panels").draw(_accuracies(18), width="column")


@pytest.mark.parametrize("name", ["planes-projected", "barriers-clients", "planes-settings", "planes-random"])
def test_maps_and_matrices_are_readable_in_the_narrowest_column(name, numbers):
    assert lint(gallery.load(name).draw(numbers(name), width="column", style="neurips")) == []


@pytest.mark.parametrize("name", ["counterfactual-rounds", "what-if-rounds", "drift-curvature"])
def test_each_panel_names_its_own_lines_beside_it(name):
    figure = gallery.load(name).draw(DATA[name][0](), width="column")
    assert not figure.legends
    for ax in figure.axes:
        names = {line.get_label() for line in ax.lines if not line.get_label().startswith("_")}
        legend = ax.get_legend()
        told = {" ".join(text.get_text().split()) for text in legend.get_texts()} if legend else names
        assert told == {" ".join(name.split()) for name in names}
        assert ax.yaxis.label.get_rotation() == 0


def test_four_settings_have_bars_at_their_marks_in_place_of_bands_that_cover_each_other():
    (ax,) = gallery.load("settings-rounds").draw(_settings()).axes
    lines = [line for line in ax.lines if not line.get_label().startswith("_")]
    places = [line.get_xdata()[line.get_markevery()].tolist() for line in lines]
    assert len(ax.containers) == len({line.get_marker() for line in lines}) == 4
    ends = [bars[2][0].get_segments() for bars in ax.containers]
    assert [[segment[0, 0] for segment in bars] for bars in ends] == places
    assert len({x for marks in places for x in marks}) == sum(map(len, places)), "no two at one round"
    assert min(map(len, places)) >= 3


def test_rows_of_correlations_are_named_by_what_differs_and_clear_ones_are_counted():
    figure = gallery.load("weight-factors").draw(_factors())
    first, *_ = figure.axes
    assert [tick.get_text() for tick in first.get_yticklabels()] == ["E = 1", "E = 5"]
    names = ("data size DS", "class balance HD", r"DS $\times$ HD")
    assert [ax.get_title() for ax in figure.axes] == [f"{name}: clear in 2 of 2" for name in names]
