"""Notes, hollow and dashed marks and percentages of further figures, from made-up data and counts by hand."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import xarray as xr
from matplotlib.collections import LineCollection, PolyCollection
from matplotlib.container import BarContainer, ErrorbarContainer
from matplotlib.contour import ContourSet

import drift
from drift.config.load import validated
from figures.axes import curves
from figures.gallery import (
    _stack,
    accuracy_rounds,
    accuracy_setting,
    basin_rounds,
    noise_rounds,
    planes_classes,
    planes_statistics,
    samples_round,
    simplex_optima,
    topology_distances,
    weights_corrupted,
    weights_round,
    what_if_rounds,
)
from figures.looks import look, style

SEEDS = {"algorithm": ["fedavg"], "seed": [1, 2, 3], "round": [4, 9]}


def _titles(figure) -> str:
    keys = [key.get_title().get_text() for key in figure.legends]
    return " | ".join([*keys, *(ax.get_title() for ax in figure.axes)])


def _basins(climb, offset):
    rng, dims = np.random.default_rng(0), tuple(SEEDS)
    values = {name: rng.uniform(1, 2, (1, 3, 2)) for name in ("excess", "radius", "area", "curvature")}
    values |= {"climb": climb, "offset": offset, "offset_error": np.where(np.isfinite(offset), 0.5, np.nan)}
    values["located"] = np.isfinite(offset).astype(float)
    ds = xr.Dataset({name: (dims, table) for name, table in values.items()}, SEEDS, {"rise": 0.1})
    return ds.assign(climb=ds.climb.assign_attrs(units="nats"))


@pytest.mark.parametrize("climb", [0.0, 0.9e-3, 1.1e-3])
def test_a_title_says_that_no_line_climbs_in_place_of_its_panel(climb):
    climbs = np.zeros((1, 3, 2))
    climbs[0, 1, 1] = climb
    figure = basin_rounds.draw(_basins(climbs, np.ones((1, 3, 2))))
    said = "no line between the models climbs by more than 0.001 nats" in " ".join(_titles(figure).split())
    assert said == (climb < 1e-3)
    assert [bool(ax.lines) for ax in figure.axes if ax.axison] == [True] * (5 if said else 6)
    assert any("climb" in ax.get_ylabel() for ax in figure.axes) != said


def test_planes_without_a_minimum_inside_are_counted_and_bars_are_errors_of_the_mean():
    offset = np.array([[[1.0, 2.0], [3.0, np.nan], [np.nan, np.nan]]])
    figure = basin_rounds.draw(_basins(np.ones((1, 3, 2)), offset))
    (ax,) = [ax for ax in figure.axes if "distance from the mean" in ax.get_ylabel()]
    assert ax.get_title() == "minimum not inside 3 of 6 planes"
    (bars,) = [part for part in ax.containers if isinstance(part, ErrorbarContainer)]
    ends = np.array([segment[:, 1] for segment in bars[2][0].get_segments()])
    middle, error = np.array([2.0, 2.0]), 0.5 / np.array([2, 1]) ** 0.5
    np.testing.assert_allclose(ends, np.stack([middle - error, middle + error], 1))


def test_lines_of_what_if_are_the_means_of_the_stated_seeds_and_windows():
    rng = np.random.default_rng(0)
    variants = ["end", "fma", "uniform", "ima-3", "ima-5", "gamma", "weights"]
    dims = ("algorithm", "seed", "round", "variant")
    coords = {**SEEDS, "variant": variants}
    gain = rng.normal(size=(1, 3, 2, 7))
    gain[..., 1] = 1e-6  # the recorded model
    ds = xr.Dataset({"gain": (dims, gain), "error_gain": (dims, gain / 7)}, coords)
    ds["gamma"] = (dims[:3], rng.uniform(0.9, 1, (1, 3, 2)))
    figure = what_if_rounds.draw(ds)
    assert "FedAvg, mean of 3 seeds" in _titles(figure)
    drawn = {line.get_label(): line.get_ydata() for line in figure.axes[0].lines if line.get_label()[0] != "_"}
    names = {"equal weights": 2, "mean of 3 rounds": 3, "mean of 5 rounds": 4, "best $\\gamma$": 5, "best weights": 6}
    assert drawn.keys() == names.keys()
    for name, place in names.items():
        np.testing.assert_allclose(drawn[name], gain[0, :, :, place].mean(0))
    points = {line.get_label(): line.get_ydata() for line in figure.axes[1].lines}
    np.testing.assert_allclose(points["best weights"], 100 * gain[0, :, :, 6].mean(0) / 7)


def _predictions():
    counts = np.array([[5.0, 1, 0], [2, 6, 0], [0, 3, 8]])
    about = {"client": "client 4", "model": "end"}
    ds = xr.Dataset(
        {"count": (("class", "predicted"), counts)}, {"class": list("abc"), "predicted": list("abc")}, about
    )
    ds["error"] = 1 - np.trace(counts) / counts.sum()
    ds["group_size"] = ("group", [6.0, 4.0])
    ds["group_client_right"], ds["group_other_right"] = ("group", [0.5, 0.25]), ("group", [0.5, 0.0])
    ds["group_share"], ds["group_class"] = ("group", [0.6, 0.125]), ("group", [1, 2])
    return ds, counts


def test_the_error_and_the_parts_of_groups_are_counts_of_samples():
    ds, counts = _predictions()
    figure = samples_round.draw(ds)
    wrong = counts.sum() - counts.diagonal().sum()
    assert figure.axes[0].get_title() == f"round's end: error {100 * wrong / counts.sum():.1f} %"
    cells = {note.get_position(): note.get_text() for note in figure.axes[0].texts}
    assert cells == {(column, row): f"{n:.0f}" for (row, column), n in np.ndenumerate(counts) if n}
    groups = figure.axes[1]
    bars = {part.get_label(): part for part in groups.containers if isinstance(part, BarContainer)}
    widths = {name: [bar.get_width() for bar in part] for name, part in bars.items()}
    assert widths == {"client 4 right": [3, 1], "round's end right": [3, 0], "both wrong": [0, 3]}
    assert [note.get_text() for note in groups.texts] == ["60 %", "12 %"]
    assert [tick.get_text() for tick in groups.get_yticklabels()] == ["class b", "class c"]


def test_a_class_without_samples_has_no_bar():
    errors = np.array([[0.25, np.nan, 0.5], [0.0, np.nan, 0.75], [0.1, np.nan, 1.0], [0.2, np.nan, 0.3]])
    marks = ["these weights", "by size", "uniform", "round's end"]
    coords = {"mark": marks, "class": list("abc"), "client": [3, 1]}
    ds = xr.Dataset({"class_error": (("mark", "class"), errors, {"units": "fraction"})}, coords)
    ds["loss"], ds["error"] = ("mark", [1.0, 2, 3, 4]), ("mark", [0.4, 0.3, 0.2, 0.1])
    ds["weight"] = (("mark", "client"), np.array([[0.7, 0.3], [0.5, 0.5], [0.45, 0.45], [np.nan, np.nan]]))
    ds["gamma"] = ("mark", [1.0, 1.0, 0.9, np.nan])
    figure = weights_round.draw(ds)
    points = 100 * (errors - errors[1])[[0, 2, 3]]  # against those at weights by size
    drawn = [[bar.get_height() for bar in bars] for bars in figure.axes[1].containers]
    np.testing.assert_allclose(drawn, points)
    assert figure.axes[1].get_title() == "these weights: a +25, c -25"
    labels = [text.get_text().partition(": ") for text in figure.axes[0].get_legend().get_texts()]
    assert [name for name, *_ in labels] == ["these weights", "by size", "uniform, $\\gamma$ = 0.9", "round's end"]
    assert [text for *_, text in labels] == [f"loss {n}, error {50 - 10 * n} %" for n in (1, 2, 3, 4)]
    (stems,) = [part for part in figure.axes[0].collections if isinstance(part, LineCollection)]
    np.testing.assert_allclose([stem[:, 1] for stem in stems.get_segments()], [[0.5, 0.3], [0.5, 0.7]])
    assert [tick.get_text() for tick in figure.axes[0].get_xticklabels()] == ["1", "3"], "by weight"
    assert " ".join(figure.axes[0].get_xlabel().split()) == "client, by weight: 1 of 2 above that by size"


def test_a_map_with_cells_without_a_loss_says_so_and_no_other_does():
    alpha, beta = np.linspace(0, 1, 5), np.linspace(0, 1, 4)
    parts = []
    for label, hole in (("interpolated", True), ("of a batch", False)):
        loss = 1 + np.add.outer(alpha**2, beta)
        loss[0, 0] = np.nan if hole else loss[0, 0]
        marks = {"mark_alpha": ("mark", [0.0, 1, 0]), "mark_beta": ("mark", [0.0, 0, 1])}
        ds = xr.Dataset({"loss": (("alpha", "beta"), loss, {"units": "nats"}), **marks})
        coords = {"alpha": alpha, "beta": beta, "mark": ["client 1", "client 2", "client 3"]}
        parts.append(ds.assign_coords(coords).assign_attrs(label=label))
    figure = planes_statistics.draw(
        _stack.join_panels((part.attrs["label"], part) for part in parts).assign_attrs(round=3)
    )
    titles = [ax.get_title() for ax in figure.axes if ax.get_title()]
    assert titles == ["round 3: interpolated\n(blank: no finite loss)", "round 3: of a batch"]


def test_holders_of_a_class_are_named_by_their_colour():
    alpha, beta = np.linspace(0, 1, 5), np.linspace(0, 1, 4)
    errors = np.random.default_rng(0).random((5, 4, 2))
    holds = np.array([[1, 0, 1], [0, 0, 1]], bool)
    ds = xr.Dataset({"class_error": (("alpha", "beta", "class"), errors), "holds": (("class", "client"), holds)})
    ds = ds.assign(mark_alpha=("mark", [0.0, 1, 0]), mark_beta=("mark", [0.0, 0, 1]))
    ds = ds.assign_coords(alpha=alpha, beta=beta, mark=["client 4", "client 9", "client 2"], **{"class": ["x", "y"]})
    figure = planes_classes.draw(ds)
    names = {"black": "client that holds the class", "white": "client without it"}
    for place, title in enumerate(("class x", "class y")):
        (ax,) = [ax for ax in figure.axes if ax.get_title() == title]
        for client, line in enumerate(ax.lines):
            colour = "black" if holds[place, client] else "white"
            assert (line.get_color(), line.get_label()) == (colour, names[colour])
            assert line.get_xydata()[0].tolist() == [float(ds.mark_alpha[client]), float(ds.mark_beta[client])]
        assert any(isinstance(part, ContourSet) for part in ax.collections)


def test_corrupted_clients_are_dashed_and_their_share_is_stated():
    dims = ("panel", "algorithm", "group", "seed", "round")
    coords = {"panel": [0.25, 1 / 3], "algorithm": ["fedlaw"], "group": ["clean", "corrupted"], "seed": [1]}
    coords["round"] = range(4)
    values = np.random.default_rng(0).uniform(0.5, 2, (2, 1, 2, 1, 4))
    ds = xr.Dataset(
        {"weight_ratio": (dims, values, {"long_name": "weight over data share"})}, coords | {"round": range(4)}
    )
    figure = weights_corrupted.draw(ds)
    assert [ax.get_title() for ax in figure.axes] == ["25% of the clients corrupted", "33% of the clients corrupted"]
    for place, ax in enumerate(figure.axes):
        lines = {line.get_label(): line for line in ax.lines if "FedLAW" in line.get_label()}
        for number, (group, dash) in enumerate((("clean", "-"), ("corrupted", "--"))):
            line = lines[f"FedLAW, {group}"]
            np.testing.assert_array_equal(line.get_ydata(), values[place, 0, number, 0])
            assert line.get_linestyle() == dash


def test_methods_with_and_without_ima_look_as_everywhere_and_their_gain_is_named_by_what_it_is_over():
    rows = ["fedavg", "ima", "fedprox", "fedprox+ima"]
    accuracy = np.random.default_rng(0).uniform(0.5, 0.9, (4, 2, 1))
    coords = {"row": rows, "value": [1.0, 4.0], "seed": [3]}
    ds = xr.Dataset({"accuracy": (("row", "value", "seed"), accuracy, {"units": "fraction"})}, coords)
    ds = ds.assign_attrs(metric="accuracy", over="local.epochs", reference="base")
    figure = accuracy_setting.draw(accuracy_setting._with_gain(ds, "accuracy", "base"))
    names = ["FedAvg", "FedAvg+IMA", "FedProx", "FedProx+IMA"]
    for line, row, name in zip(figure.axes[0].lines, rows, names, strict=True):
        assert (line.get_label(), line.get_color(), line.get_marker()) == (name, style.colour(row), style.marker(row))
        assert (line.get_markerfacecolor() == "white") == (row == "fedprox+ima") and line.is_dashed() == (
            row != rows[0]
        )
    assert figure.axes[1].get_title() == "over the same without IMA"
    gain, _ = [line for line in figure.axes[1].lines if "+IMA" in line.get_label()]
    np.testing.assert_allclose(gain.get_ydata(), 100 * (accuracy[1] - accuracy[0])[:, 0])


@pytest.mark.parametrize(("start", "early", "same"), [(6, 0.0, True), (6, 0.1, False), (None, 0.0, False)])
def test_the_round_from_which_ima_averages_is_marked_and_what_is_equal_before_it_stated(start, early, same):
    values = np.random.default_rng(0).uniform(0.2, 0.9, (2, 2, 10))
    values[1, :, :6] = values[0, :, :6] + early
    coords = {"algorithm": ["fedavg", "ima"], "seed": [0, 1], "round": range(10)}
    ds = xr.Dataset({"accuracy": (("algorithm", "seed", "round"), values)}, coords)
    ds["loss"] = 1 - ds.accuracy
    with look.drawing(look.Look()):
        figure = accuracy_rounds.draw(ds.assign_attrs({} if start is None else {"averages_from": start}))
    assert [len(ax.texts) for ax in figure.axes] == [int(start is not None), *[0] * (len(figure.axes) - 1)], "once"
    for ax in figure.axes:
        marks = [line for line in ax.lines if list(line.get_xdata()) == [start, start]]
        assert len(marks) == (start is not None)
        assert all(note.get_window_extent().y0 >= ax.get_window_extent().y1 for note in ax.texts), "lines go anywhere"
    assert ("equal before round 6: FedAvg and IMA" in " ".join(_titles(figure).split())) is same


def test_thin_lines_of_seeds_have_the_dashes_of_their_method():
    values = np.random.default_rng(0).uniform(0.2, 0.9, (2, 2, 10))
    coords = {"algorithm": ["fedavg", "ima"], "seed": [0, 1], "round": range(10)}
    ax = curves.curve(
        xr.Dataset({"accuracy": (("algorithm", "seed", "round"), values)}, coords), ax=style.panels()[1][0, 0]
    )
    dashed = [line.is_dashed() for line in ax.lines]
    assert dashed == [False] * 3 + [True] * 3


def test_runs_state_from_which_round_ima_averages(tmp_path):
    task = {"dataset": "digits", "model": "linear"}
    clients = {"number": 2, "per_round": 2, "partition": "iid"}
    settings = {"rounds": 4, "task": task, "clients": clients, "local": {"steps": 1, "batch": 4}}
    runs = [
        drift.open(drift.simulate(validated({**settings, "method": method}), runs=tmp_path).folder)
        for method in ({"name": "fedavg"}, {"name": "ima", "window": 2, "start": 0.75})
    ]
    assert accuracy_rounds.data(runs).attrs["averages_from"] == 3
    assert "averages_from" not in accuracy_rounds.data(runs[:1]).attrs


def test_the_loss_of_the_weights_by_size_has_other_dashes_than_that_of_the_best():
    ds = xr.Dataset({"best_loss": ("round", [1.0, 0.5]), "size_loss": ("round", [2.0, 0.7])}, {"round": [0, 5]})
    ds = ds.assign_attrs(label="fedavg")
    ax = style.panels(1, 1)[1][0, 0]
    simplex_optima._losses(ds, ax)
    assert len({line.get_linestyle() for line in ax.lines}) == 2


def test_distances_of_planes_name_the_method_that_lies_farthest():
    names = ["FedAvg 0", "FedAvg 9", "IMA 0", "LSS 0"]
    table = np.array([[0.0, 9, 1, 6], [9, 0, 3, 8], [1, 3, 0, 4], [6, 8, 4, 0]])
    values = xr.DataArray(table, {"mark": names, "mark_other": names}, ("mark", "mark_other"))
    said = "mean distance to other methods:\nLSS 6, all others 4.5 nats at most"
    assert topology_distances._farthest(values) == said
    assert topology_distances._farthest(values[:3, :3]) == "", "of two methods each is as far from the other"


def test_a_number_beside_a_bar_stays_inside_the_panel():
    sizes = {"group_size": [170.0, 3.0], "group_client_right": [0.0, 1.0], "group_other_right": [1.0, 0.0]}
    ds = xr.Dataset({name: ("group", values) for name, values in sizes.items()})
    ds = ds.assign(group_share=("group", [0.87, 0.12]), group_class=("group", [0, 1]))
    ds = ds.assign_coords({"class": ["a", "b"]})
    figure, axs = style.panels(1, 1, width=1.75)
    samples_round._groups(ds.assign_attrs(client="client 0", model="end"), axs[0, 0])
    figure.draw_without_rendering()
    frame, number = axs[0, 0].get_window_extent(), axs[0, 0].texts[0].get_window_extent()
    assert number.x1 < frame.x1
    assert axs[0, 0].get_xlabel().count("\n") == 1


def test_names_on_maps_have_an_outline_that_is_seen_at_the_size_of_a_card():
    (effect,) = style.outline()
    assert effect._gc["linewidth"] >= 2.4


def test_intervals_of_noise_leave_the_lines_seen_and_the_largest_share_is_named(tmp_path):
    ds = noise_rounds.data([tiny.trained(tmp_path, "rounds=3", "keep.globals=all")], rounds=2)
    figure = noise_rounds.draw(ds)
    bands = [sum(isinstance(part, PolyCollection) for part in ax.collections) for ax in figure.axes[:3]]
    assert bands[0] and not any(bands[1:]), "bands of intervals around 0 fill a panel on a signed logarithmic axis"
    for ax in figure.axes[1:3]:
        assert sum(isinstance(part, LineCollection) for part in ax.collections) == ds.sizes["cause"]
    shares = ds.share.isel(round=-1, fraction=-1)
    percent = f"{100 * float(shares.max()):.0f} % in round {int(ds['round'][-1])}"
    assert figure.axes[0].get_title().replace("\n", " ").endswith(percent)
    assert figure.axes[1].get_title().replace("\n", " ").startswith("drift of local steps")
    unknown = ds.assign(share=ds.share.where(ds["round"] == 0))
    assert noise_rounds.draw(unknown).axes[0].get_title() == ""


def test_distances_that_are_not_known_name_no_method():
    names = ["FedAvg 0", "IMA 0", "LSS 0"]
    values = xr.DataArray(np.full((3, 3), np.nan), {"mark": names, "mark_other": names}, ("mark", "mark_other"))
    assert topology_distances._farthest(values) == ""
