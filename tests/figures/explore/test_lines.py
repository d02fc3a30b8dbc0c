"""Curves of any number: seeds, means with intervals, and differences on the same cohorts."""

from dataclasses import replace

import numpy as np
import pytest
import tiny
import xarray as xr
from scipy import stats

from drift.analyses.rounds.coherence import coherence
from drift.analyses.rounds.numbers import OF_RECORD, quantity
from figures.explore.record.line_figure import Marks, line_figure, thinned
from figures.explore.record.series import curves, lines, number_names, recorded_runs
from figures.explore.shell.selection import span
from figures.explore.work.open_runs import OpenRuns
from figures.selection.lines import differences, interval_lines, mean_line, summaries


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """FedAvg with seeds 1 and 2, FedProx with 1 and 3, and FedAvg of another cohort size with seed 1."""
    folder = tmp_path_factory.mktemp("runs")
    for overrides in (["seed=1"], ["seed=2"], ["method=fedprox", "seed=1"], ["method=fedprox", "seed=3"]):
        tiny.trained(folder, "rounds=4", *overrides)
    tiny.trained(folder, "rounds=4", "clients.per_round=2", "method=ima", "method.window=2", "seed=1")
    return folder


@pytest.fixture
def usable(folder):
    runs = OpenRuns([folder])
    found, remarks = recorded_runs(runs, runs.names)
    assert not remarks
    return found


def test_a_line_per_run_in_groups_that_differ_in_the_seed(usable):
    drawn, absent = lines(usable, "loss")
    assert [line.group for line in drawn] == ["fedavg", "fedavg", "ima", "fedprox", "fedprox"] and not absent
    for line in drawn:
        assert np.array_equal(line.values, usable[line.name].numbers().loss)
    drawn, _ = lines(usable, "mean_cosine")
    assert np.array_equal(drawn[0].values, coherence(drawn[0].run).mean_cosine)


def test_runs_without_the_number_are_named(usable):
    drawn, absent = lines(usable, "proxy_loss")
    assert not drawn and len(absent) == 1 and "recorded no proxy loss" in absent[0]


def test_differences_are_of_one_seed_and_the_same_cohorts(usable):
    drawn, _ = lines(usable, "loss")
    compared, remarks = differences(drawn, "fedavg")
    (line,) = compared
    pair = [one.values for one in drawn if one.run.seed == 1 and one.group in ("fedprox", "fedavg")]
    assert line.group == "fedprox" and np.array_equal(line.values, pair[1] - pair[0])
    assert len(remarks) == 2
    assert any("ima" in text and "cohorts are not those of the reference in all rounds" in text for text in remarks)
    assert any("fedprox" in text and "no run of its seed, 3" in text for text in remarks)
    with pytest.raises(LookupError, match=r"no group 'fedlaw'.*fedavg; ima; fedprox"):
        differences(drawn, "fedlaw")


def test_the_mean_of_seeds_has_the_intervals_of_the_house(usable):
    drawn, _ = lines(usable, "loss")
    pair = drawn[:2]
    mean, (low, high) = mean_line(pair), interval_lines(pair)
    both = np.stack([line.values for line in pair])
    assert np.allclose(mean, both.mean(0))
    ends = stats.t.interval(0.95, 1, loc=both.mean(0), scale=stats.sem(both))
    assert np.allclose(low, ends[0]) and np.allclose(high, ends[1])
    last = summaries(pair, [2, 3])[0]
    assert last.estimate.value == pytest.approx(both[:, 2:].mean()) and last.seeds == 2


def test_the_figure_has_thin_lines_and_means_or_bands_and_shows_the_selection(usable):
    drawn, _ = lines(usable, "loss")
    figure = line_figure(drawn, "loss", Marks(drawn[1].name, 2, [1, 3]))
    widths = [trace.line.width for trace in figure.data[:3]]
    assert widths == [1, 3, 2.4] and figure.layout.yaxis.type == "log"
    assert [trace.name for trace in figure.data if trace.showlegend is not False] == ["FedAvg", "IMA", "FedProx"]
    shade, line = figure.layout.shapes
    assert (shade.x0, shade.x1) == (0.5, 3.5) and line.x0 == line.x1 == 2
    few = line_figure(drawn, "loss", Marks(), intervals=True)
    assert [trace.fill for trace in few.data] == [None] * len(few.data), "few seeds are lines"
    five = [replace(drawn[place % 2], name=f"run {place}") for place in range(5)]
    band, mean, *_ = line_figure(five, "loss", Marks(), intervals=True).data
    low, high = interval_lines(five)
    assert band.fill == "toself" and (min(band.y), max(band.y)) == pytest.approx((low.min(), high.max()), rel=1e-6)
    assert mean.name == "FedAvg"
    compared, _ = differences(drawn, "fedavg")
    difference = line_figure(compared, "loss", Marks(), difference=True)
    assert difference.layout.yaxis.type != "log" and difference.layout.shapes[0].y0 == 0


