"""What the drift view draws, and where the answers of a diagnosis are seen."""

import re

import numpy as np
import pytest
import tiny
import xarray as xr

from drift.analyses.counterfactual.counterfactual import counterfactual
from drift.analyses.decomposition.decomposition import decomposition
from drift.analyses.rounds.critical_point import critical_point
from drift.analyses.rounds.norms_and_weights import locality
from drift.analyses.rounds.variance import layer_drift
from drift.diagnosis.finding import Finding
from figures.explore.record.diagnosed import SHOWN_IN, Diagnosed, view_of
from figures.explore.record.drift_figures import (
    client_costs_figure,
    distances_figure,
    factors_figure,
    mark_critical_point,
    terms_figure,
)
from figures.explore.record.layer_panel import layers_figure
from figures.explore.record.line_figure import Marks, line_figure
from figures.explore.shell.selection import Selection
from figures.explore.views.drift import PANELS, of_the_record
from figures.explore.work.open_runs import OpenRuns


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    return tiny.trained(tmp_path_factory.mktemp("runs"), "rounds=3")


def test_the_record_has_a_figure_per_drift_and_the_clients_of_the_first_run(run):
    runs = OpenRuns([run.folder])
    read = of_the_record(runs, [run.name], Marks(run.name, 1), [2])
    assert list(read.figures) == list(PANELS) and "no clear change point" in read.remarks[0]
    distance = locality(run).distance
    points = sorted(value for trace in read.distances.data for value in trace.y)
    assert points == pytest.approx(sorted(distance.values[np.isfinite(distance.values)].tolist()), rel=1e-6)
    others, selected = read.distances.data
    assert set(selected.customdata) <= {2} and 2 not in set(others.customdata)


def test_of_many_clients_rounds_are_left_out_evenly_but_not_the_selected_one(run, monkeypatch):
    monkeypatch.setattr("figures.explore.record.drift_figures.POINTS", 4)
    distance = xr.DataArray(np.ones((9, 2)), {"round": range(9), "client": range(2)}, ("round", "client"))
    figure = distances_figure(OpenRuns([run.folder]).recorded(run.name), distance, Marks("", 4))
    assert sorted(set(figure.data[0].x)) == [0, 4, 5]


def test_a_change_point_is_marked_with_its_interval(run):
    recorded = OpenRuns([run.folder]).recorded(run.name)
    point = {"critical_point": 7.0, "critical_low": 5.0, "critical_high": 9.0}
    figure = line_figure([], "coherence", Marks("", 2))
    text = mark_critical_point(figure, recorded, xr.Dataset(point))
    shade, line = figure.layout.shapes[:2]
    assert (shade.x0, shade.x1, line.x0) == (4.5, 9.5, 7) and "round 7 (95 % bootstrap interval: 5 to 9" in text
    assert len(figure.layout.shapes) == 4, "zero and the selected round stay"


@pytest.mark.parametrize("change", [8, 17, 30])
def test_the_stated_round_is_the_first_after_the_best_split_of_a_positive_and_a_negative_phase(run, change):
    rounds, draw = np.arange(5, 45), np.random.default_rng(change)
    values = np.where(rounds < 5 + change, 0.3, -0.2) + draw.normal(0, 0.05, 40)
    point = critical_point(rounds, values)
    ends = {"critical_point": point.round, "critical_low": point.low, "critical_high": point.high}
    figure = line_figure([], "coherence", Marks())
    text = mark_critical_point(figure, OpenRuns([run.folder]).recorded(run.name), xr.Dataset(ends))
    stated, low, high = map(
        int, re.findall(r"turns negative in round (\d+) \(95 % bootstrap interval: (\d+) to (\d+), shaded\)", text)[0]
    )
    splits = [values[:place].sum() - values[place:].sum() for place in range(len(values))]
    assert stated == rounds[int(np.argmax(splits))]
    assert values[rounds < stated].mean() > 0 > values[rounds >= stated].mean()
    assert values[rounds == stated] < 0 < values[rounds == stated - 1]
    shade, line = figure.layout.shapes[:2]
    assert (shade.x0, shade.x1, line.x0, line.x1) == (low - 0.5, high + 0.5, stated, stated)
    assert low <= stated <= high


def test_factors_and_parts_are_those_of_the_analyses(run):
    ds = decomposition(run, rounds=[0, 2])
    traces = {trace.name: trace for trace in factors_figure(ds, Marks()).data}
    assert traces["squared bias"].y == pytest.approx(ds.bias2.values, rel=1e-6) and "variance" not in traces
    ds = counterfactual(run, rounds=[1])
    bars = {trace.name: trace for trace in terms_figure(ds, "norm").data}
    assert bars["sampling drift"].y == pytest.approx(ds.norm.sel(part="sampling").values, rel=1e-6)
    assert "server" not in bars, "FedAvg's server part is rounding"
    assert "full participation" not in {trace.name for trace in terms_figure(ds, "loss_cost").data}
    (clients,) = client_costs_figure(ds, 1, [int(run.round(1).ids[0])]).data
    assert list(clients.customdata) == run.round(1).ids.tolist()
    assert len(set(clients.marker.color)) == 2


@pytest.mark.parametrize("figure", SHOWN_IN)
def test_answers_lead_to_selections_that_exist(figure):
    place = view_of(Finding("coherence", "", figure=figure), Diagnosed(None, (4, 1)))
    selection = Selection()
    selection.change(**place)
    assert selection.view == place["view"]


def test_clients_that_differ_are_selected():
    result = Diagnosed(None, (4, 1))
    assert view_of(Finding("clients", "", figure="labels-partition"), result)["clients"] == [4, 1]
    assert view_of(Finding("client-7", "", figure="labels-partition"), result)["clients"] == [7]
    assert view_of(Finding("x", "", figure="unknown"), result) == {}


def test_layers_are_those_that_are_selected(run):
    ds = layer_drift(run, rounds=[1, 2])
    names = [str(name) for name in ds.layer.values]
    client, change = layers_figure(ds, 1, []).data
    assert list(client.x) == names and client.y == pytest.approx(ds.client_variance.sel(round=1).values, rel=1e-6)
    assert change.y == pytest.approx(ds.change_variance.sel(round=1).values, rel=1e-6)
    client, _ = layers_figure(ds, 2, [names[-1]]).data
    assert client.y == pytest.approx(ds.client_variance.sel(round=2, layer=names[-1:]).values, rel=1e-6)
