from __future__ import annotations

import numpy as np
import pytest
import tiny

from drift.analyses.rounds.norms_and_weights import aggregation_weights, regularisation_ratio_mean
from figures import gallery
from figures import papers as catalogue
from figures.axes.curves import MOVING

LEARNS = "method=fedlaw", "method.server_epochs=3", "method.server_lr=0.1"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("runs")


@pytest.fixture(scope="module")
def shrunk(folder):
    """Factors 1, 0.9 and 0.5 with seed 5, 0.9 also with seed 6 and one round more."""
    made = [tiny.trained(folder, "method=shrink", f"method.gamma={factor}") for factor in (1.0, 0.9, 0.5)]
    return [*made, tiny.trained(folder, "method=shrink", "method.gamma=0.9", "seed=6")]


@pytest.fixture(scope="module")
def grown(folder):
    """FedAvg and GWS with one and three local epochs, on Dirichlet(1) and Dirichlet(10)."""
    return [
        tiny.trained(folder, *method, f"local.epochs={epochs}", f"clients.concentration={level}")
        for method in (["method=fedavg"], [*LEARNS, "method.variant=gws"])
        for epochs in (1, 3)
        for level in (1.0, 10.0)
    ]


@pytest.fixture(scope="module")
def three(folder):
    """Three clients from two partitions, four rounds."""
    return [
        tiny.trained(
            folder,
            "rounds=4",
            "clients.number=3",
            "clients.partition=hybrid_dirichlet",
            "clients.first=1",
            f"clients.even={even}",
        )
        for even in (10.0, 0.5)
    ]


@pytest.fixture(scope="module")
def spoilt(folder):
    """Attentive and joint FedLAW with clients 1 and 3 of four corrupted."""
    return [
        tiny.trained(folder, *LEARNS, f"method.variant={variant}", "clients.corrupted=[1, 3]", "clients.per_round=4")
        for variant in ("attentive", "joint")
    ]


def late(run, last=10):
    return float(np.mean(run.metrics().accuracy.values[-last:]))


def test_late_accuracy_is_the_mean_of_the_last_rounds_of_a_factor(shrunk):
    ds = gallery.load("shrink-rounds").data(shrunk, last=2)
    assert ds.factor.values.tolist() == [0.5, 0.9, 1.0]
    assert float(ds.late.sel(factor=0.5, seed=5)) == pytest.approx(late(shrunk[2], 2))
    assert bool(ds.accuracy.sel(factor=1.0, seed=6).isnull().all())
    drawn = gallery.load("shrink-rounds").draw(ds)
    assert [text.get_text() for text in drawn.legends[0].get_texts()] == [
        rf"$\gamma$ = {f}" for f in ("0.5", "0.9", "1")
    ]


def test_one_factor_is_no_comparison(shrunk):
    with pytest.raises(LookupError, match="fedscape sweep"):
        gallery.load("shrink-rounds").data(shrunk[1:2])


def test_gain_is_the_difference_to_the_reference_at_the_same_setting(grown):
    ds = gallery.load("gws-setting").data(grown, over="local.epochs")
    assert ds.line.values.tolist() == ["Dir(10)", "Dir(1)"]
    by = {
        (run.label, run.experiment.local.epochs, run.experiment.clients.partition.concentration): run for run in grown
    }
    run, other = by["fedlaw-gws", 3, 10.0], by["fedavg", 3, 10.0]
    place = {"line": "Dir(10)", "value": 3, "seed": 5}
    assert float(ds.gain.sel(place)) == pytest.approx(100 * (late(run) - late(other)))
    assert float(ds.gamma.sel(place)) == pytest.approx(float(regularisation_ratio_mean(run).gamma))
    assert float(ds.optimisation.sel(place)) == pytest.approx(float(regularisation_ratio_mean(run).optimisation))


def test_over_the_concentration_there_is_one_line(grown):
    chosen = [run for run in grown if run.experiment.local.epochs == 1]
    ds = gallery.load("gws-setting").data(chosen, over="clients.concentration")
    assert ds.sizes["line"] == 1
    assert ds.value.values.tolist() == [1.0, 10.0]
    drawn = gallery.load("gws-setting").draw(ds)
    assert [text.get_text() for text in drawn.axes[0].get_xticklabels()] == ["1", "10"]
    with pytest.raises(ValueError, match=r"differ in more than clients\.concentration"):
        gallery.load("gws-setting").data(grown, over="clients.concentration")


def test_gamma_is_one_for_fedavg_and_the_factor_of_fixed_shrinking(shrunk, grown):
    ds = gallery.load("gamma-table").data([shrunk[1], *grown], over=["local.epochs"])
    assert float(ds.measured.sel(row="fedavg", column="blobs, Dir(1), 3").mean()) == pytest.approx(1, abs=1e-6)
    assert float(ds.measured.sel(row="shrink", column="blobs, Dir(1), 1").mean()) == pytest.approx(0.9, abs=1e-6)
    gallery.load("gamma-table").draw(ds).draw_without_rendering()


