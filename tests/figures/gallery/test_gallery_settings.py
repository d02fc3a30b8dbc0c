"""Figures over settings, and tables with a paper's numbers: what is drawn where."""

from __future__ import annotations

import numpy as np
import pytest
import tiny
import xarray as xr
from matplotlib.backends.backend_agg import FigureCanvasAgg

from figures import gallery
from figures.gallery import (
    _cases,
    _stack,
    _table_figure,
    _tables,
    accuracy_curves,
    accuracy_setting,
    accuracy_table,
    cost_table,
    locality_rounds,
    planes_settings,
    rounds_target,
)
from figures.looks import look, style
from figures.looks.layout import PAGE
from figures.selection import setting_text
from figures.selection.run_selection import AnyOf
from figures.texts.table import Cell, table


@pytest.fixture(scope="module")
def crossed(tmp_path_factory):
    """FedAvg and IMA (from half of four rounds on) with one and two local epochs, FedAvg with a second seed."""
    folder = tmp_path_factory.mktemp("crossed")
    ima = ("method=ima", "method.window=2", "method.start=0.5")
    return [
        tiny.trained(folder, "rounds=4", *method, f"local.epochs={epochs}", f"seed={seed}")
        for method, seeds in ((("method=fedavg",), (5, 6)), (ima, (5,)))
        for seed in seeds
        for epochs in (1, 2)
    ]


def _late(runs, label, epochs, seed, last=10):
    (run,) = [r for r in runs if (r.label, r.experiment.local.epochs, r.experiment.seed) == (label, epochs, seed)]
    return float(run.metrics().accuracy[-last:].mean())


def test_settings_are_found_by_the_key_of_a_sweep(crossed):
    run = crossed[-1]
    assert setting_text.value(run, "clients.concentration") == 1.0
    assert setting_text.value(run, "local.epochs") == 2
    assert setting_text.value(run, "method.start") == 0.5
    assert setting_text.value(run, "method") == "ima"
    assert setting_text.value(run, "base") == "fedavg"
    assert setting_text.value(crossed[0], "method.start") is None
    assert setting_text.value(run, "proxy.per_class.deeper") is None


def test_rows_with_ima_follow_their_own_method():
    given = ["ima", "lss", "fedprox+ima", "fedavg", "fedprox", "lss+ima"]
    assert setting_text.sort_rows(given) == ["fedavg", "ima", "lss", "lss+ima", "fedprox", "fedprox+ima"]
    some = (0.05, 0.10000000149011612, 20240101, 3, True, None, "exp", {"name": "ima", "window": 3})
    assert [setting_text.value_text(value) for value in some] == [
        "0.05",
        "0.1",
        "20240101",
        "3",
        "true",
        "without",
        "exp",
        "ima(3)",
    ]


def test_a_gain_is_the_difference_to_the_same_method_without_averaging(crossed):
    ds = accuracy_setting.data(crossed, over="local.epochs", gain=True)
    assert ds.accuracy.dims == ("row", "value", "seed")
    assert ds.value.values.tolist() == [1, 2]
    expected = [100 * (_late(crossed, "ima", n, 5) - _late(crossed, "fedavg", n, 5)) for n in (1, 2)]
    np.testing.assert_allclose(ds.gain.sel(row="ima", seed=5), expected)
    assert bool(ds.gain.sel(row="fedavg").isnull().all())
    assert ds.gain.attrs["units"] == "points"
    figure = accuracy_setting.draw(ds)
    left, right = figure.axes
    styles = {line.get_label(): line.get_linestyle() for line in left.lines if line.get_label()[0] != "_"}
    assert styles == {"FedAvg": "-", "FedAvg+IMA": "--"}
    assert {line.get_color() for line in left.lines} == {style.colour("fedavg"), style.colour("ima")}
    assert "percentage points" in right.get_ylabel()


