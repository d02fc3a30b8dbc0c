"""Runs are listed and drawn without the code that trained them, with the numbers that they have with it."""

from __future__ import annotations

import json
import pickle
from pathlib import Path

import pytest
import tiny
from outside_plugins import NAMES, SETTINGS

import drift
from drift.plugins import trust
from drift.runs.run import Run
from drift.simulation.verify import verify
from figures.gallery import AnyOf, load
from landscape.results import netcdf_files

OWN = """
from drift.config.method import Method
from drift.config.method_values import Combined

class Own(Method):
    like_that: float = 0.5

    @property
    def label(self):
        return f"Own at {self.like_that}"

    def combine(self, setting, state, cohort):
        return Combined(cohort.weighted_mean, cohort.weights)

    def momentum(self, state):
        return 0 * state["theta"] if "theta" in state else None
"""


def trained_in_all_ways(elsewhere, monkeypatch) -> list[Path]:
    """One run of each kind of own code and one without, in a process that trusts none of it."""
    runs = [tiny.trained(Path("runs"))]
    runs += [tiny.trained(Path("runs"), f"{place}=my_{kind}.py:{NAMES[kind]}") for kind, place in SETTINGS.items()]
    monkeypatch.setenv(trust.TRUSTED, "")
    for path in elsewhere.glob("my_*.py"):
        path.unlink()
    (elsewhere / "ran").unlink()
    return [run.folder for run in runs]


def test_every_run_is_listed_and_drawn_though_the_code_is_gone(elsewhere, fedscape, monkeypatch):
    folders = trained_in_all_ways(elsewhere, monkeypatch)
    status, out, err = fedscape("runs", "--json")
    rows = json.loads(out)
    assert status == 0 and not err and {row["name"] for row in rows} == {folder.name for folder in folders}
    assert all(row["problem"] is None and row["accuracy"] is not None for row in rows)
    status, _, err = fedscape("figures", "draw", "numbers-rounds", "runs")
    assert status == 0 and "left out" not in err, err
    drawn = netcdf_files.load(Path("out/figures/numbers-rounds.nc"))
    assert set(drawn.run.values.tolist()) == {folder.name for folder in folders}
    for folder in folders:
        recorded = [record.metrics["accuracy"] for record in Run(folder).without_models([0, 1, 2])]
        assert drawn.value.sel(run=folder.name).values.tolist() == recorded
        assert verify(folder) == []
    assert fedscape("figures", "draw", "accuracy-rounds", "runs")[0] == 0
    assert not (elsewhere / "ran").exists()


def test_a_run_without_code_has_the_settings_label_and_drifts_of_the_run_with_it(elsewhere, monkeypatch):
    (elsewhere / "own.py").write_text(OWN)
    trained = tiny.trained(Path("runs"), "method=own.py:Own", "method.like_that=0.25")
    whole = drift.open(trained.folder)
    settings, label, drifts = whole.experiment.resolved(), whole.label, drift.drift_variances(whole)
    monkeypatch.setenv(trust.TRUSTED, "")
    (elsewhere / "own.py").unlink()
    run = Run(trained.folder)
    assert run.experiment.resolved() == settings and run.label == label == "Own at 0.25"
    assert drift.drift_variances(run).equals(drifts)
    assert pickle.loads(pickle.dumps(run.experiment)).resolved() == settings
    for needs_code in (lambda: run.setting, lambda: run.client(0, 0), lambda: run.method.combine(None, {}, None)):
        with pytest.raises(ValueError, match="code that is not part of fedscape"):
            needs_code()


def test_a_file_is_trusted_for_the_module_that_a_run_names(elsewhere, fedscape, monkeypatch):
    package = elsewhere / "inner"
    package.mkdir()
    (package / "own.py").write_text(OWN)
    (package / "__init__.py").write_text("")
    run = tiny.trained(Path("runs"), "method=inner.own:Own")
    monkeypatch.setenv(trust.TRUSTED, "")
    monkeypatch.setattr("sys.path", [place for place in __import__("sys").path if place != str(elsewhere)])
    assert "Own at" in fedscape("runs", "--trust", "inner/own.py:Own")[1]
    monkeypatch.setenv(trust.TRUSTED, "")
    opened = drift.open(run.folder, trust="inner/own.py:Own")
    assert opened.setting.experiment.method.label == "Own at 0.5" and verify(run.folder) == []
    (elsewhere / "own.py").write_text(OWN)
    monkeypatch.setenv(trust.TRUSTED, "")
    with pytest.raises(ValueError, match=r"--trust inner.own:Own or --trust FILE.py:Own"):
        _ = drift.open(run.folder, trust="own.py:Own").setting  # of that name in another folder


def test_a_folder_figure_draws_own_methods_beside_those_of_a_paper(elsewhere, monkeypatch):
    runs = [tiny.trained(Path("runs"), f"method={name}") for name in ("fedavg", "fedadam", "my_method.py:Halved")]
    monkeypatch.setenv(trust.TRUSTED, "")
    ds = load("coherence-rounds").data(AnyOf([Run(run.folder) for run in runs]))
    assert set(ds.algorithm.values.tolist()) == {"fedavg", "fedadam", "Halved"} and ds.attrs["left_out"] == ""
