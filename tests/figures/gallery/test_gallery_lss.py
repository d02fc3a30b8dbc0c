"""Figures and tables of the LSS paper: numbers of models, rounds and columns are those of the runs."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
import xarray as xr

import drift
from drift.analyses.landscapes.model_quality import noise_robustness
from drift.config.experiment import Experiment
from drift.config.load import read
from figures import gallery, papers
from figures.gallery import _pools, _table_figure
from figures.looks import style
from figures.texts.table import Cell


def _run(folder, method, seed, *, rounds=3, valid=0.0, **local):
    experiment = Experiment(
        rounds=rounds,
        seed=seed,
        task={"dataset": "blobs", "model": "linear"},
        clients={"number": 4, "per_round": 3, "partition": {"name": "iid"}, "valid_ratio": valid},
        method=method,
        local={"lr": 0.05, "epochs": 1, "batch": 20, **local},
    )
    return drift.simulate(experiment, runs=folder)


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    folder = tmp_path_factory.mktemp("lss")
    pools = [_run(folder, {"name": "lss", "candidates": count}, seed) for count, seed in ((1, 0), (3, 0), (3, 1))]
    plain = [_run(folder, {"name": "fedavg"}, seed) for seed in (0, 1)]
    return [*pools, *plain]


def test_accuracies_over_models_are_those_of_the_runs(runs):
    found = gallery.load("accuracies-models").data(runs, round=0)
    assert found.models.values.tolist() == [1, 3]
    assert found.seed.values.tolist() == [0, 1]
    assert np.isnan(found.global_accuracy.sel(models=1, seed=1))
    measured = runs[2].round(0).metrics["accuracy"]
    assert float(found.global_accuracy.sel(models=3, seed=1)) == pytest.approx(measured)
    assert float(found.fedavg_global_accuracy.sel(seed=1)) == pytest.approx(runs[4].round(0).metrics["accuracy"])


def test_a_line_over_models_goes_with_a_dashed_level_of_fedavg(runs):
    figure = gallery.load("accuracies-models").draw(gallery.load("accuracies-models").data(runs))
    line, level = (one for one in figure.axes[0].lines if one.get_label()[0] != "_")
    assert line.get_xdata().tolist() == [1, 3]
    assert line.get_color() == style.colour("lss")
    assert level.get_linestyle() == "--"
    assert level.get_color() == style.colour("fedavg")


def test_pools_alike_in_all_else_are_compared(runs, tmp_path):
    other = _run(tmp_path, {"name": "lss", "candidates": 2}, 0, lr=0.2)
    pools, plain = _pools.split_by_candidates([*runs, other])
    assert list(pools) == [1, 3]
    assert len(plain) == 2


def test_one_number_of_models_is_refused(runs):
    for name in ("accuracies-models", "sharpness-models"):
        with pytest.raises(LookupError, match=r"fewer than two sizes of a client's pool.*fedscape sweep"):
            gallery.load(name).data(runs[1:])


def test_the_papers_eigenvalues_stand_apart(runs):
    figure = gallery.load("sharpness-models")
    ds = figure.data(runs, batch=20, batches=2, paper="lss", item="Table 7")
    assert dict(zip(ds.mark.values.tolist(), ds.printed.values.tolist(), strict=True)) == {
        2: 147.2,
        3: 136.67,
        4: 119.14,
    }
    assert float(ds.fedavg_printed) == 193.18
    panels = figure.draw(ds).axes
    assert len(panels) == 3
    assert "printed in the paper" in panels[2].get_title()
    assert len(figure.draw(figure.data(runs, batch=20, batches=2)).axes) == 2


def test_accuracy_after_rounds_is_that_of_the_round(runs):
    table = gallery.load("accuracy-after")
    ds = table.data(runs[:1] + runs[2:], after=(1, 2, 9), rows="pool")
    assert ds.row.values.tolist() == ["fedavg", "lss, M = 1", "lss, M = 3"]
    assert [str(name).split(", ")[-1] for name in ds.column.values] == ["R = 1", "R = 2", "R = 9"]
    expected = runs[3].round(1).metrics["accuracy"]
    assert float(ds.measured.sel(row="fedavg", seed=0).isel(column=1)) == pytest.approx(expected)
    assert np.isnan(ds.measured.isel(column=2)).all()
    texts = [text.get_text() for text in table.draw(ds).axes[0].texts]
    assert "LSS, M = 3" in texts


def test_rounds_before_the_first_are_refused(runs):
    with pytest.raises(ValueError, match="after has 0"):
        gallery.load("accuracy-after").data(runs[3:], after=(0,))


def test_points_lost_under_noise_are_those_of_the_analysis(runs):
    ds = gallery.load("robustness-table").data(runs[2:3] + runs[4:], after=(1, 3), levels=(0.1, 0.2), draws=2)
    lost = runs[4].cached(noise_robustness, round=0, levels=[0.1, 0.2], draws=2)["drop"]
    row = ds.measured.sel(row="fedavg", seed=1)
    assert float(row.isel(column=2)) == pytest.approx(100 * float(lost[1]))
    assert [str(name).rpartition("/255, ")[2] for name in ds.column.values] == ["R = 1", "R = 3", "R = 1", "R = 3"]


def test_early_rounds_end_where_asked(runs):
    figure = gallery.load("accuracy-early-late")
    ds = figure.data(runs[3:], early=2)
    assert ds["round"].values.tolist() == [1, 2, 3]
    first, whole = figure.draw(ds).axes
    assert first.lines[0].get_xdata().tolist() == [1, 2]
    assert whole.lines[0].get_xdata().tolist() == [2, 3]
    assert figure.data(runs[3:]).attrs["early"] == 1, "half of three rounds"
    with pytest.raises(ValueError, match="early is 0"):
        figure.data(runs, early=0)


def test_costs_have_a_row_for_each_size_of_the_pool_with_the_papers_in_grey(runs, tmp_path):
    held = _run(tmp_path, {"name": "soups", "candidates": 5}, 0, valid=0.2)
    table = gallery.load("cost-table")
    ds = table.data(gallery.AnyOf([*runs, held]), paper="lss", item="Table 5")
    assert ds.row.values.tolist() == ["fedavg", "lss, M = 1", "lss, M = 3", "soups"]
    assert float(ds.macs_training.sel(row="soups")) == float(ds.macs.sel(row="soups"))
    assert float(ds.seconds_round.sel(row="soups")) == pytest.approx(5 * float(ds.seconds_epoch.sel(row="soups")))
    once, thrice = (float(ds.macs_training.sel(row=f"lss, M = {count}")) for count in (1, 3))
    assert thrice == 2 * once
    assert float(ds.macs_training_printed.sel(row="fedavg")) == 1.82e9
    assert np.isnan(ds.macs_training_printed.sel(row="lss, M = 3"))
    shown = [text for ax in table.draw(ds).axes for text in ax.texts]
    assert {text.get_text() for text in shown if text.get_color() == _table_figure.PALE} >= {"paper", "1.82 GMAC"}
    plain = [text for ax in table.draw(table.data(gallery.AnyOf(runs))).axes for text in ax.texts]
    assert {text.get_color() for text in plain} == {"black"}
    assert "(paper)" not in {text.get_text() for text in plain}, "its way to count stands beside its numbers alone"
    title = table.draw(table.data(gallery.AnyOf(runs))).axes[0].get_title(loc="left").replace("\n", " ")
    assert "LSS, M = 3 computes 3 times as much as FedAvg; training counts" in title


def test_no_cell_of_a_table_lies_over_another():
    paper, groups = [Cell("21.3 s", printed=True)] * 2, []
    for text in ["91.8 kMAC", "14.4 ms\n[11.1, 26.8]", "as plain", "274 kB"] * 2:
        columns = {"measured": [Cell(text)] * 2, "paper": paper}
        groups.append(_table_figure.Group(["local training", "of a client"], columns))
    figure = _table_figure.draw_groups(groups, ["FedAvg+IMA", "LSS, M = 4"], "what the numbers are")
    figure.draw_without_rendering()
    for ax in figure.axes:
        boxes = [text.get_window_extent() for text in ax.texts if text.get_text()]
        assert not [(one, other) for one, other in combinations(boxes, 2) if one.overlaps(other)]
        assert min(box.x0 for box in boxes) >= 0 and max(box.x1 for box in boxes) <= figure.bbox.x1


def test_quick_variants_leave_the_options_of_the_papers_model_and_data_behind():
    paper, quick = read("lss-digit5-domains"), read("lss-digit5-domains-quick")
    assert paper.task.model_options == {"source": "microsoft/resnet-18"}
    assert quick.task.model_options == {}
    assert "size" not in quick.task.dataset_options
    assert paper.method.pool_init == quick.method.pool_init == "trained"


def test_the_papers_numbers_are_whole():
    """Each table has as many cells as the paper prints of it."""
    cells = {item.item: len(item.numbers) for item in papers.load("lss").items if item.numbers}
    counts = {"Table 1": 48, "Table 2": 48, "Table 4": 5, "Table 5": 15, "Table 6": 8, "Table 7": 4}
    assert cells == {**counts, **{f"Table {number}": 8 for number in (8, 9, 10, 11)}}


def test_many_rounds_are_smoothed_and_the_first_ones_are_not():
    raw = np.tile([0.4, 0.6], 45)
    values = xr.DataArray(raw[None, None], dims=("algorithm", "seed", "round"), name="accuracy")
    ds = values.to_dataset().assign_coords(algorithm=["lss"], seed=[0], round=np.arange(1, 91)).assign_attrs(early=10)
    first, late = gallery.load("accuracy-early-late").draw(ds).axes
    assert first.lines[0].get_ydata().tolist() == raw[:10].tolist()
    assert np.ptp(late.lines[0].get_ydata()) < 0.1 < np.ptp(raw)
    assert late.lines[0].get_xdata().tolist() == list(range(10, 91))
    assert (first.get_title(), late.get_title()) == ("early, not smoothed", "late")