def test_the_setting_with_most_values_is_found(crossed, tmp_path):
    assert accuracy_setting.data(crossed).attrs["over"] == "local.epochs"
    with pytest.raises(LookupError, match="there is no run to compare with fedavg"):
        accuracy_setting.data([run for run in crossed if run.label == "fedavg"], gain=True)
    others = [
        tiny.trained(tmp_path, "method=fedavg", f"rounds={rounds}", f"local.lr={lr}")
        for rounds, lr in ((4, 0.05), (4, 0.5), (3, 0.05))
    ]
    with pytest.raises(ValueError, match="are both fedavg with rounds = 4 and seed 5"):
        accuracy_setting.data(others, over="rounds")


def test_a_table_by_base_has_methods_with_and_without_ima_in_one_row(crossed):
    ds = accuracy_table.data(crossed, rows="base", over=["method.start", "local.epochs"], last=2)
    assert ds.row.values.tolist() == ["fedavg"]
    assert set(ds.column.values) == {"without, 1", "without, 2", "0.5, 1", "0.5, 2"}
    assert float(ds.measured.sel(row="fedavg", column="0.5, 2", seed=5)) == _late(crossed, "ima", 2, 5, 2)
    assert bool(np.isnan(ds.measured.sel(row="fedavg", column="0.5, 2", seed=6)))


def test_two_runs_in_one_cell_are_refused(crossed):
    with pytest.raises(ValueError, match=r"are both fedavg .* with seed 5, and differ in local.epochs; name it"):
        accuracy_table.data(crossed)


def test_all_settings_that_a_table_has_no_place_for_are_named_at_once(tmp_path):
    options = [("method=fedavg", "local.epochs=1"), ("method=fedavg", "local.epochs=2")]
    options += [("method=ima", f"method.window={window}") for window in (2, 3)]
    runs = [tiny.trained(tmp_path, *given) for given in options]
    with pytest.raises(ValueError, match="name them in over") as refused:
        accuracy_table.data(runs)
    over = str(refused.value).partition("--set over=")[2].rstrip(".")
    assert over == "local.epochs,method.window"
    assert accuracy_table.data(runs, over=over, last=2).measured.notnull().sum() == 4


def test_cells_have_mean_and_deviation_and_the_paper_stands_in_grey():
    held = np.array([[[0.5, 0.6], [0.7, np.nan]], [[0.1, 0.1], [np.nan, np.nan]], [[np.nan] * 2] * 2])
    ds = xr.Dataset(
        {
            "measured": (("row", "column", "seed"), held),
            "printed": (("row", "column"), [[0.1234, np.nan], [np.nan, np.nan], [0.5, 0.5]]),
            "quick": ("column", [1, 0]),
        },
        coords={"row": ["fedavg", "ima", "lss"], "column": ["A, #C=2", "B"], "seed": [1, 2]},
    )
    figure = _table_figure.draw_table(_tables.label_numbers(ds, "accuracy", "fraction"), "accuracy in %")
    shown = {text.get_text(): text for ax in figure.axes for text in ax.texts}
    assert {"55.00 ± 7.07 (2)", "70.00 (1)", "10.00 (2)", "12.34", "quick", "measured", "paper", "A", "#C=2"} <= set(
        shown
    )
    assert "LSS" not in shown
    assert shown["12.34"].get_color() == shown["paper"].get_color() == _table_figure.PALE
    assert shown["70.00 (1)"].get_color() == "black"
    assert "not to be compared" in " ".join(figure.axes[0].get_title("left").split())


@pytest.mark.parametrize("column", ["digits, 2 shards per client", ""])
def test_a_table_of_one_column_has_a_head(column):
    ds = xr.Dataset(
        {"measured": (("row", "column", "seed"), [[[0.5, 0.6]], [[0.7, 0.8]]]), "quick": ("column", [0])},
        coords={"row": ["fedavg", "ima"], "column": [column], "seed": [1, 2]},
    )
    figure = _table_figure.draw_table(_tables.label_numbers(ds, "accuracy", "fraction"), "accuracy in %")
    (ax,) = figure.axes
    above = [text for text in ax.texts if text.get_text() and text.get_position()[1] > 2.05]
    assert above.pop([text.get_text() for text in above].index("method")).get_position()[0] == 0
    assert figure.get_figwidth() == style.NARROW
    head = [text.get_text() for text in sorted(above, key=lambda text: -text.get_position()[1])]
    assert " ".join(head) == (column.replace(",", "") or "measured")
    assert not any(part in ax.get_title("left") for part in head)


