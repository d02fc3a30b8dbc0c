"""Metrics have any name: they are drawn by it, and stand for a usual one where the user says so."""

import json
from pathlib import Path

import numpy as np
import pytest
from recordings import moved, net

import drift
from drift.record.recorder import Recorder
from drift.runs.growing_run import GrowingRun
from drift.simulation.run_index import index
from figures import cli
from figures.gallery import load
from landscape.results import netcdf_files

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
    assert [ax.get_ylabel().split(" [")[0] for ax in figure.draw(ds).axes] == ["test acc", "test loss", "train loss"]
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


@pytest.fixture
def typed(tmp_path, monkeypatch, capsys):
    """A function of a line after `fedscape`, which returns exit code, stdout and stderr; runs/mine is recorded."""
    monkeypatch.chdir(tmp_path)
    recorded(tmp_path / "runs" / "mine")

    def run(line):
        monkeypatch.setenv("FEDSCAPE_METRICS", "")  # a command is a process of its own
        with pytest.raises(SystemExit) as stop:
            cli.main(line.split())
        return stop.value.code, *capsys.readouterr()

    return run


MAPPED = "--set metrics.accuracy=test_acc"


def test_a_figure_takes_a_name_from_the_command_line(typed, tmp_path):
    code, _, told = typed(f"figures draw accuracy-rounds mine {MAPPED}")
    assert code == 0, told
    ds = netcdf_files.load("out/figures/accuracy-rounds.nc")
    assert ds.accuracy.values.ravel().tolist() == list(ACCURACIES)
    assert typed(f"figures draw coherence-rounds mine {MAPPED} relative=true")[0] == 2, "other options are still read"
    about = json.loads((tmp_path / "runs/mine/run.json").read_text())
    assert "metrics" not in about["told"], "the record stays as it is"
    code, _, told = typed(f"figures draw accuracy-rounds out/figures/accuracy-rounds.nc {MAPPED}")
    assert code == 0 and "drawn as they are" in told


@pytest.mark.parametrize(
    "line", ["show mine --json {}", "runs --json {}", "runs {} --json", "analyse recorded-metrics mine --json {}"]
)
def test_every_command_that_reads_a_run_takes_a_name(typed, line):
    plain, mapped = typed(line.format("")), typed(line.format(MAPPED))
    assert plain[0] == mapped[0] == 0, mapped
    assert str(ACCURACIES[-1]) in mapped[1] and plain[1] != mapped[1] == typed(line.format(MAPPED.replace(" ", "=")))[1]
    assert plain[1] == typed(line.format(""))[1], "a row is not remembered under another name"


def test_a_report_takes_a_name(typed):
    code, _, told = typed(f"publish mine -o mapped.html {MAPPED}")
    assert code == 0, told
    page = Path("mapped.html").read_text()
    assert "Recorded: test_acc" not in page and "accuracy" in page


@pytest.mark.parametrize(
    "line", ["figures draw accuracy-rounds mine", "publish mine -o other.html", "runs", "show mine"]
)
def test_a_number_that_no_round_has_is_refused(typed, line):
    code, out, told = typed(f"{line} --set metrics.accuracy=test_ac")
    assert "Did you mean 'test_acc'" in out + told and code == 2, (out, told)
    code, _, told = typed(f"{line} --set metrics.accuracy")
    assert code == 2 and "metrics.accuracy=NAME" in told


def test_runs_without_the_number_are_listed_without_it_and_runs_are_sorted_by_any(typed):
    for name, numbers in {"a": {"val/acc": 0.5}, "b": {"other": 0.75}, "c": {"val/acc": 0.25, "other": 2.0}}.items():
        model = {"w": np.zeros(3)}
        drift.Recorder(f"some/{name}").round(start=model, clients={}, end=model, metrics=numbers)

    def rows(line):
        code, out, told = typed(f"runs some {line} --json")
        assert code == 0, told
        return {row["name"]: row["accuracy"] for row in json.loads(out)}

    assert rows("--set metrics.accuracy=val/acc") == {"a": 0.5, "b": None, "c": 0.25}
    assert list(rows("--sort other --descending")) == ["c", "b", "a"]
    assert list(rows("--where other=2.0")) == ["c"]
    _, out, told = typed("runs some --sort val/acc")
    assert [line[0] for line in out.splitlines() if line[1:2] == " "] == ["c", "a", "b"], out
    assert "val/acc" in out.splitlines()[0] and "cannot be read" not in out + told
    assert "Did you mean 'other'" in typed("runs some --sort othr")[2]


def test_a_run_that_grows_has_its_numbers_under_both_names(tmp_path, monkeypatch):
    monkeypatch.setenv("FEDSCAPE_METRICS", "accuracy=test_acc")
    run = GrowingRun(recorded(tmp_path / "runs" / "mine").folder)
    run.update()
    assert run.latest()["accuracy"] == ACCURACIES[-1] and "accuracy" in run.number_names()
    assert run.numbers().accuracy.values.tolist() == list(ACCURACIES)
