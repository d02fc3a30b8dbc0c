from __future__ import annotations

import numpy as np
import pytest
import xarray as xr
from scipy import stats

import figures
from figures import gallery
from figures.gallery import _table_figure
from figures.texts.best_rows import better, equal, marks, meaning, spread, spread_text

NAN = float("nan")


def test_pairs_tell_rows_apart_that_means_do_not():
    best = np.array([0.80, 0.60, 0.70, 0.90])
    worse = best - np.array([0.010, 0.012, 0.011, 0.009])
    assert not equal(best, worse)
    assert equal(best, np.append(worse[1:], worse[:1]))  # the same numbers, in other seeds
    unpaired = stats.ttest_ind(best, worse, equal_var=False).confidence_interval(0.95)
    assert unpaired.low < 0 < unpaired.high


def test_rows_without_common_seeds_are_compared_unpaired():
    first, second = np.array([0.9, 0.8, NAN, NAN]), np.array([NAN, NAN, 0.7, 0.95])
    assert equal(first, second)
    assert not equal(np.array([0.90, 0.91, 0.92, NAN, NAN, NAN]), np.array([NAN, NAN, NAN, 0.10, 0.11, 0.12]))


def test_one_seed_is_compared_by_the_error_of_its_samples():
    assert equal(np.array([0.80]), np.array([0.79]), samples=300)
    assert not equal(np.array([0.80]), np.array([0.60]), samples=300)
    assert not equal(np.array([0.80]), np.array([0.79]))


def test_best_and_ties_of_a_column():
    table = np.array([[0.80, 0.70, 0.75], [0.81, 0.72, 0.76], [0.20, 0.21, 0.19], [NAN, NAN, NAN]])
    assert marks(table, larger=True) == ["tie", "best", "", ""]
    assert marks(table, larger=False) == ["", "", "best", ""]
    assert marks(table[:2], larger=True) == ["open", "open"]  # all alike: none is best
    assert meaning({"open"}, 3) == "no number is bold, as none is clearly the best of its column"
    assert meaning({"best", "", "open"}, 3) == "bold: best of its column; a column without bold has no clear best"
    assert marks(table[:1], larger=True) == [""]


@pytest.mark.parametrize(
    ("name", "units", "answer"),
    [
        ("test accuracy", "fraction", "larger"),
        ("error", "fraction", "smaller"),
        ("shrinking factor", "1", ""),
        ("loss gained over the recorded end", "nats", "larger"),
        ("error_gain", "fraction", "larger"),
        ("advantage over FedAvg in loss", "nats", "larger"),
        ("loss that the part costs", "nats", ""),
    ],
)
def test_which_end_is_better_follows_from_the_name(name, units, answer):
    values = xr.DataArray([1.0], dims="row", attrs={"long_name": name, "units": units})
    assert better(values) == answer
    assert better(values.assign_attrs(better="larger")) == "larger"


def test_a_variable_without_the_rows_is_refused():
    ds = xr.Dataset({"gain": ("variant", [1.0]), "weight": ("client", [1.0, 2.0])})
    with pytest.raises(ValueError, match="gain has no client; give rows=, one of variant"):
        figures.table(ds, variables=["gain"])


def _result():
    coords = {"algorithm": ["fedavg", "ima"], "seed": [1, 2, 3], "round": np.arange(12)}
    accuracy = np.zeros((2, 3, 12)) + np.array([[[0.5]], [[0.7]]]) + np.array([0.0, 0.01, 0.02])[:, None]
    accuracy[..., :2] = 0.0
    accuracy[1] += np.array([0.001, 0.0, 0.002])[:, None]
    ds = xr.Dataset(
        {"accuracy": (tuple(coords), accuracy, {"long_name": "test accuracy", "units": "fraction"})}, coords
    )
    ds["loss"] = ("algorithm", np.array([1.5, NAN]), {"long_name": "loss | test", "units": "nats"})
    return ds