@pytest.mark.parametrize(
    ("units", "about"), [("fraction", {}), ("fraction", {"digits": 4}), ("1", {"digits": 4}), ("rounds", {}), ("1", {})]
)
def test_a_table_has_the_same_numbers_in_picture_and_text(units, about):
    values = np.random.default_rng(3).random((3, 2, 2)) * (1 if units != "rounds" else 30)
    ds = xr.Dataset(
        {"measured": (("row", "column", "seed"), values), "quick": ("column", [0, 0])},
        coords={"row": ["fedavg", "ima", "lss"], "column": ["A", "B"], "seed": [1, 2]},
    )
    ds = _tables.label_numbers(ds, "number", units, **about)
    drawn = [text.get_text() for ax in _table_figure.draw_table(ds, "number").axes for text in ax.texts]
    assert {cell.text for _, cells in table(ds).rows for cell in cells} <= set(drawn)
    scale, digits = (
        (100 if units == "fraction" and not about else 1),
        about.get("digits", 2 if units == "fraction" else 1),
    )
    if about or units != "1":
        assert any(text.startswith(f"{scale * values[0, 0].mean():.{digits}f}") for text in drawn)


def test_a_column_that_says_the_same_in_every_row_is_words_of_the_note():
    groups = [
        _table_figure.Group(head, {"": [Cell(one), Cell(other)]})
        for head, one, other in ((["a pass", "of a sample"], "9 MAC", "9 MAC"), (["time"], "1 s", "2 s"))
    ]
    figure = _table_figure.draw_groups(groups, ["FedAvg", "LSS"], "costs")
    drawn = {text.get_text() for text in figure.axes[0].texts}
    assert "2 s" in drawn and not {"9 MAC", "of a sample"} & drawn
    said = figure.axes[0].get_title("left").replace("\n", " ")
    assert said == "costs; the same in every row: a pass of a sample 9 MAC"
    alone = _table_figure.draw_groups(groups[:1], ["FedAvg", "LSS"], "costs")  # else nothing would be drawn
    assert "9 MAC" in {text.get_text() for text in alone.axes[0].texts}


def test_wide_tables_go_on_below():
    held = np.random.default_rng(0).random((3, 14, 2))
    ds = xr.Dataset(
        {"measured": (("row", "column", "seed"), held), "quick": ("column", [0] * 14)},
        coords={"row": ["fedavg", "ima", "lss"], "column": [f"CIFAR-10 number {i}" for i in range(14)], "seed": [1, 2]},
    )
    figure = _table_figure.draw_table(_tables.label_numbers(ds, "accuracy", "fraction"), "accuracy")
    assert len(figure.axes) > 1
    drawer = FigureCanvasAgg(figure).get_renderer()
    figure.draw(drawer)
    for ax in figure.axes:
        boxes = [text.get_window_extent(drawer) for text in ax.texts if text.get_text()]
        assert all(box.x0 >= 0 and box.x1 <= figure.bbox.width for box in boxes)
        assert not any(one.overlaps(two) for i, one in enumerate(boxes) for two in boxes[:i])


def test_a_table_that_is_taller_than_a_page_is_refused_with_what_to_do():
    ds = xr.Dataset(
        {"measured": (("row", "column", "seed"), np.ones((1, 13, 2))), "quick": ("column", [0] * 13)},
        coords={
            "row": ["fedlaw-attentive"],
            "column": [f"number {i}, {i} of 100 clients, {i} rounds, local rate {i}, by way {i}" for i in range(13)],
            "seed": [1, 2],
        },
    )
    ds = _tables.label_numbers(ds, "accuracy", "fraction")
    assert _table_figure.draw_table(ds, "accuracy").get_figheight() < PAGE
    refused = pytest.raises(ValueError, match=r"\(rows: 1, columns: 13\)")
    with look.drawing(look.read(width="column", style="neurips")), refused:
        _table_figure.draw_table(ds, "accuracy")


