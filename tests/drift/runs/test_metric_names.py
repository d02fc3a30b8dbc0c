"""Metrics have any name: they are drawn by it, and stand for a usual one where the user says so."""

import json

import numpy as np
import pytest
from recordings import moved, net

import drift
from drift.record.recorder import Recorder
from drift.simulation.run_index import index
from figures import cli
from figures.gallery import load
from landscape.results import zarr_files

ACCURACIES = (0.5, 0.75, 0.8125)


def recorded(folder, **options):
    """A run whose numbers are named as a Flower `evaluate_fn` may name them."""
    recorder, start = Recorder(folder, net(), method="FedAvg", seed=1, **options), net().state_dict()
    for number, accuracy in enumerate(ACCURACIES):
        end = moved(net(), 100 + number)
        clients = {client: (moved(net(), 10 * number + client), 2 + client) for client in (0, 3)}
        numbers = {"test_acc": accuracy, "test_loss": 2 - accuracy, "train_loss": 1 - accuracy}
        recorder.round(start=start, clients=clients, end=end, metrics=numbers)
        start = end
    return drift.open(folder)


def test_numbers_are_drawn_as_they_are_named_and_curves_that_need_none_are_drawn(tmp_path):
    run = recorded(tmp_path / "runs" / "mine")
    figure = load("accuracy-rounds")
    ds = figure.data([run])
    assert set(ds.data_vars) == {"test_acc", "test_loss", "train_loss"}
    assert ds.test_acc.values.ravel().tolist() == list(ACCURACIES)
    assert [ax.get_ylabel().split(" [")[0] for ax in figure.draw(ds).axes] == ["test_acc", "test_loss", "train_loss"]
    drawn = load("coherence-rounds").draw(load("coherence-rounds").data([run]))
    assert len(drawn.axes) == 2, "coherence and cosine need no accuracy"
    with pytest.raises(LookupError, match=r"Recorded: test_acc, test_loss, train_loss.*metrics.error=NAME"):
        load("locality-rounds").draw(load("locality-rounds").data([run]))


def test_a_name_said_afterwards_or_when_recorded_stands_for_the_usual_one(tmp_path):
    plain = recorded(tmp_path / "runs" / "plain")
    told = recorded(tmp_path / "runs" / "told", metrics={"accuracy": "test_acc"})
    after = drift.open(plain.folder, metrics={"accuracy": "test_acc"})
    for run in (told, after):
        assert run.metrics().accuracy.values.tolist() == list(ACCURACIES)
        assert run.round(-1).metrics["accuracy"] == ACCURACIES[-1] == run.round(-1).metrics["test_acc"]
        ds = load("numbers-rounds").data([run], number="accuracy")
        np.testing.assert_array_equal(ds.value.values.ravel(), ACCURACIES)
    assert [row["accuracy"] for row in index(tmp_path / "runs")] == [None, ACCURACIES[-1]]
    with pytest.raises(LookupError, match=r"[Dd]id you mean 'test_acc'"):
        drift.open(plain.folder, metrics={"accuracy": "test_ac"})
    with pytest.raises(ValueError, match="metrics has"):
        Recorder(tmp_path / "other", metrics={"accuracy": 1})


def test_the_command_line_maps_a_name(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    recorded(tmp_path / "runs" / "mine")
    for setting, code in (("metrics.accuracy=test_acc", 0), ("metrics.accuracy=nothing", 2)):
        with pytest.raises(SystemExit) as stop:
            cli.main(["figures", "draw", "accuracy-rounds", "mine", "--set", setting])
        assert stop.value.code == code, capsys.readouterr().err
    ds = zarr_files.load("out/figures/accuracy-rounds.zarr")
    assert ds.accuracy.values.ravel().tolist() == list(ACCURACIES)
    about = json.loads((tmp_path / "runs/mine/run.json").read_text())
    assert "metrics" not in about["told"], "the record stays as it is"
