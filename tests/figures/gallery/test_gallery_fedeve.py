"""Figures and tables of the FedEve paper: rankings, gains with natural users, settings by local epochs."""

from __future__ import annotations

import numpy as np
import pytest

import drift
from drift.analyses.accuracy.by_group import ranking_rounds
from drift.config.experiment import Experiment
from figures import gallery, papers
from tests import movielens


def _films(folder, method):
    movielens.write(folder / "data" / "movielens1m")
    experiment = Experiment(
        rounds=2,
        seed=1,
        task={
            "dataset": "movielens1m",
            "dataset_options": {"any_size": True, "history": 4, "test_negatives": 5},
            "model": "din",
            "model_options": {"sizes": movielens.SIZES},
        },
        clients={"number": 3, "per_round": 2, "partition": {"name": "users"}},
        method=method,
        local={"optimizer": "adam", "lr": 0.01, "epochs": 1, "batch": 10},
    )
    return drift.simulate(experiment, runs=folder / "runs", data=folder / "data")


def _run(folder, partition, *, epochs=1, method="fedavg", seed=0):
    experiment = Experiment(
        rounds=3,
        seed=seed,
        task={"dataset": "blobs", "model": "linear"},
        clients={"number": 6, "per_round": 3, "partition": partition},
        method={"name": method},
        local={"lr": 0.05, "epochs": epochs, "batch": 20},
    )
    return drift.simulate(experiment, runs=folder)


def test_rankings_are_those_of_the_last_model(tmp_path):
    runs = [_films(tmp_path, {"name": name}) for name in ("fedavg", "fedavgm")]
    table = gallery.load("ranking-table")
    ds = table.data(runs, ranks=(1, 3))
    assert ds.row.values.tolist() == ["fedavg", "fedavgm"]
    assert [str(name).split(", ")[-1] for name in ds.column.values] == ["AUC", "HR@1", "HR@3", "NDCG@1", "NDCG@3"]
    expected = ranking_rounds(runs[1], rounds=[-1], k=[1, 3])
    found = ds.measured.sel(row="fedavgm").isel(seed=0).values
    assert found[0] == pytest.approx(float(expected.auc[0]))
    assert found[2] == pytest.approx(float(expected.hit_rate.sel(rank=3)[0]))
    assert found[3] == pytest.approx(float(expected.ndcg.sel(rank=1)[0]))
    assert table.draw(ds).axes[0].texts


def test_rankings_of_images_are_refused(tmp_path):
    with pytest.raises(LookupError, match="fedscape train fedeve-movielens"):
        gallery.load("ranking-table").data([_run(tmp_path, {"name": "iid"})])


def test_gains_are_in_groups_of_epochs_from_skewed_to_even(tmp_path):
    levels = [{"name": "dirichlet_clients", "concentration": value} for value in (3.0, 0.3)]
    runs = [_run(tmp_path, level, epochs=count, method="fedeve") for level in levels for count in (1, 2)]
    figure = gallery.load("gain-alpha")
    ds = figure.data(gallery.AnyOf([_run(tmp_path, levels[0]), *runs]))
    assert ds.attrs["method"] == "fedeve"
    assert ds.gain.shape == (2, 2, 2)
    expected = [runs[3].round(index).extras["gain"] for index in (1, 2)]
    assert ds.gain.sel(concentration=0.3, epochs=2).values == pytest.approx(np.array(expected, dtype=float))
    natural = ds.assign_coords(concentration=[0.3, np.inf])
    ticks = [tick.get_text() for tick in figure.draw(natural).axes[0].get_xticklabels()]
    assert ticks == ["Dir(0.3)", "natural"]


def test_settings_by_local_epochs_have_a_row_each(tmp_path):
    grid = [(setting, count) for count in (1, 2) for setting in ("iid", "both")]
    runs = [
        _run(tmp_path, {"name": "drift", "setting": setting, "concentration": 0.3}, epochs=count)
        for setting, count in grid
    ]
    figure = gallery.load("settings-rounds")
    ds = figure.data(runs)
    assert ds.accuracy.sizes["epochs"] == 2
    found = ds.accuracy.sel(epochs=2, setting="both", concentration=0.3, seed=0).values
    assert found == pytest.approx(runs[3].metrics().accuracy.values)
    panels = figure.draw(ds).axes
    assert len(panels) == 2
    assert "2 local epochs" in panels[1].get_title()


def test_the_papers_numbers_are_whole():
    """Each table has as many cells as the paper prints of it."""
    cells = {item.item: len(item.numbers) for item in papers.load("fedeve").items if item.numbers}
    assert cells == {
        "Table 1, FEMNIST": 18,
        "Table 1, natural": 6,
        "Table 1, CIFAR-100": 18,
        "Table 2": 25,
        "Table 3": 27,
        "Table 3, natural": 9,
    }