def test_rounds_to_a_target_are_counted_from_one(crossed):
    ds = rounds_target.data(crossed, target=0.0, over=["local.epochs"])
    assert ds.measured.max() == ds.measured.min() == 1
    assert not np.isfinite(rounds_target.data(crossed, target=1.5, over=["local.epochs"]).measured).any()
    best = max(float(run.metrics().accuracy.max()) for run in crossed)
    ds = rounds_target.data(crossed, target=best, over=["local.epochs"])
    for run in crossed:
        accuracies = run.metrics().accuracy.values
        first = np.argmax(accuracies >= best) + 1 if (accuracies >= best).any() else np.inf
        place = {"row": run.label, "column": str(run.experiment.local.epochs), "seed": run.experiment.seed}
        np.testing.assert_equal(float(ds.measured.sel(place)), first)


def test_a_method_that_misses_the_target_in_one_seed_is_not_the_best(crossed):
    ds = rounds_target.data([run for run in crossed if run.experiment.local.epochs == 1], target=0.0)
    one, other = ds.row.values
    ds.measured.loc[one] = [[1.0, np.inf]]
    ds.measured.loc[other] = [[6.0, 7.0]]
    rows = {name: cells[0] for name, cells in table(ds).rows}
    assert {cell.text: cell.mark for cell in rows.values()} == {"not reached": "", "6.5 ± 0.7": "best"}
    texts = [text.get_text() for ax in rounds_target.draw(ds).axes for text in ax.texts]
    assert "not reached" in texts and "inf" not in " ".join(texts)


def test_a_method_may_set_the_target(crossed):
    ds = rounds_target.data(crossed, target="fedavg", over=["local.epochs"])
    expected = np.mean([_late(crossed, "fedavg", n, seed) for n in (1, 2) for seed in (5, 6)])
    assert ds.attrs["target"] == pytest.approx(expected)
    with pytest.raises(LookupError, match="no run is of method fedadam"):
        rounds_target.data(crossed, target="fedadam")


def test_curves_have_a_line_a_value_and_one_without(crossed):
    once = [run for run in crossed if run.experiment.local.epochs == 1]
    ds = accuracy_curves.data(once, over=["method.start", "method.window"])
    assert ds.line.values.tolist() == ["without", "start 0.5, window 2"]
    assert ds.row.values.tolist() == ["fedavg"]
    np.testing.assert_array_equal(ds.accuracy.sel(line="without", seed=6)[0], once[1].metrics().accuracy)
    figure = accuracy_curves.draw(ds)
    labels = [line.get_label() for line in figure.axes[0].lines]
    assert [label for label in labels if label[0] != "_"] == ["without", "start 0.5, window 2"]


def test_cases_stand_below_each_other_on_one_scale(crossed):
    chosen = [run for run in crossed if run.label == "fedavg"]
    ds = locality_rounds.data(chosen, by="local.epochs")
    assert ds.case.values.tolist() == [1, 2]
    assert ds.locality.dims[0] == "case"
    for epochs in (1, 2):
        alone = locality_rounds.data([run for run in chosen if run.experiment.local.epochs == epochs])
        np.testing.assert_array_equal(ds.locality.sel(case=epochs), alone.locality)
    figure = locality_rounds.draw(ds)
    first, second = figure.axes[0], figure.axes[2]
    assert first.get_ylim() == second.get_ylim()
    assert first.get_title("left") == "local epochs: 1"
    with pytest.raises(LookupError, match=r"no run has a setting local\.nothing"):
        _cases.stack_cases(chosen, "local.nothing", lambda some: xr.Dataset())