def test_a_panel_is_a_setting_and_shorter_runs_end_early(grown, three):
    chosen = [run for run in grown if run.experiment.local.epochs == 1]
    ds = gallery.load("accuracy-panels").data([*chosen, *three])
    assert ds.panel.values.tolist()[:2] == [
        "blobs, linear, Dir(1), 3 of 4 clients",
        "blobs, linear, Dir(10), 3 of 4 clients",
    ]
    assert ds.accuracy.sel(algorithm="fedavg").notnull().sum("round").values.ravel().tolist() == [3, 3, 4, 4]
    titles = [ax.get_title() for ax in gallery.load("accuracy-panels").draw(ds).axes]
    assert titles == [panel.removeprefix("blobs, linear, ") for panel in ds.panel.values]  # which all panels share


def test_runs_of_one_panel_method_and_seed_need_another_setting(grown):
    with pytest.raises(ValueError, match=r"local\.epochs"):
        gallery.load("accuracy-panels").data(grown)
    assert gallery.load("accuracy-panels").data(grown, over=["local.epochs"]).sizes["panel"] == 4


def test_three_clients_have_their_classes_and_landscape_by_partition(three):
    figure = gallery.load("simplex-settings")
    ds = figure.data(three, round=1, rounds=4, step=0.25, extend=0.25)
    assert ds.panel.values.tolist() == ["hybrid Dir(10) and Dir(0.1)", "hybrid Dir(0.5) and Dir(0.1)"]
    assert ds.class_share.sum("class").values == pytest.approx(np.ones((2, 3)))
    assert ds.shown.values.tolist() == [1, 1]
    assert ds.best_weight.sum("client").values == pytest.approx(np.ones((2, 4)))
    assert len([ax for ax in figure.draw(ds).axes if ax.has_data()]) >= 4


def test_one_partition_of_three_clients_is_not_enough(three):
    with pytest.raises(LookupError, match="fedscape sweep"):
        gallery.load("simplex-settings").data(three[:1])


def test_corrupted_clients_are_told_from_clean_ones(spoilt):
    figure = gallery.load("weights-corrupted")
    ds = figure.data(spoilt, smooth=1)
    ratio = aggregation_weights(spoilt[0]).weight_ratio
    expected = ratio.sel(client=[1, 3]).mean("client").values
    shown = ds.weight_ratio.sel(panel=0.5, algorithm="fedlaw-attentive", group="corrupted", seed=5)
    assert shown.values == pytest.approx(expected)
    assert figure.draw(ds).axes[0].get_title() == "50% of the clients corrupted"
    picture = figure.draw(figure.data(spoilt, smooth=3))
    assert {MOVING[line] for line in picture.axes[0].lines if line in MOVING} == {"moving mean of 3 rounds"}
    assert "moving mean of 3 rounds" in picture.legends[0].get_title().get_text()


def test_runs_without_corrupted_clients_are_refused(grown):
    with pytest.raises(LookupError, match="corrupted"):
        gallery.load("weights-corrupted").data(grown)


def test_balanced_clients_weight_is_shown_where_gamma_stays_one(folder):
    run = tiny.trained(folder, *LEARNS, "method.variant=attentive", "clients.per_round=4")
    figure = gallery.load("weights-learned")
    ds = figure.data([run])
    total = aggregation_weights(run).weights.sum("client").values
    assert (ds.balanced_weight.values.ravel() <= total + 1e-9).all()
    assert figure.draw(ds).axes[0].get_ylabel() == "weight of the balanced clients"


def test_printed_correlations_stand_beside_the_measured_ones(folder):
    figure = gallery.load("weight-factors")
    options = [*LEARNS, "method.variant=attentive", "clients.per_round=4"]
    made = [tiny.trained(folder, *options, f"local.epochs={epochs}") for epochs in (1, 5)]
    ds = figure.data(made, paper="fedlaw", item="Table 11")
    assert ds.printed.sel(factor="balance").values.tolist() == [0.41, 0.024, 0.35]
    assert [text.get_text() for text in figure.draw(ds).legends[0].get_texts()] == ["printed in the paper"]


def test_table_3_has_the_papers_ninety_six_numbers():
    item = catalogue.load("fedlaw").item("Table 3")
    cells = {(one.row, one.column): one.value for one in item.numbers}
    assert len(cells) == 96
    assert cells["fedlaw", "CIFAR-10 ResNet20, 100"] == 80.46
    assert cells["fedlaw-swa", "CIFAR-100 ResNet20, 0.1"] == 25.31
    assert {column.rpartition(", ")[0] for _, column in cells} == {setting.label for setting in item.settings}