def test_any_result_is_a_table_of_its_last_ten_rounds():
    table = figures.table(_result())
    assert (table.corner, table.head) == ("method", ("test accuracy [%]", "loss | test [nats]"))
    assert [[cell.text for cell in cells] for _, cells in table.rows] == [
        ["51.00 \u00b1 1.00", "1.5"],
        ["71.10 \u00b1 1.05", "\u2013"],
    ]
    assert [cells[0].mark for _, cells in table.rows] == ["", "best"]
    assert "mean \u00b1 standard deviation of 3 seeds; bold: best" in table.note


def test_formats_mark_the_best_and_escape_signs():
    table = figures.table(_result())
    assert "| IMA | **71.10 \u00b1 1.05** | \u2013 |" in table.markdown()
    assert "loss \\| test" in table.markdown()
    assert "IMA & \\textbf{71.10 $\\pm$ 1.05} & -- \\\\" in table.latex()
    assert table.latex().count("\\\\") == 3 + table.latex().count("[b]")
    assert "<td><b>71.10 \u00b1 1.05</b></td>" in table.html()


def test_rounds_are_rows_where_there_is_nothing_else():
    table = figures.table(_result().accuracy.sel(algorithm="ima").isel(seed=0, drop=True).to_dataset())
    assert table.corner == "round"
    assert len(table.rows) == 12


def test_what_is_no_table_is_refused():
    with pytest.raises(ValueError, match="no variable 'nothing'"):
        figures.table(_result(), variables=["nothing"])
    with pytest.raises(ValueError, match="no dimension 'client'"):
        figures.table(_result(), rows="client")
    with pytest.raises(LookupError, match="no dimension for rows"):
        figures.table(xr.Dataset({"x": 1.0}))
    cube = xr.Dataset({"x": (("layer", "alpha", "beta"), np.zeros((2, 2, 2)))})
    with pytest.raises(ValueError, match="a table takes two and seeds"):
        figures.table(cube)


WORSE = np.array([[0.7749, 0.7989], [0.8160, 0.8752], [0.7217, 0.7887], [0.7908, 0.8538], [0.7883, 0.8263]])
"""Two seeds of five methods: the second is best, the first cannot be told from it, the fourth can by chance."""


def test_no_row_is_marked_above_a_better_one_that_is_not():
    assert marks(WORSE, larger=True) == ["", "best", "", "", ""]  # two seeds: no ties
    assert marks(np.array([[0.1, 0.2], [0.2, 0.1 + 1e-17], [0.0, 0.1]]), larger=True) == ["best", "tie", ""]
    assert meaning({"best", ""}, 2).endswith("two seeds are too few for an interval of the difference")
    three = np.hstack([WORSE, WORSE[::-1, :1]])
    states, means = marks(three, larger=True), three.mean(1)
    assert states[1] == "best" and "tie" in states
    marked = [place for place, state in enumerate(states) if state]
    assert all(states[place] for place in range(5) if means[place] >= means[marked].min())
    rng = np.random.default_rng(0)
    for _ in range(200):
        table = rng.normal(size=(6, rng.integers(1, 5))) + rng.normal(size=(6, 1))
        for larger in (True, False):
            states, means = marks(table, larger=larger, samples=None), table.mean(1) * (1 if larger else -1)
            lowest = min((mean for mean, state in zip(means, states, strict=True) if state), default=np.inf)
            assert all(bool(state) == (mean >= lowest) for mean, state in zip(means, states, strict=True))
            if states != ["open"] * 6:
                assert states.count("best") == any(states) and states[int(means.argmax())] in ("best", "")


def _table(values, **attrs):
    shape = {"row": ["fedavg", "ima", "fedlaw", "fedeve", "lss"][: len(values)], "column": ["digits"]}
    about = {"long_name": "accuracy", "units": "fraction"}
    ds = xr.Dataset(
        {"measured": (("row", "column", "seed"), values[:, None], about)}, {**shape, "seed": range(values.shape[1])}
    )
    return ds.assign(quick=("column", [0])).assign_attrs(
        {"rows": "method", "over": "", "metric": "accuracy", "rounds": "last round", **attrs}
    )