def test_settings_that_a_figure_compares_are_all_drawn_of_a_folder(crossed, tmp_path):
    ds = locality_rounds.data(AnyOf(crossed), by="local.epochs")
    assert ds.case.values.tolist() == [1, 2]
    assert len(ds.attrs["runs"].split(", ")) == len(crossed)
    starts = [tiny.trained(tmp_path, "method=ima", "method.window=2", f"method.start={start}") for start in (0.3, 0.6)]
    ds = accuracy_curves.data(AnyOf(starts))
    assert ds.line.values.tolist() == ["start 0.3", "start 0.6"]
    (ax,) = [ax for ax in accuracy_curves.draw(ds).axes if ax.has_data()]
    first, second = (next(line for line in ax.lines if line.get_label() == f"start {start}") for start in (0.3, 0.6))
    assert ax.get_title() == "IMA" and first.get_linestyle() != second.get_linestyle()
    late = ds.assign(accuracy=ds.accuracy.where(ds["round"] > 0, 0.0) * 0.01 + (ds["round"] > 0) * 0.9)
    figure = gallery.load("accuracy-curves").draw(late)
    assert figure.axes[0].get_xlim()[0] == 1
    assert "rounds before 1, with accuracies below" in " ".join(figure.legends[0].get_title().get_text().split())
    pools = [tiny.trained(tmp_path, "method=lss", f"method.candidates={count}", "local.epochs=4") for count in (1, 2)]
    assert cost_table.data(AnyOf(pools), repeats=1).row.values.tolist() == ["lss, M = 1", "lss, M = 2"]


def test_planes_have_a_row_a_method(crossed):
    ds = planes_settings.data(AnyOf(crossed), points=4, variable="error")
    assert list(dict.fromkeys(ds.row.values)) == [
        "FedAvg, blobs, linear, Dir(1), 3 of 4 clients",
        "IMA, blobs, linear, Dir(1), 3 of 4 clients",
    ]
    assert ds.sizes["panel"] == 8
    figure = planes_settings.draw(ds)
    maps = [ax for ax in figure.axes if ax.get_label() != "<colorbar>"]
    assert len(maps) == 8
    for plane in _stack.panels(ds)[3::4]:
        assert np.ptp(plane.alpha.values) == pytest.approx(np.ptp(plane.beta.values)), (
            "the last globals lie on a thin triangle"
        )
    laid_out = gallery.load("planes-settings").draw(ds)
    laid_out.draw_without_rendering()
    for row in (laid_out.axes[:4], laid_out.axes[4:8]):
        heights = [ax.get_window_extent().height for ax in row]
        assert min(heights) > 0.8 * max(heights), "white space is below the maps of the row"
    column = gallery.load("planes-settings").draw(ds, width="column")
    assert [ax.title.get_visible() for ax in column.axes[:8]] == 4 * [True] + 4 * [False], "said above"
    levels = [tuple(ax.collections[0].levels) for ax in maps]
    assert len({*levels[:3], *levels[4:7]}) == 1, "rows are compared, so client planes have one scale"
    narrow = ds.assign(error=ds.error.where(ds.row == ds.row[0], 0.3 + ds.error / 100))
    levels = [tuple(ax.collections[0].levels) for ax in planes_settings.draw(narrow).axes[:8]]
    assert levels[0] == levels[2] != levels[4] == levels[6], "one row would be of one colour"
    rows = xr.concat(
        [ds.assign_coords(row=("panel", [f"{name} {copy}" for name in ds.row.values])) for copy in range(3)], "panel"
    )
    with pytest.raises(ValueError, match=r"6 rows of maps do not fit a page; 5 do at this width.*most=5"):
        gallery.load("planes-settings").draw(rows.assign_attrs(ds.attrs), width="column")
    with pytest.raises(ValueError, match="variable is 'losses'"):
        planes_settings.data(crossed, variable="losses")


def test_constants_are_read_without_import():
    assert gallery.constant("accuracy-table", "COST") == "seconds"
    assert "run" in gallery.constant("planes_clients", "NEEDS")
    with pytest.raises(ValueError, match="no figure named"):
        gallery.constant("nothing", "COST")