def test_hovering_names_how_many_runs_a_mean_and_its_band_are_of(usable):
    drawn, _ = lines(usable, "loss")
    for count, intervals in ((2, False), (2, True), (5, True), (5, False)):
        some = [replace(drawn[place % 2], name=f"run {place}") for place in range(count)]
        figure = line_figure(some, "loss", Marks(), intervals=intervals)
        (mean,) = [trace for trace in figure.data if trace.hovertemplate and "mean of" in trace.hovertemplate]
        assert f"mean of {count} runs" in mean.hovertemplate
        banded = [trace for trace in figure.data if trace.fill == "toself"]
        assert ("band: its 95 % t interval" in mean.hovertemplate) == bool(banded) == (intervals and count >= 5)
        table = np.stack([line.values for line in some])
        np.testing.assert_allclose(mean.y, table.mean(0), rtol=1e-6)
        if banded:
            reach = stats.t.ppf(0.975, count - 1) * table.std(0, ddof=1) / count**0.5
            ends = np.concatenate([table.mean(0) + reach, (table.mean(0) - reach)[::-1]])
            np.testing.assert_allclose(banded[0].y, ends, rtol=1e-6)


def test_curves_of_many_points_keep_their_extremes_and_all_points_where_one_looks():
    values = np.sin(np.arange(5000.0))
    values[[17, 4001]] = 9, -9
    values[600:700] = np.nan
    curve = xr.DataArray(values, {"round": np.arange(5000)}, "round")
    few = thinned(curve, 100)
    assert few.size <= 260 and few.max() == 9 and few.min() == -9
    assert few["round"].values[[0, -1]].tolist() == [0, 4999] and few.isnull().any()
    near = thinned(curve, 100, [4000.5, 4020.2])
    assert near["round"].values.tolist() == list(range(4000, 4022)) and np.array_equal(near, values[4000:4022])
    assert thinned(curve, 1).size == 5000 and thinned(curve, 100, [9000, 9100]).size == 0


def test_what_is_wrong_with_a_run_leaves_the_others(folder):
    runs = OpenRuns([folder])
    computed = curves(runs, [*runs.names, "gone"], "loss", "nothing")
    assert len(computed.shown) == 5 and not computed.compared
    assert len(computed.remarks) == 1 and "no group 'nothing'" in computed.remarks[0]
    assert "local.lr" not in computed.differing and "clients.per_round" in computed.differing


def test_long_runs_are_read_little_by_little_to_the_same_curves(folder, monkeypatch):
    monkeypatch.setattr("figures.explore.work.open_runs.AT_A_TIME", 1)
    for name in ("loss", "coherence"):
        runs = OpenRuns([folder])
        computed, sizes = curves(runs, runs.names, name, "", 0.0), []
        while not computed.complete:
            sizes.append(sum(line.values.size for line in computed.shown))
            assert len(sizes) < 40 and "Reading" in computed.remarks[0]
            computed = curves(runs, runs.names, name, "", 0.0)
        expected = curves(OpenRuns([folder]), runs.names, name, "")
        assert sizes == sorted(sizes) and sizes[0] < sizes[-1] <= sum(line.values.size for line in expected.shown)
        for line, other in zip(computed.shown, expected.shown, strict=True):
            assert line.name == other.name and line.values.equals(other.values)
        assert computed.differing == expected.differing != ""


def test_numbers_are_offered_by_kind(usable):
    offered = number_names(usable.values())
    assert set(offered["from the record"].values()) == set(OF_RECORD)
    assert [name for name in OF_RECORD if quantity(name).log] == ["client_variance", "change_variance", "ratio"]
    assert list(offered["recorded"].values())[:2] == ["accuracy", "loss"]
    assert "coherence" in offered["from the record"].values()


@pytest.mark.parametrize(("ends", "rounds"), [([1.2, 4.8], [2, 4]), ([4.8, -3.0], [0, 4]), ([2.1, 2.9], [])])
def test_a_span_has_the_rounds_between_its_ends(ends, rounds):
    assert span(ends) == rounds