@pytest.mark.parametrize(
    ("values", "attrs"),
    [
        (WORSE, {}),
        (np.array([[0.80], [0.79], [0.50]]), {"test_samples": 260}),
        (np.array([[0.80], [0.79], [0.50]]), {"test_samples": 0}),
        (WORSE, {"paired_to": "fedavg"}),
        (np.random.default_rng(1).normal(0.8, 0.02, (3, 6)), {}),
    ],
)
def test_the_picture_and_the_text_of_a_table_have_the_same_numbers_and_marks(values, attrs):
    ds = _table(values, **attrs)
    picture = gallery.load("accuracy-table").draw(ds)
    rows = figures.table(ds, title=picture.axes[0].get_title(loc="left").replace("\n", " "))
    drawn = {text.get_text(): (text.get_fontweight(), text.get_fontstyle()) for text in picture.axes[0].texts}
    faces = {"best": ("bold", "normal"), "tie": ("normal", "italic")}
    for _, (cell,) in rows.rows:
        assert drawn[cell.text] == faces.get(cell.mark, ("normal", "normal"))
    note = " ".join(picture.axes[0].get_title(loc="left").split())
    states = {cell.mark for _, (cell,) in rows.rows}
    assert ("bold: best" in note) == ("best" in states) and ("italics:" in note) == ("tie" in states)
    assert rows.note.count("bold: best") == note.count("bold: best")
    assert rows.note.count("no number is bold") == note.count("no number is bold") == ("open" in states)


def test_what_stands_after_the_sign_is_what_the_note_says():
    few, many = np.array([1.0, 2.0, 4.0, np.nan, np.nan]), np.array([1.0, 2.0, 4.0, 3.0, 7.0])
    assert spread(few, deviation=True) == pytest.approx(np.std(few[:3], ddof=1))
    assert spread(many, deviation=False) == pytest.approx(stats.t.ppf(0.975, 4) * np.std(many, ddof=1) / 5**0.5)
    assert np.isnan(spread(np.array([3.0, np.nan]), deviation=True))
    assert spread_text(few[None]) == "mean \u00b1 standard deviation of 3 seeds"
    assert spread_text(many[None]) == "mean \u00b1 half the 95 % t interval of the mean of 5 seeds"
    both = spread_text(np.array([few, many]))
    assert both == "mean \u00b1 standard deviation; in brackets: number of seeds"


def test_a_table_has_one_kind_of_spread_in_its_text_and_picture():
    """Columns of five and of three seeds, and one cell of a single seed, which has no spread."""
    values = np.random.default_rng(1).random((3, 2, 5))
    values[:, 1, 3:] = values[2, 0, 1:] = np.nan
    axes = {"row": ["fedavg", "fedeve", "ima"], "column": ["Dir(0.1)", "Dir(1)"], "seed": range(5)}
    ds = xr.Dataset({"measured": (tuple(axes), values, {"long_name": "accuracy", "units": "fraction"})}, axes)
    ds["quick"] = ("column", [0, 0])
    rows = [[cell.text for cell in cells] for _, cells in figures.table(ds).rows]
    expected = [
        [
            f"{100 * np.nanmean(cell):.2f} \u00b1 {100 * np.nanstd(cell, ddof=1):.2f} ({len(cell[~np.isnan(cell)])})"
            for cell in row
        ]
        for row in values[:2]
    ]
    assert rows[:2] == expected and rows[2][0] == f"{100 * values[2, 0, 0]:.2f} (1)"
    picture = _table_figure.draw_table(ds, "accuracy")
    drawn = [text.get_text() for text in picture.axes[0].texts]
    assert {text for row in rows for text in row} <= set(drawn)
    assert "mean \u00b1 standard deviation; in" in " ".join(picture.axes[0].get_title(loc="left").split())


def test_cells_of_different_numbers_of_seeds_state_theirs():
    ds = _result().isel(round=-1)
    ds["accuracy"] = ds.accuracy.where((ds.algorithm == "ima") | (ds.seed < 3))
    (first, second), table = (cells for _, cells in figures.table(ds).rows), figures.table(ds)
    assert [first[0].text, second[0].text] == ["50.50 \u00b1 0.71 (2)", "71.10 \u00b1 1.05 (3)"]
    assert "mean \u00b1 standard deviation; in brackets: number of seeds" in table.note


def test_differences_that_are_equal_but_for_rounding_are_told_from_zero_without_a_warning(recwarn):
    first, second = np.array([0.8, 0.7, 0.9, 0.6]), np.array([0.7, 0.6, 0.8, 0.5])
    assert np.ptp(first - second) > 0
    assert not equal(first, second) and equal(first, first)
    assert not recwarn.list


def test_means_of_rounds_are_not_rounded_to_whole_rounds():
    values = xr.DataArray([[3.0, 1.0], [2.0, 3.0]], {"algorithm": ["fedavg", "ima"], "seed": [0, 1]})
    ds = xr.Dataset({"rounds": values.assign_attrs(long_name="rounds to the target", units="rounds")})
    text = str(figures.table(ds, rows="algorithm"))
    assert "2 \u00b1 1.4" in text
    assert "2.5 \u00b1 0.7" in text


def test_no_row_is_best_for_want_of_the_seeds_that_others_have():
    nan = np.nan
    assert marks(np.array([[0.90, nan, nan], [0.92, 0.70, 0.71]]), larger=True, samples=1000) == ["open"] * 2
    assert marks(np.array([[0.90, nan, nan], [0.80, 0.70, 0.71]]), larger=True, samples=1000) == ["best", ""]
    assert marks(np.array([[3.0, np.inf, np.inf], [5.0, 6.0, 7.0]]), larger=False) == ["", "best"]


def test_chance_near_one_is_that_of_the_row_nearer_to_a_half():
    assert marks(np.array([[1.0], [0.985], [0.9]]), larger=True, samples=100) == ["best", "tie", ""]
    assert marks(np.array([[0.99], [0.96], [0.5]]), larger=True, samples=100) == ["best", "tie", ""]


def test_a_series_is_averaged_over_its_last_rounds_by_number_and_the_note_says_so():
    values = np.full((2, 12), np.nan)
    values[:, [0, 5, 10]] = [[0.0, 0.25, 0.375], [0.1, 0.2, 0.4]]
    about = {"long_name": "accuracy", "units": "fraction"}
    ds = xr.Dataset({"accuracy": (("algorithm", "round"), values, about)}, {"algorithm": ["fedavg", "ima"]})
    written = figures.table(ds.assign_coords(round=range(12)))
    assert [cells[0].text for _, cells in written.rows] == ["31.25", "30.00"]
    assert "means over the last ten evaluated rounds" in written.note


def test_a_time_measured_once_decides_no_bold_face():
    ratio = ("row", [1.0, 1.02], {"long_name": "time over that of plain training", "units": "1"})
    ends = {"plain_ratio_low": ("row", [1.0, NAN]), "plain_ratio_high": ("row", [1.0, NAN])}
    macs = {"macs_round": ("row", [5.0, 5.0]), "macs_plain": ("row", [5.0, 5.0])}
    ds = xr.Dataset({"plain_ratio": ratio, **ends, **macs}, {"row": ["fedavg", "scaffold"]})
    assert [cell.mark for _, (cell,) in figures.table(ds, variables=["plain_ratio"]).rows] == ["", ""]
    measured = ds.assign(plain_ratio_low=("row", [1.0, 1.01]), plain_ratio_high=("row", [1.0, 1.03]))
    assert [cell.mark for _, (cell,) in figures.table(measured, variables=["plain_ratio"]).rows] == ["best", ""]
